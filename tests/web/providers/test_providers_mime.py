"""The mail that is written from the fields of a request."""

import email
from email.message import EmailMessage
from email.policy import default

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import Instant
from mailcheck.web.providers.mime import (
    File,
    OutgoingMail,
    Person,
    make_headers,
    make_person,
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
    return found.replace("\r\n", "\n").removesuffix("\n")


@given(text=LINES, html=LINES)
def test_texts_are_the_same_after_parsing(text: str, html: str) -> None:
    """Text and HTML in any language come back as they were sent, apart from the last line end."""
    message = parsed(OutgoingMail(author=AUTHOR, text=text, html=html))
    assert text_in(message, "plain") == text.removesuffix("\n")
    assert text_in(message, "html") == html.removesuffix("\n")


@given(name=TEXTS, subject=TEXTS)
def test_names_and_subjects_are_the_same_after_parsing(name: str, subject: str) -> None:
    """Display names and subjects come back, apart from blanks, which header fields may fold."""
    person = make_person("to", name, "you@customer.example")
    message = parsed(OutgoingMail(author=AUTHOR, to=(person,), subject=subject, text="x"))
    assert "".join(str(message["Subject"]).split()) == "".join(subject.split())
    (address,) = message["To"].addresses
    assert "".join(address.display_name.split()) == "".join(name.split())
    assert address.addr_spec == "you@customer.example"


@given(data=st.binary(max_size=500), name=TEXTS, content_type=TEXTS)
def test_files_are_the_same_after_parsing(data: bytes, name: str, content_type: str) -> None:
    """A file comes back byte for byte, whatever its name and its type are."""
    file = File(name, content_type, data)
    message = parsed(OutgoingMail(author=AUTHOR, text="x", files=(file,)))
    (part,) = message.iter_attachments()
    assert part.get_payload(decode=True) == data


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


@given(
    headers=st.lists(st.tuples(FIELD_NAMES, st.text() | st.text('<>@,;:"()[]\\.=? a1'))),
    subject=st.text(),
    name=st.text(),
    text=st.text(),
    filename=st.text(),
    content_id=st.text(),
)
def test_nothing_in_a_request_adds_header_fields(
    headers: list[tuple[str, str]],
    subject: str,
    name: str,
    text: str,
    filename: str,
    content_id: str,
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
        files=(File(filename, "", b"x", content_id), File(filename, "image/png", b"y")),
    )
    message = parsed(mail)
    ours = {"from", "to", "subject", "message-id", "date", "mime-version", "content-type"}
    sent = {field.lower() for field, _ in headers}
    assert {field.lower() for field in message} <= ours | sent
    assert len(list(message.walk())) >= 5


def test_an_inline_image_is_related_to_the_html() -> None:
    """A file with a Content-ID is beside the HTML that shows it, and other files are attached."""
    files = (File("a.png", "image/png", b"1", "logo"), File("b.pdf", "application/pdf", b"2"))
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
        files=(File(hidden, "", b"x", hidden), File(hidden, "image/png", b"y")),
    )
    raw = write_mail(mail, "id@mailcheck.example", Instant(1_700_000_000_000))
    assert not [line for line in raw.splitlines() if line.startswith(b"X-Hidden")]
    assert b"\r" not in raw.replace(b"\r\n", b"")


def test_encoded_words_are_kept() -> None:
    """An encoded word with visible characters only is the text that it encodes."""
    message = parsed(OutgoingMail(author=AUTHOR, subject="=?utf-8?q?Gr=C3=BC=C3=9Fe?=", text="x"))
    assert message["Subject"] == "Gr\u00fc\u00dfe"
