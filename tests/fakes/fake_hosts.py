"""A test double for mail hosts, registries, policy files and links."""

from collections.abc import Sequence

from twisted.internet.defer import Deferred, succeed

from mailcheck.checks.bimi.evaluate import FileFetch
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.hosts.mta_sts import FetchOutcome, PolicyFetch
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe
from mailcheck.checks.link_checks import Hop, LinkAnswer
from mailcheck.checks.press_unsubscribe import PressAnswer
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.oauth.clients import ClientDocument
from mailcheck.ports.probes import OutboundPort, Relayed, RelayReply
from tests.fakes.clock_and_randomness import TEST_START

TEN_YEARS_AGO = int(TEST_START * 1000) - 3652 * DAY


class FakeHosts:
    """Mail hosts, registries, policy files and links; all are fine unless the test changes them.

    While ``is_held`` is true, the answers of the registry wait for `answer`.
    """

    def __init__(self) -> None:
        self.probed: list[str] = []
        self.outcomes: dict[str, ProbeOutcome] = {}
        self.certificates: dict[str, tuple[str, Instant]] = {}
        self.registrations: dict[str, RegistrationVerdict] = {}
        self.policies: dict[str, PolicyFetch] = {}
        self.logos: dict[str, FileFetch] = {}
        self.clients: dict[str, ClientDocument] = {}
        self.links: dict[str, LinkAnswer] = {}
        self.pressed: dict[str, PressAnswer] = {}
        self.released: list[tuple[str, tuple[str, ...], bytes]] = []
        self.relayed: Relayed | None = None
        self.looked_at: list[tuple[str, str]] = []
        self.registry_questions = 0
        self.is_held = False
        self.is_stalling = False
        self._held: list[tuple[Deferred[RegistrationVerdict], str]] = []

    def probe(self, exchange: str) -> Deferred[StarttlsProbe]:
        """Probe a host as `StarttlsProber` specifies."""
        self.probed.append(exchange)
        if self.is_stalling:
            return Deferred(lambda _: None)
        outcome = self.outcomes.get(exchange, ProbeOutcome.ENCRYPTED)
        if outcome is not ProbeOutcome.ENCRYPTED:
            return succeed(StarttlsProbe(exchange, outcome))
        digest, ends_at = self.certificates.get(exchange, ("", None))
        return succeed(StarttlsProbe(exchange, outcome, "TLSv1.3", True, True, digest, ends_at))

    def outbound_port(self) -> Deferred[OutboundPort]:
        """Return the state of port 25 as `StarttlsProber` specifies."""
        return succeed(OutboundPort.OPEN)

    def find_registration(self, domain: str) -> Deferred[RegistrationVerdict]:
        """Look up a domain as `RegistrationFinder` specifies."""
        self.registry_questions += 1
        answer: Deferred[RegistrationVerdict] = Deferred()
        self._held.append((answer, domain))
        if not self.is_held:
            self.answer()
        return answer

    def answer(self) -> None:
        """Answer all held questions to the registry."""
        held, self._held = self._held, []
        for answer, domain in held:
            found = RegistrationVerdict(domain, Presence.FOUND, Instant(TEN_YEARS_AGO), 3652, ())
            if not answer.called:
                answer.callback(self.registrations.get(domain, found))

    def open(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Fetch a policy as `PolicyFetcher` specifies."""
        return succeed(self.policies.get(domain, PolicyFetch(FetchOutcome.MISSING)))

    def fetch_logo(self, url: str) -> Deferred[FileFetch]:
        """Fetch a logo as `LogoFetcher` specifies."""
        return succeed(self.logos.get(url, FileFetch(FetchOutcome.MISSING)))

    def fetch_certificate(self, url: str) -> Deferred[FileFetch]:
        """Fetch a certificate as `LogoFetcher` specifies."""
        return succeed(self.logos.get(url, FileFetch(FetchOutcome.MISSING)))

    def fetch_client(self, url: str) -> Deferred[ClientDocument]:
        """Fetch a client's document as `ClientDocuments` specifies."""
        self.looked_at.append(("GET", url))
        missing = ClientDocument(problem="its host answered 404")
        return succeed(self.clients.get(url, missing))

    def probe_link(self, url: str, method: str) -> Deferred[LinkAnswer]:
        """Request a link as `LinkProber` specifies."""
        self.looked_at.append((method, url))
        if self.is_stalling:
            return Deferred(lambda _: None)
        usual = LinkAnswer(url, method, (Hop(url, 200),))
        return succeed(self.links.get(url, usual))

    async def send_mail(self, sender: str, recipients: Sequence[str], mail: bytes) -> Relayed:
        """Record a released mail as `MailRelay` specifies; answer with ``relayed``."""
        self.released.append((sender, tuple(recipients), mail))
        replies = tuple(RelayReply(one, 250, "2.1.5 Ok") for one in recipients)
        return self.relayed or Relayed(250, replies=replies)

    def press_unsubscribe(self, url: str) -> Deferred[PressAnswer]:
        """Send an unsubscribe request as `LinkProber` specifies."""
        self.looked_at.append(("POST", url))
        return succeed(self.pressed.get(url, PressAnswer(url, 200)))


class NoPolicies(FakeHosts):
    """Fails every request: no zone here announces an MTA-STS policy."""

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Fail."""
        raise AssertionError(domain)
