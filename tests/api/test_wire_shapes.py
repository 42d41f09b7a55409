"""Values to JSON shapes, where no route reaches every corner; in pieces it is the same JSON."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from mailcheck.api.inbox.messages import join_headers
from mailcheck.api.inbox.overview import render_raw_message
from mailcheck.api.shapes import (
    ABSENT,
    Absent,
    JsonValue,
    Shape,
    as_json,
    dump_json,
    dump_json_in_chunks,
)
from mailcheck.api.urls import PublicUrls
from mailcheck.core.identifiers import MessageId, parse_share_token
from tests.house import result_of
from tests.spec.judge import read_json

ID = MessageId("01a1fdfa-4600-7000-8000-000000000006")


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda values: st.lists(values) | st.dictionaries(st.text(), values),
        max_leaves=20,
    )
)
def test_json_survives(value: JsonValue) -> None:
    """What is dumped is read back as the same value, from valid UTF-8."""
    assert json.loads(dump_json(value).decode("utf-8")) == value


@given(st.text(st.characters(categories=["Cs", "Ll", "Zl", "Cc"])))
def test_half_characters_never_leave(text: str) -> None:
    """A lone surrogate, wherever it came from, becomes a question mark: the JSON stays valid."""
    assert read_json(dump_json([text, {text: 1}]))[0] == "".join(
        "?" if "\ud800" <= character <= "\udfff" else character for character in text
    )


@given(st.binary())
def test_raw_bytes_are_text_or_base64(raw: bytes) -> None:
    """Raw is UTF-8 text just when the bytes are UTF-8."""
    body = as_json(render_raw_message(ID, raw))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        assert body["encoding"] == "base64"
    else:
        assert body == {"id": ID, "raw": text, "encoding": "utf-8"}


@pytest.mark.parametrize(
    ("header_list", "headers"),
    [
        ((), {}),
        ((("Subject", "a"),), {"subject": "a"}),
        ((("A", "1"), ("B", "2"), ("a", "3"), ("A", "")), {"a": "1\n3\n", "b": "2"}),
        ((("__proto__", "x"),), {"__proto__": "x"}),
    ],
)
def test_headers_are_keyed_in_lower_case(
    header_list: tuple[tuple[str, str], ...], headers: dict[str, str]
) -> None:
    """A repeated field is joined by newlines, in order, under its lower-case name."""
    assert join_headers(header_list) == headers


def test_urls_lie_below_the_public_url() -> None:
    """Every address is below the public URL; a share link carries message and secret."""
    urls = PublicUrls("https://mail.example/x")
    assert urls.base_url == "https://mail.example/x/api/v1"
    assert urls.attachment_url(ID, "2") == (
        f"https://mail.example/x/api/v1/inbox/messages/{ID}/attachments/2"
    )
    share = urls.share_url(ID, "s" * 26)
    assert share.startswith("https://mail.example/x/share/")
    assert parse_share_token(share.rpartition("/")[2]) == (ID, "s" * 26)


class Inner(Shape):
    """A shape in another."""

    long_text: str


class Outer(Shape):
    """A shape with all that shapes have."""

    first: str | Absent = ABSENT
    text_: str = ""
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    numbers: dict[str, int] = msgspec.field(default_factory=dict)
    last: str | Absent = ABSENT


texts = st.text(st.characters(exclude_categories=()), max_size=40)
inners = texts.map(Inner)
outers = st.builds(
    Outer,
    first=texts | st.just(ABSENT),
    text_=texts,
    inner=inners | st.none(),
    many=st.lists(inners, max_size=3).map(tuple),
    pairs=st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
    numbers=st.dictionaries(texts, st.integers(-9, 9), max_size=3),
    last=texts | st.just(ABSENT),
)


def in_pieces(value: object, piece: int) -> tuple[bytes, int]:
    """Write a value; gives how often it rested, too."""
    rests: list[Deferred[None]] = []

    def rest() -> Deferred[None]:
        rests.append(Deferred())
        return rests[-1]

    written: Deferred[bytes] = Deferred.fromCoroutine(dump_json_in_chunks(value, rest, piece))
    count = 0
    while len(rests) > count:
        count += 1
        rests[count - 1].callback(None)
    return result_of(written), count


@given(outers, st.integers(1, 50))
def test_the_same_bytes(value: Any, piece: int) -> None:
    """However it is cut, lone surrogates and all, the bytes are those that are written at once."""
    assert in_pieces(value, piece)[0] == dump_json(value)


@given(st.integers(0, 100), st.integers(1, 20))
def test_no_more_than_a_piece_without_a_rest(length: int, piece: int) -> None:
    """Before each piece of what is longer than one there is a rest, and before nothing else."""
    written, rests = in_pieces(Outer(text_="ä" * length, inner=Inner("x")), piece)
    assert json.loads(written)["text"] == "ä" * length
    assert rests == (-(-length // piece) if length > piece else 0)
