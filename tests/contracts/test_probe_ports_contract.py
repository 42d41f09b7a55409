"""The contract of probers, finders and fetchers: the double of the tests, and the real ones."""

from collections.abc import Iterator
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred

from mailcheck.checks.bimi.evaluate import FileFetch
from mailcheck.checks.hosts.mta_sts import FetchOutcome, PolicyFetch
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe
from mailcheck.checks.link_checks import LinkAnswer
from mailcheck.checks.press_unsubscribe import PressAnswer
from mailcheck.cluster.local import LocalMemory, LocalRateCounters
from mailcheck.core.domains.domain_names import is_within
from mailcheck.daemon.wall_clock import of_the_system, time_of_day
from mailcheck.ports.probes import OutboundPort
from mailcheck.probes.fetching import GuardedFetcher
from mailcheck.probes.guarded_dialer import GuardedDialer
from mailcheck.probes.link_prober import GuardedLinkProber
from mailcheck.probes.mail_host_prober import MailHostProber, OutboundPortCheck, ProbeSettings
from mailcheck.probes.published_files import BimiFetcher, MtaStsFetcher
from mailcheck.probes.rdap import IANA_URL, RdapFinder, RegistryList
from mailcheck.probes.trust import TrustRoots, find_trust_roots
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.memory_zone import MemoryZone
from tests.probes.scripted_hosts import ScriptedHosts, no_own_address
from tests.servers.certificates import Authority
from tests.table import rows

HOST = "mx.example.com"
NAMES = [HOST, "example.com", "nowhere.example", "127.0.0.1", "x" * 70 + ".com", ""]


class RealProbes:
    """The real ones, in a network that drops every packet."""

    def __init__(self, trust: TrustRoots) -> None:
        self.hosts = ScriptedHosts()
        zone = MemoryZone({HOST: {"A": ["8.8.8.8"]}, "rdap.verisign.com": {"A": ["8.8.4.4"]}})
        dialer = GuardedDialer(self.hosts, zone, is_own_address=no_own_address, allow_private=False)
        fetcher = GuardedFetcher(self.hosts, dialer, trust)
        outbound = OutboundPortCheck(dialer, self.hosts, 25, [HOST])
        settings = ProbeSettings("check.example")
        memory = LocalMemory(self.hosts)
        self.prober = MailHostProber(
            self.hosts, dialer, trust, outbound, settings, memory, LocalRateCounters(), time_of_day
        )
        registries = RegistryList(fetcher, self.hosts, IANA_URL)
        self.finder = RdapFinder(fetcher, registries, memory, of_the_system(self.hosts))
        self.fetcher = MtaStsFetcher(fetcher, self.hosts, memory)
        self.links = GuardedLinkProber(self.hosts, dialer, trust, memory)
        self.probe_link = self.links.probe_link
        self.press_unsubscribe = self.links.press_unsubscribe
        self.probe = self.prober.probe
        self.outbound_port = self.prober.outbound_port
        self.find_registration = self.finder.find_registration
        self.fetch_policy = self.fetcher.fetch_policy
        self.logos = BimiFetcher(fetcher, self.hosts, memory)
        self.fetch_logo = self.logos.fetch_logo
        self.fetch_certificate = self.logos.fetch_certificate

    def settle(self) -> None:
        """Advance the clock past all deadlines."""
        self.hosts.pump([1.0] * 15)

    def stop(self) -> None:
        """Stop everything."""
        for each in (self.prober, self.finder, self.fetcher, self.logos, self.links):
            each.stop()
        assert self.hosts.getDelayedCalls() == []


class DoubledProbes(FakeHosts):
    """The double of the tests."""

    def settle(self) -> None:
        """Answer the held questions."""
        self.answer()

    def stop(self) -> None:
        """Do nothing."""


Probes = RealProbes | DoubledProbes


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> TrustRoots:
    """The certificate authority of the tests."""
    return find_trust_roots(Authority().write_to(tmp_path_factory.mktemp("trust") / "ca.pem"))


@pytest.fixture(params=["double", "real"])
def probes(request: pytest.FixtureRequest, trust: TrustRoots) -> Iterator[Probes]:
    """Each implementation."""
    made: Probes = DoubledProbes() if request.param == "double" else RealProbes(trust)
    yield made
    made.stop()


def settled(probes: Probes, asked: Deferred[Any]) -> Any:
    """Return the result after all deadlines."""
    results: list[Any] = []
    asked.addBoth(results.append)
    probes.settle()
    (result,) = results
    return result


@rows(*NAMES)
def test_a_probe_names_its_host(probes: Probes, name: str) -> None:
    """Any name gets a value with that name, within the deadline."""
    probe = settled(probes, probes.probe(name))
    assert isinstance(probe, StarttlsProbe)
    assert probe.exchange == name
    assert (probe.tls_version != "") == (probe.outcome is ProbeOutcome.ENCRYPTED)


def test_the_state_of_the_port(probes: Probes) -> None:
    """The state of the port can always be queried."""
    assert isinstance(settled(probes, probes.outbound_port()), OutboundPort)


@rows(*NAMES)
def test_a_registration_names_the_domain_or_a_parent(probes: Probes, name: str) -> None:
    """Any name gets a verdict; a date and an age come together."""
    verdict = settled(probes, probes.find_registration(name))
    assert isinstance(verdict, RegistrationVerdict)
    assert is_within(name, verdict.name)
    assert (verdict.age_days is None) == (verdict.registered_at is None)


@rows(*NAMES)
def test_a_policy_has_an_outcome(probes: Probes, name: str) -> None:
    """Any name gets an outcome; only a fetched policy has a text."""
    fetch = settled(probes, probes.fetch_policy(name))
    assert isinstance(fetch, PolicyFetch)
    assert fetch.text == "" or fetch.outcome is FetchOutcome.FETCHED


@rows(*NAMES)
def test_a_logo_has_an_outcome(probes: Probes, name: str) -> None:
    """Any URL gets an outcome; only a fetched file has octets."""
    for fetch_file in (probes.fetch_logo, probes.fetch_certificate):
        fetch = settled(probes, fetch_file(f"https://{name}/logo.svg"))
        assert isinstance(fetch, FileFetch)
        assert fetch.octets == b"" or fetch.outcome is FetchOutcome.FETCHED


@rows(*((f"https://{name}/a", method) for name in NAMES for method in ("HEAD", "GET")))
def test_a_link_has_an_answer(probes: Probes, url: str, method: str) -> None:
    """Any link gets its own value: hops, or the problem that prevented a status."""
    answer = settled(probes, probes.probe_link(url, method))
    assert isinstance(answer, LinkAnswer)
    assert (answer.url, answer.method) == (url, method)
    assert answer.hops or answer.problem is not None


@rows(*(f"https://{name}/a" for name in NAMES))
def test_an_unsubscribe_request_has_an_answer(probes: Probes, url: str) -> None:
    """Any request to unsubscribe ends with a status, or with the problem that prevented one."""
    answer = settled(probes, probes.press_unsubscribe(url))
    assert isinstance(answer, PressAnswer)
    assert answer.url == url
    assert (answer.status is None) is (answer.problem is not None)


def test_cancelling_affects_one_caller(probes: Probes) -> None:
    """Cancelling ends one wait; another caller with the same question still gets the value."""
    if isinstance(probes, DoubledProbes):
        probes.is_held = True
    leaving, staying = (probes.find_registration("example.com") for _ in range(2))
    left: list[Any] = []
    leaving.addErrback(left.append)
    leaving.cancel()
    assert left[0].check(CancelledError)
    assert isinstance(settled(probes, staying), RegistrationVerdict)
