"""JSON shapes of heartbeats, their mails and their days."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from mailcheck.api.domains.watches import (
    AlertReceiver,
    AlertTo,
    CreatedReceiver,
    WatchAlert,
    render_alert,
    render_created_receivers,
    render_receiver,
)
from mailcheck.api.shapes import Always, Count, Date, Shape, Timestamp, doc, shape_from
from mailcheck.core.domains import heartbeats, watches
from mailcheck.core.domains.heartbeats import DAY_NAMES, BeatVerdict, HeartbeatState
from mailcheck.core.domains.watches import expected_of
from mailcheck.core.instants import MINUTE, SECOND
from mailcheck.core.webhooks import address_of
from mailcheck.operations.domains.watches import manage_heartbeats
from mailcheck.operations.domains.watches.manage_heartbeats import HeartbeatDetails
from mailcheck.operations.domains.watches.manage_watches import SHOWN_ALERTS
from mailcheck.store.domains.heartbeat_store import MOST_BEATS

Score = Annotated[float, Meta(ge=0, le=10)]

Passes = Annotated[bool | None, doc("null: undetermined")]


class Heartbeat(Shape):
    """Mail that is expected on a schedule."""

    name: str
    address: Annotated[str, doc("address to which the mail is sent")]
    state: Annotated[
        HeartbeatState,
        doc(
            "new: none has come yet; on-time; late: one has not come within its grace; missing: "
            "two or more in a row have not come; paused"
        ),
    ]
    schedule: Annotated[str, doc("the schedule in words")]
    at: Annotated[str | None, doc("time of day at which mail is due; null for an interval")]
    time_zone: Annotated[str | None, doc("time zone of `at`")]
    days: Annotated[tuple[str, ...], doc("days of the week of `at`; empty for all")]
    every_minutes: Annotated[int | None, doc("minutes from one mail to the next; null with `at`")]
    grace_minutes: Annotated[int, doc("minutes after which a mail is late")]
    slow_minutes: Annotated[int, doc("minutes in transit after which a mail is slow; 0: any time")]
    signed_by: Annotated[str | None, doc("domain whose valid DKIM signature is required")]
    quiet: Annotated[str | None, doc("time of day (UTC) without alerts")]
    paused: bool
    alert_to: AlertTo
    created_at: Timestamp
    last_at: Annotated[Timestamp | None, doc("when the last mail that counts arrived")]
    due_at: Annotated[Timestamp | None, doc("when the next mail is due; null while paused")]
    missed: Annotated[Count, doc("mails in a row that have not come")]
    late_seconds: Annotated[
        int | None, doc("seconds after which the last mail came once it was due; negative: early")
    ]
    score: Annotated[Score | None, doc("score of the last mail; null: undetermined")]
    problem_count: Annotated[Count, doc("open problems")]


class KeptHeartbeat(Heartbeat):
    """A created or changed heartbeat."""

    new_webhooks: Annotated[
        tuple[CreatedReceiver, ...], doc("webhooks that were created, because none had this URL")
    ]


class BeatShape(Shape):
    """A mail to a heartbeat, and what became of it."""

    component_name = "Beat"

    at: Annotated[Timestamp, doc("when it arrived")]
    verdict: Annotated[
        BeatVerdict,
        doc(
            "on-time and late mails count; extra: none was expected; refused: without a valid "
            "signature of the required domain; undetermined: that could not be verified"
        ),
    ]
    late_seconds: Annotated[int | None, doc("seconds after it was due; null if it does not count")]
    score: Score | None
    spf: Passes
    dkim: Passes
    dmarc: Passes
    tls: Passes
    transit_seconds: Annotated[int | None, doc("seconds in transit by its Received fields")]
    slowest_host: Annotated[str | None, doc("host where it waited longest, by its own field")]


class HeartbeatDay(Shape):
    """The mails of a day in the time zone of the schedule."""

    day: Annotated[Date, doc("the date"), Meta(extra_json_schema={"format": "date"})]
    on_time: Count
    late: Count
    missing: Count
    refused: Annotated[Count, doc("mails without a valid signature of the required domain")]
    problems: Annotated[Count, doc("mails that came while a problem was open")]
    lowest_score: Score | None


class HeartbeatWithBeats(Heartbeat):
    """A heartbeat with its days, mails and alerts."""

    history: Annotated[
        tuple[HeartbeatDay, ...],
        doc("days with mail that came or should have come, oldest first, of the last 90 days"),
    ]
    beats: Annotated[tuple[BeatShape, ...], doc("newest first", max_length=MOST_BEATS)]
    alerts: Annotated[tuple[WatchAlert, ...], doc("open alerts first", max_length=SHOWN_ALERTS)]
    receivers: tuple[AlertReceiver, ...]


class Heartbeats(Shape):
    """The heartbeats of an account."""

    heartbeats: Annotated[tuple[Heartbeat, ...], doc("sorted by name")]
    open_alerts: Annotated[tuple[WatchAlert, ...], doc("newest first", max_length=SHOWN_ALERTS)]


class DeletedHeartbeat(Shape):
    """Confirmation that a heartbeat was deleted."""

    success: Always
    name: str


def render_heartbeat(one: manage_heartbeats.Heartbeat) -> Heartbeat:
    """Render a heartbeat."""
    return shape_from(Heartbeat, one, **_fields(one))


def render_kept_heartbeat(kept: manage_heartbeats.SavedHeartbeat) -> KeptHeartbeat:
    """Render a created or changed heartbeat."""
    one, webhooks = kept.heartbeat, render_created_receivers(kept.new_receivers)
    return shape_from(KeptHeartbeat, one, **_fields(one), new_webhooks=webhooks)


def render_heartbeats(
    found: Sequence[manage_heartbeats.Heartbeat], alerts: Sequence[watches.Alert]
) -> Heartbeats:
    """Render the heartbeats of an account."""
    return Heartbeats(tuple(map(render_heartbeat, found)), tuple(map(render_alert, alerts)))


def render_heartbeat_details(shown: HeartbeatDetails) -> HeartbeatWithBeats:
    """Render a heartbeat with its days, mails and alerts."""
    return shape_from(
        HeartbeatWithBeats,
        shown.heartbeat,
        **_fields(shown.heartbeat),
        history=tuple(map(_day, shown.heartbeat.days)),
        beats=tuple(beat for shown_beat in shown.beats if (beat := _beat(shown_beat)) is not None),
        alerts=tuple(map(render_alert, shown.alerts)),
        receivers=tuple(map(render_receiver, shown.receivers)),
    )


def _fields(one: manage_heartbeats.Heartbeat) -> dict[str, Any]:
    settings, beats = one.watch.settings, one.beats
    expected = expected_of(settings)
    schedule = expected.schedule
    is_daily = not schedule.every
    score = None if beats.facts is None else beats.facts.score
    return {
        "schedule": str(schedule),
        "at": f"{schedule.at // 60:02}:{schedule.at % 60:02}" if is_daily else None,
        "time_zone": schedule.zone if is_daily else None,
        "days": tuple(DAY_NAMES[day] for day in schedule.days),
        "every_minutes": None if is_daily else schedule.every // MINUTE,
        "grace_minutes": expected.grace // MINUTE,
        "slow_minutes": expected.slow_after // MINUTE,
        "signed_by": expected.signed_by,
        "quiet": None if settings.quiet is None else str(settings.quiet),
        "paused": settings.is_paused,
        "alert_to": tuple(map(address_of, settings.alert_to)),
        "created_at": one.watch.created_at,
        "last_at": beats.last_at,
        "due_at": None if settings.is_paused else beats.expected.due,
        "missed": beats.misses,
        "late_seconds": _seconds(beats.late),
        "score": _score(score),
        "problem_count": len(beats.alerts),
    }


def _beat(one: heartbeats.JudgedBeat) -> BeatShape | None:
    if one.verdict is None:
        return None
    facts = one.facts or heartbeats.BeatFacts()
    return shape_from(
        BeatShape,
        facts,
        at=one.received_at,
        verdict=one.verdict,
        late_seconds=_seconds(one.late),
        score=_score(facts.score),
        transit_seconds=facts.seconds,
        slowest_host=facts.slowest,
    )


def _day(one: heartbeats.DayOfBeats) -> HeartbeatDay:
    return shape_from(HeartbeatDay, one, lowest_score=_score(one.lowest))


def _seconds(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds // SECOND


def _score(tenths: int | None) -> float | None:
    return None if tenths is None else tenths / 10
