"""The Date field: RFC 5322 3.3, and what can still be read where it is written otherwise."""

import re
from calendar import timegm
from datetime import datetime
from email.utils import parsedate_tz

from mailcheck.checks.content.decoding import decode_header_bytes, flatten_controls
from mailcheck.checks.mail_quality.facts import DateFacts
from mailcheck.core.instants import SECOND, Instant

MAX_DATE = 100
"""Characters of a Date field; the form of RFC 5322 has 31, comments come on top."""

_COMMENT = re.compile(r"\([^()]*+\)")
_DATE_TIME = re.compile(
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),\s*+)?[0-9]{1,2}\s++"
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s++[0-9]{4}\s++"
    r"[0-2][0-9]:[0-5][0-9](?::[0-6][0-9])?\s++(?:[+-][0-9]{2}[0-5][0-9]|GMT|UT)",
    re.ASCII | re.IGNORECASE,
)
_LEAP_SECOND = 60
_FIRST_YEAR, _LAST_YEAR = 1970, 9999
_FARTHEST = 86_400  # seconds that a zone is away from UTC


def read_date(body: bytes) -> DateFacts:
    """Read a Date field's body. Never raises."""
    text = flatten_controls(decode_header_bytes(body[: MAX_DATE * 4]))
    shown = text[:MAX_DATE]
    bare = " ".join(_COMMENT.sub(" ", shown).split())
    instant = None if len(text) > MAX_DATE else _find_instant(bare)
    if instant is None:
        return DateFacts(shown, None, "can't be read as a date")
    if _DATE_TIME.fullmatch(bare) is None:
        return DateFacts(shown, instant, "is not in the form of RFC 5322")
    return DateFacts(shown, instant)


def _find_instant(text: str) -> Instant | None:
    try:
        found = parsedate_tz(text)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    if found is None:
        return None
    year, month, day, hour, minute, second = found[:6]
    zone = found[9] or 0
    if not _FIRST_YEAR <= year <= _LAST_YEAR or second > _LEAP_SECOND or abs(zone) >= _FARTHEST:
        return None
    try:
        datetime(year, month, day, hour, minute)
    except ValueError:
        return None
    return Instant((timegm((year, month, day, hour, minute, second)) - zone) * SECOND)
