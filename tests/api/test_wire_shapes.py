"""Encoding of shapes as JSON, in one piece and in chunks."""

import json
from typing import Annotated, Any

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
    Date,
    JsonValue,
    Shape,
    Timestamp,
    as_json,
    doc,
    dump_json,
    dump_json_in_chunks,
    shape_from,
)
from mailcheck.api.urls import PublicUrls
from mailcheck.core.identifiers import MessageId, parse_share_token
from mailcheck.core.instants import Instant
from tests.house import result_of
from tests.spec.judge import read_json
from tests.table import rows

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
    """Encoded JSON is valid UTF-8 and is decoded to the same value."""
    assert json.loads(dump_json(value).decode("utf-8")) == value


@given(st.text(st.characters(categories=["Cs", "Ll", "Zl", "Cc"])))
def test_lone_surrogates_become_question_marks(text: str) -> None:
    """A lone surrogate anywhere becomes a question mark, and the JSON stays valid."""
    assert read_json(dump_json([text, {text: 1}]))[0] == "".join(
        "?" if "\ud800" <= character <= "\udfff" else character for character in text
    )


@given(st.binary())
def test_raw_bytes_are_text_or_base64(raw: bytes) -> None:
    """A raw mail is text exactly if its bytes are valid UTF-8."""
    body = as_json(render_raw_message(ID, raw))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        assert body["encoding"] == "base64"
    else:
        assert body == {"id": ID, "raw": text, "encoding": "utf-8"}


@rows(
    ((), {}),
    ((("Subject", "a"),), {"subject": "a"}),
    ((("A", "1"), ("B", "2"), ("a", "3"), ("A", "")), {"a": "1\n3\n", "b": "2"}),
    ((("__proto__", "x"),), {"__proto__": "x"}),
)
def test_headers_are_keyed_in_lower_case(
    header_list: tuple[tuple[str, str], ...], headers: dict[str, str]
) -> None:
    """Header names are lower case, and repeated fields are joined by newlines in order."""
    assert join_headers(header_list) == headers


def test_urls_lie_below_the_public_url() -> None:
    """Every URL is below the public URL. A share link contains message id and secret."""
    urls = PublicUrls("https://mail.example/x")
    assert urls.base_url == "https://mail.example/x/api/v1"
    assert urls.attachment_url(ID, "2") == (
        f"https://mail.example/x/api/v1/inbox/messages/{ID}/attachments/2"
    )
    share = urls.share_url(ID, "s" * 26)
    assert share.startswith("https://mail.example/x/share/")
    assert parse_share_token(share.rpartition("/")[2]) == (ID, "s" * 26)


class Inner(Shape):
    """A nested shape."""

    long_text: str


class Outer(Shape):
    """A shape with every feature of shapes."""

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
    """Encode a value, and return the JSON and the number of pauses."""
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


plain = st.recursive(
    texts | st.integers(-9, 9) | outers,
    lambda some: st.lists(some, max_size=3) | st.dictionaries(texts, some, max_size=3),
    max_leaves=5,
)


@given(plain, st.integers(1, 50))
def test_the_same_bytes(value: Any, piece: int) -> None:
    """The bytes are the same for any chunk size and nesting, including lone surrogates."""
    assert in_pieces(value, piece)[0] == dump_json(value)


@given(st.integers(0, 100), st.integers(1, 20))
def test_a_pause_before_each_chunk(length: int, piece: int) -> None:
    """There is a pause before each chunk of a long text, and only there."""
    written, rests = in_pieces(Outer(text_="ä" * length, inner=Inner("x")), piece)
    assert json.loads(written)["text"] == "ä" * length
    assert rests == (-(-length // piece) if length > piece else 0)


class Name(Shape):
    """A shape in another one."""

    name: str


class Rendered(Shape):
    """A shape with each kind of field that `shape_from` converts."""

    at: Timestamp
    day: Annotated[Date | None, doc("the same day")]
    valid: bool
    note: str | None
    text: str
    inner: tuple[Name, ...]
    left_out: str | Absent = ABSENT


class Fact(msgspec.Struct):
    """A value that is rendered."""

    at: Instant
    day: Instant
    is_valid: bool
    inner: list[Name]
    note: str = ""
    text: str = ""
    left_out: str | None = None


def test_a_value_is_rendered_by_the_names_of_its_attributes() -> None:
    """Instants, claims and missing values become those of JSON, and other types are refused."""
    fact = Fact(Instant(86_400_000), Instant(86_400_001), True, [Name("a")])
    assert as_json(shape_from(Rendered, fact)) == {
        "at": "1970-01-02T00:00:00.000Z",
        "day": "1970-01-02",
        "valid": True,
        "note": None,
        "text": "",
        "inner": [{"name": "a"}],
    }
    assert as_json(shape_from(Rendered, fact, left_out="b", day=None))["leftOut"] == "b"
    for wrong in ({"text": 5}, {"text": ABSENT}, {"inner": [fact]}):
        with pytest.raises(msgspec.ValidationError):
            shape_from(Rendered, fact, **wrong)
