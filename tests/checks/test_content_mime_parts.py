"""The parts of a mail as mail programs number and describe them."""

import email
import email.policy
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.content.decoding import decode_transfer
from mailcheck.checks.content.mime_parts import (
    Part,
    derive_structures,
    find_part,
    read_parts,
    write_structure,
)
from tests.corpus.corpus_mails import CorpusMail, load_part
from tests.table import rows

MAIL = (
    b"From: a@x.example\r\nDate: Thu, 26 Nov 2026 10:00:00 +0100\r\n"
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\none\r\n--b\r\n"
    b"Content-Type: message/rfc822\r\n\r\nSubject: in\r\n"
    b"Content-Type: multipart/alternative; boundary=c\r\n\r\n--c\r\n\r\ntwo\r\n--c\r\n"
    b"Content-Type: text/html\r\n\r\nthree\r\n--c--\r\n\r\n--b--\r\n"
)


def leaves(part: Part) -> Iterator[Part]:
    """Yield the parts without parts, attached mails included."""
    inner = (part.attached,) if part.attached is not None else part.parts
    if not inner:
        yield part
    for one in inner:
        yield from leaves(one)


@rows(*load_part("tuning")[:60])
def test_the_standard_library_finds_the_same_parts(one: CorpusMail) -> None:
    """Types, order and bytes of all parts are those of an independent parser."""
    message = email.message_from_bytes(one.raw, policy=email.policy.SMTP)
    others = [part for part in message.walk() if not part.is_multipart()]
    parts = list(leaves(read_parts(one.raw)))
    assert [part.content_type for part in parts] == [other.get_content_type() for other in others]
    for part, other in zip(parts, others, strict=True):
        body, _ = decode_transfer(one.raw[slice(*part.body)], part.encoding)
        payload = other.get_payload(decode=True)
        assert isinstance(payload, bytes)
        assert body.strip() == payload.strip()


def test_numbers() -> None:
    """Parts of an attached mail are numbered below the part that has it (RFC 9051 6.4.5.1)."""
    root = read_parts(MAIL)

    def body(*numbers: int) -> bytes | None:
        part = find_part(root, numbers)
        return None if part is None else MAIL[slice(*part.body)]

    assert (body(1), body(2, 1), body(2, 2)) == (b"one", b"two", b"three")
    attached = body(2)
    assert attached is not None
    assert attached.startswith(b"Subject: in\r\n")
    assert [body(3), body(1, 1), body(2, 2, 1), body(0)] == [None] * 4
    assert body() == MAIL[MAIL.index(b"--b") :]


@given(
    st.lists(st.tuples(st.integers(0, len(MAIL)), st.binary(max_size=4)), max_size=6),
    st.integers(0, len(MAIL)),
)
def test_any_bytes_have_a_structure(changes: list[tuple[int, bytes]], end: int) -> None:
    """Broken mails are described without an exception, in balanced parentheses."""
    raw = MAIL[:end] if end else MAIL
    for at, octets in changes:
        raw = raw[:at] + octets + raw[at + 1 :]
    root = read_parts(raw)
    assert root.body[1] == len(raw)
    for part in leaves(root):
        assert part.header[0] <= part.header[1] == part.body[0] <= part.body[1] <= len(raw)
    ((envelope, structure, _),) = derive_structures([raw])
    for written in (envelope, structure, write_structure(raw, root, is_extended=False)):
        assert written.startswith(b"(")
        assert written.endswith(b")")
