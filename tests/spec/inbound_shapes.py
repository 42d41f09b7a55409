"""The JSON Schemas of mail into applications."""

from collections.abc import Mapping

from tests.spec.inbox_shapes import ERROR
from tests.spec.shapes import (
    BOOLEAN,
    COUNT,
    INTEGER,
    STRING,
    TIMESTAMP,
    UUID,
    WORD,
    Shape,
    array,
    one_of,
    or_null,
    record,
    shape,
)

_FORMAT = one_of(
    *("sendgrid", "sendgrid-raw", "mailgun", "mailgun-mime", "mailgun-store", "postmark", "resend"),
    *("brevo", "mailtrap", "ses", "cloudflare", "rails", "smtp", "mailcheck"),
)

_FAULT = or_null(
    one_of("twice", "late", "out-of-order", "wrong-signature", "old-time-stamp", "cut-off")
)

_ROUTE = {
    "id": WORD,
    "to": WORD,
    "format": _FORMAT,
    "url": {"type": "string", "pattern": "^(https?|smtp)://"},
    "user": STRING,
    "speed": INTEGER,
    "fault": _FAULT,
    "confirmed": BOOLEAN,
    "createdAt": TIMESTAMP,
    "verificationKey": or_null(WORD),
}

_ROUTE_SHOWN = shape(record(_ROUTE))

_HEADERS = array(record({"name": STRING, "value": STRING}))

_ATTEMPT = record(
    {
        "deliveryId": UUID,
        "routeId": WORD,
        "mailId": UUID,
        "number": COUNT,
        "at": TIMESTAMP,
        "delivered": BOOLEAN,
        "status": or_null(INTEGER),
        "problem": STRING,
        "milliseconds": COUNT,
        "requestHeaders": _HEADERS,
        "answerHeaders": _HEADERS,
        "answer": STRING,
    }
)

_DELIVERY = record(
    {
        "id": UUID,
        "routeId": WORD,
        "mailId": UUID,
        "recipients": array(STRING),
        "subject": STRING,
        "state": one_of("waiting", "retrying", "delivered", "failed", "stopped"),
        "fault": _FAULT,
        "createdAt": TIMESTAMP,
        "nextAttemptAt": or_null(TIMESTAMP),
    }
)

_ATTEMPTS = shape(
    record(
        {
            "attempts": array(_ATTEMPT, maxItems=100),
            "total": COUNT,
            "delivered": BOOLEAN,
            "pending": COUNT,
            "deliveries": array(_DELIVERY, maxItems=50),
        }
    ),
    an_attempt_with_a_problem_was_not_delivered=lambda page: all(
        one["delivered"] is (one["problem"] == "") for one in page["attempts"]
    ),
)

_ONE = "/inbound/routes/{routeId}"

INBOUND_ROUTES: Mapping[tuple[str, str], Mapping[int, Shape]] = {
    ("POST", "/inbound/routes"): {200: shape(record({**_ROUTE, "secret": WORD})), 409: ERROR},
    ("GET", "/inbound/routes"): {
        200: shape(record({"routes": array(record(_ROUTE), maxItems=50)}))
    },
    ("GET", _ONE): {200: _ROUTE_SHOWN, 404: ERROR},
    ("PATCH", _ONE): {200: _ROUTE_SHOWN, 404: ERROR},
    ("DELETE", _ONE): {200: shape(record({"success": {"const": True}, "id": WORD})), 404: ERROR},
    ("POST", f"{_ONE}/messages"): {
        200: shape(record({"id": UUID, "deliveries": array(UUID, minItems=1)})),
        404: ERROR,
    },
    ("GET", "/inbound/attempts"): {200: _ATTEMPTS},
}
