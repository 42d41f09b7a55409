"""Tests for the self-test of a blocklist."""

from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.dnsbl.catalogue import TargetKind, packaged_catalogue_text, parse_catalogue
from mailcheck.checks.dnsbl.health import HealthStatus, ZoneHealth, evaluate_health
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

CATALOGUE = parse_catalogue(packaged_catalogue_text())
NONCE = 0x123456

# The test points of RFC 5782 5, as names before the zone.
LISTED = "2.0.0.127"
UNLISTED = "1.0.0.127"
RANDOM = "86.52.146.127"  # 127.128.0.0/9 with the nonce
IPV6_TAIL = ".0.0.f.7.f.f.f.f" + 20 * ".0"
LISTED_V6 = "2.0.0.0" + IPV6_TAIL

HEALTHY, UNHEALTHY, UNREACHABLE = (
    HealthStatus.HEALTHY,
    HealthStatus.UNHEALTHY,
    HealthStatus.UNREACHABLE,
)


def examine(
    zone: str, records: dict[str, str], failing: tuple[str, ...] = ()
) -> dict[TargetKind, ZoneHealth]:
    """Self-test a list whose zone has these names; some names have no answer."""
    blocklist = next(b for b in CATALOGUE.blocklists if b.zone == zone)
    dns = MemoryZone(
        {f"{name}.{zone}": {"A": [code]} for name, code in records.items()},
        failing={f"{name}.{zone}": DnsStatus.TIMEOUT for name in failing},
    )
    health = settle(dns, lambda answers: evaluate_health(blocklist, answers, NONCE))
    return {one.kind: one for one in health}


@rows(
    ("psbl.surriel.com", {LISTED: "127.0.0.2"}, HEALTHY, ""),
    ("bl.suomispam.net", {LISTED: "127.0.0.99"}, HEALTHY, ""),
    ("dnsbl.dronebl.org", {LISTED: "127.0.0.2"}, HEALTHY, ""),
    ("psbl.surriel.com", {}, UNHEALTHY, "test entry is missing"),
    ("psbl.surriel.com", {"*": "127.0.0.2"}, UNHEALTHY, "answers everything"),
    ("psbl.surriel.com", {"*": "203.0.113.1"}, UNHEALTHY, "expired, or the resolver rewrites"),
    ("psbl.surriel.com", {"*": "127.255.255.254"}, UNHEALTHY, "refuses"),
    ("psbl.surriel.com", {LISTED: "127.255.255.254"}, UNHEALTHY, "refuses"),
    ("psbl.surriel.com", {LISTED: "203.0.113.1"}, UNHEALTHY, "expired"),
    ("psbl.surriel.com", {LISTED: "127.0.0.2", UNLISTED: "127.0.0.2"}, UNHEALTHY, "everything"),
    ("psbl.surriel.com", {LISTED: "127.0.0.2", RANDOM: "127.0.0.2"}, UNHEALTHY, "everything"),
)
def test_a_healthy_list_has_its_test_entries_only(
    zone: str, records: dict[str, str], status: HealthStatus, reason: str
) -> None:
    """Empty, expired, refusing and wildcard zones are unhealthy, with the reason."""
    health = examine(zone, records)[TargetKind.IPV4]
    assert health.status is status
    assert reason in health.reason


def test_exceptions_are_kept() -> None:
    """Hostkarma lists 127.0.0.1 by design, and some lists have no test entry."""
    karma = examine("hostkarma.junkemailfilter.com", {LISTED: "127.0.0.2", UNLISTED: "127.0.0.1"})
    assert karma[TargetKind.IPV4].status is HEALTHY
    assert examine("uribl.swinog.ch", {})[TargetKind.DOMAIN].status is HEALTHY
    wild = examine("uribl.swinog.ch", {"*": "127.0.0.2"})[TargetKind.DOMAIN]
    assert wild.status is UNHEALTHY


def test_names_have_their_own_test_points() -> None:
    """Name lists are tested with their documented names."""
    assert (
        examine("dbl.spamhaus.org", {"dbltest.com": "127.0.1.2"})[TargetKind.DOMAIN].status
        is HEALTHY
    )
    assert (
        examine("multi.uribl.com", {"test.uribl.com": "127.0.0.14"})[TargetKind.DOMAIN].status
        is HEALTHY
    )
    refusing = examine("multi.uribl.com", {"*": "127.0.0.1"})[TargetKind.DOMAIN]
    assert (refusing.status, "refuses" in refusing.reason) == (UNHEALTHY, True)


def test_kinds_are_tested_separately() -> None:
    """A list that is empty for IPv6 is still trusted for IPv4."""
    health = examine("zen.spamhaus.org", {LISTED: "127.0.0.2"})
    assert health[TargetKind.IPV4].status is HEALTHY
    assert health[TargetKind.IPV6].status is UNHEALTHY
    both = examine("zen.spamhaus.org", {LISTED: "127.0.0.2", LISTED_V6: "127.0.0.2"})
    assert {one.status for one in both.values()} == {HEALTHY}


@rows(LISTED, UNLISTED, RANDOM)
def test_a_list_without_an_answer_is_not_unhealthy(silent: str) -> None:
    """Without an answer, the health is unknown."""
    records = {} if silent == LISTED else {LISTED: "127.0.0.2"}
    health = examine("psbl.surriel.com", records, failing=(silent,))
    assert health[TargetKind.IPV4].status is UNREACHABLE


def test_a_wildcard_is_unhealthy_even_without_other_answers() -> None:
    """A wildcard is proven even if a test entry has no answer."""
    health = examine("psbl.surriel.com", {"*": "127.0.0.2"}, failing=(LISTED,))
    assert health[TargetKind.IPV4].status is UNHEALTHY
