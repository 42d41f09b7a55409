"""Splitting pieces of any size into lines."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.connections.lines import BareLineEnding, LineInput, LineTooLong
from mailcheck.smtp.transaction import ChunkReader, MemoryBudget, MessageBuffer
from tests.table import rows


def lines_of(pieces: list[bytes], max_line: int = 20) -> list[bytes | str]:
    """Take all lines; a rejected line is represented by the name of its exception."""
    taken: list[bytes | str] = []
    source = LineInput(max_line)
    for piece in pieces:
        source.add(piece)
        while source.has_more:
            try:
                line = source.take_line()
            except LineTooLong:
                taken.append("too long")
                continue
            except BareLineEnding:
                return [*taken, "bare"]
            if line is None:
                break
            taken.append(line)
    return taken


@given(
    st.lists(st.text("ab ", max_size=30).map(str.encode), max_size=6),
    st.lists(st.integers(1, 9), min_size=1),
)
def test_lines_do_not_depend_on_the_cut(lines: list[bytes], steps: list[int]) -> None:
    """Any packets give the same lines; each line that is too long is reported once."""
    data = b"".join(line + b"\r\n" for line in lines)
    pieces = []
    position = number = 0
    while position < len(data):
        step = steps[number % len(steps)]
        pieces.append(data[position : position + step])
        position += step
        number += 1
    expected = [line if len(line) <= 18 else "too long" for line in lines]
    assert lines_of([data]) == lines_of(pieces) == expected


@rows(b"a\nb\r\n", b"a\rb\r\n", b"a\0b\r\n", b"a\n", b"\n")
def test_bare_characters_are_rejected(line: bytes) -> None:
    """A CR, LF or NUL inside a line is rejected, a bare LF as soon as it arrives."""
    assert lines_of([b"ok\r\n" + line]) == [b"ok", "bare"]


def test_an_endless_line_is_not_kept() -> None:
    """A line that is too long is not stored while its end is awaited."""
    source = LineInput(20)
    for _ in range(1000):
        source.add(b"x" * 1000)
        assert source.take_line() is None
        assert not source.has_more


def test_many_pieces_are_joined_at_once() -> None:
    """A hundred thousand pieces that arrive during a pause are copied once."""
    source = LineInput(20)
    for _ in range(100_000):
        source.hold(b"x\r\n")
    assert source.held_size == 300_000
    source.add(b"")
    assert source.held_size == 0
    count = 0
    while source.take_line() is not None:
        count += 1
    assert count == 100_000


def test_a_reader_leaves_the_rest() -> None:
    """Input that a reader leaves is available for the next line."""
    source = LineInput(20)
    source.add(b"BDAT\r\nabcNOOP\r\n")
    assert source.take_line() == b"BDAT"
    message = MessageBuffer(10, MemoryBudget(10), "")
    assert source.feed(ChunkReader(3, message))
    assert message.take() == b"abc"
    assert source.take_line() == b"NOOP"
