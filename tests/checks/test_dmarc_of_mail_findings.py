"""Tests for the findings about the DMARC result of a mail."""

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.mail import DkimOfMail
from mailcheck.checks.dmarc.mail import describe_dmarc_of_mail, evaluate_dmarc_of_mail
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.checks.spf.mail import SpfOfMail
from tests.checks.test_dmarc_of_mail import FAIL, PASS, REJECT, UNSIGNED, policies, signed, spf_of
from tests.fakes.memory_zone import MemoryZone, Records
from tests.fakes.settling import settle
from tests.table import rows


def describe(
    records: Records,
    spf: SpfOfMail | None,
    dkim: DkimOfMail | None,
    authors: tuple[str, ...] = ("d.example",),
) -> Finding | None:
    """Return the finding about a mail."""
    zone = MemoryZone(records, failing={"_dmarc.dead.example": DnsStatus.TIMEOUT})
    verdict = settle(zone, lambda answers: evaluate_dmarc_of_mail(authors, spf, dkim, answers))
    return describe_dmarc_of_mail(verdict, spf, dkim)


def test_a_pass_needs_no_finding() -> None:
    """A mail that passes has no finding."""
    assert describe(policies(d_example=REJECT), spf_of("d.example"), UNSIGNED) is None


def test_misalignment_names_both_domains_and_the_ways_out() -> None:
    """The finding names the envelope sender, the signer and the author, with advice."""
    finding = describe(
        policies(d_example=REJECT), spf_of("bounce.esp.test"), signed(("esp.test", PASS))
    )
    assert finding is not None
    assert (finding.id, finding.severity) == ("dmarc.fails-enforced", Severity.ERROR)
    for domain in ("d.example", "bounce.esp.test", "esp.test"):
        assert domain in finding.meaning
    assert "reject" in finding.meaning
    assert "d=d.example" in finding.fix
    assert "envelope sender" in finding.fix
    assert finding.proposed is None


@rows(("none", "fails-none"), ("quarantine", "fails-enforced"), ("reject", "fails-enforced"))
def test_a_fail_is_as_bad_as_the_policy(policy: str, finding_id: str) -> None:
    """The policy is part of the finding id; t=y lowers it by one step."""
    spf = spf_of("d.example", FAIL)
    finding = describe(policies(d_example=f"v=DMARC1; p={policy}"), spf, UNSIGNED)
    assert finding is not None
    assert finding.id == f"dmarc.{finding_id}"
    testing = describe(policies(d_example=f"v=DMARC1; p={policy}; t=y"), spf, UNSIGNED)
    assert testing is not None
    assert testing.id == f"dmarc.{'fails-enforced' if policy == 'reject' else 'fails-none'}"


@rows(
    ("aspf=s", spf_of("bounce.d.example"), UNSIGNED, ""),
    ("adkim=s", spf_of("esp.test"), signed(("mail.d.example", PASS)), ""),
    ("adkim=s; aspf=s", spf_of("b.d.example"), signed(("m.d.example", PASS)), ""),
    ("adkim=s; aspf=s", spf_of("b.d.example"), UNSIGNED, "; adkim=s"),
)
def test_strict_alignment_that_fails_own_names_is_relaxed(
    tags: str, spf: SpfOfMail, dkim: DkimOfMail, kept: str
) -> None:
    """If only aspf=s or adkim=s is the cause, the proposed record omits it."""
    records = policies(d_example=f"v=DMARC1; p=reject; {tags}")
    finding = describe(records, spf, dkim)
    assert finding is not None
    value = f"v=DMARC1; p=reject{kept}"
    assert finding.proposed == RecordToPublish("_dmarc.d.example", "TXT", value)
    mended: Records = {"_dmarc.d.example": {"TXT": [value]}}
    assert describe(mended, spf, dkim) is None


def test_strict_alignment_that_does_not_matter_is_kept() -> None:
    """For a department with its own organization, no relaxed record is proposed."""
    records = policies(d_example=REJECT, dep_d_example="v=DMARC1; p=none; psd=n")
    finding = describe(records, spf_of("esp.test"), signed(("mail.dep.d.example", PASS)))
    assert finding is not None
    assert finding.proposed is None
    assert "d=d.example" in finding.fix


@rows(
    (policies(), RecordToPublish("_dmarc.d.example", "TXT", "")),
    (
        {"_dmarc.d.example.d.example": {"TXT": ["v=DMARC1; p=reject"]}},
        RecordToPublish("_dmarc.d.example", "TXT", "v=DMARC1; p=reject"),
    ),
)
def test_without_a_record_one_is_proposed(records: Records, record: RecordToPublish) -> None:
    """A record is proposed, and one at a wrong name is found."""
    finding = describe(records, spf_of("d.example"), UNSIGNED)
    assert finding is not None
    assert finding.id == "dmarc.no-record"
    assert finding.proposed is not None
    assert finding.proposed.name == record.name
    assert finding.proposed.value.startswith(record.value or "v=DMARC1; p=none")


def test_a_missing_author_and_a_missing_answer_differ() -> None:
    """A missing author is an error, a missing answer is undetermined; no record is proposed."""
    finding = describe({}, spf_of("d.example"), UNSIGNED, ("a.example", "b.example"))
    assert finding is not None
    assert (finding.id, finding.severity) == ("dmarc.no-author", Severity.ERROR)
    finding = describe({}, spf_of("d.example", AuthResult.PASS), UNSIGNED, ("dead.example",))
    assert finding is not None
    assert (finding.id, finding.severity) == ("dmarc.undetermined", Severity.UNDETERMINED)
    assert finding.proposed is None
