"""Tests for the findings about the SPF result of a mail, and the proposed record."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.mail import (
    SpfOfMail,
    describe_spf_of_helo,
    describe_spf_of_mail,
    evaluate_spf_of_mail,
)
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

CLIENT = "192.0.2.1"
CLIENT_6 = "2001:db8::1"
HOSTS = {
    "mx.d.example": {"A": ["192.0.2.25"]},
    "lets.example": {"TXT": ["v=spf1 ip4:198.51.100.0/24 ip4:192.0.2.1 -all"]},
    "strict.example": {"TXT": ["v=spf1 -all"]},
}


def zone_with(*texts: str) -> MemoryZone:
    """Publish these TXT records at d.example."""
    zone = MemoryZone(HOSTS)
    zone.publish("d.example", "TXT", *texts)
    zone.publish("d.example", "MX", "10 mx.d.example.")
    return zone


def evaluate(
    zone: MemoryZone, client: str, sender: str = "joe@d.example", helo: str = ""
) -> SpfOfMail:
    """Evaluate a mail."""
    return settle(
        zone, lambda a: evaluate_spf_of_mail(ip_address(client), helo, sender, "receiver", a)
    )


def describe(zone: MemoryZone, client: str = CLIENT, *, with_domain: bool = True) -> Finding | None:
    """Return the finding, with or without the SPF check of the domain."""
    known = settle(zone, lambda answers: evaluate_spf("d.example", answers))
    return describe_spf_of_mail(
        evaluate(zone, client), known if with_domain else None, is_own_host=True
    )


@pytest.mark.parametrize("with_domain", [True, False])
@rows(
    ("v=spf1 mx -all", CLIENT, "fail", "v=spf1 mx ip4:192.0.2.1 -all"),
    ("v=spf1 mx ~all", CLIENT, "softfail", "v=spf1 mx ip4:192.0.2.1 ~all"),
    ("v=spf1 mx ?all", CLIENT, "neutral", "v=spf1 mx ip4:192.0.2.1 ~all"),
    ("v=spf1 mx", CLIENT, "neutral", "v=spf1 mx ip4:192.0.2.1 ~all"),
    ("v=spf1 mx -all", CLIENT_6, "fail", "v=spf1 mx ip6:2001:db8::1 -all"),
    (
        "v=spf1 redirect=strict.example",
        CLIENT,
        "fail",
        "v=spf1 ip4:192.0.2.1 redirect=strict.example",
    ),
    (
        "v=spf1 -include:lets.example mx -all",
        CLIENT,
        "fail",
        "v=spf1 ip4:192.0.2.1 -include:lets.example mx -all",
    ),
    ("nothing", CLIENT, "none", "v=spf1 mx ip4:192.0.2.1 ~all"),
)
def test_the_fix_lets_the_client_send(
    with_domain: bool, text: str, client: str, finding_id: str, proposed: str
) -> None:
    """For each result except pass, the present record with the client's address is proposed."""
    finding = describe(zone_with(text), client, with_domain=with_domain)
    assert finding is not None
    assert finding.id == f"spf.result-{finding_id}"
    assert finding.proposed is not None
    assert (finding.proposed.name, finding.proposed.rdtype) == ("d.example", "TXT")
    assert finding.proposed.value == proposed
    assert str(client) in finding.fix


@rows(
    ({"A": ["192.0.2.9"]}, "v=spf1 a ip4:192.0.2.1 ~all"),
    ({"MX": ["0 ."]}, "v=spf1 ip4:192.0.2.1 ~all"),
)
def test_a_first_record_names_hosts_that_are_there(node: dict[str, list[str]], value: str) -> None:
    """The record for a domain without a mail host has no "mx", as in the check of the domain."""
    finding = describe(MemoryZone({"d.example": node}))
    assert finding is not None
    assert finding.proposed is not None
    assert finding.proposed.value == value


@rows("v=spf1 mx -all", "v=spf1 mx -all nonsense", "nothing")
def test_an_unknown_client_is_not_added(text: str) -> None:
    """For a client that is not the domain's own, the advice is text without a record."""
    finding = describe_spf_of_mail(evaluate(zone_with(text), CLIENT))
    assert finding is not None
    assert all(CLIENT not in record.value for record in finding.candidate_records)
    assert finding.id == "spf.result-permerror" or "belongs to you" in finding.fix


def test_a_pass_needs_no_finding() -> None:
    """A mail that passes has no finding."""
    assert describe(zone_with("v=spf1 ip4:192.0.2.0/24 -all")) is None


def test_an_undetermined_result_names_the_domain() -> None:
    """An undetermined result names the domain and proposes no record."""
    zone = zone_with("v=spf1 include:strict.example -all")
    zone.failing["strict.example"] = DnsStatus.SERVFAIL
    finding = describe(zone, with_domain=False)
    assert finding is not None
    assert (finding.severity, finding.proposed) == (Severity.UNDETERMINED, None)
    assert "strict.example" in finding.meaning


@rows(
    (["v=spf1 ipv4:192.0.2.1 -all"], "v=spf1 ip4:192.0.2.1 -all"),
    (["v=spf1 mx -all", "v=spf1 ip4:192.0.2.1 -all"], "v=spf1 ip4:192.0.2.1 mx -all"),
    (["v=spf1 include:gone.example mx -all"], "v=spf1 mx ip4:192.0.2.1 -all"),
)
def test_a_broken_record_is_repaired(texts: list[str], proposed: str) -> None:
    """A permerror has the fix of the domain's check, with the client added."""
    finding = describe(zone_with(*texts))
    assert finding is not None
    assert finding.id == "spf.result-permerror"
    assert finding.proposed is not None
    assert finding.proposed.value == proposed


def test_a_broken_record_without_a_repair_gets_no_proposal() -> None:
    """Without a certain repair, no record is proposed."""
    zone = zone_with("v=spf1 include:bad.example -all")
    zone.publish("bad.example", "TXT", "v=spf1 nonsense -all")
    finding = describe(zone, with_domain=False)
    assert finding is not None
    assert finding.proposed is None
    assert "bad.example" in finding.meaning


@rows(("", "HELO"), ("joe@[192.0.2.1]", "envelope sender"))
def test_a_sender_without_a_domain_gets_no_record(sender: str, where: str) -> None:
    """For an address literal, the fix names the name to change."""
    finding = describe_spf_of_mail(evaluate(zone_with("x"), CLIENT, sender, "[192.0.2.1]"))
    assert finding is not None
    assert (finding.id, finding.proposed) == ("spf.result-none", None)
    assert where in finding.fix


def test_what_is_known_of_another_domain_is_not_used() -> None:
    """A check of another domain has no effect."""
    zone = zone_with("v=spf1 mx -all")
    other = settle(zone, lambda answers: evaluate_spf("strict.example", answers))
    mail = evaluate(zone, CLIENT)
    assert describe_spf_of_mail(mail, other) == describe_spf_of_mail(mail)


@rows(
    ("strict.example", "spf.helo-fail"),
    ("lets.example", None),
    ("gone.example", None),
    ("[192.0.2.1]", None),
)
def test_a_helo_name_that_refuses_the_client_is_a_note(helo: str, found: str | None) -> None:
    """A HELO result that is not pass is a note that does not change the score."""
    verdict = evaluate(zone_with("v=spf1 mx -all"), CLIENT, helo=helo)
    finding = describe_spf_of_helo(verdict, is_own_host=True)
    assert (finding.id if finding else None) == found
    if finding is not None:
        assert finding.severity is Severity.NOTE
        assert finding.proposed is not None
        assert finding.proposed.value == "v=spf1 ip4:192.0.2.1 -all"
    assert describe_spf_of_helo(evaluate(zone_with("x"), CLIENT, "", helo)) is None


TERMS = st.lists(
    st.sampled_from(
        [
            "a",
            "mx",
            "~a:mx.d.example",
            "-include:lets.example",
            "include:strict.example",
            "?ip4:192.0.2.0/24",
            "-ip6:2001:db8::/32",
            "exp=why.example",
            "exists:%{i}.x.example",
        ]
    ),
    max_size=5,
    unique=True,
)
ENDS = st.sampled_from(["", "-all", "~all", "?all", "redirect=strict.example"])


@given(TERMS, ENDS, st.sampled_from([CLIENT, CLIENT_6]), st.booleans())
def test_the_proposed_record_makes_the_mail_pass(
    terms: list[str], end: str, client: str, with_domain: bool
) -> None:
    """With the proposed record, the same mail passes."""
    zone = zone_with(" ".join(["v=spf1", *terms, end]))
    finding = describe(zone, client, with_domain=with_domain)
    if finding is None or finding.proposed is None or finding.id == "spf.result-permerror":
        return
    mended = zone_with(finding.proposed.value)
    assert evaluate(mended, client).mail_from.result is AuthResult.PASS
