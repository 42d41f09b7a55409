"""Tests for author and subject, which are read while a mail is stored."""

import base64
import itertools
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.content.decoding import decode_words
from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.content.header.fields import summarize_header
from mailcheck.checks.content.header.mailboxes import parse_first_mailbox
from mailcheck.checks.content.limits import MAX_HEADER_BYTES, MAX_HEADER_FIELDS
from mailcheck.core.content import HeaderSummary
from tests.table import rows


def _summary_of(*lines: str | bytes) -> HeaderSummary:
    encoded = [line if isinstance(line, bytes) else line.encode("utf-8") for line in lines]
    return summarize_header(b"\r\n".join([*encoded, b"", b"Subject: not me\r\n"]))


def test_author_and_subject_are_read_from_an_ordinary_header() -> None:
    """Address, display name and subject are decoded."""
    assert _summary_of(
        "Received: from a.example\r\n\tby b.example",
        'From: "Example, Inc." <no-reply@example.com>',
        "To: dev-abc@inbox.example",
        "Subject: Confirm your\r\n e-mail address",
    ) == HeaderSummary("no-reply@example.com", "Example, Inc.", "Confirm your e-mail address")


@rows(
    ("From: a@example.com", "a@example.com", ""),
    ("FROM:a@example.com", "a@example.com", ""),
    ("from : A <a@example.com>", "a@example.com", "A"),
    ("From: <a@example.com>", "a@example.com", ""),
    ("From: a@example.com (Ann Bee)", "a@example.com", "Ann Bee"),
    ("From: Ann Bee<a@example.com>", "a@example.com", "Ann Bee"),
    ("From: Bee, Ann <a@example.com>", "a@example.com", "Bee, Ann"),
    ('From: "Ann \\"Bee\\"" <a@example.com>', "a@example.com", 'Ann "Bee"'),
    ("From: a@example.com, b@example.com", "a@example.com", ""),
    ("From: A <a@example.com>, B <b@example.com>", "a@example.com", "A"),
    ("From: Team: a@example.com, b@example.com;", "a@example.com", ""),
    ("From: Undisclosed recipients:;", "", ""),
    ('From: "a b"@example.com', '"a b"@example.com', ""),
    ("From: =?utf-8?q?J=C3=B6rg?= =?utf-8?q?_M=C3=BCller?= <j@x.de>", "j@x.de", "Jörg Müller"),
    ('From: "=?utf-8?B?w4RyZ2Vy?=" <a@x.de>', "a@x.de", "Ärger"),
    ("From: =?utf-8?q?Ann_=3Ca=40example=2Ecom=3E?=", "a@example.com", "Ann"),
    ("From: Jörg <jörg@exämple.de>", "jörg@exämple.de", "Jörg"),
    ("From: \tA\r\n\t<a@example.com>", "a@example.com", "A"),
    ("From:", "", ""),
    ("X-From: a@example.com", "", ""),
    ("From: no address here", "", "no address here"),
    ("From: <John Do>a@b.example", "a@b.example", "John Do"),
    ("From: <John Do> a@b.example", "a@b.example", "John Do"),
    ("From: John Do a@b.example", "a@b.example", "John Do"),
    ("From: <John Do> <a@b.example>", "a@b.example", "John Do"),
    ("From: <<a@b.example>>", "a@b.example", ""),
    ("From: John <>", "", "John"),
    ("From: a @ b.example", "a@b.example", ""),
    ("From: a@b.example (John (Johnny) Do)", "a@b.example", "John (Johnny) Do"),
    ("From: a@b.example John", "a@b.example", "John"),
    ("From: <@r.example,@s.example:a@b.example>", "a@b.example", ""),
    ("From: Ann [mailto:a@b.example]", "a@b.example", ""),
    ("From: a@b.example>", "a@b.example", ""),
    ("From: a@[192.0.2.1]", "a@[192.0.2.1]", ""),
    ("From: a@[IPv6:2001:db8::1] (Ann)", "a@[IPv6:2001:db8::1]", "Ann"),
    ("From: Ann <mailto:a@b.example>", "a@b.example", "Ann"),
    ("From: <a@b.example> (Ann)", "a@b.example", "Ann"),
    ("From: (Ann) <a@b.example>", "a@b.example", "Ann"),
    ("From: Ann <a@b.example> (at work)", "a@b.example", "Ann"),
    ('From: "a@b.example"', "a@b.example", ""),
    ("From: 'a@b.example'", "a@b.example", ""),
    ("From: Ann <'a@b.example'>", "a@b.example", "Ann"),
    ('From: "a" <"b c"@d.example>', '"b c"@d.example', "a"),
    ('From: "Ann <a@b.example>', "a@b.example", "Ann"),
    ('From: Ann" <a@b.example>', "a@b.example", "Ann"),
    ("From: Shop; Deals <a@b.example>", "a@b.example", "Shop; Deals"),
    ("From: a@b.example c@b.example", "a@b.example", "c@b.example"),
    ("From: =?utf-8?Q?Ann_<x@y.example>?= <a@b.example>", "a@b.example", "Ann <x@y.example>"),
    ("From: =?utf-8?Q?Re:_Ann;_(B,_C)?= <a@b.example>", "a@b.example", "Re: Ann; (B, C)"),
    ("From: =?utf-8?Q?Ann_<a@b.example>?=", "a@b.example", "Ann"),
    # Local mail.
    ("From: root (Cron Daemon)", "root", "Cron Daemon"),
    ("From: MAILER-DAEMON", "MAILER-DAEMON", ""),
    ("From: <root>", "root", ""),
    ("From: Mail Delivery System <MAILER-DAEMON>", "MAILER-DAEMON", "Mail Delivery System"),
    ("From: www-data (=?utf-8?q?J=C3=B6rg?=)", "www-data", "Jörg"),
    ("From: root, daemon", "root", ""),
    ("From: root, a@b.example", "root", ""),
    ("From: Team: root, a@b.example;", "root", ""),
    ("From: =?utf-8?q?Shop?=", "", "Shop"),
    ("From: 株式会社", "", "株式会社"),
)
def test_author_is_read_in_every_common_spelling(field: str, address: str, name: str) -> None:
    """The first mailbox of From is found in every common spelling."""
    summary = _summary_of(field, "Subject: s")
    assert (summary.author_address, summary.author_name) == (address, name)


@rows(
    (b"=?iso-8859-1?Q?Fr\xf6sche?=", "Fr\u00f6sche"),
    (b"=?ISO-8859-1?q?Fr\xf6sche_im?= Teich \xfcber", "Fr\u00f6sche im Teich \u00fcber"),
    (b"=?koi8-r?Q?\xeb\xcf\xc4?=", "\u041a\u043e\u0434"),
    (b"=?gb2312?Q?\xd1\xe9=D6=A4?=", "\u9a8c\u8bc1"),
    (b"=?shift_jis?Q?\x83R=81[\x83h?=", "\u30b3\u30fc\u30c9"),
    ("=?iso-8859-1?Q?Fr\u00f6sche?=".encode(), "Fr\u00f6sche"),
    ("=?utf-8?Q?Fr\u00f6sche?= \u00fcber".encode(), "Fr\u00f6sche \u00fcber"),
    (b"=?utf-8?B?R3LDvMOf\xff?=", "Gr\u00fc\u00df"),
)
def test_octets_that_were_not_encoded_belong_to_their_word(subject: bytes, decoded: str) -> None:
    """Raw octets in an encoded word have its charset, or are UTF-8 if valid."""
    assert summarize_header(b"Subject: " + subject + b"\r\n\r\n").subject == decoded


BOOKING = "Bestätigung Ihrer Bestellung"


@rows(
    ("Subject: =?UTF-8?B?w5xiZXJwcsO8ZmU=?= it", "Überprüfe it"),
    ("Subject: =?utf-8?B?w5w=?= =?utf-8?B?YmVy?=", "Über"),
    # One character split over two words, as many programs do.
    ("Subject: =?utf-8?B?5oKo55qE6aqM6K8=?= =?utf-8?B?geeggQ==?=", "您的验证码"),
    ("Subject: =?iso-2022-jp?B?GyRCRyc+WiUzITwlSRsoQg==?=", "認証コード"),
    ("Subject: =?koi8-r?B?68/E?=", "Код"),
    ("Subject: =?gb2312?B?0enWpMLr?=", "验证码"),
    ("Subject: =?utf-8?Q?100=25_=E2=9C=93?=", "100% ✓"),
    ("Subject: =?utf-8?B?broken", "=?utf-8?B?broken"),
    ("Subject: =?nonsense?Q?a=20b?=", "a b"),
    ("Subject: =?utf-8?B?YWJj*ZGVm?=", "abcdef"),
    ("Subject: 日本語", "日本語"),
    (b"Subject: caf\xe9", "café"),
    ("Subject: a =?utf-8?q?=0D=0AX-Evil:_1?=", "a   X-Evil: 1"),
    ("Subject :  spaced", "spaced"),
    ("Subject: =?utf-8?B?QmVzdMOkdGlndW5nIEloc?=\r\n =?utf-8?B?mVyIEJlc3RlbGx1bmc=?=", BOOKING),
    ("Subject: =?utf-8?B?QmVzdMOkdGlndW5nIE\r\n locmVyIEJlc3RlbGx1bmc=?=", BOOKING),
    ("Subject: =?utf-8\r\n ?B?QmVzdMOkdGlndW5nIElocmVyIEJlc3RlbGx1bmc=?\r\n =", BOOKING),
    ("Subject: =?utf-8?B?SGVsbG8?= =?utf-8?B?SGVsbG8?=", "HelloHello"),
    ("Subject: =?iso-8859-1?B?SGVsbG8?= =?iso-8859-1?B?SGVsbG8?=", "HelloHello"),
    ("Subject: =?utf-8?B?SGVsbG8=?= =?utf-8?B?SGVsbG8=?=", "HelloHello"),
    ("Subject: =?utf-8?Q?f=C?= =?utf-8?Q?3=BCnf?=", "fünf"),
    ("Subject: =?utf-8?Q?f=C3?= =?UTF-8?B?vA==?= =?utf-8*de?Q?nf?=", "fünf"),
    ("Subject: =?utf-8?Q?Why? Because=21?= =?utf-8?Q?_Or=3F?=", "Why? Because! Or?"),
    ("Subject: =?utf-8?Q?a=_=3D_?=b", "a= = b"),
    ("Subject: =?utf-8?Q??= x =?utf-8?Q?=C3=BC?=", "x ü"),
    ("Subject: =?utf-8?B?77u/w7w=?=", "ü"),
    ("Subject: =?utf-8?B?8J-YgA==?=", "😀"),
    ("Subject: =?iso-2022-jp?B?GyRCLSEbKEI=?=", "①"),
    (b"Subject: \x1b$BG'>Z%3!<%I\x1b(B 12", "認証コード 12"),
    (b"Subject: \xc8\xcf\r\nContent-Type: text/plain; charset=koi8-r", "хо"),
    ("Subject: first\r\nSubject: second", "first"),
    ("X: 1", ""),
    # Soft line breaks of quoted-printable, with and without a fold.
    ("Subject: =?utf-8?Q?abc=\r\n def?=", "abcdef"),
    ("Subject: =?utf-8?Q?abc=\r\n\tdef?= x", "abcdef x"),
    ("Subject: =?utf-8?Q?abc=\r\ndef?=", "abcdef"),
    ("Subject: =?utf-8?Q?=C3=\r\n=A4_=\r\nb?= =?utf-8?Q?=\r\nc?=\r\n d", "ä bc d"),
    ("Subject: =?utf-8?Q?a=3D= b?=", "a=b"),
    ("Subject: =?utf-8?B?w5xi\r\nZXI=?= x\r\n y", "Über x y"),
    ("Subject: =?utf-8?B?w5xi\r\nZXI\r\n=?=", "Über"),
    ("Subject: =?utf-8?B?w5xi\r\nX: def", "=?utf-8?B?w5xi"),
    ("Subject: =?utf-8?Q?abc=\r\nX: def", "=?utf-8?Q?abc="),
    # Programs encode the NUL after a text.
    ("Subject: =?utf-8?B?YWJjAA==?=", "abc"),
    ("Subject: =?utf-8?Q?abc=00?= =?utf-8?Q?def=00=00?=", "abcdef"),
    ("Subject: =?utf-8?Q?a=00b?=", "a\ufffdb"),
    ("Subject: =?utf-16le?B?YQA=?=", "a"),
)
def test_subject_is_decoded(field: str | bytes, subject: str) -> None:
    """Encoded words and raw bytes become text on one line."""
    assert _summary_of(field).subject == subject


@given(
    st.text(st.sampled_from("aÄ€码😀 ="), min_size=1, max_size=12),
    st.sampled_from(("utf-8", "utf-16-be", "gb18030")),
    st.lists(st.integers(0, 60), max_size=4),
)
def test_base64_may_be_cut_anywhere(text: str, charset: str, cuts: list[int]) -> None:
    """base64 that is split anywhere into words is read as a whole."""
    encoded = base64.b64encode(text.encode(charset)).decode()
    bounds = [0, *sorted(cut for cut in cuts if cut < len(encoded)), len(encoded)]
    words = [f"=?{charset}?b?{encoded[a:b]}?=" for a, b in itertools.pairwise(bounds)]
    assert decode_words(" ".join(words)) == text
    assert decode_words("x " + "\t ".join(words) + " y") == f"x {text} y"


@given(st.text(st.sampled_from("aÄ€码 _=?"), min_size=1, max_size=8), st.data())
def test_quoted_printable_may_be_cut_anywhere(text: str, data: st.DataObject) -> None:
    """Quoted-printable that is split anywhere into words is read as a whole."""
    encoded = "".join(f"={octet:02X}" for octet in text.encode())
    cut = data.draw(st.integers(0, len(encoded)))
    assert decode_words(f"=?utf-8?q?{encoded[:cut]}?= =?utf-8?q?{encoded[cut:]}?=") == text


@rows(
    *product(
        ["euc-kr", "gb2312", "big5", "shift_jis", "koi8-r", "iso-2022-jp"], ["root", "part", "page"]
    )
)
def test_raw_octets_are_in_the_charset_that_the_mail_declares(charset: str, place: str) -> None:
    """Subject, names and file names have the charset that the mail declares anywhere."""
    word = {"euc-kr": "인증번호", "koi8-r": "Код", "shift_jis": "認証", "iso-2022-jp": "認証"}.get(
        charset, "中文"
    )
    text = f'Content-Type: text/plain; charset="{charset}"'
    page = f'Content-Type: text/html\r\n\r\n<meta charset="{charset}">'
    body = text if place == "part" else page if place == "page" else "\r\n"
    kind = text if place == "root" else "Content-Type: multipart/mixed; boundary=b"
    end = f"{kind}\r\n\r\n--b\r\n{body}\r\n\r\n--b\r\nContent-Type: a/b; name="
    name = word.encode(charset)
    raw = b"From: " + name + b" <a@b.example>\r\nSubject: " + name + b" 1\r\n" + end.encode()
    raw += b'"' + name + b'.pdf"\r\n\r\nx\r\n--b--\r\n'
    raw = b"To: " + name + b" <c@d.example>\r\n" + raw
    assert summarize_header(raw) == HeaderSummary("a@b.example", word, f"{word} 1")
    content = derive_content(raw)
    assert dict(content.header_list)["Subject"] == f"{word} 1"
    assert [person.name for person in content.people] == [word]
    if place != "root":
        assert content.attachments[0].filename == f"{word}.pdf"


def test_raw_utf_8_is_utf_8_whatever_the_mail_declares() -> None:
    """Raw octets that are valid UTF-8 are UTF-8 (RFC 6532)."""
    raw = "Subject: Größe\r\nContent-Type: text/plain; charset=koi8-r\r\n\r\n".encode()
    assert summarize_header(raw).subject == "Größe"


LINES = st.sampled_from(
    [
        b"From: Ann <a@example.com>",
        b"from : b@example.com",
        b"From\t: c@example.com",
        b"From someone Mon Jan 1",
        b">From someone",
        b"from the desk",
        b"Subject: one",
        b"SUBJECT \t: two",
        b"Subject:",
        b"Subject: \xb1\xe2",
        b"X-Subject: other",
        b" folded",
        b"\t",
        b"a stray line",
        b"Note: a line like a field",
        b"Content-Type: text/plain; charset=euc-kr",
        b": no name",
        b"",
        b"\xef\xbb\xbfSubject: marked",
        b"Subject: =?utf-8?q?cut=",
        b"within=",
        b"word?=",
        b"Subject: =?utf-8?b?w5xi",
        b"ZXIx",
    ]
)


@given(st.lists(LINES, max_size=9), st.sampled_from((b"\r\n", b"\n")))
def test_all_readers_agree_on_a_header(lines: list[bytes], line_end: bytes) -> None:
    """Author and subject in lists, filters and waits equal those in the list of fields."""
    raw = line_end.join(lines)
    _assert_one_reading(raw)


def _assert_one_reading(raw: bytes) -> HeaderSummary:
    summary = summarize_header(raw)
    fields = derive_content(raw).header_list
    bodies = {name.lower(): body for name, body in reversed(fields)}
    assert summary.subject == bodies.get("subject", "").strip()
    assert (summary.author_address, summary.author_name) == parse_first_mailbox(
        bodies.get("from", "")
    )
    return summary


@rows(
    (b"To: " + b"one@example.com, " * 5_000 + b"\r\n", True),
    (b"To: " + b"one@example.com,\r\n " * 5_000 + b"\r\n", True),
    (b"X-A: b\r\n" * (MAX_HEADER_FIELDS - 2), True),
    (b"X-A: b\r\n" * MAX_HEADER_FIELDS, False),
    (b"X-A: " + b"b" * MAX_HEADER_BYTES + b"\r\n", False),
    (b"a stray line\r\n" * 200, True),
    (b"\r\n", False),
)
def test_the_size_of_a_header_makes_no_difference(before: bytes, is_read: bool) -> None:
    """Text before From and Subject hides them from every reader or from none."""
    summary = _assert_one_reading(before + b"From: a@example.com\r\nSubject: s\r\n\r\nbody")
    assert (summary.author_address, summary.subject) == (
        ("a@example.com", "s") if is_read else ("", "")
    )


def test_a_stray_line_is_left_out_where_fields_follow() -> None:
    """A line without its fold costs one line; if no field follows, the body begins there."""
    raw = b"X: 1\r\nlost\r\nSubject: s\r\nContent-Type: text/html\r\n\r\n<p>x</p>"
    content = derive_content(raw)
    assert content.header_list == (("X", "1"), ("Subject", "s"), ("Content-Type", "text/html"))
    assert content.html == "<p>x</p>"
    assert any("not a header field" in problem for problem in content.problems)
    text = derive_content(b"Subject: s\r\nHello Ann\r\nhttp://a.example\r\nNote: x\r\n\r\nbye")
    assert text.text == "Hello Ann\nhttp://a.example\nNote: x\n\nbye"


ENCODED = {"7bit": b"b\xc3\xb6dy", "base64": b"YsO2ZHk=", "quoted-printable": b"b=C3=B6dy"}


@rows(
    *product(
        ENCODED,
        [
            "Reply To: x",
            "no colon",
            "lost",
            "lost\r\n and its rest",
            ": x",
            "Ä: x",
            "lost\r\nA B: c",
        ],
        ["", "--b"],
        ["\r\n", "\n"],
    )
)
def test_the_header_ends_at_the_empty_line(
    encoding: str, last: str, delimiter: str, line_end: str
) -> None:
    """The last lines may be no fields; the body is decoded as the fields above them say."""
    multipart = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n" if delimiter else ""
    head = f"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n"
    raw = f"Subject: s\r\n{multipart}{head}{last}\r\n\r\n".encode() + ENCODED[encoding]
    raw += f"\r\n{delimiter}--".encode() if delimiter else b""
    content = derive_content(raw.replace(b"\r\n", line_end.encode()))
    assert content.text.strip() == "bödy"
    assert any("not a header field" in problem for problem in content.problems)


def test_nothing_is_read_from_the_body() -> None:
    """Text in the body that looks like a header has no effect."""
    summary = summarize_header(b"To: x@example.com\r\n\r\nFrom: a@example.com\r\nSubject: s\r\n")
    assert summary == HeaderSummary("", "", "")


def test_bare_line_feeds_are_line_breaks_too() -> None:
    """A mail from a Unix file is read like one from the network."""
    summary = summarize_header(b"From: a@example.com\nSubject: two\n lines\n\nbody\n")
    assert summary == HeaderSummary("a@example.com", "", "two lines")


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_any_bytes_give_a_summary(author: bytes, subject: bytes) -> None:
    """The summary never raises, and has no control characters or invalid text."""
    for raw in (author, b"From: " + author + b"\r\nSubject: " + subject + b"\r\n\r\n"):
        summary = summarize_header(raw)
        for text in (summary.author_address, summary.author_name, summary.subject):
            text.encode("utf-8")
            assert "\r" not in text
            assert "\n" not in text
            assert "\0" not in text
