"""Requests whose answers go out as their clients read them."""

from collections.abc import Callable
from typing import Any

from twisted.python.failure import Failure
from twisted.web.http import NO_BODY_CODES

from mailcheck.core.network_addresses import counting_key
from mailcheck.operations.journals import WebFault
from mailcheck.web.site.client_addresses import ClientAddresses
from mailcheck.web.site.connection import WebConnection
from mailcheck.web.site.request_bodies import BoundedRequest
from mailcheck.web.site.request_urls import shown_path
from mailcheck.web.site.sending import PIECE, AnswerRoom, PacedBody


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
        channel: WebConnection = self.channel
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
