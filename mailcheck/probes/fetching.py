"""Fetching files over HTTPS with the guarded dialer.

Every hop of a redirect is a new request with a new check of its address. Compressed responses are
rejected, since a kilobyte can expand to a gigabyte. Slow and large responses are aborted.
"""

import re
from collections.abc import Callable, Coroutine, Sequence
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from msgspec import Struct
from OpenSSL import SSL
from service_identity import VerificationError
from treq.content import collect
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.endpoints import wrapClientTLS
from twisted.internet.interfaces import (
    IConsumer,
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
    ITCPTransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.client import URI, Agent, RequestTransmissionFailed, ResponseFailed
from twisted.web.error import SchemeNotSupported
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory, IBodyProducer, IResponse
from zope.interface import implementer

from mailcheck.core.network_addresses import IpAddress, IpNetwork, parse_ip_address
from mailcheck.probes.guarded_dialer import (
    AddressRefused,
    Choice,
    ConnectionsRefused,
    DialFailed,
    FetchFailed,
    FetchProblem,
    GuardedDialer,
    HostNotFound,
    ProbeReactor,
    any_address,
)
from mailcheck.probes.trust import TrustRoots

Dialling = Coroutine[Deferred[Any], Any, IProtocol]


@implementer(IAgentEndpointFactory)
class WebConnections:
    """Creates the connections of an `Agent`.

    A connection is aborted when it has received more than ``max_octets``, including headers.
    ``is_flooded`` says that this has happened.
    """

    def __init__(
        self,
        dialer: GuardedDialer,
        trust: TrustRoots,
        *,
        seconds: float,
        max_octets: int,
        may_use: Choice = any_address,
        allowed: Sequence[IpNetwork] = (),
    ) -> None:
        """``may_use`` and ``allowed`` are those of `GuardedDialer.dial`."""
        self._dial = partial(dialer.dial, seconds=seconds, may_use=may_use, allowed=allowed)
        self._trust = trust
        self.max_octets = max_octets
        self.is_flooded = False
        self.open_ones: set[_Connection] = set()

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:  # noqa: N802
        """Return the endpoint of a URI. For https, the host must prove its name."""
        host = uri.host.decode("ascii")

        async def dial(factory: IProtocolFactory) -> IProtocol:
            bounded = _Factory(factory, self)
            made = await self._dial(host, uri.port, bounded)
            return cast(_Connection, made).wrappedProtocol

        async def encrypt(factory: IProtocolFactory) -> IProtocol:
            # Created here because the list of authorities is only needed for new connections.
            verified = self._trust.verify_as(host)
            return await wrapClientTLS(verified, _DialledEndpoint(dial)).connect(factory)

        if uri.scheme not in (b"http", b"https"):
            raise SchemeNotSupported(uri.scheme)
        return _DialledEndpoint(encrypt if uri.scheme == b"https" else dial)

    @property
    def peer(self) -> IpAddress | None:
        """The address of an open connection, or `None`."""
        for connection in self.open_ones:
            return parse_ip_address(connection.transport.getPeer().host)
        return None

    def reset_octets(self) -> None:
        """Reset the octet counts of kept connections for the next request."""
        self.is_flooded = False
        for connection in self.open_ones:
            connection.octets = 0

    def hang_up(self) -> None:
        """Abort all open connections."""
        for connection in tuple(self.open_ones):
            connection.abort()


@implementer(IStreamClientEndpoint)
class _DialledEndpoint(Struct, frozen=True, eq=False):
    dial: Callable[[IProtocolFactory], Dialling]

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:  # noqa: N803
        """Connect, as `IStreamClientEndpoint` requires."""
        return Deferred.fromCoroutine(self.dial(protocolFactory))


class _Connection(ProtocolWrapper):
    """Counts received octets."""

    factory: "_Factory"
    transport: ITCPTransport
    octets = 0

    def connectionMade(self) -> None:
        """Register the open connection."""
        self.factory.connections.open_ones.add(self)

    def dataReceived(self, data: bytes) -> None:
        """Pass data on up to the limit."""
        self.octets += len(data)
        if self.octets <= self.factory.connections.max_octets:
            super().dataReceived(data)
        else:
            self.factory.connections.is_flooded = True
            self.abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Remove the closed connection."""
        self.factory.connections.open_ones.discard(self)
        super().connectionLost(reason)

    def abort(self) -> None:
        """Abort the connection."""
        self.transport.abortConnection()


class _Factory(WrappingFactory[_Connection]):
    protocol = _Connection
    noisy = False

    def __init__(self, wrapped: IProtocolFactory, connections: WebConnections) -> None:
        super().__init__(wrapped)
        self.connections = connections

    def doStart(self) -> None:
        """Start without the log message that the factory of Twisted's client writes."""

    def doStop(self) -> None:
        """Stop without a log message."""


USER_AGENT = "mailcheck"
MAX_URL = 2_048
"""Maximum length of a URL, in characters."""

HEADER_ALLOWANCE = 65_536
"""Maximum number of octets of a connection besides the body: headers, TLS and chunk sizes."""

REDIRECTS = (301, 302, 303, 307, 308)


@implementer(IBodyProducer)
class BytesBody:
    """A request body of bytes."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.length = len(body)

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:  # noqa: N802
        """Write the whole body."""
        consumer.write(self._body)
        return succeed(None)

    def pauseProducing(self) -> None:  # noqa: N802
        """Ignore the call: the body was written at once."""

    def resumeProducing(self) -> None:  # noqa: N802
        """Ignore the call: the body was written at once."""

    def stopProducing(self) -> None:  # noqa: N802
        """Ignore the call: the body was written at once."""


class ResponseBeginning(Protocol):
    """Keeps the beginning of a response. ``ended`` fires at the end of it, or of the response.

    A response that breaks off has ended, since its status has decided.

    :param reads_on: read the rest, so that the connection can be kept.
    """

    def __init__(self, most: int, *, reads_on: bool = False) -> None:
        self.ended: Deferred[None] = Deferred()
        self.body = bytearray()
        self._most = most
        self._reads_on = reads_on

    def dataReceived(self, data: bytes) -> None:
        """Keep the first bytes."""
        self.body += data[: self._most - len(self.body)]
        if len(self.body) >= self._most and not self._reads_on:
            self.connectionLost()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Fire ``ended``."""
        if not self.ended.called:
            self.ended.callback(None)


BREAKDOWNS = (RequestTransmissionFailed, ResponseFailed)
"""Errors of Twisted for connections that end early or do not speak HTTP."""

_URL = re.compile(r"https?://[!-~]+", re.ASCII)  # printable, no spaces
_SECONDS = re.compile(r"[0-9]{1,9}", re.ASCII)


class FetchRequest(Struct, frozen=True):
    """A resource to fetch, with the time limit for everything and the size limit of the body."""

    url: str
    accept: str
    max_octets: int
    seconds: float = 9.0
    max_redirects: int = 0


class Fetched(Struct, frozen=True):
    """A response. ``body`` is only read for status 200; ``retry_after`` is in seconds.

    ``served_at`` is the server's time (``Date``), in seconds since 1970. ``media_type`` is in lower
    case and without parameters.
    """

    status: int
    body: bytes = b""
    retry_after: int | None = None
    served_at: float | None = None
    media_type: str = ""

    @property
    def is_redirect(self) -> bool:
        """Whether the response is a redirect."""
        return self.status in REDIRECTS


class GuardedFetcher(Struct, frozen=True, eq=False):
    """Fetches resources with GET."""

    reactor: ProbeReactor
    dialer: GuardedDialer
    trust: TrustRoots

    def fetch(self, request: FetchRequest) -> Deferred[Fetched]:
        """Fetch a resource. If redirects may not be followed, a redirect is the result.

        Cancelling closes the connection.

        :raises FetchFailed: there is no response.
        """

        def too_late(_: object, __: float) -> Fetched:
            raise FetchFailed(FetchProblem.SILENT)

        fetching = Deferred.fromCoroutine(self._fetch(request))
        return fetching.addTimeout(request.seconds, self.reactor, too_late)

    async def _fetch(self, request: FetchRequest) -> Fetched:
        url = check_url(request.url)
        for hops_left in range(request.max_redirects, -1, -1):
            fetched, location = await self._get(url, request)
            if not fetched.is_redirect or not request.max_redirects:
                return fetched
            if hops_left:
                url = follow_redirect(url, location)
        raise FetchFailed(FetchProblem.BAD_REDIRECT)

    async def _get(self, url: str, request: FetchRequest) -> tuple[Fetched, str]:
        """Return the response and its Location."""
        if "[" in urlsplit(url).netloc:  # policies and registries have host names
            raise FetchFailed(FetchProblem.BAD_REDIRECT)
        if url.startswith("https:") and not self.trust:
            raise FetchFailed(FetchProblem.SILENT)  # no authorities to verify it
        connections = WebConnections(
            self.dialer,
            self.trust,
            seconds=request.seconds,
            max_octets=2 * request.max_octets + HEADER_ALLOWANCE,
        )
        reactor: Any = self.reactor
        agent = Agent.usingEndpointFactory(reactor, connections)
        headers = Headers({"Accept": [request.accept], "User-Agent": [USER_AGENT]})
        headers.setRawHeaders("Accept-Encoding", ["identity"])
        body = bytearray()
        try:
            response: IResponse = await agent.request(b"GET", url.encode("ascii"), headers)
            if response.headers.hasHeader("content-encoding"):
                raise FetchFailed(FetchProblem.NO_HTTP)
            if response.code == 200:
                await collect(response, bounded(body, request.max_octets))
        except (DialFailed, *BREAKDOWNS, ValueError) as failure:
            problem = FetchProblem.TOO_LARGE if connections.is_flooded else problem_of(failure)
            raise FetchFailed(problem) from failure
        finally:
            connections.hang_up()
        wait = _header(response, "retry-after")
        retry_after = int(wait) if _SECONDS.fullmatch(wait) else None
        served_at = _moment(_header(response, "date"))
        media_type = _header(response, "content-type").partition(";")[0].strip().lower()
        fetched = Fetched(response.code, bytes(body), retry_after, served_at, media_type)
        return fetched, _header(response, "location")


def _moment(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None


def check_url(url: str, most: int = MAX_URL) -> str:
    """Return the URL if it is valid and has at most ``most`` characters.

    :raises FetchFailed: the URL is invalid, too long or contains credentials.
    """
    try:
        parts = urlsplit(url)
        is_good = bool(parts.hostname) and parts.port != 0 and parts.username is None
    except ValueError:
        is_good = False
    if not is_good or len(url) > most or _URL.fullmatch(url) is None:
        raise FetchFailed(FetchProblem.BAD_REDIRECT)
    return url


def follow_redirect(url: str, location: str) -> str:
    """Return the target URL of a Location header.

    :raises FetchFailed: it is invalid, or leads from https to http.
    """
    try:
        target = check_url(urljoin(url, location))
    except ValueError:
        raise FetchFailed(FetchProblem.BAD_REDIRECT) from None
    if url.startswith("https:") and not target.startswith("https:"):
        raise FetchFailed(FetchProblem.BAD_REDIRECT)
    return target


def bounded(body: bytearray, max_octets: int) -> Callable[[bytes], None]:
    """Return a function that adds data to a body.

    It raises `FetchFailed` when the body becomes too large.
    """

    def take(data: bytes) -> None:
        if len(body) + len(data) > max_octets:
            raise FetchFailed(FetchProblem.TOO_LARGE)
        body.extend(data)

    return take


def _header(response: IResponse, name: str) -> str:
    values: list[bytes] = response.headers.getRawHeaders(name.encode("ascii")) or [b""]
    return values[0].decode("latin-1").strip()


def problem_of(failure: Exception) -> FetchProblem:
    """Return the problem that an error stands for.

    :raises CancelledError: the request was cancelled here.
    """
    if isinstance(failure, HostNotFound | AddressRefused):
        return FetchProblem.NO_HOST
    if isinstance(failure, ConnectionsRefused):
        return FetchProblem.NO_CONNECTION
    if isinstance(failure, DialFailed):
        return FetchProblem.SILENT
    if not isinstance(failure, BREAKDOWNS):
        return FetchProblem.BAD_REDIRECT  # Twisted rejects the URL
    causes = [reason.value for reason in failure.reasons]
    if any(isinstance(cause, CancelledError) for cause in causes):
        raise CancelledError
    if any(_is_about_certificate(cause) for cause in causes):
        return FetchProblem.BAD_CERTIFICATE
    if any(isinstance(cause, SSL.Error) for cause in causes):
        return FetchProblem.NO_CONNECTION
    return FetchProblem.NO_HTTP


def _is_about_certificate(cause: BaseException) -> bool:
    if isinstance(cause, VerificationError):
        return True
    return isinstance(cause, SSL.Error) and "certificate verify failed" in str(cause)
