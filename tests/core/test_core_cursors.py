"""Cursors are opaque, and only valid ones are accepted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.cursors import START, Position, format_cursor, parse_cursor
from tests.table import rows


@given(st.integers(0, 2**60 - 1))
def test_a_cursor_leads_back_to_its_position(number: int) -> None:
    """A position survives a round trip, as text that needs no escaping in a URL."""
    cursor = format_cursor(Position(number))
    assert cursor.isascii()
    assert cursor.isalnum()
    assert parse_cursor(cursor) == number


@given(st.text(max_size=20))
def test_one_spelling_for_each_position(text: str) -> None:
    """Any accepted cursor has the canonical form."""
    try:
        position = parse_cursor(text)
    except ValueError:
        return
    assert format_cursor(position) == text


@rows(
    "",
    "c",
    "0",
    "c-1",
    "c01",
    "c00",
    "C0",
    "cA",
    "c 1",
    "c1 ",
    "c1\n",
    "c١",
    "cg",
    "c" + "f" * 16,
)
def test_invalid_cursors(text: str) -> None:
    """A text in another form is rejected."""
    with pytest.raises(ValueError, match="cursor"):
        parse_cursor(text)


def test_the_start() -> None:
    """A cursor exists for the position before the first message."""
    assert parse_cursor(format_cursor(START)) == START == 0
