"""Waits for the mail that a program under test sends. One file, no dependencies, Python 3.9+.

    from mailcheck_client import Mailcheck

    inbox = Mailcheck()                       # MAILCHECK_URL and MAILCHECK_API_KEY
    address = inbox.new_address("signup")     # before the mail is triggered
    sign_up(email=address.email)
    mail = address.wait()                     # the next mail to this very address
    assert mail.code == "482913"

With pytest, put ``pytest_plugins = ["mailcheck_client"]`` into conftest.py and
take the fixture ``mail_address``: every test has an address of its own, so any
number of them run at once. In a coroutine: ``await in_thread(address.wait, timeout=20)``.

Nothing here guesses or looks back in time: an address carries a cursor that was
taken before it was made, and a wait returns the oldest mail that came after it. The
mailbox and its cursor are asked for once in a process; the tags are made here. So a
test costs one request for each mail.

What did not come, came unexpectedly, or will not arrive is an ``AssertionError``
(`NoMail`, `UnexpectedMail`, `PoorScore`) that says what did happen. Where the service
asks for patience (429, or 503, with ``Retry-After``), a call waits for up to two minutes
in all, which no wait's own time-out counts; beyond that it raises what the service said.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
"""Seconds a single request waits; longer waits are made of several."""

ROUND_TRIP = 10
"""Seconds a response may take beyond the wait itself."""

SILENCE = 45
"""Seconds in which a stream of events says something, or its connection is broken: it says
something every 15."""

PATIENCE = 120
"""Seconds that a call waits in all where it is put off: the next minute's requests come earlier."""

LARGEST_PAGE = 100
LONGEST_LABEL = 24

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_ENDING = 10  # random characters of a tag: 50 bits


class Filters(TypedDict, total=False):
    """What a mail must be like; all that is given must fit, without case.

    ``tag`` and ``to`` are compared whole, of the others a part is enough. ``header`` is
    ``"Name: part"``, or several of them. ``since`` is an ISO 8601 instant.
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
    """The service refused a request (its HTTP ``status``), or a mail lacks what is asked for."""

    def __init__(
        self, message: str, status: int = 0, body: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = body or {}


class Unreachable(MailcheckError):
    """Nobody answers at the service's address, or somebody else does."""


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


class UnexpectedMail(MailcheckError, AssertionError):
    """A mail came, or was refused, where none should; ``mail`` is what came, if it did."""

    def __init__(self, body: Mapping[str, Any], mail: Mail | None) -> None:
        self.mail = mail
        self.cursor = body.get("cursor")
        super().__init__(str(body.get("error", "a mail came that should not")), 409, body)


class PoorScore(MailcheckError, AssertionError):
    """A mail's score is lower than asked for; ``report`` is the whole report."""

    def __init__(self, report: Mapping[str, Any], at_least: float) -> None:
        self.report = report
        lines = [f"the mail scores {report['score']:g} of 10, not {at_least:g}"]
        for one in report.get("deductions", []):
            lines.append(f"  -{one['points']:g} {one['id']}: {one.get('fix') or one['meaning']}")
        super().__init__("\n".join(lines), 200, report)


class Attachment:
    """An attachment of a mail; ``content`` is got when it is asked for."""

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
        """Its bytes, decoded."""
        if self._content is None:
            self._content = self._client.attachment(self._message_id, self.id)
        return self._content

    def __repr__(self) -> str:
        return f"<Attachment {self.filename!r}, {self.content_type}, {self.size} bytes>"


class Mail(dict[str, Any]):
    """A message as the API gives it, with what tests ask for most at hand.

    One that came in a list is made whole when its text, HTML, headers or attachments
    are first asked for: that is a request.
    """

    def __init__(self, client: Mailcheck, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self._client = client

    def __missing__(self, name: str) -> Any:
        if "headers" in self:
            raise KeyError(name)
        return self.whole()[name]

    def whole(self) -> Mail:
        """Make one of a list whole, and give it."""
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

    @property
    def attachments(self) -> list[Attachment]:
        """The attachments, in the order of the mail."""
        return [Attachment(self._client, self["id"], one) for one in self["attachments"]]

    def eml(self) -> bytes:
        """Get the mail byte for byte as it was sent."""
        return self._client.eml(self["id"])

    def delete(self) -> None:
        """Delete it for good."""
        self._client.delete(self["id"])

    def score(self, at_least: float = 0, timeout: float = 60) -> dict[str, Any]:
        """Score it as a deliverability test; gives the report.

        :raises PoorScore: it has fewer than ``at_least`` of 10 points.
        :raises MailcheckError: it was not judged within ``timeout`` seconds.
        """
        return self._client.score(self["id"], at_least, timeout)


class Mails(list[Mail]):
    """Mails of a list, newest first, and what it says of those that are not in it.

    ``total`` counts all that match, on all pages; ``next_page`` is a number, or nothing behind
    the last one. ``not_searched`` counts mails that may match as well: they have just come, and
    what is in them is not known yet. It is never more than 0 where nothing was looked for
    inside mails (``q``, ``text``, ``header``, ``has_attachment``).
    """

    def __init__(self, client: Mailcheck, body: Mapping[str, Any]) -> None:
        super().__init__(Mail(client, message) for message in body["messages"])
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
        """Wait for the next mail to this address; the one after it next time.

        ``timeout`` is in seconds.

        :raises NoMail: none came in time.
        """
        mail = self._client.wait(after=self.cursor, timeout=timeout, **self._own(filters))
        self.cursor = mail["cursor"]
        return mail

    def wait_many(self, count: int, timeout: float = 30, **filters: Unpack[Filters]) -> list[Mail]:
        """Wait for the next ``count`` mails to this address, 1 to 100; gives the oldest first.

        :raises NoMail: fewer came in time.
        """
        own = self._own(filters)
        mails = self._client.wait_many(count, after=self.cursor, timeout=timeout, **own)
        self.cursor = mails[-1]["cursor"]
        return mails

    def expect_none(self, seconds: float = 5, **filters: Unpack[Filters]) -> None:
        """Wait and see that no mail comes which was not waited for already.

        :raises UnexpectedMail: one has come, comes within so many seconds, or is refused.
        """
        self._client.expect_none(seconds, after=self.cursor, **self._own(filters))

    def events(
        self,
        timeout: float | None = None,
        on_refused: Callable[[Mapping[str, Any]], object] | None = None,
        **filters: Unpack[Filters],
    ) -> Iterator[Mail]:
        """Give each mail to this address as it comes, also over several calls; see `Mailcheck`."""
        own = self._own(filters)
        events = self._client.events(
            after=self.cursor, timeout=timeout, on_refused=on_refused, **own
        )
        for mail in events:
            self.cursor = mail["cursor"]
            yield mail

    def messages(self, **filters: Unpack[Filters]) -> Mails:
        """List all mails to this address since it was made, newest first."""
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
        """Delete all mails to this address for good."""
        self._client.request("DELETE", "/inbox/messages", {"tag": self.tag})

    def _own(self, filters: Filters) -> Filters:
        """Narrow filters to this address."""
        if "tag" in filters:
            raise TypeError("an address has its own tag: ask Mailcheck for another one's mail")
        return {**filters, "tag": self.tag}


class _Mailbox(NamedTuple):
    """A mailbox, and its cursor when this process first asked."""

    name: str
    domain: str
    cursor: str


class _Patience:
    """How long a call may still be put off, in seconds, and how long it was."""

    def __init__(self, seconds: float) -> None:
        self.spent = 0.0
        self._longest = self._left = seconds

    def renew(self) -> None:
        """Be as patient as at the beginning: the service has answered."""
        self._left = self._longest

    def sleep(self, pause: float | None) -> bool:
        """Sleep as long as the service asks; tells whether that was possible."""
        if pause is None or pause > self._left:
            return False
        self._left -= pause
        self.spent += pause
        time.sleep(pause)
        return True


class _Asked(NamedTuple):
    """A request: its path below ``/api/v1``, and the seconds for which it waits by itself."""

    method: str
    path: str
    parameters: Mapping[str, Any]
    seconds: float = 0
    accept: str = "application/json"
    body: bytes | None = None


class Mailcheck:
    """A developer inbox, reached with an API key. Threads may share it."""

    _mailboxes: dict[tuple[str, str], _Mailbox] = {}  # noqa: RUF012  # of the process
    _lock = Lock()

    def __init__(self, url: str | None = None, key: str | None = None) -> None:
        """``url`` is the service's address, with or without ``/api/v1``.

        :raises MailcheckError: there is no key, or it is none that could be sent.
        """
        url = (url or os.environ.get("MAILCHECK_URL") or DEFAULT_URL).strip().rstrip("/")
        self._api = url.removesuffix(API_PATH) + API_PATH
        self._key = (key or os.environ.get("MAILCHECK_API_KEY") or "").strip()
        if not self._key:
            raise MailcheckError("no API key: pass key=... or set MAILCHECK_API_KEY")
        if not re.fullmatch("[!-~]+", self._key):
            raise MailcheckError(
                "the API key holds a space, a line break or a letter that none has"
            )
        # The key is for this one host: no proxy of the environment sees it.
        self._opener = build_opener(ProxyHandler({}))

    def __repr__(self) -> str:
        return f"<Mailcheck at {self._api}>"

    def new_address(self, label: str = "") -> Address:
        """Make an address nobody has used, for one test; ``label`` begins its tag."""
        mailbox = self._mailbox()
        begin = re.sub("[^a-z0-9]+", "-", label.lower())[:LONGEST_LABEL].strip("-")
        ending = "".join(secrets.choice(_BASE32) for _ in range(_ENDING))
        tag = f"{begin}-{ending}" if begin else ending
        return Address(self, f"{mailbox.name}+{tag}@{mailbox.domain}", tag, mailbox.cursor)

    def address(self, tag: str = "") -> Address:
        """Give the address of a tag, with the inbox's present cursor."""
        body = self.request("GET", "/inbox/address", {"tag": tag})
        return Address(self, body["address"], tag, body["cursor"])

    def cursor(self) -> str:
        """Give the inbox's present cursor: take it before the mail is triggered."""
        return str(self.request("GET", "/inbox/address")["cursor"])

    def wait(
        self, *, after: str | None = None, timeout: float = 30, **filters: Unpack[Filters]
    ) -> Mail:
        """Wait for the oldest mail that matches.

        Pass a cursor as ``after``; without it, and without ``since``, only mail that comes
        from now on counts. ``timeout`` is in seconds.

        :raises NoMail: none came in time.
        """
        return Mail(self, self._wait("/inbox/wait", after, timeout, _query(filters)))

    def wait_many(
        self,
        count: int,
        *,
        after: str | None = None,
        timeout: float = 30,
        **filters: Unpack[Filters],
    ) -> list[Mail]:
        """Wait for ``count`` mails that match, 1 to 100; gives the oldest ones, in order.

        :raises NoMail: fewer came in time.
        """
        asked = _query(filters, count=count)
        body = self._wait("/inbox/wait/many", after, timeout, asked)
        return [Mail(self, message) for message in body["messages"]]

    def expect_none(
        self, seconds: float = 5, *, after: str | None = None, **filters: Unpack[Filters]
    ) -> None:
        """Wait and see that no mail comes that matches, and none is refused.

        Counted from the cursor ``after``, without it from now on.

        :raises UnexpectedMail: one has come since, or comes within so many seconds.
        """
        asked, patience = _query(filters, after=after), _Patience(PATIENCE)
        end = time.monotonic() + seconds
        while True:
            left = max(1.0, min(LONGEST_POLL, end + patience.spent - time.monotonic()))
            asked["seconds"] = f"{left:.3f}"
            try:
                found = self._json(_Asked("GET", "/inbox/wait/none", asked, left), patience)
            except MailcheckError as error:
                if error.status != 409:
                    raise
                message = error.body.get("message")
                mail = None if message is None else Mail(self, message)
                raise UnexpectedMail(error.body, mail) from None
            if time.monotonic() >= end + patience.spent:
                return
            asked["after"] = found["cursor"]

    def events(
        self,
        *,
        after: str | None = None,
        timeout: float | None = None,
        on_refused: Callable[[Mapping[str, Any]], object] | None = None,
        **filters: Unpack[Filters],
    ) -> Iterator[Mail]:
        """Give each mail that matches as soon as it comes, the oldest first; one request.

        It begins behind the cursor ``after``, without it now, and ends after ``timeout``
        seconds, without it never; being put off is not counted. Where the connection breaks it
        goes on from the last mail, with none left out or given twice. ``on_refused`` hears of
        mail that was refused.

        :raises Unreachable: the service did not come back for two minutes.
        :raises MailcheckError: the key was revoked, or ``after`` is another inbox's.
        """
        asked = _query(filters, after=after)
        end = None if timeout is None else time.monotonic() + timeout
        patience = _Patience(PATIENCE)
        while True:
            if end is not None:
                left = end + patience.spent - time.monotonic()
                if left <= 0:
                    return
                asked["seconds"] = f"{max(1.0, left):.3f}"
            try:
                for kind, data, cursor in self._listen(asked, patience):
                    patience.renew()
                    asked["after"] = cursor or asked.get("after")
                    if kind == "message":
                        yield Mail(self, json.loads(data))
                    elif kind == "refused" and on_refused is not None:
                        on_refused(json.loads(data))
                    elif kind == "closed":
                        raise Unreachable(str(json.loads(data)["error"]))
            except Unreachable:
                if not patience.sleep(1):
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
        """List mails, newest first: a page of ``limit``, 1 to 100, and 50 by default.

        ``q`` is a search, as in ``from:shop newer:2h``. ``not_searched`` of what it gives says
        how many mails may match as well and were not looked into yet.
        """
        asked = _query(filters, q=q, after=after, limit=limit, page=page)
        return Mails(self, self.request("GET", "/inbox/messages", asked))

    def message(self, message_id: str) -> Mail:
        """Get a whole mail."""
        return Mail(self, self.request("GET", _path(message_id)))

    def delete(self, message_id: str) -> None:
        """Delete a mail for good."""
        self.request("DELETE", _path(message_id))

    def eml(self, message_id: str) -> bytes:
        """Get a mail byte for byte as it was sent."""
        return self._bytes(_path(message_id, "raw"), "message/rfc822")

    def html(self, message_id: str) -> bytes:
        """Get the HTML of a mail as a file."""
        return self._bytes(_path(message_id, "html"), "*/*")

    def attachment(self, message_id: str, attachment_id: str) -> bytes:
        """Get an attachment's bytes, decoded."""
        return self._bytes(_path(message_id, "attachments", attachment_id), "*/*")

    def score(self, message_id: str, at_least: float = 0, timeout: float = 60) -> dict[str, Any]:
        """Score a mail as a deliverability test; gives the report.

        :raises PoorScore: it has fewer than ``at_least`` of 10 points.
        :raises MailcheckError: it was not judged within ``timeout`` seconds.
        """
        test_id = self.request("POST", _path(message_id, "test"))["testId"]
        try:
            report = self._poll(f"/test/{quote(test_id, safe='')}/wait", timeout, {})
        except MailcheckError as error:
            if error.status != 408:
                raise
            said = error.body.get("error", "it was not judged in time")
            raise MailcheckError(str(said), 408, error.body) from None
        if "score" not in report:
            said = report.get("failure") or f"the test is {report['status']}"
            raise MailcheckError(f"the mail has no score: {said}", 200, report)
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
    ) -> dict[str, Any]:
        """Send a request, with ``body`` as JSON; give its JSON. ``path`` is below ``/api/v1``.

        Repeats it when the service asks for patience (429, 503), for so many seconds.

        :raises MailcheckError: any other answer than 200.
        """
        given = parameters or {}
        data = None if body is None else json.dumps(body).encode()
        asked = _Asked(method, path, given, float(given.get("timeout", 0)), body=data)
        return self._json(asked, _Patience(patience))

    def _mailbox(self) -> _Mailbox:
        """Ask for the mailbox and its cursor, once in a process.

        Nothing has come yet to a tag that is made later: any earlier cursor is before its mail.
        """
        with self._lock:
            found = self._mailboxes.get((self._api, self._key))
            if found is None:
                body = self.request("GET", "/inbox/address")
                found = _Mailbox(body["mailbox"], body["domain"], body["cursor"])
                self._mailboxes[self._api, self._key] = found
        return found

    def _wait(
        self, path: str, after: str | None, timeout: float, asked: dict[str, Any]
    ) -> dict[str, Any]:
        if after is None and "since" not in asked:
            after = self.cursor()
        try:
            return self._poll(path, timeout, {**asked, "after": after})
        except MailcheckError as error:
            if error.status != 408:
                raise
            raise NoMail(error.body) from None

    def _poll(self, path: str, timeout: float, asked: dict[str, Any]) -> dict[str, Any]:
        """Repeat a long poll until it has an answer, or the time-out is over: then it is 408."""
        patience = _Patience(PATIENCE)
        deadline = time.monotonic() + timeout
        while True:
            left = max(1.0, min(LONGEST_POLL, deadline + patience.spent - time.monotonic()))
            asked["timeout"] = f"{left:.3f}"
            try:
                return self._json(_Asked("GET", path, asked, left), patience)
            except MailcheckError as error:
                if error.status != 408 or time.monotonic() >= deadline + patience.spent:
                    raise

    def _json(self, asked: _Asked, patience: _Patience) -> dict[str, Any]:
        content = self._send(asked, patience)
        try:
            body = json.loads(content)
        except ValueError:
            body = None
        if not isinstance(body, dict):  # a page of a proxy, or another server
            raise Unreachable(f"{self._api} does not answer as mailcheck does: {content[:60]!r}")
        return body

    def _bytes(self, path: str, accept: str) -> bytes:
        return self._send(_Asked("GET", path, {}, accept=accept), _Patience(PATIENCE))

    def _send(self, asked: _Asked, patience: _Patience) -> bytes:
        """Send a request until it is not put off."""
        with self._told_of(OSError, HTTPException), self._open(asked, patience) as response:
            content: bytes = response.read()
            return content

    def _listen(
        self, asked: Mapping[str, Any], patience: _Patience
    ) -> Iterator[tuple[str, str, str]]:
        """Read one stream of events to its end: kind, data and cursor of each."""
        stream = _Asked("GET", "/inbox/events", asked, SILENCE, "text/event-stream")
        with self._told_of(OSError, HTTPException), self._open(stream, patience) as response:
            fields: dict[str, str] = {}
            for line in response:
                name, _, value = line.decode("utf-8").rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                    continue
                yield fields.get("event", ""), fields.get("data", ""), fields.get("id", "")
                fields = {}

    @contextmanager
    def _told_of(self, *problems: type[Exception]) -> Iterator[None]:
        try:
            yield
        except problems as error:
            reason = getattr(error, "reason", error)
            raise Unreachable(f"{self._api} can't be reached: {reason}") from error

    def _open(self, asked: _Asked, patience: _Patience) -> Any:
        given = {name: value for name, value in asked.parameters.items() if value is not None}
        url = self._api + asked.path + (f"?{urlencode(given, doseq=True)}" if given else "")
        headers = {"Authorization": f"Bearer {self._key}", "Accept": asked.accept}
        while True:
            try:
                request = Request(url, asked.body, headers, method=asked.method)  # noqa: S310
                return self._opener.open(request, timeout=asked.seconds + ROUND_TRIP)
            except HTTPError as error:
                body = _json_of(error)
                if not patience.sleep(_pause_of(error)):
                    message = body.get("error") or f"HTTP status {error.code}"
                    raise MailcheckError(message, error.code, body) from None


async def in_thread(
    call: Callable[Given, Result], *arguments: Given.args, **named: Given.kwargs
) -> Result:
    """Make a call of this library in a coroutine.

    ``mail = await in_thread(address.wait, timeout=20)``. Each call has a thread of its own, so
    that any number of them wait at the same time. One that is cancelled is not waited for.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, problem: BaseException | None) -> None:
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
            loop.call_soon_threadsafe(settle, result, problem)

    Thread(target=run, daemon=True).start()
    return await future


def _path(message_id: str, *rest: str) -> str:
    parts = [quote(part, safe="") for part in (message_id, *rest)]
    return "/inbox/messages/" + "/".join(parts)


def _query(filters: Filters, **more: Any) -> dict[str, Any]:
    """Spell filters as the API does.

    :raises TypeError: there is no filter of this name.
    """
    query = {name: value for name, value in more.items() if value is not None}
    known = Filters.__annotations__
    for name, value in filters.items():
        if name not in known:
            near = get_close_matches(name, known, 1) or sorted(known)
            raise TypeError(f"there is no filter {name!r}; did you mean {' or '.join(near)}?")
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


def _pause_of(error: HTTPError) -> float | None:
    """Give the seconds to wait before the request is worth repeating, or nothing."""
    if error.code not in (429, 503):
        return None
    value = error.headers.get("Retry-After", "1")
    with suppress(ValueError):
        return max(0.1, float(value))
    with suppress(ValueError):
        return max(0.1, parsedate_to_datetime(value).timestamp() - time.time())
    return 1.0  # what a proxy has written there is neither seconds nor a date


if "pytest" in sys.modules:  # that is where fixtures are of use; a program does not wait for it
    import pytest

    @pytest.fixture(scope="session")
    def mailcheck_inbox() -> Mailcheck:
        """The inbox that MAILCHECK_URL and MAILCHECK_API_KEY lead to."""
        return Mailcheck()

    @pytest.fixture
    def mail_address(mailcheck_inbox: Mailcheck, request: pytest.FixtureRequest) -> Address:
        """An address of this test's own."""
        return mailcheck_inbox.new_address(request.node.name)
