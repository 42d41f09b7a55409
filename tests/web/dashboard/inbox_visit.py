"""Somebody with an inbox, in front of the pages: mail comes in, and is looked at."""

import re
from urllib.parse import urlsplit

from mailcheck.core.accounts import Account
from mailcheck.core.filters import MessageFilter
from tests.house import Answer, House, mail, run
from tests.web.dashboard.browser import Browser
from tests.web.raw_http import RawHttp, read_answer, request


def sign_up(browser: Browser, name: str = "ann") -> Account:
    """Make an account by its form; gives it."""
    browser.sign_up(name)
    accounts: list[Account] = run(browser.house.assembly.accounts.keep.accounts())
    return next(account for account in accounts if account.name == name)


def receive(house: House, account: Account, raw: bytes | None = None, tag: str = "") -> str:
    """Receive a mail; gives the id of its message."""
    house.receive(house.address(tag, account), raw=mail() if raw is None else raw)
    messages = run(house.assembly.inbox.read.page(account.id, _EVERY, 1, 1))
    message_id: str = messages.messages[0].summary.id
    return message_id


def share_path(browser: Browser, message_id: str) -> str:
    """Give the path of a message's share link, as its page shows it."""
    text = browser.open(f"/inbox/messages/{message_id}").body.decode()
    link = re.search(r'id="share-link" href="([^"]+)"', text)
    assert link is not None
    return urlsplit(link[1]).path


def fetch(browser: Browser, path: str, *fields: str) -> Answer:
    """GET what is no page of the dashboard: a frame, a download."""
    connection = RawHttp(browser.house, browser.peer)
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    lines = [*fields, f"Cookie: {cookies}"] if cookies else [*fields]
    connection.send(request(path, "Accept: text/html", *lines))
    received = connection.received()
    connection.hang_up()
    return read_answer(received, "GET")[0]


def html_mail(html: str, subject: str = "Welcome") -> bytes:
    """Write a mail of HTML."""
    head = f"From: Shop <shop@example.com>\r\nSubject: {subject}\r\n"
    return f"{head}Content-Type: text/html; charset=utf-8\r\n\r\n{html}\r\n".encode()


_EVERY = MessageFilter()
