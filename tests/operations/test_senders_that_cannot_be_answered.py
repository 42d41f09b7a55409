"""A sender that cannot get replies costs points. No record is proposed for a missing zone."""

from typing import Any

from mailcheck.checks.dns_answers import DnsStatus
from tests.operations.scored_mails import HELO, MAIL, PERFECT, faults, received, score, zone_with
from tests.table import rows

BOUNCES, REPLIES = "sender.bounces-undeliverable", "sender.replies-undeliverable"
TXT = list(PERFECT["sender.example"]["TXT"])
OTHER = {"other.example": {"TXT": ["v=spf1 ip4:8.8.4.10 -all"], "A": ["8.8.4.77"]}}


def charged(zone: Any, **changes: Any) -> dict[str, int]:
    """Return the deductions for the sender."""
    found = dict(faults(score(zone, received(**changes))))
    return {name: tenths for name, tenths in found.items() if name.startswith("sender.")}


@rows(
    ({"TXT": TXT, "MX": ["0 ."]}, "null MX"),
    ({"TXT": TXT}, "has neither an MX record nor an address"),
    ({}, "does not exist in DNS"),
)
def test_one_domain_that_takes_no_mail_is_charged_once(
    node: dict[str, list[str]], words: str
) -> None:
    """One domain without mail costs points once, and the text gives the reason."""
    zone = zone_with(
        {"sender.example": node}, without=[] if node else ["_dmarc.sender.example", HELO]
    )
    if not node:
        zone = zone_with({"elsewhere.example": {"A": ["8.8.4.1"]}}, without=list(PERFECT))
    report = score(zone, received(MAIL))
    found = [one.finding for one in report.score.deductions if one.finding.id == BOUNCES]
    assert words in found[0].meaning
    assert charged(zone, raw_message=MAIL) == {BOUNCES: 20}


def test_each_of_two_domains_is_charged() -> None:
    """Bounces go to the envelope sender and replies to the author, so each is charged."""
    nullmx = {"sender.example": {"TXT": TXT, "MX": ["0 ."]}}
    assert charged(zone_with(OTHER | nullmx), envelope_sender="b@other.example") == {REPLIES: 10}
    assert charged(zone_with(nullmx), envelope_sender="b@gone.example") == {
        BOUNCES: 20,
        REPLIES: 10,
    }
    assert charged(zone_with(), envelope_sender="b@gone.example") == {BOUNCES: 20}
    assert charged(zone_with(nullmx), envelope_sender="") == {REPLIES: 10}


@rows(
    (zone_with(), {}),
    (zone_with(), {"envelope_sender": ""}),
    (zone_with({"sender.example": {"TXT": TXT, "A": ["8.8.4.2"]}}), {}),
    (zone_with(failing={("sender.example", "MX"): DnsStatus.TIMEOUT}), {}),
    (zone_with({"sender.example": {"TXT": TXT, "MX": ["0 ."]}}), {"client_ip": "10.0.0.5"}),
)
def test_other_senders_cost_nothing(zone: Any, changes: dict[str, Any]) -> None:
    """An address without MX, a silent server and mail from a private network cost no points."""
    assert charged(zone, **changes) == {}


def test_nothing_is_proposed_for_a_zone_that_does_not_exist() -> None:
    """No record is proposed for a missing zone. The text asks for a domain that exists."""
    zone = zone_with()
    unknown = MAIL.replace(b"ann@sender.example", b"ann@gone.example")
    report = score(zone, received(unknown, envelope_sender="ann@gone.example"))
    assert not [one for one in report.proofs.values() if one.record.name.endswith("gone.example")]
    fixes = {one.finding.id: one.finding.fix for one in report.score.deductions}
    for name in ("spf.result-none", "dmarc.no-record"):
        assert "gone.example does not exist" in fixes[name]
    assert "exists" in fixes[BOUNCES]


def test_a_name_below_an_existing_domain_can_be_published() -> None:
    """A missing subdomain of a zone that exists keeps its advice."""
    report = score(zone_with(), received(envelope_sender="b@bounce.sender.example"))
    fixes = {one.finding.id: one.finding.fix for one in report.score.deductions}
    assert BOUNCES in fixes
    assert "does not exist" not in fixes["spf.result-none"]
