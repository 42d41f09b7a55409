"""The ready-made mails of the inbound simulator, as the standard library and we read them."""

import email
import re
from email.message import EmailMessage
from email.policy import default

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mailcheck.checks.content.bodies import choose_bodies, list_attachments, read_bodies
from mailcheck.checks.content.bounces import Bounce, find_parts, read_bounce
from mailcheck.checks.content.structure import scan_structure
from mailcheck.checks.receiver_reports.feedback import read_feedback_mail
from mailcheck.core.addresses import Mailbox
from mailcheck.core.domains.receiver_reports import FeedbackType
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.inbound import READY_MAILS, MailProgram, Place, ReadyMail
from mailcheck.core.instants import Instant
from mailcheck.operations.inbound.quoting import read_quoted, reply_subject, write_reply
from mailcheck.operations.inbound.ready_mails import (
    LARGE,
    WrittenMail,
    find_people,
    write_ready_mail,
)
from mailcheck.operations.inbound.scenes import Occasion, Original
from mailcheck.operations.write_mail import OutgoingMail, make_person, write_mail
from tests.table import rows

NOW = Instant(1_795_944_000_000)
ANA = make_person("from", "Ana Gómez", "ana@customer.example")
SUPPORT = make_person("to", "", "support+ticket-7@app.example")

SENT = write_mail(
    OutgoingMail(
        author=SUPPORT,
        to=(ANA,),
        subject="Ticket 7",
        text="Hello,\n\nwhat is the number?\n\nYour support\n",
        html="<html><body><p>Hello,</p><p>what is the number?</p></body></html>",
        headers=(("References", "<first@app.example>"), ("Message-ID", "<second@app.example>")),
    ),
    "unused",
    NOW,
)
ORIGINAL = Original(SENT, "bounce+9@app.example", "ana@customer.example")

OF_SMALL_SIZE = sorted(set(ReadyMail) - {ReadyMail.LARGE})


def written(name: ReadyMail, original: Original | None = ORIGINAL) -> WrittenMail:
    """Return a ready-made mail about a message, or about an invented one."""
    author, recipient = (ANA, SUPPORT.mailbox) if original is None else find_people(name, original)
    return write_ready_mail(
        name,
        Occasion(author=author, recipient=recipient, now=NOW, seed=b"seed", original=original),
    )


def parsed(mail: WrittenMail) -> EmailMessage:
    """Return a mail as the standard library parses it."""
    message = email.message_from_bytes(mail.raw_message, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def text_of(mail: WrittenMail) -> tuple[str, str]:
    """Return the text and the HTML that our readers show."""
    raw = mail.raw_message
    problems: list[str] = []
    bodies = read_bodies(raw, choose_bodies(scan_structure(raw).root), problems)
    assert problems == []
    return bodies.text, bodies.html


def bounce_of(mail: WrittenMail) -> Bounce:
    """Return what the page of a message shows of a bounce."""
    raw = mail.raw_message
    parts = list_attachments(scan_structure(raw).root)
    found = find_parts([part.content_type for part in parts])
    assert found is not None
    status, returned = found
    assert returned is not None
    bounce = read_bounce(raw[slice(*parts[status].body)], raw[slice(*parts[returned].body)])
    assert bounce is not None
    return bounce


def test_the_table_has_every_mail() -> None:
    """Each ready-made mail has a title and an explanation, and is listed once."""
    assert set(READY_MAILS) == set(ReadyMail)
    titles = [facts.title for facts in READY_MAILS.values()]
    assert len(set(titles)) == len(titles)


@rows(
    *((name, ORIGINAL) for name in OF_SMALL_SIZE),
    *((name, None) for name in ReadyMail if READY_MAILS[name].refers),
)
def test_every_mail_is_valid(name: ReadyMail, original: Original | None) -> None:
    """Each mail has the fields that a mail must have, CRLF line ends, and no defects."""
    mail = written(name, original)
    raw, message = mail.raw_message, parsed(mail)
    assert raw.count(b"\n") == raw.count(b"\r\n") == raw.count(b"\r")
    assert scan_structure(raw).problems == ()
    names = [field.lower() for field in message.keys()]  # noqa: SIM118 - fields occur repeatedly
    assert len(names) == len(set(names))
    assert {"from", "to", "date", "message-id"} <= set(names)
    assert all(not part.defects for part in message.walk())
    assert message["To"].addresses[0].addr_spec == str(mail.recipient)
    assert re.fullmatch(r"<[^<>@\s]+@[a-z.]+>", str(message["Message-ID"]))


@rows(*(name for name in ReadyMail if READY_MAILS[name].refers))
def test_mails_about_a_message_name_it(name: ReadyMail) -> None:
    """A mail that is about a message has its Message-ID where real mails of this kind have it."""
    mail = written(name)
    message = parsed(mail)
    assert b"<second@app.example>" in mail.raw_message
    is_answer = name.startswith("reply-") or name is ReadyMail.OUT_OF_OFFICE
    if is_answer:
        assert message["References"] == "<first@app.example> <second@app.example>"
    if is_answer or name is ReadyMail.HARD_BOUNCE:
        assert message["In-Reply-To"] == "<second@app.example>"


@rows(
    (ReadyMail.HARD_BOUNCE, "Not delivered", "5.1.1", "The mailbox does not exist."),
    (ReadyMail.SOFT_BOUNCE, "Not delivered", "4.2.2", "The mailbox is full."),
    (ReadyMail.DELAYED, "Delayed", "4.4.1", "The receiving server does not answer."),
)
def test_notifications_say_what_became_of_a_mail(
    name: ReadyMail, title: str, code: str, meaning: str
) -> None:
    """Our card of bounces shows recipient, action, code and the mail that was not delivered."""
    mail = written(name)
    bounce = bounce_of(mail)
    (recipient,) = bounce.recipients
    assert (bounce.title, recipient.address) == (title, "ana@customer.example")
    assert (recipient.code, recipient.meaning) == (code, meaning)
    assert bounce.mail is not None
    assert (bounce.mail.subject, bounce.mail.message_id) == ("Ticket 7", "<second@app.example>")
    assert (mail.envelope_sender, str(mail.recipient)) == ("", "bounce+9@app.example")
    assert parsed(mail).get_content_type() == "multipart/report"


def test_a_large_message_is_returned_as_its_header() -> None:
    """Postfix returns only the header of a message of more than 50,000 octets."""
    large = Original(SENT + b"x" * 60_000 + b"\r\n", "app@app.example", "ana@customer.example")
    mail = written(ReadyMail.SOFT_BOUNCE, large)
    assert len(mail.raw_message) < 5_000
    assert bounce_of(mail).mail is not None


@rows("ana", "josé", "あな", "a'b")
def test_addresses_in_any_language_bounce(local_part: str) -> None:
    """The address in a bounce is that of the recipient, also if it is not ASCII (RFC 6533)."""
    address = f"{local_part}@customer.example"
    bounce = bounce_of(written(ReadyMail.SOFT_BOUNCE, Original(SENT, "a@app.example", address)))
    assert [one.address for one in bounce.recipients] == [address]


def test_a_complaint_is_read_as_a_complaint() -> None:
    """Our reader of feedback reports finds type, source, domains and recipient of a complaint."""
    report = read_feedback_mail(written(ReadyMail.COMPLAINT).raw_message, keeps_mail=True)
    assert report.feedback.type is FeedbackType.ABUSE
    assert report.feedback.source == "203.0.113.9"
    assert report.feedback.author_domain == "app.example"
    assert report.problems == ()
    assert report.feedback.mail is not None
    assert "ana@customer.example" in report.feedback.mail.recipients


def test_automatic_replies_ask_for_no_answer() -> None:
    """An automatic reply has an empty envelope sender and the fields by which it is recognised."""
    mail = written(ReadyMail.OUT_OF_OFFICE)
    message = parsed(mail)
    assert mail.envelope_sender == ""
    assert message["Auto-Submitted"] == "auto-replied"
    assert message["Subject"] == "Automatic reply: Ticket 7"


def test_replies_go_to_reply_to_or_from() -> None:
    """A reply of a person goes to Reply-To, or else to From, and comes from the recipient."""
    for head, address in (
        (b"", "support+ticket-7@app.example"),
        (b"Reply-To: a@b.example\r\n", "a@b.example"),
    ):
        original = Original(head + SENT, "bounce@app.example", "ana@customer.example")
        author, recipient = find_people(None, original)
        assert (author, str(recipient)) == (ANA, address)


def test_a_message_without_an_address_is_not_answered() -> None:
    """A message without a sender has nobody who could get a reply; the caller must name one."""
    original = Original(b"Subject: x\r\n\r\n", "", "ana@customer.example")
    with pytest.raises(InvalidParameter):
        find_people(ReadyMail.HARD_BOUNCE, original)


SUPPORT_TWICE = "support+ticket-7@app.example <support+ticket-7@app.example>"

QUOTATIONS = {
    ReadyMail.REPLY_GMAIL_ABOVE: """
On Sun, Nov 29, 2026 at 9:20\u202fAM <support+ticket-7@app.example> wrote:

> Hello,
>
> what""",
    ReadyMail.REPLY_APPLE_ABOVE: """
> On 29 Nov 2026, at 09:20, <support+ticket-7@app.example> wrote:
>
> Hello,
>
> what""",
    ReadyMail.REPLY_OUTLOOK_ABOVE: f"""
________________________________
From: {SUPPORT_TWICE}
Sent: Sunday, November 29, 2026 9:20 AM
To: Ana Gómez <ana@customer.example>
Subject: Ticket 7

Hello,

what""",
}


@rows(*QUOTATIONS.items())
def test_programs_quote_in_their_own_way(name: ReadyMail, quotation: str) -> None:
    """The text of a reply quotes as its program does."""
    assert quotation in text_of(written(name))[0]


def test_gmail_breaks_a_long_line() -> None:
    """In front of a quotation, Gmail writes "wrote:" in a line of its own if the line is long."""
    quoted = read_quoted(SENT.replace(b"From: ", b'From: "The whole support" '), NOW)
    assert ".example>\nwrote:\n\n> Hello" in write_reply(quoted, "Yes", MailProgram.GMAIL).text


@rows(
    (MailProgram.GMAIL, '<div class="gmail_quote gmail_quote_container">', "gmail_attr"),
    (MailProgram.APPLE_MAIL, '<blockquote type="cite"', "Apple-interchange-newline"),
    (MailProgram.OUTLOOK, "border-top:solid #E1E1E1 1.0pt", "<b>Sent:</b>"),
)
def test_html_has_the_marks_by_which_quotes_are_found(
    program: MailProgram, mark: str, other: str
) -> None:
    """The HTML of a reply has the elements by which programs find where the quotation begins."""
    for place in Place:
        _, html = text_of(written(ReadyMail(f"reply-{program}-{place}")))
        assert html.count(other) == 1
        assert mark in html
        assert "what is the number?" in html
        assert html.lower().count("<html") <= 1


@rows(*MailProgram)
def test_the_place_of_an_answer_is_the_chosen_one(program: MailProgram) -> None:
    """The answer is above, below, or between the quoted lines, in text and in HTML."""
    quoted = read_quoted(SENT, NOW)
    orders = {
        Place.ABOVE: ["One", "Two", "Hello", "number"],
        Place.BELOW: ["Hello", "number", "One", "Two"],
        Place.BETWEEN: ["Hello", "One", "number", "Two"],
    }
    for place, order in orders.items():
        reply = write_reply(quoted, "One\n\nTwo", program, place)
        for form in (reply.text, reply.html):
            assert sorted(order, key=form.index) == order


@rows(
    ("Ticket 7", "Re: Ticket 7"), ("Re: Ticket 7", "Re: Ticket 7"), ("AW: a", "AW: a"), ("", "Re: ")
)
def test_a_subject_gets_one_prefix(subject: str, reply: str) -> None:
    """A reply to a reply has the same subject."""
    assert reply_subject(subject) == reply


def test_a_thread_of_any_length_is_referred_to() -> None:
    """References has the first identifier and the last ones, and never grows beyond bounds."""
    ids = [f"<{number}.{'x' * 100}@app.example>" for number in range(500)]
    found = read_quoted(f"Message-ID: <a@b>\r\nReferences: {' '.join(ids)}\r\n\r\n".encode(), NOW)
    assert found.ids[0] == ids[0]
    assert found.ids[-2:] == (ids[-1], "<a@b>")
    assert 9_000 < len(" ".join(found.ids)) <= 10_010


def test_the_empty_mail_is_empty() -> None:
    """An empty mail has neither subject nor text nor a type."""
    mail = written(ReadyMail.EMPTY)
    message = parsed(mail)
    assert (message["Subject"], message["Content-Type"], message.get_payload()) == (None, None, "")
    assert text_of(mail) == ("", "")


def test_the_large_mail_has_25_megabytes() -> None:
    """The large mail is at most one line smaller than 25 MiB, and its file is valid base64."""
    mail = written(ReadyMail.LARGE)
    assert LARGE - 78 < len(mail.raw_message) <= LARGE
    (file,) = list_attachments(scan_structure(mail.raw_message).root)
    assert (file.filename, file.encoding) == ("video.bin", "base64")
    start, end = file.body
    assert end - start > LARGE - 2_000


def test_a_hundred_files_are_a_hundred() -> None:
    """The mail with many files has 100 of them, with equal, missing and dangerous names."""
    names = [
        part.get_filename() for part in parsed(written(ReadyMail.MANY_FILES)).iter_attachments()
    ]
    assert len(names) == 100
    assert names.count("photo.txt") == 10
    assert {"", "../../etc/passwd"} <= {name or "" for name in names}


def test_a_forwarded_mail_is_inside() -> None:
    """The mail inside is the stored message, byte for byte, and not the text of the mail."""
    mail = written(ReadyMail.FORWARDED)
    root = scan_structure(mail.raw_message).root
    (inside,) = list_attachments(root)
    assert inside.content_type == "message/rfc822"
    assert mail.raw_message[slice(*inside.body)] == SENT
    assert "number" not in text_of(mail)[0]


def test_japanese_is_not_utf_8() -> None:
    """Name, subject and text of the Japanese mail are in ISO-2022-JP, and are read as Japanese."""
    mail = written(ReadyMail.ISO_2022_JP)
    message = parsed(mail)
    assert mail.raw_message.isascii()
    assert message["Subject"] == "ご注文の確認"
    assert message["From"].addresses[0].display_name == "山田花子"
    assert text_of(mail)[0].startswith("お世話になっております。\n")


def test_the_long_subject_has_2000_characters() -> None:
    """The long subject has 2,000 characters, in lines of the usual length."""
    mail = written(ReadyMail.LONG_SUBJECT)
    assert len(str(parsed(mail)["Subject"])) == 2_000
    assert max(map(len, mail.raw_message.splitlines())) <= 78


def test_the_injection_adds_no_fields() -> None:
    """The injected fields are encoded, so that only programs that decode too early see them."""
    mail = written(ReadyMail.INJECTION)
    message = parsed(mail)
    assert message["Bcc"] is None
    assert b"=0D=0ABcc" in mail.raw_message
    assert "<script>" in text_of(mail)[1]
    assert (
        re.findall(rb"https?://([^/\"?]+)", mail.raw_message.replace(b"attacker.invalid", b""))
        == []
    )


ORIGINALS = st.binary(max_size=300) | st.builds(
    lambda fields, body: (
        "".join(f"{name}: {value}\r\n" for name, value in fields).encode() + b"\r\n" + body
    ),
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "From",
                    "Reply-To",
                    "To",
                    "Subject",
                    "Date",
                    "Message-ID",
                    "References",
                    "In-Reply-To",
                    "Content-Type",
                ]
            ),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
            | st.sampled_from(["<a@b.example>", "text/html", "=?utf-8?q?=0D=0AX-Bad:_1?="]),
        ),
        max_size=8,
    ),
    st.binary(max_size=200),
)


@settings(max_examples=settings().max_examples // 2)
@given(raw=ORIGINALS, name=st.sampled_from(OF_SMALL_SIZE))
@example(
    raw=b"From: a@b.example\r\nSubject: " + b"x" * 3_000 + b"\r\n\r\n",
    name=ReadyMail.REPLY_GMAIL_ABOVE,
)
def test_any_message_can_be_referred_to(raw: bytes, name: ReadyMail) -> None:
    """A mail about any message, however malformed, is a mail with only its own header fields."""
    author = make_person("from", "Ana", "ana@customer.example")
    original = Original(raw, "", "ana@customer.example")
    occasion = Occasion(
        author=author, recipient=Mailbox("app", "app.example"), now=NOW, seed=raw, original=original
    )
    mail = write_ready_mail(name, occasion)
    names = {field.name.lower() for field in scan_structure(mail.raw_message).fields}
    assert {"from", "to", "date", "message-id"} <= names
    assert "x-bad" not in names
    assert not parsed(mail).defects
