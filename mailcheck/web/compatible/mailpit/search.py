"""The search grammar of Mailpit: words, phrases in quotes, prefixes, and negation with - or !."""

import re
from datetime import UTC, date, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mailcheck.core.content import is_blank
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import (
    ANY,
    ATTACHMENT,
    MAX_TERMS,
    READ,
    SIZE,
    UNREAD,
    Field,
    MessageFilter,
    Search,
    Term,
    bytes_of,
)
from mailcheck.core.instants import Instant, instant_of
from mailcheck.core.messages import encode_keyword

PARAMETER = "query"

NO_INLINE = "pictures that the HTML shows are not indexed; search the names of their files"
"""Why a search for inline pictures is refused."""

_WORD = re.compile(r'(?:"[^"]*(?:"|\Z)|[^\s"])+')

_PREFIXES = {
    "from": Field.FROM,
    "subject": Field.SUBJECT,
    "addressed": Field.ADDRESSED,
    "bcc": Field.BLIND_COPY,
}
_HEADERS = ("to", "cc", "reply-to", "message-id")
_SIZES = {"larger": Field.LARGER, "smaller": Field.SMALLER}
_MOMENTS = {"after": Field.NEWER, "before": Field.OLDER}
_FIXED = {
    "is:read": Term(Field.IS, READ),
    "is:unread": Term(Field.IS, UNREAD),
    "is:tagged": Term(Field.ANY_TAG, ""),
    "has:attachment": Term(Field.HAS, ATTACHMENT),
    "has:attachments": Term(Field.HAS, ATTACHMENT),
}


def read_search(text: str, time_zone: str = "") -> MessageFilter:
    """Return the filter of a search. Without terms it is `ANY`.

    :param time_zone: the IANA name of the zone of dates; UTC by default.
    :raises InvalidParameter: a term is not offered, or has an invalid value.
    """
    zone = _zone(time_zone)
    terms: dict[Term, None] = {}
    for word in _WORD.findall(text):
        term = _read_term(word.replace('"', ""), zone)
        if term is not None:
            terms[term] = None
    if len(terms) > MAX_TERMS:
        raise InvalidParameter(
            PARAMETER, f"{PARAMETER} may have at most {MAX_TERMS} terms; got {len(terms)}"
        )
    return MessageFilter(search=Search(text, tuple(terms))) if terms else ANY


def _read_term(word: str, zone: tzinfo) -> Term | None:
    is_negated = word[:1] in ("-", "!")
    term = _read_positive(word[is_negated:].strip(), zone)
    if term is None or not is_negated:
        return term
    return term._replace(is_negated=not term.is_negated)


def _read_positive(word: str, zone: tzinfo) -> Term | None:
    if is_blank(word):
        return None
    prefix, colon, value = word.partition(":")
    prefix, value = prefix.lower(), value.strip()
    fixed = _FIXED.get(f"{prefix}:{value.lower()}")
    if fixed is not None:
        return fixed
    known = {"tag", *_PREFIXES, *_HEADERS, *_SIZES, *_MOMENTS, "is", "has"}
    if not colon or prefix not in known:
        return Term(Field.ANYWHERE, word)
    if is_blank(value):
        return None
    if prefix == "tag":
        return Term(Field.ANY_TAG, encode_keyword(value))
    if prefix in _PREFIXES:
        return Term(_PREFIXES[prefix], value)
    if prefix in _HEADERS:
        return Term(Field.HEADER, f"{prefix}:{value}")
    if prefix in _SIZES and SIZE.fullmatch(value) is not None:
        return Term(_SIZES[prefix], bytes_of(value))
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
