"""Tests of `MemoryZone` beyond the contract that all resolvers share."""

from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import DnsQuestion, DnsStatus
from tests.dns.scripted_network import collect
from tests.fakes.memory_zone import MemoryZone
from tests.table import rows


def ask(zone: MemoryZone, name: str, rdtype: str) -> tuple[DnsStatus, list[str]]:
    """Look up a name; return status and records as text."""
    (answer,) = collect(zone.lookup(DnsQuestion(name, rdtype)))
    return answer.status, [record.to_text() for record in answer.records]


@rows(
    ("v=spf1 -all", '"v=spf1 -all"'),
    ('"a" "b"', '"a" "b"'),
    ('say "hi"; \\', r'"say \"hi\"; \\"'),
    ("ü", r'"\195\188"'),
    ("", '""'),
    ("x" * 256, '"' + "x" * 255 + '" "x"'),
)
def test_memory_zone_text(text: str, published: str) -> None:
    """Plain text is one string, split at 255 octets; quoted text is as in a zone file."""
    zone = MemoryZone({"a.example": {"TXT": [text]}})
    assert ask(zone, "a.example", "TXT") == (DnsStatus.FOUND, [published])


def test_memory_zone_failing() -> None:
    """A name fails for all types or for one type, until the test removes the failure."""
    zone = MemoryZone(
        {"a.example": {"A": ["192.0.2.1"], "TXT": ["here"]}, "b.example": {"A": ["192.0.2.2"]}},
        failing={("a.example", "A"): DnsStatus.SERVFAIL, "b.example": DnsStatus.REFUSED},
    )
    assert ask(zone, "a.example", "A") == (DnsStatus.SERVFAIL, [])
    assert ask(zone, "a.example", "TXT")[0] is DnsStatus.FOUND
    assert ask(zone, "b.example", "A") == (DnsStatus.REFUSED, [])
    assert ask(zone, "b.example", "MX") == (DnsStatus.REFUSED, [])
    zone.failing.clear()
    assert ask(zone, "a.example", "A") == (DnsStatus.FOUND, ["192.0.2.1"])


def test_memory_zone_failing_target() -> None:
    """A CNAME to a failing name fails in the same way."""
    zone = MemoryZone(
        {"www.example": {"CNAME": ["host.example."]}, "host.example": {"A": ["192.0.2.1"]}},
        failing={"host.example": DnsStatus.SERVFAIL},
    )
    assert ask(zone, "www.example", "A") == (DnsStatus.SERVFAIL, [])
    assert ask(zone, "www.example", "CNAME") == (DnsStatus.FOUND, ["host.example."])


def test_memory_zone_silent() -> None:
    """A silent name is never answered; cancelling is recorded."""
    zone = MemoryZone({}, silent=["a.example"])
    lookup = zone.lookup(DnsQuestion("a.example", "A"))
    results = collect(lookup)
    assert results == []
    assert zone.unanswered == [DnsQuestion("a.example", "A")]
    lookup.cancel()
    assert isinstance(results[0], Failure)
    assert isinstance(results[0].value, CancelledError)
    assert zone.unanswered == []


def test_memory_zone_records_questions() -> None:
    """All questions are recorded in order, including failing and silent ones."""
    zone = MemoryZone({}, failing={"b.example": DnsStatus.TIMEOUT}, silent=["c.example"])
    for name in ("a.example", "b.example", "c.example", "a.example"):
        collect(zone.lookup(DnsQuestion(name, "A")))
    assert zone.asked_pairs == [(f"{letter}.example", "A") for letter in "abca"]


def test_memory_zone_publish() -> None:
    """Records can be published, replaced and withdrawn while a test runs."""
    zone = MemoryZone({})
    assert ask(zone, "a.example", "A") == (DnsStatus.NXDOMAIN, [])
    zone.publish("a.example", "A", "192.0.2.1", "192.0.2.2")
    assert ask(zone, "a.example", "A") == (DnsStatus.FOUND, ["192.0.2.1", "192.0.2.2"])
    zone.publish("a.example", "A", "192.0.2.3")
    assert ask(zone, "a.example", "A") == (DnsStatus.FOUND, ["192.0.2.3"])
    zone.publish("a.example", "A")
    assert ask(zone, "a.example", "A") == (DnsStatus.NXDOMAIN, [])


def test_memory_zone_wildcards() -> None:
    """A wildcard covers names that do not exist below its parent, and no others (RFC 4592)."""
    zone = MemoryZone(
        {
            "*.example": {"A": ["192.0.2.1"]},
            "real.example": {"TXT": ["here"]},
            "below.empty.example": {"TXT": ["here"]},
        }
    )
    assert ask(zone, "any.example", "A") == (DnsStatus.FOUND, ["192.0.2.1"])
    assert ask(zone, "a.b.example", "A") == (DnsStatus.FOUND, ["192.0.2.1"])
    assert ask(zone, "real.example", "A") == (DnsStatus.NODATA, [])
    assert ask(zone, "empty.example", "A") == (DnsStatus.NODATA, [])
    assert ask(zone, "other.empty.example", "A") == (DnsStatus.NXDOMAIN, [])
    assert ask(zone, "a.real.example", "A") == (DnsStatus.NXDOMAIN, [])


def test_memory_zone_from_text() -> None:
    """A zone file is parsed as a name server parses it."""
    zone = MemoryZone.from_text(
        "$ORIGIN example.com.\n@ 60 IN MX 10 mx\nmx A 192.0.2.1\n   TXT ( "
        '"a" ; comment\n "b" )\nwww.example.org. CNAME mx\n'
    )
    assert ask(zone, "example.com", "MX") == (DnsStatus.FOUND, ["10 mx.example.com."])
    assert ask(zone, "mx.example.com", "TXT") == (DnsStatus.FOUND, ['"a" "b"'])
    assert ask(zone, "www.example.org", "A") == (DnsStatus.FOUND, ["192.0.2.1"])


def test_memory_zone_authenticated() -> None:
    """A zone may be signed, for code that checks the AD bit."""
    zone = MemoryZone({"a.example": {"A": ["192.0.2.1"]}}, is_authenticated=True)
    (answer,) = collect(zone.lookup(DnsQuestion("a.example", "A")))
    assert answer.is_authenticated
