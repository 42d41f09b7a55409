"""Does each call of SendGrid's SDK for Python that sends mail, and the questions of senders."""

import json
import os

from calls import call, finish, received
from sendgrid import SendGridAPIClient
from sendgrid.helpers.mail import Content, Mail

client = SendGridAPIClient(
    os.environ["API_KEY"], host=f"{os.environ['RECORDER']}/providers/sendgrid"
)
TO = "one.sendgrid-python@customer.example"


def mail(to: str) -> Mail:
    """Return a mail with an invitation."""
    message = Mail("shop@example.com", to, "one", plain_text_content="one")
    message.add_content(Content("text/calendar; method=REQUEST", "BEGIN"))
    return message


def send() -> None:
    """Send a mail with the helper."""
    answer = client.send(mail(TO))
    assert answer.status_code == 202
    assert received(TO)["deliveryId"] == answer.headers["X-Message-Id"]


def post() -> None:
    """Send a mail by the path of the API."""
    to = f"two.{TO}"
    assert client.client.mail.send.post(request_body=mail(to).get()).status_code == 202
    assert received(to)["subject"] == "one"


def scopes() -> None:
    """Ask for the scopes of the key."""
    assert json.loads(client.client.scopes.get().body) == {"scopes": ["mail.send"]}


def account() -> None:
    """Ask for the account."""
    assert client.client.user.account.get().status_code == 200


call("send", send)
call("client.mail.send.post", post)
call("client.scopes.get", scopes)
call("client.user.account.get", account)
finish(["send"])
