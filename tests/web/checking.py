"""A house whose outside world is written down: DNS, mail hosts and registries."""

from collections.abc import Mapping, Sequence
from typing import Any

from treq.testing import StubTreq
from twisted.internet.defer import Deferred, succeed

from mailcheck.assembly.checks import ChecksAssembly, Resolvers
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.hosts.mta_sts import FetchOutcome, PolicyFetch
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe
from mailcheck.checks.link_checks import Hop, LinkAnswer
from mailcheck.cluster.local import LocalCluster
from mailcheck.config.options import Config
from mailcheck.core.instants import DAY, Instant
from mailcheck.operations.domains.probe_hosts import OutboundPort
from tests.fakes.memory_zone import MemoryZone
from tests.house import START_OF_TIME, House, config_in_memory, counted_bytes

TEN_YEARS_AGO = int(START_OF_TIME * 1000) - 3652 * DAY

KEY_RECORD = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="  # RFC 8463 A.2

GOOD: Mapping[str, Mapping[str, Sequence[str]]] = {
    "good.example": {
        "A": ["8.8.4.1"],
        "MX": ["20 mx2.good.example.", "10 mx1.good.example."],
        "TXT": ["v=spf1 mx -all"],
    },
    "mx1.good.example": {"A": ["8.8.4.10"], "AAAA": ["2001:4860::10"]},
    "mx2.good.example": {"A": ["8.8.4.11"]},
    "_dmarc.good.example": {"TXT": ["v=DMARC1; p=reject; rua=mailto:dmarc@good.example"]},
    "default._domainkey.good.example": {"TXT": [KEY_RECORD]},
    "10.4.8.8.in-addr.arpa": {"PTR": ["mx1.good.example."]},
}
"""A domain that is set up well."""


class KnownHosts:
    """Hosts, registries, policy files and links of a test; everything is well unless it says so.

    ``held`` keeps the registry's answers back until `answer` is called.
    """

    def __init__(self) -> None:
        self.probed: list[str] = []
        self.outcomes: dict[str, ProbeOutcome] = {}
        self.certificates: dict[str, tuple[str, Instant]] = {}
        self.registrations: dict[str, RegistrationVerdict] = {}
        self.policies: dict[str, PolicyFetch] = {}
        self.links: dict[str, LinkAnswer] = {}
        self.looked_at: list[tuple[str, str]] = []
        self.registry_questions = 0
        self.is_held = False
        self.is_stalling = False
        self._held: list[tuple[Deferred[RegistrationVerdict], str]] = []

    def probe(self, exchange: str) -> Deferred[StarttlsProbe]:
        """Answer as `StarttlsProber` promises."""
        self.probed.append(exchange)
        if self.is_stalling:
            return Deferred(lambda _: None)
        outcome = self.outcomes.get(exchange, ProbeOutcome.ENCRYPTED)
        if outcome is not ProbeOutcome.ENCRYPTED:
            return succeed(StarttlsProbe(exchange, outcome))
        digest, ends_at = self.certificates.get(exchange, ("", None))
        return succeed(StarttlsProbe(exchange, outcome, "TLSv1.3", True, True, digest, ends_at))

    def outbound_port(self) -> Deferred[OutboundPort]:
        """Answer as `StarttlsProber` promises."""
        return succeed(OutboundPort.OPEN)

    def find_registration(self, domain: str) -> Deferred[RegistrationVerdict]:
        """Answer as `RegistrationFinder` promises."""
        self.registry_questions += 1
        answer: Deferred[RegistrationVerdict] = Deferred()
        self._held.append((answer, domain))
        if not self.is_held:
            self.answer()
        return answer

    def answer(self) -> None:
        """Let the registry answer."""
        held, self._held = self._held, []
        for answer, domain in held:
            found = RegistrationVerdict(domain, Presence.FOUND, Instant(TEN_YEARS_AGO), 3652, ())
            if not answer.called:
                answer.callback(self.registrations.get(domain, found))

    def open(self) -> None:
        """Nothing has to be made ready."""

    def stop(self) -> None:
        """Nothing is under way."""

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Answer as `PolicyFetcher` promises."""
        return succeed(self.policies.get(domain, PolicyFetch(FetchOutcome.MISSING)))

    def look_at_link(self, url: str, method: str) -> Deferred[LinkAnswer]:
        """Answer as `LinkProber` promises."""
        self.looked_at.append((method, url))
        if self.is_stalling:
            return Deferred(lambda _: None)
        usual = LinkAnswer(url, method, (Hop(url, 200),))
        return succeed(self.links.get(url, usual))


def checking_house(
    zone: MemoryZone, config: Config | None = None, hosts: KnownHosts | None = None
) -> House:
    """Make a house whose checks ask this zone, for lists as well, and these hosts."""
    config = config or config_in_memory()
    house = House(config)
    hosts = hosts or KnownHosts()
    house.assembly.checks = ChecksAssembly(
        config,
        house.clock,
        house.assembly.now,
        counted_bytes(),
        Resolvers(zone, zone, zone),
        hosts,
        LocalCluster(house.clock),
    )
    house.site = house.assembly.site()
    house.stub = StubTreq(house.site.resource)
    house.stub._agent._serverFactory = house.site
    return house


def zone_with(records: Mapping[str, Mapping[str, Sequence[str]]], **options: Any) -> MemoryZone:
    """Give the zone of the good domain with more or other records."""
    return MemoryZone({**GOOD, **records}, **options)
