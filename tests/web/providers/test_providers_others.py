"""The APIs of SendGrid, Mailgun, Brevo and Mailtrap."""

import base64
from typing import Any

import pytest

from mailcheck.core.errors import MailTooLarge
from mailcheck.operations.write_mail import File, OutgoingMail, make_person
from mailcheck.web.providers.conversion import MAX_TOTAL, RequestSize
from tests.house import House
from tests.table import rows
from tests.web.provider_requests import newest, post, raw_mail, received, with_fields

SENDGRID = "/providers/sendgrid/v3/mail/send"
MAILGUN = "/providers/mailgun/v3/<domain>/messages"
BREVO = "/providers/brevo/v3/smtp/email"
MAILTRAP, MAILTRAP_BATCH = "/providers/mailtrap/api/send", "/providers/mailtrap/api/batch"

ONE = base64.b64encode(b"one").decode()
YOU = {"email": "you@customer.example"}


def multipart(fields: list[tuple[str, str]], files: list[tuple[str, str, bytes]]) -> bytes:
    """Return a form with files, with the boundary ``x``."""
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields
    ]
    parts += [
        f'--x\r\nContent-Disposition: form-data; name="{name}"; filename="{file}"\r\n'
        f"Content-Type: application/octet-stream\r\n\r\n".encode()
        + data
        + b"\r\n"
        for name, file, data in files
    ]
    return b"".join(parts) + b"--x--\r\n"


def test_sendgrid_sends_a_mail_for_each_personalization(house: House) -> None:
    """Each personalization has its own recipients, subject, headers and substitutions."""
    personal = [
        {"to": [{**YOU, "name": "You"}], "bcc": [{"email": "b@customer.example"}]},
        {
            "to": [{"email": "ann@customer.example"}],
            "subject": "Hello -name-",
            "substitutions": {"-name-": "Ann", "code": "CODE"},
            "headers": {"X-Own": "1"},
            "custom_args": {"id": "7"},
            "send_at": 1_800_000_000,
        },
    ]
    value = with_fields(
        SENDGRID,
        personalizations=personal,
        categories=["order"],
        reply_to_list=[{"email": "help@example.com"}],
        attachments=[
            {"content": ONE, "filename": "a.txt", "type": "text/plain"},
            {
                "content": ONE,
                "filename": "l.png",
                "type": "image/png",
                "disposition": "inline",
                "content_id": "logo",
            },
        ],
    )
    answer = post(house, SENDGRID, value)
    assert (answer.status, answer.body) == (202, b"")
    messages = {one["to"]: one for one in received(house)}
    assert set(messages) == {f"{name}@customer.example" for name in ("you", "b", "ann")}
    assert answer.headers["x-message-id"] == messages["you@customer.example"]["deliveryId"]
    mail = raw_mail(house, messages["ann@customer.example"])
    assert (mail["Subject"], mail["X-Own"]) == ("Hello Ann", "1")
    assert (mail["Reply-To"], mail["X-Scheduled-At"]) == ("help@example.com", "1800000000")
    assert mail["X-SMTPAPI"] == '{"category":["order"],"unique_args":{"id":"7"}}'
    assert "Your CODE is" in messages["ann@customer.example"]["text"]
    attachments = messages["ann@customer.example"]["attachments"]
    assert [(one["filename"], one["contentId"]) for one in attachments] == [
        ("l.png", "logo"),
        ("a.txt", None),
    ]


def test_sendgrid_checks_a_mail_of_the_sandbox(house: House) -> None:
    """In the sandbox mode, a mail is checked and not stored."""
    sandbox = {"sandbox_mode": {"enable": True}}
    assert post(house, SENDGRID, with_fields(SENDGRID, mail_settings=sandbox)).status == 200
    bad = with_fields(SENDGRID, mail_settings=sandbox, subject=None)
    assert post(house, SENDGRID, bad).status == 400
    assert received(house) == []


def test_mailgun_reads_multipart_forms(house: House) -> None:
    """Files, inline files, tags, variables and headers of a form are in the mail."""
    data = multipart(
        [
            ("from", "Shop <shop@example.com>"),
            ("to", "you@customer.example"),
            ("to", "ann@customer.example"),
            ("cc", "cc@customer.example"),
            ("subject", "Ünï"),
            ("html", '<img src="cid:l.png">'),
            ("h:Reply-To", "help@example.com"),
            ("h:X-Own", "1"),
            ("o:tag", "a"),
            ("o:tag", "b"),
            ("v:id", "7"),
        ],
        [("attachment", "a.bin", b"\r\n\0\xff\r"), ("inline", "l.png", b"png")],
    )
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = post(house, MAILGUN, data, headers=headers)
    assert answer.json["message"] == "Queued. Thank you."
    message = received(house)[0]
    mail = raw_mail(house, message)
    assert mail["Message-ID"] == answer.json["id"]
    assert (mail["Subject"], mail["Reply-To"], mail["X-Own"]) == ("Ünï", "help@example.com", "1")
    assert mail.get_all("X-Mailgun-Tag") == ["a", "b"]
    assert mail["X-Mailgun-Variables"] == '{"id":"7"}'
    assert [part.get_payload(decode=True) for part in mail.iter_attachments()] == [b"\r\n\0\xff\r"]
    assert {one["contentId"] for one in message["attachments"]} == {"l.png", None}
    assert '"size": 5' in message["request"]


def test_mailgun_stores_mime_as_it_is(house: House) -> None:
    """A mail that is posted whole is stored byte for byte, for the recipients of the form."""
    raw = b"From: a@example.com\nTo: x@y.z\n\nbody \xff\r\n"
    data = multipart([("to", "you@customer.example")], [("message", "m.eml", raw)])
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert post(house, f"{MAILGUN}.mime", data, headers=headers).status == 200
    (message,) = received(house)
    assert message["to"] == "you@customer.example"
    shown = house.get(f"/inbox/messages/{message['id']}/raw").json
    assert base64.b64decode(shown["raw"]) == raw


def test_mailgun_sends_a_mail_for_each_recipient_with_variables(house: House) -> None:
    """With recipient variables, each recipient gets a mail of its own with its values."""
    value = with_fields(
        MAILGUN,
        to="a@customer.example, b@customer.example",
        subject="For %recipient.name%",
        **{"recipient-variables": '{"a@customer.example": {"name": "Ann"}}'},
    )
    assert post(house, MAILGUN, value).status == 200
    mails = {one["to"]: one["subject"] for one in received(house)}
    assert mails == {
        "a@customer.example": "For Ann",
        "b@customer.example": "For %recipient.name%",
    }


@rows("Basic x", "Basic eDp5", "Bearer k", "Basic YXBpOg==")
def test_mailgun_needs_the_user_api(house: House, given: str) -> None:
    """Another scheme, another user and an empty password are rejected, and the error says why."""
    answer = post(house, MAILGUN, headers={"Authorization": given})
    assert (answer.status, answer.json["message"].count("Basic")) == (401, 1)


@rows(b"", b"--x", b"\xff" * 100)
def test_a_form_that_cannot_be_parsed_is_400(house: House, body: bytes) -> None:
    """A multipart body without an end, or of another type, is an error of the client."""
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert post(house, MAILGUN, body, headers=headers).status == 400
    assert post(house, MAILGUN, body, headers={"Content-Type": "text/plain"}).status == 400


def test_brevo_sends_a_mail_for_each_version(house: House) -> None:
    """Versions differ in recipients, subject and parameters; the answer has an id for each."""
    value = with_fields(
        BREVO,
        subject="Hi {{params.name}}",
        params={"name": "all"},
        tags=["a", "b"],
        replyTo={"email": "help@example.com"},
        headers={"X-Own": "1"},
        scheduledAt="2027-01-01T00:00:00Z",
        attachment=[{"name": "a.txt", "content": ONE}, {"url": "https://example.com/b"}],
        messageVersions=[{"to": [YOU]}, {"to": [YOU], "params": {"name": "Ann"}}],
    )
    answer = post(house, BREVO, value)
    messages = received(house)
    assert [one["subject"] for one in messages] == ["Hi all", "Hi Ann"]
    mails = [raw_mail(house, one) for one in messages]
    assert [one["Message-ID"] for one in mails] == answer.json["messageIds"]
    mail = mails[0]
    assert (mail["X-Mailin-Tag"], mail["X-Own"]) == ("a, b", "1")
    assert (mail["Reply-To"], mail["X-Scheduled-At"]) == (
        "help@example.com",
        "2027-01-01T00:00:00Z",
    )
    files = [str(part.get_filename()) for part in mail.iter_attachments()]
    assert files == ["a.txt", "attachment.url.txt"]


@rows(
    ({"id": 3}, ("sender-3@brevo.example", "")),
    ({"id": 3, "name": "Shop"}, ("sender-3@brevo.example", "Shop")),
    ({"id": 3, "email": "shop@example.com"}, ("shop@example.com", "")),
)
def test_brevo_knows_senders_by_their_number(
    house: House, sender: dict[str, Any], expected: tuple[str, str]
) -> None:
    """A sender of the account is shown by its number, unless the request has an address."""
    assert post(house, BREVO, with_fields(BREVO, sender=sender)).status == 201
    author = newest(house)["from"]
    assert (author["address"], author["name"] or "") == expected


def test_brevo_needs_an_address_or_a_number(house: House) -> None:
    """A sender with a name only is rejected, and the error says what to send."""
    answer = post(house, BREVO, with_fields(BREVO, sender={"name": "Shop"}))
    assert (answer.status, "email or id" in answer.json["message"]) == (400, True)


def test_brevo_checks_a_mail_of_the_sandbox(house: House) -> None:
    """With X-Sib-Sandbox a mail is checked, answered with an id, and not stored."""
    headers = {"x-sib-sandbox": "drop"}
    answer = post(house, BREVO, with_fields(BREVO, headers=headers))
    assert answer.status == 201
    assert answer.json["messageId"].endswith("@mailcheck.example>")
    bad = with_fields(BREVO, headers=headers, subject=None)
    assert post(house, BREVO, bad).status == 400
    assert received(house) == []


def test_mailtrap_reads_a_list_of_replies(house: House) -> None:
    """Reply-To is one address, or several in a batch."""
    replies = [{"email": "a@example.com"}, {"email": "b@example.com"}]
    value = {"requests": [with_fields(MAILTRAP, reply_to=replies)]}
    assert post(house, f"{MAILTRAP_BATCH}/<inbox_id>", value).status == 200
    assert raw_mail(house, received(house)[0])["Reply-To"] == "a@example.com, b@example.com"


def test_mailtrap_reads_both_places_of_the_key(house: House) -> None:
    """The key may be in Api-Token instead of Authorization."""
    headers = {"Authorization": "", "Api-Token": house.key}
    assert post(house, MAILTRAP, headers=headers).status == 200


def test_mailtrap_batches_have_a_base(house: House) -> None:
    """Mails of a batch have the fields of the base, and each has its own outcome."""
    base = with_fields(MAILTRAP, to=None, category="order", custom_variables={"id": 7})
    value = {"base": base, "requests": [{"to": [YOU]}, {"to": [{"email": "nobody"}]}]}
    answer = post(house, MAILTRAP_BATCH, value).json
    assert [one["success"] for one in answer["responses"]] == [True, False]
    (message,) = received(house)
    assert answer["responses"][0]["message_ids"] == [message["deliveryId"]]
    mail = raw_mail(house, message)
    assert (mail["X-MT-Category"], mail["X-MT-Custom-Variables"]) == ("order", '{"id":7}')


@rows(
    (SENDGRID, {"template_id": "d-1", "subject": None, "content": None}),
    (MAILGUN, {"template": "d-1", "text": None, "html": None}),
    (BREVO, {"templateId": 71, "subject": None, "sender": None}),
    (MAILTRAP, {"template_uuid": "d-1", "subject": None, "text": None}),
)
def test_a_template_is_named_in_the_text(house: House, path: str, fields: dict[str, Any]) -> None:
    """A template, which exists at the provider only, is named in text and header."""
    assert post(house, path, with_fields(path, **fields)).status < 300
    message = received(house)[0]
    name = raw_mail(house, message)["X-Template"]
    assert name in ("d-1", "71")
    assert f"Template: {name}" in message["text"]


def test_a_request_with_too_many_recipients_is_rejected(house: House) -> None:
    """A request does not fill the inbox with a message for each of a million recipients."""
    people = [{"email": f"a{number}@customer.example"} for number in range(101)]
    value = with_fields(SENDGRID, personalizations=[{"to": people}] * 10)
    answer = post(house, SENDGRID, value)
    assert answer.status == 400
    assert "1,000 recipients" in answer.body.decode()
    assert received(house) == []


def test_a_request_with_too_many_bytes_in_all_is_rejected() -> None:
    """A file that a thousand mails repeat does not fill the memory: each of them counts it."""
    person = make_person("to", "", "a@example.org")
    file = File("x", "", bytes(MAX_TOTAL // 2 + 1))
    size, mail = RequestSize(), OutgoingMail(author=person, to=(person,), files=(file,))
    size.add(mail)
    with pytest.raises(MailTooLarge, match="send fewer at once"):
        size.add(mail)
