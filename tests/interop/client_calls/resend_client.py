"""Does each call of Resend's SDK for Python that sends and shows mail."""

import os
from collections.abc import Callable
from typing import Any

from calls import call, finish, received, refused

os.environ["RESEND_API_URL"] = f"{os.environ['RECORDER']}/providers/resend"
import resend

resend.api_key = os.environ["API_KEY"]
FROM = "Shop <shop@example.com>"
sent: list[str] = []


def mail(name: str) -> Any:
    """Return a mail."""
    to = f"{name}.resend-python@customer.example"
    return {"from": FROM, "to": to, "subject": name, "text": name}


def emails_send() -> None:
    """Send a mail."""
    sent.append(resend.Emails.send(mail("send"))["id"])
    assert received(mail("send")["to"])["deliveryId"] == sent[0]


def emails_get() -> None:
    """Get a mail."""
    shown: Any = resend.Emails.get(sent[0])
    assert (shown["from"], shown["text"], shown["last_event"]) == (FROM, "send", "delivered")


def emails_list() -> None:
    """List mails."""
    listed: Any = resend.Emails.list({"limit": 100})
    assert sent[0] in [one["id"] for one in listed["data"]]


def emails_update() -> None:
    """Change the time of a mail."""
    answer: Any = resend.Emails.update({"id": sent[0], "scheduled_at": "2030-01-01T00:00:00Z"})
    assert (answer["object"], answer["id"]) == ("email", sent[0])


def emails_cancel() -> None:
    """Cancel a mail."""
    assert resend.Emails.cancel(sent[0])["id"] == sent[0]


def batch_send() -> None:
    """Send two mails."""
    found: Any = resend.Batch.send([mail("first"), mail("second")])
    assert received(mail("second")["to"])["deliveryId"] == found["data"][1]["id"]


def domains_list() -> None:
    """List domains."""
    found: Any = resend.Domains.list()
    assert found["data"][0]["status"] == "verified"


CALLS: dict[str, Callable[[], None]] = {
    "Emails.send": emails_send,
    "Emails.get": emails_get,
    "Emails.list": emails_list,
    "Emails.update": emails_update,
    "Emails.cancel": emails_cancel,
    "Batch.send": batch_send,
    "Domains.list": domains_list,
}
for name, work in CALLS.items():
    call(name, work)
refused("Emails.share", "is not a path of Resend", lambda: resend.Emails.share(sent[0]))
refused(
    "Emails.metrics",
    "there is no such message",
    lambda: resend.Emails.metrics({"metrics": ["sent"]}),
)

every = [f"Emails.{one}" for one in vars(resend.Emails)] + ["Batch.send", "Domains.list"]
finish(one for one in every if one.partition(".")[2][0].islower() and not one.endswith("_async"))
