"""Does each call of Mailgun's SDK for Python that sends mail, and the questions of senders."""

import os

from calls import call, finish, received
from mailgun.client import Client

client = Client(
    auth=("api", os.environ["API_KEY"]), api_url=f"{os.environ['RECORDER']}/providers/mailgun"
)


def to(name: str) -> str:
    """Return a recipient."""
    return f"{name}.mailgun-python@customer.example"


def messages_create() -> None:
    """Send a mail by its fields."""
    data = {"from": "shop@example.com", "to": to("one"), "subject": "one", "text": "one"}
    answer = client.messages.create(data=data, domain="example.com")
    assert answer.json()["message"] == "Queued. Thank you."
    assert received(to("one"))["headers"]["message-id"] == answer.json()["id"]


def mimemessage_create() -> None:
    """Send a whole mail."""
    mail = f"From: shop@example.com\r\nTo: {to('two')}\r\nSubject: two\r\n\r\ntwo\r\n"
    files = {"message": ("message.eml", mail.encode())}
    answer = client.mimemessage.create(data={"to": to("two")}, files=files, domain="example.com")
    assert answer.status_code == 200
    assert received(to("two"))["subject"] == "two"


def domains_get() -> None:
    """List domains."""
    assert client.domains.get().json()["items"][0]["state"] == "active"


def ping() -> None:
    """Check the key."""
    assert client.ping()


call("messages.create", messages_create)
call("mimemessage.create", mimemessage_create)
call("domains.get", domains_get)
call("ping", ping)
finish(["messages.create", "mimemessage.create"])
