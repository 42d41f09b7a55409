"""The mail that is written from the fields of a request."""

import email
from email.message import EmailMessage
from email.policy import default

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import Instant
from mailcheck.operations.write_mail import (
    HTML,
    Alternative,
    File,
    OutgoingMail,
    Person,
    make_headers,
    make_person,
    parse_media_type,
    read_people,
    write_mail,
)
from tests.table import rows

AUTHOR = make_person("from", "Shop", "shop@example.com")
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=200)
LINES = st.lists(TEXTS.filter(lambda text: "\x85" not in text), max_size=5).map("\n".join)


def parsed(mail: OutgoingMail) -> EmailMessage:
    """Return a written mail as the standard library parses it."""
    raw = write_mail(mail, "id@mailcheck.example", Instant(1_700_000_000_000))
    message = email.message_from_bytes(raw, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def text_in(message: EmailMessage, kind: str) -> str:
    """Return the text of the part of a kind, with plain line ends."""
    part = message.get_body((kind,))
    assert part is not None
    found: str = part.get_content()
    return found.replace("\r\n", "\n")


@settings(max_examples=settings().max_examples // 2)
@given(text=LINES, html=LINES)
def test_texts_are_the_same_after_parsing(text: str, html: str) -> None:
    """Text and HTML in any language come back as they were sent, with or without a line end."""
    message = parsed(OutgoingMail(author=AUTHOR, text=text, html=html))
    assert text_in(message, "plain") == text
    assert text_in(message, "html") == html


@given(name=TEXTS, subject=TEXTS)
def test_names_and_subjects_are_the_same_after_parsing(name: str, subject: str) -> None:
    """Display names and subjects come back, apart from blanks, which header fields may fold."""
    person = make_person("to", name, "you@customer.example")
    message = parsed(OutgoingMail(author=AUTHOR, to=(person,), subject=subject, text="x"))
    assert "".join(str(message["Subject"]).split()) == "".join(subject.split())
    (address,) = message["To"].addresses
    assert "".join(address.display_name.split()) == "".join(name.split())
    assert address.addr_spec == "you@customer.example"


IDS = st.lists(st.from_regex(r"<[!-;=?-~]{1,300}@[a-z]{1,60}>", fullmatch=True), max_size=8)


@given(ids=IDS.filter(lambda ids: "=?" not in "".join(ids)))
@example(ids=[f"<{'a' * 100}@prod.outlook.com>"] * 3)
def test_identifiers_of_mails_are_never_encoded(ids: list[str]) -> None:
    """Identifiers of any length are in References as they are, in lines that are not too long."""
    mail = OutgoingMail(author=AUTHOR, text="x", headers=(("References", " ".join(ids)),))
    raw = write_mail(mail, "id@mailcheck.example", Instant(1_700_000_000_000))
    head = raw.partition(b"\r\n\r\n")[0].decode()
    _, _, value = head.replace("\r\n ", " ").partition("References:")
    assert value.split() == ids
    assert max(map(len, head.splitlines())) < 998
    assert all(line.strip() for line in head.splitlines())


@given(data=st.binary(max_size=500), name=TEXTS, content_type=TEXTS)
def test_files_are_the_same_after_parsing(data: bytes, name: str, content_type: str) -> None:
    """A file comes back byte for byte, whatever its name and its type are."""
    file = File(name, content_type, data)
    message = parsed(OutgoingMail(author=AUTHOR, text="x", files=(file,)))
    (part,) = message.iter_attachments()
    assert part.get_payload(decode=True) == data


MEDIA_TYPES = st.builds(
    "{}; {}={}".format,
    st.sampled_from(["text/calendar", "TEXT/X-AMP-HTML", "application/ics", "message/rfc822", "x"]),
    st.sampled_from(["method", "name", "charset", "a*", "na me"]) | st.text(max_size=5),
    st.text() | st.text('"\\;= =?utf-8?q?=0D=0AX:a?=', max_size=60),
)

FIELD_NAMES = st.from_regex(r"[!-9;-~]{1,40}", fullmatch=True) | st.sampled_from(
    [
        *("Reply-To", "Message-ID", "Date", "Resent-From", "Resent-To", "Resent-Date", "Resent-Cc"),
        *(
            "References",
            "In-Reply-To",
            "List-Unsubscribe",
            "Received",
            "Resent-Sender",
            "Orig-Date",
        ),
    ]
)


PART_FIELDS = {
    "mime-version",
    *(f"content-{name}" for name in ("type", "transfer-encoding", "disposition", "id")),
    "content-description",
}


@settings(max_examples=settings().max_examples // 2)
@given(
    headers=st.lists(st.tuples(FIELD_NAMES, st.text() | st.text('<>@,;:"()[]\\.=? a1'))),
    subject=st.text(),
    name=st.text(),
    text=st.text(),
    filename=st.text(),
    content_id=st.text(),
    content_type=MEDIA_TYPES,
)
def test_nothing_in_a_request_adds_header_fields(
    headers: list[tuple[str, str]],
    subject: str,
    name: str,
    text: str,
    filename: str,
    content_id: str,
    content_type: str,
) -> None:
    """Any characters in any field give one well-formed mail, without a field that was not sent."""
    person = Person(make_person("to", name, "you@customer.example").name, AUTHOR.mailbox)
    mail = OutgoingMail(
        author=AUTHOR,
        to=(person,),
        subject=subject,
        text=text,
        html=text,
        headers=make_headers("headers", headers),
        other_forms=(Alternative(parse_media_type(content_type) or HTML, text),),
        files=(
            File(filename, content_type, b"x", content_id, is_inline=True),
            File(filename, content_type, b"y", content_id, description=subject),
        ),
    )
    message = parsed(mail)
    ours = {"from", "to", "subject", "message-id", "date", "mime-version", "content-type"}
    sent = {field.lower() for field, _ in headers}
    assert {field.lower() for field in message} <= ours | sent
    assert len(list(message.walk())) >= 6
    for part in list(message.walk())[1:]:
        assert {field.lower() for field in part} <= PART_FIELDS


def test_an_inline_image_is_related_to_the_html() -> None:
    """An inline file with a Content-ID is beside the HTML, and other files are attached."""
    files = (
        File("a.png", "image/png", b"1", "logo", is_inline=True),
        File("b.pdf", "application/pdf", b"2"),
    )
    html = '<img src="cid:logo">'
    message = parsed(OutgoingMail(author=AUTHOR, text="x", html=html, files=files))
    related = message.get_body(("related",))
    assert related is not None
    assert [part["Content-ID"] for part in related.iter_parts()][1:] == ["<logo>"]
    assert [part.get_filename() for part in message.iter_attachments()] == ["b.pdf"]


def test_bcc_is_in_the_envelope_only() -> None:
    """Blind copies are recipients and not in the header; a recipient is there once."""
    to, bcc = (
        read_people("to", "You <you@example.com>, YOU@example.com"),
        read_people("b", "b@c.de"),
    )
    mail = OutgoingMail(author=AUTHOR, to=to, bcc=bcc, text="x")
    assert [str(one) for one in mail.recipients] == ["YOU@example.com", "b@c.de"]
    assert b"b@c.de" not in write_mail(mail, "id@x", Instant(0))


@rows("nobody", "a@", "@b.de", "a b@c.de", "<>")
def test_an_invalid_address_is_named(text: str) -> None:
    """The error has the name of the field and the value."""
    with pytest.raises(InvalidParameter, match="`to` must have addresses"):
        read_people("to", text)


def test_fields_that_follow_from_others_are_left_out() -> None:
    """A header cannot replace the author, and a name that is not a header name is an error."""
    assert make_headers("headers", [("From", "x@y.de"), ("X-A", "1")]) == (("X-A", "1"),)
    with pytest.raises(InvalidParameter, match="'X A'"):
        make_headers("headers", [("X A", "1")])


def test_a_given_message_id_and_date_are_kept() -> None:
    """A Message-ID, a Date and a Reply-To of the headers replace those of the service."""
    headers = (("message-id", "<mine@x>"), ("Date", "Mon, 01 Jan 2024 00:00:00 +0000"))
    message = parsed(OutgoingMail(author=AUTHOR, text="x", headers=headers))
    assert message.get_all("Message-ID") == ["<mine@x>"]
    assert message["Date"] == "Mon, 01 Jan 2024 00:00:00 +0000"


@rows(
    "=?utf-8?q?=0D=0AX-Hidden=3A_yes?=",
    "=?utf-8?b?DQpYLUhpZGRlbjogeWVz?=",
    "=?utf-7?q?+AA0ACg-X-Hidden=3A_yes?=",
    "=?x?q?=0D=0AX-Hidden=3A_yes?=",
    "Order =?utf-8*en?q?=0D=0AX-Hidden=3A_yes?=",
    "\u00e9 =?utf-8?q?=0AX-Hidden=3A_yes?=",
    "=?utf-8?q?=0DX-Hidden=3A_yes?=",
    '"=?utf-8?q?=0D=0AX-Hidden=3A_yes?="',
    "=?utf-8?q?=3D=3Futf-8=3Fq=3F=0D=0AX-Hidden=3A_yes=3F=3D?=",
)
def test_encoded_words_hide_no_header_fields(hidden: str) -> None:
    """A line break in an encoded word begins no header field, wherever the text stands."""
    person = make_person("to", hidden, "you@customer.example")
    mail = OutgoingMail(
        author=person,
        to=(person,),
        cc=(person,),
        reply_to=(person,),
        subject=hidden,
        text="x",
        html="x",
        headers=(("X-Own", hidden), ("Message-ID", hidden), ("Date", hidden)),
        other_forms=(
            Alternative(parse_media_type(f'text/calendar; method="{hidden}"') or HTML, "x"),
        ),
        files=(
            File(hidden, f'image/png; name="{hidden}"', b"x", hidden, is_inline=True),
            File(hidden, f"image/png; name={hidden}", b"y", hidden, description=hidden),
        ),
    )
    raw = write_mail(mail, "id@mailcheck.example", Instant(1_700_000_000_000))
    assert not [line for line in raw.splitlines() if line.startswith(b"X-Hidden")]
    assert b"\r" not in raw.replace(b"\r\n", b"")


def test_encoded_words_are_kept() -> None:
    """An encoded word with visible characters only is the text that it encodes."""
    message = parsed(OutgoingMail(author=AUTHOR, subject="=?utf-8?q?Gr=C3=BC=C3=9Fe?=", text="x"))
    assert message["Subject"] == "Gr\u00fc\u00dfe"


@rows(
    (
        "text/calendar; method=REQUEST; charset=UTF-8",
        "text/calendar; method=REQUEST; charset=UTF-8",
    ),
    ("TEXT/Plain;Format=Flowed", "text/plain; format=Flowed"),
    ('application/pdf; name="a b.pdf"', 'application/pdf; name="a b.pdf"'),
    ("text/csv;;header=present;", "text/csv; header=present"),
    ('text/x; a="q\\"q"', 'text/x; a="q\\"q"'),
    ("multipart/mixed; boundary=x", "application/octet-stream"),
    ("no type", "application/octet-stream"),
    ("text/plain; \r\nX-Hidden: yes", "text/plain"),
)
def test_parameters_of_a_content_type_are_kept(given: str, written: str) -> None:
    """The content type of a file is written with its parameters, unless it is invalid."""
    message = parsed(OutgoingMail(author=AUTHOR, text="x", files=(File("a", given, b"x"),)))
    (part,) = message.iter_attachments()
    assert dict(part.raw_items())["Content-Type"] == written


def test_a_parameter_in_any_language_is_encoded() -> None:
    """A value that is not ASCII is encoded as RFC 2231 says."""
    file = File("a", 'text/calendar; name="Einladung für Sie"', b"x")
    (part,) = parsed(OutgoingMail(author=AUTHOR, text="x", files=(file,))).iter_attachments()
    assert part["Content-Type"].params["name"] == "Einladung für Sie"


def test_a_content_type_is_not_endless() -> None:
    """A content type that is too long is an error that says so."""
    with pytest.raises(InvalidParameter, match="1,000 characters"):
        parse_media_type("text/plain; " + "a=b;" * 1_000)


def test_forms_of_the_text_are_in_the_order_that_programs_expect() -> None:
    """AMP stands before the HTML and an invitation after it, with its method."""
    kinds = ("text/calendar; method=REQUEST; charset=x", "application/ics", "text/x-amp-html")
    forms = tuple(Alternative(parse_media_type(kind) or HTML, "é") for kind in kinds)
    message = parsed(OutgoingMail(author=AUTHOR, text="t", html="h", other_forms=forms))
    assert message.get_content_type() == "multipart/alternative"
    written = [part["Content-Type"] for part in message.iter_parts()]
    assert written == [
        'text/plain; charset="utf-8"',
        'text/x-amp-html; charset="utf-8"',
        'text/html; charset="utf-8"',
        'text/calendar; method="REQUEST"; charset="utf-8"',
        "application/ics",
    ]
    texts = [part.get_payload(decode=True) for part in message.iter_parts()]
    assert texts == [one.encode() for one in "tehee".replace("e", "é")]


def test_an_attached_mail_is_not_encoded() -> None:
    """A mail that is attached is written as it is, which RFC 2046 5.2.1 requires."""
    mail = b"Subject: inner\n\nbody\n"
    file = File("a.eml", "message/rfc822", mail)
    (part,) = parsed(OutgoingMail(author=AUTHOR, text="x", files=(file,))).iter_attachments()
    assert part.get_content()["Subject"] == "inner"
    assert part["Content-Transfer-Encoding"] == "7bit"


@rows(
    (True, "logo", "inline", "<logo>"),
    (True, "", "inline", None),
    (False, "logo", "attachment", "<logo>"),
)
def test_a_file_has_the_disposition_of_the_request(
    is_inline: bool, content_id: str, disposition: str, written: str | None
) -> None:
    """Disposition and Content-ID are kept, each without the other too."""
    file = File("a.png", "image/png", b"x", content_id, is_inline=is_inline, description="Our logo")
    message = parsed(OutgoingMail(author=AUTHOR, html="x", files=(file,)))
    part = next(one for one in message.walk() if one.get_content_type() == "image/png")
    assert part.get_content_disposition() == disposition
    assert (part["Content-ID"], part["Content-Description"]) == (written, "Our logo")
