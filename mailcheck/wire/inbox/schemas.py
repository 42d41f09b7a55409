"""JSON Schemas of the developer inbox (SPEC.md 2.7, DECISIONS.md section 4)."""

from mailcheck.wire.deliverability.check_schemas import AUTHENTICATION
from mailcheck.wire.inbox.message_schemas import (
    ATTACHMENT,
    CANDIDATE,
    CURSOR,
    ENVELOPE,
    LISTED_MESSAGE,
    REFUSED_MAIL,
    SEEN_MESSAGE,
    SUMMARY_FIELDS,
)
from mailcheck.wire.schemas import (
    Schema,
    always,
    array_of,
    choice,
    number,
    or_null,
    record,
    text,
    timestamp,
    whole_number,
)

MESSAGE_ID: Schema = {"type": "string", "format": "uuid", "description": "names a message"}

_MORE_FIELDS: dict[str, Schema] = {
    "text": text("plain-text body; empty without one"),
    "html": text("HTML body as it was sent, never made safe; empty without one"),
    "headers": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "by lower-case name; a repeated field is joined by newlines, in order",
    },
    "headerList": array_of(
        array_of(text(), minItems=2, maxItems=2), "name and value of each header field, in order"
    ),
    "attachments": array_of(ATTACHMENT),
    "envelope": ENVELOPE,
    "extraction": array_of(CANDIDATE, "all that might be a code or a link, with reasons"),
    "problems": array_of(text(), "what was broken in the mail"),
}

MESSAGE = record(
    {**SUMMARY_FIELDS, **_MORE_FIELDS, "authentication": AUTHENTICATION},
    "a message with everything; `authentication` where a message is asked for by its id",
    optional=["authentication"],
)

_PLACE: dict[str, Schema] = {
    "address": text("inbox address"),
    "tag": text("its +tag; empty without one"),
    "mailbox": text("local part without the tag"),
    "domain": text(),
    "cursor": CURSOR,
}

INBOX_ADDRESS = record(_PLACE)

INBOX = record(
    {
        **_PLACE,
        "retentionHours": number("messages are kept so long", minimum=0),
        "total": whole_number("messages in the inbox", minimum=0),
        "tags": array_of(
            record({"tag": text(), "count": whole_number(minimum=1), "latestAt": timestamp()}),
            "the newest first",
        ),
        "tagTotal": whole_number("tags in use, those that are not shown too", minimum=0),
    }
)

MESSAGES = record(
    {
        "messages": array_of(LISTED_MESSAGE, "newest first; without text, html and headers"),
        "nextPage": or_null(whole_number("null on the last page", minimum=2)),
        "total": whole_number("all that match", minimum=0),
        "cursor": CURSOR,
    }
)

TIMED_OUT = record(
    {
        "error": text("what to do next"),
        "cursor": CURSOR,
        "waited": number("seconds", minimum=0),
        "seen": array_of(SEEN_MESSAGE, "what did arrive, since 10 minutes before the request"),
        "rejected": array_of(REFUSED_MAIL, "mail for this inbox that was refused"),
    },
    "no matching message in time",
)

RAW_MESSAGE = record(
    {"id": MESSAGE_ID, "raw": text("the mail"), "encoding": choice(("utf-8", "base64"))}
)

DELETED = record({"success": always(True), "id": MESSAGE_ID})

DELETED_MANY = record({"success": always(True), "deleted": whole_number(minimum=0)})

SHARE = record(
    {"id": MESSAGE_ID, "shareUrl": text("public, needs no key"), "expiresAt": timestamp()}
)

ERROR = record({"error": text("one readable sentence that names the parameter")})

CRASH = record(
    {"error": text(), "reference": text("stands in the log of the service too")},
    "the service failed",
)

INTERRUPTED = record(
    {"error": text(), "cursor": CURSOR},
    "the service is busy or stops, or its store does not answer; `cursor` is where a wait goes on",
    optional=["cursor"],
)
