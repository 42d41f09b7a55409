"""Limits for one client: requests, connections, and memory.

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
    """A kind of fixed window, such as the clock minute. ``length`` is in milliseconds."""

    name: str
    length: int

    def index(self, now: Instant) -> int:
        """Return the number of the window that contains ``now``, counted from the epoch."""
        return now // self.length

    def seconds_left(self, now: Instant) -> int:
        """Return the whole seconds until the window ends, at least 1 (RFC 9110 10.2.3)."""
        return max(1, -(-(self.length - now % self.length) // SECOND))

    def reset_at(self, now: Instant) -> Instant:
        """Return the moment at which the next window begins."""
        return Instant((self.index(now) + 1) * self.length)


MINUTE_WINDOW = Window("minute", MINUTE)
DAY_WINDOW = Window("day", DAY)


class Usage(Struct, frozen=True):
    """Requests left in both windows after this one.

    ``exhausted`` is the window whose limit rejected the request, which was not counted then.
    """

    remaining: int
    daily_remaining: int
    exhausted: Window | None


def judge_usage(minute_count: int, day_count: int, limits: RequestLimits) -> Usage:
    """Return the usage after a request.

    The counts include the request. If both windows are exhausted, the day is reported, since
    waiting for the next minute would not help.
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
    """Maximum number of concurrent connections, in all and of one address."""

    in_all: int
    of_address: int


Connection = TypeVar("Connection")


class ConnectionCounts(Generic[Connection]):
    """A set of connections, counted for each client (`counting_key`)."""

    def __init__(self) -> None:
        self._keys: dict[Connection, str] = {}
        self._of_client: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return the number of connections."""
        return len(self._keys)

    def __contains__(self, connection: Connection) -> bool:
        """Return whether the connection is counted."""
        return connection in self._keys

    def of_client(self, client_ip: str) -> int:
        """Return the number of connections of one client."""
        return self._of_client[counting_key(client_ip)]

    def add(self, connection: Connection, client_ip: str) -> None:
        """Count a connection that is not counted yet."""
        key = self._keys[connection] = counting_key(client_ip)
        self._of_client[key] += 1

    def remove(self, connection: Connection) -> None:
        """Remove a connection. Do nothing if it is not counted."""
        key = self._keys.pop(connection, None)
        if key is not None:
            self._of_client[key] -= 1
            if not self._of_client[key]:
                del self._of_client[key]


class Holder(Protocol):
    """A client, and the number of octets buffered for it."""

    size: int


AnyHolder = TypeVar("AnyHolder", bound=Holder)


def largest_holder(holders: Iterable[AnyHolder]) -> AnyHolder:
    """Return the client that uses the most memory, so that its data can be dropped first.

    Slow clients hold the most data, so a few of them cannot block the other clients.
    """
    return max(holders, key=lambda holder: holder.size)
