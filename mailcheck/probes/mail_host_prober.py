"""Probes mail hosts for STARTTLS: each at most once in ten minutes, for all who ask."""

from collections import Counter
from dataclasses import dataclass

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory

from mailcheck.checks.starttls import ProbeOutcome, StarttlsProbe
from mailcheck.core.instants import MINUTE, SECOND
from mailcheck.core.network_addresses import IpAddress, parse_ip_address
from mailcheck.operations.domains.probe_ports import OutboundPort
from mailcheck.probes.failures import DialFailed, NotConnected
from mailcheck.probes.guarded_dialer import GuardedDialer
from mailcheck.probes.observed_tls import ObservedTls, make_observing_context
from mailcheck.probes.outbound_port import OutboundPortCheck
from mailcheck.probes.reactor import ProbeReactor
from mailcheck.probes.shared_probes import Bounds, SharedProbes
from mailcheck.probes.starttls_conversation import StarttlsConversation
from mailcheck.probes.trust import TrustRoots

FRESHNESS = 10 * MINUTE  # DECISIONS.md section 2; probing is seen, and resented when repeated

MAX_PER_ADDRESS = 30
"""Connections to one address (or IPv6 /64) in that time: anybody can publish a thousand names
that lead to somebody else's mail host, while a provider's customers may well share one."""


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """``helo_name`` is what we call ourselves; times in seconds.

    ``seconds`` is for a whole probe, within the 10 seconds of a check;
    ``connecting`` is how much of it may pass until the connection is there.
    """

    helo_name: str
    port: int = 25
    seconds: float = 9.0
    connecting: float = 5.0


class MailHostProber:
    """The `mailcheck.operations.domains.probe_ports.StarttlsProber` over the guarded dialer."""

    def __init__(
        self,
        reactor: ProbeReactor,
        dialer: GuardedDialer,
        trust: TrustRoots,
        outbound: OutboundPortCheck,
        settings: ProbeSettings,
    ) -> None:
        self._reactor = reactor
        self._dialer = dialer
        self._trust = trust
        self._outbound = outbound
        self._settings = settings
        self._context = make_observing_context(trust)
        self._budget = _AddressBudget(reactor)
        self._conversations: set[StarttlsConversation] = set()
        self._probes: SharedProbes[str, StarttlsProbe] = SharedProbes(
            reactor,
            Bounds(FRESHNESS),
            self._probe,
            is_worth_keeping=lambda probe: probe.outcome is not ProbeOutcome.NOT_PROBED,
            when_busy=lambda exchange: StarttlsProbe(exchange, ProbeOutcome.NOT_PROBED),
        )

    def probe(self, exchange: str) -> Deferred[StarttlsProbe]:
        """Answer as `mailcheck.operations.domains.probe_ports.StarttlsProber` promises."""
        is_blocked = self._outbound.known is OutboundPort.BLOCKED
        if is_blocked and self._probes.remembered(exchange) is None:
            return succeed(StarttlsProbe(exchange, ProbeOutcome.UNREACHABLE))
        return self._probes.get(exchange)

    def outbound_port(self) -> Deferred[OutboundPort]:
        """Answer as `mailcheck.operations.domains.probe_ports.StarttlsProber` promises."""
        return self._outbound.find_out()

    def stop(self) -> None:
        """Give up all probes and hang up on everybody."""
        self._probes.stop()
        self._outbound.stop()
        for conversation in tuple(self._conversations):
            conversation.abort()

    async def _probe(self, exchange: str) -> StarttlsProbe:
        # An address where a name must be is a mistake in the MX, and no host to probe.
        if not self._trust or parse_ip_address(exchange) is not None:
            return StarttlsProbe(exchange, ProbeOutcome.NOT_PROBED)
        tls = ObservedTls(self._context, exchange)
        outcome = await self._talk(exchange, tls)
        if outcome is not ProbeOutcome.ENCRYPTED:
            return StarttlsProbe(exchange, outcome)
        return StarttlsProbe(
            exchange,
            outcome,
            tls_version=tls.version,
            is_certificate_trusted=tls.is_certificate_trusted,
            is_name_matching=tls.is_name_matching,
        )

    async def _talk(self, exchange: str, tls: ObservedTls) -> ProbeOutcome:
        settings = self._settings
        ends_at = self._reactor.seconds() + settings.seconds
        conversation = StarttlsConversation(self._reactor, settings.helo_name, tls)
        try:
            await self._dialer.dial(
                exchange,
                settings.port,
                _OneConversation(conversation, self._conversations),
                seconds=settings.connecting,
                may_use=self._budget.take,
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


class _OneConversation(Factory):
    noisy = False

    def __init__(
        self, conversation: StarttlsConversation, open_ones: set[StarttlsConversation]
    ) -> None:
        self._conversation = conversation
        self._open_ones = open_ones

    def buildProtocol(self, addr: IAddress | None) -> StarttlsConversation:
        """Give the one protocol there is, since one connection is made."""
        self._open_ones.add(self._conversation)
        self._conversation.when_closed.addCallback(self._open_ones.discard)
        return self._conversation


class _AddressBudget:
    """Counts connections to an address in fixed windows of time."""

    def __init__(self, reactor: ProbeReactor) -> None:
        self._reactor = reactor
        self._window = 0.0
        self._used: Counter[tuple[int, int]] = Counter()

    def take(self, address: IpAddress) -> bool:
        """Count a connection; false when there were too many."""
        window = self._reactor.seconds() // (FRESHNESS / SECOND)
        if window != self._window:
            self._window = window
            self._used.clear()
        key = (address.version, int(address) >> (0 if address.version == 4 else 64))
        self._used[key] += 1
        return self._used[key] <= MAX_PER_ADDRESS
