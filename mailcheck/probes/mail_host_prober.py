"""Probing mail hosts for STARTTLS and their certificate.

Mail servers encrypt without verifying the certificate (RFC 7435), so a bad one must not end the
probe; its problems are recorded instead. For the same reason, obsolete TLS versions and ciphers
are accepted. Only QUIT is ever sent over such a connection.

MAIL and RCPT are never sent, since hosts that test for mailboxes end up on blocklists. A host may
stall, send nonsense or never stop sending. Its replies are read up to `MAX_OCTETS`, judged by their
codes, and never shown to anybody.
"""

import re
from collections.abc import Callable, Sequence
from ipaddress import ip_network
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from msgspec import Struct
from OpenSSL import SSL
from service_identity import CertificateError, VerificationError
from service_identity.cryptography import verify_certificate_hostname
from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed
from twisted.internet.interfaces import (
    IDelayedCall,
    IHandshakeListener,
    IOpenSSLClientConnectionCreator,
    IReactorTime,
    ITLSTransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe
from mailcheck.core.instants import MINUTE, Instant, instant_of
from mailcheck.core.memory.client_limits import Window
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.core.memory.recent import Recent
from mailcheck.core.network_addresses import IpAddress, parse_ip_address
from mailcheck.operations.cached_values import CachedValues
from mailcheck.operations.concurrency import SingleFlight, stop_timer
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import Hit, Memory, RateCounters
from mailcheck.ports.probes import OutboundPort
from mailcheck.probes.cached_probes import CachedProbes
from mailcheck.probes.guarded_dialer import (
    DialFailed,
    GuardedDialer,
    NotConnected,
    ProbeReactor,
    quiet_factory,
)
from mailcheck.probes.trust import TrustRoots

REFERENCE_HOSTS = (
    "gmail-smtp-in.l.google.com",
    "mx01.mail.icloud.com",
    "mta5.am0.yahoodns.net",
)
"""Mail hosts of three operators that are hardly ever down together. They receive only QUIT."""

SMTP_PORT = 25
FRESHNESS = 10 * MINUTE
"""Milliseconds for which a result is cached, since operators notice and dislike repeated probes."""

CONNECT_SECONDS = 5.0
"""Seconds for connecting to a reference host."""


class _QuitProtocol(Protocol):
    """Sends QUIT and closes the connection."""

    def connectionMade(self) -> None:
        """Send QUIT."""
        assert self.transport is not None
        self.transport.write(b"QUIT\r\n")
        self.transport.loseConnection()


class OutboundPortCheck:
    """Determines whether outbound port 25 is open, and caches the result for some minutes.

    :param hosts: reference hosts for port 25. For other ports, and without hosts, the result is
        unknown, since no reference host listens there.
    """

    def __init__(
        self, dialer: GuardedDialer, clock: IReactorTime, port: int, hosts: Sequence[str]
    ) -> None:
        self._dialer = dialer
        self._hosts = tuple(hosts) if port == SMTP_PORT else ()
        self._checks = SingleFlight(self._check)
        self._found: Recent[int, OutboundPort] = Recent(1, FRESHNESS)
        self._clock = clock
        self._port = port

    @property
    def known(self) -> OutboundPort:
        """The cached result."""
        return self._recall() or OutboundPort.UNKNOWN

    def determine(self) -> Deferred[OutboundPort]:
        """Return the cached result, or try the reference hosts."""
        known = self._recall()
        return self._checks.call(self._port) if known is None else succeed(known)

    def suspect(self) -> None:
        """Start a check in the background because a host was unreachable, unless one is cached."""
        self.determine().addErrback(lambda failure: failure.trap(CancelledError))

    def note_connection(self) -> None:
        """Record that a host was reached."""
        self._note(OutboundPort.OPEN)

    def stop(self) -> None:
        """Cancel a running check."""
        self._checks.stop()

    async def _check(self, port: int) -> OutboundPort:
        tries = [Deferred.fromCoroutine(self._try(host, port)) for host in self._hosts]
        ends: list[tuple[bool, Any]] = await DeferredList(tries, consumeErrors=True)
        for is_result, end in ends:
            if not is_result:
                end.raiseException()
        found = _judge([outcome for _, outcome in ends])
        self._note(found)
        return found

    def _recall(self) -> OutboundPort | None:
        return self._found.get(self._port, instant_of(self._clock.seconds()))

    def _note(self, found: OutboundPort) -> None:
        self._found.put(self._port, found, instant_of(self._clock.seconds()))

    async def _try(self, host: str, port: int) -> OutboundPort:
        try:
            await self._dialer.dial(
                host, port, quiet_factory(_QuitProtocol), seconds=CONNECT_SECONDS
            )
        except NotConnected:
            return OutboundPort.BLOCKED
        except DialFailed:
            return OutboundPort.UNKNOWN
        return OutboundPort.OPEN


def _judge(outcomes: Sequence[OutboundPort]) -> OutboundPort:
    if OutboundPort.OPEN in outcomes:
        return OutboundPort.OPEN
    is_blocked = bool(outcomes) and OutboundPort.UNKNOWN not in outcomes
    return OutboundPort.BLOCKED if is_blocked else OutboundPort.UNKNOWN


CIPHERS = b"ALL:!aNULL:!eNULL:@SECLEVEL=0"
"""All ciphers that authenticate and encrypt. Level 0 allows TLS 1.0 and short keys."""

_LEGACY_SERVER_CONNECT = 0x4  # SSL_OP_LEGACY_SERVER_CONNECT: servers without RFC 5746

# Errors of service-identity and cryptography about certificates that do not match or are broken.
_MISFITS = (
    CertificateError,
    VerificationError,
    ValueError,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)


def make_observing_context(trust: TrustRoots) -> SSL.Context:
    """Return the TLS context for all probes."""
    context = SSL.Context(SSL.TLS_METHOD)
    context.set_min_proto_version(SSL.TLS1_VERSION)
    context.set_cipher_list(CIPHERS)
    context.set_options(_LEGACY_SERVER_CONNECT)
    trust.add_to(context)
    return context


@implementer(IOpenSSLClientConnectionCreator)
class ObservedTls:
    """One TLS handshake. Its results are available once it is complete."""

    def __init__(self, context: SSL.Context, host: str) -> None:
        self._context = context
        self._host = host
        self._connection: SSL.Connection | None = None
        self.is_certificate_trusted = True

    def clientConnectionForTLS(self, _: TLSMemoryBIOProtocol) -> SSL.Connection:  # noqa: N802
        """Return the connection, as Twisted requires."""
        connection = SSL.Connection(self._context, None)
        connection.set_tlsext_host_name(self._host.encode("ascii"))
        connection.set_verify(SSL.VERIFY_PEER, self._note)
        self._connection = connection
        return connection

    @property
    def version(self) -> str:
        """The negotiated version as OpenSSL spells it, such as ``TLSv1.3``."""
        return "" if self._connection is None else self._connection.get_protocol_version_name()

    @property
    def is_name_matching(self) -> bool:
        """Whether the certificate matches the host's name (RFC 6125)."""
        try:
            certificate = self._certificate()
            if certificate is None:
                return False
            verify_certificate_hostname(certificate, self._host)
        except _MISFITS:
            return False
        return True

    @property
    def digest_and_end(self) -> tuple[str, Instant | None]:
        """The SHA-256 digest of the certificate in hexadecimal, and its expiry."""
        try:
            certificate = self._certificate()
            if certificate is None:
                return "", None
            ends_at = instant_of(certificate.not_valid_after_utc.timestamp())
            return certificate.fingerprint(SHA256()).hex(), ends_at
        except _MISFITS:
            return "", None

    def _certificate(self) -> x509.Certificate | None:
        if self._connection is None:
            return None
        return self._connection.get_peer_certificate(as_cryptography=True)

    def _note(self, *verdict: object) -> bool:
        """Record OpenSSL's verdict about a certificate of the chain, and continue anyway."""
        self.is_certificate_trusted = self.is_certificate_trusted and bool(verdict[-1])
        return True


MAX_OCTETS = 65_536
"""Maximum number of octets from a host before encryption. A long EHLO reply has a thousand."""

CLOSING_GRACE = 2.0
"""Seconds that a host has to answer QUIT before the connection is aborted."""

READY = 220
DONE = 250
UNKNOWN_COMMANDS = (500, 502)  # to EHLO: SMTP without extensions, RFC 5321 3.2
TLS_FAILED = (454, 500, 501, 502, 503, 504, 530, 550, 554)
"""Replies to STARTTLS that mean that TLS does not work; other codes may be temporary."""

_REPLY_LINE = re.compile(rb"([2-5][0-9][0-9])(?:([ -])([^\r]*))?\r?", re.ASCII)
_KEYWORD = re.compile(rb"STARTTLS\s*", re.IGNORECASE)


@implementer(IHandshakeListener)
class StarttlsConversation(Protocol):
    """One probe of a host. ``outcome`` fires once, at the end or when the connection is closed."""

    transport: ITLSTransport

    def __init__(self, clock: IReactorTime, helo_name: str, tls: ObservedTls) -> None:
        self._clock = clock
        self._helo_name = helo_name
        self._tls = tls
        self._take_reply: Callable[[int, list[bytes]], None] = self._take_greeting
        self._unread = b""
        self._lines: list[bytes] = []
        self._octets = 0
        self._is_encrypting = False
        self._hang_up: IDelayedCall | None = None
        self.is_over = False
        self.outcome: Deferred[ProbeOutcome] = Deferred(lambda _: self._end())
        self.when_closed: Deferred[StarttlsConversation] = Deferred()

    def dataReceived(self, data: bytes) -> None:
        """Handle replies, one at a time."""
        self._octets += len(data)
        if self.is_over:
            return
        if self._octets > MAX_OCTETS:
            self._conclude(ProbeOutcome.NO_SMTP)
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for number, line in enumerate(lines, 1):
            reply = _REPLY_LINE.fullmatch(line)
            if reply is None:
                self._conclude(ProbeOutcome.NO_SMTP)
                return
            self._lines.append(reply[3] or b"")
            if reply[2] != b"-":
                # Data after a complete reply was sent out of turn, or injected by an attacker to be
                # read as if it were encrypted.
                if number < len(lines) or self._unread:
                    self._conclude(ProbeOutcome.NO_SMTP)
                    return
                said, self._lines = self._lines, []
                self._take_reply(int(reply[1]), said)

    def handshakeCompleted(self) -> None:
        """Handle the completed TLS handshake."""
        self._conclude(ProbeOutcome.ENCRYPTED)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Handle the end of the connection, which may be a failed handshake."""
        stop_timer(self._hang_up)
        self._tell(ProbeOutcome.HANDSHAKE_FAILED if self._is_encrypting else ProbeOutcome.NO_SMTP)
        self.when_closed.callback(self)

    def abort(self) -> None:
        """Abort the connection."""
        self.transport.abortConnection()

    def _take_greeting(self, code: int, _: list[bytes]) -> None:
        if code == READY:
            self._take_reply = self._take_extensions
            self.transport.write(b"EHLO " + self._helo_name.encode("ascii") + b"\r\n")
        else:
            self._conclude(ProbeOutcome.REJECTED if code >= 400 else ProbeOutcome.NO_SMTP)

    def _take_extensions(self, code: int, lines: list[bytes]) -> None:
        if code == DONE and any(_KEYWORD.fullmatch(line) for line in lines[1:]):
            self._take_reply = self._take_readiness
            self.transport.write(b"STARTTLS\r\n")
        elif code == DONE or code in UNKNOWN_COMMANDS:
            self._conclude(ProbeOutcome.NOT_OFFERED)
        else:
            self._conclude(ProbeOutcome.REJECTED if code >= 400 else ProbeOutcome.NO_SMTP)

    def _take_readiness(self, code: int, _: list[bytes]) -> None:
        if code == READY:
            self._is_encrypting = True
            self.transport.startTLS(self._tls)
        elif code in TLS_FAILED:
            self._conclude(ProbeOutcome.HANDSHAKE_FAILED)
        else:
            self._conclude(ProbeOutcome.REJECTED if code >= 400 else ProbeOutcome.NO_SMTP)

    def _conclude(self, outcome: ProbeOutcome) -> None:
        self._tell(outcome)
        if outcome is ProbeOutcome.NO_SMTP:
            self.abort()
        else:
            self.transport.write(b"QUIT\r\n")
            self.transport.loseConnection()
            self._hang_up = self._clock.callLater(CLOSING_GRACE, self.abort)

    def _tell(self, outcome: ProbeOutcome) -> None:
        if not self.is_over:
            self.is_over = True
            self.outcome.callback(outcome)

    def _end(self) -> None:
        """Abandon the probe."""
        self.is_over = True
        self.abort()


WINDOW = Window("probes", FRESHNESS)

MAX_PER_ADDRESS = 30
"""Maximum number of connections to one address (IPv6: /64) in `WINDOW`. An attacker can
publish a thousand names for a foreign mail host, while customers of a provider share one."""


class ProbeSettings(Struct, frozen=True):
    """Settings of probes. ``helo_name`` is the name of this server; times are in seconds.

    ``seconds`` limits a whole probe, within the 10 seconds of a check. ``connecting`` limits the
    time until it is connected.
    """

    helo_name: str
    port: int = 25
    seconds: float = 9.0
    connecting: float = 5.0


class MailHostProber:
    """Implements `mailcheck.ports.probes.StarttlsProber` with the guarded dialer."""

    def __init__(
        self,
        reactor: ProbeReactor,
        dialer: GuardedDialer,
        trust: TrustRoots,
        outbound: OutboundPortCheck,
        settings: ProbeSettings,
        memory: Memory,
        counters: RateCounters,
        now: Now,
    ) -> None:
        self._reactor = reactor
        self._dialer = dialer
        self._trust = trust
        self._outbound = outbound
        self._settings = settings
        self._context = make_observing_context(trust)
        self._budget = _AddressBudget(counters, now)
        self._conversations: set[StarttlsConversation] = set()
        self._probes: CachedProbes[StarttlsProbe] = CachedProbes(
            reactor,
            CachedValues(memory, "probe", StarttlsProbe),
            self._probe,
            freshness=FRESHNESS,
            is_kept=lambda probe: probe.outcome is not ProbeOutcome.NOT_PROBED,
            # An unreachable host may be reachable for a daemon in another network.
            is_for_all=lambda probe: probe.outcome is not ProbeOutcome.UNREACHABLE,
            when_busy=lambda exchange: StarttlsProbe(exchange, ProbeOutcome.NOT_PROBED),
        )

    def probe(self, exchange: str) -> Deferred[StarttlsProbe]:
        """Probe a host as `mailcheck.ports.probes.StarttlsProber` specifies."""
        if self._outbound.known is OutboundPort.BLOCKED:
            return Deferred.fromCoroutine(self._recall(exchange))
        return self._probes.get(exchange)

    def outbound_port(self) -> Deferred[OutboundPort]:
        """Check the port as `mailcheck.ports.probes.StarttlsProber` specifies."""
        return self._outbound.determine()

    def stop(self) -> None:
        """Cancel all probes and close their connections."""
        self._probes.stop()
        self._outbound.stop()
        for conversation in tuple(self._conversations):
            conversation.abort()

    async def _recall(self, exchange: str) -> StarttlsProbe:
        found = await self._probes.cached(exchange)
        return found or StarttlsProbe(exchange, ProbeOutcome.UNREACHABLE)

    async def _probe(self, exchange: str) -> StarttlsProbe:
        # An address instead of a name is an error in the MX record, and not a host to probe.
        if not self._trust or parse_ip_address(exchange) is not None:
            return StarttlsProbe(exchange, ProbeOutcome.NOT_PROBED)
        tls = ObservedTls(self._context, exchange)
        outcome = await self._talk(exchange, tls)
        if outcome is not ProbeOutcome.ENCRYPTED:
            return StarttlsProbe(exchange, outcome)
        digest, ends_at = tls.digest_and_end
        return StarttlsProbe(
            exchange,
            outcome,
            tls_version=tls.version,
            is_certificate_trusted=tls.is_certificate_trusted,
            is_name_matching=tls.is_name_matching,
            certificate_digest=digest,
            certificate_ends_at=ends_at,
        )

    async def _talk(self, exchange: str, tls: ObservedTls) -> ProbeOutcome:
        settings = self._settings
        ends_at = self._reactor.seconds() + settings.seconds
        conversation = StarttlsConversation(self._reactor, settings.helo_name, tls)

        def begin() -> StarttlsConversation:
            self._conversations.add(conversation)
            conversation.when_closed.addCallback(self._conversations.discard)
            return conversation

        try:
            await self._dialer.dial(
                exchange,
                settings.port,
                quiet_factory(begin),
                seconds=settings.connecting,
                may_use=self._budget.within,
            )
        except NotConnected:
            self._outbound.suspect()
            return ProbeOutcome.UNREACHABLE
        except DialFailed:
            return ProbeOutcome.NOT_PROBED
        self._outbound.note_connection()
        remaining = max(0.0, ends_at - self._reactor.seconds())
        return await conversation.outcome.addTimeout(
            remaining, self._reactor, lambda *_: ProbeOutcome.NO_SMTP
        )


class _AddressBudget(Struct, frozen=True, eq=False):
    """Counts connections per address in fixed time windows."""

    counters: RateCounters
    now: Now

    async def within(self, addresses: Sequence[IpAddress]) -> Sequence[IpAddress]:
        """Count a connection to each address, and return those within the limit."""
        windows = ((WINDOW, WINDOW.index(self.now()), MAX_PER_ADDRESS),)
        counts = await self.counters.hit(
            *(Hit(_subject(address), windows) for address in addresses)
        )
        return [
            address
            for address, (count,) in zip(addresses, counts, strict=True)
            if count <= MAX_PER_ADDRESS
        ]


def _subject(address: IpAddress) -> Key:
    network = ip_network((address, 32 if address.version == 4 else 64), strict=False)
    return key_of("probed", str(network))
