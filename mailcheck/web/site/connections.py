"""How many HTTP connections there are, in all and of one client, and which goes when it is full."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from twisted.internet.interfaces import IReactorTime

from mailcheck.core.connection_counts import ConnectionCounts

JUST_NOW = 0.2
"""Seconds for which one that rests makes no room: those who come in a crowd, and find few places,
would end each other before anybody has read what they ask."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Connections at a time."""

    in_all: int
    of_address: int


class Connection(Protocol):
    """What is counted; it says itself when it rests and when it has ended."""

    def hang_up(self) -> None:
        """End at once."""


class Connections:
    """Counts connections. When there are too many, the one that rests longest makes room.

    A connection rests while no whole request of it is being answered: between
    two requests, and also while one trickles in. So those who only hold
    connections don't keep out those who use them.

    :param is_exempt: tells of a peer's address whether many clients may be behind it.
    """

    def __init__(
        self, limits: ConnectionLimits, is_exempt: Callable[[str], bool], clock: IReactorTime
    ) -> None:
        self._limits = limits
        self._is_exempt = is_exempt
        self._clock = clock
        self._counts: ConnectionCounts[Connection] = ConnectionCounts()
        self._resting: dict[Connection, float] = {}

    def __len__(self) -> int:
        """Say how many there are."""
        return len(self._counts)

    def count_of_address(self, host: str) -> int:
        """Say how many there are of one client."""
        return self._counts.of_client(host)

    def admit(self, connection: Connection, host: str) -> bool:
        """Count a connection from an address, or refuse it."""
        if self.count_of_address(host) >= self._limits.of_address and not self._is_exempt(host):
            return False
        if len(self) >= self._limits.in_all and not self._make_room():
            return False
        self._counts.add(connection, host)
        self._resting[connection] = self._clock.seconds()
        return True

    def keep(self, connection: Connection) -> None:
        """Note that a request is being answered."""
        self._resting.pop(connection, None)

    def let_rest(self, connection: Connection) -> None:
        """Note that the connection waits for its next request."""
        if connection in self._counts:
            self._resting[connection] = self._clock.seconds()

    def forget(self, connection: Connection) -> None:
        """Uncount a connection that has ended."""
        self._resting.pop(connection, None)
        self._counts.remove(connection)

    def _make_room(self) -> bool:
        longest = next(iter(self._resting), None)
        if longest is None or 0 <= self._clock.seconds() - self._resting[longest] < JUST_NOW:
            return False
        self.forget(longest)
        longest.hang_up()
        return True
