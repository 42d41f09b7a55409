"""Mails that are built to make parsing slow or to exhaust memory.

The tests do not measure time: each would run for minutes if a step were quadratic.
"""

import pytest

from mailcheck.checks.content.bodies import find_attachment
from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.content.header.fields import summarize_header
from mailcheck.checks.content.limits import (
    MAX_DEPTH,
    MAX_HEADER_BYTES,
    MAX_HEADER_FIELDS,
    MAX_PARTS,
)
from mailcheck.checks.content.mime_parts import derive_structures
from mailcheck.core.content import MessageContent
from tests.linear import assert_linear, memory_below
from tests.table import rows

pytestmark = [pytest.mark.attack, pytest.mark.untraced]

MIB = 1024 * 1024
MESSAGE_LIMIT = 25 * MIB


def _derive_within(raw: bytes, budget: int) -> MessageContent:
    """Derive a mail, and check the additional memory that this takes."""
    with memory_below(budget):
        return derive_content(raw)


def _multipart(body: bytes, boundary: bytes = b"b") -> bytes:
    header = b"Subject: s\r\nContent-Type: multipart/mixed; boundary=" + boundary
    return header + b"\r\n\r\n" + body


def test_many_parts_stop_at_the_cap() -> None:
    """The first thousand parts are read, the rest is reported as a problem, memory stays small."""
    content = _derive_within(_multipart(b"--b\r\n\r\nx\r\n" * 200_000), 4 * MIB)
    assert content.text.count("x") == MAX_PARTS
    assert any(f"more than {MAX_PARTS} parts" in problem for problem in content.problems)


def test_many_empty_attachments_stop_at_the_cap() -> None:
    """Attachments are parts too, and reading one of them is as fast."""
    raw = _multipart(b"--b\r\nContent-Type: a/b\r\n\r\n\r\n" * 200_000)
    content = _derive_within(raw, 5 * MIB)
    assert len(content.attachments) == MAX_PARTS
    assert find_attachment(raw, str(MAX_PARTS)) is not None
    assert find_attachment(raw, str(MAX_PARTS + 1)) is None


def test_nesting_stops_at_the_cap() -> None:
    """Ten thousand nested multiparts neither overflow the stack nor take long."""
    opened = b"".join(
        b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (level, level + 1)
        for level in range(10_000)
    )
    content = _derive_within(_multipart(opened + b"--b10000\r\n\r\ndeep", b"b0"), 40 * MIB)
    assert any(f"deeper than {MAX_DEPTH}" in problem for problem in content.problems)
    assert content.header_list[0] == ("Subject", "s")


def test_a_boundary_used_again_inside_itself_does_not_nest() -> None:
    """Parts that declare their parent's boundary are siblings of the parent, and are counted."""
    part = b"--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    content = _derive_within(_multipart(part * 300_000), 40 * MIB)
    assert any(f"more than {MAX_PARTS} parts" in problem for problem in content.problems)


def test_forwarded_mails_inside_each_other_are_not_followed() -> None:
    """message/rfc822 is a leaf, whatever it contains."""
    part = b"Content-Type: message/rfc822\r\n\r\n"
    content = _derive_within(part * 500_000, 60 * MIB)
    assert len(content.attachments) == 1


@rows(
    b"--\r\n",
    b"--b",
    b"--bX\r\n",
    b"--b \t \t x\r\n",
    b"\n",
    b"\r\n--b" + b" " * 5000 + b"x",
    b"-",
    b"--b--x\r\n",
)
def test_lines_that_almost_divide_cost_nothing(line: bytes) -> None:
    """Megabytes of near delimiters at the full depth are read at most once per level."""
    levels = b"".join(
        b"--b%s\r\nContent-Type: multipart/mixed; boundary=b%s\r\n\r\n"
        % (b"b" * level, b"b" * (level + 1))
        for level in range(MAX_DEPTH - 1)
    )
    filler = line * (MIB // len(line))
    content = derive_content(_multipart(levels + filler))
    assert content.header_list[0] == ("Subject", "s")


def test_a_hundred_thousand_header_fields_stop_at_the_cap() -> None:
    """The first thousand fields are listed, and the body is still found."""
    raw = b"Subject: s\r\n" + b"X-A: b\r\n" * 100_000 + b"\r\nbody"
    content = _derive_within(raw, 10 * MIB)
    assert len(content.header_list) == MAX_HEADER_FIELDS
    assert content.text == "body"
    assert content.problems
    assert summarize_header(raw).subject == "s"


def test_header_fields_of_many_parts_stop_at_the_cap() -> None:
    """A hundred parts with too many fields take memory in proportion to their bytes."""
    raw = _multipart((b"--b\r\n" + b"A:\r\n" * (MAX_HEADER_FIELDS + 1) + b"\r\n") * 100)
    assert _derive_within(raw, 6 * MIB).problems


@rows(
    (b"X: ", b"a"),
    (b"X: ", b"a\r\n "),
    (b"", b"a"),
    (b"", b" "),
    (b"X", b" "),
    (b"Subject: ", b"=?utf-8?q?x?= "),
    (b"From: ", b'"'),
    (b"From: ", b"(<,"),
    (b"Content-Type: ", b';a="'),
    (b"Content-Type: text/plain", b";a=b"),
    (b"Content-Type: multipart/mixed; boundary=", b"b"),
    (b"Content-Type: text/plain; a=", b","),
    (b"Content-Disposition: a; filename=", b" a"),
    (b"Content-Disposition: a; filename=a", b" a=b"),
    (b"X: a\r\n", b"stray\r\nX:\r\n"),
    (b"X: a\r\n", b"stray\r\n"),
)
def test_one_endless_header_field_is_cut(start: bytes, piece: bytes) -> None:
    """Only the first half of a field of 512 KiB is read."""
    field = start + piece * (2 * MAX_HEADER_BYTES // len(piece))
    content = _derive_within(field + b"\r\nSubject: late\r\n\r\nbody", 80 * MIB)
    assert all(len(body) <= MAX_HEADER_BYTES for _, body in content.header_list)
    summarize_header(field + b"\r\n\r\n")


@rows(
    b"=?utf-8?q?",
    b"=?",
    b"=?a?b?",
    b"?=",
    b"=?utf-8?b?/w==?=",
    b"=?utf-8?q?=?=",
    b"=?utf-7?q?+?=",
    b"=?a?q?x?= =?b?q?x?= ",
    b"=?utf-8?b?wA?= ",
    b"=?a?q?b??",
    b"=?  ?q?a? =",
    b"\x1b$B",
    b"<>a",
    b"<",
    b"(",
    b'"\\',
    b",:;",
    b"a@",
    b"\xff",
    b"a:",
    b"g:a;",
    b"a b,",
    b"root,",
    b"=?a?q?=\r\n",
    b"=?a?b?b\r\n",
    b"b\r\n",
    b"=\r\n",
    b"=?a?q?b= ",
)
def test_hostile_names_and_subjects_take_linear_time(piece: bytes) -> None:
    """A repeated piece in From, Subject or a file name is read in one pass."""
    fields = (b"From: ", b"Subject: ", b"Content-Disposition: attachment; filename=")

    def read(value: bytes) -> None:
        raw_message = b"".join(field + value + b"\r\n" for field in fields) + b"\r\n"
        derive_content(raw_message)
        derive_structures([raw_message])
        summarize_header(raw_message)

    assert_linear(read, piece, b"", 1_024)


@rows(
    ("base64", b"="),
    ("base64", b"A"),
    ("base64", b"A="),
    ("base64", b"!"),
    ("base64", b"QUFB=\r\n"),
    ("base64", b"a b. "),
    ("x-uuencode", b"begin 1 a\r\n"),
    ("x-uuencode", b"M"),
    ("x-uuencode", b"M\r\n"),
    ("quoted-printable", b"= \r\n"),
    ("quoted-printable", b"="),
    ("quoted-printable", b"=\r\n"),
    ("quoted-printable", b" "),
    ("quoted-printable", b"=4"),
    ("8bit", b"\nbegin 644 a"),
    ("8bit", b"\nbegin 644 a\r\nM\r\n"),
    ("8bit", b"\nbegin 644 a\r\nM\r\nend\r\n"),
    ("8bit", b"\xc3"),
    ("8bit", b">"),
)
def test_bodies_in_broken_encodings_take_linear_time(encoding: str, filler: bytes) -> None:
    """A damaged body is decoded in one pass, and its text is not longer."""
    header = f"Content-Type: text/plain; format=flowed\r\nContent-Transfer-Encoding: {encoding}"

    def read(body: bytes) -> None:
        content = derive_content(header.encode() + b"\r\n\r\n" + body)
        assert len(content.text) <= len(body)

    assert_linear(read, filler, b"")


def test_a_line_of_25_mib_is_a_text_like_any_other() -> None:
    """A body without a line break is kept whole, while a header field is cut."""
    content = _derive_within(b"Subject: s\r\n\r\n" + b"a" * MESSAGE_LIMIT, 400 * MIB)
    assert len(content.text) == MESSAGE_LIMIT
    content = _derive_within(b"Subject: " + b"a" * MESSAGE_LIMIT, 160 * MIB)
    assert len(content.header_list[0][1]) <= MAX_HEADER_BYTES


CHARSETS = ["utf-7", "utf-16", "utf-32", "iso-2022-jp", "iso-2022-kr", "hz", "gb18030", "big5"]


@rows(*CHARSETS)
def test_any_bytes_in_any_charset_become_text(charset: str) -> None:
    """Stateful and wide charsets decode any bytes, without lone surrogates."""
    head = f"Content-Type: text/plain; charset={charset}\r\n\r\n".encode()
    for filler in (b"\x1b$B", b"+", b"~{", b"\xff\xfe", b"\xd8\x00", b"\x00"):
        content = derive_content(head + filler * 5_001)
        content.text.encode("utf-8")
        assert "\0" not in content.text


def test_almost_nothing_is_a_mail_too() -> None:
    """The smallest inputs result in empty values."""
    for raw in (b"", b"\r\n", b"\n", b"\r", b"\0", b":", b"From", b"From "):
        derive_content(raw)
        assert summarize_header(raw).subject == ""
