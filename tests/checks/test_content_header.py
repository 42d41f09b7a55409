"""Author and subject for lists and filters, read while the mail is being stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.content.header import summarize_header
from mailcheck.core.content import HeaderSummary


def _summary_of(*lines: str | bytes) -> HeaderSummary:
    encoded = [line if isinstance(line, bytes) else line.encode("utf-8") for line in lines]
    return summarize_header(b"\r\n".join([*encoded, b"", b"Subject: not me\r\n"]))


def test_author_and_subject_are_read_from_an_ordinary_header() -> None:
    """Address, display name and subject come back as they read."""
    assert _summary_of(
        "Received: from a.example\r\n\tby b.example",
        'From: "Example, Inc." <no-reply@example.com>',
        "To: dev-abc@inbox.example",
        "Subject: Confirm your\r\n e-mail address",
    ) == HeaderSummary("no-reply@example.com", "Example, Inc.", "Confirm your e-mail address")


@pytest.mark.parametrize(
    ("field", "address", "name"),
    [
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
    ],
)
def test_author_is_read_in_every_common_spelling(field: str, address: str, name: str) -> None:
    """Whatever programs write into From, its first mailbox comes out."""
    summary = _summary_of(field, "Subject: s")
    assert (summary.author_address, summary.author_name) == (address, name)


@pytest.mark.parametrize(
    ("subject", "decoded"),
    [
        (b"=?iso-8859-1?Q?Fr\xf6sche?=", "Fr\u00f6sche"),
        (b"=?ISO-8859-1?q?Fr\xf6sche_im?= Teich \xfcber", "Fr\u00f6sche im Teich \u00fcber"),
        (b"=?koi8-r?Q?\xeb\xcf\xc4?=", "\u041a\u043e\u0434"),
        (b"=?gb2312?Q?\xd1\xe9=D6=A4?=", "\u9a8c\u8bc1"),
        (b"=?shift_jis?Q?\x83R=81[\x83h?=", "\u30b3\u30fc\u30c9"),
        ("=?iso-8859-1?Q?Fr\u00f6sche?=".encode(), "Fr\u00f6sche"),
        ("=?utf-8?Q?Fr\u00f6sche?= \u00fcber".encode(), "Fr\u00f6sche \u00fcber"),
        (b"=?utf-8?B?R3LDvMOf\xff?=", "Gr\u00fc\u00df"),
    ],
)
def test_octets_that_were_not_encoded_belong_to_their_word(subject: bytes, decoded: str) -> None:
    """Raw octets in an encoded word are read in its charset, or as UTF-8 where they are that."""
    assert summarize_header(b"Subject: " + subject + b"\r\n\r\n").subject == decoded


@pytest.mark.parametrize(
    ("field", "subject"),
    [
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
        ("Subject: first\r\nSubject: second", "first"),
        ("X: 1", ""),
    ],
)
def test_subject_is_decoded(field: str | bytes, subject: str) -> None:
    """Encoded words and raw bytes become text on one line."""
    assert _summary_of(field).subject == subject


def test_nothing_is_read_from_the_body() -> None:
    """A body that looks like a header changes nothing."""
    summary = summarize_header(b"To: x@example.com\r\n\r\nFrom: a@example.com\r\nSubject: s\r\n")
    assert summary == HeaderSummary("", "", "")


def test_bare_line_feeds_are_line_breaks_too() -> None:
    """A mail from a Unix file is read like one from the network."""
    summary = summarize_header(b"From: a@example.com\nSubject: two\n lines\n\nbody\n")
    assert summary == HeaderSummary("a@example.com", "", "two lines")


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_any_bytes_give_a_summary(author: bytes, subject: bytes) -> None:
    """Never an error, never a control character, never what JSON can't hold."""
    for raw in (author, b"From: " + author + b"\r\nSubject: " + subject + b"\r\n\r\n"):
        summary = summarize_header(raw)
        for text in (summary.author_address, summary.author_name, summary.subject):
            text.encode("utf-8")
            assert "\r" not in text
            assert "\n" not in text
            assert "\0" not in text
