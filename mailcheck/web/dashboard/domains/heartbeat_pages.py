"""The pages of heartbeats: 90 days in squares, the newest mails, alerts and settings."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailcheck.api.domains.heartbeats import render_heartbeat, render_heartbeat_details
from mailcheck.api.requests.heartbeats import HeartbeatChoice
from mailcheck.api.requests.parsing import read_object
from mailcheck.core.domains.heartbeats import DAY_NAMES, DayOfBeats
from mailcheck.core.domains.watches import WatchSettings, expected_of
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.core.instants import DAY, MINUTE, Instant, format_instant
from mailcheck.core.webhooks import address_of
from mailcheck.operations.domains.watches.manage_heartbeats import (
    SHOWN_DAYS,
    Heartbeat,
    ManageHeartbeats,
    SavedHeartbeat,
)
from mailcheck.web.dashboard.accounts.webhook_pages import show_secrets
from mailcheck.web.dashboard.domains.view import ALERT_LEVELS
from mailcheck.web.dashboard.rendering import Renderer, format_count, redirect
from mailcheck.web.dashboard.visits import Page, Visit, with_form
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

STATE_LEVELS = {"new": "unknown", "on-time": "good", "late": "warn", "missing": "bad", "paused": ""}
"""State of a heartbeat -> level."""

VERDICT_LEVELS = {
    "on-time": "good",
    "late": "warn",
    "extra": "",
    "refused": "bad",
    "undetermined": "unknown",
}
"""Verdict of a mail -> level."""

SHOWN_BEATS = 50
"""Number of newest mails on the page."""

FIELDS = ("at", "zone", "days", "every", "grace", "slow", "signed_by", "quiet", "alert_to")
"""Fields of the form of settings."""

NEW_FIELDS = ("name", *FIELDS)
NEW_FORM = {
    **dict.fromkeys(NEW_FIELDS, ""),
    "at": "06:00",
    "grace": "30",
    "slow": "10",
    "zone": "UTC",
}
"""Fields of the form for a new heartbeat, and their first values."""


class Square(Struct, frozen=True):
    """A day: its date, its level (empty without mail), and what happened."""

    day: str
    level: str
    text: str


def draw_days(heartbeat: Heartbeat, now: Instant) -> list[Square]:
    """Return a square for each of the last `SHOWN_DAYS` days, oldest first."""
    known = {day.day: day for day in heartbeat.days}
    today = expected_of(heartbeat.watch.settings).schedule.day_of(now)
    days = (Instant(today - number * DAY) for number in reversed(range(SHOWN_DAYS)))
    return [_square(known.get(day, DayOfBeats(day))) for day in days]


def _square(day: DayOfBeats) -> Square:
    levels = (
        ("bad", day.missing),
        ("warn", day.late or day.problems),
        ("good", day.on_time),
    )
    level = next((level for level, count in levels if count), "")
    counts = (
        (day.on_time, "on time"),
        (day.late, "late"),
        (day.missing, "missing"),
        (day.refused, "not counted"),
    )
    said = [f"{count} {name}" for count, name in counts if count]
    if day.problems:
        said.append(format_count(day.problems, "mail") + " with a problem")
    return Square(format_instant(day.day)[:10], level, ", ".join(said) or "no mail was due")


class HeartbeatPages(Struct, frozen=True):
    """The list of heartbeats, and the page of each."""

    _heartbeats: ManageHeartbeats
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        one = "/heartbeats/<heartbeat_name>"
        return [
            Page("GET", "/heartbeats", self.all, costs.FREE),
            *with_form(self.all, Page("POST", "/heartbeats", self.create, costs.WATCH)),
            Page("GET", one, self.show, costs.FREE),
            *with_form(self.show, Page("POST", f"{one}/settings", self.save, costs.WATCH)),
            Page("POST", f"{one}/pause", self.pause, costs.WATCH),
            Page("POST", f"{one}/delete", self.delete, costs.FREE),
            Page("POST", f"{one}/alerts/<alert_id>/acknowledge", self.acknowledge, costs.FREE),
        ]

    async def all(self, visit: Visit, failure: ExpectedFailure | None = None) -> Reply:
        """GET /heartbeats: all of them, and the form for a new one."""
        found = await self._heartbeats.all(visit.account.id)
        return self._renderer.page(
            visit,
            "heartbeats.html",
            error=failure,
            heartbeats=[
                (render_heartbeat(heartbeat), draw_days(heartbeat, visit.asked_at))
                for heartbeat in found
            ],
            states=STATE_LEVELS,
            form=visit.entered(NEW_FIELDS) if failure else NEW_FORM,
            day_names=DAY_NAMES,
        )

    async def create(self, visit: Visit) -> Reply:
        """POST /heartbeats: name, and the fields of the settings."""
        form = visit.entered(NEW_FIELDS)
        settings = _read_choice(form).changed(WatchSettings())
        saved = await self._heartbeats.create(visit.account.id, form["name"], settings)
        return self._saved(visit, saved, "heartbeat-made")

    async def show(self, visit: Visit, failure: ExpectedFailure | None = None) -> Reply:
        """GET /heartbeats/{name}: days, alerts, mails and settings."""
        shown = await self._heartbeats.show(visit.account.id, visit.path["heartbeat_name"])
        return self._renderer.page(
            visit,
            "heartbeat.html",
            error=failure,
            shown=render_heartbeat_details(shown),
            squares=draw_days(shown.heartbeat, visit.asked_at),
            alerts=shown.alerts,
            receivers=shown.receivers,
            base=_path(shown.heartbeat.name),
            states=STATE_LEVELS,
            verdicts=VERDICT_LEVELS,
            levels=ALERT_LEVELS,
            most=SHOWN_BEATS,
            form=visit.entered(FIELDS) if failure else _form_of(shown.heartbeat),
            day_names=DAY_NAMES,
        )

    async def save(self, visit: Visit) -> Reply:
        """POST /heartbeats/{name}/settings. The secrets of new webhooks are shown."""
        choice, name = _read_choice(visit.entered(FIELDS)), visit.path["heartbeat_name"]
        saved = await self._heartbeats.change(visit.account.id, name, choice.changed)
        return self._saved(visit, saved, "watch-saved")

    async def pause(self, visit: Visit) -> Reply:
        """POST /heartbeats/{name}/pause: ``paused`` is yes or no."""
        choice = HeartbeatChoice(is_paused=visit.form.text("paused") == "yes")
        account_id, name = visit.account.id, visit.path["heartbeat_name"]
        saved = await self._heartbeats.change(account_id, name, choice.changed)
        return self._saved(visit, saved, "watch-saved")

    async def delete(self, visit: Visit) -> Reply:
        """POST /heartbeats/{name}/delete."""
        await self._heartbeats.delete(visit.account.id, visit.path["heartbeat_name"])
        return redirect(visit, "/heartbeats", done="heartbeat-deleted")

    async def acknowledge(self, visit: Visit) -> Reply:
        """POST /heartbeats/{name}/alerts/{alert_id}/acknowledge."""
        name, alert_id = visit.path["heartbeat_name"], visit.path["alert_id"]
        await self._heartbeats.acknowledge(visit.account.id, name, alert_id)
        return redirect(visit, _path(name), done="alert-acknowledged")

    def _saved(self, visit: Visit, saved: SavedHeartbeat, done: str) -> Reply:
        place = _path(saved.heartbeat.name)
        return show_secrets(self._renderer, visit, saved.new_receivers, place, done)


def _path(name: str) -> str:
    return f"/heartbeats/{name}"


def _form_of(heartbeat: Heartbeat) -> Mapping[str, str]:
    """Return the settings of a heartbeat as they are entered."""
    settings = heartbeat.watch.settings
    expected = expected_of(settings)
    schedule = expected.schedule
    at = f"{schedule.at // 60:02}:{schedule.at % 60:02}"
    return {
        "at": "" if schedule.every else at,
        "zone": schedule.zone,
        "days": " ".join(DAY_NAMES[day] for day in schedule.days),
        "every": str(schedule.every // MINUTE) if schedule.every else "",
        "grace": str(expected.grace // MINUTE),
        "slow": str(expected.slow_after // MINUTE),
        "signed_by": expected.signed_by,
        "quiet": "" if settings.quiet is None else str(settings.quiet),
        "alert_to": " ".join(map(address_of, settings.alert_to)),
    }


def _read_choice(form: Mapping[str, str]) -> HeartbeatChoice:
    """Return the settings in a form, read as a request of the API is.

    :raises InvalidParameter: a field is invalid.
    """
    given: dict[str, Any] = {
        "quiet": form["quiet"],
        "signedBy": form["signed_by"],
        "alertTo": form["alert_to"].replace(",", " ").split(),
    }
    if form["at"] or not form["every"]:
        given |= {"at": form["at"], "days": form["days"].replace(",", " ").lower().split()}
        given["timeZone"] = form["zone"] or "UTC"
    for name, field in (
        ("everyMinutes", "every"),
        ("graceMinutes", "grace"),
        ("slowMinutes", "slow"),
    ):
        if form[field]:
            given[name] = _number(name, form[field])
    return read_object(HeartbeatChoice, given)


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise InvalidParameter(name, f"{name} must be a number of minutes; got {text[:20]!r}")
    return int(text)
