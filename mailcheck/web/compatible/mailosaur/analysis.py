"""Mailosaur's analysis of a message, from the report of a deliverability test."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from mailcheck.api.deliverability.report import ContentCheck, MailReport
from mailcheck.api.shapes import Shape
from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dnsbl.listings import ListingStatus

Result = Literal["Pass", "Warning", "Fail", "Timeout"]
"""``Timeout`` stands for everything that could not be determined."""

_RESULTS: Mapping[AuthResult, Result] = {
    AuthResult.PASS: "Pass",
    AuthResult.FAIL: "Fail",
    AuthResult.PERMERROR: "Fail",
    AuthResult.TEMPERROR: "Timeout",
}
_LISTED: Mapping[ListingStatus, Result] = {
    ListingStatus.LISTED: "Fail",
    ListingStatus.CLEAN: "Pass",
    ListingStatus.UNKNOWN: "Timeout",
}


class Rule(Shape):
    """A rule that the mail met, with the points that it costs."""

    rule: str
    score: float
    description: str


class FilterResults(Shape):
    """The rules of a spam analysis."""

    spam_assassin: tuple[Rule, ...]


class SpamAnalysis(Shape):
    """A spam analysis. As with SpamAssassin, fewer points are better."""

    score: float
    spam_filter_results: FilterResults


class Verdict(Shape):
    """The result of SPF, of a DKIM signature or of DMARC."""

    result: Result
    description: str
    raw_value: str
    tags: dict[str, str]


class BlockList(Shape):
    """The result of a blocklist."""

    id: str
    name: str
    result: Result


class Contents(Shape):
    """Features of a mail that filters dislike."""

    embed: bool
    iframe: bool
    object: bool
    script: bool
    short_urls: bool
    text_size: int
    total_size: int
    missing_alt: bool
    missing_list_unsubscribe: bool


class DnsRecords(Shape):
    """The records of the sending host."""

    a: tuple[str, ...]
    mx: tuple[str, ...]
    ptr: tuple[str, ...]


class SpamAssassin(Shape):
    """The result of SpamAssassin, without rules if the server has none."""

    score: float
    result: Result
    rules: tuple[Rule, ...]


class Deliverability(Shape):
    """A deliverability report."""

    spf: Verdict
    dkim: tuple[Verdict, ...]
    dmarc: Verdict
    block_lists: tuple[BlockList, ...]
    content: Contents
    dns_records: DnsRecords
    spam_assassin: SpamAssassin


def read_report(document: str) -> MailReport:
    """Parse a stored report."""
    return msgspec.json.decode(document, type=MailReport)


def render_spam(report: MailReport) -> SpamAnalysis:
    """Render the deductions of a report as rules."""
    rules = tuple(Rule(one.id, one.points, one.meaning) for one in report.deductions)
    return SpamAnalysis(round(sum(one.score for one in rules), 1), FilterResults(rules))


def render_deliverability(report: MailReport) -> Deliverability:
    """Render the checks of a report."""
    checks, details, html = report.checks, report.report, report.report.html
    spf, dmarc = checks.spf, checks.dmarc
    active = set() if html is None else {name.lower() for name in html.active_elements}
    return Deliverability(
        spf=_verdict(spf.result, spf.detail, spf.record, {}),
        dkim=tuple(
            _verdict(one.result, one.detail, None, {"d": one.domain, "s": one.selector})
            for one in checks.dkim.signatures
        ),
        dmarc=_verdict(dmarc.result, dmarc.detail, dmarc.record, _tags_of(dmarc.record or "")),
        block_lists=tuple(
            BlockList(one.zone, one.name, _LISTED[one.status]) for one in checks.blacklist.listings
        ),
        content=Contents(
            embed="embed" in active,
            iframe="iframe" in active,
            object="object" in active,
            script="script" in active,
            short_urls=bool(details.links.shortened),
            text_size=details.mime.text_size,
            total_size=0 if html is None else html.size,
            missing_alt=html is not None and html.images_without_alt > 0,
            missing_list_unsubscribe=details.unsubscribe.list_unsubscribe is None,
        ),
        dns_records=DnsRecords(details.helo.addresses, (), details.reverse_dns.names),
        spam_assassin=_filter(checks.spamassassin),
    )


def _verdict(result: AuthResult, detail: str, record: str | None, tags: dict[str, str]) -> Verdict:
    return Verdict(_RESULTS.get(result, "Warning"), detail, record or "", tags)


def _tags_of(record: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in record.split(";"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def _filter(found: ContentCheck) -> SpamAssassin:
    result: Result = "Timeout"
    if found.spam is not None:
        result = "Fail" if found.spam else "Pass"
    rules = tuple(Rule(one.name, one.points, one.description) for one in found.rules)
    return SpamAssassin(found.score or 0.0, result, rules)
