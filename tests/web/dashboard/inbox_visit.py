"""Steps of tests with an inbox: sign up, receive mail, fetch downloads."""

from urllib.parse import urlsplit

from mailcheck.core.accounts import Account
from mailcheck.core.filters import MessageFilter
from tests.house import Answer, House, mail, run
from tests.web.dashboard.browser import Browser
from tests.web.raw_http import RawHttp, read_answer, request


def sign_up(browser: Browser, name: str = "ann") -> Account:
    """Create an account and return it."""
    return browser.sign_up(name)


def receive(house: House, account: Account, raw: bytes | None = None, tag: str = "") -> str:
    """Receive a mail and return the id of its message."""
    house.receive(house.address(tag, account), raw=mail() if raw is None else raw)
    messages = run(house.assembly.inbox.read.page(account.id, _EVERY, 1, 1))
    message_id: str = messages.messages[0].summary.id
    return message_id


def share_path(browser: Browser, message_id: str) -> str:
    """Return the path of a message's share link, as shown on its page."""
    browser.open(f"/inbox/messages/{message_id}")
    return urlsplit(browser.find(r'id="share-link" href="([^"]+)"')).path


def fetch(browser: Browser, path: str, *fields: str) -> Answer:
    """GET a response that is not a page of the dashboard, such as a frame or a download."""
    connection = RawHttp(browser.house, browser.peer)
    path = browser.address(path)
    connection.send(request(path, "Accept: text/html", *fields, *browser.cookie_fields))
    received = connection.received()
    connection.hang_up()
    return read_answer(received, "GET")[0]


def html_mail(html: str, subject: str = "Welcome") -> bytes:
    """Return an HTML mail."""
    head = f"From: Shop <shop@example.com>\r\nSubject: {subject}\r\n"
    return f"{head}Content-Type: text/html; charset=utf-8\r\n\r\n{html}\r\n".encode()


_EVERY = MessageFilter()
