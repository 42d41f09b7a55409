"""Watches for agents: their problems, open alerts and newest changes."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import convert

from mailcheck.api.domains.watches import (
    WatchProblem,
    render_history,
    render_page,
    render_shown,
)
from mailcheck.api.mcp.untrusted import PUBLISHED_NOTICE, Summarized, defuse
from mailcheck.api.requests.fields import NAME
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.api.shapes import ABSENT, Absent, Shape, Texts, Timestamp, doc, shape_from
from mailcheck.checks.findings import Severity
from mailcheck.core.domains import watches
from mailcheck.core.instants import Instant
from mailcheck.operations.domains.watches.manage_watches import WatchDetails
from mailcheck.store.domains.watch_store import History, WatchPage

NEWEST_CHANGES = 20
"""Maximum number of changes of a watch in a result, the newest."""


class GetWatchArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``get_watch``."""

    watch_id: Annotated[str, NAME, Description(brief="id from list_watches")]


class ListedWatch(Shape):
    """A watch in a list."""

    id: str
    target: str
    problem_count: Annotated[int | None, doc("current problems; null before the first check")]
    paused: bool | Absent = ABSENT


class OpenAlert(Shape):
    """A problem that lasts."""

    target: str
    severity: Severity
    sentence: str
    opened_at: Timestamp


class WatchesResult(Summarized):
    """The first watches of an account, and its open alerts."""

    total: int
    watches: tuple[ListedWatch, ...]
    open_alerts: tuple[OpenAlert, ...] | Absent = ABSENT


class WatchChange(Shape):
    """A difference between two consecutive checks."""

    component_name = "WatchChangeForAgents"

    at: Timestamp
    before: str | None
    after: str | None
    sentence: str


class WatchResult(Summarized):
    """The problems of a watched target, and its newest changes, oldest first."""

    id: str
    target: str
    score: Annotated[int | None, doc("0 to 100; null for an address or before the first check")]
    problems: tuple[WatchProblem, ...] | Absent = ABSENT
    undetermined: Texts | Absent = ABSENT
    open_alerts: tuple[OpenAlert, ...] | Absent = ABSENT
    changes: tuple[WatchChange, ...] | Absent = ABSENT


def render_watches(page: WatchPage, alerts: Sequence[watches.Alert]) -> WatchesResult:
    """Render the watches of an account."""
    shape = render_page(page, alerts)
    bad = sum(bool(watch.problem_count) for watch in shape.watches)
    return defuse(
        WatchesResult(
            PUBLISHED_NOTICE,
            f"{shape.total} watches, {bad} with problems, {len(shape.open_alerts)} open alerts",
            shape.total,
            tuple(
                shape_from(ListedWatch, watch, paused=watch.paused or ABSENT)
                for watch in shape.watches
            ),
            convert(shape.open_alerts, tuple[OpenAlert, ...], from_attributes=True) or ABSENT,
        )
    )


def render_one(shown: WatchDetails, history: History, now: Instant) -> WatchResult:
    """Render one watch."""
    changes = render_history(shown.watch, history, None, now).changes[-NEWEST_CHANGES:]
    watch = render_shown(shown, now)
    alerts = [alert for alert in watch.alerts if alert.ended_at is None]
    checked = "not checked yet" if watch.last_run_at is None else f"{watch.problem_count} problems"
    return defuse(
        WatchResult(
            PUBLISHED_NOTICE,
            f"watch {watch.id}: {checked}, {len(alerts)} open alerts",
            watch.id,
            watch.target,
            watch.score,
            problems=watch.problems or ABSENT,
            undetermined=watch.undetermined or ABSENT,
            open_alerts=convert(alerts, tuple[OpenAlert, ...], from_attributes=True) or ABSENT,
            changes=convert(changes, tuple[WatchChange, ...], from_attributes=True) or ABSENT,
        )
    )
