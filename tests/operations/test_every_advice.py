"""All kinds of advice, followed to the end: the intended mail passes afterwards."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from msgspec import Struct
from twisted.internet.defer import Deferred, succeed

import mailcheck.checks
from mailcheck.checks.bimi.evaluate import FileFetch
from mailcheck.checks.bimi.svg import MEDIA_TYPE
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.hosts.mta_sts import FetchOutcome, PolicyFetch
from mailcheck.checks.proofs import ProvenFix
from mailcheck.checks.spf.mail import SpfOfMail, evaluate_spf_of_mail
from mailcheck.core.domains.receiver_reports import ReportPlaces
from mailcheck.operations.domains.describe_domain import DomainReport
from tests.checks.test_dkim_repair import quote
from tests.fakes.dkim_keys import RSA_2048
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.marks import GOOD_LOGO, LOGO_URL
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.operations.described_domain import describe
from tests.operations.scored_mails import HELO, MAIL, received, score, zone_with
from tests.operations.test_following_advice import of_others, publish
from tests.table import rows

DOMAIN = "d.example"
DMARC, KEY_NAME = f"_dmarc.{DOMAIN}", f"s1._domainkey.{DOMAIN}"
STS, RPT = f"_mta-sts.{DOMAIN}", f"_smtp._tls.{DOMAIN}"
BIMI = f"default._bimi.{DOMAIN}"
SPF = "v=spf1 mx ip4:8.8.5.0/24 -all"
MEANT = f"v=DMARC1; p=reject; rua=mailto:d@{DOMAIN}"
KEY = f"v=DKIM1; k=rsa; p={RSA_2048}"
HOST, OTHER = "8.8.4.1", "8.8.5.7"
"""The address of the mail host, and an address in the network that SPF names."""

GOOD = {
    DOMAIN: {"MX": ["10 mx.d.example."], "TXT": [SPF]},
    "mx.d.example": {"A": [HOST]},
    "a.example": {"TXT": ["v=spf1 ip4:8.8.6.1 -all"]},
    DMARC: {"TXT": [MEANT]},
    KEY_NAME: {"TXT": [quote(KEY)]},
    "d.example._report._dmarc.in.here.example": {"TXT": ["v=DMARC1;"]},
}
POLICY = "version: STSv1\nmode: enforce\nmx: mx.d.example\nmax_age: 604800\n"
OFFERED = ReportPlaces("dmarc-abc@in.here.example", "tls-abc@here.example", "")
MAX_STEPS = 12
SERIOUS = (Severity.ERROR, Severity.WARNING)


class Case(Struct, frozen=True):
    """Published records, and the addresses whose mail should pass SPF.

    ``ends``: findings that only others can fix, or whose advice contains no record.
    """

    texts: dict[tuple[str, str], Sequence[str]]
    senders: Sequence[str] = (HOST, OTHER)
    ends: Sequence[str] = ()


def spf(*texts: str, senders: Sequence[str] = (HOST, OTHER), ends: Sequence[str] = ()) -> Case:
    """Publish SPF records."""
    return Case({(DOMAIN, "TXT"): texts}, senders, ends)


def dmarc(*texts: str, ends: Sequence[str] = ()) -> Case:
    """Publish DMARC records."""
    return Case({(DMARC, "TXT"): texts}, ends=ends)


def key(*texts: str) -> Case:
    """Publish TXT records at the selector."""
    return Case({(KEY_NAME, "TXT"): texts})


def mx(*values: str, ends: Sequence[str] = ()) -> Case:
    """Publish MX records. Mail is sent from the network that SPF names."""
    return Case({(DOMAIN, "MX"): values}, (OTHER,), ends)


def silent(policy: str) -> Case:
    """Declare in the records that the domain uses no mail: no mail host and no key."""
    texts = {(DOMAIN, "TXT"): ("v=spf1 -all",), (DMARC, "TXT"): (policy,)}
    return Case({**texts, (DOMAIN, "MX"): (), (KEY_NAME, "TXT"): ()}, senders=())


def caa(*values: str) -> Case:
    """Publish CAA records."""
    return Case({(DOMAIN, "CAA"): values})


def bimi(*texts: str) -> Case:
    """Publish BIMI records."""
    return Case({(BIMI, "TXT"): texts})


def aliased(name: str, text: str) -> Case:
    """Publish a TXT record at the target of a CNAME."""
    there = f"there.{DOMAIN}"
    return Case({(name, "CNAME"): (f"{there}.",), (there, "TXT"): (text,)})


CASES: dict[str, Case] = {
    "spf.absent": spf(senders=(HOST,)),
    "spf.absent without a mail host": Case(
        {(DOMAIN, "TXT"): (), (DOMAIN, "MX"): (), (DOMAIN, "A"): (OTHER,)}, (OTHER,)
    ),
    "spf.unreadable": spf(" v=spf1 mx ip4:8.8.5.0/24 -all"),
    "spf.misplaced with the name of the website": Case(
        {(DOMAIN, "TXT"): (), ("www.d.example", "TXT"): (SPF,)}
    ),
    "spf.misplaced": Case({(DOMAIN, "TXT"): (), ("spf.d.example", "TXT"): (SPF,)}),
    "spf.several": spf("v=spf1 mx ~all", "v=spf1 ip4:8.8.5.0/24 -all"),
    "spf.ignored-term": spf("v=spf1 mx -all ip4:8.8.5.0/24"),
    "spf.syntax": spf("v=spf1 mx ipv4:8.8.5.0/24 -all"),
    "spf.too-many-voids": spf(
        "v=spf1 mx ip4:8.8.5.0/24 a:no1.d.example a:no2.d.example a:no3.d.example -all"
    ),
    "spf.too-many-lookups": spf("v=spf1 mx ip4:8.8.5.0/24" + " a:mx.d.example" * 10 + " -all"),
    "spf.void": spf("v=spf1 mx ip4:8.8.5.0/24 a:no.d.example -all"),
    "spf.include-absent": spf("v=spf1 mx ip4:8.8.5.0/24 include:gone.example -all"),
    "spf.include-loop": spf("v=spf1 mx ip4:8.8.5.0/24 include:d.example -all"),
    "spf.open": spf("v=spf1 mx ip4:8.8.5.0/24 +all"),
    "spf.ptr": spf("v=spf1 mx ip4:8.8.5.0/24 ptr -all", ends=["spf.ptr"]),
    "spf.glued-terms": spf("v=spf1 exists:%{i}.x.d.example,a:mx.d.example ip4:8.8.5.0/24 -all"),
    "spf.voids-before-senders": Case(
        {
            (DOMAIN, "TXT"): (
                "v=spf1 mx a:h1.d.example a:h2.d.example a:h3.d.example ip6:2600:5::/48 -all",
            ),
            **{(f"h{number}.d.example", "A"): (f"8.8.6.{number}",) for number in (1, 2, 3)},
        },
        (HOST, "8.8.6.3", "2600:5::1"),
    ),
    "spf.no-end": spf("v=spf1 mx ip4:8.8.5.0/24"),
    "spf.neutral": spf("v=spf1 mx ip4:8.8.5.0/24 ?all"),
    "dmarc.absent": dmarc(),
    "dmarc.several": dmarc(MEANT, f"v=DMARC1; p=none; rua=mailto:e@{DOMAIN}"),
    "dmarc.no-policy": dmarc(f"v=DMARC1; P=REJECT; RUA=mailto:d@{DOMAIN}"),
    "dmarc.unreadable": dmarc(f"v=DMARC1 p=reject rua=mailto:d@{DOMAIN}"),
    "dmarc.misplaced": Case({(DMARC, "TXT"): (), (DOMAIN, "TXT"): (SPF, MEANT)}),
    "dmarc.misplaced without underscore": Case(
        {(DMARC, "TXT"): (), ("dmarc.d.example", "TXT"): (MEANT,)}
    ),
    "dmarc.public-suffix": dmarc(f"{MEANT}; psd=y"),
    "dkim.misplaced": Case({(KEY_NAME, "TXT"): (), (f"{KEY_NAME}.{DOMAIN}", "TXT"): (KEY,)}),
    "mta-sts.misplaced": Case({(f"{STS}.{DOMAIN}", "TXT"): ("v=STSv1; id=7",)}),
    "tls-rpt.misplaced": Case(
        {(f"{RPT}.{DOMAIN}", "TXT"): (f"v=TLSRPTv1; rua=mailto:t@{DOMAIN}",)}
    ),
    "dmarc.report-refused": dmarc(
        "v=DMARC1; p=reject; rua=mailto:d@no.example", ends=["dmarc.report-refused"]
    ),
    "dmarc.policy-none": dmarc(f"v=DMARC1; p=none; rua=mailto:d@{DOMAIN}"),
    "dmarc.weaker-subdomains": dmarc(f"{MEANT}; sp=none"),
    "dmarc.no-reports": dmarc("v=DMARC1; p=reject"),
    "dmarc.syntax": dmarc(f"{MEANT},e@{DOMAIN}"),
    "dmarc.bad-policy": dmarc(f"v=DMARC1; p=rejct; rua=mailto:d@{DOMAIN}"),
    "dmarc.obsolete-tags": dmarc(f"{MEANT}; pct=100"),
    "dmarc.testing": dmarc(f"{MEANT}; t=y"),
    "dkim.several-keys": key(KEY, f"{KEY};"),
    "dkim.key-broken": key(f"v=DKIM1\\; k=rsa\\; p={RSA_2048}"),
    "dkim.stray-record": key(KEY, "default._domainkey"),
    "dkim.testing": key(f"{KEY}; t=y"),
    "mx.no-null": silent(MEANT),
    "dkim.no-wildcard": silent(MEANT),
    "dmarc.not-reject": silent(MEANT.replace("reject", "quarantine")),
    "mx.absent": Case({(DOMAIN, "MX"): (), ("mail.d.example", "A"): (HOST,)}),
    "mx.implicit": Case({(DOMAIN, "MX"): (), (DOMAIN, "A"): (OTHER,)}, (OTHER,), ("mx.absent",)),
    "mx.null-among-others": mx("0 .", "10 mx.d.example."),
    "mx.address-literal": Case(
        {(DOMAIN, "MX"): ("10 8.8.4.1.",), ("mail.d.example", "A"): (HOST,)}
    ),
    "mx.alias": Case(
        {(DOMAIN, "MX"): ("10 alias.d.example.",), ("alias.d.example", "CNAME"): ("mx.d.example.",)}
    ),
    "mx.dead-host with the name of the zone": Case(
        {(DOMAIN, "MX"): ("10 mx.d.example.d.example.",)}
    ),
    "mx.dead-host": mx("10 gone.d.example.", "20 mx.d.example."),
    "mx.not-public": Case(
        {
            (DOMAIN, "MX"): ("10 in.d.example.", "20 mx.d.example."),
            ("in.d.example", "A"): ("10.0.0.1",),
        }
    ),
    "dmarc.policy-none behind an alias": aliased(DMARC, f"v=DMARC1; p=none; rua=mailto:d@{DOMAIN}"),
    "dmarc.unreadable behind an alias": aliased(DMARC, f"v=DMARC1 p=reject rua=d@{DOMAIN}"),
    "dmarc.dangling": Case({(DMARC, "CNAME"): (f"there.{DOMAIN}.",)}),
    "dkim.key-broken behind an alias": aliased(KEY_NAME, f"v=DKIM1;; p={RSA_2048}"),
    "tls-rpt.unreadable behind an alias": aliased(RPT, f"v=tlsrptv1; rua=t@{DOMAIN}"),
    "mta-sts.unreadable behind an alias": aliased(STS, "v=stsv1; id=7"),
    "mta-sts.unreadable": Case({(STS, "TXT"): ("v=stsv1; id=7",)}),
    "mta-sts.syntax": Case({(STS, "TXT"): ("v=STSv1; id=2026-01-02",)}),
    "mta-sts.several": Case({(STS, "TXT"): ("v=STSv1; id=1", "v=STSv1; id=2")}),
    "tls-rpt.absent": Case({}),
    "tls-rpt.several": Case(
        {(RPT, "TXT"): (f"v=TLSRPTv1; rua=mailto:t@{DOMAIN}", "v=TLSRPTv1; rua=mailto:u@x.example")}
    ),
    "tls-rpt.unreadable": Case({(RPT, "TXT"): (f"v=tlsrptv1; rua=mailto:t@{DOMAIN}",)}),
    "caa.contradiction": caa('0 issue ";"', '0 issue "ca.example"'),
    "caa.syntax": caa('0 issuemail "https://ca.example/"'),
    "caa.reserved-flags": caa('1 issue "ca.example"'),
    "caa.unknown-critical": caa('128 isuemail "ca.example"'),
    "caa.unknown-critical without a similar tag": caa('128 tbs "x"'),
    "caa.unknown-tag": caa('0 isuewild ";"'),
    "caa.bad-report-address": caa('0 iodef "security@d.example"'),
    "bimi.several": bimi(f"v=BIMI1; l={LOGO_URL};", "v=BIMI1; l=https://b.example/b.svg;"),
    "bimi.unreadable": bimi(f"v=bimi1; l={LOGO_URL};"),
    "bimi.syntax": bimi(f"v=BIMI1; l={LOGO_URL}; a"),
    "bimi.not-https": bimi(f"v=BIMI1; l={LOGO_URL.replace('https', 'http')};"),
    "bimi.bad-url": bimi(f"v=BIMI1; l={LOGO_URL.removeprefix('https://')};"),
    "bimi.bad-preference": bimi(f"v=BIMI1; l={LOGO_URL}; avp=Brand;"),
    "bimi.unreadable behind an alias": aliased(BIMI, f"v=bimi1; l={LOGO_URL};"),
    "tls-rpt.syntax": Case({(RPT, "TXT"): (f"v=TLSRPTv1; rua=t@{DOMAIN}",)}),
}
"""Cases by the id of the finding that they cause, with a suffix if there are several."""


class _Policies(FakeHosts):
    """Serves the policy that the records announce, and a logo without a certificate."""

    def fetch_logo(self, _: str) -> Deferred[FileFetch]:
        """Return the logo."""
        return succeed(FileFetch(FetchOutcome.FETCHED, GOOD_LOGO, MEDIA_TYPE))

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Return the policy."""
        return succeed(PolicyFetch(FetchOutcome.FETCHED, POLICY))


def zone_of(case: Case) -> MemoryZone:
    """Publish the records that cause a finding."""
    aliases = {name for name, rdtype in case.texts if rdtype == "CNAME"}
    zone = MemoryZone({name: node for name, node in GOOD.items() if name not in aliases})
    for (name, rdtype), values in case.texts.items():
        zone.publish(name, rdtype, *(map(quote, values) if rdtype == "TXT" else values))
    return zone


def passing(zone: MemoryZone, senders: Iterable[str]) -> set[str]:
    """Return the senders whose mail passes SPF."""

    def judge(sender: str, answers: Answers) -> SpfOfMail:
        return evaluate_spf_of_mail(ip_address(sender), DOMAIN, f"a@{DOMAIN}", DOMAIN, answers)

    return {one for one in senders if settle(zone, partial(judge, one)).has_pass}


def worse(before: Sequence[Finding], after: Sequence[Finding], mended: Finding) -> list[str]:
    """Return findings that a fix has caused and that are as severe as the fixed one."""
    had = {one.id for one in before}
    return [
        one.id
        for one in after
        if one.id not in had
        and one.severity in SERIOUS
        and one.severity.rank <= mended.severity.rank
    ]


def named_in(zone: MemoryZone, rdtype: str = "TXT") -> set[str]:
    """Return the report addresses and networks in the published records."""
    names = (DOMAIN, DMARC, RPT, "spf.d.example", f"there.{DOMAIN}")
    texts = [text for name in names for text in zone.published(name, rdtype)]
    found = [re.findall(r"[a-z]+@[a-z.]*[a-z]|ip4:[0-9./]+|include:[a-z.]+", one) for one in texts]
    return {one for some in found for one in some}


@rows(*CASES)
def test_advice_is_good_to_its_end(name: str) -> None:
    """Each step fixes its finding, causes no worse one and loses no sender. No finding remains."""
    case, finding_id = CASES[name], name.partition(" ")[0]
    zone = zone_of(case)
    named = named_in(zone)
    report = describe(zone, OFFERED, _Policies())
    ids = [one.id for one in report.outcome.findings]
    assert finding_id in ids
    fixes = {known: fix for (known, _), fix in report.proofs.items()}
    is_told = case.ends or finding_id == "dmarc.dangling"
    assert finding_id in fixes or is_told, "no record is shown for it"
    could = passing(zone, case.senders)
    for _ in range(MAX_STEPS):
        fix = next(_to_follow(report, finding_id), None)
        if fix is None:
            break
        before, had_passed = report.outcome, could
        publish(zone, fix)
        report = describe(zone, OFFERED, _Policies())
        after = report.outcome
        assert (fix.finding.id, fix.finding.meaning) not in _told(after.findings)
        assert not worse(before.findings, after.findings, fix.finding)
        assert after.score >= before.score
        # An overlay answers for no other names below a wildcard.
        assert after.score == fix.score_after or fix.record.name.startswith("*.")
        could = passing(zone, case.senders)
        assert could >= had_passed
    left = {one.id for one in report.outcome.findings if one.severity in SERIOUS}
    assert left <= set(case.ends)
    assert could == set(case.senders)
    kept = [one.record.key_data for one in report.records.dkim.usable_keys]
    assert kept == ([RSA_2048] if case.senders else [])
    pointless = {"include:gone.example", "include:d.example"}
    assert named - pointless <= named_in(zone)
    policies = {policy.value for policy in Policy if policy.value in str(case.texts).lower()}
    if "reject" in policies and report.records.dmarc.policy is not None:
        assert report.records.dmarc.policy is Policy.REJECT


def _to_follow(report: DomainReport, finding_id: str) -> Iterator[ProvenFix]:
    """Yield the fixes that the owner can publish: the one under test first, then by severity."""
    fixes = [one for one in report.proofs.values() if len(of_others(one)) == len(one.beside)]
    return iter(sorted(fixes, key=lambda one: (one.finding.id != finding_id, _rank(one))))


def _rank(fix: ProvenFix) -> int:
    return fix.finding.severity.rank


def _told(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    return [(one.id, one.meaning) for one in findings]


PTR = "10.4.8.8.in-addr.arpa"
SENDER = "sender.example"
MAIL_CASES: dict[str, tuple[dict[str, dict[str, list[str]]], list[str]]] = {
    "rdns.absent": ({}, [PTR]),
    "rdns.unconfirmed": ({PTR: {"PTR": ["li1.members.example."]}}, []),
    "rdns.generic": (
        {
            PTR: {"PTR": ["8-8-4-10.dyn.provider.example."]},
            "8-8-4-10.dyn.provider.example": {"A": ["8.8.4.10"]},
        },
        [],
    ),
    "spf.result-none": ({SENDER: {"MX": [f"10 {HELO}."]}}, []),
    "spf.result-fail": ({SENDER: {"MX": [f"10 {HELO}."], "TXT": ["v=spf1 -all"]}}, []),
    "spf.result-softfail": ({SENDER: {"MX": [f"10 {HELO}."], "TXT": ["v=spf1 ~all"]}}, []),
    "spf.result-neutral": ({SENDER: {"MX": [f"10 {HELO}."], "TXT": ["v=spf1 ?all"]}}, []),
    "spf.result-permerror": ({SENDER: {"MX": [f"10 {HELO}."], "TXT": ["v=spf1 mx mx:-all"]}}, []),
    "dmarc.no-record": ({}, ["_dmarc.sender.example"]),
}
"""By the id of a finding about a mail: replaced records, and deleted names."""


@rows(*MAIL_CASES)
def test_advice_about_a_mail_is_good_to_its_end(finding_id: str) -> None:
    """The mail gets the score that the report promised, and the full score in the end."""
    records, without = MAIL_CASES[finding_id]
    zone = zone_with(records, without=without)
    mail = received(MAIL) if finding_id.startswith("spf.") else received()
    report = score(zone, mail)
    assert finding_id in [one.finding.id for one in report.score.charged]
    assert finding_id in [known for known, _ in report.proofs]
    for _ in range(MAX_STEPS):
        fixes = list(report.proofs.values())
        worth = [one for one in fixes if one.finding.severity is not Severity.NOTE]
        if not worth:
            break
        fix = next((one for one in worth if one.finding.id == finding_id), worth[0])
        for beside in fix.beside:
            zone.publish(beside.name, beside.rdtype, beside.value)
        publish(zone, fix)
        after = score(zone, mail)
        assert after.score.tenths >= max(fix.score_after, report.score.tenths)
        report = after
    assert finding_id not in [one.finding.id for one in report.score.deductions]
    spf_of_mail = report.evidence.authentication.spf
    assert spf_of_mail.has_pass or not finding_id.startswith("spf.")


ROOT = Path(mailcheck.checks.__file__).parent
BY_NAME = {
    "dkim.key-broken",
    "spf.include-absent",
    "spf.include-loop",
    *("mx.dead-host", "mx.not-public"),
    *("rdns.absent", "rdns.unconfirmed", "rdns.generic"),
    *(f"spf.result-{word}" for word in ("none", "fail", "softfail", "neutral", "permerror")),
}
"""Findings whose ids are not written beside their record in the code."""

ELSEWHERE = {
    **dict.fromkeys(
        ("mx.no-null", "dmarc.not-reject", "dkim.no-wildcard"),
        "tests/operations/test_domains_that_send_nothing.py",
    ),
    "spf.too-many-mx": "it is about a record of another domain, which no case here can fix",
    "helo.other-address": "tests/checks/test_helo.py",
    "helo.unresolvable": "tests/checks/test_helo.py",
    **{
        f"doctor.{name}": "tests/checks/test_own_zone.py"
        for name in (
            *("mx.absent", "mx.elsewhere", "spf.open", "dmarc.open"),
            *("host.elsewhere", "host.absent"),
        )
    },
}
"""Findings whose records are followed in other tests, or cannot be followed."""


def _with_records() -> set[str]:
    """Return the ids of the findings that propose a record, read from the code."""
    found = set(BY_NAME)
    texts = (path.read_text("utf-8") for path in ROOT.rglob("*.py"))
    for text in (text for text in texts if "proposed=" in text):
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id != "make_finding" or not isinstance(node.args[0], ast.Constant):
                continue
            if any(keyword.arg == "proposed" for keyword in node.keywords):
                found.add(str(node.args[0].value))
    return found


def test_every_kind_of_advice_is_followed() -> None:
    """Each finding that can propose a record has a case here, or a reason why it has none."""
    assert not _with_records() - {*CASES, *MAIL_CASES, *ELSEWHERE}
