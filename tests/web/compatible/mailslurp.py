"""Requests as a client of MailSlurp sends them."""

from typing import Any

from tests.house import Answer, House
from tests.web.compatible.mailosaur import sign_up
from tests.web.compatible.sites import Requests

INBOX = "0f6f3c1e-5d0a-4a6e-9f0e-2b8f1c7d4e55"


class Client(Requests):
    """A client with an API key."""

    def __init__(self, house: House, key: str = "") -> None:
        headers = {"x-api-key": key or house.key}
        super().__init__(house, house.site.resource, "http://127.0.0.1:8080/mailslurp", headers)

    def send(self, method: str, path: str, json: Any = None) -> Answer:
        """Send a request, and return its answer."""
        return self.ask(method, path, **({} if json is None else {"json": json})).answer()


def receive(house: House, inbox: str = INBOX, **words: str) -> None:
    """Receive a mail in an inbox."""
    to = house.address(inbox)
    house.receive(to, raw=sign_up(to, **words))
