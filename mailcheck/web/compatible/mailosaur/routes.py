"""The routes of Mailosaur's API: their requests, handlers and errors."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from twisted.web.server import Request

from mailcheck.api.deliverability.report import MailReport
from mailcheck.core.accounts import Caller
from mailcheck.core.conditions import (
    FROM,
    TO_ADDRESS,
    WITH_SUBJECT,
    WITH_TEXT,
    AnyOf,
    Term,
)
from mailcheck.core.errors import (
    DeliverabilityTestNotFound,
    InvalidCredentials,
    InvalidParameter,
    LimitExceeded,
    Overloaded,
    WaitInterrupted,
)
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.instants import DAY, Instant, format_instant
from mailcheck.core.messages import ListedMessage, StoredMessage
from mailcheck.core.rights import Scope
from mailcheck.operations.concurrency import PacedQueue
from mailcheck.operations.deliverability.all_operations import DeliverabilityOperations
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.operations.inbox.release_mail import ReleaseMail
from mailcheck.web.compatible.facade import (
    SENDS_NOTHING,
    NoParameters,
    declare,
    make_facade,
    not_offered,
    release_note,
    require_release,
    with_notes,
)
from mailcheck.web.compatible.hold import Hold
from mailcheck.web.compatible.mailosaur.analysis import render_deliverability, render_spam
from mailcheck.web.compatible.mailosaur.repeats import Repeats
from mailcheck.web.compatible.mailosaur.servers import KeepServers, require_server
from mailcheck.web.compatible.mailosaur.shapes import render_list, render_message
from mailcheck.web.compatible.reading import Messages, PageNumber, parse_time
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call, Route
from mailcheck.web.site.failures import BAD_REQUEST, Problem
from mailcheck.web.site.replies import JSON, Reply, download_reply, json_reply, large_json_reply
from mailcheck.web.site.requests import basic_credentials, header_values

POLL_DELAY = {"x-ms-delay": "250"}
"""Milliseconds that a client waits between two searches; each is held meanwhile."""

SHORTEST_HOLD = 0.5
"""Seconds for which a search must be held at least, so that its repetition is not counted."""

SENT = "Sent"
"""The direction of messages that mailcheck never has, since it sends none."""

ANALYSIS_SECONDS = 60.0
"""Maximum number of seconds of an analysis."""

MAX_ITEMS = 1_000
"""Maximum number of messages of a page, as Mailosaur has it."""

USAGE_DAYS = 31

NOTHING = Reply(204, b"", JSON)


class OfServer(Struct, frozen=True, rename="camel"):
    """The query ``server``."""

    server: str | None = None


class ListMessages(OfServer, frozen=True, rename="camel"):
    """The query of a list. Pages are counted from 0."""

    page: PageNumber = 0
    items_per_page: Annotated[int, Meta(ge=1, le=MAX_ITEMS)] = 50
    received_after: str | None = None
    dir: str | None = None


class SearchMessages(ListMessages, frozen=True, rename="camel"):
    """The query and the criteria of a search."""

    sent_from: str | None = None
    sent_to: str | None = None
    subject: str | None = None
    body: str | None = None
    match: Literal["ALL", "ANY"] = "ALL"


class NamedServer(Struct, frozen=True):
    """The body that creates or changes a server."""

    name: str | None = None


class ForwardMessage(Struct, frozen=True):
    """The recipients of a message that is forwarded: addresses with commas between them."""

    to: str = ""
    cc: str = ""


class Mailosaur(Struct, frozen=True):
    """Handles the requests of Mailosaur's clients."""

    _read: ReadInbox
    _messages: Messages
    _servers: KeepServers
    _tests: DeliverabilityOperations
    _release: ReleaseMail
    _hold: Hold
    repeats: Repeats
    _turns: PacedQueue

    async def list_messages(self, call: Call[ListMessages]) -> Reply:
        """GET /api/messages."""
        found = await self._find(call.caller, call.request, _filter(call.request))
        return json_reply(render_list(found))

    async def search(self, call: Call[SearchMessages]) -> Reply:
        """POST /api/messages/search."""
        caller, request, wanted = call.caller, call.request, _criteria(call.request)

        async def look() -> Sequence[ListedMessage]:
            return await self._find(caller, request, wanted)

        seconds = 0.0 if request.dir == SENT else self._hold.seconds
        try:
            found = await self._hold.until(caller, look, bool, seconds)
        except (LimitExceeded, WaitInterrupted):
            return json_reply(render_list(await look()), headers=POLL_DELAY)
        if seconds >= SHORTEST_HOLD and not found:
            await self.repeats.allow(caller, call.http)
        return json_reply(render_list(found), headers=POLL_DELAY)

    async def message(self, call: Call[NoParameters]) -> Reply:
        """GET /api/messages/{id}."""
        return await self._reply(call, await self._messages.message(call.caller, call.path["id"]))

    async def forward(self, call: Call[ForwardMessage]) -> Reply:
        """POST /api/messages/{id}/forward: release the message, and return it."""
        require_release(self._release, BAD_REQUEST)
        message = await self._messages.message(call.caller, call.path["id"])
        recipients = ",".join(filter(None, (call.request.to, call.request.cc))).split(",")
        chosen = [recipient.strip() for recipient in recipients]
        await self._release.release(message, chosen, call.caller.actor)
        return await self._reply(call, message)

    async def delete_message(self, call: Call[NoParameters]) -> Reply:
        """DELETE /api/messages/{id}."""
        await self._messages.delete(call.caller, call.path["id"])
        return NOTHING

    async def delete_messages(self, call: Call[OfServer]) -> Reply:
        """DELETE /api/messages."""
        await self._servers.empty(call.caller, require_server(call.request.server))
        return NOTHING

    async def file(self, call: Call[NoParameters]) -> Reply:
        """GET /api/files/attachments/{id}."""
        found = await self._messages.file(call.caller, call.path["id"])
        return download_reply(found.data, found.content_type, found.filename)

    async def raw_message(self, call: Call[NoParameters]) -> Reply:
        """GET /api/files/email/{id}."""
        raw = await self._messages.raw_message(call.caller, call.path["id"])
        return download_reply(raw, "message/rfc822", f"{call.path['id']}.eml")

    async def servers(self, call: Call[NoParameters]) -> Reply:
        """GET /api/servers."""
        return json_reply({"items": await self._servers.of_caller(call.caller)})

    async def create_server(self, call: Call[NamedServer]) -> Reply:
        """POST /api/servers."""
        return json_reply(await self._servers.create(call.caller, call.request.name))

    async def server(self, call: Call[NoParameters]) -> Reply:
        """GET /api/servers/{id}."""
        return json_reply(await self._servers.one(call.caller, call.path["id"]))

    async def rename_server(self, call: Call[NamedServer]) -> Reply:
        """PUT /api/servers/{id}."""
        name = call.request.name
        return json_reply(await self._servers.rename(call.caller, call.path["id"], name))

    async def delete_server(self, call: Call[NoParameters]) -> Reply:
        """DELETE /api/servers/{id}."""
        await self._servers.delete(call.caller, call.path["id"])
        return NOTHING

    async def password(self, call: Call[NoParameters]) -> Reply:
        """GET /api/servers/{id}/password."""
        await self._servers.one(call.caller, call.path["id"])
        return json_reply({"value": _key_of(call.headers["authorization"])})

    async def spam(self, call: Call[NoParameters]) -> Reply:
        """GET /api/analysis/spam/{id}."""
        return json_reply(render_spam(await self._analyse(call.caller, call.path["id"])))

    async def deliverability(self, call: Call[NoParameters]) -> Reply:
        """GET /api/analysis/deliverability/{id}."""
        return json_reply(render_deliverability(await self._analyse(call.caller, call.path["id"])))

    async def limits(self, call: Call[NoParameters]) -> Reply:
        """GET /api/usage/limits."""
        caller = call.caller
        most = (await self._read.state(caller.account_id)).quota.max_messages
        servers = await self._servers.of_caller(caller)
        return json_reply(
            {
                "servers": {"limit": most, "current": len(servers)},
                "users": {"limit": 1, "current": 1},
                "email": {"limit": most, "current": await self._messages.count(caller, ANY)},
                "sms": {"limit": 0, "current": 0},
            }
        )

    async def days(self, call: Call[NoParameters]) -> Reply:
        """GET /api/usage/transactions."""
        caller, today = call.caller, call.received_at - call.received_at % DAY
        total, later, days = await self._messages.count(caller, ANY), 0, []
        for number in range(USAGE_DAYS):
            day = Instant(today - number * DAY)
            so_far = later
            if later < total:
                so_far = await self._messages.count(caller, MessageFilter(since=day))
            days.append({"timestamp": format_instant(day), "email": so_far - later, "sms": 0})
            later = so_far
        return json_reply({"items": days})

    async def _reply(self, call: Call[Any], message: StoredMessage) -> Reply:
        outline = await self._messages.outline(message)
        return await large_json_reply(render_message(message, outline, call.base), self._turns)

    async def _find(
        self, caller: Caller, request: ListMessages, wanted: MessageFilter
    ) -> Sequence[ListedMessage]:
        """Return a page of the matching messages, newest first."""
        if request.dir == SENT:
            return []
        size, page = request.items_per_page, request.page
        return (await self._messages.page(caller, wanted, size, page)).messages

    async def _analyse(self, caller: Caller, message_id: str) -> MailReport:
        """Return the report of a test of a message. The test is deleted again."""
        message = await self._messages.message(caller, message_id)
        manage = self._tests.manage
        test = await manage.score_message(caller.account_id, message.summary.id)
        try:
            found = await self._tests.wait.wait(caller, test.id, ANALYSIS_SECONDS)
        finally:
            with suppress(DeliverabilityTestNotFound):
                await manage.delete(caller.account_id, test.id)
        if found.report is None:
            why = found.failure or "it takes longer than usual"
            raise Overloaded(f"the message could not be analysed: {why}; try again later")
        return msgspec.json.decode(found.report.document, type=MailReport)


def read_key(request: Request) -> str:
    """Return the API key of a request.

    :raises InvalidCredentials: there is none.
    """
    return _key_of("".join(header_values(request, b"Authorization")[:1]))


def _key_of(authorization: str) -> str:
    """Return the API key, which is the user name of Basic authentication (RFC 7617)."""
    key, _ = basic_credentials(authorization)
    if not key:
        raise InvalidCredentials(
            "an API key is missing: send it as the user name of Basic authentication"
        )
    return key


def _filter(request: ListMessages) -> MessageFilter:
    """Return the filter of a server.

    :raises InvalidParameter: the server or the time is invalid.
    """
    return MessageFilter(
        tag_prefix=require_server(request.server),
        since=parse_time("receivedAfter", request.received_after),
    )


def _criteria(request: SearchMessages) -> MessageFilter:
    """Return the filter for all criteria, or for any of them.

    :raises InvalidParameter: a criterion is missing.
    """
    criteria = (
        (FROM, request.sent_from),
        (TO_ADDRESS, request.sent_to),
        (WITH_SUBJECT, request.subject),
        (WITH_TEXT, request.body),
    )
    given = tuple(Term(condition, value) for condition, value in criteria if value)
    if not given:
        raise InvalidParameter(
            "criteria", "send at least one of sentFrom, sentTo, subject and body"
        )
    return replace(_filter(request), search=given if request.match == "ALL" else (AnyOf(given),))


def write_error(problem: Problem) -> Reply:
    """Return an error as Mailosaur's clients parse it."""
    detail = {
        "field": problem.parameter or "request",
        "detail": [{"description": problem.sentence}],
    }
    kind = "ValidationError" if problem.status == BAD_REQUEST else "Error"
    body = {"type": kind, "message": problem.sentence, "errors": [detail]}
    return json_reply(body, problem.status)


_READ, _WRITE = (Scope.INBOX_READ,), (Scope.INBOX_WRITE,)
_BOTH = (*_READ, *_WRITE)
_TESTS = (Scope.TESTS, Scope.INBOX_READ)

_NO_PREVIEWS = "mailcheck takes no pictures of mail in other mail programs"
_NO_DEVICES = "mailcheck has no devices for one-time passwords: a library such as pyotp makes them"

_NOTES = {
    "GET /api/messages": "`to` is the recipient of the envelope; `cc` and `bcc` are empty in lists",
    "POST /api/messages/search": "held until mail arrives, and counted once while it is "
    "repeated; `sentTo` is the recipient of the envelope, and `body` is searched in the text and "
    "in the words of the HTML",
    "GET /api/messages/<id>": "mail to several addresses of a server is several messages",
    "POST /api/messages/<id>/forward": release_note(
        BAD_REQUEST,
        "; the mail is sent as it was received: `subject`, `text` and `html` are ignored",
    ),
    "GET /api/servers": "the servers with mail among the newest 200 tags",
    "POST /api/servers": "not necessary: each id of eight letters and digits receives mail; the "
    "name is forgotten after 30 days",
    "GET /api/servers/<id>/password": "the API key of the request, which is the SMTP password",
    "GET /api/analysis/spam/<id>": "the rules are the deductions of mailcheck's report, which is "
    "made for each request",
    "GET /api/analysis/deliverability/<id>": "`Timeout` is a result that could not be determined; "
    "`mx` is empty",
    "GET /api/usage/limits": "the limit of messages is that of the inbox",
    "GET /api/usage/transactions": "deleted and expired mail is not counted",
}
_REFUSED = (
    ("POST", "/api/messages", f"{SENDS_NOTHING}; send mail over SMTP"),
    ("POST", "/api/messages/<id>/reply", SENDS_NOTHING),
    ("POST", "/api/messages/<id>/screenshots", _NO_PREVIEWS),
    ("GET", "/api/files/screenshots/<id>", _NO_PREVIEWS),
    ("GET", "/api/screenshots/clients", _NO_PREVIEWS),
    ("GET", "/api/devices", _NO_DEVICES),
    ("POST", "/api/devices", _NO_DEVICES),
    ("DELETE", "/api/devices/<id>", _NO_DEVICES),
    ("GET", "/api/devices/<id>/otp", _NO_DEVICES),
    ("POST", "/api/devices/otp", _NO_DEVICES),
)
_MESSAGES, _SERVERS = "/api/messages", "/api/servers"
_ANALYSIS, _USAGE, _FILES = "/api/analysis", "/api/usage", "/api/files"
_ROUTES: Sequence[Route[Any]] = (
    *declare(
        _READ,
        costs.FREE,
        ("GET", _MESSAGES, Mailosaur.list_messages, ListMessages),
        ("GET", f"{_FILES}/email/<id>", Mailosaur.raw_message, NoParameters),
        ("GET", _SERVERS, Mailosaur.servers, NoParameters),
        ("GET", f"{_SERVERS}/<id>", Mailosaur.server, NoParameters),
        ("GET", f"{_SERVERS}/<id>/password", Mailosaur.password, NoParameters),
        ("GET", f"{_USAGE}/limits", Mailosaur.limits, NoParameters),
        ("GET", f"{_USAGE}/transactions", Mailosaur.days, NoParameters),
    ),
    *declare(
        _READ,
        costs.PARTS,
        ("POST", f"{_MESSAGES}/search", Mailosaur.search, SearchMessages),
        ("GET", f"{_MESSAGES}/<id>", Mailosaur.message, NoParameters),
        ("GET", f"{_FILES}/attachments/<id>", Mailosaur.file, NoParameters),
    ),
    *declare(
        _WRITE,
        costs.SMALL,
        ("POST", _SERVERS, Mailosaur.create_server, NamedServer),
        ("PUT", f"{_SERVERS}/<id>", Mailosaur.rename_server, NamedServer),
        ("DELETE", f"{_SERVERS}/<id>", Mailosaur.delete_server, NoParameters),
    ),
    *declare(
        _TESTS,
        costs.SCORE,
        ("GET", f"{_ANALYSIS}/spam/<id>", Mailosaur.spam, NoParameters),
        ("GET", f"{_ANALYSIS}/deliverability/<id>", Mailosaur.deliverability, NoParameters),
    ),
    Route(
        "DELETE",
        f"{_MESSAGES}/<id>",
        Mailosaur.delete_message,
        NoParameters,
        costs.FREE,
        scopes=_BOTH,
    ),
    Route(
        "POST",
        f"{_MESSAGES}/<id>/forward",
        Mailosaur.forward,
        ForwardMessage,
        costs.RELEASE,
        scopes=_WRITE,
    ),
    Route("DELETE", _MESSAGES, Mailosaur.delete_messages, OfServer, costs.FREE, scopes=_WRITE),
    # With 400, the clients print the reason.
    *(not_offered(*row, 400) for row in _REFUSED),
)

MAILOSAUR = make_facade(
    name="mailosaur",
    title="Mailosaur",
    base="/mailosaur",
    read_key=read_key,
    write_error=write_error,
    routes=with_notes(_ROUTES, _NOTES),
)
