"""The digest of an account: its interval and its receivers."""

from datetime import UTC, datetime, timedelta
from enum import Enum

from msgspec import Struct

from mailcheck.core.domains.watches import QuietTime
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import HOUR, MINUTE, SECOND, Instant

DIGEST_TAG = "digest"
"""Tag of the digests in an account's own inbox."""

SENT_AT = 6 * HOUR
"""Time of day (UTC) at which digests are sent, in milliseconds."""

MOST_DIGEST_RECEIVERS = 5

RETRY = 30 * MINUTE
"""Time until a digest is sent again to the receivers that it could not be sent to."""


class DigestInterval(Enum):
    """How often a digest is sent. The values are part of the API."""

    WEEK = "week"
    """On Mondays."""
    MONTH = "month"
    """On the first day of each month."""


class DigestSettings(Struct, frozen=True):
    """Settings that the owner chooses.

    ``every`` is `None` if no digest is sent. ``to`` are mail addresses beside the own inbox.
    """

    every: DigestInterval | None = None
    to: tuple[str, ...] = ()
    quiet: QuietTime | None = None


class Digest(Struct, frozen=True):
    """A digest that is due, with the account and its inbox.

    It is about the time from ``begins_at`` until ``ends_at``, or now. ``left`` are the receivers
    to which it could not be sent before; empty before the first attempt.
    """

    account_id: AccountId
    account_name: str
    mailbox_name: str
    settings: DigestSettings
    begins_at: Instant
    left: tuple[str, ...] = ()


def next_digest(every: DigestInterval, after: Instant) -> Instant:
    """Return when the next digest is sent."""
    moment = datetime.fromtimestamp(after // SECOND, UTC)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if every is DigestInterval.WEEK:
        day -= timedelta(days=day.weekday())
        step = timedelta(days=7)
    else:
        day = day.replace(day=1)
        step = (day + timedelta(days=32)).replace(day=1) - day
    sent_at = _instant(day)
    return sent_at if sent_at > after else _instant(day + step)


def _instant(day: datetime) -> Instant:
    return Instant(int(day.timestamp()) * SECOND + SENT_AT)
