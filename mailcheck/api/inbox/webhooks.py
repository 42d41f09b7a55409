"""JSON shapes of webhooks (DECISIONS.md section 4)."""

from typing import Annotated, Any

from mailcheck.api.inbox.messages import Cursor
from mailcheck.api.parameters import Query
from mailcheck.api.request_bodies import parse_object, refuse_unknown, text_in
from mailcheck.api.shapes import (
    ABSENT,
    Absent,
    Always,
    Count,
    Shape,
    Texts,
    Timestamp,
    as_json,
    said,
)
from mailcheck.core import webhooks
from mailcheck.core.cursors import Position, format_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import Instant, format_instant
from mailcheck.operations.inbox.webhooks import ShownWebhook

NEW_EXAMPLE = '{"url": "https://ci.example.com/mail", "tag": "signup"}'
REPLAY_EXAMPLE = '{"after": "c0"}'

Secret = Annotated[
    str, said("signs every delivery (Standard Webhooks); shown this once, so keep it")
]


class WebhookFilter(Shape):
    """Which mail is told: as the parameters of a wait of the same names."""

    tag: str | Absent = ABSENT
    tag_prefix: str | Absent = ABSENT
    to: str | Absent = ABSENT
    from_: str | Absent = ABSENT
    subject: str | Absent = ABSENT
    header: Annotated[Texts, said("name of a field, colon, part of its value")] | Absent = ABSENT
    text: str | Absent = ABSENT
    has_attachment: bool | Absent = ABSENT


class NewWebhook(WebhookFilter, kw_only=True):
    """A webhook to be made."""

    url: Annotated[
        str,
        said(
            "http or https address that messages are posted to",
            min_length=1,
            max_length=webhooks.LONGEST_URL,
        ),
    ]
    after: (
        Annotated[str, said("cursor after which it is told; without it what comes from now on")]
        | Absent
    ) = ABSENT


class Webhook(Shape):
    """Where messages are posted to, and how that goes."""

    id: str
    url: str
    filter: WebhookFilter
    created_at: Timestamp
    state: Annotated[
        webhooks.WebhookState,
        said(
            "active; paused after an hour of failures, tried less often and not at all after a "
            "day; ended by its receiver with 410"
        ),
    ]
    cursor: Annotated[Cursor, said("up to here it was told")]
    failing_since: Annotated[Timestamp | None, said("the first failure since the last success")]
    failures: Annotated[Count, said("in a row")]
    problem: Annotated[str, said("what was wrong with the last one; empty where all is well")]
    next_attempt_at: Annotated[
        Timestamp | None, said("null where nothing failed, or it is tried no more")
    ]


class WebhookWithSecret(Webhook):
    """A webhook with its secret, which no other answer shows."""

    secret: Secret


class RotatedWebhook(WebhookWithSecret):
    """A webhook with a new secret."""

    earlier_signs_until: Annotated[Timestamp, said("both secrets sign until then")]


class WebhookAttempt(Shape):
    """A try to deliver; of what the receiver said the status alone is kept."""

    id: Annotated[str, said("webhook-id: the same for each try of one message; test_... of a test")]
    at: Timestamp
    delivered: bool
    status: Annotated[int | None, said("null where there was no answer")]
    problem: Annotated[str, said("empty where it was delivered")]
    milliseconds: Count


class ShownWebhookShape(Webhook):
    """A webhook with its last deliveries."""

    component_name = "WebhookWithDeliveries"

    deliveries: Annotated[
        tuple[WebhookAttempt, ...], said("newest first", max_length=webhooks.DELIVERIES_KEPT)
    ]


class Webhooks(Shape):
    """The webhooks of an account."""

    webhooks: Annotated[
        tuple[Webhook, ...], said("oldest first", max_length=webhooks.MOST_WEBHOOKS)
    ]


class DeletedWebhook(Shape):
    """A webhook that was deleted."""

    success: Always
    id: str


class WebhookReplay(Shape):
    """Where a webhook is to be told from once more."""

    after: Annotated[str, said("cursor; c0: all that the inbox holds")]


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


def render_shown(shown: ShownWebhook) -> ShownWebhookShape:
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
    given: dict[str, Any] = {
        "tag": wanted.tag,
        "tag_prefix": wanted.tag_prefix,
        "to": wanted.recipient,
        "from_": wanted.author,
        "subject": wanted.subject,
        "header": tuple(f"{name}:{part}" for name, part in wanted.headers) or None,
        "text": wanted.text,
        "has_attachment": wanted.has_attachment,
    }
    return WebhookFilter(**{name: ABSENT if one is None else one for name, one in given.items()})


def describe_filter(wanted: MessageFilter) -> list[str]:
    """Say in words what a webhook is told of: nothing where that is all mail."""
    return [f"{name}: {value}" for name, value in as_json(render_filter(wanted)).items()]


_KNOWN = frozenset(NewWebhook.__struct_encode_fields__)


def parse_new_webhook(body: bytes) -> tuple[str, MessageFilter]:
    """Read the URL of a webhook that is to be made, and which mail it is to be told of.

    :raises InvalidParameter: something in it is missing, unknown or can't be read.
    """
    given = parse_object(body, NEW_EXAMPLE)
    refuse_unknown(given, _KNOWN, NEW_EXAMPLE)
    url = text_in(given.get("url"), "url", NEW_EXAMPLE)
    asked = {name: _texts(name, value) for name, value in given.items() if name != "url"}
    # The rules for each are those of the query of a wait.
    return url, Query(asked).wait_filter()


def _texts(name: str, value: object) -> list[str]:
    if name == "hasAttachment":
        if not isinstance(value, bool):
            raise InvalidParameter(name, f"{name} is true or false")
        return [str(value).lower()]
    if name == "header" and isinstance(value, list):
        return [text_in(one, name, NEW_EXAMPLE) for one in value]
    return [text_in(value, name, NEW_EXAMPLE)]


def parse_replay(body: bytes) -> Position:
    """Read after which cursor a webhook is to be told once more.

    :raises InvalidParameter: it is none.
    """
    given = parse_object(body, REPLAY_EXAMPLE)
    refuse_unknown(given, frozenset({"after"}), REPLAY_EXAMPLE)
    after = text_in(given.get("after"), "after", REPLAY_EXAMPLE)
    position = Query({"after": [after]}).cursor()
    assert position is not None, "it was given"
    return position
