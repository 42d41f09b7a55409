"""JSON Schemas of a deliverability report (SPEC.md 2.5, DECISIONS.md section 3)."""

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.report import Area, CheckStatus
from mailcheck.checks.deliverability.summaries import UNKNOWN
from mailcheck.checks.findings import Severity
from mailcheck.wire.schemas import (
    Schema,
    array_of,
    boolean,
    number,
    or_null,
    record,
    text,
    whole_number,
)

SCORE = number("0.0 to 10.0, one decimal", minimum=0, maximum=10)

RECORD = record(
    {"name": text("absolute, without the last dot"), "type": text(), "value": text()},
    "a DNS record to publish",
)

AREA: Schema = {"type": "string", "enum": [area.value for area in Area]}

FINDING = record(
    {
        "area": AREA,
        "id": text("stable"),
        "severity": {"type": "string", "enum": [one.value for one in Severity]},
        "meaning": text("one sentence"),
        "fix": text("what to do"),
        "points": number("what it takes off", minimum=0),
        "record": RECORD,
    },
    optional=["record"],
)

DEDUCTION = record(
    {
        "check": AREA,
        "id": text("stable"),
        "points": number(minimum=0),
        "meaning": text("one sentence"),
        "fix": text("what to do"),
        "record": RECORD,
    },
    "what takes points off the score",
    optional=["record"],
)

_RESULTS = [*(result.value for result in AuthResult), UNKNOWN]

_CHECK_FIELDS: dict[str, Schema] = {
    "status": {"type": "string", "enum": [status.value for status in CheckStatus]},
    "result": {"type": "string", "enum": _RESULTS},
    "detail": text("one sentence"),
    "deduction": number("points that the findings of this check take off", minimum=0),
    "reason": or_null(text("why points are taken off")),
    "fix": or_null(text("what to do first")),
    "publish": or_null(RECORD),
    "determined": boolean("false: could not be found out, and costs nothing"),
    "findings": array_of(FINDING),
}

CHECKS = record(
    {
        "spf": record(
            {
                **_CHECK_FIELDS,
                "domain": text(),
                "identity": text("mailfrom"),
                "ip": text("the address that the mail came from"),
                "record": or_null(text("the SPF record")),
                "mechanism": or_null(text("the term that matched")),
            },
            "SPF of the envelope sender, reverse DNS and HELO",
        ),
        "dkim": record({**_CHECK_FIELDS, "signatures": array_of(record({}))}),
        "dmarc": record(
            {
                **_CHECK_FIELDS,
                "domain": or_null(text("the author's")),
                "policy": or_null(text("what receivers are asked to do with failing mail")),
                "organizationalDomain": or_null(text()),
                "spfAligned": or_null(boolean()),
                "dkimAligned": or_null(boolean()),
            }
        ),
        "blacklist": record(
            {
                **_CHECK_FIELDS,
                "checked": whole_number("lists that answered", minimum=0),
                "listed": whole_number(minimum=0),
                "unknown": whole_number("lists of which nothing is known", minimum=0),
                "listings": array_of(record({})),
            },
            "the sending address, and the domains of author, envelope and links",
        ),
        "spamassassin": record(
            {
                **_CHECK_FIELDS,
                "score": or_null(number("the filter's points")),
                "threshold": or_null(number()),
                "countedScore": or_null(number("without rules that repeat a check of ours")),
                "rules": array_of(record({})),
            }
        ),
    },
    "the five checks",
)

EMAIL = record(
    {
        "from": text("the author's address"),
        "subject": text(),
        "bounceAddress": or_null(text("the envelope sender; null for none")),
    }
)

REPORT_FIELDS: dict[str, Schema] = {
    "score": SCORE,
    "email": EMAIL,
    "notes": array_of(text(), "what to know before reading on"),
    "checks": CHECKS,
    "deductions": array_of(DEDUCTION, "their sum is 10 - score, or more where the score is 0"),
    "scoringVersion": text(),
    "undetermined": array_of(text(), "checks that could not be determined"),
    "report": record({}, "reverse DNS, HELO, transport, headers, MIME, HTML, links, checklists"),
    "findings": array_of(FINDING, "all findings, what costs most first"),
}
"""What a completed test adds to a test."""
