"""Connections to the HTTP server: how many there may be, and how fast their answers go out."""

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure
from twisted.web.http import NO_BODY_CODES

from mailcheck.core.client_limits import ConnectionCounts
from mailcheck.core.network_addresses import counting_key
from mailcheck.operations.ports import WebFault
from mailcheck.web.site.requests import BoundedRequest, ClientAddresses, shown_path
from mailcheck.web.site.sending import PIECE, AnswerRoom, PacedBody

JUST_NOW = 0.2
"""Seconds for which one that rests makes no room: those who come in a crowd, and find few places,
would end each other before anybody has read what they ask."""


class ConnectionLimits(Struct, frozen=True):
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


class PacedRequest(BoundedRequest):
    """A request that hands its connection no more than that can send.

    ``write`` and ``finish`` are called as ever: what the connection can't take
    is kept and counted here, and the end waits for it.
    """

    channel: Any
    _body: PacedBody | None = None
    _is_ending = False
    _let_go: Callable[[], None] | None = None
    problem = ""
    reference = ""
    """What was told of a fault of ours, and where its cause stands in the log."""

    def __init__(self, room: AnswerRoom, addresses: ClientAddresses, *args: Any) -> None:
        super().__init__(*args)
        self._room = room
        self._addresses = addresses

    def fault(self) -> WebFault:
        """Say which request met a fault of ours."""
        return WebFault(
            status=self.code,
            client_ip=self._addresses.client_ip(self),
            method=self.method.decode("ascii", "replace"),
            path=shown_path(self.path),
            reference=self.reference,
            problem=self.problem,
        )

    def make_room_for(self, body: bytes) -> bool:
        """Tell whether an answer can be held until its client has read it; others may be ended."""
        return len(body) <= PIECE or self._room.make_room_for(body, self._client())

    def write(self, data: bytes) -> None:
        """Send a part of the answer, as fast as the client reads it."""
        if self._body is not None:
            self._body.add(data)
        elif self._must_be_paced(data):
            super().write(b"")  # the head
            if self.method != b"HEAD" and self.code not in NO_BODY_CODES:
                self._pace(data)
        else:
            super().write(data)

    def finish(self) -> None:
        """End the answer, once all of it has been sent."""
        if self._body is None:
            super().finish()
        else:
            self._is_ending = True

    def connectionLost(self, reason: Failure) -> None:
        """Forget what is left of the answer."""
        self._forget_body()
        super().connectionLost(reason)

    def _must_be_paced(self, data: bytes) -> bool:
        channel = self.channel
        # Streams with small events have registered a producer, and watch their pace themselves.
        if channel is None or self.producer is not None or not data:
            return False
        return len(data) > PIECE or channel.is_full

    def _pace(self, data: bytes) -> None:
        channel = self.channel
        if len(data) > PIECE:
            self._let_go = self._room.hold(data, self._client(), channel.hang_up)
        self._body = PacedBody(
            super().write, channel.watch_reader, self._end_body, is_paused=channel.is_full
        )
        self._body.add(data)
        self.registerProducer(self._body, True)
        channel.watch_reader()
        self._body.start()

    def _end_body(self) -> None:
        self.unregisterProducer()
        self._forget_body()
        if self._is_ending:
            super().finish()
        elif self.channel is not None:
            self.channel.watch_no_more()

    def _forget_body(self) -> None:
        self._body = None
        if self._let_go is not None:
            self._let_go()
            self._let_go = None

    def _client(self) -> str:
        return counting_key(self._addresses.client_ip(self))
