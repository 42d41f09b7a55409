"""JSON Schemas of the five checks of a mail: SPF, DKIM, DMARC, blocklists, content filter."""

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.content_filter import FilterProblem
from mailcheck.checks.deliverability.report import CheckStatus
from mailcheck.checks.deliverability.summaries import UNKNOWN
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.spf.mail_verdicts import SpfIdentity
from mailcheck.wire.deliverability.report_schemas import FINDINGS
from mailcheck.wire.domains.schemas import DNS_RECORD, LISTING
from mailcheck.wire.schemas import (
    Schema,
    array_of,
    boolean,
    choice,
    number,
    or_null,
    record,
    text,
    whole_number,
)

RESULT = choice(AuthResult, "RFC 8601 2.7; temperror: could not be found out now")

_IDENTITY: dict[str, Schema] = {
    "domain": text(),
    "identity": choice(SpfIdentity),
    "record": or_null(text("the SPF record")),
    "mechanism": or_null(text("the term that matched")),
}

SPF_FIELDS: dict[str, Schema] = {
    **_IDENTITY,
    "ip": text("the address that the mail came from"),
    "helo": record({**_IDENTITY, "result": RESULT}, "the same for the HELO name"),
}

SIGNATURE = record(
    {
        "domain": text("d="),
        "selector": text("s="),
        "algorithm": text("a="),
        "keyType": or_null(text()),
        "keyBits": or_null(whole_number(minimum=0)),
        "result": RESULT,
        "detail": text("one sentence"),
        "aligned": or_null(boolean("whether it counts for DMARC; null: not known")),
        "identity": or_null(text("i=")),
        "canonicalization": or_null(text("c=")),
        "signedFields": array_of(text(), "h="),
        "bodyLength": or_null(whole_number("l=", minimum=0)),
        "recordName": or_null(text("where the key stands")),
    },
    "a DKIM signature of a mail",
)

DMARC_FIELDS: dict[str, Schema] = {
    "domain": or_null(text("the author's")),
    "policy": or_null(choice(Policy, "what receivers are asked to do with failing mail")),
    "organizationalDomain": or_null(text()),
    "record": or_null(text()),
    "recordDomain": or_null(text("where it was found")),
    "spfAligned": or_null(boolean("null: not known")),
    "dkimAligned": or_null(boolean("null: not known")),
}

_RULE = record(
    {
        "name": text(),
        "points": number(),
        "description": text(),
        "counted": boolean(),
        "notCounted": or_null(text("why not: a check of ours says the same")),
    },
    "a rule of the content filter that matched",
)


def _check(results: Schema, fields: dict[str, Schema], description: str) -> Schema:
    shared: dict[str, Schema] = {
        "status": choice(CheckStatus),
        "result": results,
        "detail": text("one sentence"),
        "deduction": number("points that the findings of this check take off", minimum=0),
        "reason": or_null(text("why points are taken off")),
        "fix": or_null(text("what to do first")),
        "publish": or_null(DNS_RECORD),
        "determined": boolean("false: could not be found out, and costs nothing"),
        "findings": FINDINGS,
    }
    return record({**shared, **fields}, description)


_YES_OR_NO = choice(
    (AuthResult.PASS.value, AuthResult.FAIL.value, UNKNOWN), "unknown: could not be found out"
)

SPF_CHECK = _check(RESULT, SPF_FIELDS, "SPF of the envelope sender, reverse DNS and HELO")

DKIM_CHECK = _check(
    RESULT,
    {
        "signatures": array_of(SIGNATURE),
        "unchecked": whole_number("signatures beyond those that are verified", minimum=0),
    },
    "DKIM, signature by signature",
)

DMARC_CHECK = _check(RESULT, DMARC_FIELDS, "DMARC (RFC 9989) of the author's domain")

BLACKLIST_MAIL_CHECK = _check(
    _YES_OR_NO,
    {
        "checked": whole_number("lists that answered", minimum=0),
        "listed": whole_number(minimum=0),
        "unknown": whole_number("lists of which nothing is known", minimum=0),
        "listings": array_of(LISTING),
    },
    "the sending address, and the domains of author, envelope and links",
)

CONTENT_CHECK = _check(
    _YES_OR_NO,
    {
        "score": or_null(number("the filter's points")),
        "threshold": or_null(number()),
        "countedScore": or_null(number("without rules that repeat a check of ours")),
        "spam": or_null(boolean("what the filter itself says")),
        "engine": or_null(text("program and version")),
        "rules": array_of(_RULE),
        "problem": or_null(choice(FilterProblem, "why there is no verdict")),
    },
    "the content filter: SpamAssassin",
)

CHECKS = record(
    {
        "spf": SPF_CHECK,
        "dkim": DKIM_CHECK,
        "dmarc": DMARC_CHECK,
        "blacklist": BLACKLIST_MAIL_CHECK,
        "spamassassin": CONTENT_CHECK,
    },
    "the five checks",
)

_JUDGED: dict[str, Schema] = {
    "result": RESULT,
    "detail": text(),
    "determined": boolean("false where the result is temperror: not judged, or not found out"),
}

AUTHENTICATION = record(
    {
        "spf": record({**_JUDGED, **SPF_FIELDS}),
        "dkim": array_of(SIGNATURE),
        "dmarc": record({**_JUDGED, **DMARC_FIELDS}),
    },
    "whether SPF, DKIM and DMARC vouch for the sender of an inbox message, as information",
)
