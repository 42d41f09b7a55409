"""JSON shapes of watches, their alerts and their history."""

import csv
import io
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from mailcheck.api.inbox.webhooks import Secret
from mailcheck.api.shapes import Always, Count, Shape, Texts, Timestamp, doc, shape_from
from mailcheck.checks.findings import Severity
from mailcheck.checks.scoring.score import grade_of
from mailcheck.checks.watching.changes import WatchState, read_state
from mailcheck.checks.watching.facts import ANSWERS, CERTIFICATE_ENDS, host_of
from mailcheck.checks.watching.uptime import uptime
from mailcheck.core.domains import watches
from mailcheck.core.domains.domain_names import MAX_ADDRESSES, MAX_SELECTORS
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.instants import DAY, MINUTE, Instant, format_instant, parse_instant
from mailcheck.core.webhooks import ALERT_TO_TEXT, Webhook, WebhookState, address_of
from mailcheck.operations.domains.watches import manage_watches
from mailcheck.operations.domains.watches.manage_watches import SHOWN_ALERTS, WatchDetails
from mailcheck.store.domains.watch_store import History, WatchPage

Minutes = Annotated[
    int,
    doc(
        "minutes between two checks",
        ge=watches.SHORTEST_INTERVAL // MINUTE,
        le=watches.LONGEST_INTERVAL // MINUTE,
    ),
]
Selectors = Annotated[
    Texts, doc("DKIM selectors that the domain signs with", max_length=MAX_SELECTORS)
]
Addresses = Annotated[
    Texts, doc("IP addresses that the domain sends from", max_length=MAX_ADDRESSES)
]


AlertTo = Annotated[Texts, doc(ALERT_TO_TEXT, max_length=watches.MOST_RECEIVERS)]


class Watch(Shape):
    """A domain or an IP address that is checked regularly."""

    id: str
    target: str
    kind: Literal["domain", "address"]
    every_minutes: Minutes
    selectors: Selectors
    addresses: Addresses
    quiet: Annotated[str | None, doc("time of day (UTC) without alerts")]
    paused: bool
    alert_to: AlertTo
    created_at: Timestamp
    last_run_at: Annotated[Timestamp | None, doc("null before the first check")]
    next_run_at: Annotated[Timestamp | None, doc("null while the watch is paused")]
    problem_count: Annotated[
        Count | None,
        doc("current problems, including those of the first check; null before it"),
    ]


class CreatedReceiver(Shape):
    """A webhook that was created for alerts."""

    id: Annotated[str, doc("id of the webhook")]
    url: str
    secret: Secret


class KeptWatch(Watch):
    """A created or changed watch."""

    new_webhooks: Annotated[
        tuple[CreatedReceiver, ...], doc("webhooks that were created, because none had this URL")
    ]


class AlertReceiver(Shape):
    """A recipient of alerts, with the state of deliveries to it."""

    to: Annotated[str, doc("a webhook URL, an email address, or a chat such as slack:URL")]
    webhook_id: str
    state: Annotated[
        WebhookState, doc("active; paused: retried less often or not at all; ended by its receiver")
    ]
    failing_since: Annotated[Timestamp | None, doc("first failure since the last success")]
    problem: Annotated[str, doc("the last failure; empty after a success")]
    next_attempt_at: Annotated[
        Timestamp | None, doc("null without a failure, or if there are no further attempts")
    ]


class WatchAlert(Shape):
    """A problem that appeared after monitoring began. Its end is part of the same alert."""

    id: str
    watch_id: str
    target: str
    severity: Severity
    sentence: str
    opened_at: Timestamp
    ended_at: Annotated[Timestamp | None, doc("null while the problem lasts")]
    ending: Annotated[str, doc("how the problem ended; empty while it lasts")]
    acknowledged_at: Timestamp | None


class WatchProblem(Shape):
    """A current problem, including problems that existed before monitoring began."""

    about: str
    severity: Severity
    sentence: str


class WatchedHost(Shape):
    """A mail host in the last check."""

    host: str
    answers: Annotated[bool | None, doc("accepts connections; null: undetermined")]
    certificate_ends_on: Annotated[str | None, doc("day on which the certificate expires (UTC)")]
    certificate_days: Annotated[int | None, doc("days until then; negative if it has expired")]


class WatchWithState(Watch):
    """A watch with the results of its last check and its alerts."""

    score: Annotated[int | None, doc("0 to 100; null for an address or before the first check")]
    grade: str | None
    problems: tuple[WatchProblem, ...]
    undetermined: Annotated[
        Texts, doc("what could not be determined in at least three consecutive checks")
    ]
    hosts: tuple[WatchedHost, ...]
    alerts: Annotated[tuple[WatchAlert, ...], doc("open alerts first", max_length=SHOWN_ALERTS)]
    receivers: tuple[AlertReceiver, ...]


class Watches(Shape):
    """The watches of an account."""

    watches: Annotated[tuple[Watch, ...], doc("sorted by target")]
    total: Annotated[Count, doc("all watches of the account")]
    open_alerts: Annotated[tuple[WatchAlert, ...], doc("newest first", max_length=SHOWN_ALERTS)]


class RefusedWatch(Shape):
    """A watch that could not be created."""

    target: str
    error: str


class MadeWatches(Shape):
    """The result of creating several watches."""

    made: tuple[Watch, ...]
    refused: tuple[RefusedWatch, ...]
    new_webhooks: Annotated[
        tuple[CreatedReceiver, ...], doc("webhooks that were created for alerts")
    ]


class DeletedWatch(Shape):
    """Confirmation that a watch was deleted."""

    success: Always
    id: str


class WatchChangeShape(Shape):
    """A difference between two consecutive checks."""

    component_name = "WatchChange"

    at: Timestamp
    topic: str
    name: str
    before: Annotated[str | None, doc("null: absent or undetermined")]
    after: str | None
    severity: Severity
    sentence: str


class WatchScoreShape(Shape):
    """The score from an instant until the next entry."""

    component_name = "WatchScore"

    at: Timestamp
    score: int
    grade: str
    factors: Annotated[dict[str, int], doc("points of each factor")]


class HostUptime(Shape):
    """The fraction of time in which a mail host accepted connections."""

    host: str
    uptime: Annotated[Annotated[float, Meta(ge=0, le=1)] | None, doc("0 to 1; null: undetermined")]


class WatchHistory(Shape):
    """The changes of a watched domain or address, oldest first."""

    id: str
    target: str
    since: Timestamp
    changes: tuple[WatchChangeShape, ...]
    scores: tuple[WatchScoreShape, ...]
    hosts: tuple[HostUptime, ...]
    truncated: Annotated[bool, doc("there are older changes; request a later `since`")]


def render_watch(watch: watches.Watch) -> Watch:
    """Render a watch."""
    return shape_from(Watch, watch.settings, **_fields(watch))


def render_kept(kept: manage_watches.SavedWatch) -> KeptWatch:
    """Render a created or changed watch."""
    watch, webhooks = kept.watch, _new_webhooks(kept)
    return shape_from(KeptWatch, watch.settings, **_fields(watch), new_webhooks=webhooks)


def _new_webhooks(kept: manage_watches.SavedWatch) -> tuple[CreatedReceiver, ...]:
    return render_created_receivers(kept.new_receivers)


def render_created_receivers(receivers: Sequence[Webhook]) -> tuple[CreatedReceiver, ...]:
    """Render the receivers that are new to an account, with their secrets."""
    # Only webhooks in our own format are signed, so that mails and chats have no secret.
    signing = (receiver for receiver in receivers if receiver.is_signed)
    return tuple(shape_from(CreatedReceiver, webhook) for webhook in signing)


def render_page(page: WatchPage, alerts: Sequence[watches.Alert]) -> Watches:
    """Render a page of an account's watches."""
    shown = tuple(map(render_watch, page.watches))
    return Watches(shown, page.total, tuple(map(render_alert, alerts)))


def render_shown(shown: WatchDetails, now: Instant) -> WatchWithState:
    """Render a watch with the results of its last check."""
    state = read_state(shown.watch.state)
    has_score = state is not None and bool(state.points)
    return shape_from(
        WatchWithState,
        shown.watch.settings,
        **_fields(shown.watch),
        score=state.score if state is not None and has_score else None,
        grade=grade_of(state.score) if state is not None and has_score else None,
        problems=() if state is None else _problems(state),
        undetermined=() if state is None else state.lost,
        hosts=() if state is None else _hosts(state, now),
        alerts=tuple(map(render_alert, shown.alerts)),
        receivers=tuple(map(render_receiver, shown.receivers)),
    )


def render_receiver(webhook: Webhook) -> AlertReceiver:
    """Render a recipient of alerts."""
    return shape_from(
        AlertReceiver,
        webhook,
        to=webhook.address,
        webhook_id=webhook.id,
        next_attempt_at=webhook.retry_at,
    )


def render_alert(alert: watches.Alert) -> WatchAlert:
    """Render an alert."""
    return shape_from(WatchAlert, alert)


def render_made(
    targets: Sequence[str], outcomes: Sequence[manage_watches.SavedWatch | ExpectedFailure]
) -> MadeWatches:
    """Render the result of creating several watches."""
    kept = [outcome for outcome in outcomes if isinstance(outcome, manage_watches.SavedWatch)]
    return MadeWatches(
        tuple(render_watch(watch.watch) for watch in kept),
        tuple(
            RefusedWatch(target, str(failure))
            for target, failure in zip(targets, outcomes, strict=True)
            if isinstance(failure, ExpectedFailure)
        ),
        tuple(created for watch in kept for created in _new_webhooks(watch)),
    )


def render_history(
    watch: watches.Watch, history: History, since: Instant | None, now: Instant
) -> WatchHistory:
    """Render the changes since an instant, or since monitoring began."""
    begins = max(since or watch.created_at, Instant(now - watches.HISTORY_KEPT))
    return shape_from(
        WatchHistory,
        watch,
        since=begins,
        changes=tuple(shape_from(WatchChangeShape, change) for change in history.changes),
        scores=tuple(
            shape_from(WatchScoreShape, score, factors=score.points) for score in history.scores
        ),
        hosts=host_uptimes(watch, history, Instant(begins)),
        truncated=history.is_cut,
    )


def host_uptimes(watch: watches.Watch, history: History, begins: Instant) -> tuple[HostUptime, ...]:
    """Return the uptime of each mail host from ``begins`` until the last check."""
    state = read_state(watch.state)
    ends = watch.last_run_at
    if state is None or ends is None:
        return ()
    return tuple(
        HostUptime(host, uptime(host, history.changes, answers, begins, ends))
        for host, answers in _host_answers(state).items()
    )


def write_csv(watch: watches.Watch, history: History) -> bytes:
    """Format changes and scores as CSV (RFC 4180), oldest first."""
    rows = [
        (
            change.at,
            "change",
            change.topic,
            change.name,
            change.before,
            change.after,
            change.severity,
            change.sentence,
        )
        for change in history.changes
    ]
    rows += [
        (score.at, "score", name, "", None, str(points), "", "")
        for score in history.scores
        for name, points in {"score": score.score, **score.points}.items()
    ]
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(
        ("target", "at", "kind", "topic", "name", "before", "after", "severity", "sentence")
    )
    for at, *rest in sorted(rows, key=lambda row: row[0]):
        table.writerow((watch.target, format_instant(at), *map(_cell, rest)))
    return text.getvalue().encode()


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _cell(value: str | None) -> str:
    """Escape a value so that a spreadsheet does not evaluate published records as formulas."""
    text = value or ""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _fields(watch: watches.Watch) -> dict[str, Any]:
    """Return the fields that are not settings of the same names."""
    settings = watch.settings
    return {
        "id": watch.id,
        "target": watch.target,
        "kind": watch.kind.value,
        "every_minutes": settings.interval // MINUTE,
        "quiet": None if settings.quiet is None else str(settings.quiet),
        "alert_to": tuple(map(address_of, settings.alert_to)),
        "created_at": watch.created_at,
        "last_run_at": watch.last_run_at,
        "problem_count": watch.problem_count,
        "next_run_at": None if settings.is_paused else watch.next_run_at,
    }


def _problems(state: WatchState) -> tuple[WatchProblem, ...]:
    found = [
        WatchProblem(key, fact.severity, fact.says)
        for key, fact in state.problems
        if fact.severity is not None
    ]
    return tuple(sorted(found, key=lambda one: one.severity.rank))


def _host_answers(state: WatchState) -> dict[str, str | None]:
    found = {}
    for topic, seen in state.topics.items():
        host = host_of(topic)
        if host is not None:
            fact = seen.facts.get(ANSWERS)
            found[host] = None if fact is None or seen.is_lost else fact.value
    return found


def _hosts(state: WatchState, now: Instant) -> tuple[WatchedHost, ...]:
    hosts = []
    for topic, seen in state.topics.items():
        host = host_of(topic)
        if host is None:
            continue
        answers, ends = _host_answers(state)[host], seen.facts.get(CERTIFICATE_ENDS)
        days = None
        if ends is not None:
            days = (parse_instant(f"{ends.value}T00:00:00Z") - now) // DAY
        accepts = None if answers is None else answers == "yes"
        hosts.append(WatchedHost(host, accepts, None if ends is None else ends.value, days))
    return tuple(hosts)
