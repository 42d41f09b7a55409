"""Earlier ids of findings in answers."""

from mailcheck.api.deliverability.findings import render_charged
from mailcheck.api.domains.findings import render_finding
from mailcheck.api.shapes import ABSENT
from mailcheck.checks.findings import Severity
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.weights import uncharged


def test_earlier_ids_stand_beside_the_id() -> None:
    """A finding that was renamed shows its earlier ids, in checks of domains and of mails."""
    renamed = make_finding("dkim.key-revoked", "It is so.", "Change it.", severity=Severity.NOTE)
    assert render_finding(renamed, {}).aliases == ("dkim.revoked",)
    assert render_charged(uncharged(renamed), {}).aliases == ("dkim.revoked",)


def test_a_finding_of_one_id_has_no_aliases() -> None:
    """Without an earlier id there is no such key."""
    plain = make_finding("spf.ptr", "It is so.", "Change it.")
    assert render_finding(plain, {}).aliases is ABSENT
    assert render_charged(uncharged(plain), {}).aliases is ABSENT
