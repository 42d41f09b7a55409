"""Tests for CAA records: who may issue certificates for a domain."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dns_answers import DnsStatus, Presence
from mailcheck.checks.findings import Severity
from mailcheck.checks.findings_of_domains import CERTIFICATES
from mailcheck.checks.hosts.caa import (
    ISSUE,
    ISSUE_MAIL,
    ISSUE_MARK,
    CaaVerdict,
    evaluate_caa,
    read_issuer,
)
from tests.fakes.memory_zone import Failures, MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

DOMAIN = "mail.d.example"


def evaluate(zone: MemoryZone) -> CaaVerdict:
    """Evaluate the records of a domain two levels below the top."""
    return settle(zone, lambda answers: evaluate_caa(DOMAIN, answers))


def published(*values: str, at: str = DOMAIN) -> CaaVerdict:
    """Evaluate records that are published at a name."""
    return evaluate(MemoryZone({at: {"CAA": list(values)}}))


@rows(DOMAIN, "d.example", "example")
def test_the_nearest_records_count(at: str) -> None:
    """The search climbs up to the top-level domain, and ends at the first records (RFC 8659 3)."""
    zone = MemoryZone({at: {"CAA": ['0 issue "near.example"', '0 issuemail ";"']}})
    if at != "example":
        zone.publish("example", "CAA", '0 issue "far.example"')
    caa = evaluate(zone)
    assert (caa.presence, caa.found_at) == (Presence.FOUND, at)
    assert caa.issuers(ISSUE) == ("near.example",)


@rows(DOMAIN, "d.example")
def test_a_lost_answer_is_not_an_absent_record(name: str) -> None:
    """If a name on the way did not answer, records above it say nothing about the domain."""
    failing: Failures = {(name, "CAA"): DnsStatus.SERVFAIL}
    zone = MemoryZone({"example": {"CAA": ['0 issue "ca.example"']}}, failing=failing)
    caa = evaluate(zone)
    assert (caa.presence, caa.found_at) == (Presence.UNDETERMINED, None)
    assert [one.id for one in caa.findings] == ["caa.undetermined"]


def test_a_failure_above_the_records_has_no_effect() -> None:
    """Names above the relevant records do not matter."""
    failing: Failures = {("example", "CAA"): DnsStatus.TIMEOUT}
    zone = MemoryZone({DOMAIN: {"CAA": ['0 issuemail "ca.example"']}}, failing=failing)
    assert evaluate(zone).issuers(ISSUE_MAIL) == ("ca.example",)


VECTORS: dict[str, list[str]] = {
    "caa.absent": [],
    "caa.bad-report-address": ['0 issuemail "ca.example"', '0 iodef "security@d.example"'],
    "caa.contradiction": ['0 issuemail ";"', '0 issuemail "ca.example"'],
    "caa.mail-forbidden": ['0 issuemail ";"'],
    "caa.mail-unrestricted": ['0 issue "ca.example"'],
    "caa.marks-forbidden": ['0 issuevmc ";"'],
    "caa.reserved-flags": ['1 issuemail "ca.example"'],
    "caa.syntax": ['0 issuemail "two authorities"'],
    "caa.unknown-critical": ['128 tbs "x"'],
    "caa.unknown-tag": ['0 tbs "x"'],
}
"""Records that cause exactly this finding."""


@rows(*VECTORS)
def test_each_fault_has_its_finding(name: str) -> None:
    """Each vector has one fault, and exactly the finding about it."""
    assert [one.id for one in published(*VECTORS[name]).findings] == [name]


def test_every_finding_has_a_vector() -> None:
    """No finding about CAA is without a test."""
    assert {one.id for one in CERTIFICATES} == {*VECTORS, "caa.undetermined"}


def test_only_faults_need_a_fix() -> None:
    """Restrictions that a domain may or may not publish are notes."""
    notes = {one.id for one in CERTIFICATES if one.fixed is Severity.NOTE}
    assert {"caa.absent", "caa.mail-unrestricted", "caa.mail-forbidden"} <= notes


@rows(
    ([], None),
    (['0 issue "ca.example"'], None),
    (['0 issuemail "ca.example"', '0 IssueMail "CB.example; account=1"'], ("ca", "cb")),
    (['0 issuemail ";"'], ()),
    (['0 issuemail ""'], ()),
    (['0 issuemail "%%"'], ()),
    (['0 issuemail ";"', '0 issuemail "ca.example"'], ("ca",)),
    (['0 issuemail "ca.example"', '128 tbs "x"'], ()),
    (['0 issuemail "ca.example"', '0 tbs "x"'], ("ca",)),
)
def test_who_may_issue_for_mail_addresses(
    values: list[str], expected: tuple[str, ...] | None
) -> None:
    """S/MIME depends on issuemail alone (RFC 9495 3). A malformed value allows no authority."""
    names = None if expected is None else tuple(f"{one}.example" for one in expected)
    assert published(*values).issuers(ISSUE_MAIL) == names


def test_marks_have_their_own_property() -> None:
    """Mark certificates depend on issuevmc alone."""
    caa = published('0 issue ";"', '0 issuevmc "digicert.com"', '0 issuemail ";"')
    assert (caa.issuers(ISSUE), caa.issuers(ISSUE_MARK)) == ((), ("digicert.com",))


@rows(
    ("ca.example", "ca.example"),
    (" CA.example ", "ca.example"),
    ("ca.example; policy=ev", "ca.example"),
    ("ca.example;a=1; b = 2 ;", "ca.example"),
    (";", ""),
    ("", ""),
    (" ; x=1", ""),
    ("ca.example.", None),
    ("ca..example", None),
    ("-ca.example", None),
    ("ca.example ev", None),
    ("ca.example; ev", None),
    ("ca.example; a=1;; b=2", None),
    ("ca.example; a=b c", None),
    ("https://ca.example", None),
    ("zertifikat-ö.example", None),
)
def test_values_follow_the_grammar(value: str, issuer: str | None) -> None:
    """The grammar of RFC 8659 4.2 decides; spaces are allowed around names only."""
    assert read_issuer(value) == issuer


@rows(
    ('0 issuemail "https://ca.example/"', '0 issuemail "ca.example"'),
    ('0 issuemail "ca.example."', '0 issuemail "ca.example"'),
    ('0 issuemail "a.example, b.example"', None),
    ('0 issuemail "a.example; ev"', None),
    ('0 isuemail "ca.example"', '0 issuemail "ca.example"'),
    ('0 policy "x"', None),
    ('0 iodef "ops@d.example"', '0 iodef "mailto:ops@d.example"'),
    ('0 iodef "ops"', None),
    ('7 issuemail "c\\010a.example"', '0 issuemail "c\\010a.example"'),
)
def test_a_clear_intention_is_repaired(record: str, fixed: str | None) -> None:
    """A record is proposed only if the value has one possible meaning."""
    (finding,) = published('0 issuemail "ok.example"', record).findings
    assert (finding.proposed.value if finding.proposed else None) == fixed
    assert finding.replaced == (record.lower(),) or finding.proposed is None


def test_records_behind_an_alias_are_changed_at_its_target() -> None:
    """No record can be published beside a CNAME (RFC 1034 3.6.2)."""
    zone = MemoryZone({DOMAIN: {"CNAME": ["there.d.example."]}})
    zone.publish("there.d.example", "CAA", '0 isuemail "ca.example"')
    (finding,) = evaluate(zone).findings
    assert finding.proposed is not None
    assert finding.proposed.name == "there.d.example"


@given(st.text(max_size=200))
def test_any_value_can_be_read(value: str) -> None:
    """The parser accepts any text."""
    issuer = read_issuer(value)
    assert issuer is None or issuer == issuer.strip()
