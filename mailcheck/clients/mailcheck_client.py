"""Waits for the mail that a program under test sends. One file, no dependencies, Python 3.9+.

    from mailcheck_client import Mailcheck

    inbox = Mailcheck()                       # MAILCHECK_URL and MAILCHECK_API_KEY
    address = inbox.new_address("signup")     # before the mail is triggered
    sign_up(email=address.email)
    mail = address.wait()                     # the next mail to this very address
    assert mail.code == "482913"

With pytest, put ``pytest_plugins = ["mailcheck_client"]`` into conftest.py and
take the fixture ``mail_address``: every test has an address of its own, so any
number of them run at once.

Nothing here guesses or looks back in time: an address carries the cursor of the
moment it was made, and a wait returns the oldest mail that came after it. A wait
in vain raises `NoMail`, which says what did arrive instead. Requests over the
limit wait as long as the service asks (``Retry-After``).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener

DEFAULT_URL = "http://127.0.0.1:8080"
LONGEST_POLL = 55
"""Seconds a single request waits; longer waits are made of several."""

ROUND_TRIP = 10
"""Seconds a response may take beyond the wait itself."""


class MailcheckError(Exception):
    """The service refused a request or can't be reached; ``status`` is 0 for the latter."""

    def __init__(
        self, message: str, status: int = 0, body: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = body or {}


class NoMail(MailcheckError, AssertionError):
    """No mail that matches came in time; ``seen`` and ``rejected`` say what did."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.seen = body.get("seen", [])
        self.rejected = body.get("rejected", [])
        self.cursor = body.get("cursor")
        lines = [body.get("error", "no matching message arrived in time")]
        for mail in self.seen:
            lines.append(
                f"  arrived {mail['receivedAt']} for {mail['to']}, {mail['subject']!r}: "
                + ("; ".join(mail["reasons"]) or "it matches, but came after the wait ended")
            )
        for mail in self.rejected:
            lines.append(f"  refused {mail['refusedAt']} for {mail['to']}: {mail['reason']}")
        super().__init__("\n".join(lines), 408, body)


class Mail(dict[str, Any]):
    """A message as the API gives it, with what tests ask for most at hand."""

    @property
    def code(self) -> str:
        """The one-time code.

        :raises MailcheckError: the mail has none.
        """
        if not self["codes"]:
            raise MailcheckError(f"no one-time code in the mail {self['subject']!r}")
        return str(self["codes"][0])

    @property
    def link(self) -> str:
        """The link a person would click, or the only one there is.

        :raises MailcheckError: the mail has none, or several and none stands out.
        """
        if self.get("bestLink"):
            return str(self["bestLink"])
        if len(self["links"]) == 1:
            return str(self["links"][0])
        raise MailcheckError(
            f"{len(self['links'])} links in the mail {self['subject']!r}, none to click: "
            f"{self['links']}"
        )

    @property
    def text(self) -> str:
        """The plain-text body."""
        return str(self["text"])

    @property
    def html(self) -> str:
        """The HTML body."""
        return str(self["html"])


class Address:
    """An inbox address with a tag, and the cursor from which its waits begin."""

    def __init__(self, client: Mailcheck, email: str, tag: str, cursor: str) -> None:
        self.email = email
        self.tag = tag
        self.cursor = cursor
        self._client = client

    def __str__(self) -> str:
        return self.email

    def wait(self, timeout: float = 30, **filters: str | None) -> Mail:
        """Wait for the next mail to this address; the one after it next time.

        ``timeout`` is in seconds. ``filters``: ``subject``, ``from_``.

        :raises NoMail: none came in time.
        """
        mail = self._client.wait(tag=self.tag, after=self.cursor, timeout=timeout, **filters)
        self.cursor = mail["cursor"]
        return mail

    def messages(self) -> list[Mail]:
        """List the mails to this address since it was made, newest first."""
        return self._client.messages(tag=self.tag)


class Mailcheck:
    """A developer inbox, reached with an API key."""

    def __init__(self, url: str | None = None, key: str | None = None) -> None:
        """``url`` is the service's address without a path.

        :raises MailcheckError: no key is given and MAILCHECK_API_KEY is not set.
        """
        url = url or os.environ.get("MAILCHECK_URL") or DEFAULT_URL
        self._api = url.rstrip("/") + "/api/v1"
        self._key = key or os.environ.get("MAILCHECK_API_KEY")
        if not self._key:
            raise MailcheckError("no API key: pass key=... or set MAILCHECK_API_KEY")
        # The key is for this one host: no proxy of the environment sees it.
        self._opener = build_opener(ProxyHandler({}))

    def new_address(self, label: str = "") -> Address:
        """Make an address nobody has used, for one test; ``label`` begins its tag."""
        body = self.request("GET", "/inbox/address", {"tag": label or None, "unique": "true"})
        return Address(self, body["address"], body["tag"], body["cursor"])

    def address(self, tag: str = "") -> Address:
        """Give the address of a tag, with the inbox's present cursor."""
        body = self.request("GET", "/inbox/address", {"tag": tag})
        return Address(self, body["address"], tag, body["cursor"])

    def wait(
        self,
        tag: str | None = None,
        after: str | None = None,
        timeout: float = 30,
        subject: str | None = None,
        from_: str | None = None,
        since: str | None = None,
        to: str | None = None,
    ) -> Mail:
        """Wait for the oldest mail that matches.

        Pass the cursor of an address as ``after``; without it only mail that
        comes from now on counts.

        :raises NoMail: none came in time.
        """
        deadline = time.monotonic() + timeout
        if after is None and since is None:
            after = self.request("GET", "/inbox/address", {})["cursor"]
        filters = {"tag": tag, "after": after, "since": since, "to": to}
        filters.update({"subject": subject, "from": from_})
        while True:
            left = deadline - time.monotonic()
            filters["timeout"] = f"{max(1, min(LONGEST_POLL, left)):.3f}"
            try:
                return Mail(self.request("GET", "/inbox/wait", filters, deadline))
            except MailcheckError as error:
                if error.status != 408:
                    raise
                if time.monotonic() >= deadline:
                    raise NoMail(error.body) from None

    def messages(self, **filters: str | int | None) -> list[Mail]:
        """List mails, newest first: ``tag``, ``since``, ``after``, ``limit``, ``page``, ``q``."""
        body = self.request("GET", "/inbox/messages", filters)
        return [Mail(message) for message in body["messages"]]

    def message(self, message_id: str) -> Mail:
        """Get a whole mail."""
        return Mail(self.request("GET", f"/inbox/messages/{quote(message_id, safe='')}"))

    def delete(self, message_id: str) -> None:
        """Delete a mail for good."""
        self.request("DELETE", f"/inbox/messages/{quote(message_id, safe='')}")

    def request(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, Any] | None = None,
        deadline: float | None = None,
    ) -> dict[str, Any]:
        """Send a request; give its JSON.

        Repeats it when the service asks for patience (429, 503), until the
        ``deadline`` of the caller, by default for a minute.

        :raises MailcheckError: any other answer than 200.
        """
        deadline = deadline or time.monotonic() + 60
        given = {name: value for name, value in (parameters or {}).items() if value is not None}
        url = f"{self._api}{path}?{urlencode(given)}" if given else self._api + path
        seconds = float(given.get("timeout", 0)) + ROUND_TRIP
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        while True:
            try:
                request = Request(url, method=method, headers=headers)  # noqa: S310
                with self._opener.open(request, timeout=seconds) as response:
                    return dict(json.load(response))
            except HTTPError as error:
                body = _json_of(error)
                pause = _pause_of(error)
                if pause is None or time.monotonic() + pause > deadline:
                    message = body.get("error") or f"HTTP status {error.code}"
                    raise MailcheckError(message, error.code, body) from None
                time.sleep(pause)
            except (URLError, HTTPException, OSError) as error:
                reason = getattr(error, "reason", error)
                raise MailcheckError(f"{self._api} can't be reached: {reason}") from error


def _json_of(error: HTTPError) -> dict[str, Any]:
    try:
        body = json.load(error)
        return body if isinstance(body, dict) else {}
    except ValueError:
        return {}


def _pause_of(error: HTTPError) -> float | None:
    """Give the seconds to wait before the request is worth repeating, or nothing."""
    if error.code not in (429, 503):
        return None
    value = error.headers.get("Retry-After", "1")
    try:
        return max(0.1, float(value))
    except ValueError:
        return max(0.1, parsedate_to_datetime(value).timestamp() - time.time())


if "pytest" in sys.modules:  # that is where fixtures are of use; a program does not wait for it
    import pytest

    @pytest.fixture(scope="session")
    def mailcheck_inbox() -> Mailcheck:
        """The inbox that MAILCHECK_URL and MAILCHECK_API_KEY lead to."""
        return Mailcheck()

    @pytest.fixture
    def mail_address(mailcheck_inbox: Mailcheck, request: pytest.FixtureRequest) -> Address:
        """An address of this test's own."""
        label = "".join(c if c.isalnum() else "-" for c in request.node.name.lower())[:20]
        return mailcheck_inbox.new_address(label.strip("-"))
