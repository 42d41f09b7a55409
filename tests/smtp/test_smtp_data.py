"""The end of DATA, dot-stuffing, chunks and stored bytes, for all ways to split the input."""

from collections.abc import Iterable
from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.smtp.transaction import (
    ChunkReader,
    DataReader,
    LineEnds,
    MemoryBudget,
    MessageBuffer,
)
from tests.table import rows

AMPLE = 1 << 20

# Texts with all boundaries that matter to the scanner.
dotty = st.text("\r\n.a\0", max_size=40).map(str.encode)
lines = st.lists(st.text(".ab", max_size=4).map(str.encode), max_size=8).map(
    lambda parts: b"".join(part + b"\r\n" for part in parts)
)


def stuff(raw_message: bytes) -> bytes:
    """Write a message as a client sends it: RFC 5321 4.5.2 by hand."""
    stuffed = b"".join(
        b"." + line if line.startswith(b".") else line
        for line in raw_message.splitlines(keepends=True)
    )
    return stuffed + b".\r\n"


def cut(data: bytes, positions: Iterable[int]) -> list[bytes]:
    """Split bytes at the positions."""
    edges = [0, *sorted({p for p in positions if 0 < p < len(data)}), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def buffer(max_size: int = AMPLE, limit: int = AMPLE) -> MessageBuffer:
    """Create a buffer with a separate budget."""
    return MessageBuffer(max_size, MemoryBudget(limit), "192.0.2.1")


def keep(message: MessageBuffer, block: bytes) -> None:
    """Add a block to a message that waits for more."""
    message.add(block)
    message.hold()


def read(pieces: list[bytes], message: MessageBuffer) -> bytes | None:
    """Feed a reader of DATA; return the rest after it, or `None` if it is incomplete."""
    reader = DataReader(message)
    for number, piece in enumerate(pieces):
        end = reader.feed(piece, 0)
        if end is not None:
            return piece[end:] + b"".join(pieces[number + 1 :])
    return None


def expected_end(data: bytes) -> int | None:
    """Return the end of the final dot by definition: CRLF.CRLF, where the first may be DATA's."""
    end = (b"\r\n" + data).find(b"\r\n.\r\n")
    return None if end < 0 else end + 3


def expected_line_ends(content: bytes) -> LineEnds:
    """Return the line endings by definition: other CR and LF than those of a CRLF are bare."""
    outer = content.replace(b"\r\n", b"")
    if b"\r" in outer or b"\0" in outer:
        return LineEnds.INVALID
    return LineEnds.BARE_LF if b"\n" in outer else LineEnds.CRLF


@given(lines, st.lists(st.integers(0, 60)))
def test_a_stuffed_message_comes_out_as_it_went_in(raw: bytes, cuts: list[int]) -> None:
    """The bytes are those that were sent, and the rest is untouched, for any packets."""
    message = buffer()
    assert read(cut(stuff(raw) + b"QUIT\r\n", cuts), message) == b"QUIT\r\n"
    assert message.line_ends is LineEnds.CRLF
    assert message.size == len(raw)
    assert message.take() == raw


@given(dotty, st.lists(st.integers(0, 40)))
def test_only_the_final_dot_ends_a_message(data: bytes, cuts: list[int]) -> None:
    """No other sequence ends DATA; all packets give the same end and the same bytes."""
    whole, pieces = buffer(), buffer()
    left_whole = read([data], whole)
    left_pieces = read(cut(data, cuts), pieces)
    end = expected_end(data)
    assert left_whole == left_pieces == (None if end is None else data[end:])
    if end is not None:
        content = data[: end - 3]
        assert whole.line_ends is pieces.line_ends is expected_line_ends(content)
        assert whole.take() == pieces.take()


@given(st.binary(max_size=60), st.lists(st.integers(0, 60)), st.integers(0, 60))
def test_chunks_are_taken_octet_by_octet(data: bytes, cuts: list[int], size: int) -> None:
    """A chunk has exactly the announced length, with dots and line endings or without."""
    size = min(size, len(data))
    message = buffer()
    reader = ChunkReader(size, message)
    rest = None
    pieces = cut(data, cuts)
    for number, piece in enumerate(pieces):
        end = reader.feed(piece, 0)
        if end is not None:
            rest = piece[end:] + b"".join(pieces[number + 1 :])
            break
    assert rest == data[size:]
    assert message.take() == data[:size]


def test_bare_characters_across_blocks() -> None:
    """A CRLF may be split between chunks; a bare CR or LF is found at any position."""
    for size in range(1, 6):
        for content in map(bytes, product(b"\r\na\0", repeat=size)):
            for place in range(size):
                message = buffer()
                for block in filter(None, (content[:place], content[place:])):
                    message.add(block)
                assert message.line_ends is expected_line_ends(content), (content, place)


def test_a_reader_starts_at_its_position() -> None:
    """Input before the start position is ignored."""
    message = buffer()
    assert DataReader(message).feed(b"DATA\r\nhi\r\n.\r\nQUIT", 6) == 13
    assert message.take() == b"hi\r\n"


def test_an_empty_message() -> None:
    """A dot directly after 354 is a message without bytes."""
    message = buffer()
    assert read([b".\r\nNOOP\r\n"], message) == b"NOOP\r\n"
    assert (message.take(), message.size) == (b"", 0)


@rows((100, False), (101, True))
def test_the_size_limit_is_exact(size: int, *, is_too_large: bool) -> None:
    """A message of exactly the limit is kept; with one more octet it is discarded."""
    message = buffer(max_size=100)
    raw = b"x" * (size - 2) + b"\r\n"
    assert read(cut(stuff(raw), range(0, size, 7)), message) == b""
    assert message.is_too_large is is_too_large
    assert message.take() == (b"" if is_too_large else raw)


def test_stuffed_dots_do_not_count_as_size() -> None:
    """The size is that of the message (RFC 1870 3), not of its encoding for transport."""
    message = buffer(max_size=30)
    assert read([stuff(b".\r\n" * 10)], message) == b""
    assert (message.is_too_large, message.size) == (False, 30)


def test_a_message_that_is_too_large_holds_no_memory() -> None:
    """Once a message is too large, it is discarded and no more bytes are added."""
    budget = MemoryBudget(AMPLE)
    message = MessageBuffer(100, budget, "192.0.2.1")
    keep(message, b"a" * 60)
    assert budget.used == 60
    keep(message, b"a" * 60)
    keep(message, b"a" * 60)
    assert (budget.used, message.size, message.is_too_large) == (0, 180, True)


def test_messages_share_a_budget() -> None:
    """The client that uses most makes room for others, even if it came first."""
    budget = MemoryBudget(100)
    first = MessageBuffer(AMPLE, budget, "192.0.2.1")
    second = MessageBuffer(AMPLE, budget, "192.0.2.2")
    keep(first, b"a" * 70)
    keep(second, b"b" * 40)
    assert (first.is_evicted, second.is_evicted) == (True, False)
    assert (budget.used, first.take(), second.take()) == (40, b"", b"b" * 40)
    assert budget.used == 0


def test_many_slow_mails_of_one_client() -> None:
    """A client whose many messages use all memory loses the newest ones, one by one."""
    budget = MemoryBudget(100)
    crowd = [MessageBuffer(AMPLE, budget, "192.0.2.1") for _ in range(10)]
    for message in crowd:
        keep(message, b"a" * 10)
    other = MessageBuffer(AMPLE, budget, "192.0.2.2")
    for _ in range(3):
        keep(other, b"b" * 10)
    assert [message.is_evicted for message in crowd] == [False] * 7 + [True] * 3
    assert other.take() == b"b" * 30
    keep(crowd[9], b"more")
    assert budget.used == 70


def test_discarding_twice_releases_memory_once() -> None:
    """The budget matches the memory in use for any order of events at the end of a message."""
    budget = MemoryBudget(100)
    message = MessageBuffer(AMPLE, budget, "192.0.2.1")
    keep(message, b"a" * 60)
    message.take()
    message.discard()
    assert budget.used == 0


def test_a_mail_that_arrives_whole_is_not_counted() -> None:
    """Only messages that wait for more input use the budget."""
    budget = MemoryBudget(100)
    waiting = MessageBuffer(AMPLE, budget, "192.0.2.1")
    assert read([b"a" * 90], waiting) is None
    held = budget.used
    assert read([stuff(b"b" * 90 + b"\r\n")], MessageBuffer(AMPLE, budget, "192.0.2.2")) == b""
    assert (budget.used, waiting.is_evicted) == (held, False)
