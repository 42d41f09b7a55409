"""The grammar of searches: parsing and errors."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core import conditions
from mailcheck.core.conditions import CONDITIONS, AnyOf, Condition, Not, Term, Where, terms_of
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import DAY, HOUR, Instant
from mailcheck.core.searches import EXAMPLES, MAX_TERMS, parse_search, split_terms
from tests.table import rows

NOON = Instant(1_795_262_400_000)
"""2026-11-21T12:00:00Z."""

ANYWHERE = conditions.WITH_WORDS
SINCE, OLDER = conditions.SINCE, conditions.OLDER
LARGER, SMALLER = conditions.LARGER, conditions.SMALLER


def terms(text: str) -> list[tuple[Condition, str | int]]:
    """Return the terms of a search."""
    return [
        (one.condition, one.value) for where in parse_search(text, NOON) for one in terms_of(where)
    ]


@rows(
    ("", []),
    (" \t ", []),
    ('""', []),
    ('" "', []),
    ('"', []),
    ("welcome  shop", [(ANYWHERE, "welcome"), (ANYWHERE, "shop")]),
    ("twice twice", [(ANYWHERE, "twice")]),
    ('"your order" shop', [(ANYWHERE, "your order"), (ANYWHERE, "shop")]),
    ('"never closed', [(ANYWHERE, "never closed")]),
    ('"a b"c', [(ANYWHERE, "a b"), (ANYWHERE, "c")]),
    ("\u201etypographic ones\u201c", [(ANYWHERE, "typographic ones")]),
    ('in"side', [(ANYWHERE, 'in"side')]),
    ("https://a.example/?x=1", [(ANYWHERE, "https://a.example/?x=1")]),
    ("re: localhost:8080", [(ANYWHERE, "re:"), (ANYWHERE, "localhost:8080")]),
    ("12:30 :x std::y", [(ANYWHERE, "12:30"), (ANYWHERE, ":x"), (ANYWHERE, "std::y")]),
    ("- -- --flag", [(ANYWHERE, "-"), (ANYWHERE, "--"), (ANYWHERE, "--flag")]),
    ('"OR" or', [(ANYWHERE, "OR"), (ANYWHERE, "or")]),
    ("filename:a.pdf smaller:1k", [(conditions.WITH_FILE_NAME, "a.pdf"), (SMALLER, 1024)]),
    ("after:2026-11-21", [(SINCE, NOON - 12 * HOUR)]),
    ("before:2h", [(OLDER, NOON - 2 * HOUR)]),
    ('"from: bob"', [(ANYWHERE, "from: bob")]),
    ("from:shop", [(conditions.FROM, "shop")]),
    ("FROM:Shop", [(conditions.FROM, "Shop")]),
    ('from:"My Shop" x', [(conditions.FROM, "My Shop"), (ANYWHERE, "x")]),
    ("from:https://x", [(conditions.FROM, "https://x")]),
    ("to:a+b@c tag:B", [(conditions.TO, "a+b@c"), (conditions.WITH_TAG, "B")]),
    ('tag:""', [(conditions.WITH_TAG, "")]),
    ("subject:x text:y", [(conditions.WITH_SUBJECT, "x"), (conditions.WITH_TEXT, "y")]),
    ("has:Attachment has:code", [(conditions.WITH_FILES, 0), (conditions.WITH_CODE, 1)]),
    ("is:unread is:READ", [(conditions.UNREAD, 0), (conditions.READ, 1)]),
    ("larger:0 larger:10k", [(LARGER, 0), (LARGER, 10_240)]),
    ("larger:2MB larger:1GiB", [(LARGER, 2 << 20), (LARGER, 1 << 30)]),
    ("newer:2h older:3d", [(SINCE, NOON - 2 * HOUR), (OLDER, NOON - 3 * DAY)]),
    ("newer:90s newer:30M", [(SINCE, NOON - 90_000), (SINCE, NOON - HOUR // 2)]),
    ("newer:1w", [(SINCE, NOON - 7 * DAY)]),
    ("newer:2026-11-21", [(SINCE, NOON - 12 * HOUR)]),
    ("older:2026-11-21T12:00:00.000Z", [(OLDER, NOON)]),
    ("older:2026-11-21T13:00+01:00", [(OLDER, NOON)]),
    ('older:"2026-11-21 12:00"', [(OLDER, NOON)]),
)
def test_parsing(text: str, expected: list[tuple[Condition, str | int]]) -> None:
    """Words, phrases and terms with known prefixes are parsed. Links and ports are text."""
    assert terms(text) == expected


@rows(
    ("from:", "from: has no value"),
    ("x from: shop", "write from:shop"),
    ('subject:""', "subject: has no value"),
    ('to:" "', "to: has no value"),
    ("tag:", "tag: has no value"),
    ("has:link", "write has:attachment or has:code; you sent has:link"),
    ("has:attachmnt", "did you mean has:attachment?"),
    ("via:resnd", "did you mean via:resend?"),
    ("subjct:welcome", "subjct: is not a field of a search. Did you mean subject:?"),
    ('fron:"my shop"', 'To search for the text, write "fron:my shop" in quotes.'),
    ("-cc:boss", "Did you mean to:?"),
    ("priority:high", "There are from, to, "),
    ("a OR", 'to search for the word, write "OR"'),
    ("OR b", "write OR between two terms"),
    ("a OR OR", "write OR between two terms"),
    ("is:starred", "write is:unread or is:read; you sent is:starred"),
    ("larger:big", "you sent larger:big"),
    ("larger:-1", "you sent larger:-1"),
    ("larger:1t", "you sent larger:1t"),
    ("larger:9999999999", "you sent larger:9999999999"),
    ("newer:yesterday", "you sent newer:yesterday"),
    ("older:2026-02-30", "you sent older:2026-02-30"),
    ("older:2026-11-21T25:00Z", "you sent older:2026-11-21T25:00Z"),
    ("newer:2y", "a date like 2026-11-21"),
    ("newer:99999999d", "like 30m, 2h, 3d or 1w"),
    ("larger:" + "9" * 200, "9" * 80 + "..."),
    (" ".join(map(str, range(MAX_TERMS + 1))), f"at most {MAX_TERMS} terms"),
)
def test_invalid_values(text: str, words: str) -> None:
    """An invalid value of a prefix is reported with the valid ones."""
    with pytest.raises(InvalidParameter) as refused:
        parse_search(text, NOON)
    assert refused.value.name == "q"
    assert str(refused.value).startswith("q")
    assert words in str(refused.value)


A, B, C = (Term(ANYWHERE, word) for word in "abc")


@rows(
    ("a -b", (A, Not(B)), ["a", "-b"]),
    ('-"a" -from:x', (Not(A), Not(Term(conditions.FROM, "x"))), ['-"a"', "-from:x"]),
    ("a OR b c", (AnyOf((A, B)), C), ["a OR b", "c"]),
    ('c a OR -b OR "c"', (C, AnyOf((A, Not(B), C))), ["c", 'a OR -b OR "c"']),
    ("a OR a", (A,), ["a OR a"]),
    ('a OR "" b', (AnyOf((A, B)),), ["a OR b"]),
)
def test_without_and_or(text: str, expected: tuple[Where, ...], written: list[str]) -> None:
    """A minus stands for the opposite of a term, and OR joins its neighbours."""
    assert parse_search(text, NOON) == expected
    assert split_terms(text) == written


def test_every_term_stands_in_the_table() -> None:
    """The published examples can be parsed and use every condition that has an example."""
    shown = {condition for example, _ in EXAMPLES for condition, _ in terms(example)}
    assert shown == {one for one in CONDITIONS if one.example}


def test_the_table_is_published() -> None:
    """The documentation has the same table."""
    text = Path(__file__).parents[2].joinpath("docs", "how-to", "search-mail.md").read_text("utf-8")
    table = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert table == [[f"`{example}`", meaning] for example, meaning in EXAMPLES]
    assert f"at most {MAX_TERMS} words and terms" in text


PREFIXES = [f"{one.prefix}:" for one in CONDITIONS]
PIECES = [*PREFIXES, '"', " ", "2h", "x", "\u201c", "unread", "-", " OR "]
ALMOST = st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join)


@given(ALMOST)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text is parsed or rejected; numbers fit into every database."""
    try:
        search = parse_search(text, NOON)
    except InvalidParameter:
        return
    for term in (one for where in search for one in terms_of(where)):
        assert isinstance(term.value, str) or -(2**63) <= term.value < 2**63


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"“”„'))))
def test_quotes_keep_anything(phrases: list[str]) -> None:
    """Everything in quotes is text."""
    phrases = phrases[:MAX_TERMS]
    written = " ".join(f'"{phrase}"' for phrase in phrases)
    kept = dict.fromkeys(phrase for phrase in phrases if phrase.strip())
    assert terms(written) == [(ANYWHERE, phrase) for phrase in kept]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"“”„:-')))
def test_words_are_split_at_blanks(text: str) -> None:
    """Without quotes, colons and minus signs, a search is its distinct words."""
    words = [word for word in dict.fromkeys(text.split()) if word != "OR"][:MAX_TERMS]
    assert terms(" ".join(words)) == [(ANYWHERE, word) for word in words]
