"""The grammar of searches: parsing and errors."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import (
    EXAMPLES,
    FOREIGN,
    MAX_TERMS,
    Field,
    Term,
    parse_search,
)
from mailcheck.core.instants import DAY, HOUR, Instant
from tests.table import rows

NOON = Instant(1_795_262_400_000)
"""2026-11-21T12:00:00Z."""

ANYWHERE = Field.ANYWHERE


def terms(text: str) -> list[tuple[Field, str | int]]:
    """Return the terms of a search."""
    search = parse_search(text, NOON)
    return [] if search is None else [(one.field, one.value) for one in search.terms]


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
    ("re: cc:bob", [(ANYWHERE, "re:"), (ANYWHERE, "cc:bob")]),
    ("12:30 :x x:from:y", [(ANYWHERE, "12:30"), (ANYWHERE, ":x"), (ANYWHERE, "x:from:y")]),
    ('"from: bob"', [(ANYWHERE, "from: bob")]),
    ("from:shop", [(Field.FROM, "shop")]),
    ("FROM:Shop", [(Field.FROM, "Shop")]),
    ('from:"My Shop" x', [(Field.FROM, "My Shop"), (ANYWHERE, "x")]),
    ("from:https://x", [(Field.FROM, "https://x")]),
    ("to:a+b@c tag:B", [(Field.TO, "a+b@c"), (Field.TAG, "B")]),
    ('tag:""', [(Field.TAG, "")]),
    ("subject:x text:y", [(Field.SUBJECT, "x"), (Field.TEXT, "y")]),
    ("has:Attachment has:code", [(Field.HAS, "attachment"), (Field.HAS, "code")]),
    ("is:unread is:READ", [(Field.IS, "unread"), (Field.IS, "read")]),
    ("larger:0 larger:10k", [(Field.LARGER, 0), (Field.LARGER, 10_240)]),
    ("larger:2MB larger:1GiB", [(Field.LARGER, 2 << 20), (Field.LARGER, 1 << 30)]),
    ("newer:2h older:3d", [(Field.NEWER, NOON - 2 * HOUR), (Field.OLDER, NOON - 3 * DAY)]),
    ("newer:90s newer:30M", [(Field.NEWER, NOON - 90_000), (Field.NEWER, NOON - HOUR // 2)]),
    ("newer:1w", [(Field.NEWER, NOON - 7 * DAY)]),
    ("newer:2026-11-21", [(Field.NEWER, NOON - 12 * HOUR)]),
    ("older:2026-11-21T12:00:00.000Z", [(Field.OLDER, NOON)]),
    ("older:2026-11-21T13:00+01:00", [(Field.OLDER, NOON)]),
    ('older:"2026-11-21 12:00"', [(Field.OLDER, NOON)]),
)
def test_parsing(text: str, expected: list[tuple[Field, str | int]]) -> None:
    """Words, phrases and terms with known prefixes are parsed. Other prefixes are text."""
    assert terms(text) == expected


@rows(
    ("from:", "from: has no value"),
    ("x from: shop", "write from:shop"),
    ('subject:""', "subject: has no value"),
    ('to:" "', "to: has no value"),
    ("tag:", "tag: has no value"),
    ("has:link", "write has:attachment or has:code; you sent has:link"),
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


def test_every_term_stands_in_the_table() -> None:
    """The published examples can be parsed and use every prefix."""
    shown = {field for example, _ in EXAMPLES for field, _ in terms(example)}
    assert shown == set(Field) - FOREIGN


def test_the_table_is_published() -> None:
    """The documentation has the same table."""
    text = Path(__file__).parents[2].joinpath("docs", "how-to", "search-mail.md").read_text("utf-8")
    table = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert table == [[f"`{example}`", meaning] for example, meaning in EXAMPLES]
    assert f"at most {MAX_TERMS} words and terms" in text


PIECES = [*(f"{field.value}:" for field in Field), '"', " ", "2h", "x", "\u201c", "unread"]
ALMOST = st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join)


@given(ALMOST)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text is parsed or rejected; numbers fit into every database."""
    try:
        search = parse_search(text, NOON)
    except InvalidParameter:
        return
    for _, value, _ in search.terms if search else ():
        assert isinstance(value, str) or -(2**63) <= value < 2**63


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"“”„'))))
def test_quotes_keep_anything(phrases: list[str]) -> None:
    """Everything in quotes is text."""
    phrases = phrases[:MAX_TERMS]
    written = " ".join(f'"{phrase}"' for phrase in phrases)
    kept = dict.fromkeys(phrase for phrase in phrases if phrase.strip())
    assert terms(written) == [(ANYWHERE, phrase) for phrase in kept]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"“”„:')))
def test_words_are_split_at_blanks(text: str) -> None:
    """Without quotes and colons, a search is its distinct words."""
    words = list(dict.fromkeys(text.split()))[:MAX_TERMS]
    assert terms(" ".join(words)) == [(ANYWHERE, word) for word in words]


def test_terms_are_values() -> None:
    """A search contains its original text."""
    search = parse_search(" from:Shop ", NOON)
    assert search is not None
    assert (search.written, search.terms) == (" from:Shop ", (Term(Field.FROM, "Shop"),))
