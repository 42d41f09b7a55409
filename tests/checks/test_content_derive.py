"""Tests for header, text, HTML and attachments from the bytes of a mail."""

import random
from dataclasses import replace
from email.message import EmailMessage
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.content.bodies import find_attachment
from mailcheck.checks.content.derive import LONE_LINE_FEEDS, derive_content
from mailcheck.core.content import MessageContent
from tests.table import rows


def _mail(*lines: str, body: str | bytes = "") -> bytes:
    data = body.encode("utf-8") if isinstance(body, str) else body
    return "\r\n".join([*lines, "", ""]).encode("utf-8") + data.replace(b"\n", b"\r\n")


ALTERNATIVE = _mail(
    "Subject: s",
    'Content-Type: multipart/alternative; boundary="b1"',
    body="""preamble
--b1
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

Gr=C3=BC=C3=9Fe=
!
--b1
Content-Type: text/html; charset=iso-8859-1
Content-Transfer-Encoding: base64

PGI+R3L832U8L2I+
--b1--
epilogue
""",
)


def test_alternatives_give_text_and_html() -> None:
    """Text and HTML are decoded, without preamble and epilogue."""
    content = derive_content(ALTERNATIVE)
    assert content.text == "Grüße!"
    assert content.html == "<b>Grüße</b>"
    assert content.attachments == ()
    assert content.problems == ()


def test_of_several_alternatives_the_richest_html_counts() -> None:
    """The last text and the last HTML are chosen, also inside other multiparts."""
    content = derive_content(
        _mail(
            "Content-Type: multipart/alternative; boundary=b",
            body="""--b

text one
--b
Content-Type: text/html

html one
--b
Content-Type: multipart/related; boundary=c

--c
Content-Type: text/html

html two
--c
Content-Type: image/gif
Content-ID: <i>

GIF
--c--
--b
Content-Type: text/plain

text two
--b--
""",
        )
    )
    assert (content.text, content.html) == ("text two", "html two")
    assert [fact.content_id for fact in content.attachments] == ["i"]


def test_a_text_that_is_attached_is_no_body() -> None:
    """Content-Disposition: attachment decides, with or without a file name."""
    content = derive_content(
        _mail(
            "Content-Type: multipart/mixed; boundary=b",
            body="--b\n\nbody\n--b\nContent-Disposition: attachment\n\nattached\n--b--\n",
        )
    )
    assert content.text == "body"
    assert [fact.size for fact in content.attachments] == [len("attached")]


@rows(
    ("Content-Type: text/plain; name=body.txt\n\nread me", "read me", ""),
    ('Content-Type: text/html; name="a.html"\nContent-Disposition: inline\n\n<p>x', "", "<p>x"),
)
def test_a_lone_named_text_is_the_body(part: str, text: str, html: str) -> None:
    """The only text of a mail is its body, even with a file name."""
    pdf = "Content-Type: application/pdf; name=a.pdf\n\n%PDF"
    mixed = "Content-Type: multipart/mixed; boundary=b"
    content = derive_content(_mail(mixed, body=f"--b\n{part}\n--b\n{pdf}\n--b--\n"))
    assert (content.text, content.html) == (text, html)
    assert [fact.filename for fact in content.attachments] == ["a.pdf"]


def test_of_several_named_texts_those_that_are_inline_are_the_body() -> None:
    """Among several texts with names, the inline ones are the body, or else all of them."""
    mixed = "Content-Type: multipart/mixed; boundary=b"
    named = "--b\nContent-Type: text/plain; name=a.txt\n\none\n"
    inline = "--b\nContent-Disposition: inline; filename=b.txt\n\ntwo\n"
    plain = "--b\nContent-Type: text/plain\n\nhello\n"
    found = [
        derive_content(_mail(mixed, body=f"{parts}--b--\n"))
        for parts in (named + named, inline + inline, named + inline, plain + inline)
    ]
    assert [content.text for content in found] == ["one\none", "two\ntwo", "two", "hello"]
    assert [len(content.attachments) for content in found] == [0, 0, 1, 1]


def test_header_list_has_every_field_in_order() -> None:
    """Names stay as written, repeated fields are kept, and bodies are unfolded and decoded."""
    content = derive_content(
        _mail(
            "Received: from a\r\n\tby b",
            "X-Thing: =?utf-8?q?caf=C3=A9?=",
            "received: from c",
            "Empty:",
            "Subject: s",
        )
    )
    assert content.header_list == (
        ("Received", "from a by b"),
        ("X-Thing", "café"),
        ("received", "from c"),
        ("Empty", ""),
        ("Subject", "s"),
    )


def test_a_mail_without_types_is_text() -> None:
    """A mail without a Content-Type is text without HTML."""
    content = derive_content(_mail("Subject: s", body="hello\nworld\n"))
    assert (content.text, content.html) == ("hello\nworld\n", "")


def test_a_mail_of_html_alone_has_no_text() -> None:
    """A mail that has only HTML has an empty text."""
    content = derive_content(_mail("Content-Type: text/html; charset=utf-8", body="<p>é</p>"))
    assert (content.text, content.html) == ("", "<p>é</p>")


@rows(
    (
        b"Content-Type: text/html\r\n\r\n<style>x</style><p>Gr&uuml;&szlig;e <b>an</b> dich",
        "grusse an dich",
    ),
    (b"\r\nplain <b>as it is</b>\r\n", "plain <b>as it is</b>"),
    (b"\r\n" + b"x" * 99_999, "x" * 65_536),
)
def test_what_searches_look_in(raw: bytes, searched: str) -> None:
    """Searches use the folded text, or the words of the HTML, up to a maximum."""
    assert derive_content(raw).searched.strip() == searched


def test_parts_of_a_mixed_mail_follow_each_other() -> None:
    """Text before and after an attachment is joined; the attachment is listed."""
    content = derive_content(
        _mail(
            "Content-Type: multipart/mixed; boundary=b",
            body="""--b
Content-Type: text/plain

one
--b
Content-Type: application/pdf; name="a.pdf"
Content-Transfer-Encoding: base64
Content-ID: <x@y>

JVBERg==
--b
Content-Type: text/plain

two
--b
Content-Type: text/plain; name=notes.txt
Content-Disposition: inline

three
--b--
""",
        )
    )
    assert content.text == "one\ntwo"
    assert [(a.id, a.filename, a.size, a.content_id) for a in content.attachments] == [
        ("1", "a.pdf", 4, "x@y"),
        ("2", "notes.txt", 5, None),
    ]


@rows(
    'multipart/mixed; boundary="b 1"',
    "multipart/mixed; boundary=b 1",
    'Multipart/MIXED;\r\n\tcharset=x;\r\n\tBOUNDARY="b 1"',
    'multipart/mixed (a comment); (another; boundary="no") boundary="b 1"',
    'multipart/mixed; boundary="b\\ 1"',
    "multipart/mixed; boundary*=us-ascii''b%201",
    'multipart/mixed; boundary*0="b "; boundary*1="1"',
    'multipart/mixed; boundary="b 1',
    'multipart/mixed;boundary = "b 1" ; x',
)
def test_a_boundary_is_understood_in_every_spelling(content_type: str) -> None:
    """Quoted, folded, commented, split and encoded boundaries divide the mail."""
    if "boundary=b 1" in content_type:
        body = "--b\n\ninside\n--b--\n"
    else:
        body = "--b 1\n\ninside\n--b 1--\n"
    content = derive_content(_mail(f"Content-Type: {content_type}", body=body))
    assert content.text == "inside"


def test_an_outer_delimiter_ends_what_is_inside() -> None:
    """An unclosed nested multipart does not contain the parts after it."""
    content = derive_content(
        _mail(
            "Content-Type: multipart/mixed; boundary=outer",
            body="""--outer
Content-Type: multipart/alternative; boundary=inner

--inner
Content-Type: text/plain

one
--outer
Content-Type: text/plain

two
--outer--
""",
        )
    )
    assert content.text == "one\ntwo"
    assert any("closing boundary" in problem for problem in content.problems)


def test_a_boundary_that_begins_like_another_is_another() -> None:
    """Only a whole line is a delimiter: --b is not --bb."""
    content = derive_content(
        _mail(
            "Content-Type: multipart/mixed; boundary=b",
            body="--b\nContent-Type: multipart/mixed; boundary=bb\n\n--bb\n\none\n--b-x\n--bb--\n"
            "--b\n\ntwo\n--b--\n",
        )
    )
    assert content.text == "one\n--b-x\ntwo"


@rows("\r\n", "\r\r\n", " \t\r\n", " \r\r\n")
def test_a_delimiter_may_be_followed_by_blanks_and_carriage_returns(line_end: str) -> None:
    """Doubled line ends and blanks from transport do not hide a part."""
    lines = ["--b", "Content-Type: text/html", "", "<p>x</p>", "--b", "", "text", "--b--", ""]
    raw = b"Content-Type: multipart/alternative; boundary=b\r\n\r\n" + line_end.join(lines).encode()
    content = derive_content(raw)
    assert (content.text.strip(), content.html.strip()) == ("text", "<p>x</p>")


@rows("multipart/mixed", "multipart/mixed; boundary=other", "multipart/mixed; boundary=''")
def test_a_multipart_without_its_boundary_is_shown_as_text(content_type: str) -> None:
    """A multipart with an unknown structure is shown as text, with a problem."""
    content = derive_content(_mail(f"Content-Type: {content_type}", body="--b\n\ninside\n"))
    assert "inside" in content.text
    assert content.problems


SEPARATORS = [
    ";",
    "; ",
    ";;",
    " ;",
    " ; ",
    ";\r\n ",
    ";\r\n\t",
    " ",
    "\t",
    "\r\n ",
    ",",
    ", ",
    " , ",
    ":",
    ": ",
]
"""Separators between a media type and its parameters; RFC 2045 5.1 has the semicolon."""


@rows(*product(SEPARATORS, ["b", '"b"']))
def test_parameters_are_read_whatever_separates_them(separator: str, value: str) -> None:
    """A missing or other separator changes neither type nor parameter, and is a problem."""
    content = derive_content(
        _mail(
            f"Content-Type: multipart/alternative{separator}type=x{separator}boundary={value}",
            body=f"""--b
Content-Type: text/plain{separator}format=flowed{separator}charset="koi8-r"
Content-Transfer-Encoding: quoted-printable

=EB=CF=C4
--b
Content-Type: text/html{separator}charset=koi8-r{separator}name=x

<p>html</p>
--b--
""",
        )
    )
    assert (content.text, content.html, content.attachments) == ("Код", "<p>html</p>", ())
    is_right = separator.strip() == ";"
    named = "a Content-Type field is not in the form of RFC 2045" in content.problems
    assert named is not is_right


@rows(
    ("text/html", None),
    ("TEXT/HTML; Charset=utf-8", None),
    ("text/html (a page); charset=utf-8", None),
    ("text/html; charset=utf-8;", None),
    ('"text/html"; charset=utf-8', "Content-Type"),
    ("text/html charset=utf-8", "Content-Type"),
    ("text/html, charset=utf-8", "Content-Type"),
    ('text/html; charset="utf-8', "Content-Type"),
    ("text / html; charset=utf-8", "Content-Type"),
    ("text/html/; charset=utf-8", "Content-Type"),
    ("text/html\\; charset=utf-8", "Content-Type"),
    ("<text/html>; charset=utf-8", "Content-Type"),
)
def test_a_media_type_is_read_in_every_spelling(content_type: str, problem: str | None) -> None:
    """HTML is recognized in any spelling of its type."""
    content = derive_content(_mail(f"Content-Type: {content_type}", body="<p>ü</p>"))
    assert content.html == "<p>ü</p>"
    assert any("Content-Type" in one for one in content.problems) is (problem is not None)


@rows(*"!#$%&'*+-.^_`{|}~0aZ")
def test_every_token_character_may_stand_in_a_type(character: str) -> None:
    """An unknown multipart is mixed, and an unknown type is an attachment (RFC 2045 5.1)."""
    content = derive_content(
        _mail(
            f"Content-Type: multipart/{character}; boundary=b",
            body=f"--b\n\ntext\n--b\nContent-Type: x-a/{character}; name=a.png\n\nx\n--b--\n",
        )
    )
    assert content.text == "text"
    assert [one.content_type for one in content.attachments] == [f"x-a/{character}".lower()]


@rows("multipart", "multipart/", "/mixed", "mixed", "")
def test_parts_are_found_where_the_type_is_not_one(content_type: str) -> None:
    """A boundary shows that the mail has parts."""
    body = "--b\nContent-Type: text/html\n\n<p>x</p>\n--b\n\ntext\n--b--\n"
    content = derive_content(_mail(f"Content-Type: {content_type}; boundary=b", body=body))
    assert (content.text, content.html) == ("x\ntext", "<p>x</p>\n<p>text</p>")


@rows("multipart/mixed", "multipart/mixed; boundary=other")
def test_a_boundary_is_found_where_the_header_has_not_the_right_one(content_type: str) -> None:
    """The boundary is taken from the first delimiter line with a part's header after it."""
    body = "preamble\n--b=1\nContent-Type: text/html\n\n<p>x</p>\n--b=1\n\ntext\n--b=1--\n"
    content = derive_content(_mail(f"Content-Type: {content_type}", body=body))
    assert (content.text, content.html) == ("x\ntext", "<p>x</p>\n<p>text</p>")
    assert any("boundary" in problem for problem in content.problems)


UUENCODED = 'begin 644 {name}\n(82QB"C$L,@H \n`\nend\n'


def test_uuencoded_files_in_a_text_are_attachments() -> None:
    """Uuencoded files in a text become attachments; the text around them stays text."""
    files = [UUENCODED.format(name=name) for name in ("t.csv", "ü 2.csv")]
    body = f"before\n\n{files[0]}between\n{files[1]}end\n"
    raw = _mail("Subject: files", body=body)
    content = derive_content(raw)
    assert content.text.split() == ["before", "between", "end"]
    assert [one.filename for one in content.attachments] == ["t.csv", "ü 2.csv"]
    for number in ("1", "2"):
        attachment = find_attachment(raw, number)
        assert attachment is not None
        assert attachment.data == b"a,b\n1,2\n"


@rows("`\n", " \n", "\n", "", "\n\n")
def test_the_last_line_of_a_uuencoded_file_may_have_lost_its_blank(last: str) -> None:
    """The last line is a blank, which programs write as another sign or remove."""
    body = UUENCODED.format(name="t.csv").replace("`\n", last)
    content = derive_content(_mail("Subject: file", body=f"text\n{body}"))
    assert content.text.strip() == "text"
    assert [(one.filename, one.size) for one in content.attachments] == [("t.csv", 8)]


@rows(
    "begin 644 the meeting at noon\nwith all of you\nend\n",
    "We begin 644 t.csv\n(82QB\nend\n",
    "begin 644 t.csv\n(82QB\n",
    "begin\nend\n",
)
def test_text_that_begins_like_a_file_stays_text(body: str) -> None:
    """A file has encoded lines between its begin and its end."""
    content = derive_content(_mail("Subject: s", body=f"Hello\n{body}"))
    assert content.text == f"Hello\n{body}"
    assert content.attachments == ()


def test_a_text_without_a_charset_is_in_that_of_the_mail() -> None:
    """A part without a charset has the charset that the mail declares elsewhere."""
    head = "Content-Type: multipart/alternative; boundary=b; charset=iso-8859-2\r\n\r\n--b\r\n\r\n"
    raw = head.encode() + "żółw".encode("iso-8859-2") + b"\r\n--b--\r\n"
    assert derive_content(raw).text == "żółw"
    assert derive_content(head.encode() + "żółw".encode() + b"\r\n--b--\r\n").text == "żółw"


WORDS_OF_CHARSETS = [
    ("=?koi8-r?B?68/E?=", "Код доступа", "koi8-r"),
    ("=?windows-1251*ru?q?=CA=EE=E4?=", "Код доступа", "cp1251"),
    ("=?utf-8?q?x?= =?gb2312?B?0enWpMLr?=", "验证码", "gb2312"),
    ("=?ISO-2022-JP?B?GyRCRyc+WiUzITwlSRsoQg==?=", "認証コード", "cp932"),
    ("=?big5?B?xeSusA==?=", "驗證碼", "big5"),
    ("=?iso-8859-2?Q?=B1?=", "żółw", "iso-8859-2"),
    ("=?utf-8?Q?=C3=A4?=", "Größe", "cp1252"),
]
UNDECLARED = ["", "text/plain", "text/plain; charset=us-ascii", "text/plain; charset=unknown-8bit"]


@rows(*((content_type, *one) for content_type in UNDECLARED for one in WORDS_OF_CHARSETS))
def test_a_text_without_a_charset_is_in_that_of_encoded_words(
    content_type: str, word: str, text: str, charset: str
) -> None:
    """Octets over 127 without a charset are in the one that encoded words of the header name."""
    head = f"Subject: {word}\r\n" + (f"Content-Type: {content_type}\r\n" if content_type else "")
    octets = text.encode(charset)
    assert derive_content(head.encode() + b"\r\n" + octets).text == text
    multipart = f"Subject: {word}\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n"
    parts = multipart.encode() + head.encode() + b"\r\n" + octets + b"\r\n--b--"
    assert derive_content(parts).text == text
    assert derive_content(head.encode() + b"\r\n" + "Grüße".encode()).text == "Grüße"
    declared = head.encode() + b"X: charset=koi8-u\r\n\r\n" + "Ґанок".encode("koi8-u")
    assert derive_content(declared).text == "Ґанок"


def test_a_forwarded_mail_is_an_attachment() -> None:
    """message/rfc822 is one attachment with the bytes of the mail inside."""
    raw = _mail(
        "Content-Type: multipart/mixed; boundary=b",
        body="--b\nContent-Type: message/rfc822\n\nSubject: x\nContent-Type: multipart/mixed; "
        "boundary=c\n\n--c\n\ninner\n--c--\n--b--\n",
    )
    content = derive_content(raw)
    assert content.text == ""
    attachment = find_attachment(raw, "1")
    assert attachment is not None
    assert attachment.content_type == "message/rfc822"
    assert attachment.data.startswith(b"Subject: x\r\n")
    assert attachment.data.endswith(b"--c--")


@rows(
    ('filename="a.pdf"', "a.pdf"),
    ("filename=a.pdf", "a.pdf"),
    ("filename*=utf-8''%C3%BCber%20uns.pdf", "über uns.pdf"),
    ("filename*0*=utf-8''%C3%BC; filename*1=\"ber.pdf\"", "über.pdf"),
    ("filename=x.pdf; filename*=utf-8''%C3%BC.pdf", "ü.pdf"),
    ('filename="=?utf-8?q?=C3=BC=2Epdf?="', "ü.pdf"),
    ('filename="ü.pdf"', "ü.pdf"),
    ("filename*=bad-charset''%FF.pdf", "ÿ.pdf"),
    ('filename="../../etc/passwd"', "_.._etc_passwd"),
    ('filename="..\\\\..\\\\a.exe"', "_.._a.exe"),
    ("filename*=utf-8''a%00%0A%2Fb.txt", "a\ufffd _b.txt"),
    ("filename*=utf-8''gpj%E2%80%AEexe.txt", "gpj_exe.txt"),
    ('filename=""', ""),
    ('filename*0="=?UTF-8?B?w7xi"; filename*1="ZXIucGRm?="', "über.pdf"),
    ('filename*0="=?UTF-8?Q?=C3=BC?="; filename*1=" =?UTF-8?Q?ber=2Epdf?="', "über.pdf"),
    ("filename*=utf-8''=?UTF-8?Q?=C3=BCber=2Epdf?=", "über.pdf"),
    ("filename==?UTF-8?Q?=C3=BC?= =?UTF-8?Q?ber.pdf?=", "über.pdf"),
    ("filename=\"utf-8''%C3%BCber%20uns.pdf\"", "über uns.pdf"),
    ("filename*1*=ber%2E; filename*2=pdf; filename*0*=utf-8'de'%C3%BC", "über.pdf"),
    ("filename=my report.pdf", "my report.pdf"),
    ("filename=my report.pdf; size=1", "my report.pdf"),
    ("filename=a.pdf size=1", "a.pdf"),
    ("filename=report (1).pdf", "report (1).pdf"),
    ("filename=a,b.pdf", "a,b.pdf"),
    ("filename = 'a.pdf", "'a.pdf"),
    ('filename="a.pdf', "a.pdf"),
    ('size=1 filename="a;b, c=d.pdf"', "a;b, c=d.pdf"),
    (f'filename="{"a" * 400}.pdf"', "a" * 251 + ".pdf"),
    ('filename*0="utf-8\'\'%C3%BC"; filename*1="ber.pdf"', "über.pdf"),
    ("filename: a.pdf", "a.pdf"),
    ('filename=a.pdf"', "a.pdf"),
    ('filename=""a.pdf""', "a.pdf"),
    ('filename=""; size="3"', ""),
    ("name=a.pdf", "a.pdf"),
    ("name=a.pdf; filename=b.pdf", "b.pdf"),
)
def test_a_filename_is_decoded_and_safe(parameter: str, filename: str) -> None:
    """Names are decoded from every encoding, without paths, controls and direction marks."""
    raw = _mail(
        "Content-Type: application/octet-stream",
        f"Content-Disposition: attachment; {parameter}",
        body="x",
    )
    (facts,) = derive_content(raw).attachments
    assert facts.filename == filename


def test_an_attachment_is_found_by_its_id() -> None:
    """An id of the list gives the decoded bytes; any other id gives `None`."""
    message = EmailMessage()
    message.set_content("see attached")
    for number in range(12):
        message.add_attachment(bytes([number]) * 1000, "image", "png", filename=f"{number}.png")
    raw = message.as_bytes().replace(b"\n", b"\r\n")
    facts = derive_content(raw).attachments
    assert [fact.id for fact in facts] == [str(number) for number in range(1, 13)]
    found = find_attachment(raw, "12")
    assert found is not None
    assert (found.filename, found.content_type) == ("11.png", "image/png")
    assert found.data == b"\x0b" * 1000
    for absent in ("0", "13", "", "-1", "01", "x", "1 "):
        assert find_attachment(raw, absent) is None


@rows(
    ("utf-8", "é".encode(), "é"),
    ("ISO-8859-1", b"\x93quoted\x94", "“quoted”"),
    ("us-ascii", "é".encode(), "é"),
    ("", b"caf\xe9", "café"),
    ("gb2312", "朱镕基".encode("gbk"), "朱镕基"),
    ("ks_c_5601-1987", "인증번호".encode("cp949"), "인증번호"),
    ("shift_jis", "認証①".encode("cp932"), "認証①"),
    ("iso-2022-jp", "認証コード".encode("iso-2022-jp"), "認証コード"),
    ("windows-1251", "Код".encode("cp1251"), "Код"),
    ("utf-16", "Kod".encode("utf-16"), "Kod"),
    ("utf-7", b"+2AA-x", "\ufffdx"),
)
def test_charsets_are_read_as_senders_mean_them(charset: str, body: bytes, text: str) -> None:
    """Labels have their meaning in practice: Latin 1 is Windows-1252, GB2312 is GB18030."""
    kind = f"text/plain; charset={charset}" if charset else "text/plain"
    assert derive_content(_mail(f"Content-Type: {kind}", body=body)).text == text


@rows(
    ("x-nonsense", "é".encode(), "é"),
    ("utf-8", b"caf\xe9", "caf\ufffd"),
    ("punycode", b"abc", "abc"),
    ("base64", b"abc", "abc"),
    ("unicode_escape", b"\\x41", "\\x41"),
    ("a" * 500, b"abc", "abc"),
    ("\x01", b"abc", "abc"),
)
def test_a_wrong_charset_costs_characters_and_is_named(
    charset: str, body: bytes, text: str
) -> None:
    """Undecodable bytes are replaced, the rest stays, and there is a problem."""
    content = derive_content(_mail(f'Content-Type: text/plain; charset="{charset}"', body=body))
    assert content.text == text
    assert content.problems


@rows(
    ("base64", "aGVs\nbG8", "hello"),
    ("base64", "aGVsbG8=\n-- added by a list\n", "hello"),
    ("BASE64", "aGVs!bG8=", "hello"),
    ("base64", "aGVsbG8=aGVsbG8=", "hellohello"),
    ("base64", "aGVsb", "hel"),
    ("base64", "aGVsb=aGVs", "helhel"),
    ("quoted-printable", "a=3Db=zz=\nc", "a=b=zzc"),
    ("quoted-printable", "a= \nb=\t \nc", "abc"),
    ("quoted-printable", "a \t\nb  ", "a\nb"),
    ("quoted-printable", "a=20\nb=", "a \nb"),
    ('"quoted-printable"', "a=3Db", "a=b"),
    ("quoted_printable", "a=3Db", "a=b"),
    ("quoted printable", "a=3Db", "a=b"),
    ('"base64"', "aGVsbG8=", "hello"),
    ("base-64", "aGVsbG8=", "hello"),
    ("base64;", "aGVsbG8=", "hello"),
    ("base64", "aGVs bG8g d29y bGQ=", "hello world"),
    ("base64", "> aGVsbG8g\n> d29ybGQ=", "hello world"),
    ("base64", "Your code is 771299.", "Your code is 771299."),
    ("base64", "Your code is 771299", "Your code is 771299"),
    ("base64", "Grüße aus Köln", "Grüße aus Köln"),
    ("base64", "<p>Hello</p>\n\nBye, Ann", "<p>Hello</p>\n\nBye, Ann"),
    ("x-uuencode", "begin 644 a.txt\n%:&5L;&\\ \n`\nend", "hello"),
    ("uuencode", "begin 644 a.txt\n%:&5L;&\\\n \nend\n", "hello"),
    ("x-uue", "%:&5L;&\\", "hello"),
    ("8-bit", "é", "é"),
    ("8bit (comment)", "é", "é"),
    ("x-unknown", "abc", "abc"),
)
def test_transfer_encodings_are_undone_as_far_as_they_go(
    encoding: str, body: str, text: str
) -> None:
    """Damaged encodings are decoded as far as possible."""
    raw = _mail("Content-Type: text/plain", f"Content-Transfer-Encoding: {encoding}", body=body)
    assert derive_content(raw).text.startswith(text)


@rows(
    *product(
        ["=\n", "=\n\n", "= \n"],
        [
            "-- added by a list",
            "____\nlist\nhttps://list.example/",
            "Sent by the list of Ann",
            "> x=",
        ],
    )
)
def test_text_behind_the_end_of_base64_is_left_out(end: str, footer: str) -> None:
    """An appended footer is not decoded as base64, and is a problem."""
    raw = _mail("Content-Transfer-Encoding: base64", body=f"aGVsbG8{end}{footer}\n")
    content = derive_content(raw)
    assert content.text == "hello"
    assert "a base64 body has text after its end" in content.problems


def test_a_header_that_ends_in_text_keeps_the_text() -> None:
    """If the first line is not a field, it begins the body."""
    content = derive_content(b"Subject: s\r\nhello there\r\nhow are you\r\n")
    assert content.header_list == (("Subject", "s"),)
    assert content.text == "hello there\nhow are you\n"
    assert content.problems


def _is_complete(content: MessageContent) -> bool:
    texts = [content.text, content.html, *content.links, *content.codes, *content.problems]
    texts += [text for pair in content.header_list for text in pair]
    texts += [fact.filename for fact in content.attachments]
    return all("\0" not in text and text.encode("utf-8") is not None for text in texts)


@given(st.binary(max_size=2000))
def test_any_bytes_are_a_mail(raw: bytes) -> None:
    """Any bytes are accepted, and all texts can be stored as UTF-8."""
    assert _is_complete(derive_content(raw))


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_a_mutilated_mail_is_a_mail(seed: int, strokes: int) -> None:
    """Bytes of a real mail that are cut, doubled, swapped or replaced raise no error."""
    draw = random.Random(seed)
    data = bytearray(ALTERNATIVE + ALTERNATIVE)
    for _ in range(strokes):
        at, length = draw.randrange(len(data)), draw.randrange(1, 30)
        piece = data[at : at + length]
        match draw.randrange(4):
            case 0:
                del data[at : at + length]
            case 1:
                data[at:at] = piece * 3
            case 2:
                data[at : at + length] = draw.randbytes(length)
            case _:
                other = draw.randrange(len(data))
                data[other:other] = piece
        data = data or bytearray(b"x")
    raw = bytes(data)
    content = derive_content(raw)
    assert _is_complete(content)
    for fact in content.attachments:
        found = find_attachment(raw, fact.id)
        assert found is not None
        assert len(found.data) == fact.size


_WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=60
)


@given(_WORDS, _WORDS, st.lists(st.binary(max_size=200), max_size=4), _WORDS)
def test_the_standard_library_reads_the_same(
    text: str, html: str, attached: list[bytes], subject: str
) -> None:
    """A mail of email.message is read completely: text, HTML, subject and every attachment."""
    message = EmailMessage()
    message["Subject"] = subject
    message.set_content(text + "\n")
    message.add_alternative(html + "\n", subtype="html")
    for number, data in enumerate(attached):
        message.add_attachment(data, "application", "octet-stream", filename=f"ü {number}.bin")
    raw = message.as_bytes()
    content = derive_content(raw)
    assert content.text.rstrip("\n") == text
    assert content.html.rstrip("\n") == html
    assert [fact.filename for fact in content.attachments] == [
        f"ü {number}.bin" for number in range(len(attached))
    ]
    for number, data in enumerate(attached, 1):
        found = find_attachment(raw, str(number))
        assert found is not None
        assert found.data == data


def test_lines_that_end_in_lf_alone_are_read_and_noted() -> None:
    """A mail is read alike with both line ends; LF alone is noted."""
    raw = b"\n".join(
        [
            b"Subject: Welcome",
            b"MIME-Version: 1.0",
            b'Content-Type: multipart/mixed; boundary="b"',
            b"",
            b"--b",
            b"",
            b"Your code is 482913",
            b"--b",
            b"Content-Type: text/plain",
            b'Content-Disposition: attachment; filename="a.txt"',
            b"",
            b"one\ntwo",
            b"--b--",
            b"",
        ]
    )
    right, wrong = derive_content(raw.replace(b"\n", b"\r\n")), derive_content(raw)
    assert wrong == replace(right, problems=(LONE_LINE_FEEDS,))
    assert right.problems == ()
    attachment = find_attachment(raw, "1")
    assert attachment is not None
    assert attachment.data == b"one\r\ntwo"
    assert find_attachment(raw.replace(b"\n", b"\r\n"), "1") == attachment


@rows(
    ("Hello,\n\n  your code\tis 482913.\n", "Hello, your code is 482913."),
    ("Confirm: https://example.com/a?b=c\nor <https://example.com/d>", "Confirm: … or …"),
    ("https://example.com/only", "https://example.com/only"),
    ("=====\nNews\n-----", "News"),
    ("Sale" + "\u200c \u034f" * 200, "Sale"),
    (
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    ),
    ("x" * 500, "x" * 160),
    ("", ""),
)
def test_a_snippet_is_how_a_text_begins(text: str, snippet: str) -> None:
    """A snippet is one line without URLs, drawn lines and fillers; Persian keeps its joiners."""
    raw = _mail("Content-Type: text/plain; charset=utf-8", body=text)
    assert derive_content(raw).snippet == snippet


def test_a_snippet_of_html_is_what_is_seen() -> None:
    """Without text, the snippet is the start of the visible HTML."""
    raw = _mail("Content-Type: text/html", body="<style>p{}</style><h1>Hi</h1><p>there</p>")
    assert derive_content(raw).snippet == "Hi there"
