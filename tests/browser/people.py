"""Accounts that use the pages: sign up and receive mail."""

import itertools
import re
import smtplib
from dataclasses import dataclass

from tests.browser.watching import Watched
from tests.servers.daemon import HOST, Daemon

PASSWORD = "correct horse battery"

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Person:
    """A signed-in account. ``address`` is its inbox address."""

    name: str
    address: str
    daemon: Daemon

    def tagged(self, tag: str) -> str:
        """Return the address with a tag."""
        mailbox, _, domain = self.address.partition("@")
        return f"{mailbox}+{tag}@{domain}"

    def get_mail(self, raw_message: bytes, tag: str = "", sender: str = "shop@example.com") -> None:
        """Receive a mail."""
        recipient = self.tagged(tag) if tag else self.address
        with smtplib.SMTP(HOST, self.daemon.smtp_port) as client:
            client.sendmail(sender, [recipient], raw_message)


def make_account(watched: Watched, daemon: Daemon) -> Person:
    """Create an account without opening a page, and sign the browser in.

    Each account pretends to be another client of a trusted proxy, because the number of
    sign-ups by one client is limited.
    """
    number = next(_numbers)
    name = f"person-{number}"
    requests = watched.context.request
    url = f"{watched.origin}/sign-up"
    token = re.search(r'name="form-token" value="([^"]+)"', requests.get(url).text())
    assert token is not None
    requests.post(
        url,
        form={"form-token": token[1], "name": name, "password": PASSWORD},
        headers={"X-Forwarded-For": f"10.0.{number // 250}.{number % 250}"},
    )
    address = re.search(
        r'id="address"[^>]*>(.+?)</span>\s*<button', requests.get(f"{watched.origin}/inbox").text()
    )
    assert address is not None
    return Person(name, re.sub("<[^>]+>", "", address[1]), daemon)


def sign_up(watched: Watched, daemon: Daemon) -> Person:
    """Create an account by the form, and end on the inbox."""
    name = f"person-{next(_numbers)}"
    page = watched.page
    watched.go("/sign-up")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    page.wait_for_url(lambda url: "/sign-up" not in url)
    watched.go("/inbox")
    address = page.locator("#address").inner_text()
    return Person(name, address, daemon)
