"""Any query string results in a value or an `InvalidParameter`."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailcheck.api.requests.checks import GetReports, ReputationRequest
from mailcheck.api.requests.inbox import DeleteMessages, ListMessages, TakeAddress, WaitForMessage
from mailcheck.api.requests.parsing import (
    MAX_SHOWN,
    MAX_TEXT,
    Query,
    Request,
    read_query,
    read_texts,
    request_fields,
    split_query,
)
from mailcheck.core.addresses import explain_bad_tag
from mailcheck.core.conditions import WITH_WORDS, Term
from mailcheck.core.cursors import Position, format_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import Instant, format_instant
from tests.linear import assert_linear

NAMES = ["tag", "to", "from", "subject", "q", "since", "after", "timeout", "limit", "unique"]

NOW = Instant(1_795_262_400_000)
"""2026-11-21T12:00:00Z."""

REQUESTS: list[type[Request]] = [
    ListMessages,
    DeleteMessages,
    WaitForMessage,
    TakeAddress,
    GetReports,
    ReputationRequest,
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
    """No query string raises any other exception than `InvalidParameter`, for any request."""
    for request in REQUESTS:
        refusal = value_or_refusal(partial(read_query, request, query))
        if isinstance(refusal, InvalidParameter):
            assert refusal.name in str(refusal) or repr(refusal.name) in str(refusal)


@given(
    st.dictionaries(st.sampled_from(NAMES), st.lists(ALMOST, min_size=1, max_size=2), max_size=4)
)
def test_any_texts_are_values_or_an_invalid_parameter(parameters: dict[str, list[str]]) -> None:
    """Almost valid values are parsed, or rejected with a short error that names the parameter."""
    for request in REQUESTS:
        known = {name: parameters[name] for name in request_fields(request) if name in parameters}
        refusal = value_or_refusal(partial(read_wanted, request, known))
        if isinstance(refusal, InvalidParameter):
            assert refusal.name in request_fields(request)
            assert refusal.name in str(refusal)
            assert len(str(refusal)) < 300 + MAX_SHOWN


def read_wanted(request: type[Request], texts: Mapping[str, list[str]]) -> object:
    """Parse a request, and its search."""
    asked = read_texts(request, texts)
    return asked.wanted_at(NOW) if isinstance(asked, ListMessages) else asked


def value_or_refusal(read: Callable[[], Any]) -> Any:
    """Return the parsed request or the `InvalidParameter`."""
    try:
        return read()
    except InvalidParameter as refusal:
        return refusal


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=MAX_TEXT))
def test_text_survives_every_encoding(text: str) -> None:
    """A text is unchanged after encoding with + or %20 and decoding."""
    for encode in (quote, quote_plus, lambda text: quote(text, safe="")):
        assert read_query(ListMessages, b"q=" + encode(text).encode()).q == text
    assert read_query(ListMessages, urlencode({"q": text}).encode()).q == text


@given(st.floats(1, 60))
def test_seconds_within_the_range_are_taken(value: float) -> None:
    """Every number in the range is parsed."""
    assert read_texts(WaitForMessage, {"timeout": [repr(value)]}).timeout == value


@given(st.one_of(st.floats(max_value=0.999), st.floats(min_value=60.001)))
def test_seconds_outside_the_range_are_refused(value: float) -> None:
    """Every other number is rejected; the error mentions milliseconds only if that is plausible."""
    with pytest.raises(InvalidParameter) as caught:
        read_texts(WaitForMessage, {"timeout": [repr(value)]})
    is_asked = str(caught.value).endswith(". Did you send milliseconds?")
    assert is_asked == (math.isfinite(value) and 60 < value <= 60_000)


@given(st.integers(-(2**70), 2**70))
def test_whole_numbers(value: int) -> None:
    """An integer is accepted only within its range."""
    given = {"limit": [str(value)]}
    if 1 <= value <= 100:
        assert read_texts(ListMessages, given).limit == value
    else:
        with pytest.raises(InvalidParameter, match="limit must be an integer from 1 to 100"):
            read_texts(ListMessages, given)


@given(st.integers(0, 2**44), st.integers(0, 2**56))
def test_formatted_values_are_parsed_to_the_same_value(moment: int, position: int) -> None:
    """Timestamps and cursors in responses are parsed to the same instant and position."""
    given = {
        "since": [format_instant(Instant(moment))],
        "after": [format_cursor(Position(position))],
    }
    asked = read_texts(DeleteMessages, given)
    assert (asked.since, asked.after) == (moment, position)


@given(st.text(max_size=50))
def test_a_tag_is_taken_when_it_may_stand_in_an_address(tag: str) -> None:
    """The tag parameter is rejected exactly if the grammar of addresses rejects it."""
    given = {"tag": [tag]}
    if explain_bad_tag(tag) is None:
        assert read_texts(DeleteMessages, given).tag == tag
    else:
        with pytest.raises(InvalidParameter, match=r"^tag: "):
            read_texts(DeleteMessages, given)


def test_defaults_without_parameters() -> None:
    """Without parameters, every request has its defaults."""
    listed = read_query(ListMessages, b"")
    assert listed.wanted_at(NOW) == MessageFilter()
    assert (listed.tag, listed.q, listed.limit) == (None, None, 50)
    assert read_query(WaitForMessage, b"").timeout == 30
    assert read_query(TakeAddress, b"") == TakeAddress(tag="", unique=False)


def test_all_filters_together() -> None:
    """Each parameter becomes its part of the filter."""
    query = b"tag=a&to=b%40example.com&from=c&subject=d+e&q=f&since=1970-01-01T00:00:01Z&after=c1f"
    assert read_query(ListMessages, query).wanted_at(NOW) == MessageFilter(
        tag="a",
        recipient="b@example.com",
        author="c",
        subject="d e",
        search=(Term(WITH_WORDS, "f"),),
        since=Instant(1_000),
        after=Position(31),
    )


def test_separators() -> None:
    """Only & separates pairs, empty pairs are ignored, and the first = ends the name."""
    query = Query(split_query(b"&&a=1;b=2&c==d=&e&&"))
    assert query.text("a") == "1;b=2"
    assert query.text("c") == "=d="
    assert query.text("e") == ""
    assert query.text("b") is None


@pytest.mark.untraced
def test_a_long_query_is_read_in_linear_time() -> None:
    """Parameters are parsed in linear time, also many of them."""
    for piece in (b"a=1&", b"%zz", b"&", b"=", b"+"):
        assert_linear(split_query, piece, b"a=")
    assert len(split_query(b"a=1&" * 10_000)["a"]) == 10_000
    assert len(split_query(b"%zz" * 10_000 + b"=1")) == 1
    with pytest.raises(InvalidParameter):
        split_query(b"a=" + b"%ff" * 10_000)
