"""The history of a watched domain, with a plot of its scores, and the settings of its watch."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.api.domains.watches import host_uptimes, render_history, render_shown, write_csv
from mailcheck.api.requests.fields import INTEGER
from mailcheck.api.requests.parsing import Query
from mailcheck.checks.scoring.outcomes import FactorName
from mailcheck.core.domains.watches import (
    HISTORY_KEPT,
    LONGEST_INTERVAL,
    SHORTEST_INTERVAL,
    Watch,
    WatchChange,
    WatchId,
    WatchScore,
    WatchSettings,
    parse_quiet_time,
)
from mailcheck.core.errors import ExpectedFailure, WatchNotFound
from mailcheck.core.instants import DAY, MINUTE, Instant, format_instant
from mailcheck.core.webhooks import address_of
from mailcheck.operations.accounts.authenticate import CheckBudget
from mailcheck.operations.domains.watches.manage_watches import ManageWatches
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.web.dashboard.accounts.webhook_pages import show_secrets
from mailcheck.web.dashboard.charts import Scale, points_of
from mailcheck.web.dashboard.domains.frame import HISTORY, DomainFrame, path_of
from mailcheck.web.dashboard.domains.view import ALERT_LEVELS
from mailcheck.web.dashboard.rendering import Renderer, redirect, write_moment
from mailcheck.web.dashboard.visits import Page, Visit, with_form
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply, download_reply, json_reply

WIDTH, MARGIN = 640, 12
"""Width and margin of a plot, in its own units."""

HEIGHT, SMALL_HEIGHT = 120, 36
"""Height of the plot of the score, and of the plot of a factor."""

MAX_MARKS = 300
"""Maximum number of changes marked in a plot. More marks would overlap."""


class Mark(Struct, frozen=True):
    """A change in a plot: its position, level and description."""

    x: float
    level: str
    text: str


class Plot(Struct, frozen=True):
    """A step line: each value holds until the next. Without values the line is empty."""

    title: str
    line: str
    height: int
    last: int
    marks: tuple[Mark, ...] = ()
    width: int = WIDTH


def draw_history(
    scores: Sequence[WatchScore], changes: Iterable[WatchChange], begins: Instant, ends: Instant
) -> tuple[Plot, list[Plot]] | None:
    """Plot the score with all changes, and each factor alone. Return `None` without scores."""
    if not scores:
        return None
    scale = Scale(WIDTH, HEIGHT, MARGIN, begins=begins, ends=ends, lowest=0, highest=100)
    steps = [(score.at, score.score) for score in scores]
    marked = [change for change in changes if change.topic != "score"][-MAX_MARKS:]
    # Marks are drawn in this order, so that the most severe one is on top.
    marked.sort(key=lambda one: list(ALERT_LEVELS).index(one.severity), reverse=True)
    marks = tuple(
        Mark(
            scale.x(change.at),
            ALERT_LEVELS[change.severity],
            f"{write_moment(format_instant(change.at))} {change.sentence}",
        )
        for change in marked
    )
    whole = Plot("Score", points_of(scale.draw_steps(steps)), HEIGHT, steps[-1][1], marks)
    factors = []
    for name in (factor.value for factor in FactorName):
        steps = [(score.at, score.points[name]) for score in scores if name in score.points]
        values = [value for _, value in steps]
        small = replace(
            scale, height=SMALL_HEIGHT, lowest=min(0, *values, 0), highest=max(1, *values, 1)
        )
        line = points_of(small.draw_steps(steps))
        factors.append(Plot(name, line, SMALL_HEIGHT, values[-1] if values else 0))
    return whole, factors


MAX_DAYS = HISTORY_KEPT // DAY

SPANS = {7: "1 week", 30: "1 month", 90: "3 months", 365: "1 year", MAX_DAYS: "all"}
"""Lengths of the history that users can choose, in days."""

DEFAULT_DAYS = 30

MAX_ROWS = 200
"""Maximum number of changes in the table, the newest first. The downloads contain all."""

FIELDS = ("every", "selectors", "ips", "quiet", "alert_to")
"""Fields of the form of settings."""


class HistoryPages(Struct, frozen=True):
    """The tab of a watch: its alerts, its changes and its settings."""

    _watches: ManageWatches
    _budget: CheckBudget
    _turns: CheckSlots
    _frame: DomainFrame
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        one = "/domains/<domain>"
        return [
            Page("GET", f"{one}/history", self.show, costs.FREE),
            Page("GET", f"{one}/history.csv", self.table, costs.FREE),
            Page("GET", f"{one}/history.json", self.document, costs.FREE),
            *with_form(self.show, Page("POST", f"{one}/settings", self.save, costs.WATCH)),
            Page("POST", f"{one}/run", self.run, costs.WATCH),
            Page("POST", f"{one}/delete", self.delete, costs.FREE),
            Page("POST", f"{one}/alerts/<alert_id>/acknowledge", self.acknowledge, costs.FREE),
        ]

    async def show(self, visit: Visit, failure: ExpectedFailure | None = None) -> Reply:
        """GET /domains/{domain}/history?days=: alerts, changes and settings."""
        days = visit.query.value("days", INTEGER, DEFAULT_DAYS, 1, MAX_DAYS)
        account_id, target = visit.account.id, self._frame.target(visit)
        watch = await self._watches.of_target(account_id, target.name)
        values: dict[str, Any] = {
            "here": path_of(target.name, HISTORY),
            "base": target.path,
            "watch": watch,
            "days": days,
            "spans": SPANS,
            "levels": ALERT_LEVELS,
            "form": visit.entered(FIELDS) if failure else _form_of(watch, visit),
            "shortest": SHORTEST_INTERVAL // MINUTE,
            "longest": LONGEST_INTERVAL // MINUTE,
        }
        if watch is not None:
            values |= await self._view(visit, watch, days)
        return await self._frame.page(
            visit, "domain_history.html", target, HISTORY, error=failure, **values
        )

    async def _view(self, visit: Visit, watch: Watch, days: int) -> dict[str, Any]:
        now, account_id = visit.asked_at, visit.account.id
        shown = await self._watches.show(account_id, watch.id)
        begins = Instant(max(watch.created_at, now - days * DAY))
        _, history = await self._watches.history(account_id, watch.id)
        # The last score before the period applies at its start.
        earlier = [score for score in history.scores if score.at < begins]
        scores = [*earlier[-1:], *(score for score in history.scores if score.at >= begins)]
        changes = [change for change in history.changes if change.at >= begins]
        return {
            "receivers": shown.receivers,
            "shown": render_shown(shown, now),
            "alerts": shown.alerts,
            "plots": draw_history(scores, changes, begins, now),
            "period": (begins, now),
            "changes": list(reversed(changes))[:MAX_ROWS],
            "is_cut": len(changes) > MAX_ROWS or history.is_cut,
            "uptimes": {
                uptime.host: uptime.uptime for uptime in host_uptimes(watch, history, begins)
            },
        }

    async def save(self, visit: Visit) -> Reply:
        """POST /domains/{domain}/settings: every, selectors, ips, quiet, alert_to.

        The secrets of new webhooks are shown.
        """
        target = self._frame.target(visit)
        settings = _read_settings(visit.entered(FIELDS))
        saved = await self._watches.save(visit.account.id, target.name, settings)
        place, receivers = path_of(target.name, HISTORY), saved.new_receivers
        return show_secrets(self._renderer, visit, receivers, place, "watch-saved")

    async def table(self, visit: Visit) -> Reply:
        """GET /domains/{domain}/history.csv."""
        watch, history = await self._watches.history(visit.account.id, await self._id(visit))
        name = f"history-{watch.target}.csv".replace(":", "-")
        return download_reply(write_csv(watch, history), "text/csv; charset=utf-8", name)

    async def document(self, visit: Visit) -> Reply:
        """GET /domains/{domain}/history.json."""
        watch, history = await self._watches.history(visit.account.id, await self._id(visit))
        return json_reply(render_history(watch, history, None, visit.asked_at))

    async def run(self, visit: Visit) -> Reply:
        """POST /domains/{domain}/run. It counts as a check."""
        watch_id = await self._id(visit)
        await self._budget.take(visit.account.id)
        async with self._turns.held(visit.account.id):
            await self._watches.run(visit.account.id, watch_id)
        return self._return(visit, "watch-run")

    async def delete(self, visit: Visit) -> Reply:
        """POST /domains/{domain}/delete."""
        await self._watches.delete(visit.account.id, await self._id(visit))
        return redirect(visit, "/domains", done="watch-deleted")

    async def acknowledge(self, visit: Visit) -> Reply:
        """POST /domains/{domain}/alerts/{alert_id}/acknowledge."""
        alert_id = visit.path["alert_id"]
        await self._watches.acknowledge(visit.account.id, await self._id(visit), alert_id)
        return self._return(visit, "alert-acknowledged")

    def _return(self, visit: Visit, done: str) -> Reply:
        return redirect(visit, path_of(self._frame.target(visit).name, HISTORY), done=done)

    async def _id(self, visit: Visit) -> WatchId:
        target = self._frame.target(visit)
        watch = await self._watches.of_target(visit.account.id, target.name)
        if watch is None:
            raise WatchNotFound(f"{target.name} is not watched")
        return watch.id


def _form_of(watch: Watch | None, visit: Visit) -> Mapping[str, str]:
    """Return the settings of a watch as they are entered, or those of a query."""
    if watch is None:
        given = {name: visit.query.text(name) or "" for name in ("selectors", "ips")}
        return {**dict.fromkeys(FIELDS, ""), "every": "60", **given}
    settings = watch.settings
    return {
        "every": str(settings.interval // MINUTE),
        "selectors": " ".join(settings.selectors),
        "ips": " ".join(settings.addresses),
        "quiet": "" if settings.quiet is None else str(settings.quiet),
        "alert_to": " ".join(map(address_of, settings.alert_to)),
    }


def _read_settings(form: Mapping[str, str]) -> WatchSettings:
    minutes = Query({"every": [form["every"]]} if form["every"] else {})
    lowest, highest = SHORTEST_INTERVAL // MINUTE, LONGEST_INTERVAL // MINUTE
    return WatchSettings(
        interval=minutes.value("every", INTEGER, 60, lowest, highest) * MINUTE,
        selectors=_words(form["selectors"].replace(",", " ")),
        addresses=_words(form["ips"].replace(",", " ")),
        quiet=parse_quiet_time(form["quiet"]) if form["quiet"] else None,
        alert_to=_words(form["alert_to"]),
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip(",") for word in text.split() if word != ",")
