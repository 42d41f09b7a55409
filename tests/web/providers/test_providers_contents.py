"""What a request contains is in the mail: types of files, their dispositions, and all forms."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

from tests.house import House
from tests.table import rows
from tests.web.provider_requests import newest, post, raw_mail, with_fields

RESEND, POSTMARK = "/providers/resend/emails", "/providers/postmark/email"
SENDGRID, MAILGUN = "/providers/sendgrid/v3/mail/send", "/providers/mailgun/v3/<domain>/messages"
SES, QUERY = "/providers/ses/v2/email/outbound-emails", "/providers/ses"
BREVO, MAILTRAP = "/providers/brevo/v3/smtp/email", "/providers/mailtrap/api/send"

DATA = b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"
BASE64 = base64.b64encode(DATA).decode()
TYPE = "text/calendar; method=REQUEST; charset=UTF-8"


def of_ses(**more: Any) -> dict[str, Any]:
    """Return fields of a request to SES with a file."""
    file = {"FileName": "invite.ics", "RawContent": BASE64, "ContentType": TYPE, **more}
    body = {"Html": {"Data": "<p>x</p>"}}
    simple = {"Subject": {"Data": "s"}, "Body": body, "Attachments": [file]}
    return {"Content": {"Simple": simple}}


def of_sendgrid(**more: Any) -> dict[str, Any]:
    """Return fields of a request to SendGrid or Mailtrap with a file."""
    return {"attachments": [{"filename": "invite.ics", "content": BASE64, "type": TYPE, **more}]}


FILES: Mapping[str, Callable[[], dict[str, Any]]] = {
    RESEND: lambda: {
        "attachments": [{"filename": "invite.ics", "content": BASE64, "content_type": TYPE}]
    },
    POSTMARK: lambda: {
        "Attachments": [{"Name": "invite.ics", "Content": BASE64, "ContentType": TYPE}]
    },
    SENDGRID: of_sendgrid,
    SES: of_ses,
    MAILTRAP: of_sendgrid,
}


@rows(*FILES)
def test_the_type_of_a_file_keeps_its_parameters(house: House, path: str) -> None:
    """An attached invitation has its method and its charset, as it was sent."""
    assert post(house, path, with_fields(path, **FILES[path]())).status < 300
    (part,) = raw_mail(house, newest(house)).iter_attachments()
    assert dict(part.raw_items())["Content-Type"] == TYPE
    assert (part.get_filename(), part.get_payload(decode=True)) == ("invite.ics", DATA)


def test_the_type_of_a_file_of_a_form_keeps_its_parameters(house: House) -> None:
    """A file of a form for Mailgun has the type of its part with all parameters."""
    fields = {"from": "a@x.test", "to": "b@x.test", "subject": "s", "text": "t"}
    data = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ).encode()
    data += (
        b'--x\r\nContent-Disposition: form-data; name="attachment"; filename="invite.ics"\r\n'
        b"Content-Type: " + TYPE.encode() + b"\r\n\r\n" + DATA + b"\r\n--x--\r\n"
    )
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert post(house, MAILGUN, data, headers=headers).status == 200
    (part,) = raw_mail(house, newest(house)).iter_attachments()
    assert dict(part.raw_items())["Content-Type"] == TYPE


@rows(
    (SENDGRID, of_sendgrid, {"disposition": "inline"}, ("inline", None)),
    (SENDGRID, of_sendgrid, {"content_id": "c"}, ("attachment", "<c>")),
    (MAILTRAP, of_sendgrid, {"disposition": "inline", "content_id": "c"}, ("inline", "<c>")),
    (MAILTRAP, of_sendgrid, {"disposition": "attachment"}, ("attachment", None)),
    (SES, of_ses, {"ContentDisposition": "INLINE"}, ("inline", None)),
    (SES, of_ses, {"ContentId": "c", "ContentDescription": "d"}, ("attachment", "<c>")),
)
def test_a_file_has_its_disposition_and_its_content_id(
    house: House,
    path: str,
    fields: Callable[..., dict[str, Any]],
    more: dict[str, Any],
    expected: tuple[str, str | None],
) -> None:
    """Disposition, Content-ID and description are those of the request, together or alone."""
    assert post(house, path, with_fields(path, **fields(**more))).status < 300
    mail = raw_mail(house, newest(house))
    part = next(one for one in mail.walk() if one.get_content_type() == "text/calendar")
    assert (part.get_content_disposition(), part["Content-ID"]) == expected
    assert part["Content-Description"] == more.get("ContentDescription")


CALENDAR = {"type": "text/calendar; method=REQUEST", "value": DATA.decode()}
PLAIN, HTML = {"type": "text/plain", "value": "t"}, {"type": "text/html", "value": "h"}
AMP = {"type": "text/x-amp-html", "value": "a"}


@rows(
    ([PLAIN, CALENDAR], ["text/plain", "text/calendar"]),
    ([PLAIN, HTML, AMP, CALENDAR], ["text/plain", "text/x-amp-html", "text/html", "text/calendar"]),
    ([HTML, {"type": "application/json", "value": "{}"}], ["text/html", "application/json"]),
    ([HTML, HTML], ["text/html", "text/html"]),
    ([CALENDAR], ["text/calendar"]),
)
def test_sendgrid_keeps_each_content(
    house: House, content: list[dict[str, str]], expected: list[str]
) -> None:
    """Each content is a part of the mail, whatever its type is, and may be the only one."""
    assert post(house, SENDGRID, with_fields(SENDGRID, content=content)).status == 202
    mail = raw_mail(house, newest(house))
    parts = [one for one in mail.walk() if not one.is_multipart()]
    assert [one.get_content_type() for one in parts] == expected
    texts = {one.get_payload(decode=True) for one in parts}
    assert texts == {one["value"].encode() for one in content}
    for part in parts:
        if part.get_content_type() == "text/calendar":
            assert part["Content-Type"].params["method"] == "REQUEST"


def test_sendgrid_keeps_ten_contents(house: House) -> None:
    """More contents are an error that names their maximum."""
    answer = post(house, SENDGRID, with_fields(SENDGRID, content=[PLAIN] * 11))
    assert (answer.status, "10 items" in answer.body.decode()) == (400, True)


@rows("", "text", "multipart/mixed", "message/rfc822")
def test_sendgrid_rejects_a_content_without_a_type(house: House, kind: str) -> None:
    """A type that is none, or has parts of its own, is named in the error."""
    content = [{"type": kind, "value": "x"}]
    answer = post(house, SENDGRID, with_fields(SENDGRID, content=content))
    assert answer.status == 400
    assert "content.type" in answer.body.decode()


def test_mailgun_keeps_amp(house: House) -> None:
    """AMP is a part of the mail, with the values of the recipient."""
    value = with_fields(
        MAILGUN,
        **{
            "amp-html": "<html amp4email>%recipient.name%</html>",
            "recipient-variables": '{"you@customer.example": {"name": "Ann"}}',
        },
    )
    assert post(house, MAILGUN, value).status == 200
    parts = {one.get_content_type(): one for one in raw_mail(house, newest(house)).iter_parts()}
    assert list(parts) == ["text/plain", "text/x-amp-html", "text/html"]
    assert parts["text/x-amp-html"].get_content() == "<html amp4email>Ann</html>"
