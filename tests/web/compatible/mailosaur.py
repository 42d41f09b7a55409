"""Requests as a client of Mailosaur sends them."""

import base64
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

from tests.house import Answer, House
from tests.web.compatible.sites import Asked, Requests

SERVER = "abcd1234"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


class Client(Requests):
    """A client with an API key."""

    def __init__(self, house: House, key: str = "") -> None:
        secret = base64.b64encode(f"{key or house.key}:".encode()).decode()
        headers = {"Authorization": f"Basic {secret}"}
        super().__init__(house, house.site.resource, "http://127.0.0.1:8080/mailosaur", headers)

    def send(self, method: str, path: str, json: Any = None) -> Answer:
        """Send a request, and return its answer."""
        return self.ask(method, path, **({} if json is None else {"json": json})).answer()

    def search(self, server: str = SERVER, query: str = "", **criteria: Any) -> Asked:
        """Send a search."""
        path = f"/api/messages/search?server={server}&{query}"
        return self.ask("POST", path, json={"match": "ALL", **criteria})

    def subjects(self, server: str = SERVER, query: str = "", **criteria: Any) -> list[str]:
        """Return the subjects that a search finds."""
        answer = self.search(server, query, **criteria).answer()
        assert answer.status == 200, answer.body
        return [one["subject"] for one in answer.json["items"]]


def address(house: House, name: str = "ann", server: str = SERVER) -> str:
    """Return an address as a client makes it."""
    return f"{name}@{server}.{house.account.mailbox_name}.mailcheck.example"


def sign_up(
    to: str, subject: str = "Welcome", text: str = "Your code is 482913", name: str = "Ann"
) -> bytes:
    """Return a mail with a code, a link, a picture and an attachment."""
    mail = EmailMessage()
    mail["From"] = "Shop <shop@example.com>"
    mail["To"] = f"{name} <{to}>"
    mail["Cc"] = "Bob <bob@example.com>"
    mail["Subject"] = subject
    mail.set_content(f"{text}: https://shop.example/verify?token=abc\n")
    html = (
        '<p>Your code is <b>482913</b> <a href="https://shop.example/verify?token=abc">Verify</a>'
    )
    html += '<a href="https://shop.example/"><img src="cid:cat" alt="A cat"></a></p>'
    mail.add_alternative(html, "html")
    mail.add_attachment(PNG, "image", "png", filename="cat.png", cid="<cat>")
    mail.add_attachment(b"one,two", "text", "csv", filename="a.csv")
    return mail.as_bytes(policy=SMTP)
