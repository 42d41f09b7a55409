"""Credentials and identifiers in requests of providers."""

import hashlib
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

from mailcheck.api.shapes import dump_json
from mailcheck.core.inbound import InboundMoment, InboundRequest, InboundRoute
from mailcheck.core.instants import SECOND, Instant
from mailcheck.operations.inbox.webhooks.event_signatures import (
    sign_body_with_hmac,
    sign_with_ecdsa,
    sign_with_hmac,
)

WRONG_PASSWORD = "wrong"  # noqa: S105

ACTION_MAILBOX = "actionmailbox"
"""The user of the ingresses of Rails, if the route has no other one."""


Sign = Callable[[InboundRoute, InboundMoment, bytes], list[tuple[str, str]]]
"""Returns the headers with the signature of a body."""


def seconds_of(moment: Instant) -> str:
    """Return a moment in seconds of Unix, as text."""
    return str(moment // SECOND)


def digest_of(*parts: str) -> bytes:
    """Return 32 bytes that follow from texts, for identifiers."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).digest()


def uuid_of(*parts: str) -> str:
    """Return a UUID that follows from texts, in the form of a random one."""
    return str(UUID(bytes=digest_of(*parts)[:16], version=4))


def secret_of(route: InboundRoute, moment: InboundMoment) -> str:
    """Return the secret that signs an attempt: another one if the signature must be wrong."""
    if not moment.has_wrong_signature:
        return route.secret
    return "whsec_" + b64encode(digest_of("wrong", route.secret)).decode()


def basic_authorization(route: InboundRoute, moment: InboundMoment, user: str = "") -> str:
    """Return the value of Authorization, or an empty text if the route has no password.

    ``user`` is the user of a route that has a password only.
    """
    if not (route.user or route.password):
        return ""
    password = WRONG_PASSWORD if moment.has_wrong_signature else route.password
    return f"Basic {b64encode(f'{route.user or user}:{password}'.encode()).decode()}"


def authorized(route: InboundRoute, moment: InboundMoment, user: str = "") -> list[tuple[str, str]]:
    """Return the header Authorization, if the route has a password."""
    value = basic_authorization(route, moment, user)
    return [("Authorization", value)] if value else []


def json_request(
    route: InboundRoute, moment: InboundMoment, value: object, sign: Sign | None = None
) -> InboundRequest:
    """Return a request whose body is JSON, with the password of the route and with a signature."""
    body = dump_json(value)
    headers = [("Content-Type", "application/json"), *authorized(route, moment)]
    if sign is not None:
        headers += sign(route, moment, body)
    return InboundRequest(route.url, tuple(headers), body)


def signed_by_sendgrid(
    route: InboundRoute, moment: InboundMoment, body: bytes
) -> list[tuple[str, str]]:
    """Return the headers of a security policy with a signature."""
    name, at = "X-Twilio-Email-Event-Webhook", seconds_of(moment.signed_at)
    signature = sign_with_ecdsa(secret_of(route, moment), at, body)
    return [(f"{name}-Signature", signature), (f"{name}-Timestamp", at)]


def signed_by_mailgun(route: InboundRoute, moment: InboundMoment) -> list[tuple[str, str]]:
    """Return the fields with the signature. The token differs for each attempt."""
    at = seconds_of(moment.signed_at)
    token = digest_of("token", moment.delivery_id, str(moment.number)).hex()[:50]
    signature = sign_with_hmac(secret_of(route, moment), at, token)
    return [("timestamp", at), ("token", token), ("signature", signature)]


def signed_by_mailtrap(
    route: InboundRoute, moment: InboundMoment, body: bytes
) -> list[tuple[str, str]]:
    """Return the header with the signature, which has no time stamp."""
    return [("Mailtrap-Signature", sign_body_with_hmac(secret_of(route, moment), body))]


def signed_as_standard(
    route: InboundRoute, moment: InboundMoment, body: bytes, prefix: str
) -> list[tuple[str, str]]:
    """Return the headers of Standard Webhooks with a prefix: ``webhook``, or ``svix``.

    The id is the same for all attempts. The time stamp is that of the attempt.
    """
    # Imported here because it is only needed for signatures.
    from standardwebhooks import Webhook

    identifier = f"msg_{moment.delivery_id.replace('-', '')}"
    at = datetime.fromtimestamp(moment.signed_at // SECOND, UTC)
    signature = Webhook(secret_of(route, moment)).sign(identifier, at, body.decode())
    return [
        (f"{prefix}-id", identifier),
        (f"{prefix}-timestamp", seconds_of(moment.signed_at)),
        (f"{prefix}-signature", signature),
    ]
