"""Tests for the reverse DNS of sending addresses."""

from ipaddress import ip_address

from mailcheck.checks.dns_answers import DnsStatus, Presence
from mailcheck.checks.hosts.reverse_dns import (
    MAX_NAMES,
    ReverseDnsVerdict,
    evaluate_reverse_dns,
    is_generic_name,
)
from tests.checks.verdicts import ids
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

REVERSE = "1.2.0.192.in-addr.arpa"
GOOD = {REVERSE: {"PTR": ["mail.example."]}, "mail.example": {"A": ["192.0.2.1"]}}


def judge(
    zone: MemoryZone, address: str = "192.0.2.1", host_name: str = "mx.d.example"
) -> ReverseDnsVerdict:
    """Evaluate an address in a zone."""
    parsed = ip_address(address)
    return settle(zone, lambda answers: evaluate_reverse_dns(parsed, answers, host_name=host_name))


def test_a_name_that_leads_back_is_confirmed() -> None:
    """A name of the PTR record that resolves to the address is validated."""
    verdict = judge(MemoryZone(GOOD))
    assert (verdict.presence, verdict.is_confirmed) == (Presence.FOUND, True)
    assert (verdict.validated_names, verdict.host_name) == (("mail.example",), "mail.example")
    assert verdict.findings == ()


def test_ipv6_is_confirmed_by_aaaa() -> None:
    """The address family determines the forward query."""
    reverse = "1." + "0." * 23 + "8.b.d.0.1.0.0.2.ip6.arpa"
    zone = MemoryZone(
        {reverse: {"PTR": ["mail.example."]}, "mail.example": {"AAAA": ["2001:db8::1"]}}
    )
    assert judge(zone, "2001:db8::1").is_confirmed is True
    assert ("mail.example", "A") not in zone.asked_pairs


ISP = "192-0-2-1.isp.example"


@rows(
    ({}, Presence.ABSENT, False, "rdns.absent"),
    (
        {REVERSE: {"PTR": ["mail.example."]}, "mail.example": {"A": ["192.0.2.9"]}},
        Presence.FOUND,
        False,
        "rdns.unconfirmed",
    ),
    ({REVERSE: {"PTR": ["gone.example."]}}, Presence.FOUND, False, "rdns.unconfirmed"),
    (
        {REVERSE: {"PTR": [f"{ISP}."]}, ISP: {"A": ["192.0.2.1"]}},
        Presence.FOUND,
        True,
        "rdns.generic",
    ),
)
def test_what_is_wrong_is_named(
    records: dict[str, dict[str, list[str]]], presence: Presence, is_confirmed: bool, finding: str
) -> None:
    """Each problem has its finding, with the exact record to publish."""
    verdict = judge(MemoryZone(records))
    assert (verdict.presence, verdict.is_confirmed) == (presence, is_confirmed)
    (found,) = verdict.findings
    assert (found.id, found.proposed and found.proposed.value) == (finding, "mx.d.example.")
    assert found.proposed is not None
    assert (found.proposed.name, found.proposed.rdtype) == (REVERSE, "PTR")


def test_one_good_name_among_several_is_enough() -> None:
    """One confirmed name that is not generic is enough."""
    zone = MemoryZone(
        GOOD
        | {
            REVERSE: {"PTR": ["192-0-2-1.isp.example.", "mail.example.", "gone.example."]},
            "192-0-2-1.isp.example": {"A": ["192.0.2.1"]},
        }
    )
    verdict = judge(zone)
    assert verdict.validated_names == ("192-0-2-1.isp.example", "mail.example")
    assert (verdict.is_generic, verdict.findings) == (False, ())


@rows(DnsStatus.TIMEOUT, DnsStatus.SERVFAIL, DnsStatus.REFUSED)
def test_no_answer_is_never_no_name(status: DnsStatus) -> None:
    """Without an answer, the result is undetermined."""
    reverse = judge(MemoryZone(GOOD, failing={REVERSE: status}))
    assert (reverse.presence, ids(reverse)) == (Presence.UNDETERMINED, ["rdns.undetermined"])
    forward = judge(MemoryZone(GOOD, failing={"mail.example": status}))
    assert (forward.presence, forward.is_confirmed) == (Presence.FOUND, None)
    assert ids(forward) == ["rdns.undetermined"]


def test_one_validated_name_is_enough_though_another_is_silent() -> None:
    """One validated name is enough, even if another has no answer."""
    zone = MemoryZone(
        GOOD | {REVERSE: {"PTR": ["mail.example.", "silent.example."]}},
        failing={"silent.example": DnsStatus.TIMEOUT},
    )
    assert (judge(zone).is_confirmed, judge(zone).findings) == (True, ())


def test_hundreds_of_names_are_not_all_looked_up() -> None:
    """A reverse zone cannot cause unlimited queries."""
    zone = MemoryZone({REVERSE: {"PTR": [f"n{number}.example." for number in range(300)]}})
    assert len(judge(zone).ptr_names) == 300
    assert len(zone.asked) == 1 + MAX_NAMES


@rows(
    ("mail.example.com", "192.0.2.1", False),
    ("mx1.example.com", "192.0.2.1", False),
    ("mail-ed1-f41.google.com", "209.85.208.41", False),
    ("a4-15.smtp-out.eu-west-1.amazonses.com", "54.240.4.15", False),
    ("o1.ptr192.sendgrid.example", "192.0.2.1", False),
    ("dsl.example", "192.0.2.1", False),
    ("home.example.com", "192.0.2.1", False),
    ("192-0-2-1.isp.example", "192.0.2.1", True),
    ("1.2.0.192.isp.example", "192.0.2.1", True),
    ("static.1.2.0.192.clients.your-server.example", "192.0.2.1", True),
    ("ec2-192-0-2-1.compute-1.amazonaws.com", "192.0.2.1", True),
    ("host192.0.2.1.isp.example", "192.0.2.1", True),
    ("ip192000002001.isp.example", "192.0.2.1", True),
    ("pc0000201.c0000201.isp.example", "192.0.2.1", True),
    ("p5b2a.dip0.t-ipconnect.example", "192.0.2.1", True),
    ("cpe-7.dynamic.isp.example", "192.0.2.1", True),
    ("pool-3.isp.example", "192.0.2.1", True),
    ("spool.isp.example", "192.0.2.1", False),
    ("mail.example.com", "2001:db8::1", False),
    (
        "2001-db8-1234-5678-9abc-def0-1111-2222.isp.example",
        "2001:db8:1234:5678:9abc:def0:1111:2222",
        True,
    ),
    ("x12345678.isp.example", "2001:db8:1234:5678::1", True),
    ("", "192.0.2.1", False),
)
def test_generic_names(name: str, address: str, expected: bool) -> None:
    """A name generated from the address or with a word for home connections is generic."""
    assert is_generic_name(name, ip_address(address)) is expected
