"""Connections of mail servers and mail programs: PROXY header, TLS, limits, and the greeting."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from msgspec import Struct
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IOpenSSLContextFactory, IReactorTime
from twisted.internet.protocol import Factory, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.connections.counting import OpenConnections, Rejection
from mailcheck.connections.policies import (
    AuthWithoutTls,
    TlsPolicy,
    client_ip_of,
    is_in_networks,
    offer_no_tls,
)
from mailcheck.connections.proxy_header import ProxyHeaderReader
from mailcheck.connections.receive_path import LineLimits, ReceivePath
from mailcheck.connections.sasl import ResponseReader
from mailcheck.core.memory.client_limits import ConnectionLimits
from mailcheck.core.network_addresses import IpNetwork

PROXY_HEADER_SECONDS = 5.0
"""Seconds. A proxy sends the header at once; HAProxy's document asks for at least 3 s, one
retransmission."""


class ServerSettings(Protocol):
    """The settings that the ports of all protocols have. `PortSettings` explains them."""

    @property
    def lines(self) -> LineLimits:
        """The limits of a connection."""

    @property
    def connections(self) -> ConnectionLimits:
        """The limits of the number of connections."""

    @property
    def proxy_protocol_from(self) -> tuple[IpNetwork, ...]:
        """Networks whose hosts send a PROXY header."""


class PortSettings(Struct, frozen=True):
    """The settings of one port for mail programs.

    ``host_name`` is sent in the greeting. With ``is_tls``, connections begin with TLS. Hosts of
    ``proxy_protocol_from`` must send a PROXY header first.
    """

    host_name: str
    lines: LineLimits
    connections: ConnectionLimits
    tls_for: TlsPolicy = offer_no_tls
    is_tls: bool = False
    auth_without_tls: AuthWithoutTls = AuthWithoutTls.PRIVATE
    proxy_protocol_from: tuple[IpNetwork, ...] = ()
    errors: int = 20
    auth_failures: int = 3


Settings = TypeVar("Settings", bound=ServerSettings)


class ServerConnection(ReceivePath):
    """A connection that is counted. ``client_ip`` is the address of the client."""

    log = Logger()

    def __init__(
        self, settings: ServerSettings, clock: IReactorTime, open_connections: OpenConnections[Any]
    ) -> None:
        super().__init__(settings.lines, clock)
        self.settings = settings
        self.client_ip = ""
        self._open = open_connections
        self._errors = 0

    @abstractmethod
    def begin(self) -> None:
        """Greet or reject the client, whose address is known."""

    # Methods that Twisted calls.

    def connectionMade(self) -> None:
        """Greet the client, after the PROXY header and the TLS handshake."""
        super().connectionMade()
        assert self.transport is not None
        self.client_ip = client_ip_of(getattr(self.transport.getPeer(), "host", ""))
        if is_in_networks(self.client_ip, self.settings.proxy_protocol_from):
            header = ProxyHeaderReader()
            self._watchdog.watch(PROXY_HEADER_SECONDS)
            deadline = self.clock.seconds() + PROXY_HEADER_SECONDS
            self.read(header, deadline, partial(self._trust_proxy_header, header))
        else:
            self.begin()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Release everything."""
        super().connectionLost(reason)
        self._open.remove(self)

    def _trust_proxy_header(self, header: ProxyHeaderReader) -> None:
        if header.problem is not None:
            self.log.warn(
                "PROXY header from {proxy_ip}: {problem}",
                proxy_ip=self.client_ip,
                problem=header.problem,
            )
            self.abort()
            return
        if header.client_ip is not None:
            self.client_ip = client_ip_of(header.client_ip)
        self.await_first_command()
        self.begin()

    # Methods for commands.

    def note_activity(self) -> None:
        """Record a command, for the order in which idle connections are closed."""
        self._open.note_activity(self)

    def ask(self, challenge: bytes, seconds: float, take: Callable[[bytes | None], None]) -> None:
        """Send a challenge of SASL.

        ``take`` gets the line with which the client responds; `None`: it is too long.
        """
        reader = ResponseReader()
        self.read(reader, self.clock.seconds() + seconds, lambda: take(reader.line))
        self.reply(challenge)

    def log_failure(self, failure: Failure) -> None:
        """Log an unexpected failure."""
        self.log.failure("Failure while serving {client_ip}", failure, client_ip=self.client_ip)


class ServedConnection(ServerConnection):
    """A connection of a mail program.

    ``is_tls``: whether TLS is in use. ``rejections`` are the replies to clients that are not
    admitted.
    """

    settings: PortSettings
    rejections: ClassVar[Mapping[Rejection, bytes]]
    idle_too_long: ClassVar[bytes]
    is_tls = False

    def __repr__(self) -> str:
        """Return the client and its state, for the shell inside the daemon."""
        tls = " with TLS" if self.is_tls else ""
        return f"<{type(self).__name__} of {self.client_ip or 'a proxy'}{tls}: {self.state}>"

    @property
    @abstractmethod
    def state(self) -> str:
        """The account and the current activity of the client, for operators."""

    @abstractmethod
    def greet(self) -> None:
        """Greet an admitted client."""

    def begin(self) -> None:
        """Greet or reject the client, after the TLS handshake."""
        certificate = self.settings.tls_for(self.client_ip) if self.settings.is_tls else None
        if certificate is not None:
            self.start_tls(certificate)
        rejection = self._open.admit(self, self.client_ip)
        if rejection is not None:
            self.close_with(self.rejections[rejection])
        else:
            self.greet()

    # Methods for commands.

    def start_tls(self, certificate: IOpenSSLContextFactory) -> None:
        """Start TLS, after the queued replies."""
        self.is_tls = True
        super().start_tls(certificate)

    @property
    def may_log_in(self) -> bool:
        """Whether a password may be sent over this connection."""
        return self.is_tls or self.settings.auth_without_tls.allows(self.client_ip)

    @property
    def certificate(self) -> IOpenSSLContextFactory | None:
        """The certificate for starting TLS; `None` if it is not offered or already in use."""
        return None if self.is_tls else self.settings.tls_for(self.client_ip)

    def reject(self, line: bytes) -> None:
        """Reply to an invalid command; close the connection after too many of them."""
        self._errors += 1
        if self._errors >= self.settings.errors:
            self.half_close_with(line)
        else:
            self.reply(line)

    # Methods of `LimitedConnection`.

    @property
    def is_displaceable(self) -> bool:
        """Whether the connection may be closed for another client."""
        return self.is_idle

    def displace(self) -> None:
        """Close the connection for another client."""
        self.close_with(self.idle_too_long)


class CountingFactory(Factory):
    """Creates the connections of one port and limits their number.

    To stop, close the port and then call `drain`.
    """

    noisy = False

    def __init__(self, limits: ConnectionLimits, clock: IReactorTime) -> None:
        self.clock = clock
        self.open: OpenConnections[Any] = OpenConnections(limits, clock)

    @abstractmethod
    def make(self) -> Any:
        """Return a new connection."""

    @property
    def connection_count(self) -> int:
        """Number of connected clients."""
        return len(self.open)

    @property
    def is_crowded(self) -> bool:
        """Whether the next connection cannot even be rejected."""
        return self.open.is_crowded

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Return the protocol of a new connection."""
        connection = self.make()
        connection.factory = self
        self.open.add(connection)
        return connection

    def drain(self, grace: float) -> Deferred[None]:
        """Close all connections; those left after ``grace`` seconds are aborted."""
        return self.open.drain(grace)


class ServerFactory(CountingFactory, Generic[Settings]):
    """Creates the connections of a port with settings."""

    def __init__(self, settings: Settings, clock: IReactorTime) -> None:
        super().__init__(settings.connections, clock)
        self.settings = settings

    def change(self, settings: Settings) -> None:
        """Use other settings for new connections."""
        self.settings = settings
        self.open.limits = settings.connections
