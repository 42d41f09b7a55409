"""A request to each route of the provider APIs that sends mail, with the key where it belongs."""

import base64
import email
import json
import re
from collections.abc import Mapping
from email.message import EmailMessage
from email.policy import default
from typing import Any
from urllib.parse import urlencode

from mailcheck.web.providers.provider import Posting
from mailcheck.web.providers.signatures import Credentials, sign
from tests.house import Answer, House

FROM, SUBJECT = "Shop <shop@example.com>", "Your order"
TEXT, HTML = "Your code is 482913", "<p>Your code is <b>482913</b></p>"


def sample(path: str, to: str) -> Any:
    """Return the JSON, or the fields of the form, of a request with one mail to an address."""
    resend = {"from": FROM, "to": [to], "subject": SUBJECT, "text": TEXT, "html": HTML}
    postmark = {"From": FROM, "To": to, "Subject": SUBJECT, "TextBody": TEXT, "HtmlBody": HTML}
    templated = {"From": FROM, "To": to, "TemplateAlias": "welcome", "TemplateModel": {"a": 1}}
    sender, person = {"email": "shop@example.com", "name": "Shop"}, {"email": to}
    mailtrap = {"from": sender, "to": [person], "subject": SUBJECT, "text": TEXT, "html": HTML}
    ses = {"FromEmailAddress": FROM, "Destination": {"ToAddresses": [to]}}
    body = {"Text": {"Data": TEXT}, "Html": {"Data": HTML}}
    query = {
        "Action": "SendEmail",
        "Source": FROM,
        "Destination.ToAddresses.member.1": to,
        "Message.Subject.Data": SUBJECT,
        "Message.Body.Text.Data": TEXT,
    }
    mime = f"From: {FROM}\r\nTo: {to}\r\nSubject: {SUBJECT}\r\n\r\n{TEXT}\r\n"
    return {
        "/providers/resend/emails": resend,
        "/providers/resend/emails/batch": [resend],
        "/providers/resend/emails/<id>/cancel": {},
        "/providers/postmark/email": postmark,
        "/providers/postmark/email/batch": [postmark],
        "/providers/postmark/email/withTemplate": templated,
        "/providers/postmark/email/withTemplate/": templated,
        "/providers/postmark/email/batchWithTemplates": {"Messages": [templated]},
        "/providers/sendgrid/v3/mail/send": {
            "personalizations": [{"to": [person]}],
            "from": sender,
            "subject": SUBJECT,
            "content": [
                {"type": "text/plain", "value": TEXT},
                {"type": "text/html", "value": HTML},
            ],
        },
        "/providers/mailgun/v3/<domain>/messages": resend,
        "/providers/mailgun/v3/<domain>/messages.mime": {"from": FROM, "to": to, "message": mime},
        "/providers/ses/v2/email/outbound-emails": {
            **ses,
            "Content": {"Simple": {"Subject": {"Data": SUBJECT}, "Body": body}},
        },
        "/providers/ses/v2/email/outbound-bulk-emails": {
            "FromEmailAddress": FROM,
            "DefaultContent": {"Template": {"TemplateName": "welcome", "TemplateData": "{}"}},
            "BulkEmailEntries": [{"Destination": {"ToAddresses": [to]}}],
        },
        "/providers/ses/v2/email/identities": {"EmailIdentity": to},
        "/providers/ses/v2/email/list-identities": {},
        "/providers/ses/v2/email/list-configuration-sets": {},
        "/providers/sns": {"Action": "ConfirmSubscription"},
        "/providers/sns/": {"Action": "ConfirmSubscription"},
        "/providers/ses": query,
        "/providers/ses/": query,
        "/providers/brevo/v3/smtp/email": {
            "sender": sender,
            "to": [person],
            "subject": SUBJECT,
            "textContent": TEXT,
            "htmlContent": HTML,
        },
        "/providers/mailtrap/api/send": mailtrap,
        "/providers/mailtrap/api/send/<inbox_id>": mailtrap,
        "/providers/mailtrap/api/batch": {"requests": [mailtrap]},
        "/providers/mailtrap/api/batch/<inbox_id>": {"requests": [mailtrap]},
    }[re.sub(r"{(\w+)}", r"<\1>", path)]


def with_fields(path: str, **fields: Any) -> dict[str, Any]:
    """Return a request with some other fields. `None` leaves a field out."""
    value = {**sample(path, "you@customer.example"), **fields}
    return {name: one for name, one in value.items() if one is not None}


def is_form(path: str) -> bool:
    """Return whether the body of a request is a form."""
    return "/mailgun/" in path or path.rstrip("/") in ("/providers/ses", "/providers/sns")


def encode(path: str, value: Any) -> bytes:
    """Return the body of a request."""
    if isinstance(value, bytes):
        return value
    return (urlencode(value, doseq=True) if is_form(path) else json.dumps(value)).encode()


def filled(path: str) -> str:
    """Return a path with values for its variables."""
    return re.sub(r"[<{]\w+[>}]", "example.com", path)


def headers_for(path: str, key: str, data: bytes = b"", method: str = "POST") -> dict[str, str]:
    """Return the headers of a request with a key. A request to SES is signed."""
    provider = path.split("/")[2]
    kind = "application/x-www-form-urlencoded" if is_form(path) else "application/json"
    if provider == "ses":
        return {"Content-Type": kind, **signed(filled(path), key, data, method)}
    password = base64.b64encode(f"api:{key}".encode()).decode()
    named = {
        "postmark": {"X-Postmark-Server-Token": key},
        "brevo": {"api-key": key},
        "mailgun": {"Authorization": f"Basic {password}"},
    }
    return {"Content-Type": kind, **named.get(provider, {"Authorization": f"Bearer {key}"})}


def signed(path: str, key: str, data: bytes, method: str = "POST") -> dict[str, str]:
    """Return the headers of a request that is signed for SES."""
    headers = {"x-amz-date": "20261121T120000Z"}
    scope = ("20261121", "eu-west-1", "ses", "aws4_request")
    unsigned = Credentials(key, scope, ("x-amz-date",), "")
    signature = sign(Posting(method, path, headers, data), unsigned, key)
    return {
        **headers,
        "Authorization": f"AWS4-HMAC-SHA256 Credential={key}/{'/'.join(scope)}, "
        f"SignedHeaders=x-amz-date, Signature={signature}",
    }


def post(
    house: House,
    path: str,
    value: Any = None,
    *,
    key: str | None = "",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Post to a provider's route and return its answer. By default it is a mail to one person."""
    value = sample(path, "you@customer.example") if value is None else value
    data = encode(path, value)
    given = headers_for(path, house.key if key == "" else key or "", data)
    if key is None:
        given = {"Content-Type": given["Content-Type"]}
    headers = {**given, **(headers or {})}
    return house.open(filled(path), "POST", data=data, headers=headers).answer()


def ask(house: House, path: str, method: str = "GET", key: str = "") -> Answer:
    """Ask a provider's route without a body, and return its answer."""
    headers = headers_for(path, key or house.key, b"", method)
    return house.open(path, method, headers=headers).answer()


def received(house: House) -> list[dict[str, Any]]:
    """Return the messages of the inbox, the oldest first."""
    listed = house.get("/inbox/messages").json["messages"]
    return [house.get(f"/inbox/messages/{one['id']}").json for one in reversed(listed)]


def newest(house: House) -> dict[str, Any]:
    """Return the newest message of the inbox."""
    (listed,) = house.get("/inbox/messages?limit=1").json["messages"]
    message: dict[str, Any] = house.get(f"/inbox/messages/{listed['id']}").json
    return message


def take(house: House) -> list[dict[str, Any]]:
    """Return the messages of the inbox, the oldest first, and delete them."""
    messages = received(house)
    assert house.ask("DELETE", "/inbox/messages").answer().status == 200
    return messages


def raw_mail(house: House, message: Mapping[str, Any]) -> EmailMessage:
    """Return a message as the standard library parses it."""
    raw = house.get(f"/inbox/messages/{message['id']}/raw").json["raw"]
    parsed = email.message_from_bytes(raw.encode(), policy=default)
    assert isinstance(parsed, EmailMessage)
    return parsed
