"""The answers of the provider APIs: each error has the shape that the provider's SDKs parse."""

from collections.abc import Mapping

from tests.spec.matching import Schema
from tests.spec.received_shapes import RECEIVED_ROUTES
from tests.spec.shapes import (
    ADDRESS,
    BOOLEAN,
    COUNT,
    INTEGER,
    NULL,
    NUMBER,
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

_RESEND_ID = record({"id": UUID})

_RESEND_CONFIRMED = shape(record({"object": {"const": "email"}, "id": UUID}))

_RESEND_LISTED: Mapping[str, Schema] = {
    "id": UUID,
    "message_id": STRING,
    "to": array(WORD),
    "from": WORD,
    "created_at": TIMESTAMP,
    "subject": STRING,
    "bcc": array(WORD),
    "cc": array(WORD),
    "reply_to": array(WORD),
    "last_event": one_of("delivered", "bounced", "complained", "opened", "suppressed"),
    "scheduled_at": or_null(WORD),
    "topic_id": NULL,
}

_POSTMARK_SENT = record(
    {"SubmittedAt": TIMESTAMP, "MessageID": UUID, "ErrorCode": {"const": 0}, "Message": WORD},
    {"To": WORD, "Cc": WORD, "Bcc": WORD},
)

_POSTMARK_ERROR = record({"ErrorCode": INTEGER, "Message": WORD})

_MAILTRAP_ERROR = record({"success": {"const": False}, "errors": array(WORD, minItems=1)})
_MAILTRAP_SENT = record({"success": {"const": True}, "message_ids": array(UUID, minItems=1)})

_MAILTRAP_BATCH = shape(
    record(
        {
            "success": {"const": True},
            "responses": array({"anyOf": [_MAILTRAP_SENT, _MAILTRAP_ERROR]}),
        }
    )
)

_MESSAGE_ID: Schema = {"type": "string", "pattern": "^<[^<>]+@[^<>]+>$"}
_MAILGUN_SENT = shape(record({"id": _MESSAGE_ID, "message": WORD}))

_MAILGUN_DOMAIN = record(
    {
        **dict.fromkeys(("id", "name", "state", "type", "spam_action", "smtp_login"), WORD),
        **dict.fromkeys(("web_prefix", "web_scheme"), WORD),
        "smtp_password": STRING,
        "created_at": TIMESTAMP,
        **dict.fromkeys(("wildcard", "is_disabled", "require_tls", "skip_verification"), BOOLEAN),
        "use_automatic_sender_security": BOOLEAN,
    }
)
_MAILGUN_DOMAINS = shape(record({"total_count": COUNT, "items": array(_MAILGUN_DOMAIN)}))
_MAILGUN_SHOWN_DOMAIN = shape(
    record(
        {
            "domain": _MAILGUN_DOMAIN,
            **dict.fromkeys(("receiving_dns_records", "sending_dns_records"), array(WORD)),
        }
    )
)

_IDENTITY = {
    "IdentityType": WORD,
    "VerifiedForSendingStatus": BOOLEAN,
    "DkimAttributes": record({"SigningEnabled": BOOLEAN, "Status": WORD}),
}


_IDENTITIES = shape(
    record(
        {
            "EmailIdentities": array(
                record(
                    {
                        "IdentityType": WORD,
                        "IdentityName": WORD,
                        "SendingEnabled": BOOLEAN,
                        "VerificationStatus": WORD,
                    }
                )
            )
        }
    )
)


def _empty(name: str) -> Shape:
    return shape(record({name: array(WORD, maxItems=0)}))


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
    "received": shape(record({"error": WORD})),
    "sns": _XML,
}
"""The body of every error, by the name of the provider."""

PROVIDER_ROUTES: Mapping[tuple[str, str], Mapping[int, _Bodies]] = {
    **RECEIVED_ROUTES,
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
                    **_RESEND_LISTED,
                    "object": {"const": "email"},
                    "html": or_null(WORD),
                    "text": or_null(WORD),
                    "tags": array(record({"name": WORD, "value": STRING})),
                }
            )
        )
    },
    ("GET", "/providers/resend/emails"): {
        200: shape(
            record(
                {
                    "object": {"const": "list"},
                    "has_more": BOOLEAN,
                    "data": array(record(_RESEND_LISTED)),
                }
            )
        )
    },
    ("PATCH", "/providers/resend/emails/{id}"): {200: _RESEND_CONFIRMED},
    ("POST", "/providers/resend/emails/{id}/cancel"): {200: _RESEND_CONFIRMED},
    ("GET", "/providers/resend/domains"): {
        200: shape(
            record(
                {
                    "object": {"const": "list"},
                    "has_more": BOOLEAN,
                    "data": array(
                        record(
                            {
                                "id": UUID,
                                "name": WORD,
                                "status": {"const": "verified"},
                                "created_at": TIMESTAMP,
                                "region": WORD,
                                "capabilities": record({"sending": WORD, "receiving": WORD}),
                            }
                        )
                    ),
                }
            )
        )
    },
    ("GET", "/providers/postmark/server"): {
        200: shape(
            record(
                {
                    **dict.fromkeys(("ID", "InboundSpamThreshold"), COUNT),
                    **dict.fromkeys(("Name", "Color", "DeliveryType", "TrackLinks"), WORD),
                    **dict.fromkeys(("InboundAddress", "InboundHash", "ServerLink"), STRING),
                    **dict.fromkeys(("SmtpApiActivated", "RawEmailEnabled"), BOOLEAN),
                    **dict.fromkeys(("PostFirstOpenOnly", "TrackOpens"), BOOLEAN),
                    **dict.fromkeys(("IncludeBounceContentInHook",), BOOLEAN),
                    "EnableSmtpApiErrorHooks": BOOLEAN,
                    "ApiTokens": array(WORD, maxItems=0),
                }
            )
        )
    },
    ("GET", "/providers/sendgrid/v3/scopes"): {200: shape(record({"scopes": array(WORD)}))},
    ("GET", "/providers/sendgrid/v3/user/account"): {
        200: shape(record({"type": WORD, "reputation": COUNT}))
    },
    ("GET", "/providers/mailgun/v3/domains"): {200: _MAILGUN_DOMAINS},
    ("GET", "/providers/mailgun/v4/domains"): {200: _MAILGUN_DOMAINS},
    ("GET", "/providers/mailgun/v3/domains/{domain}"): {200: _MAILGUN_SHOWN_DOMAIN},
    ("GET", "/providers/mailgun/v4/domains/{domain}"): {200: _MAILGUN_SHOWN_DOMAIN},
    ("GET", "/providers/brevo/v3/account"): {
        200: shape(
            record(
                {
                    **dict.fromkeys(("organization_id", "email", "firstName", "companyName"), WORD),
                    "lastName": STRING,
                    "user_id": COUNT,
                    "enterprise": BOOLEAN,
                    "plan": array(record({"type": WORD, "credits": COUNT, "creditsType": WORD})),
                    "relay": record(
                        {
                            "enabled": BOOLEAN,
                            "data": record({"userName": STRING, "relay": WORD, "port": COUNT}),
                        }
                    ),
                }
            )
        )
    },
    ("GET", "/providers/brevo/v3/senders"): {
        200: shape(
            record(
                {
                    "senders": array(
                        record(
                            {
                                "id": COUNT,
                                "name": WORD,
                                "email": ADDRESS,
                                "active": BOOLEAN,
                                "ips": array(WORD),
                            }
                        )
                    )
                }
            )
        )
    },
    ("GET", "/providers/mailtrap/api/accounts"): {
        200: shape(
            array(record({"id": COUNT, "name": WORD, "access_levels": array(INTEGER)}), minItems=1)
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
    ("GET", "/providers/ses/v2/email/account"): {
        200: shape(
            record(
                {
                    "DedicatedIpAutoWarmupEnabled": BOOLEAN,
                    "EnforcementStatus": WORD,
                    "ProductionAccessEnabled": BOOLEAN,
                    "SendQuota": record(
                        {"Max24HourSend": NUMBER, "MaxSendRate": NUMBER, "SentLast24Hours": NUMBER}
                    ),
                    "SendingEnabled": BOOLEAN,
                    "SuppressionAttributes": record({"SuppressedReasons": array(WORD)}),
                }
            )
        )
    },
    ("GET", "/providers/ses/v2/email/identities"): {200: _IDENTITIES},
    ("POST", "/providers/ses/v2/email/list-identities"): {200: _IDENTITIES},
    ("POST", "/providers/ses/v2/email/list-configuration-sets"): {200: _empty("ConfigurationSets")},
    ("POST", "/providers/ses/v2/email/identities"): {200: shape(record(_IDENTITY))},
    ("GET", "/providers/ses/v2/email/identities/{id}"): {
        200: shape(
            record(
                {
                    **_IDENTITY,
                    "FeedbackForwardingStatus": BOOLEAN,
                    "Policies": record({}),
                    "Tags": array(WORD),
                    "VerificationStatus": WORD,
                }
            )
        )
    },
    ("GET", "/providers/ses/v2/email/configuration-sets"): {200: _empty("ConfigurationSets")},
    ("GET", "/providers/ses/v2/email/templates"): {200: _empty("TemplatesMetadata")},
    ("GET", "/providers/ses/v2/email/suppression/addresses"): {
        200: _empty("SuppressedDestinationSummaries")
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
    ("POST", "/providers/mailtrap/api/batch"): {200: _MAILTRAP_BATCH},
    ("POST", "/providers/mailtrap/api/batch/{id}"): {200: _MAILTRAP_BATCH},
}
