"""JSON shapes of webhooks (docs/reference/contract.md)."""

from typing import Annotated, Any, TypeVar

import msgspec

from mailcheck.api.inbox.messages import Cursor
from mailcheck.api.requests.inbox import ContentFilters
from mailcheck.api.requests.parsing import Field, request_fields
from mailcheck.api.shapes import (
    ABSENT,
    Absent,
    Always,
    Count,
    Shape,
    Texts,
    Timestamp,
    as_json,
    doc,
    shape_from,
    timestamp,
)
from mailcheck.core import webhooks
from mailcheck.core.cursors import format_cursor
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import format_instant
from mailcheck.operations.inbox.webhooks.event_signatures import verification_key
from mailcheck.operations.inbox.webhooks.manage_webhooks import WebhookDetails

Secret = Annotated[
    str, doc("signs every delivery (Standard Webhooks); store it, it is not shown again")
]


def _field_of_filter(one: Field) -> tuple[str, Any, Any]:
    """Return a field of the filter's shape, with its type in JSON."""
    kind: Any = Texts if one.is_list else {"string": str, "boolean": bool}[one.kind.json_type]
    kind = Annotated[kind, doc(f"only mail with this: {one.info.brief}")]
    return one.attribute, kind | Absent, msgspec.field(name=one.name, default=ABSENT)


_FILTERS = request_fields(ContentFilters)

_FilterFields: Any = msgspec.defstruct(
    "FilterFields", map(_field_of_filter, _FILTERS.values()), bases=(Shape,)
)


class WebhookFilter(_FilterFields):  # type: ignore[misc]
    """The mail that is delivered to a webhook; the fields are the parameters of a wait."""


class Webhook(Shape):
    """A URL that receives messages, with the state of its deliveries."""

    id: str
    url: str
    filter: WebhookFilter
    created_at: Timestamp
    state: Annotated[
        webhooks.WebhookState,
        doc(
            "active; paused after an hour of failures, retried less often and not at all after a "
            "day; ended by its receiver with 410"
        ),
    ]
    cursor: Annotated[Cursor, doc("messages up to this position are delivered")]
    failing_since: Annotated[Timestamp | None, doc("first failure since the last success")]
    failures: Annotated[Count, doc("number of consecutive failures")]
    problem: Annotated[str, doc("the last failure; empty after a success")]
    provider: Annotated[
        str | None, doc("the provider in whose format events are sent; null for messages")
    ]
    verification_key: Annotated[
        str | None,
        doc("public key with which SendGrid's libraries verify its events; null for other events"),
    ]
    next_attempt_at: Annotated[
        Timestamp | None, doc("null without a failure, or if there are no further attempts")
    ]


W = TypeVar("W", bound=Webhook)


class WebhookWithSecret(Webhook):
    """A webhook with its secret, which no other response contains."""

    secret: Secret


class RotatedWebhook(WebhookWithSecret):
    """A webhook with a new secret."""

    earlier_signs_until: Annotated[Timestamp, doc("until then, both secrets sign")]


class WebhookAttempt(Shape):
    """An attempt to deliver a message. Only the status of the response is stored."""

    id: Annotated[
        str, doc("webhook-id: the same for all attempts of a message; test_... for a test")
    ]
    at: Timestamp
    delivered: bool
    status: Annotated[int | None, doc("null without a response")]
    problem: Annotated[str, doc("empty if it was delivered")]
    milliseconds: Count


class ShownWebhookShape(Webhook):
    """A webhook with its last delivery attempts."""

    component_name = "WebhookWithDeliveries"

    deliveries: Annotated[
        tuple[WebhookAttempt, ...], doc("newest first", max_length=webhooks.DELIVERIES_KEPT)
    ]


class Webhooks(Shape):
    """The webhooks of an account."""

    webhooks: Annotated[tuple[Webhook, ...], doc("oldest first", max_length=webhooks.MOST_WEBHOOKS)]


class DeletedWebhook(Shape):
    """A webhook that was deleted."""

    success: Always
    id: str


def render_webhook(webhook: webhooks.Webhook) -> Webhook:
    """Render a webhook."""
    return _webhook(Webhook, webhook)


def render_webhooks(found: list[webhooks.Webhook]) -> Webhooks:
    """Render the webhooks of an account."""
    return Webhooks(tuple(map(render_webhook, found)))


def render_created(webhook: webhooks.Webhook) -> WebhookWithSecret:
    """Render a new webhook, with its secret."""
    return _webhook(WebhookWithSecret, webhook)


def render_rotated(webhook: webhooks.Webhook) -> RotatedWebhook:
    """Render a webhook with its new secret."""
    until = format_instant(webhook.earlier_until or webhook.created_at)
    return _webhook(RotatedWebhook, webhook, earlier_signs_until=until)


def render_shown(shown: WebhookDetails) -> ShownWebhookShape:
    """Render a webhook with its last delivery attempts."""
    deliveries = tuple(map(render_delivery, shown.deliveries))
    return _webhook(ShownWebhookShape, shown.webhook, deliveries=deliveries)


def render_delivery(delivery: webhooks.WebhookDelivery) -> WebhookAttempt:
    """Render a delivery attempt."""
    attempt = delivery.attempt
    return shape_from(
        WebhookAttempt,
        delivery,
        id=delivery.event_id,
        delivered=attempt.is_taken,
        status=attempt.status,
        problem=attempt.problem,
    )


def _webhook(kind: type[W], webhook: webhooks.Webhook, **others: Any) -> W:
    has_key = webhook.provider == "sendgrid"
    return shape_from(
        kind,
        webhook,
        filter=render_filter(webhook.wanted),
        cursor=format_cursor(webhook.position),
        provider=webhook.provider or None,
        verification_key=verification_key(webhook.secret) if has_key else None,
        next_attempt_at=timestamp(webhook.retry_at),
        **others,
    )


def render_filter(wanted: MessageFilter) -> WebhookFilter:
    """Render the filter of a webhook, with the fields that were set."""
    given = {
        filter_.attribute: filter_.write(getattr(wanted, filter_.attribute))
        for filter_ in _FILTERS.values()
    }
    return WebhookFilter(
        **{name: value for name, value in given.items() if value not in (None, ())}
    )


def describe_filter(wanted: MessageFilter) -> list[str]:
    """Describe the filter of a webhook. The list is empty if all mail is delivered."""
    return [f"{name}: {value}" for name, value in as_json(render_filter(wanted)).items()]
