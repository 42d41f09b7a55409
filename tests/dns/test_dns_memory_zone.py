"""Tests of `MemoryZone` beyond the contract that all resolvers share."""

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
