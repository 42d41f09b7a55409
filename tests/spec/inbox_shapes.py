"""DECISIONS.md section 4: the inbox shapes that SPEC.md leaves open, and the errors of both."""

from tests.spec.report_shapes import AUTHENTICATION
from tests.spec.resources import LISTED_FIELDS, LISTED_MORE, MESSAGE_AUTHOR, WHOLE_FIELDS
from tests.spec.shapes import (
    ADDRESS,
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    TIMESTAMP,
    UUID,
    WORD,
    Schema,
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
        "kind": one_of("code", "link", "mailto"),
        "value": STRING,
        "score": INTEGER,
        "accepted": BOOLEAN,
        "reasons": array(STRING),
    }
)

MESSAGE = shape(
    record(
        {
            **WHOLE_FIELDS,
            **LISTED_MORE,
            "attachments": array(_ATTACHMENT),
            "envelope": _ENVELOPE,
            "headerList": array(array(STRING, minItems=2, maxItems=2)),
            "extraction": array(_CANDIDATE),
        },
        {"problems": array(STRING), "authentication": AUTHENTICATION},
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
        {"tag": STRING, "tagTotal": COUNT},
    ),
    the_address_is_mailbox_and_domain=lambda body: (
        body["address"] == f"{body['mailbox']}@{body['domain']}"
    ),
)

INBOX_ADDRESS = shape(
    record({"address": ADDRESS, "tag": STRING, "mailbox": WORD, "domain": WORD, "cursor": WORD}),
    the_address_carries_the_tag=lambda body: (
        body["address"]
        == f"{body['mailbox']}{'+' if body['tag'] else ''}{body['tag']}@{body['domain']}"
    ),
)

MESSAGES = shape(
    record(
        {
            "messages": array(
                record({**LISTED_FIELDS, **LISTED_MORE, "isRead": BOOLEAN}), maxItems=100
            ),
            "nextPage": or_null({"type": "integer", "minimum": 2}),
            "total": COUNT,
            "cursor": WORD,
        }
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
    {"to": STRING, "from": STRING, "client": STRING, "reason": WORD, "refusedAt": TIMESTAMP}
)

# The error texts are for people; SPEC.md section 7 promises the one field.
ERROR = shape(record({"error": WORD}))

TIMED_OUT = shape(
    record(
        {
            "error": WORD,
            "cursor": WORD,
            "waited": NUMBER,
            "seen": array(_SEEN),
            "rejected": array(_REJECTED),
        }
    )
)

INTERRUPTED = shape(record({"error": WORD}, {"cursor": WORD}))

CRASH = shape(record({"error": WORD}, {"reference": WORD, "partial": OBJECT}))
