"""Requests with bounded bodies and paced responses, and the addresses of their clients.

A response is written only as fast as the client reads it.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from msgspec import Struct
from twisted.python.failure import Failure
from twisted.web.http import NO_BODY_CODES
from twisted.web.server import Request
from werkzeug.datastructures import Authorization

from mailcheck.api.urls import PublicUrls
from mailcheck.core.domains.domain_names import origin_of
from mailcheck.core.network_addresses import (
    IpAddress,
    counting_key,
    is_local_client,
    parse_ip_address,
)
from mailcheck.ports.journals import WebFault
from mailcheck.web.site.response_buffers import CHUNK, PacedBody, ResponseBuffers, StalledStream

MAX_BODY = 65_536
"""Maximum number of bytes of a request body."""

HOST_NAME = b"localhost"

MAX_LARGE_BODIES = 268_435_456
"""Maximum number of bytes of all bodies over `MAX_BODY` that are being received or handled."""

MAX_LARGE_BODIES_OF_CLIENT = 134_217_728
"""Maximum number of these bytes from one client."""

Network = IPv4Network | IPv6Network

LOCAL_PEER = "127.0.0.1"
"""The address of a peer without an IP address, such as a UNIX socket."""

SCHEMES = frozenset({"http", "https"})

_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


class ClientAddresses(Struct, eq=False):
    """Determines the addresses of clients. Only the headers of trusted proxies are used.

    Proxies append to the headers, so lists are read from the end. ``trusted_proxies`` may be
    changed.
    """

    trusted_proxies: Sequence[Network]

    def client_ip(self, request: Request) -> str:
        """Return the client's address: the last one that is not a trusted proxy."""
        host = _peer(request)
        peer = parse_ip_address(host)
        forwarded = _elements_of(request, b"X-Forwarded-For")
        while forwarded and self._is_trusted(peer):
            nearer = parse_ip_address(forwarded.pop())
            if nearer is None:
                break
            peer = nearer
        return host if peer is None else str(peer)

    def client_scheme(self, request: Request) -> str | None:
        """Return ``http`` or ``https`` as reported by a trusted proxy, or `None`."""
        if not self._is_trusted(parse_ip_address(_peer(request))):
            return None
        scheme = next(reversed(_elements_of(request, b"X-Forwarded-Proto")), "").lower()
        return scheme if scheme in SCHEMES else None

    def is_shared(self, host: str) -> bool:
        """Return whether many clients may use this address.

        They may if it belongs to a trusted proxy, this machine or a private network, such as a CI
        farm.
        """
        return is_local_client(host) or self._is_trusted(parse_ip_address(host))

    def _is_trusted(self, peer: IpAddress | None) -> bool:
        return peer is not None and any(peer in network for network in self.trusted_proxies)


def _peer(request: Request) -> str:
    return getattr(request.getClientAddress(), "host", None) or LOCAL_PEER


def _elements_of(request: Request, name: bytes) -> list[str]:
    """Return the elements of a comma-separated header, from all of its lines."""
    lines = header_values(request, name)
    return [word.strip() for line in lines for word in line.split(",")]


class RequestUrls(Struct, frozen=True, eq=False):
    """The public URLs of the service: the configured one, or the one that a request used.

    Without a configured URL, the scheme is taken from a trusted proxy, and the name from
    ``Host``, which proxies pass on. Without X-Forwarded-Proto from a trusted proxy, ``Host`` is
    not trusted, and the default is used.
    """

    default: PublicUrls
    addresses: ClientAddresses
    is_configured: bool

    def of(self, request: Request) -> PublicUrls:
        """Return the URLs for the response to a request."""
        scheme = None if self.is_configured else self.addresses.client_scheme(request)
        hosts = header_values(request, b"Host")
        if scheme is None or len(hosts) != 1 or _HOST.fullmatch(hosts[0]) is None:
            return self.default
        url = f"{scheme}://{hosts[0]}"
        try:
            origin_of(url)
        except ValueError:
            return self.default
        return PublicUrls(url)


class BodyLimits:
    """The maximum size of bodies by path, and the room for all bodies over `MAX_BODY`.

    :param larger: larger maxima, by the beginnings of paths. ``*`` stands for one segment.
    """

    def __init__(
        self,
        larger: Mapping[bytes, int],
        in_all: int = MAX_LARGE_BODIES,
        of_client: int = MAX_LARGE_BODIES_OF_CLIENT,
    ) -> None:
        self._larger = [
            (re.compile(rb"[^/]*".join(map(re.escape, path.split(b"*")))), most)
            for path, most in larger.items()
        ]
        self._in_all = in_all
        self._of_client = of_client
        self._used: Counter[str] = Counter()

    def of(self, target: bytes) -> int:
        """Return the maximum number of bytes of a body for a request target."""
        found = (most for path, most in self._larger if path.match(target))
        return next(found, MAX_BODY)

    def take(self, octets: int, client: str) -> bool:
        """Reserve room for bytes of a client; return whether there is room."""
        if self._used[client] + octets > self._of_client:
            return False
        if self._used.total() + octets > self._in_all:
            return False
        self._used[client] += octets
        return True

    def release(self, octets: int, client: str) -> None:
        """Release the room for bytes of a client."""
        self._used[client] -= octets
        if not self._used[client]:
            del self._used[client]


class BoundedRequest(Request):
    """A request with a body of at most ``max_body`` bytes. Its handler rejects a larger one."""

    is_too_large = False
    route_name = ""
    """The method and the path of its route, with the names of path variables; for metrics."""
    max_body = MAX_BODY
    _received = 0

    def getRequestHostname(self) -> bytes:
        """Return a constant, because routing does not use the name and fails for invalid ones."""
        return HOST_NAME

    def gotLength(self, length: int | None) -> None:
        """Ignore the body if its Content-Length exceeds the maximum."""
        self.is_too_large = length is not None and length > self.max_body
        if self.is_too_large:
            self.requestHeaders.removeHeader(b"Expect")  # the client must not send the body
        super().gotLength(0 if self.is_too_large else length)

    def handleContentChunk(self, data: bytes) -> None:
        """Store a chunk of the body within the limit."""
        self._received += len(data)
        if self._received > self.max_body:
            self.is_too_large = True
        else:
            super().handleContentChunk(data)


class PacedRequest(BoundedRequest):
    """A request whose response is written only as fast as the client reads it.

    Callers use ``write`` and ``finish`` as usual. Data beyond the connection's capacity is
    buffered and counted here. ``finish`` takes effect when everything is written.
    """

    channel: Any
    _body: PacedBody | None = None
    _is_ending = False
    _release: Callable[[], None] | None = None
    problem = ""
    reference = ""
    """The message of an internal error, and the reference of its cause in the log."""

    def __init__(
        self,
        buffers: ResponseBuffers,
        bodies: BodyLimits,
        addresses: ClientAddresses,
        *args: Any,
    ) -> None:
        super().__init__(*args)
        self._buffers = buffers
        self._bodies = bodies
        self._addresses = addresses
        self._reserved: tuple[int, str] | None = None
        self.has_no_room = False

    def gotLength(self, length: int | None) -> None:
        """Reserve room for a large body. Without room, the body is ignored."""
        self.max_body = self._bodies.of(self.channel.target)
        is_large = self.max_body > MAX_BODY and (length is None or length > MAX_BODY)
        if is_large and (length is None or length <= self.max_body):
            # A body of unknown length may become as large as allowed.
            octets = self.max_body if length is None else length
            client = self._client()
            if self._bodies.take(octets, client):
                self._reserved = octets, client
            else:
                self.has_no_room, self.max_body = True, 0
        super().gotLength(length)

    def fault(self) -> WebFault:
        """Return the log entry for an internal error of this request."""
        return WebFault(
            status=self.code,
            client_ip=self._addresses.client_ip(self),
            method=self.method.decode("ascii", "replace"),
            path=loggable_path(self.path),
            reference=self.reference,
            problem=self.problem,
        )

    def make_room_for(self, body: bytes) -> bool:
        """Return whether a response can be buffered. This may abort other responses."""
        return len(body) <= CHUNK or self._buffers.make_room_for(body, self._client())

    def hold_unread(self) -> Callable[[], None] | None:
        """Count the unread data of a stream; return the function that ends that.

        Return `None` if too much data waits unread already.
        """
        stalled, client = StalledStream(), self._client()
        if not self._buffers.make_room_for(stalled, client):
            return None
        return self._buffers.hold(stalled, client, self.channel.hang_up)

    def write(self, data: bytes) -> None:
        """Send a part of the response, as fast as the client reads it."""
        if self._body is not None:
            self._body.add(data)
        elif self._must_be_paced(data):
            super().write(b"")  # the head
            if self.method != b"HEAD" and self.code not in NO_BODY_CODES:
                self._pace(data)
        else:
            super().write(data)

    def finish(self) -> None:
        """End the response when all of it is written."""
        self._release_body()
        if self._body is None:
            super().finish()
        else:
            self._is_ending = True

    def connectionLost(self, reason: Failure) -> None:
        """Discard the remaining response."""
        self._release_body()
        self._forget_body()
        super().connectionLost(reason)

    def _must_be_paced(self, data: bytes) -> bool:
        channel = self.channel
        # Event streams register their own producer, which paces their small events.
        if channel is None or self.producer is not None or not data:
            return False
        return len(data) > CHUNK or channel.is_full

    def _pace(self, data: bytes) -> None:
        channel = self.channel
        if len(data) > CHUNK:
            self._release = self._buffers.hold(data, self._client(), channel.hang_up)
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
        if self._release is not None:
            self._release()
            self._release = None

    def _release_body(self) -> None:
        reserved, self._reserved = self._reserved, None
        if reserved is not None:
            self._bodies.release(*reserved)

    def _client(self) -> str:
        return counting_key(self._addresses.client_ip(self))


def header_values(request: Request, name: bytes) -> list[str]:
    """Return the values of a header, one per line, with bytes that are not UTF-8 replaced.

    Twisted raises an error for such bytes if the name is a ``str``.
    """
    values = request.requestHeaders.getRawHeaders(name, ())
    return [value.decode("utf-8", "replace") for value in values]


def headers_of(request: Request) -> Mapping[str, str]:
    """Return the header fields by lower-case name. The values of a repeated field are joined."""
    return {
        name.decode("ascii", "replace").lower(): ",".join(
            value.decode("utf-8", "replace") for value in found
        )
        for name, found in request.requestHeaders.getAllRawHeaders()
    }


def read_body(request: Request) -> bytes:
    """Return the body, which has been received within the limits of the request."""
    return b"" if request.content is None else request.content.read()


def basic_credentials(authorization: str) -> tuple[str, str]:
    """Return the user and the password of Basic authentication (RFC 7617), or empty texts.

    :param authorization: the value of the header field.
    """
    sent = Authorization.from_header(authorization.strip())
    if sent is None or sent.type != "basic":
        return "", ""
    return sent.username or "", sent.password or ""


def loggable_path(path: bytes) -> str:
    """Return a path for the log, without share tokens, which would grant access."""
    text = path.decode("ascii", "replace")
    return "/share/..." if text.startswith("/share/") else text
