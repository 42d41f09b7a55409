"""Query strings to values: whatever comes in, a value or an `InvalidParameter` comes out."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailcheck.api.parameters import MAX_SHOWN, MAX_TEXT, Query, parse_query
from mailcheck.core.addresses import explain_bad_tag
from mailcheck.core.cursors import Position, format_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import Field, MessageFilter, Search, Term
from mailcheck.core.instants import Instant, format_instant

NAMES = ["tag", "to", "from", "subject", "q", "since", "after", "timeout", "limit", "unique"]

NOW = Instant(1_795_262_400_000)
"""2026-11-21T12:00:00Z."""

READERS: list[Callable[[Query], Any]] = [
    Query.tag,
    Query.recipient,
    Query.cursor,
    lambda query: query.message_filter(NOW),
    lambda query: query.instant("since"),
    lambda query: query.seconds("timeout", 1, 60, 30),
    lambda query: query.whole_number("limit", 1, 100, 50),
    lambda query: query.flag("unique"),
    lambda query: query.needle("subject"),
]

ALMOST = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=40),  # each skin sees to that
    st.sampled_from(
        [
            "nan",
            "-inf",
            "1e999",
            "1_0",
            "٣٠",
            "c" + "f" * 15,
            "c" + "f" * 16,
            "9" * 5_000,
            "0001-01-01T00:00:00+23:59",
            "9999-12-31T23:59:59.999999999-23:59",
            "2026-11-21T12:00:00." + "9" * 400 + "Z",
            "2026-11-21T23:59:60Z",
            "2026-1121T10:0000Z",
            "@a,@b:c@d",
            '"\\',
            "a@[IPv6:::1]",
            "a@[999.1.1.1]",
        ]
    ),
    st.from_regex(r"[0-9c+\-:.TZ ]{1,30}", fullmatch=True),
)


@given(st.binary(max_size=200))
@example(b"%")
@example(b"=&=&&&;a=b;c")
@example(b"tag=%ED%A0%80")
@example(b"tag=%F4%90%80%80")
@example(b"\xff=\xff&a=\x00")
def test_any_bytes_are_a_query_or_an_invalid_parameter(query: bytes) -> None:
    """No query string raises anything but `InvalidParameter`, in whichever way it is read."""
    parsed = value_or_refusal(lambda: parse_query(query))
    if isinstance(parsed, InvalidParameter):
        assert parsed.name in str(parsed)
    else:
        for read in READERS:
            value_or_refusal(partial(read, parsed))


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(ALMOST, min_size=1, max_size=2)))
def test_any_texts_are_values_or_an_invalid_parameter(parameters: dict[str, list[str]]) -> None:
    """Values that nearly are what they should be are read, or refused by name and in few words."""
    query = Query(parameters)
    for read in READERS:
        refusal = value_or_refusal(partial(read, query))
        if isinstance(refusal, InvalidParameter):
            assert refusal.name in NAMES
            assert refusal.name in str(refusal)
            assert len(str(refusal)) < 300 + MAX_SHOWN


def value_or_refusal(read: Callable[[], Any]) -> Any:
    """Give what is read, or the `InvalidParameter` that refuses it."""
    try:
        return read()
    except InvalidParameter as refusal:
        return refusal


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=MAX_TEXT))
def test_text_survives_every_encoding(text: str) -> None:
    """Text comes out as it went in, whether a space was written + or %20."""
    for encode in (quote, quote_plus, lambda text: quote(text, safe="")):
        assert parse_query(b"q=" + encode(text).encode()).text("q") == text
    assert parse_query(urlencode({"q": text}).encode()).text("q") == text


@given(st.floats(1, 60))
def test_seconds_within_the_range_are_taken(value: float) -> None:
    """Every number in the range is read as itself."""
    assert Query({"timeout": [repr(value)]}).seconds("timeout", 1, 60, 30) == value


@given(st.one_of(st.floats(max_value=0.999), st.floats(min_value=60.001)))
def test_seconds_outside_the_range_are_refused(value: float) -> None:
    """Every other number is refused, and only what may be milliseconds asks about them."""
    with pytest.raises(InvalidParameter) as caught:
        Query({"timeout": [repr(value)]}).seconds("timeout", 1, 60, 30)
    is_asked = str(caught.value).endswith(": milliseconds?")
    assert is_asked == (math.isfinite(value) and 60 < value <= 60_000)


@given(st.integers(-(2**70), 2**70))
def test_whole_numbers(value: int) -> None:
    """A whole number is taken just when it lies in its range."""
    query = Query({"limit": [str(value)]})
    if 1 <= value <= 100:
        assert query.whole_number("limit", 1, 100, 50) == value
    else:
        with pytest.raises(InvalidParameter, match="limit is a whole number, 1 to 100"):
            query.whole_number("limit", 1, 100, 50)


@given(st.integers(0, 2**44), st.integers(0, 2**56))
def test_what_we_print_is_what_we_read(moment: int, position: int) -> None:
    """Timestamps and cursors of our own responses come back as the same moment and place."""
    query = Query(
        {"since": [format_instant(Instant(moment))], "after": [format_cursor(Position(position))]}
    )
    assert query.instant("since") == moment
    assert query.cursor() == position


@given(st.text(max_size=50))
def test_a_tag_is_taken_when_it_may_stand_in_an_address(tag: str) -> None:
    """The tag parameter is refused just when the address grammar refuses it."""
    query = Query({"tag": [tag]})
    if explain_bad_tag(tag) is None:
        assert query.tag() == tag
    else:
        with pytest.raises(InvalidParameter, match=r"^tag: "):
            query.tag()


def test_nothing_given_is_nothing_asked() -> None:
    """Without parameters every reader gives its default."""
    query = parse_query(b"")
    assert query.message_filter(NOW) == MessageFilter()
    assert query.tag() is None
    assert query.text("q") is None
    assert query.seconds("timeout", 1, 60, 30) == 30
    assert query.whole_number("limit", 1, 100, 50) == 50
    assert query.flag("unique") is False


def test_all_filters_together() -> None:
    """Each parameter becomes its part of the filter."""
    query = parse_query(
        b"tag=a&to=b%40example.com&from=c&subject=d+e&q=f&since=1970-01-01T00:00:01Z&after=c1f"
    )
    assert query.message_filter(NOW) == MessageFilter(
        tag="a",
        recipient="b@example.com",
        author="c",
        subject="d e",
        search=Search("f", (Term(Field.ANYWHERE, "f"),)),
        since=Instant(1_000),
        after=Position(31),
    )


def test_empty_needles_ask_for_nothing() -> None:
    """Empty ``from``, ``subject``, ``q`` and ``to`` are as if they were not there; not ``tag``."""
    query = parse_query(b"from=&subject=&q=&to=&tag=")
    assert query.message_filter(NOW) == MessageFilter(tag="")


def test_separators() -> None:
    """Pairs are separated by & alone; empty ones count for nothing; the first = ends the name."""
    query = parse_query(b"&&a=1;b=2&c==d=&e&&")
    assert query.text("a") == "1;b=2"
    assert query.text("c") == "=d="
    assert query.text("e") == ""
    assert query.text("b") is None


@pytest.mark.untraced
def test_a_long_query_is_read_in_linear_time() -> None:
    """A megabyte of parameters is read at once: nothing is tried again and again."""
    assert parse_query(b"a=1&" * 262_144).text("b") is None
    assert parse_query(b"%zz" * 349_525 + b"=1").text("b") is None
    with pytest.raises(InvalidParameter):
        parse_query(b"a=" + b"%ff" * 349_525)
