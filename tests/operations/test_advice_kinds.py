"""Advice for situations of real domains: it names the cause, and does no harm if followed."""

from typing import Any

from twisted.internet.task import Clock

from mailcheck.checks.findings import RecordToPublish, Severity
from mailcheck.checks.receiver_reports.aggregate import ReportedRow, Row, SpfCheck
from mailcheck.checks.receiver_reports.overview import overview_of
from mailcheck.core.instants import BEGINNING
from mailcheck.operations.reports.summarize_senders import SummarizeSenders
from mailcheck.workers.scheduling import DirectWorker
from tests.fakes.clock_and_randomness import clock_and_randomness_of
from tests.fakes.dkim_keys import RSA_2048
from tests.fakes.memory_zone import MemoryZone
from tests.house import run
from tests.operations.described_domain import describe
from tests.operations.test_following_advice import DOMAIN, KEY
from tests.table import rows

Zone = dict[str, dict[str, list[str]]]

SPF, HOST = "v=spf1 mx -all", {"A": ["8.8.4.1"]}
BASE: Zone = {
    DOMAIN: {"MX": ["10 mx.d.example."], "TXT": [SPF]},
    "mx.d.example": HOST,
    "s1._domainkey.d.example": {"TXT": [KEY]},
    "_dmarc.d.example": {"TXT": ["v=DMARC1; p=reject; rua=mailto:d@d.example"]},
    "good.example": {"TXT": ["v=spf1 ip4:8.8.8.0/24 -all"]},
    "no-end.example": {"TXT": ["v=spf1 ip4:8.8.8.0/24"]},
    "neutral.example": {"TXT": ["v=spf1 ip4:8.8.8.0/24 ?all"]},
    "k._domainkey.tenant.onmicrosoft.com": {"TXT": [KEY]},
}


def spf(text: str) -> Zone:
    """Return a zone with this SPF record."""
    return {DOMAIN: {"MX": ["10 mx.d.example."], "TXT": [text]}}


def dmarc(text: str) -> Zone:
    """Return a zone with this DMARC record."""
    return {"_dmarc.d.example": {"TXT": [text]}}


def key(at: str, **records: list[str]) -> Zone:
    """Return a zone whose only key is published elsewhere."""
    return {"s1._domainkey.d.example": {}, at: records}


def m365(second: str) -> Zone:
    """Return a zone with the two selectors of Microsoft 365."""
    return {
        "selector1._domainkey.d.example": {"CNAME": ["k._domainkey.tenant.onmicrosoft.com."]},
        "selector2._domainkey.d.example": {"CNAME": [f"{second}."]},
    }


CASES: dict[str, tuple[Zone, str, str, str, str | None]] = {
    "redirect without an end": (
        spf("v=spf1 redirect=no-end.example"),
        "spf.no-end",
        "The SPF record of no-end.example (redirect=no-end.example) does not say",
        "Ask the owner of no-end.example to end",
        None,
    ),
    "redirect to a neutral end": (
        spf("v=spf1 mx redirect=neutral.example"),
        "spf.neutral",
        'neutral.example (redirect=neutral.example) ends in "?all"',
        "Do not add it to the record of d.example",
        None,
    ),
    "redirect to a faulty record of the domain": (
        {**spf("v=spf1 redirect=_spf.d.example"), "_spf.d.example": {"TXT": ["v=spf1 mx -all"]}},
        "spf.void",
        '"mx" in the SPF record of _spf.d.example',
        "Fix the record at _spf.d.example.",
        None,
    ),
    "redirect beside all": (
        spf("v=spf1 mx -all redirect=good.example"),
        "spf.ignored-term",
        "is never evaluated",
        'Write "include:good.example" before the all',
        "v=spf1 mx include:good.example -all",
    ),
    "void mx of a dead host": (
        {**spf("v=spf1 mx ip4:8.8.5.0/24 -all"), "mx.d.example": {}},
        "spf.void",
        "leads to no mail host with an address",
        'Keep "mx"',
        None,
    ),
    "void mx without an MX record": (
        {DOMAIN: {"A": ["8.8.4.1"], "TXT": ["v=spf1 mx ip4:8.8.5.0/24 -all"]}},
        "spf.void",
        "leads to no mail host with an address",
        "Remove it only if d.example receives no mail",
        None,
    ),
    "void a of a dead host": (
        {**spf("v=spf1 a:mx.d.example ip4:8.8.5.0/24 -all"), "mx.d.example": {}},
        "spf.void",
        "leads to no mail host with an address",
        'Keep "a:mx.d.example"',
        None,
    ),
    "zone appended to the mail host": (
        {DOMAIN: {"MX": ["10 mx.d.example.d.example."], "TXT": [SPF]}},
        "mx.dead-host",
        "appended to mx.d.example",
        "Name mx.d.example in the MX record",
        "10 mx.d.example.",
    ),
    "zone appended to the mail host of a provider": (
        {DOMAIN: {"MX": ["10 in.host.example.d.example."]}, "in.host.example": HOST},
        "mx.dead-host",
        "appended to in.host.example",
        "end the name with a dot",
        "10 in.host.example.",
    ),
    "next key of Microsoft": (
        m365("selector2-d-example._domainkey.tenant.onmicrosoft.com"),
        "dkim.next-key",
        "Microsoft 365 publishes it when it changes the key",
        "Keep selector2._domainkey.d.example",
        None,
    ),
    "no key at Microsoft yet": (
        {
            "selector1._domainkey.d.example": {
                "CNAME": ["selector1-d-example._domainkey.tenant.a-v1.dkim.mail.microsoft."]
            }
        },
        "dkim.dangling",
        "where there is no key",
        "Turn on DKIM at Microsoft 365, and keep the record",
        None,
    ),
    "key with the zone appended": (
        key("s1._domainkey.d.example.d.example", TXT=[KEY]),
        "dkim.misplaced",
        "s1._domainkey.d.example.d.example, where receivers do not look",
        "Move the DKIM key to s1._domainkey.d.example.",
        KEY,
    ),
    "alias of a key with the zone appended": (
        key("s1._domainkey.d.example.d.example", CNAME=["s1.keys.example."]),
        "dkim.misplaced",
        "The DKIM CNAME is published at s1._domainkey.d.example.d.example",
        "Move the DKIM CNAME to s1._domainkey.d.example.",
        None,
    ),
    "wildcard instead of keys": (
        {"s1._domainkey.d.example": {}, "*.d.example": {"A": ["8.8.4.1"]}},
        "dkim.hidden",
        "DNS answers for every name",
        "Enter the selector",
        None,
    ),
    "DMARC without underscore": (
        {"_dmarc.d.example": {}, "dmarc.d.example": {"TXT": ["v=DMARC1; p=reject"]}},
        "dmarc.misplaced",
        "dmarc.d.example, where receivers do not look",
        "Move the DMARC record to _dmarc.d.example.",
        "v=DMARC1; p=reject",
    ),
    "DMARC of the website": (
        {"_dmarc.d.example": {}, "_dmarc.www.d.example": {"TXT": ["v=DMARC1; p=reject"]}},
        "dmarc.misplaced",
        "_dmarc.www.d.example",
        "Move the DMARC record to _dmarc.d.example.",
        "v=DMARC1; p=reject",
    ),
    "SPF of the website": (
        {DOMAIN: {"MX": ["10 mx.d.example."]}, "www.d.example": {"TXT": [SPF]}},
        "spf.misplaced",
        "www.d.example, where receivers do not look",
        "Move the SPF record to d.example.",
        SPF,
    ),
    "TLS-RPT with the zone appended": (
        {"_smtp._tls.d.example.d.example": {"TXT": ["v=TLSRPTv1; rua=mailto:t@d.example"]}},
        "tls-rpt.misplaced",
        "_smtp._tls.d.example.d.example",
        "Move the TLS-RPT record to _smtp._tls.d.example.",
        "v=TLSRPTv1; rua=mailto:t@d.example",
    ),
    "TLS-RPT without underscore": (
        {"smtp._tls.d.example": {"TXT": ["v=TLSRPTv1; rua=mailto:t@d.example"]}},
        "tls-rpt.misplaced",
        "smtp._tls.d.example",
        "Move the TLS-RPT record to _smtp._tls.d.example.",
        "v=TLSRPTv1; rua=mailto:t@d.example",
    ),
    "public suffix": (
        dmarc("v=DMARC1; p=reject; psd=y; rua=mailto:d@d.example"),
        "dmarc.public-suffix",
        "each subdomain counts as an organization of its own",
        "Remove psd=y",
        "v=DMARC1; p=reject; rua=mailto:d@d.example",
    ),
    "reports to a free mailbox": (
        dmarc("v=DMARC1; p=reject; rua=mailto:someone@gmail.com"),
        "dmarc.report-refused",
        "gmail.com is a mailbox provider",
        "Use an address at d.example",
        None,
    ),
    "pct=0": (
        dmarc("v=DMARC1; p=reject; pct=0; rua=mailto:d@d.example"),
        "dmarc.obsolete-tags",
        "uses pct",
        "Write t=y instead of pct=0",
        "v=DMARC1; p=reject; rua=mailto:d@d.example; t=y",
    ),
}
"""Zone, finding, words of its meaning and of its advice, and the offered record."""


def findings_of(zone: Zone) -> dict[str, tuple[Any, Any]]:
    """Return the findings of the domain by id, each with its verified fix or `None`."""
    report = describe(MemoryZone({**BASE, **zone}))
    found = report.outcome.findings
    return {one.id: (one, report.proofs.get((one.id, one.meaning))) for one in found}


@rows(*CASES)
def test_advice_names_the_cause(name: str) -> None:
    """The finding names the cause, and its advice or record changes it."""
    zone, finding_id, meaning, words, value = CASES[name]
    finding, fix = findings_of(zone)[finding_id]
    assert meaning in finding.meaning
    assert words in finding.fix
    assert value == (None if fix is None else fix.record.value)


@rows(
    (spf("v=spf1 redirect=%{d}.of.example"), {"spf.no-end", "spf.neutral"}),
    (m365("selector2-d-example._domainkey.tenant.onmicrosoft.com"), {"dkim.dangling"}),
    (
        {"selector1._domainkey.d.example": {"TXT": [f"v=DKIM1; s=tlsrpt; p={RSA_2048}"]}},
        {"dkim.key-broken"},
    ),
    (
        {"s1._domainkey.d.example": {"TXT": [KEY, f"v=DKIM1; s=tlsrpt; p={RSA_2048}"]}},
        {"dkim.key-broken"},
    ),
    (dmarc("v=DMARC1; p=reject; psd=y; rua=mailto:d@d.example"), {"dmarc.report-refused"}),
    ({"www.d.example": {"TXT": ["v=spf1 -all"]}, DOMAIN: {}}, {"spf.misplaced"}),
)
def test_what_is_right_is_no_finding(zone: Zone, absent: set[str]) -> None:
    """A macro redirect, a key for TLS reports and the SPF record of a website are right."""
    assert absent.isdisjoint(findings_of(zone))


def test_the_next_key_costs_no_point() -> None:
    """A CNAME that is kept for a rotation is a note."""
    finding, _ = findings_of(m365("selector2-d-example._domainkey.tenant.onmicrosoft.com"))[
        "dkim.next-key"
    ]
    assert finding.severity is Severity.NOTE


def test_a_dead_mail_host_gives_no_two_fixes_that_fail_together() -> None:
    """With the MX record mended, the own server passes by ``mx``, which is not removed."""
    zone = {
        DOMAIN: {
            "MX": ["10 mx.d.example.d.example."],
            "TXT": ["v=spf1 mx include:good.example ?all"],
        }
    }
    found = findings_of(zone)
    assert found["mx.dead-host"][1].record.value == "10 mx.d.example."
    assert found["spf.void"][1] is None
    assert found["spf.neutral"][1].record.value == "v=spf1 mx include:good.example ~all"


def test_a_record_that_authorizes_a_sender_keeps_the_others() -> None:
    """An include that leaves too few lookups for the other senders is not offered."""
    deep = " ".join(f"include:i{number}.example" for number in range(9))
    zone = MemoryZone(
        {
            DOMAIN: {"TXT": ["v=spf1 redirect=deep.example"]},
            "deep.example": {"TXT": [f"v=spf1 {deep} -all"]},
            **{
                f"i{number}.example": {"TXT": [f"v=spf1 ip4:8.8.{number}.0/24 -all"]}
                for number in range(9)
            },
            "mailer.example": {"TXT": ["v=spf1 ip4:8.9.0.1 -all"]},
        }
    )
    check = SpfCheck(DOMAIN, "mfrom", "fail")
    row = Row("8.9.0.1", "none", "fail", "fail", DOMAIN, spf_checks=(check,))
    seen = [ReportedRow(row, 30, "r.example", BEGINNING, BEGINNING)]
    (sender,) = overview_of(DOMAIN, seen, "none", {"8.9.0.1": "out.mailer.example"}).senders
    assert sender.name == "mailer.example"
    senders = SummarizeSenders(DirectWorker(), zone, None, clock_and_randomness_of(Clock()))
    record = run(senders.find_record(sender))
    assert record.value == "v=spf1 ip4:8.9.0.1 redirect=deep.example"


def test_records_for_several_senders_include_each_other() -> None:
    """A domain has one SPF record, so the second record contains the sender of the first."""
    zone = MemoryZone({**BASE, DOMAIN: {**BASE[DOMAIN], "TXT": [SPF, "other"]}})
    senders = SummarizeSenders(DirectWorker(), zone, None, clock_and_randomness_of(Clock()))
    found: list[RecordToPublish] = []
    for source in ("8.9.0.1", "8.9.0.2"):
        check = SpfCheck(DOMAIN, "mfrom", "fail")
        row = Row(source, "none", "fail", "fail", DOMAIN, spf_checks=(check,))
        seen = [ReportedRow(row, 30, "r.example", BEGINNING, BEGINNING)]
        host = {source: f"out.s{source[-1]}.example"}
        (sender,) = overview_of(DOMAIN, seen, "none", host).senders
        found.append(run(senders.find_record(sender, found)))
    assert [one.value for one in found] == [
        "v=spf1 mx ip4:8.9.0.1 -all",
        "v=spf1 mx ip4:8.9.0.1 ip4:8.9.0.2 -all",
    ]
