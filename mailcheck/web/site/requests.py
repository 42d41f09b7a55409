"""Who asks, and for what: header fields, the client behind proxies, links.

And a request itself: with a bounded body, and an answer that goes out as fast as it is read.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from twisted.internet.interfaces import IPushProducer
from twisted.python.failure import Failure
from twisted.web.http import NO_BODY_CODES
from twisted.web.server import Request
from zope.interface import implementer

from mailcheck.api.urls import PublicUrls
from mailcheck.core.client_limits import largest_holder
from mailcheck.core.network_addresses import (
    IpAddress,
    counting_key,
    is_local_client,
    parse_ip_address,
)
from mailcheck.ports.journals import WebFault

CHUNK = 32_768
"""Bytes handed to a connection at a time, which stops us at 64 KiB that nobody has read; what
is no longer than this goes out whole."""

MAX_BUFFERED = 536_870_912
"""Of all answers on their way out: as much as of mail on its way in, twenty of the largest."""

MAX_BUFFERED_OF_CLIENT = 134_217_728
"""Of those to one client: five of the largest, and three more like him are served."""


class _Held:
    """Bodies and how many hold each: all who wait for a mail are sent the same bytes."""

    def __init__(self) -> None:
        self._holders: Counter[int] = Counter()
        self.size = 0

    def size_with(self, body: bytes) -> int:
        return self.size if id(body) in self._holders else self.size + len(body)

    def add(self, body: bytes) -> None:
        self.size = self.size_with(body)
        self._holders[id(body)] += 1

    def remove(self, body: bytes) -> None:
        self._holders[id(body)] -= 1
        if not self._holders[id(body)]:
            del self._holders[id(body)]
            self.size -= len(body)


class _HeldOfClient(_Held):
    """Those of one client, and how to end each, the oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.endings: dict[object, Callable[[], None]] = {}


class ResponseBuffers:
    """Memory for answers that their clients have not read yet.

    One answer always has room beside nothing else, however large it is.
    """

    def __init__(self, in_all: int = MAX_BUFFERED, of_client: int = MAX_BUFFERED_OF_CLIENT) -> None:
        self._in_all = in_all
        self._of_client = of_client
        self._held = _Held()
        self._clients: dict[str, _HeldOfClient] = {}

    @property
    def held(self) -> int:
        """Say how many bytes are held."""
        return self._held.size

    def make_room_for(self, body: bytes, client: str) -> bool:
        """Tell whether one more answer to a client can be held.

        When all room is taken, whoever holds most of it loses his oldest
        answers, as long as he holds more than this client would: a few who
        read slowly keep nobody else from what is small.
        """
        of_client = self._clients.get(client, _Held())
        size = of_client.size_with(body)
        if of_client.size and size > self._of_client:
            return False
        while self._held.size and self._held.size_with(body) > self._in_all:
            largest = largest_holder(self._clients.values())
            if largest.size <= size:
                return False
            next(iter(largest.endings.values()))()
        return True

    def hold(self, body: bytes, client: str, hang_up: Callable[[], object]) -> Callable[[], None]:
        """Count an answer from now on; gives what is called when it is held no longer.

        ``hang_up`` ends it where it has to make room.
        """
        of_client = self._clients.setdefault(client, _HeldOfClient())
        ticket = object()
        for held in (self._held, of_client):
            held.add(body)

        def let_go() -> None:
            if of_client.endings.pop(ticket, None) is None:
                return  # it has made room
            for held in (self._held, of_client):
                held.remove(body)
            if not of_client.size:
                self._clients.pop(client, None)

        def end() -> None:
            let_go()
            hang_up()

        of_client.endings[ticket] = end
        return let_go


@implementer(IPushProducer)
class PacedBody:
    """Writes what it is given piece by piece, while the connection takes it.

    :param is_paused: the connection is full already.
    :param on_progress: is called whenever the client has read what it was sent.
    :param on_end: is called when everything has been written.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        on_progress: Callable[[], None],
        on_end: Callable[[], None],
        *,
        is_paused: bool,
    ) -> None:
        self._write = write
        self._on_progress = on_progress
        self._on_end = on_end
        self._is_paused = is_paused
        self._bodies: deque[bytes] = deque()
        self._sent = 0

    def add(self, body: bytes) -> None:
        """Write this too, behind what there is."""
        self._bodies.append(body)

    def start(self) -> None:
        """Begin to write."""
        self._go_on()

    def pauseProducing(self) -> None:  # noqa: N802
        """Wait: the connection is full."""
        self._is_paused = True

    def resumeProducing(self) -> None:  # noqa: N802
        """Go on: the connection is empty."""
        self._is_paused = False
        self._on_progress()
        self._go_on()

    def stopProducing(self) -> None:  # noqa: N802
        """Forget the rest."""
        self._bodies.clear()

    def _go_on(self) -> None:
        while self._bodies and not self._is_paused:
            body, start = self._bodies[0], self._sent
            self._sent += CHUNK
            if self._sent >= len(body):
                self._bodies.popleft()
                self._sent = 0
            self._write(body[start : start + CHUNK])
            if not self._bodies:
                self._on_end()


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


def loggable_path(path: bytes) -> str:
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
        if self.is_too_large:
            self.requestHeaders.removeHeader(b"Expect")  # so that the body is not asked for
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

    def __init__(self, room: ResponseBuffers, addresses: ClientAddresses, *args: Any) -> None:
        super().__init__(*args)
        self._room = room
        self._addresses = addresses

    def fault(self) -> WebFault:
        """Say which request met a fault of ours."""
        return WebFault(
            status=self.code,
            client_ip=self._addresses.client_ip(self),
            method=self.method.decode("ascii", "replace"),
            path=loggable_path(self.path),
            reference=self.reference,
            problem=self.problem,
        )

    def make_room_for(self, body: bytes) -> bool:
        """Tell whether an answer can be held until its client has read it; others may be ended."""
        return len(body) <= CHUNK or self._room.make_room_for(body, self._client())

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
        return len(data) > CHUNK or channel.is_full

    def _pace(self, data: bytes) -> None:
        channel = self.channel
        if len(data) > CHUNK:
            self._let_go = self._room.hold(data, self._client(), channel.hang_up)
        self._body = PacedBody(
            super().write, channel.start_read_timeout, self._end_body, is_paused=channel.is_full
        )
        self._body.add(data)
        self.registerProducer(self._body, True)
        channel.start_read_timeout()
        self._body.start()

    def _end_body(self) -> None:
        self.unregisterProducer()
        self._forget_body()
        if self._is_ending:
            super().finish()
        elif self.channel is not None:
            self.channel.stop_read_timeout()

    def _forget_body(self) -> None:
        self._body = None
        if self._let_go is not None:
            self._let_go()
            self._let_go = None

    def _client(self) -> str:
        return counting_key(self._addresses.client_ip(self))
