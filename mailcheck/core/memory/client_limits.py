"""Limits for one client, of requests, connections and memory, and the memory of all together.

Requests are counted in fixed windows, the clock minute and the UTC day
(docs/reference/contract.md). The functions are pure arithmetic over counts that a `RateCounters`
port keeps. A rejected request is not counted again, so the headers show the requests really left.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from mailcheck.core.accounts import RequestLimits
from mailcheck.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
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
HOUR_WINDOW = Window("hour", HOUR)
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


MAX_REJECTED_AT_ONCE = 100
"""Maximum number of rejected clients that receive a response. Further ones are disconnected."""


class ConnectionLimits(Struct, frozen=True):
    """Maximum number of concurrent connections, in all and of one address.

    ``surplus`` is the number of further connections that are told why they are rejected. Others are
    aborted, so that a crowd leaves open files to the rest of the daemon.
    """

    in_all: int
    of_address: int
    surplus: int = MAX_REJECTED_AT_ONCE

    @property
    def open(self) -> int:
        """Maximum number that are open: admitted, rejected, and those that are being closed."""
        return self.in_all + 2 * self.surplus


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


MEBIBYTE = 1024 * 1024

BASE = 160 * MEBIBYTE
"""Octets that the daemon and its child processes use under load, without large mails."""

OF_OCTET = 24
"""Octets that one octet of a large mail takes, until it is stored, parsed and shown: copies in four
processes, of which some are decoded."""

OF_FILTERED_MAIL = 120 * MEBIBYTE
"""Octets that a private spamd uses for each mail that it judges at a time."""

OF_SPAMD = 128 * MEBIBYTE
"""Octets that it uses besides."""

OF_LARGE_MAIL = 26_214_400
"""Octets of a large mail that clients read; most servers limit mails to this size."""

SMALL = 512 * MEBIBYTE
"""Octets below which passwords are hashed one at a time; each takes 32 MiB."""


class MemoryPlan(Struct, frozen=True):
    """The limits of memory of one daemon process and its children, in octets.

    ``usable`` is the memory that they may use together. With enough memory, each limit is that of
    a large machine.
    """

    usable: int

    @property
    def incoming(self) -> int:
        """All mails that are being received, on all ports. A larger mail gets 452."""
        return self._share(OF_OCTET, 512 * MEBIBYTE)

    @property
    def appended(self) -> int:
        """All mails that mail programs are appending on one port."""
        return self._share(OF_OCTET, 256 * MEBIBYTE)

    @property
    def bodies(self) -> int:
        """All large bodies of HTTP requests at one door."""
        return self._share(OF_OCTET // 3, 256 * MEBIBYTE)

    @property
    def bodies_of_client(self) -> int:
        """The large bodies of HTTP requests of one client."""
        return self.bodies // 2

    @property
    def responses(self) -> int:
        """All HTTP responses that their clients have not read yet."""
        return self._share(8, 256 * MEBIBYTE)

    @property
    def responses_of_client(self) -> int:
        """The responses that one client has not read yet."""
        return self.responses // 4

    @property
    def requests(self) -> int:
        """The address space of each process that reads bodies of requests: the mails of send APIs,
        and imports of reports.
        """
        return min(1024 * MEBIBYTE, BASE + self._free)

    @property
    def large_mails(self) -> int:
        """The number of large mails that are parsed or shown at a time."""
        return max(1, min(4, self._free // (OF_LARGE_MAIL * OF_OCTET)))

    @property
    def is_small(self) -> bool:
        """Whether password hashes must wait for each other."""
        return self.usable < SMALL

    def filtered_mails(self, wanted: int) -> int:
        """Return how many mails a private spamd may judge at a time; 0 if there is no room for it.

        :param wanted: the configured number.
        """
        room = (self.usable - BASE - OF_SPAMD) // OF_FILTERED_MAIL
        return max(0, min(wanted, room))

    @property
    def _free(self) -> int:
        return max(self.usable - BASE, self.usable // 8)

    def _share(self, divisor: int, most: int) -> int:
        return min(most, self._free // divisor)


AMPLE = MemoryPlan(64 * 1024 * MEBIBYTE)
"""The plan of a machine on which memory limits nothing."""
