"""Moments in time as whole milliseconds since the Unix epoch, UTC.

The same number is stored, compared and rendered. A timestamp is exact after a round trip through
JSON, which has three decimals.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import NewType

Instant = NewType("Instant", int)

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

BEGINNING = Instant(0)
END = Instant((1 << 48) - 1)
"""Moments before and after all stored moments."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# RFC 3339 5.6 with a space allowed for "T", and other ISO 8601 forms that
# programs use. A space before the offset is a "+" that was not
# percent-encoded in a query string.
_ISO_8601 = re.compile(
    r"(?P<date>\d{4}-?\d{2}-?\d{2})[Tt ](?P<time>\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]\d+)?)?)?)"
    r"(?P<offset>\s*[Zz]|\s*[+-]\d{2}(?::?\d{2})?| \d{2}(?::?\d{2})?)?",
    re.ASCII,
)


def instant_of(seconds: float) -> Instant:
    """Return the instant of a clock reading in seconds since the epoch."""
    return Instant(int(seconds * SECOND))


def parse_instant(text: str) -> Instant:
    """Parse an ISO 8601 date and time. Without an offset it is UTC.

    :raises ValueError: the text is not a date with a time of day.
    """
    match = _ISO_8601.fullmatch(text.strip())
    if match is None:
        raise ValueError("not an ISO 8601 date and time")
    offset = (match["offset"] or "Z").upper()
    if offset.startswith(" ") and offset.strip()[0].isdigit():
        offset = "+" + offset.strip()
    # fromisoformat requires date and time both basic or both extended. They are
    # parsed separately to accept a mixture.
    date = datetime.fromisoformat(match["date"])
    moment = datetime.fromisoformat(f"2000-01-01T{match['time']}{offset.strip()}")
    zone = moment.utcoffset() or timedelta()
    whole = date.replace(tzinfo=UTC) + (
        moment.replace(tzinfo=UTC) - datetime(2000, 1, 1, tzinfo=UTC)
    )
    return Instant(
        (whole - _EPOCH) // timedelta(milliseconds=1) - zone // timedelta(milliseconds=1)
    )


def format_instant(instant: Instant) -> str:
    """Return an instant as ``2026-11-21T10:00:00.000Z``: always three decimals and ``Z``."""
    moment = _EPOCH + timedelta(milliseconds=instant)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def describe_duration(seconds: int) -> str:
    """Return a duration in its largest whole unit, as text."""
    for unit, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= unit:
            count = seconds // unit
            return f"{count} {name}{'s' if count > 1 else ''}"
    return f"{seconds} seconds"
