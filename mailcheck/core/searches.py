"""The grammar of searches: the ``q`` parameter of the REST API, agents, command line and pages.

A search has words, phrases in quotes, and terms with a prefix, in any order. A mail must match all
of them, except the ones with ``-`` in front, and one of those that ``OR`` joins. The prefixes are
those of `mailcheck.core.conditions.CONDITIONS`. ``docs/how-to/search-mail.md`` lists them.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from mailcheck.core.addresses import UNTAGGED
from mailcheck.core.conditions import (
    CONDITIONS,
    KEYWORDS,
    PROVIDER,
    RECEIVED_AT,
    SIZE,
    TAG,
    WITH_WORDS,
    AnyOf,
    Condition,
    Not,
    Place,
    Term,
    Where,
)
from mailcheck.core.errors import InvalidParameter, nearest_word
from mailcheck.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, parse_instant
from mailcheck.core.messages import PROVIDER_TITLES, SMTP, encode_keyword

PARAMETER = "q"
"""Name of the parameter, which errors repeat."""

MAX_TERMS = 32
"""Maximum number of terms. Each is one more comparison for every mail."""

MAX_SHOWN = 80
"""Maximum number of characters of an invalid value that an error repeats."""

OR = "OR"
"""The word between two terms of which one is enough."""

EXAMPLES: tuple[tuple[str, str], ...] = (
    (WITH_WORDS.example, WITH_WORDS.meaning),
    ('"your order"', "this phrase"),
    *((row.example, row.meaning) for row in CONDITIONS if row.prefix),
    ("-newsletter", "it does not match the word, phrase or term after the minus"),
    ("from:shop OR from:bank", "one of the two terms, or both; OR is in capital letters"),
)
"""All forms of terms by example, for pages and documents."""

_PREFIXES: Mapping[str, Condition] = {
    prefix: row
    for row in CONDITIONS
    for prefix in (row.prefix, row.synonym)
    if prefix and row.fixed is None
}
_FIXED: Mapping[str, Condition] = {
    row.example: row for row in CONDITIONS if row.fixed is not None and row.example
}
_NAMES = tuple(dict.fromkeys([*_PREFIXES, *(term.partition(":")[0] for term in _FIXED)]))

_ELSEWHERE = {
    "body": "text",
    "cc": "to",
    "bcc": "to",
    "file": "filename",
    "attachment": "filename",
    "label": "keyword",
    "size": "larger",
    "since": "after",
    "until": "before",
    "date": "after",
}
"""Prefixes that other programs have, and those that mean the same here."""

_QUOTED = r'["\u201c\u201d\u201e](?P<{name}>[^"\u201c\u201d\u201e]*)(?:["\u201c\u201d\u201e]|\Z)'
_TERM = re.compile(
    rf"(?P<minus>-(?=[^\s-]))?(?:(?P<prefix>[a-z]+):"
    rf"(?:{_QUOTED.format(name='quoted')}|(?P<value>\S*))"
    rf"|{_QUOTED.format(name='phrase')}|(?P<word>\S+))",
    re.IGNORECASE,
)
"""Quotes are recognised at the beginning of a word and after a prefix. Typographic quotes are
accepted, since phones type them. A quote without an end extends to the end of the text."""

_TEXT_VALUE = re.compile(r"[/:\d]|\Z")
"""How the value of an unknown prefix begins that makes it text: a link, a port, or the end of a
word."""

_AGO = re.compile(r"(\d{1,6})([smhdw])", re.ASCII | re.IGNORECASE)
_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}

_SIZE_TEXT = re.compile(r"(\d{1,9})([kmg]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "k": 10, "m": 20, "g": 30}


def parse_search(text: str, now: Instant) -> tuple[Where, ...]:
    """Parse a search. Return the expressions that a mail must all satisfy.

    ``newer:2h`` and ``older:2h`` are relative to ``now``.

    :raises InvalidParameter: a prefix is not known or has an invalid value, or there are too many
        terms. The message names the term, and the most similar one.
    """
    found: dict[Where, None] = {}
    count = 0
    for group in _split(text):
        parts = tuple(dict.fromkeys(_read(match, now) for match in group))
        count += len(parts)
        found[parts[0] if len(parts) == 1 else AnyOf(parts)] = None
    require_few(PARAMETER, count)
    return tuple(found)


def require_few(parameter: str, count: int) -> None:
    """Raise `InvalidParameter` if a search has too many terms."""
    if count > MAX_TERMS:
        raise InvalidParameter(
            parameter, f"{parameter} may have at most {MAX_TERMS} terms; got {count}"
        )


def split_terms(text: str) -> list[str]:
    """Split a search into its terms as they were written, invalid ones too.

    Terms that ``OR`` joins stay together.
    """
    return [f" {OR} ".join(match[0] for match in group) for group in _split(text)]


def _split(text: str) -> list[list[re.Match[str]]]:
    """Return the matches of all terms; those that ``OR`` joins are in one list."""
    groups: list[list[re.Match[str]]] = []
    joint = None
    for match in _TERM.finditer(text):
        if match["phrase"] is not None and not match["phrase"].strip():
            continue
        if match[0] == OR and groups and joint is None:
            joint = match
        elif joint is None:
            groups.append([match])
        else:
            groups[-1].append(match)
            joint = None
    if joint is not None:
        groups.append([joint])
    return groups


def _read(match: re.Match[str], now: Instant) -> Where:
    term = _read_positive(match, now)
    return Not(term) if match["minus"] else term


def _read_positive(match: re.Match[str], now: Instant) -> Term:
    if match["word"] == OR:
        raise InvalidParameter(
            PARAMETER,
            f'{PARAMETER}: write {OR} between two terms; to search for the word, write "{OR}"',
        )
    if match["prefix"] is None:
        return Term(WITH_WORDS, match["word"] or match["phrase"])
    prefix = match["prefix"].lower()
    value = match["value"] if match["quoted"] is None else match["quoted"]
    fixed = _FIXED.get(f"{prefix}:{value.lower()}")
    if fixed is not None:
        return Term(fixed, fixed.fixed)
    if prefix not in _NAMES:
        return Term(WITH_WORDS, _require_text(match, prefix, value))
    condition = _PREFIXES.get(prefix)
    if condition is not None and condition.places == (TAG,) and match["quoted"] == UNTAGGED:
        return Term(condition, UNTAGGED)
    if not value.strip():
        example = next(term for term, _ in EXAMPLES if term.startswith(f"{prefix}:"))
        raise InvalidParameter(
            PARAMETER,
            f"{PARAMETER}: {prefix}: has no value; write {example}, or use quotes to search for it "
            f"as text",
        )
    if condition is None:
        raise _wrong_word(prefix, value, [term for term in _FIXED if term.startswith(f"{prefix}:")])
    read = _READERS.get(condition.places[0])
    return Term(condition, value if read is None else read(prefix, value, now))


def _require_text(match: re.Match[str], prefix: str, value: str) -> str:
    """Return a term with an unknown prefix, if it is a text like a link.

    :raises InvalidParameter: it looks like a term. The message names the most similar prefix.
    """
    written = match[0].removeprefix(match["minus"] or "")
    if match["quoted"] is None and _TEXT_VALUE.match(value):
        return written
    similar = _ELSEWHERE.get(prefix) or nearest_word(prefix, _NAMES)
    meant = f"Did you mean {similar}:?" if similar else f"There are {', '.join(_NAMES)}."
    raise InvalidParameter(
        PARAMETER,
        f"{PARAMETER}: {_cut(prefix)}: is not a field of a search. {meant} To search for the text, "
        f'write "{_cut(written.replace(chr(34), ""))}" in quotes.',
    )


def _read_size(prefix: str, value: str, _: Instant) -> int:
    size = size_of(value)
    if size is None:
        raise _wrong(prefix, value, f"{prefix}: and a number of bytes, like 500, 100k or 2M")
    return size


def size_of(text: str) -> int | None:
    """Return the number of bytes of a size like 100k, or `None`; k, M, G are powers of 1,024."""
    match = _SIZE_TEXT.fullmatch(text)
    return None if match is None else int(match[1]) << _POWERS[match[2].lower()]


def _read_moment(prefix: str, value: str, now: Instant) -> Instant:
    ago = _AGO.fullmatch(value)
    if ago is not None:
        return Instant(now - int(ago[1]) * _UNITS[ago[2].lower()])
    try:
        return parse_instant(f"{date.fromisoformat(value)}T00:00Z")
    except ValueError:
        pass  # no date alone
    try:
        return parse_instant(value)
    except ValueError:
        known = (
            f"{prefix}: and a date like 2026-11-21, a moment like 2026-11-21T10:00:00Z, "
            f"or how long ago like 30m, 2h, 3d or 1w"
        )
        raise _wrong(prefix, value, known) from None


def _read_provider(prefix: str, value: str, _: Instant) -> str:
    known = [SMTP, *PROVIDER_TITLES]
    if value.lower() not in known:
        raise _wrong_word(prefix, value, [f"{prefix}:{name}" for name in known])
    return value.lower()


_READERS: Mapping[Place, Callable[[str, str, Instant], Any]] = {
    SIZE: _read_size,
    RECEIVED_AT: _read_moment,
    PROVIDER: _read_provider,
    KEYWORDS: lambda prefix, value, now: encode_keyword(value),
}
"""How values are read that are not text."""


def _wrong_word(prefix: str, value: str, known: list[str]) -> InvalidParameter:
    similar = nearest_word(f"{prefix}:{value.lower()}", known, 0.8)
    meant = f"; did you mean {similar}?" if similar else ""
    return _wrong(prefix, value, " or ".join(known), meant)


def _wrong(prefix: str, value: str, known: str, meant: str = "") -> InvalidParameter:
    return InvalidParameter(
        PARAMETER, f"{PARAMETER}: write {known}; you sent {prefix}:{_cut(value)}{meant}"
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
