"""JSON in pieces is the same JSON."""

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from mailcheck.wire.shapes import ABSENT, Absent, Shape, dump_json, dump_json_in_pieces
from tests.house import result_of


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

    written: Deferred[bytes] = Deferred.fromCoroutine(dump_json_in_pieces(value, rest, piece))
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
