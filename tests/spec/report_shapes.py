"""The JSON Schemas of the five checks of a deliverability test and of its report.

The second argument of `record` contains the additional fields.
"""

from tests.spec.matching import Schema
from tests.spec.shapes import (
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    TIMESTAMP,
    WORD,
    array,
    one_of,
    or_null,
    record,
)

JUDGEMENT = one_of("pass", "warn", "fail")

# RFC 8601 section 2.7
RESULT = one_of("none", "neutral", "pass", "fail", "softfail", "policy", "temperror", "permerror")

JUDGED = ("spf", "dkim", "dmarc", "blacklist", "spamassassin")

AREAS = (
    *JUDGED,
    "rdns",
    "helo",
    "authentication",
    "sender",
    "transport",
    "headers",
    "content",
    "links",
    "unsubscribe",
    "arc",
    "dkim2",
    "rspamd",
)

DNS_RECORD = record({"name": WORD, "type": WORD, "value": WORD})

# The records that were verified to fix a finding, and the points that the fix gains.
_FIX = {
    "record": DNS_RECORD,
    "replaces": array(WORD),
    "beside": array(DNS_RECORD),
    "leavesOut": array(record({"term": WORD, "reason": WORD})),
    "gain": NUMBER,
    "scoreAfter": NUMBER,
}

# Former ids of a finding; only if it has any.
ALIASES = {"aliases": array(WORD)}

# Each finding has a severity, a meaning in one sentence, a fix and a deduction.
FINDING = record(
    {
        "area": one_of(*AREAS),
        "id": WORD,
        "severity": one_of("error", "warning", "undetermined", "note"),
        "meaning": WORD,
        "fix": STRING,
        "points": NUMBER,
    },
    {**_FIX, **ALIASES},
)

DEDUCTION = record(
    {"check": one_of(*AREAS), "id": WORD, "points": NUMBER, "meaning": WORD, "fix": WORD},
    {**_FIX, **ALIASES},
)

FINDINGS = array(FINDING)


def _check(result: Schema, fields: dict[str, Schema], more: dict[str, Schema]) -> Schema:
    """Return the schema of a check: the fields that all five checks have, and its own fields."""
    return record(
        {
            "status": JUDGEMENT,
            "result": result,
            "detail": WORD,
            "deduction": NUMBER,
            "reason": or_null(WORD),
            "fix": or_null(WORD),
            **fields,
        },
        {
            "publish": or_null(DNS_RECORD),
            "determined": BOOLEAN,
            "findings": FINDINGS,
            **more,
        },
    )


_SPF_IDENTITY: dict[str, Schema] = {
    "domain": STRING,
    "identity": one_of("mailfrom", "helo"),
    "record": or_null(STRING),
}

SPF_FIELDS: dict[str, Schema] = {**_SPF_IDENTITY, "ip": STRING}

SPF_MORE: dict[str, Schema] = {
    "mechanism": or_null(STRING),
    "helo": record({**_SPF_IDENTITY, "result": RESULT}, {"mechanism": or_null(STRING)}),
}

SIGNATURE = record(
    {
        "domain": STRING,
        "selector": STRING,
        "algorithm": STRING,
        "keyBits": or_null(COUNT),
        "aligned": or_null(BOOLEAN),
    },
    {
        "keyType": or_null(STRING),
        "result": RESULT,
        "detail": STRING,
        "identity": or_null(STRING),
        "canonicalization": or_null(STRING),
        "signedFields": array(STRING),
        "bodyLength": or_null(COUNT),
        "recordName": or_null(STRING),
    },
)

DMARC_FIELDS: dict[str, Schema] = {
    "policy": or_null(one_of("none", "quarantine", "reject")),
    "organizationalDomain": or_null(STRING),
    "spfAligned": or_null(BOOLEAN),
    "dkimAligned": or_null(BOOLEAN),
}

DMARC_MORE: dict[str, Schema] = {
    "domain": or_null(STRING),
    "record": or_null(STRING),
    "recordDomain": or_null(STRING),
}

_LISTING = record(
    {"name": STRING, "zone": STRING, "listed": BOOLEAN, "responseTime": INTEGER},
    {
        "status": one_of("listed", "clean", "unknown", "unsupported", "disabled"),
        "codes": array(STRING),
        "meaning": or_null(STRING),
        "reason": or_null(STRING),
        "weight": INTEGER,
        "delistUrl": or_null(STRING),
        "matched": array(STRING),
    },
)

_RULE = record(
    {"name": WORD, "points": NUMBER, "description": STRING},
    {"counted": BOOLEAN, "notCounted": or_null(WORD)},
)

_RSPAMD = record(
    {
        "detail": WORD,
        "score": or_null(NUMBER),
        "threshold": or_null(NUMBER),
        "countedScore": or_null(NUMBER),
        "spam": or_null(BOOLEAN),
        "engine": or_null(WORD),
        "rules": array(_RULE),
        "problem": or_null(WORD),
        "inScore": BOOLEAN,
        "findings": FINDINGS,
    }
)

CHECKS = record(
    {
        "spf": _check(RESULT, SPF_FIELDS, SPF_MORE),
        "dkim": _check(RESULT, {"signatures": array(SIGNATURE)}, {"unchecked": COUNT}),
        "dmarc": _check(RESULT, DMARC_FIELDS, DMARC_MORE),
        "blacklist": _check(
            one_of("pass", "fail", "unknown"),
            {"checked": COUNT, "listed": COUNT, "unknown": COUNT, "listings": array(_LISTING)},
            {},
        ),
        "spamassassin": _check(
            one_of("pass", "fail", "unknown"),
            {"score": or_null(NUMBER), "threshold": or_null(NUMBER), "rules": array(_RULE)},
            {
                "countedScore": or_null(NUMBER),
                "spam": or_null(BOOLEAN),
                "engine": or_null(STRING),
                "problem": or_null(WORD),
            },
        ),
    }
)

_STRINGS = array(STRING)

_CHECKLIST = record(
    {
        "receiver": WORD,
        "rules": array(
            record(
                {
                    "id": WORD,
                    "text": WORD,
                    "result": one_of("met", "not-met", "not-applicable", "undetermined"),
                }
            )
        ),
    },
    {"name": WORD, "source": WORD, "met": BOOLEAN},
)

_ACTION = one_of("accept", "spam", "unknown", "defer", "reject")

_REPLY_LINE = or_null(record({"code": COUNT, "enhanced": or_null(WORD), "text": WORD}))

_REPLY = record(
    {
        "receiver": WORD,
        "name": WORD,
        "audience": WORD,
        "action": _ACTION,
        "determined": BOOLEAN,
        "reply": _REPLY_LINE,
        "stage": or_null(one_of("connect", "mail", "rcpt", "data")),
        "explanation": WORD,
        "rules": array(
            record(
                {
                    "id": WORD,
                    "requirement": or_null(WORD),
                    "result": one_of("not-met", "undetermined"),
                    "action": _ACTION,
                    "open": BOOLEAN,
                    "reply": _REPLY_LINE,
                    "also": _STRINGS,
                    "explanation": WORD,
                    "source": WORD,
                    "date": WORD,
                }
            )
        ),
    }
)

_HEADERS: dict[str, Schema] = {
    "size": COUNT,
    "fields": _STRINGS,
    "repeated": _STRINGS,
    "from": array(record({"address": STRING, "name": STRING, "domain": STRING})),
    "sender": or_null(STRING),
    "replyTo": or_null(STRING),
    "date": or_null(STRING),
    "dateUtc": or_null(TIMESTAMP),
    "messageId": or_null(STRING),
    "received": COUNT,
    "listFields": _STRINGS,
    "precedence": or_null(STRING),
    "autoSubmitted": or_null(STRING),
}

_MIME: dict[str, Schema] = {
    "size": COUNT,
    "contentType": STRING,
    "hasText": BOOLEAN,
    "hasHtml": BOOLEAN,
    "textSize": COUNT,
    "overlap": or_null(COUNT),
    "longLines": COUNT,
    "longestLine": COUNT,
    "placeholders": _STRINGS,
    "riskyAttachments": _STRINGS,
    "problems": _STRINGS,
    "parts": array(OBJECT),
}

REPORT = record(
    {
        "reverseDns": record(
            {"ip": STRING, "names": _STRINGS, "validatedNames": _STRINGS},
            {"confirmed": or_null(BOOLEAN), "generic": or_null(BOOLEAN)},
        ),
        "helo": record(
            {"name": or_null(STRING), "resolves": or_null(BOOLEAN), "addresses": _STRINGS},
            {"leadsToClient": or_null(BOOLEAN)},
        ),
        "transport": record(
            {
                "tls": or_null(record({"version": WORD, "cipher": WORD})),
                "transcript": array(WORD),
                "findings": FINDINGS,
            },
            {"extended": BOOLEAN},
        ),
        "headers": record({"findings": FINDINGS}, _HEADERS),
        "mime": record({"findings": FINDINGS}, _MIME),
        "html": or_null(OBJECT),
        "links": {
            **record({"urls": _STRINGS, "hosts": _STRINGS, "findings": FINDINGS}),
            "additionalProperties": True,
        },
        "unsubscribe": record(
            {
                "listUnsubscribe": or_null(_STRINGS),
                "listUnsubscribePost": or_null(STRING),
                "findings": FINDINGS,
            },
            {"bodyLinks": COUNT},
        ),
        "arc": record(
            {"result": RESULT, "findings": FINDINGS},
            {
                "detail": or_null(STRING),
                "count": COUNT,
                "seals": array(
                    record(
                        {"instance": COUNT, "domain": STRING, "selector": STRING, "chain": STRING}
                    )
                ),
            },
        ),
        "dkim2": record(
            {"signatures": array(OBJECT), "instances": COUNT, "findings": FINDINGS},
        ),
        "checklists": array(_CHECKLIST, minItems=3),
    },
    # Reports of earlier versions have no replies, and those of servers without rspamd no result.
    {"replies": array(_REPLY, minItems=7), "rspamd": _RSPAMD},
)

# Results as information, without points
_WORDS: dict[str, Schema] = {"result": RESULT, "detail": WORD, "determined": BOOLEAN}

AUTHENTICATION = record(
    {
        "spf": record({**_WORDS, **SPF_FIELDS}, SPF_MORE),
        "dkim": array(SIGNATURE),
        "dmarc": record({**_WORDS, **DMARC_FIELDS}, DMARC_MORE),
    }
)

REPORT_FIELDS: dict[str, Schema] = {
    "report": REPORT,
    "deductions": array(DEDUCTION),
    "scoringVersion": WORD,
    "undetermined": array(one_of(*JUDGED)),
    "contentOnly": BOOLEAN,
    "notes": array(WORD),
    "findings": FINDINGS,
}
