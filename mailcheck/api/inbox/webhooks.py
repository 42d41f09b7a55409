"""JSON shapes of webhooks (docs/reference/contract.md)."""

from typing import Annotated, Any

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
)
from mailcheck.core import webhooks
from mailcheck.core.cursors import format_cursor
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import Instant, format_instant
from mailcheck.operations.inbox.manage_webhooks import WebhookDetails

Secret = Annotated[
    str, doc("signs every delivery (Standard Webhooks); shown this once, so keep it")
]


def _field_of_filter(one: Field) -> tuple[str, Any, Any]:
    """Return a field of the shape of a filter: of the type that it has in JSON."""
    kind: Any = Texts if one.is_list else {"string": str, "boolean": bool}[one.kind.json_type]
    kind = Annotated[kind, doc(one.info.brief or "")]
    return one.attribute, kind | Absent, msgspec.field(name=one.name, default=ABSENT)


_FILTERS = request_fields(ContentFilters)

_FilterFields: Any = msgspec.defstruct(
    "FilterFields", map(_field_of_filter, _FILTERS.values()), bases=(Shape,)
)


class WebhookFilter(_FilterFields):  # type: ignore[misc]
    """Which mail is told: as the parameters of a wait of the same names."""


class Webhook(Shape):
    """Where messages are posted to, and how that goes."""

    id: str
    url: str
    filter: WebhookFilter
    created_at: Timestamp
    state: Annotated[
        webhooks.WebhookState,
        doc(
            "active; paused after an hour of failures, tried less often and not at all after a "
            "day; ended by its receiver with 410"
        ),
    ]
    cursor: Annotated[Cursor, doc("up to here it was told")]
    failing_since: Annotated[Timestamp | None, doc("the first failure since the last success")]
    failures: Annotated[Count, doc("in a row")]
    problem: Annotated[str, doc("what was wrong with the last one; empty where all is well")]
    next_attempt_at: Annotated[
        Timestamp | None, doc("null where nothing failed, or it is tried no more")
    ]


class WebhookWithSecret(Webhook):
    """A webhook with its secret, which no other answer shows."""

    secret: Secret


class RotatedWebhook(WebhookWithSecret):
    """A webhook with a new secret."""

    earlier_signs_until: Annotated[Timestamp, doc("both secrets sign until then")]


class WebhookAttempt(Shape):
    """A try to deliver; of what the receiver said the status alone is kept."""

    id: Annotated[str, doc("webhook-id: the same for each try of one message; test_... of a test")]
    at: Timestamp
    delivered: bool
    status: Annotated[int | None, doc("null where there was no answer")]
    problem: Annotated[str, doc("empty where it was delivered")]
    milliseconds: Count


class ShownWebhookShape(Webhook):
    """A webhook with its last deliveries."""

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
    return Webhook(**_fields(webhook))


def render_webhooks(found: list[webhooks.Webhook]) -> Webhooks:
    """Render the webhooks of an account."""
    return Webhooks(tuple(map(render_webhook, found)))


def render_created(webhook: webhooks.Webhook) -> WebhookWithSecret:
    """Render a new webhook, with its secret."""
    return WebhookWithSecret(**_fields(webhook), secret=webhook.secret)


def render_rotated(webhook: webhooks.Webhook) -> RotatedWebhook:
    """Render a webhook with its new secret."""
    until = format_instant(webhook.earlier_until or webhook.created_at)
    return RotatedWebhook(**_fields(webhook), secret=webhook.secret, earlier_signs_until=until)


def render_shown(shown: WebhookDetails) -> ShownWebhookShape:
    """Render a webhook with its last deliveries."""
    deliveries = tuple(map(render_delivery, shown.deliveries))
    return ShownWebhookShape(**_fields(shown.webhook), deliveries=deliveries)


def render_delivery(delivery: webhooks.WebhookDelivery) -> WebhookAttempt:
    """Render a try."""
    attempt = delivery.attempt
    return WebhookAttempt(
        id=delivery.event_id,
        at=format_instant(delivery.at),
        delivered=attempt.is_taken,
        status=attempt.status,
        problem=attempt.problem,
        milliseconds=delivery.milliseconds,
    )


def _fields(webhook: webhooks.Webhook) -> dict[str, Any]:
    return {
        "id": webhook.id,
        "url": webhook.url,
        "filter": render_filter(webhook.wanted),
        "created_at": format_instant(webhook.created_at),
        "state": webhook.state,
        "cursor": format_cursor(webhook.position),
        "failing_since": _moment(webhook.failing_since),
        "failures": webhook.failures,
        "problem": webhook.problem,
        "next_attempt_at": _moment(webhook.retry_at),
    }


def _moment(instant: Instant | None) -> str | None:
    return None if instant is None else format_instant(instant)


def render_filter(wanted: MessageFilter) -> WebhookFilter:
    """Render what a webhook is told of, as it was asked for."""
    given = {one.attribute: one.write(getattr(wanted, one.attribute)) for one in _FILTERS.values()}
    return WebhookFilter(**{name: one for name, one in given.items() if one not in (None, ())})


def describe_filter(wanted: MessageFilter) -> list[str]:
    """Say in words what a webhook is told of: nothing where that is all mail."""
    return [f"{name}: {value}" for name, value in as_json(render_filter(wanted)).items()]
