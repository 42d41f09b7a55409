"""JSON Schemas of messages and of what belongs to them (SPEC.md 2.7, DECISIONS.md section 4)."""

from mailcheck.core.content import CandidateKind
from mailcheck.wire.schemas import (
    Schema,
    array_of,
    boolean,
    number,
    or_null,
    record,
    text,
    timestamp,
    whole_number,
)

CURSOR = text("arrival position; pass it back unchanged as after")

AUTHOR = record({"address": text(), "name": text()}, "who the mail says it is from")

SUMMARY_FIELDS: dict[str, Schema] = {
    "id": text("names the message in other calls"),
    "to": text("recipient address"),
    "tag": text("+tag of the recipient address; empty without one"),
    "from": AUTHOR,
    "subject": text(),
    "receivedAt": timestamp(),
    "expiresAt": timestamp(),
    "links": array_of(text(), "http(s) links, in order"),
    "bestLink": or_null(text("the link a person would click, null without one")),
    "codes": array_of(text(), "one-time codes, best first"),
    "shareUrl": text("public page of the message; dies with it"),
    "size": whole_number("bytes of the raw mail"),
    "cursor": CURSOR,
    "deliveryId": text("the same for all recipients of one mail"),
}

LISTED_MESSAGE = record(
    {
        **SUMMARY_FIELDS,
        "isRead": boolean("somebody has opened it on the dashboard; no call marks it"),
    }
)

ATTACHMENT = record(
    {
        "id": text(),
        "filename": text(),
        "contentType": text(),
        "size": whole_number("bytes, decoded"),
        "contentId": or_null(text()),
        "url": text("download; needs the API key"),
    }
)

ENVELOPE = record(
    {
        "mailFrom": text("MAIL FROM; empty for bounces"),
        "rcptTo": text(),
        "helo": text(),
        "clientAddress": text(),
        "tls": or_null(record({"version": text(), "cipher": text()})),
    },
    "what the SMTP client said",
)

_RESULT = text("pass, fail, softfail, neutral, none, policy, permerror; temperror: not known now")

_SPF_IDENTITY: dict[str, Schema] = {
    "domain": text("whose record was read"),
    "identity": text("mailfrom or helo"),
    "record": or_null(text()),
    "mechanism": or_null(text("the term that matched")),
}

_SIGNATURE = record(
    {
        "domain": text("who signed"),
        "selector": text(),
        "algorithm": text(),
        "keyType": or_null(text()),
        "keyBits": or_null(whole_number()),
        "result": _RESULT,
        "detail": text(),
        "aligned": or_null(boolean("it counts for DMARC; null: not known now")),
        "identity": or_null(text()),
        "canonicalization": or_null(text()),
        "signedFields": array_of(text()),
        "bodyLength": or_null(whole_number("octets of the body that are signed; null: all")),
        "recordName": or_null(text("where the key stands in DNS")),
    }
)

AUTHENTICATION = record(
    {
        "spf": record(
            {
                "result": _RESULT,
                "detail": text("in one sentence"),
                "determined": boolean(),
                **_SPF_IDENTITY,
                "ip": text("the address that the mail came from"),
                "helo": record({**_SPF_IDENTITY, "result": _RESULT}),
            }
        ),
        "dkim": array_of(_SIGNATURE, "one for each signature"),
        "dmarc": record(
            {
                "result": _RESULT,
                "detail": text("in one sentence"),
                "determined": boolean(),
                "domain": or_null(text("the author's")),
                "policy": or_null(text("none, quarantine or reject")),
                "organizationalDomain": or_null(text()),
                "record": or_null(text()),
                "recordDomain": or_null(text()),
                "spfAligned": or_null(boolean()),
                "dkimAligned": or_null(boolean()),
            }
        ),
    },
    "whether SPF, DKIM and DMARC vouch for the sender; nobody knows SPF of a private address",
)

CANDIDATE = record(
    {
        "kind": {"type": "string", "enum": [kind.value for kind in CandidateKind]},
        "value": text(),
        "score": number(),
        "accepted": boolean(),
        "reasons": array_of(text()),
    },
    "something that might be a code or a link, and why it was taken or not",
)

SEEN_MESSAGE = record(
    {
        "id": text(),
        "to": text(),
        "tag": text(),
        "from": AUTHOR,
        "subject": text(),
        "receivedAt": timestamp(),
        "cursor": CURSOR,
        "reasons": array_of(text(), "why it is not the one waited for"),
    }
)

REFUSED_MAIL = record(
    {
        "to": text(),
        "from": text(),
        "client": text(),
        "reason": text(),
        "refusedAt": timestamp(),
    },
    "a mail for this inbox that was refused",
)
