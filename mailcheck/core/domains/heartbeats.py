"""Heartbeats: mail that is expected on a schedule, and the instants at which it is due.

A heartbeat is a watch of the kind `WatchKind.HEARTBEAT`, whose target is its name. Its mail comes
to the inbox of the account with the tag ``beat.NAME``.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import NewType
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.addresses import fold_tag
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.instants import DAY, HOUR, MINUTE, SECOND, Instant

BeatId = NewType("BeatId", str)

MOST_HEARTBEATS = 200
"""Maximum number of heartbeats of one account."""

SHORTEST_EVERY, LONGEST_EVERY = 5 * MINUTE, 31 * DAY

SHORTEST_GRACE, LONGEST_GRACE, DEFAULT_GRACE = MINUTE, 22 * HOUR, 30 * MINUTE
"""Limits and default of the time after which a beat is late. A day of 23 hours has its own."""

LONGEST_SLOW, DEFAULT_SLOW = DAY, 10 * MINUTE
"""Limit and default of the time in transit from which a beat is slow."""

LEAST_EARLY, MOST_EARLY = 10 * MINUTE, 6 * HOUR
"""Limits of the time by which a beat may be early: the grace, within these. The clock of the
sender may be ahead."""

TAG_PREFIX = "beat."
"""Beginning of the tags of beats. Such a tag without a heartbeat is one like any other."""

NAME_PATTERN = "[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?"
"""Pattern of the name of a heartbeat. It has no dot, so it is never a domain or an address."""

_NAME = re.compile(NAME_PATTERN)

_ZONE = re.compile("[A-Za-z0-9_+/-]{1,64}")

DAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def parse_heartbeat_name(text: str) -> str:
    """Return the name of a heartbeat in lower case.

    :raises InvalidParameter: the text is not a name.
    """
    name = text.strip().lower()
    if _NAME.fullmatch(name) is None:
        raise InvalidParameter(
            "name",
            "name must be 1 to 32 letters, digits and hyphens, with a letter or a digit at both "
            f"ends; got {text[:80]!r}",
        )
    return name


def tag_of(name: str) -> str:
    """Return the tag of the mail of a heartbeat."""
    return TAG_PREFIX + name


def name_in_tag(tag: str) -> str | None:
    """Return the name of the heartbeat that mail with a tag may belong to, or `None`."""
    folded = fold_tag(tag)
    return folded.removeprefix(TAG_PREFIX) if folded.startswith(TAG_PREFIX) else None


class Occurrence(Struct, frozen=True):
    """One expected beat: the instant from which a beat counts for it, and when it is due."""

    opens: Instant
    due: Instant


class Schedule(Struct, frozen=True):
    """When beats are due: every ``every`` milliseconds, or, if that is 0, at a time of day.

    ``at`` is a minute of the day in the time zone ``zone``. ``days`` are the days of the week
    (0: Monday); empty for all of them.
    """

    every: int = 0
    at: int = 0
    zone: str = "UTC"
    days: tuple[int, ...] = ()

    def after(self, instant: Instant, grace: int) -> Occurrence:
        """Return the first occurrence after an instant.

        An interval begins with that instant, which is the last beat or the last occurrence.

        A time of day that does not exist, because clocks are set forward, means the same time
        before the change, so it is later by the clock. A beat counts from the other reading on,
        since cron runs such jobs right after the change. The first of a time that exists twice
        counts.
        """
        if self.every:
            return Occurrence(Instant(instant + self.every // 2), Instant(instant + self.every))
        early = min(max(grace, LEAST_EARLY), MOST_EARLY)
        day = self._local(instant).replace(hour=0, minute=0, second=0, microsecond=0)
        for number in range(-1, 9):
            clock = (day + timedelta(days=number)).replace(hour=self.at // 60, minute=self.at % 60)
            due = _instant_of(clock.replace(fold=0))
            if due > instant and (not self.days or clock.weekday() in self.days):
                first = min(due, _instant_of(clock.replace(fold=1)))
                return Occurrence(Instant(first - early), due)
        raise AssertionError("a week has each day")

    def day_of(self, instant: Instant) -> Instant:
        """Return the day of an instant in the time zone, as the midnight of this date in UTC."""
        return _instant_of(datetime.combine(self._local(instant).date(), datetime.min.time(), UTC))

    def _local(self, instant: Instant) -> datetime:
        zone = UTC if self.every else ZoneInfo(self.zone)
        return datetime.fromtimestamp(instant / SECOND, UTC).astimezone(zone)

    def write(self, instant: Instant) -> str:
        """Return a due instant for people, such as ``06:00 Europe/Berlin on 29 November``."""
        local = self._local(instant)
        zone = "UTC" if self.every else self.zone
        return f"{local:%H:%M} {zone} on {local.day} {local:%B}"

    def __str__(self) -> str:
        """Describe the schedule, such as ``every day at 06:00 Europe/Berlin``."""
        if self.every:
            return f"every {write_duration(self.every).removeprefix('1 ')}"
        days = ", ".join(DAY_NAMES[day].capitalize() for day in self.days) or "every day"
        return f"{days} at {self.at // 60:02}:{self.at % 60:02} {self.zone}"


def write_duration(milliseconds: int) -> str:
    """Return a duration in the largest unit that it is a whole number of, down to seconds."""
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second")):
        count, rest = divmod(milliseconds, unit)
        if count and not rest:
            return f"{count} {name}{'s' * (count > 1)}"
    return f"{milliseconds // SECOND} seconds"


def _instant_of(moment: datetime) -> Instant:
    return Instant(int(moment.timestamp()) * SECOND)


class HeartbeatSettings(Struct, frozen=True):
    """Expectations of the beats; durations are in milliseconds.

    ``slow_after`` is the time in transit from which a beat is slow; 0 for any time. A beat counts
    only with a valid DKIM signature of the domain ``signed_by``, if that is not empty.
    ``since`` is the start of the schedule: earlier occurrences were not expected.
    """

    schedule: Schedule
    grace: int = DEFAULT_GRACE
    slow_after: int = DEFAULT_SLOW
    signed_by: str = ""
    since: Instant = Instant(0)

    def after(self, instant: Instant) -> Occurrence:
        """Return the first occurrence after an instant."""
        return self.schedule.after(instant, self.grace)

    def first(self) -> Occurrence:
        """Return the first occurrence. The first beat of an interval counts at once."""
        found = self.after(self.since)
        return Occurrence(self.since, found.due) if self.schedule.every else found


def parse_days(names: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of days of the week; empty for all of them.

    :raises InvalidParameter: a name is not one of `DAY_NAMES`.
    """
    numbers = set()
    for name in names:
        short = name.strip().lower()[:3]
        if short not in DAY_NAMES:
            allowed = ", ".join(DAY_NAMES)
            raise InvalidParameter("days", f"days must be some of {allowed}; got {name[:20]!r}")
        numbers.add(DAY_NAMES.index(short))
    return () if len(numbers) == len(DAY_NAMES) else tuple(sorted(numbers))


def require_zone(name: str) -> None:
    """Check the name of a time zone.

    :raises InvalidParameter: there is no such time zone.
    """
    try:
        if _ZONE.fullmatch(name) is not None:
            ZoneInfo(name)
            return
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    # Imported here, since few names are wrong.
    from difflib import get_close_matches

    near = get_close_matches(name[:64], available_timezones(), 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InvalidParameter(
        "timeZone", f"timeZone must be a time zone like Europe/Berlin; got {name[:80]!r}{hint}"
    )


def checked_heartbeat(settings: HeartbeatSettings) -> HeartbeatSettings:
    """Return the settings of a heartbeat if they are valid.

    :raises InvalidParameter: a setting is out of its range.
    """
    schedule = settings.schedule
    if schedule.every and not SHORTEST_EVERY <= schedule.every <= LONGEST_EVERY:
        raise InvalidParameter(
            "everyMinutes",
            f"everyMinutes must be from {SHORTEST_EVERY // MINUTE} to "
            f"{LONGEST_EVERY // MINUTE} (31 days)",
        )
    require_zone(schedule.zone)
    if not SHORTEST_GRACE <= settings.grace <= LONGEST_GRACE:
        raise InvalidParameter(
            "graceMinutes", f"graceMinutes must be from 1 to {LONGEST_GRACE // MINUTE} (22 hours)"
        )
    if not 0 <= settings.slow_after <= LONGEST_SLOW:
        raise InvalidParameter(
            "slowMinutes", f"slowMinutes must be from 0 (any) to {LONGEST_SLOW // MINUTE} (a day)"
        )
    if schedule.every:
        return replace(settings, schedule=Schedule(every=schedule.every))
    return settings


class BeatVerdict(Enum):
    """Verdict about a mail to a heartbeat."""

    ON_TIME = "on-time"
    LATE = "late"
    """It came after its grace."""
    EXTRA = "extra"
    """It came while none was expected, and is not counted."""
    REFUSED = "refused"
    """It has no valid signature of the required domain, and is not counted."""
    UNDETERMINED = "undetermined"
    """Its signature could not be verified, and it is not counted."""

    @property
    def is_counted(self) -> bool:
        """Whether the mail is a beat of the heartbeat."""
        return self in (BeatVerdict.ON_TIME, BeatVerdict.LATE)


class HeartbeatState(Enum):
    """Whether the beats of a heartbeat come."""

    NEW = "new"
    """None has come yet, and none is late."""
    ON_TIME = "on-time"
    LATE = "late"
    """One has not come within its grace."""
    MISSING = "missing"
    """Two or more in a row have not come."""
    PAUSED = "paused"


class BeatFacts(Struct, frozen=True):
    """Results of the analysis of a beat. `None` is a result that could not be determined.

    ``score`` is in tenths, and at most that if the analysis is not complete. ``seconds`` is the
    time in transit by the Received fields; ``slowest`` names the host where it waited longest.
    ``signed_by`` are the domains of valid DKIM signatures, and ``unverified`` those of signatures
    that could not be verified. ``signatures`` identify the valid ones.
    """

    score: int | None = None
    is_complete: bool = False
    spf: bool | None = None
    dkim: bool | None = None
    dmarc: bool | None = None
    tls: bool | None = None
    seconds: int | None = None
    slowest: str = ""
    signed_by: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()


class Beat(Struct, frozen=True):
    """A mail to a heartbeat. ``attempts`` counts analyses that could not verify its signature."""

    id: BeatId
    delivery_id: DeliveryId
    received_at: Instant
    attempts: int = 0


class JudgedBeat(Struct, frozen=True):
    """A mail to a heartbeat and its verdict; `None` while its signature is undetermined.

    ``late`` is by how many milliseconds it came after it was due; negative if it was early.
    """

    id: BeatId
    received_at: Instant
    verdict: BeatVerdict | None
    facts: BeatFacts | None = None
    late: int | None = None


class DayOfBeats(Struct, frozen=True):
    """The beats of a day, which is a date as its midnight in UTC.

    ``problems`` counts beats that came with a problem. ``lowest`` is the lowest score in tenths.
    """

    day: Instant
    on_time: int = 0
    late: int = 0
    missing: int = 0
    refused: int = 0
    problems: int = 0
    lowest: int | None = None
