"""The answers of the provider APIs: each error has the shape that the provider's SDKs parse."""

from collections.abc import Mapping

from tests.spec.shapes import (
    COUNT,
    INTEGER,
    STRING,
    TIMESTAMP,
    UUID,
    WORD,
    Bytes,
    Shape,
    array,
    or_null,
    record,
    shape,
)

_RESEND_ID = record({"id": UUID})

_POSTMARK_SENT = record(
    {"SubmittedAt": TIMESTAMP, "MessageID": UUID, "ErrorCode": {"const": 0}, "Message": WORD},
    {"To": WORD, "Cc": WORD, "Bcc": WORD},
)

_POSTMARK_ERROR = record({"ErrorCode": INTEGER, "Message": WORD})

PROVIDER_ERRORS: Mapping[str, Shape | Bytes] = {
    "resend": shape(record({"statusCode": INTEGER, "name": WORD, "message": WORD})),
    "postmark": shape(_POSTMARK_ERROR),
}
"""The body of every error, by the name of the provider."""

PROVIDER_ROUTES: Mapping[tuple[str, str], Mapping[int, Shape | Bytes]] = {
    ("POST", "/providers/resend/emails"): {200: shape(_RESEND_ID)},
    ("POST", "/providers/resend/emails/batch"): {
        200: shape(
            record(
                {"data": array(_RESEND_ID)},
                {"errors": array(record({"index": COUNT, "message": WORD}))},
            )
        )
    },
    ("GET", "/providers/resend/emails/{id}"): {
        200: shape(
            record(
                {
                    "object": {"const": "email"},
                    "id": UUID,
                    "to": array(WORD),
                    "from": WORD,
                    "created_at": TIMESTAMP,
                    "subject": STRING,
                    "html": or_null(WORD),
                    "text": or_null(WORD),
                    "bcc": array(WORD),
                    "cc": array(WORD),
                    "reply_to": array(WORD),
                    "last_event": {"const": "delivered"},
                    "scheduled_at": {"type": "null"},
                }
            )
        )
    },
    ("POST", "/providers/postmark/email"): {200: shape(_POSTMARK_SENT)},
    ("POST", "/providers/postmark/email/withTemplate"): {200: shape(_POSTMARK_SENT)},
    ("POST", "/providers/postmark/email/withTemplate/"): {200: shape(_POSTMARK_SENT)},
    ("POST", "/providers/postmark/email/batch"): {
        200: shape(array({"anyOf": [_POSTMARK_SENT, _POSTMARK_ERROR]}))
    },
    ("POST", "/providers/postmark/email/batchWithTemplates"): {
        200: shape(array({"anyOf": [_POSTMARK_SENT, _POSTMARK_ERROR]}))
    },
}
