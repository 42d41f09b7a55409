"""Does each call of Mailtrap's SDK for Python that sends mail. The others have a fixed host."""

import os
from typing import Any

from calls import call, finish, received

os.environ["HTTPS_PROXY"] = os.environ["TLS_PROXY"]
os.environ["REQUESTS_CA_BUNDLE"] = os.environ["NODE_EXTRA_CA_CERTS"]
import mailtrap

HOST = f"{os.environ['HTTPS_URL'].removeprefix('https://')}/providers/mailtrap"
SHOP = mailtrap.Address("shop@example.com", "Shop")
SANDBOX: dict[str, Any] = {"sandbox": True, "inbox_id": "7"}


def client(**options: Any) -> mailtrap.MailtrapClient:
    """Return a client."""
    return mailtrap.MailtrapClient(os.environ["API_KEY"], HOST, **options)


def to(name: str) -> list[mailtrap.Address]:
    """Return the recipients of a mail."""
    return [mailtrap.Address(f"{name}.mailtrap-python@customer.example")]


def send(name: str, **options: Any) -> None:
    """Send a mail."""
    mail = mailtrap.Mail(sender=SHOP, to=to(name), subject=name, text=name, category="order")
    answer: Any = client(**options).send(mail)
    assert answer["success"]
    assert received(to(name)[0].email)["deliveryId"] == answer["message_ids"][0]


def batch_send(name: str, **options: Any) -> None:
    """Send two mails with the same subject."""
    batch = mailtrap.BatchSendEmailParams(
        base=mailtrap.BatchMail(sender=SHOP, subject=name, text=name),
        requests=[mailtrap.BatchEmailRequest(to=to(f"{name}{number}")) for number in (1, 2)],
    )
    answer: Any = client(**options).batch_send(batch)
    assert [one["success"] for one in answer["responses"]] == [True, True]
    stored = received(to(f"{name}2")[0].email)
    assert [stored["deliveryId"]] == answer["responses"][1]["message_ids"]


call("send", lambda: send("one"))
call("send (sandbox)", lambda: send("two", **SANDBOX))
call("batch_send", lambda: batch_send("three"))
call("batch_send (sandbox)", lambda: batch_send("four", **SANDBOX))
finish(["send", "batch_send"])
