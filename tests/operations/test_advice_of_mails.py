"""The advice in reports is verified with the mail itself, and never authorises a stranger."""

from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.proofs import proof_of
from tests.fakes.mail_signer import RSA
from tests.fakes.memory_zone import MemoryZone
from tests.operations.scored_mails import ADDRESS, HELO, MAIL, received, score, zone_with
from tests.operations.test_following_advice import publish

PTR = "10.4.8.8.in-addr.arpa"
DMARC = "_dmarc.sender.example"
STRANGER = "9.9.9.10"


def proven(report: DeliverabilityReport) -> dict[str, str]:
    """Return the verified record of each finding that has one."""
    return {finding_id: fix.record.value for (finding_id, _), fix in report.proofs.items()}


def test_the_name_of_the_address_becomes_that_of_the_server() -> None:
    """The provider must change a PTR record in its zone. No A record is proposed there."""
    zone = zone_with({PTR: {"PTR": ["li982-157.members.linode.example."]}})
    report = score(zone)
    (fix,) = [fix for (name, _), fix in report.proofs.items() if name == "rdns.unconfirmed"]
    assert (fix.record.name, fix.record.rdtype, fix.record.value) == (PTR, "PTR", f"{HELO}.")
    assert (fix.score_before, fix.score_after) == (95, 100)
    assert "the provider of the address" in fix.finding.fix


def test_a_forged_mail_authorises_no_host() -> None:
    """A stranger with a HELO name of the domain gets advice in words, and no record."""
    zone = zone_with({"10.9.9.9.in-addr.arpa": {"PTR": [f"{HELO}."]}})
    for helo_name in ("mx.stranger.example", HELO, "new.sender.example"):
        report = score(zone, received(MAIL, client_ip=STRANGER, helo_name=helo_name))
        assert all(STRANGER not in value for value in proven(report).values())
        told = [one.finding.fix for one in report.score.charged if STRANGER in one.finding.fix]
        assert any(f"If {STRANGER} belongs to you" in words for words in told)


def test_strict_alignment_is_not_loosened() -> None:
    """No record without adkim=s is proposed, since it would weaken the policy."""
    signed = RSA.sign(MAIL.replace(b"ann@sender", b"ann@news.sender"))
    zone = zone_with(
        {
            "news.sender.example": {"TXT": ["v=spf1 -all"]},
            DMARC: {"TXT": ["v=DMARC1; p=reject; adkim=s; aspf=s; rua=mailto:d@sender.example"]},
        }
    )
    report = score(zone, received(signed))
    assert "dmarc.fails-enforced" in [one.finding.id for one in report.score.deductions]
    assert "dmarc.fails-enforced" not in proven(report)


def test_records_that_need_each_other_are_proven_together() -> None:
    """DMARC alone would fail without SPF, so both records are shown together."""
    zone = zone_with({"sender.example": {"MX": [f"10 {HELO}."]}}, without=[DMARC])
    report = score(zone, received(MAIL))
    fixes = {finding_id: fix for (finding_id, _), fix in report.proofs.items()}
    assert [one.name for one in fixes["dmarc.no-record"].beside] == ["sender.example"]
    assert fixes["spf.result-none"].beside == ()


def test_following_the_report_fixes_ten_faults() -> None:
    """Following the report from top to bottom, repeatedly, leads to a score of 10.0."""
    zone = MemoryZone(
        {
            "sender.example": {
                "TXT": ["v=spf1 include:gone.example ptr a:old.sender.example", "v=spf1 ?all"],
                "MX": [f"10 {HELO}."],
            },
            HELO: {"A": [ADDRESS], "TXT": ["v=spf1 -all"]},
            PTR: {"PTR": ["li982-157.members.linode.example."]},
            DMARC: {"TXT": ["v=DMARC1; p=bogus; sp=none; pct=20; t=y"]},
            RSA.key_name: {"TXT": [RSA.key_record.replace("v=DKIM1;", "v=DKIM1; t=y;")]},
        }
    )
    mail = received(helo_name="smtp.sender.example")
    report = score(zone, mail)
    assert report.score.tenths < 70
    for _ in range(20):
        told = [one.finding for one in (*report.score.deductions, *report.score.charged)]
        fix = next((f for one in told if (f := proof_of(one, report.proofs)) is not None), None)
        if fix is None:
            break
        for record in fix.beside:
            zone.publish(record.name, record.rdtype, record.value)
        publish(zone, fix)
        after = score(zone, mail)
        assert after.score.tenths >= report.score.tenths
        report = after
    assert report.score.tenths == 100, [one.finding.meaning for one in report.score.charged]
    assert report.evidence.authentication.dmarc.policy is not None
    assert report.evidence.authentication.dmarc.policy.strictness > 0


def test_psd_is_the_cause_of_a_mail_of_a_subdomain_that_fails() -> None:
    """A domain that says that it is a public suffix does not count for its subdomains."""
    signed = RSA.sign(MAIL.replace(b"ann@sender", b"ann@news.sender"))
    record = "v=DMARC1; p=reject; rua=mailto:d@sender.example"
    report = score(zone_with({DMARC: {"TXT": [f"{record}; psd=y"]}}), received(signed))
    (failure,) = [
        one.finding for one in report.score.deductions if one.finding.id == "dmarc.fails-enforced"
    ]
    assert "Remove psd=y from the DMARC record of sender.example" in failure.fix
    assert proven(report)["dmarc.fails-enforced"] == record
