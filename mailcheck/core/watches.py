"""Watches: domains and addresses that are looked at again and again, and what came of it."""

import hashlib
from enum import Enum
from typing import NewType

from msgspec import Struct

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, HOUR, MINUTE, Instant

WatchId = NewType("WatchId", str)
AlertId = NewType("AlertId", str)

SHORTEST_INTERVAL, LONGEST_INTERVAL, DEFAULT_INTERVAL = 15 * MINUTE, DAY, HOUR

MOST_WATCHES = 2_000
"""Of one account."""

MOST_AT_ONCE = 500
"""Watches that one request makes."""

HISTORY_KEPT = 400 * DAY
"""More than a year, so that a month can be laid beside the same one before."""

MOST_CHANGES = 5_000
"""Of one history; the newest ones. A year of a domain that is well has a few dozen."""

ALERT_TAG = "watch-alerts"
"""Tag of the mails in which alerts come to an account's own inbox; webhooks can ask for it."""


ALERT_FIELD = "Mailcheck-Alert-To"
"""Header field of such a mail with the `receiver_key` of each who is told of it."""

MOST_RECEIVERS = 5
"""Addresses that the alerts of one watch go to."""


class WatchKind(Enum):
    """What is looked at."""

    DOMAIN = "domain"
    """Records, mail hosts, registration, reverse DNS, lists: all that a reputation is made of."""
    ADDRESS = "address"
    """Lists and reverse DNS."""


class QuietTime(Struct, frozen=True):
    """Minutes of the day (UTC) between which no alert is told; may go over midnight."""

    begins: int
    ends: int

    def holds(self, now: Instant) -> bool:
        """Tell whether it is quiet."""
        minute = now % DAY // MINUTE
        if self.begins <= self.ends:
            return self.begins <= minute < self.ends
        return minute >= self.begins or minute < self.ends

    def __str__(self) -> str:
        """Write it as it is asked for: ``22:00-06:30``."""
        first, last = (f"{one // 60:02}:{one % 60:02}" for one in (self.begins, self.ends))
        return f"{first}-{last}"


def parse_quiet_time(text: str) -> QuietTime:
    """Read ``22:00-06:30``.

    :raises InvalidParameter: it is none, or has no length.
    """
    minutes = [_minute(part) for part in text.split("-")]
    begins, ends = minutes if len(minutes) == 2 else (None, None)
    if begins is None or ends is None or begins == ends:
        raise InvalidParameter(
            "quiet", "quiet is two times of the day in UTC, like 22:00-06:30; empty for none"
        )
    return QuietTime(begins, ends)


def _minute(text: str) -> int | None:
    hour, colon, minute = text.strip().partition(":")
    is_written = bool(colon) and len(hour) == len(minute) == 2 and (hour + minute).isascii()
    if not is_written or not (hour + minute).isdigit():
        return None
    is_time = int(hour) < 24 and int(minute) < 60
    return int(hour) * 60 + int(minute) if is_time else None


class WatchSettings(Struct, frozen=True):
    """What its owner chooses; ``interval`` in milliseconds.

    ``selectors`` and ``addresses`` are those that a domain signs with and sends from;
    ``alert_to`` the URLs of those who are told of alerts, beside its owner's own inbox.
    """

    interval: int = DEFAULT_INTERVAL
    selectors: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    quiet: QuietTime | None = None
    is_paused: bool = False
    alert_to: tuple[str, ...] = ()


class Watch(Struct, frozen=True):
    """A domain (A-labels) or an address, with what was known of it after the last run.

    ``state`` is what `mailcheck.checks.watching.changes` needs to tell what is new, as text;
    empty before the first run. ``changes`` counts those that were kept, the forgotten ones too.
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
    """Problems that the last run found, alerted or not."""


class WatchChange(Struct, frozen=True):
    """Something that was otherwise in the run before, as a sentence, with both values.

    ``topic`` and ``name`` say what; a value is nothing where there was none, or it was not known.
    """

    at: Instant
    topic: str
    name: str
    before: str | None
    after: str | None
    sentence: str
    severity: str


class WatchScore(Struct, frozen=True):
    """The score of a domain from a moment on, until the next; ``points`` by factor."""

    at: Instant
    score: int
    grade: str
    points: dict[str, int]


class Raised(Struct, frozen=True):
    """A problem that has come up or has become worse; ``is_new``: its owner is to be told."""

    key: str
    severity: str
    sentence: str
    is_new: bool


class Ended(Struct, frozen=True):
    """A problem that is over."""

    key: str
    sentence: str


class Alert(Struct, frozen=True):
    """A problem that came up while somebody watched; there is one for each, with its end.

    ``key`` is what it is about; ``ending`` the sentence with which it ended.
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


def receiver_key(url: str) -> str:
    """Give the word by which mails of alerts name one of those who are told of them."""
    return hashlib.sha256(url.encode()).hexdigest()[:20]


def next_run(watch_id: str, interval: int, after: Instant) -> Instant:
    """Say when a watch is run next: each has its own moment of the interval.

    So a thousand that were made at once are spread evenly from their second run on.
    """
    offset = int.from_bytes(hashlib.sha256(watch_id.encode()).digest()[:8]) % interval
    periods = (after - offset) // interval + 1
    return Instant(offset + periods * interval)
