"""Who asks, and for what: header fields, the client behind proxies, links.

And a request itself: with a bounded body, and an answer that goes out as fast as it is read.
"""

import re
from collections.abc import Callable, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from twisted.python.failure import Failure
from twisted.web.http import NO_BODY_CODES
from twisted.web.server import Request

from mailcheck.api.urls import PublicUrls
from mailcheck.core.network_addresses import (
    IpAddress,
    counting_key,
    is_local_client,
    parse_ip_address,
)
from mailcheck.ports.journals import WebFault
from mailcheck.web.site.sending import PIECE, AnswerRoom, PacedBody


def header_values(request: Request, name: bytes) -> list[str]:
    """Give the values of a field, one for each line; what is not UTF-8 in them is replaced.

    Twisted, asked with a name of type ``str``, raises over such bytes.
    """
    values = request.requestHeaders.getRawHeaders(name, ())
    return [value.decode("utf-8", "replace") for value in values]


Network = IPv4Network | IPv6Network

LOCAL_PEER = "127.0.0.1"
"""Stands for a peer without an address: a UNIX socket."""

SCHEMES = frozenset({"http", "https"})


class ClientAddresses:
    """Believes trusted proxies only, and each list from its end: there are their own words."""

    def __init__(self, trusted_proxies: Sequence[Network]) -> None:
        self._trusted_proxies = trusted_proxies

    def client_ip(self, request: Request) -> str:
        """Give the client's address; the last one that no trusted proxy stands for."""
        host = _peer(request)
        peer = parse_ip_address(host)
        forwarded = _listed(request, b"X-Forwarded-For")
        while forwarded and self._is_trusted(peer):
            nearer = parse_ip_address(forwarded.pop())
            if nearer is None:
                break
            peer = nearer
        return host if peer is None else str(peer)

    def client_scheme(self, request: Request) -> str | None:
        """Give how the client reached the proxy, ``http`` or ``https``; nothing where none says."""
        if not self._is_trusted(parse_ip_address(_peer(request))):
            return None
        scheme = next(reversed(_listed(request, b"X-Forwarded-Proto")), "").lower()
        return scheme if scheme in SCHEMES else None

    def is_shared(self, host: str) -> bool:
        """Tell whether many clients may come from a peer's address.

        A trusted proxy, this machine, a private network: all of a CI farm may be behind it.
        """
        return is_local_client(host) or self._is_trusted(parse_ip_address(host))

    def _is_trusted(self, peer: IpAddress | None) -> bool:
        return peer is not None and any(peer in network for network in self._trusted_proxies)


def _peer(request: Request) -> str:
    return getattr(request.getClientAddress(), "host", None) or LOCAL_PEER


def _listed(request: Request, name: bytes) -> list[str]:
    """Give the words of a field that is a list, over all of its lines."""
    lines = header_values(request, name)
    return [word.strip() for line in lines for word in line.split(",")]


_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


class RequestUrls:
    """The configured address; without one, what a trusted proxy says that the client asked for.

    A scheme alone would make no link that works: it comes with the name in
    ``Host``, which proxies pass on. Without X-Forwarded-Proto from a trusted
    proxy the name that we are called by counts for nothing.
    """

    def __init__(
        self, urls: PublicUrls, addresses: ClientAddresses, *, is_configured: bool
    ) -> None:
        self.default = urls
        self._addresses = addresses
        self._is_configured = is_configured

    def of(self, request: Request) -> PublicUrls:
        """Give the addresses for the answer to a request."""
        scheme = None if self._is_configured else self._addresses.client_scheme(request)
        hosts = header_values(request, b"Host")
        if scheme is None or len(hosts) != 1 or _HOST.fullmatch(hosts[0]) is None:
            return self.default
        return PublicUrls(f"{scheme}://{hosts[0]}")


def shown_path(path: bytes) -> str:
    """Give a request's path for the log: who has a share link can read what it shares."""
    text = path.decode("ascii", "replace")
    return "/share/..." if text.startswith("/share/") else text


MAX_BODY = 65_536
"""Bytes: no request here needs more."""

HOST_NAME = b"localhost"


class BoundedRequest(Request):
    """A request that never keeps more than `MAX_BODY` bytes; the handler refuses what is longer."""

    is_too_large = False
    _received = 0

    def getRequestHostname(self) -> bytes:
        """Give a name that is one: routing asks for it, fails over a bad one, and needs none."""
        return HOST_NAME

    def gotLength(self, length: int | None) -> None:
        """Refuse early what says itself that it is too large."""
        self.is_too_large = length is not None and length > MAX_BODY
        super().gotLength(0 if self.is_too_large else length)

    def handleContentChunk(self, data: bytes) -> None:
        """Keep a piece of the body while it is within the limit."""
        self._received += len(data)
        if self._received > MAX_BODY:
            self.is_too_large = True
        else:
            super().handleContentChunk(data)


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
