"""Mailosaur's analysis of a message, from the report of a deliverability test."""

from collections.abc import Mapping

from mailcheck.api.deliverability.report import ContentCheck, MailReport
from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dnsbl.listings import ListingStatus
from mailcheck.web.compatible.mailosaur.shapes import Json

# "Timeout" stands for everything that could not be determined.
_RESULTS: Mapping[AuthResult, str] = {
    AuthResult.PASS: "Pass",
    AuthResult.FAIL: "Fail",
    AuthResult.PERMERROR: "Fail",
    AuthResult.TEMPERROR: "Timeout",
}
_LISTED: Mapping[ListingStatus, str] = {
    ListingStatus.LISTED: "Fail",
    ListingStatus.CLEAN: "Pass",
    ListingStatus.UNKNOWN: "Timeout",
}


def render_spam(report: MailReport) -> Json:
    """Render the deductions of a report as rules. As with SpamAssassin, fewer points are better."""
    score = sum(deduction.points for deduction in report.deductions)
    rules = [
        _rule(deduction.id, deduction.points, deduction.meaning) for deduction in report.deductions
    ]
    return {"score": round(score, 1), "spamFilterResults": {"spamAssassin": rules}}


def render_deliverability(report: MailReport) -> Json:
    """Render the checks of a report."""
    checks, details, html = report.checks, report.report, report.report.html
    spf, dmarc = checks.spf, checks.dmarc
    active = set() if html is None else {name.lower() for name in html.active_elements}
    return {
        "spf": _verdict(spf.result, spf.detail, spf.record, {}),
        "dkim": [
            _verdict(
                signature.result,
                signature.detail,
                None,
                {"d": signature.domain, "s": signature.selector},
            )
            for signature in checks.dkim.signatures
        ],
        "dmarc": _verdict(dmarc.result, dmarc.detail, dmarc.record, _tags_of(dmarc.record or "")),
        "blockLists": [
            {"id": listing.zone, "name": listing.name, "result": _LISTED[listing.status]}
            for listing in checks.blacklist.listings
        ],
        "content": {
            **{name: name in active for name in ("embed", "iframe", "object", "script")},
            "shortUrls": bool(details.links.shortened),
            "textSize": details.mime.text_size,
            "totalSize": 0 if html is None else html.size,
            "missingAlt": html is not None and html.images_without_alt > 0,
            "missingListUnsubscribe": details.unsubscribe.list_unsubscribe is None,
        },
        "dnsRecords": {"a": details.helo.addresses, "mx": [], "ptr": details.reverse_dns.names},
        "spamAssassin": _filter(checks.spamassassin),
    }


def _rule(name: str, score: float, description: str) -> Json:
    return {"rule": name, "score": score, "description": description}


def _verdict(result: AuthResult, detail: str, record: str | None, tags: Json) -> Json:
    """Render the result of SPF, of a DKIM signature or of DMARC."""
    return {
        "result": _RESULTS.get(result, "Warning"),
        "description": detail,
        "rawValue": record or "",
        "tags": tags,
    }


def _tags_of(record: str) -> Json:
    pairs = (part.partition("=") for part in record.split(";"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def _filter(found: ContentCheck) -> Json:
    """Render the result of SpamAssassin, without rules if the server has none."""
    result = "Timeout"
    if found.spam is not None:
        result = "Fail" if found.spam else "Pass"
    rules = [_rule(rule.name, rule.points, rule.description) for rule in found.rules]
    return {"score": found.score or 0.0, "result": result, "rules": rules}
