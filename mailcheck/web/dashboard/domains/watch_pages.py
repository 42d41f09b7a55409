"""Pages of watched domains, with a plot of their scores."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.api.domains.watches import host_uptimes, render_history, render_shown, write_csv
from mailcheck.api.requests.fields import INTEGER, LARGEST_PAGE, LAST_PAGE
from mailcheck.api.requests.parsing import Query
from mailcheck.checks.scoring.outcomes import FactorName
from mailcheck.core.errors import ExpectedFailure, InvalidParameter, TooManyWebhooks
from mailcheck.core.instants import DAY, MINUTE, Instant, format_instant
from mailcheck.core.watches import (
    HISTORY_KEPT,
    LONGEST_INTERVAL,
    SHORTEST_INTERVAL,
    WatchChange,
    WatchScore,
    WatchSettings,
    parse_quiet_time,
)
from mailcheck.core.webhooks import address_of
from mailcheck.operations.accounts.authenticate import CheckBudget
from mailcheck.operations.domains.watches.manage_watches import ManageWatches, SavedWatch
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.replies import Reply, download_reply, json_reply

WIDTH, MARGIN = 640, 12
"""Width and margin of a plot, in its own units."""

HEIGHT, SMALL_HEIGHT = 120, 36
"""Height of the plot of the score, and of the plot of a factor."""

LEVELS = {"error": "bad", "warning": "warn", "undetermined": "unknown", "note": "good"}
"""Severity -> level."""

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
    steps = [(one.at, one.score) for one in scores]
    marked = [one for one in changes if one.topic != "score"][-MAX_MARKS:]
    # Marks are drawn in this order, so that the most severe one is on top.
    marked.sort(key=lambda one: list(LEVELS).index(one.severity), reverse=True)
    marks = tuple(
        Mark(
            _place(one.at, begins, ends),
            LEVELS[one.severity],
            f"{format_instant(one.at)[:16].replace('T', ' ')} {one.sentence}",
        )
        for one in marked
    )
    whole = Plot("Score", _line(steps, begins, ends, 0, 100, HEIGHT), HEIGHT, steps[-1][1], marks)
    factors = []
    for name in (one.value for one in FactorName):
        steps = [(one.at, one.points[name]) for one in scores if name in one.points]
        values = [value for _, value in steps]
        lowest, highest = min(0, *values, 0), max(1, *values, 1)
        line = _line(steps, begins, ends, lowest, highest, SMALL_HEIGHT)
        factors.append(Plot(name, line, SMALL_HEIGHT, values[-1] if values else 0))
    return whole, factors


def _place(at: Instant, begins: Instant, ends: Instant) -> float:
    part = (max(at, begins) - begins) / max(1, ends - begins)
    return round(MARGIN + min(1.0, part) * (WIDTH - 2 * MARGIN), 1)


def _line(
    steps: Sequence[tuple[Instant, int]],
    begins: Instant,
    ends: Instant,
    lowest: int,
    highest: int,
    height: int,
) -> str:
    """Return the points of a step line."""
    points = []
    last = None
    rise = (height - 2 * MARGIN) / (highest - lowest)
    for at, value in [*steps, (ends, steps[-1][1] if steps else 0)]:
        x = _place(at, begins, ends)
        y = round(height - MARGIN - (value - lowest) * rise, 1)
        if last is not None and last != y:
            points.append(f"{x},{last}")
        points.append(f"{x},{y}")
        last = y
    return " ".join(points) if steps else ""


MAX_DAYS = HISTORY_KEPT // DAY

SPANS = {7: "1 week", 30: "1 month", 90: "3 months", 365: "1 year", MAX_DAYS: "all"}
"""Lengths of the history that users can choose, in days."""

DEFAULT_DAYS = 30

MAX_ROWS = 200
"""Maximum number of changes in the table, the newest first. The downloads contain all."""

EMPTY_FORM: Mapping[str, str] = {
    "target": "",
    "every": "60",
    "selectors": "",
    "ips": "",
    "quiet": "",
    "alert_to": "",
}


class WatchPages(Struct, frozen=True):
    """The list of watches with the form for a new one, and the page of each watch."""

    _watches: ManageWatches
    _budget: CheckBudget
    _turns: CheckSlots
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        one = "/watches/<watch_id>"
        return [
            Page("GET", "/watches", self.all),
            Page("POST", "/watches", self.create),
            Page("GET", one, self.show),
            Page("GET", f"{one}/history.csv", self.table),
            Page("GET", f"{one}/history.json", self.document),
            Page("POST", f"{one}/run", self.run),
            Page("POST", f"{one}/alert-to", self.choose_receivers),
            Page("POST", f"{one}/delete", self.delete),
            Page("POST", f"{one}/alerts/<alert_id>/acknowledge", self.acknowledge),
        ]

    async def all(self, visit: Visit) -> Reply:
        """GET /watches?page=&target=&selectors=&ips=. All but ``page`` prefill the form."""
        given = {name: visit.query.text(name) or empty for name, empty in EMPTY_FORM.items()}
        return await self._list(visit, given, None)

    async def create(self, visit: Visit) -> Reply:
        """POST /watches: target, every, selectors, ips, quiet, alert_to."""
        form = {name: (visit.form.text(name) or "").strip() for name in EMPTY_FORM}
        minutes = Query({"every": [form["every"]]} if form["every"] else {})
        lowest, highest = SHORTEST_INTERVAL // MINUTE, LONGEST_INTERVAL // MINUTE
        try:
            if not form["target"]:
                raise InvalidParameter("target", "enter the domain or the IP address to watch")
            settings = WatchSettings(
                interval=minutes.value("every", INTEGER, 60, lowest, highest) * MINUTE,
                selectors=_words(form["selectors"].replace(",", " ")),
                addresses=_words(form["ips"].replace(",", " ")),
                quiet=parse_quiet_time(form["quiet"]) if form["quiet"] else None,
                alert_to=_words(form["alert_to"]),
            )
            made = await self._watches.create(visit.account.id, form["target"], settings)
        except ExpectedFailure as failure:
            return await self._list(visit, form, failure)
        return self._kept(visit, made, "watch-made")

    async def choose_receivers(self, visit: Visit) -> Reply:
        """POST /watches/<watch_id>/alert-to: alert_to. The secrets of new webhooks are shown."""
        named = _words(visit.form.text("alert_to") or "")
        try:
            changed = await self._watches.change(
                visit.account.id,
                visit.path["watch_id"],
                lambda settings: replace(settings, alert_to=named),
            )
        except (InvalidParameter, TooManyWebhooks) as failure:
            return await self.show(visit, " ".join(named), failure)
        return self._kept(visit, changed, "receivers-chosen")

    def _kept(self, visit: Visit, kept: SavedWatch, done: str) -> Reply:
        place = f"/watches/{kept.watch.id}"
        signing = [one for one in kept.new_receivers if not one.is_mail]
        if not signing:
            return redirect(visit, place, done=done)
        return self._renderer.page(visit, "webhook_secret.html", webhooks=signing, place=place)

    async def show(
        self, visit: Visit, alert_to: str | None = None, failure: ExpectedFailure | None = None
    ) -> Reply:
        """GET /watches/<watch_id>?days=: the state of the watch, its alerts and its changes."""
        days = visit.query.value("days", INTEGER, DEFAULT_DAYS, 1, MAX_DAYS)
        now = visit.asked_at
        account_id, watch_id = visit.account.id, visit.path["watch_id"]
        shown = await self._watches.show(account_id, watch_id)
        watch = shown.watch
        if alert_to is None:
            alert_to = " ".join(map(address_of, watch.settings.alert_to))
        begins = Instant(max(watch.created_at, now - days * DAY))
        _, history = await self._watches.history(account_id, watch_id)
        # The last score before the period applies at its start.
        earlier = [one for one in history.scores if one.at < begins]
        scores = [*earlier[-1:], *(one for one in history.scores if one.at >= begins)]
        changes = [one for one in history.changes if one.at >= begins]
        return self._renderer.page(
            visit,
            "watch.html",
            error=failure,
            watch=watch,
            receivers=shown.receivers,
            alert_to=alert_to,
            shown=render_shown(shown, now),
            alerts=shown.alerts,
            plots=draw_history(scores, changes, begins, now),
            changes=list(reversed(changes))[:MAX_ROWS],
            is_cut=len(changes) > MAX_ROWS or history.is_cut,
            uptimes={one.host: one.uptime for one in host_uptimes(watch, history, begins)},
            levels=LEVELS,
            days=days,
            spans=SPANS,
        )

    async def table(self, visit: Visit) -> Reply:
        """GET /watches/<watch_id>/history.csv."""
        watch, history = await self._watches.history(visit.account.id, visit.path["watch_id"])
        name = f"history-{watch.target}.csv".replace(":", "-")
        return download_reply(write_csv(watch, history), "text/csv; charset=utf-8", name)

    async def document(self, visit: Visit) -> Reply:
        """GET /watches/<watch_id>/history.json."""
        watch, history = await self._watches.history(visit.account.id, visit.path["watch_id"])
        return json_reply(render_history(watch, history, None, visit.asked_at))

    async def run(self, visit: Visit) -> Reply:
        """POST /watches/<watch_id>/run. It counts as a check."""
        await self._budget.take(visit.account.id)
        async with self._turns.held(visit.account.id):
            await self._watches.run(visit.account.id, visit.path["watch_id"])
        return redirect(visit, f"/watches/{visit.path['watch_id']}", done="watch-run")

    async def delete(self, visit: Visit) -> Reply:
        """POST /watches/<watch_id>/delete."""
        await self._watches.delete(visit.account.id, visit.path["watch_id"])
        return redirect(visit, "/watches", done="watch-deleted")

    async def acknowledge(self, visit: Visit) -> Reply:
        """POST /watches/<watch_id>/alerts/<alert_id>/acknowledge."""
        path = visit.path
        await self._watches.acknowledge(visit.account.id, path["watch_id"], path["alert_id"])
        return redirect(visit, f"/watches/{path['watch_id']}", done="alert-acknowledged")

    async def _list(
        self, visit: Visit, form: Mapping[str, str], failure: ExpectedFailure | None
    ) -> Reply:
        page = visit.query.value("page", INTEGER, 1, 1, LAST_PAGE)
        found = await self._watches.of_account(
            visit.account.id, LARGEST_PAGE, (page - 1) * LARGEST_PAGE
        )
        return self._renderer.page(
            visit,
            "watches.html",
            error=failure,
            watches=found.watches,
            total=found.total,
            page=page,
            pages=-(-found.total // LARGEST_PAGE),
            alerts=await self._watches.open_alerts(visit.account.id),
            levels=LEVELS,
            form=form,
            shortest=SHORTEST_INTERVAL // MINUTE,
            longest=LONGEST_INTERVAL // MINUTE,
        )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip(",") for word in text.split() if word != ",")
