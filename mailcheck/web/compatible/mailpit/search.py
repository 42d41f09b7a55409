"""The search grammar of Mailpit: words, phrases in quotes, prefixes, and negation with - or !."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, tzinfo
from functools import partial
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mailcheck.core import conditions
from mailcheck.core.conditions import AllOf, AnyOf, InMail, Not, Term, Where, sent_to
from mailcheck.core.content import is_blank
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.instants import Instant, instant_of
from mailcheck.core.messages import encode_keyword
from mailcheck.core.searches import require_few, size_of

PARAMETER = "query"

NO_INLINE = "pictures that the HTML shows are not indexed; search the names of their files"
"""Why a search for inline pictures is refused."""

_WORD = re.compile(r'(?:"[^"]*(?:"|\Z)|[^\s"])+')


def _header(name: str, part: str) -> Where:
    return Term(conditions.WITH_HEADER, (name, part))


def _blind_copied(part: str) -> Where:
    """Return the expression that a Bcc, or a recipient that no header field names, matches."""
    named = (Not(_header("to", part)), Not(_header("cc", part)))
    return AnyOf(
        (_header("bcc", part), AllOf((InMail(Term(conditions.TO_RECIPIENT, part)), *named)))
    )


def _tagged(word: str) -> Where:
    keyword = Term(conditions.WITH_KEYWORD, encode_keyword(word))
    return InMail(AnyOf((Term(conditions.WITH_TAG, encode_keyword(word)), keyword)))


_TEXTS: Mapping[str, Callable[[str], Where]] = {
    "from": partial(Term, conditions.FROM),
    "subject": partial(Term, conditions.WITH_SUBJECT),
    "addressed": lambda part: AnyOf((Term(conditions.FROM, part), sent_to(part))),
    "bcc": _blind_copied,
    "tag": _tagged,
    **{name: partial(_header, name) for name in ("to", "cc", "reply-to", "message-id")},
}
_SIZES = {"larger": conditions.LARGER, "smaller": conditions.SMALLER}
_MOMENTS = {"after": conditions.SINCE, "before": conditions.OLDER}
_FIXED: Mapping[str, Where] = {
    "is:read": Term(conditions.READ, conditions.READ.fixed),
    "is:unread": Term(conditions.UNREAD, conditions.UNREAD.fixed),
    "is:tagged": InMail(
        AnyOf((Not(Term(conditions.WITH_TAG, "")), Not(Term(conditions.WITHOUT_KEYWORDS, ""))))
    ),
    "has:attachment": Term(conditions.WITH_FILES, conditions.WITH_FILES.fixed),
    "has:attachments": Term(conditions.WITH_FILES, conditions.WITH_FILES.fixed),
}


def read_search(text: str, time_zone: str = "") -> MessageFilter:
    """Return the filter of a search. Without terms it is `ANY`.

    :param time_zone: the IANA name of the zone of dates; UTC by default.
    :raises InvalidParameter: a term is not offered, or has an invalid value.
    """
    zone = _zone(time_zone)
    found: dict[Where, None] = {}
    for word in _WORD.findall(text):
        where = _read(word.replace('"', ""), zone)
        if where is not None:
            found[where] = None
    require_few(PARAMETER, len(found))
    return MessageFilter(search=tuple(found)) if found else ANY


def _read(word: str, zone: tzinfo) -> Where | None:
    is_negated = word[:1] in ("-", "!")
    where = _read_positive(word[is_negated:].strip(), zone)
    return Not(where) if is_negated and where is not None else where


def _read_positive(word: str, zone: tzinfo) -> Where | None:
    if is_blank(word):
        return None
    prefix, colon, value = word.partition(":")
    prefix, value = prefix.lower(), value.strip()
    fixed = _FIXED.get(f"{prefix}:{value.lower()}")
    if fixed is not None:
        return fixed
    if not colon or prefix not in {*_TEXTS, *_SIZES, *_MOMENTS, "is", "has"}:
        return Term(conditions.WITH_WORDS, word)
    if is_blank(value):
        return None
    if prefix in _TEXTS:
        return _TEXTS[prefix](value)
    size = size_of(value)
    if prefix in _SIZES and size is not None:
        return Term(_SIZES[prefix], size)
    if prefix in _MOMENTS:
        return Term(_MOMENTS[prefix], _read_moment(prefix, value, zone))
    raise _not_offered(word)


def _not_offered(word: str) -> InvalidParameter:
    if word.lower() == "has:inline":
        reason = NO_INLINE
    else:
        reason = f"write {', '.join(_FIXED)}, or larger: or smaller: with a size like 100k"
    return InvalidParameter(PARAMETER, f"{PARAMETER}: {word[:80]} is not offered; {reason}")


def _read_moment(prefix: str, value: str, zone: tzinfo) -> Instant:
    try:
        moment = datetime.fromisoformat(value.replace("/", "-"))
    except ValueError:
        raise InvalidParameter(
            PARAMETER,
            f"{PARAMETER}: write {prefix}: and a date like {date(2026, 11, 21)} or a moment like "
            f"2026-11-21T10:00:00Z; you sent {prefix}:{value[:80]}",
        ) from None
    return instant_of(moment.replace(tzinfo=moment.tzinfo or zone).timestamp())


def _zone(name: str) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidParameter(
            "tz", f"tz must be a time zone like Pacific/Auckland; got {name[:80]!r}"
        ) from None
