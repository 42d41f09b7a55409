"""The answers of the provider APIs about received mail."""

from collections.abc import Mapping

from tests.spec.matching import Schema
from tests.spec.shapes import (
    BOOLEAN,
    COUNT,
    INTEGER,
    STRING,
    TIMESTAMP,
    UUID,
    WORD,
    Bytes,
    Shape,
    array,
    one_of,
    or_null,
    record,
    shape,
)

_DOWNLOAD = Bytes(".+/.+")
_OBJECT: Schema = {"type": "object"}

_FILE: Mapping[str, Schema] = {
    "id": UUID,
    "filename": or_null(WORD),
    "size": COUNT,
    "content_type": WORD,
    "content_disposition": or_null(WORD),
    "content_id": or_null(WORD),
}
_URL: Mapping[str, Schema] = {"download_url": WORD, "expires_at": TIMESTAMP}

_LISTED: Mapping[str, Schema] = {
    "id": UUID,
    "from": STRING,
    **dict.fromkeys(("to", "cc", "bcc", "reply_to", "received_for"), array(STRING)),
    "created_at": TIMESTAMP,
    "subject": STRING,
    "message_id": STRING,
    "attachments": array(record(_FILE)),
}


def _list_of(item: Schema) -> Shape:
    return shape(record({"object": {"const": "list"}, "has_more": BOOLEAN, "data": array(item)}))


_MAILTRAP_LISTED: Mapping[str, Schema] = {
    "id": WORD,
    "inbox_id": INTEGER,
    "from": STRING,
    **dict.fromkeys(("to", "cc", "bcc", "references"), array(STRING)),
    **dict.fromkeys(("reply_to", "in_reply_to"), or_null(STRING)),
    "subject": STRING,
    "message_id": STRING,
    "headers": _OBJECT,
    **dict.fromkeys(("size", "html_size", "text_size"), COUNT),
    "received_at": TIMESTAMP,
}

_MAILTRAP_FILE = record(
    {
        "attachment_id": UUID,
        "size": COUNT,
        "content_type": WORD,
        **dict.fromkeys(("filename", "content_disposition", "content_id"), or_null(WORD)),
        "download_url": WORD,
        "download_url_expires_at": TIMESTAMP,
    }
)

_STORED_HEAD = dict.fromkeys(("recipient", "recipients", "sender", "from", "subject"), STRING)
_STORED = record(
    {
        **_STORED_HEAD,
        **dict.fromkeys(("body-plain", "stripped-text", "stripped-signature"), STRING),
        "attachments": array(
            record({"url": WORD, "content-type": WORD, "name": STRING, "size": COUNT})
        ),
        "content-id-map": _OBJECT,
        "message-headers": array(array(STRING)),
    },
    dict.fromkeys(("body-html", "stripped-html"), STRING),
)

_XML = Bytes("text/xml", is_from_mail=False)

_RECEIVING = "/providers/resend/emails/receiving"
_INBOX = "/providers/mailtrap/api/inbound/inboxes/{inbox}/messages"
_MESSAGE = "/providers/mailgun/v3/domains/{domain}/messages/{id}"

RECEIVED_ROUTES: Mapping[
    tuple[str, str], Mapping[int, Shape | Bytes | tuple[Shape | Bytes, ...]]
] = {
    ("GET", _RECEIVING): {200: _list_of(record(_LISTED))},
    ("GET", f"{_RECEIVING}/{{id}}"): {
        200: shape(
            record(
                {
                    **_LISTED,
                    "object": {"const": "email"},
                    **dict.fromkeys(("html", "text"), or_null(STRING)),
                    "headers": _OBJECT,
                    "raw": record(_URL),
                    "html_format": one_of("cid", "data_uri"),
                }
            )
        )
    },
    ("GET", f"{_RECEIVING}/{{id}}/attachments"): {200: _list_of(record({**_FILE, **_URL}))},
    ("GET", f"{_RECEIVING}/{{id}}/attachments/{{file}}"): {
        200: shape(record({**_FILE, **_URL, "object": {"const": "attachment"}}))
    },
    ("GET", "/providers/brevo/v3/inbound/attachments/{token}"): {200: _DOWNLOAD},
    ("GET", _INBOX): {
        200: shape(
            record(
                {
                    "data": array(record(_MAILTRAP_LISTED)),
                    "total_count": COUNT,
                    "last_id": or_null(WORD),
                }
            )
        )
    },
    ("GET", f"{_INBOX}/{{id}}"): {
        200: shape(
            record(
                {
                    **_MAILTRAP_LISTED,
                    **dict.fromkeys(("html_body", "text_body"), or_null(STRING)),
                    "raw_message_url": WORD,
                    "raw_message_expires_at": TIMESTAMP,
                    "attachments": array(_MAILTRAP_FILE),
                }
            )
        )
    },
    ("GET", _MESSAGE): {
        200: (shape(_STORED), shape(record({**_STORED_HEAD, "body-mime": STRING})))
    },
    ("GET", f"{_MESSAGE}/attachments/{{number}}"): {200: _DOWNLOAD},
    ("GET", "/providers/received/{route}/{mail}/{proof}/{name}"): {200: _DOWNLOAD},
    ("GET", "/providers/sns/"): {200: _XML},
    ("POST", "/providers/sns/"): {200: _XML},
    ("GET", "/providers/sns"): {200: _XML},
    ("POST", "/providers/sns"): {200: _XML},
    ("GET", "/providers/sns/{route}/{name}"): {
        200: Bytes("application/x-pem-file", is_from_mail=False)
    },
}
"""The answers by method and path."""
