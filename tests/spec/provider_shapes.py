"""The answers of the provider APIs: each error has the shape that the provider's SDKs parse."""

from collections.abc import Mapping

from tests.spec.matching import Schema
from tests.spec.shapes import (
    COUNT,
    INTEGER,
    NULL,
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

_MAILTRAP_ERROR = record({"success": {"const": False}, "errors": array(WORD, minItems=1)})
_MAILTRAP_SENT = record({"success": {"const": True}, "message_ids": array(UUID, minItems=1)})

_MESSAGE_ID: Schema = {"type": "string", "pattern": "^<[^<>]+@[^<>]+>$"}
_MAILGUN_SENT = shape(record({"id": _MESSAGE_ID, "message": WORD}))

_XML = Bytes("text/xml", is_from_mail=False)

_Bodies = Shape | Bytes | tuple[Shape | Bytes, ...]

PROVIDER_ERRORS: Mapping[str, _Bodies] = {
    "resend": shape(record({"statusCode": INTEGER, "name": WORD, "message": WORD})),
    "postmark": shape(_POSTMARK_ERROR),
    "sendgrid": shape(
        record({"errors": array(record({"message": WORD, "field": NULL, "help": NULL}))})
    ),
    "mailgun": shape(record({"message": WORD})),
    "ses": (shape(record({"message": WORD})), _XML),
    "brevo": shape(record({"code": WORD, "message": WORD})),
    "mailtrap": shape(_MAILTRAP_ERROR),
}
"""The body of every error, by the name of the provider."""

PROVIDER_ROUTES: Mapping[tuple[str, str], Mapping[int, _Bodies]] = {
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
    ("POST", "/providers/sendgrid/v3/mail/send"): {
        200: Bytes("application/json; charset=utf-8", is_from_mail=False),
        202: Bytes("application/json; charset=utf-8", is_from_mail=False),
    },
    ("POST", "/providers/mailgun/v3/{domain}/messages"): {200: _MAILGUN_SENT},
    ("POST", "/providers/mailgun/v3/{domain}/messages.mime"): {200: _MAILGUN_SENT},
    ("POST", "/providers/ses/v2/email/outbound-emails"): {200: shape(record({"MessageId": UUID}))},
    ("POST", "/providers/ses/v2/email/outbound-bulk-emails"): {
        200: shape(
            record(
                {
                    "BulkEmailEntryResults": array(
                        record({"Status": WORD}, {"MessageId": UUID, "Error": WORD})
                    )
                }
            )
        )
    },
    ("POST", "/providers/ses"): {200: _XML},
    ("POST", "/providers/ses/"): {200: _XML},
    ("POST", "/providers/brevo/v3/smtp/email"): {
        201: (
            shape(record({"messageId": _MESSAGE_ID})),
            shape(record({"messageIds": array(_MESSAGE_ID, minItems=1)})),
        )
    },
    ("POST", "/providers/mailtrap/api/send"): {200: shape(_MAILTRAP_SENT)},
    ("POST", "/providers/mailtrap/api/send/{id}"): {200: shape(_MAILTRAP_SENT)},
    ("POST", "/providers/mailtrap/api/batch"): {
        200: shape(
            record(
                {
                    "success": {"const": True},
                    "responses": array({"anyOf": [_MAILTRAP_SENT, _MAILTRAP_ERROR]}),
                }
            )
        )
    },
}
