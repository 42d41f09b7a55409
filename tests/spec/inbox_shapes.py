"""The JSON Schemas of inbox objects and of errors."""

from tests.spec.matching import Schema
from tests.spec.report_shapes import AUTHENTICATION
from tests.spec.resources import LISTED_FIELDS, LISTED_MORE, MESSAGE_AUTHOR, WHOLE_FIELDS
from tests.spec.shapes import (
    ADDRESS,
    BOOLEAN,
    CALENDAR_DATE,
    COUNT,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    TIMESTAMP,
    UUID,
    WORD,
    array,
    one_of,
    or_null,
    record,
    shape,
)

_TRUE: Schema = {"const": True}

_ATTACHMENT = record(
    {
        "id": WORD,
        "filename": STRING,
        "contentType": STRING,
        "size": COUNT,
        "contentId": or_null(STRING),
        "url": {"type": "string", "pattern": "^https?://.+/api/v1/inbox/messages/.+"},
    }
)

_ENVELOPE = record(
    {
        "mailFrom": STRING,
        "rcptTo": STRING,
        "helo": STRING,
        "clientAddress": STRING,
        "tls": or_null(record({"version": STRING, "cipher": STRING})),
    }
)

_CANDIDATE = record(
    {
        "kind": one_of("code", "link", "mailto", "app"),
        "value": STRING,
        "score": INTEGER,
        "accepted": BOOLEAN,
        "reasons": array(STRING),
    }
)

_FAULT = record({"tag": WORD, "does": WORD, "goodSender": WORD})

FAULTS = shape(
    record(
        {
            "every": or_null({"type": "integer", "minimum": 1, "maximum": 1000}),
            "enabled": BOOLEAN,
            "faults": {**array(_FAULT), "minItems": 9, "maxItems": 9},
        }
    )
)

_WEBHOOK = {
    "id": WORD,
    "url": {"type": "string", "pattern": "^(https?://|mailto:)"},
    "filter": record(
        {},
        {
            "tag": STRING,
            "tagPrefix": STRING,
            "to": STRING,
            "from": STRING,
            "subject": STRING,
            "header": array(STRING),
            "text": STRING,
            "hasAttachment": BOOLEAN,
        },
    ),
    "createdAt": TIMESTAMP,
    "state": one_of("active", "paused", "ended"),
    "cursor": WORD,
    "failingSince": or_null(TIMESTAMP),
    "failures": COUNT,
    "problem": STRING,
    "provider": or_null(WORD),
    "verificationKey": or_null(WORD),
    "nextAttemptAt": or_null(TIMESTAMP),
}

_SECRET: Schema = {"type": "string", "pattern": "^whsec_[A-Za-z0-9+/]{43}=$"}

_ATTEMPT = record(
    {
        "id": {"type": "string", "pattern": "^(msg|test)_[a-z0-9-]+$"},
        "at": TIMESTAMP,
        "delivered": BOOLEAN,
        "status": or_null({"type": "integer", "minimum": 100, "maximum": 599}),
        "problem": STRING,
        "milliseconds": COUNT,
    }
)

WEBHOOK = shape(record(_WEBHOOK))

WEBHOOK_MADE = shape(record({**_WEBHOOK, "secret": _SECRET}))

WEBHOOK_ROTATED = shape(record({**_WEBHOOK, "secret": _SECRET, "earlierSignsUntil": TIMESTAMP}))

WEBHOOK_SHOWN = shape(record({**_WEBHOOK, "deliveries": array(_ATTEMPT, maxItems=20)}))

WEBHOOKS = shape(record({"webhooks": array(record(_WEBHOOK), maxItems=10)}))

WEBHOOK_TEST = shape(
    _ATTEMPT,
    what_was_not_delivered_has_a_problem=lambda body: body["delivered"] == (body["problem"] == ""),
)

WEBHOOK_DELETED = shape(record({"success": _TRUE, "id": WORD}))

MESSAGE = shape(
    record(
        {
            **WHOLE_FIELDS,
            **LISTED_MORE,
            "addresses": record(
                dict.fromkeys(("to", "cc", "bcc", "replyTo"), array(MESSAGE_AUTHOR))
            ),
            "attachments": array(_ATTACHMENT),
            "envelope": _ENVELOPE,
            "headerList": array(array(STRING, minItems=2, maxItems=2)),
            "extraction": array(_CANDIDATE),
        },
        {"problems": array(STRING), "request": STRING, "authentication": AUTHENTICATION},
    ),
    headers_and_headerList_say_the_same=lambda body: (
        body["headers"]
        == {
            name.lower(): "\n".join(
                value for other, value in body["headerList"] if other.lower() == name.lower()
            )
            for name, _ in body["headerList"]
        }
    ),
    links_come_without_duplicates=lambda body: len(set(body["links"])) == len(body["links"]),
    an_attachments_url_ends_in_its_id=lambda body: all(
        one["url"].endswith(f"/inbox/messages/{body['id']}/attachments/{one['id']}")
        for one in body["attachments"]
    ),
)

OVERVIEW = shape(
    record(
        {
            "address": ADDRESS,
            "mailbox": WORD,
            "domain": WORD,
            "retentionHours": NUMBER,
            "total": COUNT,
            "tags": array(record({"tag": STRING, "count": COUNT, "latestAt": TIMESTAMP})),
            "cursor": WORD,
        },
        {"email": ADDRESS, "tag": STRING, "tagTotal": COUNT, "mailServer": WORD, "hint": WORD},
    ),
    the_address_is_mailbox_and_domain=lambda body: (
        body["address"] == f"{body['mailbox']}@{body['domain']}"
    ),
)

INBOX_ADDRESS = shape(
    record(
        {
            "address": ADDRESS,
            "email": ADDRESS,
            "tag": STRING,
            "mailbox": WORD,
            "domain": WORD,
            "cursor": WORD,
        }
    ),
    email_and_address_are_the_same=lambda body: body["email"] == body["address"],
    the_address_carries_the_tag=lambda body: (
        body["address"]
        == f"{body['mailbox']}{'+' if body['tag'] else ''}{body['tag']}@{body['domain']}"
    ),
)

_LISTED = record({**LISTED_FIELDS, **LISTED_MORE, "isRead": BOOLEAN}, {"linksLeftOut": COUNT})

MESSAGES = shape(
    record(
        {
            "messages": array(_LISTED, maxItems=100),
            "nextPage": or_null({"type": "integer", "minimum": 2}),
            "total": COUNT,
            "cursor": WORD,
        },
        {"notSearched": {"type": "integer", "minimum": 1}},
    ),
    newest_come_first=lambda body: (
        [one["receivedAt"] for one in body["messages"]]
        == sorted((one["receivedAt"] for one in body["messages"]), reverse=True)
    ),
)

RAW = shape(record({"id": UUID, "raw": STRING, "encoding": one_of("utf-8", "base64")}))

DELETED = shape(record({"success": _TRUE, "id": UUID}))

BULK_DELETED = shape(record({"success": _TRUE, "deleted": COUNT}))

SHARE = shape(record({"id": UUID, "shareUrl": LISTED_FIELDS["shareUrl"], "expiresAt": TIMESTAMP}))

_SEEN = record(
    {
        "id": UUID,
        "to": STRING,
        "tag": STRING,
        "from": MESSAGE_AUTHOR,
        "subject": STRING,
        "receivedAt": TIMESTAMP,
        "cursor": WORD,
        "reasons": array(WORD),
    }
)

_REJECTED = record(
    {"to": STRING, "from": STRING, "client": STRING, "reason": WORD, "refusedAt": TIMESTAMP},
    {"count": COUNT},
)

EVENT_MESSAGE, EVENT_REFUSED = shape(_LISTED), shape(_REJECTED)

# Error messages are for people; the contract guarantees only the field.
ERROR = shape(record({"error": WORD}))

_IN_VAIN = {
    "error": WORD,
    "cursor": WORD,
    "waited": NUMBER,
    "seen": array(_SEEN, maxItems=5),
    "rejected": array(_REJECTED),
}

TIMED_OUT = shape(record(_IN_VAIN, {"otherTags": COUNT}))

# "408 says how many came"
MANY_TIMED_OUT = shape(record({**_IN_VAIN, "matched": COUNT}, {"otherTags": COUNT}))

GATHERED = shape(
    record(
        {
            "messages": array(_LISTED, minItems=1, maxItems=100),
            "cursor": WORD,
        }
    ),
    oldest_come_first=lambda body: (
        [int(one["cursor"][1:], 16) for one in body["messages"]]
        == sorted({int(one["cursor"][1:], 16) for one in body["messages"]})
    ),
    the_cursor_is_the_last_ones=lambda body: body["cursor"] == body["messages"][-1]["cursor"],
)

NO_MESSAGE = shape(record({"none": _TRUE, "waited": NUMBER, "cursor": WORD}))

UNWANTED = shape(
    record(
        {
            "error": WORD,
            "message": or_null(MESSAGE.schema),
            "cursor": WORD,
            "rejected": array(_REJECTED, maxItems=1),
        }
    ),
    either_came_or_was_refused=lambda body: (body["message"] is None) == bool(body["rejected"]),
)

INTERRUPTED = shape(record({"error": WORD}, {"cursor": WORD}))

_FAMILIES = ("Gmail", "Outlook", "Apple Mail", "Yahoo", "Others")
_SUPPORT = array(
    record(
        {
            "family": one_of(*_FAMILIES),
            "supported": COUNT,
            "partial": COUNT,
            "unsupported": COUNT,
            "unknown": COUNT,
        }
    ),
    minItems=5,
    maxItems=5,
)
_PLACES = array(record({"line": {"type": "integer", "minimum": 1}, "excerpt": STRING}), maxItems=5)
_PLACE_COUNT: Schema = {"type": "integer", "minimum": 1}

_FEATURE = record(
    {
        "feature": {"type": "string", "pattern": "^(css|html|image)-"},
        "title": WORD,
        "url": {"type": "string", "pattern": "^https://www[.]caniemail[.]com/features/.+/$"},
        "tested": CALENDAR_DATE,
        "support": _SUPPORT,
        "unsupported": array(WORD),
        "partial": array(WORD),
        "notes": array(record({"text": WORD, "clients": array(WORD, minItems=1)})),
        "places": _PLACES,
        "count": _PLACE_COUNT,
    }
)

MESSAGE_CHECKS = shape(
    record(
        {
            "id": UUID,
            "compatibility": or_null(
                record(
                    {
                        "source": WORD,
                        "licence": {"type": "string", "pattern": "^MIT"},
                        "date": CALENDAR_DATE,
                        "clients": _SUPPORT,
                        "findings": array(_FEATURE),
                        "notJudged": array(
                            record(
                                {
                                    "what": one_of("style-sheet", "picture"),
                                    "reason": WORD,
                                    "places": _PLACES,
                                    "count": _PLACE_COUNT,
                                }
                            )
                        ),
                    }
                )
            ),
            "accessibility": or_null(
                record(
                    {
                        "findings": array(
                            record(
                                {
                                    "id": {"type": "string", "pattern": "^accessibility[.]"},
                                    "severity": one_of("error", "warning", "note"),
                                    "criterion": {"type": "string", "pattern": "^[1-4][.]"},
                                    "meaning": WORD,
                                    "fix": WORD,
                                    "places": _PLACES,
                                    "count": _PLACE_COUNT,
                                }
                            )
                        ),
                        "contrastsNotJudged": COUNT,
                    }
                )
            ),
            "links": array(
                record(
                    {
                        "url": {"type": "string", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"},
                        "words": STRING,
                        "isBest": BOOLEAN,
                        "isUnsubscribe": BOOLEAN,
                    }
                ),
                maxItems=1000,
            ),
            "isCut": BOOLEAN,
        }
    ),
    both_or_neither_judge_html=lambda body: (
        (body["compatibility"] is None) == (body["accessibility"] is None)
    ),
    one_link_is_the_best=lambda body: sum(one["isBest"] for one in body["links"]) <= 1,
    who_does_not_support_is_counted=lambda body: all(
        sum(family["unsupported"] for family in one["support"]) == len(one["unsupported"])
        and sum(family["partial"] for family in one["support"]) == len(one["partial"])
        and one["unsupported"] + one["partial"]
        for one in (body["compatibility"] or {"findings": ()})["findings"]
    ),
)

_STATUS: Schema = {"type": "integer", "minimum": 100, "maximum": 999}

RELEASED = shape(
    record(
        {
            "id": UUID,
            "recipients": {
                "type": "array",
                "minItems": 1,
                "items": record({"address": ADDRESS, "accepted": BOOLEAN, "reply": WORD}),
            },
            "warnings": {"type": "array", "items": WORD},
        }
    )
)

PRESSED = shape(
    record(
        {
            "url": or_null({"type": "string", "pattern": "^[Hh][Tt][Tt][Pp][Ss]://"}),
            "verdict": one_of("accepted", "refused", "unclear", "not-sent"),
            "status": or_null(_STATUS),
            "location": or_null(WORD),
            "problem": or_null(
                one_of(
                    "not-offered",
                    "not-public",
                    "bad-url",
                    "budget",
                    "busy",
                    "no-authorities",
                    "no-host",
                    "no-connection",
                    "bad-certificate",
                    "no-http",
                    "silent",
                    "redirect",
                    "login",
                    "csrf",
                    "method",
                    "form",
                    "gone",
                    "forbidden",
                    "rate-limit",
                    "rejected",
                    "server-error",
                )
            ),
            "explanation": WORD,
            "fix": or_null(WORD),
        }
    )
)

CHECKED_LINKS = shape(
    record(
        {
            "id": UUID,
            "links": array(
                record(
                    {
                        "url": WORD,
                        "method": one_of("HEAD", "GET"),
                        "verdict": one_of("works", "broken", "unclear", "not-checked"),
                        "status": or_null(_STATUS),
                        "finalUrl": WORD,
                        "redirects": array(record({"url": WORD, "status": _STATUS}), maxItems=11),
                        "problem": or_null(
                            one_of(
                                "not-public",
                                "bad-url",
                                "budget",
                                "busy",
                                "no-authorities",
                                "no-host",
                                "no-connection",
                                "bad-certificate",
                                "bad-redirect",
                                "too-many-redirects",
                                "no-http",
                                "silent",
                            )
                        ),
                        "explanation": WORD,
                    }
                ),
                maxItems=100,
            ),
        }
    ),
    what_works_has_no_problem=lambda body: all(
        one["problem"] is None and 200 <= one["status"] < 300
        for one in body["links"]
        if one["verdict"] == "works"
    ),
)

CRASH = shape(record({"error": WORD}, {"reference": WORD, "partial": OBJECT}))
