"""Watches: domains and addresses that are checked periodically, and their results."""

import hashlib
import re
from enum import Enum
from typing import NewType

from msgspec import Struct

from mailcheck.core.domains.heartbeats import HeartbeatSettings
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, HOUR, MINUTE, Instant

WatchId = NewType("WatchId", str)
AlertId = NewType("AlertId", str)

SHORTEST_INTERVAL, LONGEST_INTERVAL, DEFAULT_INTERVAL = 15 * MINUTE, DAY, HOUR

MOST_WATCHES = 2_000
"""Maximum number of watches of one account."""

MOST_AT_ONCE = 500
"""Maximum number of watches that one request creates."""

HISTORY_KEPT = 400 * DAY
"""Retention of the history: more than a year, so that a month can be compared with last year."""

MOST_CHANGES = 5_000
"""Maximum number of changes in a history; the newest are kept. A year of a healthy domain has a
few dozen."""

ALERT_TAG = "watch-alerts"
"""Tag of the mails with alerts in an account's own inbox. Webhooks can filter by it."""


ALERT_FIELD = "Mailcheck-Alert-To"
"""Header field of these mails with the `receiver_key` of each receiver of the alert."""

MOST_RECEIVERS = 5
"""Maximum number of receivers of the alerts of one watch."""


class WatchKind(Enum):
    """Type of a watch."""

    DOMAIN = "domain"
    """Records, mail hosts, registration, reverse DNS and blocklists: all factors of a score."""
    ADDRESS = "address"
    """Blocklists and reverse DNS."""
    HEARTBEAT = "heartbeat"
    """Mail that is expected on a schedule. Its target is the name of the heartbeat."""


class QuietTime(Struct, frozen=True):
    """Minutes of the day (UTC) between which no alert is sent. May include midnight."""

    begins: int
    ends: int

    def holds(self, now: Instant) -> bool:
        """Return whether the moment is in the quiet time."""
        minute = now % DAY // MINUTE
        if self.begins <= self.ends:
            return self.begins <= minute < self.ends
        return minute >= self.begins or minute < self.ends

    def __str__(self) -> str:
        """Return the form in which it is configured: ``22:00-06:30``."""
        first, last = (
            f"{minutes // 60:02}:{minutes % 60:02}" for minutes in (self.begins, self.ends)
        )
        return f"{first}-{last}"


CLOCK_PATTERN = "([01][0-9]|2[0-3]):[0-5][0-9]"
"""Pattern of a time of day, such as ``22:00``."""

_CLOCK = re.compile(CLOCK_PATTERN)


def parse_quiet_time(text: str) -> QuietTime:
    """Parse a quiet time such as ``22:00-06:30``.

    :raises InvalidParameter: the text has another form, or both times are equal.
    """
    minutes = [_minute(part) for part in text.split("-")]
    begins, ends = minutes if len(minutes) == 2 else (None, None)
    if begins is None or ends is None or begins == ends:
        raise InvalidParameter(
            "quiet", "quiet must be two times of day in UTC, like 22:00-06:30, or empty"
        )
    return QuietTime(begins, ends)


def parse_time_of_day(text: str) -> int:
    """Return the minute of the day of a time such as ``06:00``.

    :raises InvalidParameter: the text has another form.
    """
    minute = _minute(text)
    if minute is None:
        raise InvalidParameter("at", f"at must be a time of day like 06:00; got {text[:20]!r}")
    return minute


def _minute(text: str) -> int | None:
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        return None
    hour, _, minute = match[0].partition(":")
    return int(hour) * 60 + int(minute)


class WatchSettings(Struct, frozen=True):
    """Settings that the owner chooses. ``interval`` is in milliseconds.

    ``selectors`` are the DKIM selectors of a domain, and ``addresses`` its sending addresses.
    ``alert_to`` are the URLs of receivers of alerts, beside the owner's own inbox. ``heartbeat``
    is what is expected of the mail of a heartbeat; `None` for other watches.
    """

    interval: int = DEFAULT_INTERVAL
    selectors: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    quiet: QuietTime | None = None
    is_paused: bool = False
    alert_to: tuple[str, ...] = ()
    heartbeat: HeartbeatSettings | None = None


def expected_of(settings: WatchSettings) -> HeartbeatSettings:
    """Return what is expected of the mail of a heartbeat."""
    assert settings.heartbeat is not None, "a heartbeat is created with it"
    return settings.heartbeat


class Watch(Struct, frozen=True):
    """A watched domain (A-labels) or address, with the state after the last run.

    ``state`` is the serialized input for `mailcheck.checks.watching.changes`, which compares runs.
    It is empty before the first run. ``changes`` counts all changes, deleted ones too.
    """

    id: WatchId
    account_id: AccountId
    kind: WatchKind
    target: str
    settings: WatchSettings
    created_at: Instant
    next_run_at: Instant
    last_run_at: Instant | None = None
    state: str = ""
    changes: int = 0
    problem_count: int | None = None
    """Number of problems that the last run found, with and without alerts."""


class WatchChange(Struct, frozen=True):
    """A difference from the run before, as a sentence with both values.

    ``topic`` and ``name`` identify the fact. A value is `None` if it was absent or unknown.
    """

    at: Instant
    topic: str
    name: str
    before: str | None
    after: str | None
    sentence: str
    severity: str


class WatchScore(Struct, frozen=True):
    """The score of a domain from ``at`` until the next one, with the ``points`` of each factor."""

    at: Instant
    score: int
    grade: str
    points: dict[str, int]


class Raised(Struct, frozen=True):
    """A problem that has appeared or become worse. ``is_new``: its owner must be alerted."""

    key: str
    severity: str
    sentence: str
    is_new: bool


class Ended(Struct, frozen=True):
    """A problem that is resolved."""

    key: str
    sentence: str


class Alert(Struct, frozen=True):
    """A problem of a watch, from its beginning to its end.

    ``key`` identifies the problem. ``ending`` is the sentence about its end.
    """

    id: AlertId
    watch_id: WatchId
    target: str
    key: str
    severity: str
    sentence: str
    opened_at: Instant
    ended_at: Instant | None = None
    ending: str = ""
    acknowledged_at: Instant | None = None
    kind: WatchKind = WatchKind.DOMAIN


def receiver_key(url: str) -> str:
    """Return the key that identifies a receiver of alerts in mails of alerts."""
    return hashlib.sha256(url.encode()).hexdigest()[:20]


def next_run(watch_id: str, interval: int, after: Instant) -> Instant:
    """Return when a watch runs next. Each watch has its own offset in the interval.

    Watches that are created together are thus spread evenly from their second run on.
    """
    offset = int.from_bytes(hashlib.sha256(watch_id.encode()).digest()[:8]) % interval
    periods = (after - offset) // interval + 1
    return Instant(offset + periods * interval)
