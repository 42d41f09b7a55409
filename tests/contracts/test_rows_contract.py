"""Rows are read by the names of their columns, on both databases."""

from enum import Enum

from msgspec import Struct

from mailcheck.core.cursors import Position
from mailcheck.core.filters import MessageFilter
from mailcheck.engines.database import DatabaseEngine
from mailcheck.ports.engine import Transaction
from mailcheck.store.filter_sql import is_counted_by_recipient, is_counted_by_tag
from mailcheck.store.transactions import columns_of, named_rows, row_of, value_of
from tests.table import rows


class Colour(Enum):
    """The meaning of a word in a column."""

    RED = "red"


class Thing(Struct, frozen=True):
    """A value with one field of each kind."""

    name: str
    note: str | None
    size: int | None
    is_new: bool
    colour: Colour
    parts: tuple[str, ...] = ()


WORDS = ["null", "None", "true", "1", "", "\u00e9", "{}", "red"]
"""Texts that look like other values."""


@rows(*WORDS)
async def test_a_row_becomes_a_value(engine: DatabaseEngine, word: str) -> None:
    """The order of columns does not matter, extra columns are ignored, and texts stay texts."""

    def query(transaction: Transaction) -> Thing:
        row = transaction.row(
            "SELECT 'red' AS colour, ? AS name, 7 AS other, 1 AS is_new, NULL AS size, ? AS note",
            (word, word),
        )
        return value_of(Thing, row, parts=(word,))

    assert await engine.read(query) == Thing(
        word, word, None, is_new=True, colour=Colour.RED, parts=(word,)
    )


class Parcel(Struct, frozen=True):
    """A value whose fields are stored as JSON, apart from its name."""

    name: str
    things: tuple[Thing, ...]
    first: Thing | None
    counts: dict[str, int]


@rows(*WORDS, "\ud800")
def test_a_value_survives_as_a_row(word: str) -> None:
    """Columns hold texts and numbers only, and a value of the same class follows from them."""
    thing = Thing(word, None, 7, is_new=True, colour=Colour.RED, parts=(word, "b"))
    assert list(row_of(thing, "note", size=8).values())[:3] == [word, 8, 1]
    for parcel in (Parcel(word, (thing,), thing, {word: 1}), Parcel(word, (), None, {})):
        columns = row_of(parcel)
        assert {type(column) for column in columns.values()} <= {str, type(None)}
        (row,) = named_rows([(name,) for name in columns], [tuple(columns.values())])
        assert value_of(Parcel, row) == parcel


def test_columns_are_the_fields() -> None:
    """A class determines the columns to read; some of its fields may have no column."""
    assert columns_of(Thing, "thing", "colour", "parts") == (
        "thing.name, thing.note, thing.size, thing.is_new"
    )


class Request(MessageFilter, frozen=True, kw_only=True):
    """A filter with more fields, as a request may have."""

    limit: int = 10


@rows(MessageFilter, Request)
def test_counters_answer_whatever_class_asks(kind: type[MessageFilter]) -> None:
    """A subclass of the filter is counted as fast as the filter itself."""
    assert is_counted_by_tag(kind())
    assert is_counted_by_tag(kind(tag="a", after=Position(0)))
    assert not is_counted_by_tag(kind(tag="a", text="b"))
    assert not is_counted_by_tag(kind(tag="a", after=Position(1)))
    assert is_counted_by_recipient(kind(recipient="a@b.example"))
    assert not is_counted_by_recipient(kind(recipient="a@b.example", author="c"))
    assert not is_counted_by_recipient(kind())
