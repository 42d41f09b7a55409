"""Findings in responses: their former ids, and records without proof."""

from mailcheck.api.deliverability.findings import render_charged, render_deduction
from mailcheck.api.domains.findings import render_finding
from mailcheck.api.shapes import ABSENT, as_json
from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.weights import uncharged


def test_earlier_ids_stand_beside_the_id() -> None:
    """A renamed finding has its former ids, in domain checks and in reports."""
    renamed = make_finding("dkim.key-revoked", severity=Severity.NOTE, name="a")
    assert render_finding(renamed, {}).aliases == ("dkim.revoked",)
    assert render_charged(uncharged(renamed), {}).aliases == ("dkim.revoked",)


def test_a_finding_of_one_id_has_no_aliases() -> None:
    """A finding without former ids has no ``aliases``."""
    plain = make_finding("spf.ptr")
    assert render_finding(plain, {}).aliases is ABSENT
    assert render_charged(uncharged(plain), {}).aliases is ABSENT


def test_a_record_without_proof_is_not_shown() -> None:
    """No field shows a record that a finding only proposes."""
    record = RecordToPublish("a.example", "TXT", "v=spf1 -all")
    finding = Finding(
        "spf.ptr", Severity.WARNING, "It is so.", "Change it.", record, ("b",), (record,), (record,)
    )
    shown = (
        render_finding(finding, {}),
        render_charged(uncharged(finding), {}),
        render_deduction(uncharged(finding), {}),
    )
    for shape in map(as_json, shown):
        assert not {"record", "replaces", "beside", "leavesOut", "gain"} & set(shape)
