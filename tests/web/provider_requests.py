"""A request to each route of the provider APIs that sends mail, with the key where it belongs."""

import email
import json
from collections.abc import Mapping
from email.message import EmailMessage
from email.policy import default
from typing import Any

from tests.house import Answer, House

FROM, SUBJECT = "Shop <shop@example.com>", "Your order"
TEXT, HTML = "Your code is 482913", "<p>Your code is <b>482913</b></p>"


def sample(path: str, to: str) -> Any:
    """Return the JSON of a request with one mail to an address."""
    resend = {"from": FROM, "to": [to], "subject": SUBJECT, "text": TEXT, "html": HTML}
    postmark = {"From": FROM, "To": to, "Subject": SUBJECT, "TextBody": TEXT, "HtmlBody": HTML}
    templated = {"From": FROM, "To": to, "TemplateAlias": "welcome", "TemplateModel": {"a": 1}}
    return {
        "/providers/resend/emails": resend,
        "/providers/resend/emails/batch": [resend],
        "/providers/postmark/email": postmark,
        "/providers/postmark/email/batch": [postmark],
        "/providers/postmark/email/withTemplate": templated,
        "/providers/postmark/email/withTemplate/": templated,
        "/providers/postmark/email/batchWithTemplates": {"Messages": [templated]},
    }[path]


def headers_for(path: str, key: str) -> dict[str, str]:
    """Return the headers of a request with a key."""
    provider = path.split("/")[2]
    named = {"postmark": {"X-Postmark-Server-Token": key}}
    given = named.get(provider, {"Authorization": f"Bearer {key}"})
    return {"Content-Type": "application/json", **given}


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
    given = headers_for(path, house.key if key == "" else key or "")
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    if key is None:
        given = {"Content-Type": given["Content-Type"]}
    return house.open(path, "POST", data=data, headers={**given, **(headers or {})}).answer()


def received(house: House) -> list[dict[str, Any]]:
    """Return the messages of the inbox, the oldest first."""
    listed = house.get("/inbox/messages").json["messages"]
    return [house.get(f"/inbox/messages/{one['id']}").json for one in reversed(listed)]


def raw_mail(house: House, message: Mapping[str, Any]) -> EmailMessage:
    """Return a message as the standard library parses it."""
    raw = house.get(f"/inbox/messages/{message['id']}/raw").json["raw"]
    parsed = email.message_from_bytes(raw.encode(), policy=default)
    assert isinstance(parsed, EmailMessage)
    return parsed
