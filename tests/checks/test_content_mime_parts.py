"""The parts of a mail as mail programs number and describe them."""

import base64
import email
import email.policy
import re
from collections.abc import Iterator
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.content.decoding import decode_transfer
from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.content.mime_parts import (
    MAX_ATTACHED,
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


ENCODED_MAIL = base64.b64encode(b"Subject: in\r\n\r\nwords").decode()


@rows(
    *product(("message/rfc822", "message/global"), ("base64", "quoted-printable", "x"), (1, 3, 11))
)
def test_an_attached_mail_is_described_or_is_data(kind: str, encoding: str, depth: int) -> None:
    """An attached mail has an envelope and parts, or another type, at any depth."""
    inner = f"Content-Type: {kind}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n{ENCODED_MAIL}"
    for number in range(depth):
        mixed = f"Content-Type: multipart/mixed; boundary=b{number}"
        inner = f"{mixed}\r\n\r\n--b{number}\r\n{inner}\r\n--b{number}--"
        if number < depth - 1:
            inner = f"Content-Type: message/rfc822\r\n\r\nSubject: {number}\r\n{inner}"
    ((_, structure, _),) = derive_structures([inner.encode()])
    assert structure.count(b'"APPLICATION" "OCTET-STREAM"') == 1
    assert structure.count(b'("MESSAGE" "RFC822"') == min(depth - 1, MAX_ATTACHED)
    described = re.findall(rb'"MESSAGE" "RFC822" NIL NIL NIL "7BIT" \d+ \(NIL "\d', structure)
    assert len(described) == min(depth - 1, MAX_ATTACHED)


@rows("", "\r\n", "--b--", "preamble\r\n--b--\r\nepilogue", "--b\r\n--b--", "--b\r\n\r\n--b--")
def test_a_multipart_without_parts_has_an_empty_text(body: str) -> None:
    """A multipart has at least one part in its description (RFC 9051 9), and no text of its own."""
    raw = f"Content-Type: multipart/alternative; boundary=b\r\n\r\n{body}".encode()
    ((_, structure, _),) = derive_structures([raw])
    assert structure.startswith(b'(("TEXT" "PLAIN" NIL NIL NIL "7BIT" 0 0 NIL')
    content = derive_content(raw)
    assert (content.text, content.html, content.attachments) == ("", "", ())


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
