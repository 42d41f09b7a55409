"""Advice is verified: no record is shown that the evaluation has not confirmed."""

from itertools import product

import pytest
from msgspec.structs import replace
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from mailcheck.checks.dmarc.policy_advice import STRICTER_POLICY_FINDINGS
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.checks.overlay import Change
from mailcheck.checks.proofs import NotProven, Outcome, ProvenFix, proof_of
from mailcheck.operations.domains.check_mx import CheckMx, MxCheck
from tests.fakes.memory_zone import MemoryZone
from tests.house import run
from tests.table import rows

HOSTS = {
    "mx.d.example": {"A": ["8.8.4.1"]},
    "ok.example": {"TXT": ["v=spf1 ip4:192.0.2.0/24 -all"]},
    "chain.example": {"TXT": ["v=spf1 include:gone.example -all"]},
}


def no_selectors(_: str) -> Deferred[tuple[str, ...]]:
    """Return no selectors."""
    return succeed(())


def check(zone: MemoryZone, domain: str = "d.example") -> MxCheck:
    """Check MX, SPF and DMARC."""
    found: MxCheck = run(CheckMx(zone, no_selectors, Clock(), allow_private=False).check(domain))
    return found


def zone_with(*texts: str, dmarc: str = "v=DMARC1; p=reject; rua=mailto:d@d.example") -> MemoryZone:
    """Publish these TXT records at d.example."""
    zone = MemoryZone(HOSTS)
    zone.publish("d.example", "TXT", *texts)
    zone.publish("d.example", "MX", "10 mx.d.example.")
    if dmarc:
        zone.publish("_dmarc.d.example", "TXT", dmarc)
    return zone


def proposals(found: MxCheck) -> dict[str, str]:
    """Return the verified record of each finding that has one."""
    return {key[0]: fix.record.value for key, fix in found.proofs.items()}


FINDING = Finding("x.fault", Severity.WARNING, "It is so.", "Mend it.")
OTHER = Finding("y.fault", Severity.ERROR, "It is otherwise.", "Mend that.")
CHANGE = Change(RecordToPublish("d.example", "TXT", "v=spf1 -all"))


@rows(
    (Outcome((FINDING,), 9), "x.fault is still there"),
    (Outcome((replace(FINDING, meaning="It is so still."),), 9), "x.fault is still there"),
    (Outcome((OTHER,), 9), "the change causes y.fault"),
    (
        Outcome((replace(OTHER, severity=Severity.UNDETERMINED),), 9),
        "the change causes y.fault",
    ),
    (Outcome((), 4), "the score falls"),
    (Outcome((), 9, {"DMARC": 1}), "DMARC would be weaker"),
)
def test_an_unverified_fix_is_rejected(after: Outcome, objection: str) -> None:
    """A fix resolves its finding, adds no error or doubt, and lowers neither score nor policy."""
    before = Outcome((FINDING,), 5, {"DMARC": 2})
    with pytest.raises(NotProven, match=objection):
        ProvenFix(FINDING, CHANGE, (), before, after)
    assert ProvenFix(FINDING, CHANGE, (), before, Outcome((), 9, {"DMARC": 2})).gain == 4


@rows(
    (["v=spf1 mx"], "spf.no-end", "v=spf1 mx ~all"),
    (["v=spf1 mx -all", "v=spf1 include:ok.example ~all"], "spf.several", None),
    (
        ["v=spf1 mx include:chain.example -all", "v=spf1 mx -all"],
        "spf.several",
        "v=spf1 mx -all",
    ),
    (["v=spf1 mx include:chain.example -all"], "spf.include-absent", "v=spf1 mx -all"),
    (["v=spf1 include:d.example mx -all"], "spf.include-loop", "v=spf1 mx -all"),
)
def test_records_that_are_shown_are_those_that_work(
    texts: list[str], finding_id: str, value: str | None
) -> None:
    """The setup is good after following the advice, even if a record of others was wrong."""
    found = check(zone_with(*texts))
    (record,) = {fix.record for key, fix in found.proofs.items() if key[0] == finding_id}
    assert value is None or record.value == value
    after = check(zone_with(record.value))
    assert [one.id for one in after.findings if one.severity is Severity.ERROR] == []


def test_replaced_records_are_named() -> None:
    """Unrelated TXT records are kept. Each replaced record is named."""
    zone = zone_with("hello", "v=spf1 mx -all", "v=spf1 mx ~all")
    (fix,) = [f for key, f in check(zone).proofs.items() if key[0] == "spf.several"]
    assert set(fix.removed) == {"v=spf1 mx -all", "v=spf1 mx ~all"}


def test_the_order_of_two_records_changes_nothing() -> None:
    """The order of two SPF records in DNS changes neither the verdict nor the advice."""
    texts = ["v=spf1 +all", "v=spf1 include:ok.example -all"]
    one, other = check(zone_with(*texts)), check(zone_with(*reversed(texts)))
    assert one.findings == other.findings
    assert proposals(one) == proposals(other)


def test_no_question_is_sent_twice() -> None:
    """Fixes are verified with the known answers."""
    zone = zone_with("v=spf1 mx ?all", "v=spf1 a", dmarc="v=DMARC1; p=none")
    found = check(zone)
    assert found.proofs
    assert len(zone.asked) == len(set(zone.asked))


def test_an_unknown_effect_gives_no_record() -> None:
    """A record whose effect depends on a silent name is not shown."""
    zone = MemoryZone(HOSTS, failing={"lost.example": DnsStatus.TIMEOUT})
    zone.publish("d.example", "MX", "10 mx.d.example.")
    zone.publish("d.example", "TXT", "v=spf1 include:lost.example mx")
    found = check(zone)
    assert "spf.no-end" not in proposals(found)


def test_no_fix_undoes_an_earlier_one() -> None:
    """Several records for one name, published from top to bottom, undo no earlier fix.

    If reports are not received here, the advice has no record.
    """
    zone = zone_with("v=spf1 mx -all", dmarc="v=DMARC1; p=none; sp=none; pct=50")
    found = check(zone)
    for finding in sorted(found.findings, key=lambda one: one.severity.rank):
        fix = proof_of(finding, found.proofs)
        if fix is not None:
            zone.publish("_dmarc.d.example", "TXT", fix.record.value)
    assert [one.id for one in check(zone).findings] == ["dmarc.no-reports"]


@rows(
    *product(
        ["", "v=spf1 include:gone.example -all", "v=spf1 nonsense -all"],
        ["v=DMARC1; p=none", "v=DMARC1; p=reject; sp=none; t=y"],
    )
)
def test_no_stricter_policy_before_mail_can_pass(spf: str, dmarc: str) -> None:
    """Without SPF or a key, no stricter DMARC policy is proposed, only the first step."""
    found = check(zone_with(*filter(None, [spf]), dmarc=f"{dmarc}; rua=mailto:d@d.example"))
    stricter = [one for one in found.findings if one.id in STRICTER_POLICY_FINDINGS]
    assert stricter
    assert all("Make SPF or DKIM work for d.example first" in one.fix for one in stricter)
    assert {one.id for one in stricter}.isdisjoint(proposals(found))


def test_a_stricter_policy_is_advised_once_mail_can_pass() -> None:
    """With a valid SPF record, the record with p=quarantine is shown."""
    found = check(zone_with("v=spf1 mx -all", dmarc="v=DMARC1; p=none; rua=mailto:d@d.example"))
    assert "p=quarantine" in proposals(found)["dmarc.policy-none"]


def test_an_ignored_policy_does_not_reject_own_mail() -> None:
    """The stricter of two DMARC records is kept only if mail can pass it."""
    zone = zone_with("v=spf1 ipv4:192.0.2.1 -all", dmarc="")
    reports = "rua=mailto:d@d.example"
    zone.publish(
        "_dmarc.d.example", "TXT", f"v=DMARC1; p=reject; {reports}", f"v=DMARC1; p=none; {reports}"
    )
    fixes = {key[0]: fix for key, fix in check(zone).proofs.items()}
    assert [one.name for one in fixes["dmarc.several"].beside] == ["d.example"]
