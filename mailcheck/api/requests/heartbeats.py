"""Requests of heartbeats."""

from typing import Annotated, ClassVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from mailcheck.api.requests.checks import AlertChoice
from mailcheck.api.requests.fields import TEXT, required_text
from mailcheck.api.requests.parsing import Description, FieldType
from mailcheck.core.domains.heartbeats import (
    DAY_NAMES,
    DEFAULT_GRACE,
    DEFAULT_SLOW,
    LONGEST_EVERY,
    LONGEST_GRACE,
    LONGEST_SLOW,
    NAME_PATTERN,
    SHORTEST_EVERY,
    SHORTEST_GRACE,
    HeartbeatSettings,
    Schedule,
    parse_days,
)
from mailcheck.core.domains.watches import (
    CLOCK_PATTERN,
    WatchSettings,
    parse_time_of_day,
)
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import MINUTE


def _minutes(shortest: int, longest: int) -> FieldType:
    schema = {"type": "integer", "minimum": shortest // MINUTE, "maximum": longest // MINUTE}
    return FieldType(schema, int)


TIME_OF_DAY = FieldType({"type": "string", "pattern": f"^{CLOCK_PATTERN}$"}, parse_time_of_day)

ZONE = required_text(64)

DAY_OF_WEEK = FieldType({"type": "string", "enum": list(DAY_NAMES)})


class HeartbeatChoice(AlertChoice, frozen=True, kw_only=True):
    """The settings of a heartbeat that its owner can change."""

    example: ClassVar = '{"at": "06:00", "timeZone": "Europe/Berlin", "graceMinutes": 30}'

    at: Annotated[
        Annotated[int, TIME_OF_DAY] | UnsetType,
        Description("time of day at which mail is due, like 06:00; not together with everyMinutes"),
    ] = UNSET
    time_zone: Annotated[
        Annotated[str, ZONE] | UnsetType,
        Description("time zone of `at`, like Europe/Berlin; UTC if none was ever sent"),
    ] = UNSET
    days: Annotated[
        tuple[Annotated[str, DAY_OF_WEEK], ...] | UnsetType,
        Description("days of the week of `at`; empty for all", at_most=len(DAY_NAMES)),
    ] = UNSET
    every_minutes: Annotated[
        Annotated[int, _minutes(SHORTEST_EVERY, LONGEST_EVERY)] | UnsetType,
        Description("minutes from one mail to the next, instead of a time of day"),
    ] = UNSET
    grace_minutes: Annotated[
        Annotated[int, _minutes(SHORTEST_GRACE, LONGEST_GRACE)] | UnsetType,
        Description(f"minutes after which a mail is late; {DEFAULT_GRACE // MINUTE} by default"),
    ] = UNSET
    slow_minutes: Annotated[
        Annotated[int, _minutes(0, LONGEST_SLOW)] | UnsetType,
        Description(
            "minutes in transit, by the Received fields, after which a mail is slow; 0: any time; "
            f"{DEFAULT_SLOW // MINUTE} by default"
        ),
    ] = UNSET
    signed_by: Annotated[
        Annotated[str, TEXT] | UnsetType,
        Description("domain whose valid DKIM signature a mail must have to count; empty: none"),
    ] = UNSET

    def changed(self, settings: WatchSettings) -> WatchSettings:
        """Return the settings with the chosen fields replaced.

        :raises InvalidParameter: the chosen fields contradict each other.
        """
        shared = self.chosen("quiet", "is_paused", "alert_to")
        return replace(settings, heartbeat=self._expected(settings.heartbeat), **shared)

    def _expected(self, known: HeartbeatSettings | None) -> HeartbeatSettings | None:
        schedule = self._schedule(None if known is None else known.schedule)
        if schedule is None:
            return None
        expected = HeartbeatSettings(schedule) if known is None else known
        chosen = self.chosen("signed_by")
        if self.grace_minutes is not UNSET:
            chosen["grace"] = self.grace_minutes * MINUTE
        if self.slow_minutes is not UNSET:
            chosen["slow_after"] = self.slow_minutes * MINUTE
        return replace(expected, schedule=schedule, **chosen)

    def _schedule(self, known: Schedule | None) -> Schedule | None:
        if self.every_minutes is not UNSET:
            if self.at is not UNSET or self.time_zone is not UNSET or self.days is not UNSET:
                raise InvalidParameter(
                    "everyMinutes", "everyMinutes cannot be combined with at, timeZone and days"
                )
            return Schedule(every=self.every_minutes * MINUTE)
        if self.at is UNSET and (known is None or known.every):
            for name, value in (("timeZone", self.time_zone), ("days", self.days)):
                if value is not UNSET:
                    raise InvalidParameter(name, f"{name} belongs to at, which is missing")
            return known
        daily = Schedule() if known is None else replace(known, every=0)
        chosen = self.chosen("at")
        if self.time_zone is not UNSET:
            chosen["zone"] = self.time_zone
        if self.days is not UNSET:
            chosen["days"] = parse_days(self.days)
        return replace(daily, **chosen)


class HeartbeatToCreate(HeartbeatChoice, frozen=True, kw_only=True):
    """A new heartbeat."""

    example: ClassVar = (
        '{"name": "backup", "at": "06:00", "timeZone": "Europe/Berlin", "graceMinutes": 30}'
    )

    name: Annotated[
        str,
        FieldType({"type": "string", "pattern": f"^{NAME_PATTERN}$"}),
        Description("name of the heartbeat, which is part of its address"),
    ]

    @property
    def settings(self) -> WatchSettings:
        """The settings of the heartbeat."""
        return self.changed(WatchSettings())
