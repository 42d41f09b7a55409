"""Does each call of Resend's SDK for Python that sends and shows mail."""

import json
import os
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

from calls import call, finish, received, refused

os.environ["RESEND_API_URL"] = f"{os.environ['RECORDER']}/providers/resend"
import resend

resend.api_key = os.environ["API_KEY"]
FROM = "Shop <shop@example.com>"
sent: list[str] = []
files: list[str] = []


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


def api(method: str, path: str, value: object = None) -> dict[str, Any]:
    """Call the API of mailcheck."""
    headers = {"X-API-Key": resend.api_key, "Content-Type": "application/json"}
    body = None if value is None else json.dumps(value).encode()
    url = f"{os.environ['RECORDER']}/api/v1{path}"
    with urlopen(Request(url, body, headers, method=method), timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


ROUTE = api(
    "POST",
    "/inbound/routes",
    {"to": "in@python.example", "format": "resend", "url": "https://app.example.com/in"},
)["id"]
INCOMING = api(
    "POST",
    f"/inbound/routes/{ROUTE}/messages",
    {
        "from": "ana@customer.example",
        "to": ["in@python.example"],
        "subject": "in",
        "text": "Hi",
        "files": [{"name": "a.txt", "content": "b25l"}],
    },
)["id"]
"""A mail that a route has brought to an application, with a file."""


def receiving_get() -> None:
    """Get a received mail, and its bytes."""
    shown: Any = resend.Emails.Receiving.get(INCOMING)
    assert (shown["id"], shown["subject"]) == (INCOMING, "in")
    with urlopen(shown["raw"]["download_url"], timeout=60) as answer:
        assert b"Subject: in" in answer.read()


def receiving_list() -> None:
    """List received mails."""
    listed: Any = resend.Emails.Receiving.list({"limit": 1})
    assert [one["id"] for one in listed["data"]] == [INCOMING]


def attachments_list() -> None:
    """List the files of a received mail."""
    listed: Any = resend.Emails.Receiving.Attachments.list(INCOMING)
    assert [one["filename"] for one in listed["data"]] == ["a.txt"]
    files.append(listed["data"][0]["id"])


def attachments_get() -> None:
    """Get a file of a received mail."""
    shown: Any = resend.Emails.Receiving.Attachments.get(INCOMING, files[0])
    with urlopen(shown["download_url"], timeout=60) as answer:
        assert answer.read() == b"one"


CALLS: dict[str, Callable[[], None]] = {
    "Emails.send": emails_send,
    "Emails.get": emails_get,
    "Emails.list": emails_list,
    "Emails.update": emails_update,
    "Emails.cancel": emails_cancel,
    "Emails.Receiving.get": receiving_get,
    "Emails.Receiving.list": receiving_list,
    "Emails.Receiving.Attachments.list": attachments_list,
    "Emails.Receiving.Attachments.get": attachments_get,
    "Batch.send": batch_send,
    "Domains.list": domains_list,
}
for name, work in CALLS.items():
    call(name, work)
api("DELETE", f"/inbound/routes/{ROUTE}")
refused("Emails.share", "is not a path of Resend", lambda: resend.Emails.share(sent[0]))
refused(
    "Emails.metrics",
    "there is no such message",
    lambda: resend.Emails.metrics({"metrics": ["sent"]}),
)

every = [f"Emails.{one}" for one in vars(resend.Emails)] + ["Batch.send", "Domains.list"]
finish(one for one in every if one.partition(".")[2][0].islower() and not one.endswith("_async"))
