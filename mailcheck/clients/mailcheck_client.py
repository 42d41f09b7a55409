"""Test client for mailcheck. It waits for mail in tests. One file, no dependencies, Python 3.9+.

    from mailcheck_client import Mailcheck

    inbox = Mailcheck()                       # MAILCHECK_URL and MAILCHECK_API_KEY
    address = inbox.new_address("signup")     # before the mail is triggered
    sign_up(email=address.email)
    mail = address.wait()                     # the next mail to this address
    assert mail.code == "482913"

With pytest, put ``pytest_plugins = ["mailcheck_client"]`` into conftest.py and use the fixture
``mail_address``. Every test has an address of its own, so tests can run in parallel. In a
coroutine, write ``await in_thread(address.wait, timeout=20)``.

There are no race conditions. An address contains a cursor that is older than the address, and a
wait returns the oldest mail after the cursor. A process requests the mailbox and its cursor once
and generates the tags itself, so a test needs one request for each mail.

A missing or unexpected mail, or a low score, raises an ``AssertionError`` (`NoMail`,
`UnexpectedMail`, `PoorScore`) that says what did happen. If the service responds with 429 or 503
and ``Retry-After``, a call is retried for up to two minutes. This time is not part of the timeout
of a wait. After that, the error of the service is raised.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from typing_extensions import ParamSpec, Unpack

    Given = ParamSpec("Given")
    Result = TypeVar("Result")

DEFAULT_URL = "http://127.0.0.1:8080"
API_PATH = "/api/v1"

LONGEST_POLL = 55
"""Maximum number of seconds of one request. Longer waits use several requests."""

ROUND_TRIP = 10
"""Seconds for a response in addition to the wait itself."""

SILENCE = 45
"""Seconds without an event after which a stream is considered broken. The service sends one every
15 seconds."""

PATIENCE = 120
"""Maximum number of seconds of all retry delays of a call. Rate limits reset every minute."""

LOOK_BACK = 600
"""Seconds. A wait without a start also finds mail that arrived just before it, since people often
send first. The service explains a wait that timed out with mail of the same time."""

LARGEST_PAGE = 100
LONGEST_LABEL = 24

__tracebackhide__ = True  # pytest shows the line of the test that failed, and not this file

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_ENDING = 10  # random characters of a tag, with 50 bits of entropy


class Filters(TypedDict, total=False):
    """Filters for mail. All must match; case is ignored.

    ``tag`` and ``to`` must be equal. The others need to match only a part. ``header`` is
    ``"Name: part"`` or a sequence of them. ``since`` is an ISO 8601 date and time.
    """

    tag: str
    tag_prefix: str
    to: str
    from_: str
    subject: str
    text: str
    header: str | Sequence[str]
    has_attachment: bool
    since: str


class MailcheckError(Exception):
    """The service returned an error (with HTTP ``status``), or a mail lacks what was requested."""

    def __init__(
        self, message: str, status: int = 0, body: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = body or {}


class Unreachable(MailcheckError):
    """The service cannot be reached, or another server responds at its address."""


class NoMail(MailcheckError, AssertionError):
    """No matching mail arrived before the timeout. ``seen`` and ``rejected`` show what arrived."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.seen = body.get("seen", [])
        self.rejected = body.get("rejected", [])
        self.cursor = body.get("cursor")
        lines = [body.get("error", "no matching message arrived in time")]
        for mail in self.seen:
            lines.append(
                f"  arrived {mail['receivedAt']} for {mail['to']}, {mail['subject']!r}: "
                + ("; ".join(mail["reasons"]) or "it matches, but arrived after the wait ended")
            )
        for mail in self.rejected:
            lines.append(f"  rejected {mail['refusedAt']} for {mail['to']}: {mail['reason']}")
        super().__init__("\n".join(lines), 408, body)


class UnexpectedMail(MailcheckError, AssertionError):
    """A mail arrived or was rejected although none was expected. ``mail`` is `None` if rejected."""

    def __init__(self, body: Mapping[str, Any], mail: Mail | None) -> None:
        self.mail = mail
        self.cursor = body.get("cursor")
        super().__init__(str(body.get("error", "an unexpected mail arrived")), 409, body)


class PoorScore(MailcheckError, AssertionError):
    """The score of a mail is lower than required. ``report`` is the complete report."""

    def __init__(self, report: Mapping[str, Any], at_least: float) -> None:
        self.report = report
        lines = [f"the mail scores {report['score']:g} of 10, but {at_least:g} is required"]
        for deduction in report.get("deductions", []):
            advice = deduction.get("fix") or deduction["meaning"]
            lines.append(f"  -{deduction['points']:g} {deduction['id']}: {advice}")
        super().__init__("\n".join(lines), 200, report)


class Attachment:
    """An attachment of a mail. ``content`` is downloaded on first use."""

    def __init__(self, client: Mailcheck, message_id: str, fields: Mapping[str, Any]) -> None:
        self.id: str = fields["id"]
        self.filename: str = fields["filename"]
        self.content_type: str = fields["contentType"]
        self.size: int = fields["size"]
        self._client = client
        self._message_id = message_id
        self._content: bytes | None = None

    @property
    def content(self) -> bytes:
        """The decoded bytes."""
        if self._content is None:
            self._content = self._client.attachment(self._message_id, self.id)
        return self._content

    def __repr__(self) -> str:
        return f"<Attachment {self.filename!r}, {self.content_type}, {self.size} bytes>"


class Mail(dict[str, Any]):
    """A message of the API as a dictionary, with properties for what tests use most.

    A message of a list is completed with another request when its text, HTML, headers or
    attachments are first used.
    """

    def __init__(self, client: Mailcheck, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self._client = client

    def __missing__(self, name: str) -> Any:
        if "headers" in self:
            raise KeyError(name)
        return self.whole()[name]

    def whole(self) -> Mail:
        """Complete a message of a list, and return it."""
        if "headers" not in self:
            self.update(self._client.message(self["id"]))
        return self

    @property
    def subject(self) -> str:
        """The subject, decoded."""
        return str(self["subject"])

    @property
    def code(self) -> str:
        """The one-time code.

        :raises MailcheckError: the mail contains no code.
        """
        if not self["codes"]:
            raise MailcheckError(f"no one-time code in the mail {self['subject']!r}")
        return str(self["codes"][0])

    @property
    def link(self) -> str:
        """The link that a person would click.

        :raises MailcheckError: there is no link, or no clear choice between several.
        """
        if self.get("bestLink"):
            return str(self["bestLink"])
        raise MailcheckError(
            f"no clear choice between {len(self['links'])} links in the mail {self['subject']!r}: "
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

    @property
    def attachments(self) -> list[Attachment]:
        """The attachments in the order of the mail."""
        return [
            Attachment(self._client, self["id"], attachment) for attachment in self["attachments"]
        ]

    def eml(self) -> bytes:
        """Return the exact bytes of the mail."""
        return self._client.eml(self["id"])

    def delete(self) -> None:
        """Delete the mail permanently."""
        self._client.delete(self["id"])

    def score(self, at_least: float = 0, timeout: float = 60) -> dict[str, Any]:
        """Run a deliverability test of the mail, and return the report.

        :raises PoorScore: the score is below ``at_least`` of 10 points.
        :raises MailcheckError: the test took longer than ``timeout`` seconds.
        """
        return self._client.score(self["id"], at_least, timeout)


class Mails(list[Mail]):
    """A page of a list of mails, newest first.

    ``total`` counts all matching mails on all pages. ``next_page`` is a number, or `None` on the
    last page. ``not_searched`` counts further mails that may match: they have just arrived, and
    their content is not parsed yet. It is 0 without a filter on content (``q``, ``text``,
    ``header``, ``has_attachment``). ``body`` is the whole response.
    """

    def __init__(self, client: Mailcheck, body: Mapping[str, Any]) -> None:
        super().__init__(Mail(client, message) for message in body["messages"])
        self.body = body
        self.total: int = body["total"]
        self.next_page: int | None = body["nextPage"]
        self.not_searched: int = body.get("notSearched", 0)


class Address:
    """An inbox address with a tag, and the cursor from which its waits begin."""

    def __init__(self, client: Mailcheck, email: str, tag: str, cursor: str) -> None:
        self.email = email
        self.tag = tag
        self.cursor = cursor
        self._client = client
        self._made_at = cursor

    def __str__(self) -> str:
        return self.email

    def __repr__(self) -> str:
        return f"<Address {self.email}>"

    def wait(self, timeout: float = 30, **filters: Unpack[Filters]) -> Mail:
        """Wait for the next mail to this address. Another call returns the one after it.

        ``timeout`` is in seconds.

        :raises NoMail: no mail arrived before the timeout.
        """
        mail = self._client.wait(after=self.cursor, timeout=timeout, **self._own(filters))
        self.cursor = mail["cursor"]
        return mail

    def wait_many(self, count: int, timeout: float = 30, **filters: Unpack[Filters]) -> list[Mail]:
        """Wait for the next ``count`` mails to this address, 1 to 100. Return the oldest first.

        :raises NoMail: fewer mails arrived before the timeout.
        """
        own = self._own(filters)
        mails = self._client.wait_many(count, after=self.cursor, timeout=timeout, **own)
        self.cursor = mails[-1]["cursor"]
        return mails

    def expect_none(self, seconds: float = 5, **filters: Unpack[Filters]) -> None:
        """Check that no further mail to this address arrives within ``seconds``.

        :raises UnexpectedMail: a mail has arrived, arrives in this time, or is rejected.
        """
        self._client.expect_none(seconds, after=self.cursor, **self._own(filters))

    def events(
        self,
        timeout: float | None = None,
        on_refused: Callable[[Mapping[str, Any]], object] | None = None,
        **filters: Unpack[Filters],
    ) -> Iterator[Mail]:
        """Yield each mail to this address when it arrives; see `Mailcheck.events`."""
        own = self._own(filters)
        events = self._client.events(
            after=self.cursor, timeout=timeout, on_refused=on_refused, **own
        )
        for mail in events:
            self.cursor = mail["cursor"]
            yield mail

    def messages(self, **filters: Unpack[Filters]) -> Mails:
        """List all mails to this address since it was created, newest first."""
        own = self._own(filters)
        found = page = self._client.messages(after=self._made_at, limit=LARGEST_PAGE, **own)
        while page.next_page is not None:
            page = self._client.messages(
                after=self._made_at, limit=LARGEST_PAGE, page=page.next_page, **own
            )
            found += page
        found.next_page = None
        return found

    def delete(self) -> None:
        """Delete all mails to this address permanently."""
        self._client.request("DELETE", "/inbox/messages", {"tag": self.tag})

    def _own(self, filters: Filters) -> Filters:
        """Restrict filters to this address."""
        if "tag" in filters:
            raise TypeError("an address has its own tag: use Mailcheck to filter by another tag")
        return {**filters, "tag": self.tag}


class _Mailbox(NamedTuple):
    """A mailbox, and its cursor at the first request of this process."""

    name: str
    domain: str
    cursor: str


class _RetryBudget:
    """The seconds that a call may still spend on retry delays, and those it has spent."""

    def __init__(self, seconds: float) -> None:
        self.spent = 0.0
        self._longest = self._left = seconds

    def renew(self) -> None:
        """Restore the full budget after a response of the service."""
        self._left = self._longest

    def sleep(self, pause: float | None) -> bool:
        """Sleep for a retry delay. Return whether the budget allowed it."""
        if pause is None or pause > self._left:
            return False
        self._left -= pause
        self.spent += pause
        time.sleep(pause)
        return True


class _Request(NamedTuple):
    """A request: its path below ``/api/v1``, and the seconds that the service may wait."""

    method: str
    path: str
    parameters: Mapping[str, Any]
    seconds: float = 0
    accept: str = "application/json"
    body: bytes | None = None
    content_type: str = ""


class Mailcheck:
    """A developer inbox, accessed with an API key. Threads may share an instance."""

    _mailboxes: dict[tuple[str, str], _Mailbox] = {}  # noqa: RUF012  # shared by the process
    _lock = Lock()

    def __init__(self, url: str | None = None, key: str | None = None) -> None:
        """``url`` is the URL of the service, with or without ``/api/v1``.

        The attribute of this name has it without.

        :raises MailcheckError: the key is missing or contains invalid characters.
        """
        url = (url or os.environ.get("MAILCHECK_URL") or DEFAULT_URL).strip().rstrip("/")
        self.url = url.removesuffix(API_PATH)
        self._api = self.url + API_PATH
        self._key = (key or os.environ.get("MAILCHECK_API_KEY") or "").strip()
        if not self._key:
            raise MailcheckError("no API key: pass key=... or set MAILCHECK_API_KEY")
        if not re.fullmatch("[!-~]+", self._key):
            raise MailcheckError(
                "the API key contains a space, a line break or a non-ASCII character"
            )
        # Proxies in the environment are ignored, so that they do not see the key.
        self._opener = build_opener(ProxyHandler({}))

    def __repr__(self) -> str:
        return f"<Mailcheck at {self._api}>"

    @property
    def authorization(self) -> dict[str, str]:
        """The header field with the key, which each request contains."""
        return {"Authorization": f"Bearer {self._key}"}

    def new_address(self, label: str = "") -> Address:
        """Create a new, unique address for one test. Its tag begins with ``label``."""
        mailbox = self._mailbox()
        begin = re.sub("[^a-z0-9]+", "-", label.lower())[:LONGEST_LABEL].strip("-")
        ending = "".join(secrets.choice(_BASE32) for _ in range(_ENDING))
        tag = f"{begin}-{ending}" if begin else ending
        return Address(self, f"{mailbox.name}+{tag}@{mailbox.domain}", tag, mailbox.cursor)

    def address(self, tag: str = "") -> Address:
        """Return the address with a tag, and the current cursor."""
        body = self.request("GET", "/inbox/address", {"tag": tag})
        return Address(self, body["address"], tag, body["cursor"])

    def cursor(self) -> str:
        """Return the current cursor. Take it before you trigger the mail."""
        return str(self.request("GET", "/inbox/address")["cursor"])

    def wait(
        self, *, after: str | None = None, timeout: float = 30, **filters: Unpack[Filters]
    ) -> Mail:
        """Wait for the oldest matching mail after the cursor ``after``, or from ``since`` on.

        Without both, the newest matching mail of the last ten minutes is returned. If there is
        none, the next one is. To wait for a mail after another one, pass its ``["cursor"]``.
        ``timeout`` is in seconds.

        :raises NoMail: no mail arrived before the timeout.
        """
        query, recent = self._look_back(_query(filters, after=after), 1)
        if recent:
            return recent[0].whole()
        return Mail(self, self._wait("/inbox/wait", timeout, query))

    def wait_many(
        self,
        count: int,
        *,
        after: str | None = None,
        timeout: float = 30,
        **filters: Unpack[Filters],
    ) -> list[Mail]:
        """Wait for ``count`` matching mails, 1 to 100. Return them, the oldest first.

        They are the oldest ones after the cursor ``after``, or from ``since`` on. Without both,
        the newest ones of the last ten minutes are returned if there are as many.

        :raises NoMail: fewer mails arrived before the timeout.
        """
        query, recent = self._look_back(_query(filters, after=after), count)
        if recent:
            return recent
        body = self._wait("/inbox/wait/many", timeout, {**query, "count": count})
        return [Mail(self, message) for message in body["messages"]]

    def expect_none(
        self, seconds: float = 5, *, after: str | None = None, **filters: Unpack[Filters]
    ) -> None:
        """Check that no matching mail arrives or is rejected within ``seconds``.

        The check begins at the cursor ``after``, or now without it.

        :raises UnexpectedMail: a mail has arrived since, or arrives in this time.
        """
        query, budget = _query(filters, after=after), _RetryBudget(PATIENCE)
        end = time.monotonic() + seconds
        while True:
            left = max(1.0, min(LONGEST_POLL, end + budget.spent - time.monotonic()))
            query["seconds"] = f"{left:.3f}"
            try:
                found = self._json(_Request("GET", "/inbox/wait/none", query, left), budget)
            except MailcheckError as error:
                if error.status != 409:
                    raise
                message = error.body.get("message")
                mail = None if message is None else Mail(self, message)
                raise UnexpectedMail(error.body, mail) from None
            if time.monotonic() >= end + budget.spent:
                return
            query["after"] = found["cursor"]

    def events(
        self,
        *,
        after: str | None = None,
        timeout: float | None = None,
        on_refused: Callable[[Mapping[str, Any]], object] | None = None,
        **filters: Unpack[Filters],
    ) -> Iterator[Mail]:
        """Yield each matching mail when it arrives, the oldest first. Uses one request.

        The stream begins after the cursor ``after``, or now without it. It ends after ``timeout``
        seconds, which do not include retry delays, or never. After a lost connection it continues
        without missing or repeating a mail. ``on_refused`` is called for each rejected mail.

        :raises Unreachable: the service was unavailable for two minutes.
        :raises MailcheckError: the key was revoked, or ``after`` belongs to another inbox.
        """
        query = _query(filters, after=after)
        end = None if timeout is None else time.monotonic() + timeout
        budget = _RetryBudget(PATIENCE)
        while True:
            if end is not None:
                left = end + budget.spent - time.monotonic()
                if left <= 0:
                    return
                query["seconds"] = f"{max(1.0, left):.3f}"
            try:
                for kind, data, cursor in self._listen(query, budget):
                    budget.renew()
                    query["after"] = cursor or query.get("after")
                    if kind == "message":
                        yield Mail(self, json.loads(data))
                    elif kind == "refused" and on_refused is not None:
                        on_refused(json.loads(data))
                    elif kind == "closed":
                        raise Unreachable(str(json.loads(data)["error"]))
            except Unreachable:
                if not budget.sleep(1):
                    raise

    def messages(
        self,
        *,
        q: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        page: int | None = None,
        **filters: Unpack[Filters],
    ) -> Mails:
        """List mails, newest first. ``limit`` is 1 to 100 mails per page; the default is 50.

        ``q`` is a search like ``from:shop newer:2h``. ``not_searched`` of the result is the
        number of further mails that may match, but whose content is not parsed yet.
        """
        query = _query(filters, q=q, after=after, limit=limit, page=page)
        return Mails(self, self.request("GET", "/inbox/messages", query))

    def message(self, message_id: str) -> Mail:
        """Return a complete mail."""
        return Mail(self, self.request("GET", _path(message_id)))

    def delete(self, message_id: str) -> None:
        """Delete a mail permanently."""
        self.request("DELETE", _path(message_id))

    def eml(self, message_id: str) -> bytes:
        """Return the exact bytes of a mail."""
        return self._bytes(_path(message_id, "raw"), "message/rfc822")

    def html(self, message_id: str) -> bytes:
        """Return the HTML of a mail."""
        return self._bytes(_path(message_id, "html"), "*/*")

    def attachment(self, message_id: str, attachment_id: str) -> bytes:
        """Return the decoded bytes of an attachment."""
        return self._bytes(_path(message_id, "attachments", attachment_id), "*/*")

    def score(self, message_id: str, at_least: float = 0, timeout: float = 60) -> dict[str, Any]:
        """Run a deliverability test of a mail, and return the report.

        :raises PoorScore: the score is below ``at_least`` of 10 points.
        :raises MailcheckError: the test took longer than ``timeout`` seconds.
        """
        test_id = self.request("POST", _path(message_id, "test"))["testId"]
        try:
            report = self._poll(f"/test/{quote(test_id, safe='')}/wait", timeout, {})
        except MailcheckError as error:
            if error.status != 408:
                raise
            reason = error.body.get("error", "the deliverability test timed out")
            raise MailcheckError(str(reason), 408, error.body) from None
        if "score" not in report:
            reason = report.get("failure") or f"the test is {report['status']}"
            raise MailcheckError(f"the mail has no score: {reason}", 200, report)
        if report["score"] < at_least:
            raise PoorScore(report, at_least)
        return report

    def request(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, Any] | None = None,
        patience: float = PATIENCE,
        body: Mapping[str, Any] | None = None,
        seconds: float = 0,
        files: Iterable[tuple[str, bytes]] | None = None,
    ) -> dict[str, Any]:
        """Send a request with ``body`` as JSON, and return the JSON of the response.

        ``path`` is below ``/api/v1``. ``files`` with their names are sent as a form instead. If
        the service responds with 429 or 503, the request is retried for up to ``patience``
        seconds. ``seconds`` is the time that the service may need for the response, beside that
        of a normal request.

        :raises MailcheckError: the status of the response is not 200.
        """
        query = parameters or {}
        data = None if body is None else json.dumps(body).encode()
        seconds = max(seconds, float(query.get("timeout", 0)))
        content_type = ""
        if files is not None:
            data, content_type = _form_of(files)
        request = _Request(method, path, query, seconds, body=data, content_type=content_type)
        return self._json(request, _RetryBudget(patience))

    def _mailbox(self) -> _Mailbox:
        """Request the mailbox and its cursor, once in a process.

        The cursor for a new tag may be old, because no mail to the tag has arrived before.
        """
        with self._lock:
            found = self._mailboxes.get((self._api, self._key))
            if found is None:
                body = self.request("GET", "/inbox/address")
                found = _Mailbox(body["mailbox"], body["domain"], body["cursor"])
                self._mailboxes[self._api, self._key] = found
        return found

    def _look_back(self, query: dict[str, Any], count: int) -> tuple[dict[str, Any], list[Mail]]:
        """Give the query of a wait without a start one: ten minutes ago.

        Return it with the newest ``count`` mails since then, the oldest first, or with none if
        there are fewer.
        """
        if "after" in query or "since" in query:
            return query, []
        since = datetime.fromtimestamp(time.time() - LOOK_BACK, timezone.utc)  # noqa: UP017
        query = {**query, "since": since.isoformat(timespec="milliseconds")}
        limit = max(1, min(count, LARGEST_PAGE))
        found = Mails(self, self.request("GET", "/inbox/messages", {**query, "limit": limit}))
        return query, found[::-1] if len(found) == count else []

    def _wait(self, path: str, timeout: float, query: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._poll(path, timeout, query)
        except MailcheckError as error:
            if error.status != 408:
                raise
            raise NoMail(error.body) from None

    def _poll(self, path: str, timeout: float, query: dict[str, Any]) -> dict[str, Any]:
        """Repeat a long poll until it succeeds. After ``timeout`` seconds, raise the 408."""
        budget = _RetryBudget(PATIENCE)
        deadline = time.monotonic() + timeout
        while True:
            left = max(1.0, min(LONGEST_POLL, deadline + budget.spent - time.monotonic()))
            query["timeout"] = f"{left:.3f}"
            try:
                return self._json(_Request("GET", path, query, left), budget)
            except MailcheckError as error:
                if error.status != 408 or time.monotonic() >= deadline + budget.spent:
                    raise

    def _json(self, request: _Request, budget: _RetryBudget) -> dict[str, Any]:
        content = self._send(request, budget)
        try:
            body = json.loads(content)
        except ValueError:
            body = None
        if not isinstance(body, dict):  # the response of a proxy or another server
            raise Unreachable(f"{self._api} does not respond like mailcheck: {content[:60]!r}")
        return body

    def _bytes(self, path: str, accept: str) -> bytes:
        return self._send(_Request("GET", path, {}, accept=accept), _RetryBudget(PATIENCE))

    def _send(self, request: _Request, budget: _RetryBudget) -> bytes:
        """Send a request, with retries, and return the body of the response."""
        with self._raising_unreachable(), self._open(request, budget) as response:
            content: bytes = response.read()
            return content

    def _listen(
        self, query: Mapping[str, Any], budget: _RetryBudget
    ) -> Iterator[tuple[str, str, str]]:
        """Read one event stream to its end. Yield the kind, data and cursor of each event."""
        stream = _Request("GET", "/inbox/events", query, SILENCE, "text/event-stream")
        with self._raising_unreachable(), self._open(stream, budget) as response:
            fields: dict[str, str] = {}
            for line in response:
                name, _, value = line.decode("utf-8").rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                    continue
                yield fields.get("event", ""), fields.get("data", ""), fields.get("id", "")
                fields = {}

    @contextmanager
    def _raising_unreachable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            reason = getattr(reason, "strerror", None) or reason
            raise Unreachable(f"{self._api} cannot be reached: {reason}") from error

    def _open(self, request: _Request, budget: _RetryBudget) -> Any:
        query = {name: value for name, value in request.parameters.items() if value is not None}
        url = self._api + request.path + (f"?{urlencode(query, doseq=True)}" if query else "")
        headers = {**self.authorization, "Accept": request.accept}
        if request.content_type:
            headers["Content-Type"] = request.content_type
        while True:
            try:
                http_request = Request(url, request.body, headers, method=request.method)  # noqa: S310
                return self._opener.open(http_request, timeout=request.seconds + ROUND_TRIP)
            except HTTPError as error:
                body = _json_of(error)
                if not budget.sleep(_retry_delay(error)):
                    message = body.get("error") or f"HTTP status {error.code}"
                    raise MailcheckError(message, error.code, body) from None


def _form_of(files: Iterable[tuple[str, bytes]]) -> tuple[bytes, str]:
    """Return files as a form (RFC 7578), and its media type."""
    boundary = os.urandom(16).hex()
    pieces: list[bytes] = []
    for name, data in files:
        shown = name.replace("\\", "/").replace('"', "'").replace("\r", " ").replace("\n", " ")
        disposition = f'Content-Disposition: form-data; name="file"; filename="{shown}"'
        pieces += [f"--{boundary}\r\n{disposition}\r\n\r\n".encode(), data, b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    return b"".join(pieces), f"multipart/form-data; boundary={boundary}"


async def in_thread(
    call: Callable[Given, Result], *arguments: Given.args, **named: Given.kwargs
) -> Result:
    """Run a call of this library in a thread of its own, and await its result.

    ``mail = await in_thread(address.wait, timeout=20)``. Any number of calls can wait at the same
    time. A cancelled call continues in its thread, and its result is discarded.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def set_outcome(result: Result | None, problem: BaseException | None) -> None:
        if future.done():
            return
        if problem is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(problem)

    def run() -> None:
        result, problem = None, None
        try:
            result = call(*arguments, **named)
        except BaseException as caught:
            problem = caught
        with suppress(RuntimeError):  # the loop may have been closed meanwhile
            loop.call_soon_threadsafe(set_outcome, result, problem)

    Thread(target=run, daemon=True).start()
    return await future


def _path(message_id: str, *rest: str) -> str:
    parts = [quote(part, safe="") for part in (message_id, *rest)]
    return "/inbox/messages/" + "/".join(parts)


def _query(filters: Filters, **more: Any) -> dict[str, Any]:
    """Return filters as query parameters of the API.

    :raises TypeError: a filter does not exist.
    """
    query = {name: value for name, value in more.items() if value is not None}
    known = Filters.__annotations__
    for name, value in filters.items():
        if name not in known:
            near = get_close_matches(name, known, 1) or sorted(known)
            raise TypeError(f"unknown filter {name!r}; did you mean {' or '.join(near)}?")
        if value is not None:
            first, *others = name.rstrip("_").split("_")
            spelled = first + "".join(other.capitalize() for other in others)
            query[spelled] = str(value).lower() if isinstance(value, bool) else value
    return query


def _json_of(error: HTTPError) -> dict[str, Any]:
    try:
        body = json.load(error)
        return body if isinstance(body, dict) else {}
    except ValueError:
        return {}


def _retry_delay(error: HTTPError) -> float | None:
    """Return the seconds before a retry, or `None` if the error is permanent."""
    if error.code not in (429, 503):
        return None
    value = error.headers.get("Retry-After", "1")
    with suppress(ValueError):
        return max(0.1, float(value))
    with suppress(ValueError):
        return max(0.1, parsedate_to_datetime(value).timestamp() - time.time())
    return 1.0  # a proxy may send neither seconds nor a date


if "pytest" in sys.modules:  # only tests need the fixture; programs should not import pytest
    import pytest

    @pytest.fixture
    def mail_address(request: pytest.FixtureRequest) -> Address:
        """An address for this test only, in the inbox of MAILCHECK_URL and MAILCHECK_API_KEY."""
        return Mailcheck().new_address(request.node.name)
