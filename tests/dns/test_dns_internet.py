"""A resolver without the Internet states no facts about names."""

from collections.abc import Mapping, Sequence

from twisted.internet.task import Clock

from mailcheck.assembly.checks import open_resolvers
from mailcheck.checks.dns_answers import Answers, DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.checks.findings import Severity
from mailcheck.checks.hosts.mx import evaluate_mx
from mailcheck.config.options import BlocklistOptions, Config, DnsOptions
from mailcheck.dns.internet import DENIED_FOR, InternetResolver
from tests.fakes.clock_and_randomness import repeatable_bytes
from tests.fakes.memory_zone import MemoryZone
from tests.table import rows

LOCAL = {"shop.test": {"A": ["192.0.2.1"]}}
ROOT = {".": {"NS": ["a.root.example."]}}
OF_ROOT = DnsQuestion("", "NS")


def status(resolver: InternetResolver, name: str, rdtype: str = "A") -> DnsStatus:
    """Return the status of an answer."""
    return ask(resolver, DnsQuestion(name, rdtype)).status


def ask(resolver: InternetResolver, question: DnsQuestion) -> DnsAnswer:
    """Return an answer."""
    answers: list[DnsAnswer] = []
    resolver.lookup(question).addCallback(answers.append)
    return answers[0]


@rows(
    (LOCAL, DnsStatus.NO_INTERNET, DnsStatus.NO_INTERNET),
    ({**LOCAL, **ROOT}, DnsStatus.NXDOMAIN, DnsStatus.NODATA),
)
def test_denials(
    zone: Mapping[str, Mapping[str, Sequence[str]]], name: DnsStatus, rdtype: DnsStatus
) -> None:
    """Names and types are denied only by a resolver that knows the root; records are always found.

    The root is looked up once.
    """
    memory = MemoryZone(zone)
    resolver = InternetResolver(memory, Clock())
    assert status(resolver, "shop.test") is DnsStatus.FOUND
    assert OF_ROOT not in memory.asked
    for _ in range(2):
        assert status(resolver, "example.com") is name
        assert status(resolver, "shop.test", "MX") is rdtype
    assert memory.asked.count(OF_ROOT) == 1


def test_a_resolver_that_refuses_the_question() -> None:
    """Without an answer about the root, the denials of a resolver count."""
    memory = MemoryZone(LOCAL, failing={("", "NS"): DnsStatus.REFUSED})
    assert status(InternetResolver(memory, Clock()), "example.com") is DnsStatus.NXDOMAIN


def test_the_internet_comes_back() -> None:
    """A network that is there again is noticed within seconds."""
    clock, memory = Clock(), MemoryZone(LOCAL)
    resolver = InternetResolver(memory, clock)
    assert status(resolver, "example.com") is DnsStatus.NO_INTERNET
    assert resolver.is_closed
    memory.publish(".", "NS", "a.root.example.")
    clock.advance(DENIED_FOR)
    assert status(resolver, "example.com") is DnsStatus.NXDOMAIN
    assert not resolver.is_closed


def test_the_finding_of_a_domain() -> None:
    """The check of a domain says what the doctor says, and not that the domain does not exist."""
    resolver, answers = InternetResolver(MemoryZone(LOCAL), Clock()), Answers()
    evaluate_mx("example.com", answers)
    for question in answers.missing:
        answers.known[question] = ask(resolver, question)
    verdict = evaluate_mx("example.com", answers)
    (finding,) = verdict.findings
    assert (finding.severity, verdict.exists) == (Severity.UNDETERMINED, True)
    assert "does not find the name servers of the root zone" in finding.meaning
    assert "Set [dns] resolvers" in finding.fix


@rows(((), (), True), (("192.0.2.53",), (), False), ((), ("192.0.2.53",), True))
def test_resolvers_of_the_operator(
    dns: tuple[str, ...], lists: tuple[str, ...], is_judged: bool
) -> None:
    """A resolver that the operator names may be one without the Internet."""
    config = Config(dns=DnsOptions(dns), blocklists=BlocklistOptions(lists))
    resolvers = open_resolvers(config, Clock(), repeatable_bytes())
    assert (resolvers.internet is not None) is is_judged
    assert isinstance(resolvers.fresh_lists, InternetResolver) is (is_judged and not lists)
