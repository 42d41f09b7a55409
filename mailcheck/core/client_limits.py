"""What one client may take: requests, connections, and the memory that is held for it.

Requests are counted in fixed windows, the clock minute and the UTC day
(docs/reference/contract.md). The functions are pure arithmetic over counts that a `RateCounters`
port keeps. A rejected request is not counted again, so the headers show the requests really left.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from mailcheck.core.accounts import RequestLimits
from mailcheck.core.instants import DAY, MINUTE, SECOND, Instant
from mailcheck.core.network_addresses import counting_key


class Window(Struct, frozen=True):
    """One fixed window: its number since the epoch, and when it ends."""

    name: str
    length: int

    def index(self, now: Instant) -> int:
        """Number the window that ``now`` lies in."""
        return now // self.length

    def seconds_left(self, now: Instant) -> int:
        """Whole seconds until the window ends, at least 1 (RFC 9110 10.2.3)."""
        return max(1, -(-(self.length - now % self.length) // SECOND))

    def reset_at(self, now: Instant) -> Instant:
        """Give the moment at which the next window begins."""
        return Instant((self.index(now) + 1) * self.length)


MINUTE_WINDOW = Window("minute", MINUTE)
DAY_WINDOW = Window("day", DAY)


class Usage(Struct, frozen=True):
    """Requests left in both windows after this one; ``exhausted`` has refused it, uncounted."""

    remaining: int
    daily_remaining: int
    exhausted: Window | None


def judge_usage(minute_count: int, day_count: int, limits: RequestLimits) -> Usage:
    """Judge a request that would be the ``minute_count``-th and ``day_count``-th of its windows.

    The day is named first where both are exhausted: waiting for the next
    minute would not help.
    """
    exhausted = None
    if day_count > limits.per_day:
        exhausted = DAY_WINDOW
    elif minute_count > limits.per_minute:
        exhausted = MINUTE_WINDOW
    uncounted = 0 if exhausted is None else 1
    return Usage(
        remaining=max(0, limits.per_minute - minute_count + uncounted),
        daily_remaining=max(0, limits.per_day - day_count + uncounted),
        exhausted=exhausted,
    )


class ConnectionLimits(Struct, frozen=True):
    """Connections at a time, of all clients together and of one."""

    in_all: int
    of_address: int


Connection = TypeVar("Connection")


class ConnectionCounts(Generic[Connection]):
    """Connections, each counted for its client (`counting_key`)."""

    def __init__(self) -> None:
        self._keys: dict[Connection, str] = {}
        self._of_client: Counter[str] = Counter()

    def __len__(self) -> int:
        """Say how many there are."""
        return len(self._keys)

    def __contains__(self, connection: Connection) -> bool:
        """Tell whether a connection is counted."""
        return connection in self._keys

    def of_client(self, client_ip: str) -> int:
        """Say how many there are of one client."""
        return self._of_client[counting_key(client_ip)]

    def add(self, connection: Connection, client_ip: str) -> None:
        """Count a connection that is not counted yet."""
        key = self._keys[connection] = counting_key(client_ip)
        self._of_client[key] += 1

    def remove(self, connection: Connection) -> None:
        """Uncount a connection, if it is counted."""
        key = self._keys.pop(connection, None)
        if key is not None:
            self._of_client[key] -= 1
            if not self._of_client[key]:
                del self._of_client[key]


class Holder(Protocol):
    """A client, and the octets that are held for him."""

    size: int


AnyHolder = TypeVar("AnyHolder", bound=Holder)


def largest_holder(holders: Iterable[AnyHolder]) -> AnyHolder:
    """Give who makes room for the others, by losing something of what is held for him.

    A few who send or read slowly keep nobody else out then, since they hold most.
    """
    return max(holders, key=lambda holder: holder.size)
