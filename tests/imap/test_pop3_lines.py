"""Multi-line responses of POP3: dots, line endings, and the top of a mail."""

import poplib
from io import BytesIO

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.imap.pop3_lines import MultiLine, TopLines

MAILS = st.lists(
    st.sampled_from([b".", b"\r\n", b"\n", b"x", b"..", b"\r\n.\r\n", b"\r\n\r\n"])
).map(b"".join)


def pieces_of(raw: bytes, cuts: list[int]) -> list[bytes]:
    """Cut a mail into pieces."""
    ends = sorted(min(cut, len(raw)) for cut in cuts)
    return [raw[a:b] for a, b in zip([0, *ends], [*ends, len(raw)], strict=True)]


@given(MAILS, st.lists(st.integers(0, 60), max_size=5))
def test_clients_read_the_same_mail(raw: bytes, cuts: list[int]) -> None:
    """Python's client reads exactly the lines of a mail, however it was cut."""
    lines = MultiLine()
    text = b"".join(lines.feed(piece) for piece in pieces_of(raw, cuts)) + lines.end()
    assert text.endswith(b".\r\n")
    wanted = raw.replace(b"\r\n", b"\n").split(b"\n")
    if wanted[-1] == b"":
        wanted.pop()
    reader = poplib.POP3.__new__(poplib.POP3)
    reader.file = BytesIO(b"+OK\r\n" + text + b"left")
    reader._debugging = 0  # type: ignore[attr-defined]
    found = reader._getlongresp()[1]  # type: ignore[attr-defined]
    assert found == wanted
    assert reader.file.read() == b"left"


@given(MAILS, st.lists(st.integers(0, 60), max_size=5), st.integers(0, 5))
def test_the_top_is_the_beginning(raw: bytes, cuts: list[int], body_lines: int) -> None:
    """TOP cuts after the header and some lines, however the mail was cut."""
    top = TopLines(body_lines)
    found = b"".join(top.feed(piece) for piece in pieces_of(raw, cuts)) + top.end()
    lines = raw.splitlines(keepends=True) if b"\r" not in raw.replace(b"\r\n", b"") else []
    blank = next((n for n, one in enumerate(lines) if one in (b"\r\n", b"\n")), len(lines))
    assert found == b"".join(lines[: blank + 1 + body_lines])
