"""JSON shapes of mail into applications: routes, sent mails and attempts."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

from mailcheck.api.shapes import Always, Count, Shape, Texts, Timestamp, doc, shape_from, timestamp
from mailcheck.core import inbound
from mailcheck.core.inbound import InboundFault, InboundFormat, InboundState
from mailcheck.operations.inbound.read_attempts import AttemptPage
from mailcheck.operations.inbound.send_mail import SentMail
from mailcheck.operations.inbox.webhooks.event_signatures import verification_key
from mailcheck.store.inbound_store import ListedDelivery

_WITH_PUBLIC_KEY = (InboundFormat.SENDGRID, InboundFormat.SENDGRID_RAW)


class InboundRoute(Shape):
    """Mail to matching recipients goes to an application, in the format of a provider."""

    id: str
    to: Annotated[str, doc("recipients, with * for any characters")]
    format: InboundFormat
    url: str
    user: Annotated[str, doc("empty without authentication")]
    speed: Annotated[int, doc("factor by which the schedule of retries is shortened")]
    fault: Annotated[InboundFault | None, doc("fault of each mail")]
    confirmed: Annotated[
        bool,
        doc("false until the application has confirmed the subscription of SNS; mails wait for it"),
    ]
    created_at: Timestamp
    verification_key: Annotated[
        str | None,
        doc("public key with which SendGrid's libraries verify; null for other formats"),
    ]


R = TypeVar("R", bound=InboundRoute)


class InboundRouteWithSecret(InboundRoute):
    """A new route with its secret, which no other response contains."""

    secret: Annotated[str, doc("signs the requests; store it, it is not shown again")]


class InboundRoutes(Shape):
    """The routes of an account."""

    routes: Annotated[tuple[InboundRoute, ...], doc("oldest first", max_length=inbound.MOST_ROUTES)]


class DeletedInboundRoute(Shape):
    """A route that was deleted, with its mails and attempts."""

    success: Always
    id: str


class SentInboundMail(Shape):
    """A mail that is on its way to the application."""

    id: Annotated[str, doc("id of the mail, for GET /inbound/attempts")]
    deliveries: Annotated[
        Texts, doc("id of each delivery: several if the format has a request for each recipient")
    ]


class HeaderField(Shape):
    """A header field of a request or of an answer."""

    name: str
    value: str


class InboundAttemptShape(Shape):
    """An attempt to deliver a mail to an application."""

    component_name = "InboundAttempt"

    delivery_id: str
    route_id: str
    mail_id: str
    number: Annotated[Count, doc("counts the attempts of the delivery from 1")]
    at: Timestamp
    delivered: Annotated[bool, doc("whether the application took the mail")]
    status: Annotated[int | None, doc("HTTP status or SMTP reply; null without an answer")]
    problem: Annotated[str, doc("empty if the application took it")]
    milliseconds: Count
    request_headers: Annotated[tuple[HeaderField, ...], doc("without credentials")]
    answer_headers: tuple[HeaderField, ...]
    answer: Annotated[str, doc(f"the first {inbound.ANSWER_KEPT:,} octets of the body, as UTF-8")]


class InboundDeliveryShape(Shape):
    """The delivery of a mail to one route, with its state."""

    component_name = "InboundDelivery"

    id: str
    route_id: str
    mail_id: str
    recipients: Texts
    subject: str
    state: Annotated[
        InboundState,
        doc(
            "waiting; retrying after a failure; delivered; failed: the provider gives up; stopped: "
            "part of a loop, and not sent"
        ),
    ]
    fault: InboundFault | None
    created_at: Timestamp
    next_attempt_at: Annotated[Timestamp | None, doc("null after the last attempt")]


class InboundAttempts(Shape):
    """Attempts, and the deliveries of the same route and mail."""

    attempts: Annotated[tuple[InboundAttemptShape, ...], doc("newest first")]
    total: Annotated[Count, doc("number of all attempts")]
    delivered: Annotated[
        bool, doc("whether the application took the mail; without `mail`, whether it took any")
    ]
    pending: Annotated[Count, doc("deliveries with a next attempt")]
    deliveries: Annotated[tuple[InboundDeliveryShape, ...], doc("newest first, at most 50")]


def render_route(route: inbound.InboundRoute) -> InboundRoute:
    """Render a route, without secrets."""
    return _route(InboundRoute, route)


def render_routes(routes: Sequence[inbound.InboundRoute]) -> InboundRoutes:
    """Render the routes of an account."""
    return InboundRoutes(tuple(map(render_route, routes)))


def render_created_route(route: inbound.InboundRoute) -> InboundRouteWithSecret:
    """Render a new route, with its secret."""
    return _route(InboundRouteWithSecret, route)


def render_sent(sent: SentMail) -> SentInboundMail:
    """Render a mail that waits for its deliveries."""
    return SentInboundMail(sent.mail_id, tuple(delivery.id for delivery in sent.deliveries))


def render_attempts(page: AttemptPage) -> InboundAttempts:
    """Render a page of attempts."""
    return InboundAttempts(
        attempts=tuple(map(render_attempt, page.attempts)),
        total=page.total,
        delivered=page.is_delivered,
        pending=page.pending,
        deliveries=tuple(
            _render_delivery(listed)
            for listed in page.deliveries
            if listed.delivery.mail_id is not None
        ),
    )


def render_attempt(attempt: inbound.InboundAttempt) -> InboundAttemptShape:
    """Render an attempt."""
    return shape_from(
        InboundAttemptShape,
        attempt,
        delivered=not attempt.problem,
        request_headers=_headers(attempt.request_headers),
        answer_headers=_headers(attempt.answer_headers),
        answer=attempt.answer.decode("utf-8", "replace"),
    )


def _render_delivery(listed: ListedDelivery) -> InboundDeliveryShape:
    return shape_from(
        InboundDeliveryShape,
        listed.delivery,
        subject="" if listed.header is None else listed.header.subject,
        next_attempt_at=timestamp(listed.delivery.due_at),
    )


def _headers(pairs: Sequence[tuple[str, str]]) -> tuple[HeaderField, ...]:
    return tuple(HeaderField(name, value) for name, value in pairs)


def _route(kind: type[R], route: inbound.InboundRoute) -> R:
    has_key = route.format in _WITH_PUBLIC_KEY
    public_key = verification_key(route.secret) if has_key else None
    return shape_from(kind, route, confirmed=route.is_confirmed, verification_key=public_key)
