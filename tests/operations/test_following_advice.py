"""Following the advice step by step leads to a setup without findings."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mailcheck.checks.dmarc.policy_advice import STRICTER_POLICY_FINDINGS
from mailcheck.checks.findings import RecordToPublish, Severity
from mailcheck.checks.proofs import ProvenFix
from mailcheck.core.domains.domain_names import is_within
from mailcheck.core.domains.receiver_reports import NOWHERE, ReportPlaces
from mailcheck.operations.domains.describe_domain import DomainReport
from tests.fakes.dkim_keys import RSA_2048
from tests.fakes.memory_zone import MemoryZone
from tests.operations.described_domain import describe

DOMAIN = "d.example"
KEY = f"v=DKIM1; k=rsa; p={RSA_2048}"
MAX_STEPS = 20

IN_WORDS = {"dkim.absent", "dkim.several-keys", "mx.dead-host", "dmarc.syntax"}
"""Findings without a record: keys are created by the signer, and hosts belong to others."""

UNCERTAIN = ("nonsense", "ptr", "include:several.example", "include:broken.example")
"""Terms that could name a sender. A record without them is never proposed."""

HERE = ReportPlaces("dmarc-abc@here.example", "tls-abc@here.example", "")

HOSTS = {
    "mx.d.example": {"A": ["8.8.4.1"]},
    "mail.d.example": {"A": ["8.8.4.2"]},
    "alias.d.example": {"CNAME": ["mx.d.example."]},
    "ok.example": {"TXT": ["v=spf1 ip4:192.0.2.0/24 -all"]},
    "chain.example": {"TXT": ["v=spf1 include:gone.example -all"]},
    "several.example": {"TXT": ["v=spf1 -all", "v=spf1 mx -all"]},
    "broken.example": {"TXT": ["v=spf1 nonsense -all"]},
    "d.example._report._dmarc.reports.example": {"TXT": ["v=DMARC1;"]},
}

TERMS = st.sampled_from(
    [
        "mx",
        "ip4:192.0.2.7",
        "ipv4:192.0.2.8",
        "include:ok.example",
        "include:chain.example",
        "include:several.example",
        "include:broken.example",
        "include:d.example",
        "include:gone.example",
        "a:gone.example",
        "ptr",
        "nonsense",
        "exists:gone.example",
        "mx",
    ]
)
SPF = st.builds(
    lambda terms, end: " ".join(["v=spf1", *terms, end]).strip(),
    st.lists(TERMS, max_size=4),
    st.sampled_from(["", "-all", "~all", "?all", "+all", "redirect=ok.example", "all-"]),
)
SPF_TEXTS = st.one_of(SPF, st.sampled_from(["v=spf1;mx;-all", "hello", "v=spf2.0/pra mx -all"]))
DMARC_TAGS = st.lists(
    st.sampled_from(
        [
            "p=none",
            "p=quarantine",
            "p=reject",
            "p=bogus",
            "sp=none",
            "np=none",
            "pct=10",
            "t=y",
            "rua=mailto:d@d.example",
            "rua=mailto:d@reports.example",
            "rua=nonsense",
            "adkim=s",
            "fo=1",
            "rubbish",
        ]
    ),
    max_size=4,
    unique_by=lambda tag: tag.partition("=")[0],
)
DMARC = st.builds(
    lambda version, tags: "; ".join([version, *tags]),
    st.sampled_from(["v=DMARC1", "v=dmarc1", "v=DMARC 1"]),
    DMARC_TAGS,
)
MX = st.sampled_from(
    [
        [],
        ["10 mx.d.example."],
        ["10 alias.d.example."],
        ["10 alias.d.example.", "20 mx.d.example."],
        ["0 .", "10 mx.d.example."],
        ["10 gone.d.example.", "20 mx.d.example."],
    ]
)
KEYS = st.sampled_from([[], [KEY], [KEY.replace("k=rsa", "k=rsa; t=y")], [KEY, f"{KEY} "]])


def publish(zone: MemoryZone, fix: ProvenFix) -> None:
    """Follow the page: delete the named records, publish the record, and have others consent."""
    for agreed in of_others(fix):
        zone.publish(agreed.name, agreed.rdtype, agreed.value)
    record = fix.record
    kept = [
        value for value in zone.published(record.name, record.rdtype) if value not in fix.removed
    ]
    zone.publish(record.name, record.rdtype, *dict.fromkeys([*kept, record.value]))


def of_others(fix: ProvenFix) -> list[RecordToPublish]:
    """Return the required records of other zones."""
    return [one for one in fix.beside if not is_within(one.name, DOMAIN)]


def names_senders(texts: list[str]) -> bool:
    """Return whether the SPF records authorise a host that DNS knows."""
    own = ("mx", "ip4:", "ipv4:", "include:ok", "redirect=ok")
    records = [text for text in texts if text.startswith("v=spf1")] or texts
    return not texts or any(one in text for text in records for one in own)


def faults(report: DomainReport) -> list[tuple[str, str]]:
    """Return the errors and warnings."""
    wrong = (Severity.ERROR, Severity.WARNING)
    return [(one.id, one.meaning) for one in report.outcome.findings if one.severity in wrong]


@settings(max_examples=15)
@given(
    st.lists(SPF_TEXTS, max_size=2, unique=True),
    st.lists(DMARC, max_size=2, unique=True),
    MX,
    KEYS,
    st.sampled_from([NOWHERE, HERE]),
)
def test_our_own_advice_ends_at_a_good_set_up(
    spf: list[str], dmarc: list[str], mx: list[str], keys: list[str], offered: ReportPlaces
) -> None:
    """Each step fixes a finding and lowers no score. Twenty steps are always enough."""
    zone = MemoryZone(HOSTS)
    for name, rdtype, values in (
        (DOMAIN, "TXT", spf),
        (f"_dmarc.{DOMAIN}", "TXT", dmarc),
        (DOMAIN, "MX", mx),
        (f"s1._domainkey.{DOMAIN}", "TXT", keys),
    ):
        if values:
            zone.publish(name, rdtype, *values)
    report = describe(zone, offered)
    for _ in range(MAX_STEPS):
        fixes = [one for one in report.proofs.values() if len(of_others(one)) == len(one.beside)]
        worth = [fix for fix in fixes if fix.finding.severity is not Severity.NOTE] or fixes
        if not worth:
            break
        fix = worth[0]
        publish(zone, fix)
        after = describe(zone, offered)
        told = [(one.id, one.meaning) for one in after.outcome.findings]
        assert (fix.finding.id, fix.finding.meaning) not in told
        assert after.outcome.score >= report.outcome.score
        # An overlay answers for no other names below a wildcard.
        assert after.outcome.score == fix.score_after or fix.record.name.startswith("*.")
        report = after
    assert not report.proofs
    # A record of the domain cannot fix the remaining findings, so they have only advice.
    left = {finding_id for finding_id, _ in faults(report)}
    is_uncertain = any(word in text for text in spf for word in UNCERTAIN)
    if is_uncertain or not names_senders(spf):
        # A stricter policy of DMARC waits until SPF or DKIM works.
        left = {
            one
            for one in left
            if not one.startswith("spf.") and one not in STRICTER_POLICY_FINDINGS
        }
    in_words = IN_WORDS | ({"dmarc.no-reports"} if offered is NOWHERE else set())
    is_unclear = len(dmarc) > 1 or any("p=bogus" in text for text in dmarc)  # what is meant?
    in_words |= {"dmarc.unreadable"} if is_unclear else set()
    if not report.outcome.can_authenticate:
        in_words |= {
            *STRICTER_POLICY_FINDINGS,
            "dmarc.several",
            "dmarc.unreadable",
            "dmarc.bad-policy",
        }
    assert left <= in_words, (spf, dmarc, mx, keys, faults(report))
