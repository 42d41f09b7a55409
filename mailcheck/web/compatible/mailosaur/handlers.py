"""The requests of Mailosaur's API, and their handlers."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.api.deliverability.report import MailReport
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import (
    DeliverabilityTestNotFound,
    InvalidCredentials,
    InvalidParameter,
    MessageNotFound,
    Overloaded,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import DAY, Instant, format_instant, parse_instant
from mailcheck.core.messages import ListedMessage
from mailcheck.operations.concurrency import PacedQueue
from mailcheck.operations.deliverability.all_operations import DeliverabilityOperations
from mailcheck.operations.inbox.messages import DeleteMessages, ReadInbox
from mailcheck.web.compatible.facade import Call, NoParameters
from mailcheck.web.compatible.hold import Hold
from mailcheck.web.compatible.mailosaur.analysis import (
    read_report,
    render_deliverability,
    render_spam,
)
from mailcheck.web.compatible.mailosaur.servers import KeepServers, require_server
from mailcheck.web.compatible.mailosaur.shapes import render_list, render_message
from mailcheck.web.compatible.reading import ReadMessages, require_page
from mailcheck.web.site.replies import JSON, Reply, download_reply, json_reply, large_json_reply

POLL_DELAY = {"x-ms-delay": "250"}
"""Milliseconds that a client waits between two searches; each is held meanwhile."""

NEWEST = 50
"""Number of the newest messages that are compared one by one, if not all texts can be searched."""

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

    page: int = 0
    items_per_page: int = 50
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


class Mailosaur:
    """Handles the requests of Mailosaur's clients."""

    def __init__(
        self,
        read: ReadInbox,
        delete: DeleteMessages,
        messages: ReadMessages,
        servers: KeepServers,
        tests: DeliverabilityOperations,
        hold: Hold,
        turns: PacedQueue,
    ) -> None:
        self._read = read
        self._delete = delete
        self._messages = messages
        self._servers = servers
        self._tests = tests
        self._hold = hold
        self._turns = turns

    async def list_messages(self, call: Call[ListMessages]) -> Reply:
        """GET /api/messages."""
        wanted = _filter(call.caller, call.request)
        found = await self._find(call.caller, call.request, [wanted])
        return json_reply(render_list(found))

    async def search(self, call: Call[SearchMessages]) -> Reply:
        """POST /api/messages/search."""
        request, filters = call.request, _criteria(call.caller, call.request)
        seconds = 0.0 if request.dir == SENT else None
        found = await self._hold.until(
            call.caller, lambda: self._find(call.caller, request, filters), bool, seconds
        )
        return json_reply(render_list(found), headers=POLL_DELAY)

    async def message(self, call: Call[NoParameters]) -> Reply:
        """GET /api/messages/{id}."""
        message = await self._messages.message(call.caller, call.path["id"])
        outline = await self._messages.outline(message)
        return await large_json_reply(render_message(message, outline, call.base), self._turns)

    async def delete_message(self, call: Call[NoParameters]) -> Reply:
        """DELETE /api/messages/{id}."""
        message = await self._messages.message(call.caller, call.path["id"])
        await self._delete.one(call.caller.account_id, message.summary.id)
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
        return json_reply(await self._servers.of_caller(call.caller))

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
        return json_reply({"value": key_of_headers(call.headers)})

    async def spam(self, call: Call[NoParameters]) -> Reply:
        """GET /api/analysis/spam/{id}."""
        return json_reply(render_spam(await self._analyse(call.caller, call.path["id"])))

    async def deliverability(self, call: Call[NoParameters]) -> Reply:
        """GET /api/analysis/deliverability/{id}."""
        return json_reply(render_deliverability(await self._analyse(call.caller, call.path["id"])))

    async def limits(self, call: Call[NoParameters]) -> Reply:
        """GET /api/usage/limits."""
        caller = call.caller
        quota = (await self._read.state(caller.account_id)).quota
        stored = await self._count(caller, None)
        servers = len((await self._servers.of_caller(caller)).items)
        most = quota.max_messages
        limits = {
            "servers": (most, servers),
            "users": (1, 1),
            "email": (most, stored),
            "sms": (0, 0),
        }
        return json_reply(
            {name: {"limit": limit, "current": used} for name, (limit, used) in limits.items()}
        )

    async def days(self, call: Call[NoParameters]) -> Reply:
        """GET /api/usage/transactions."""
        caller, today = call.caller, call.received_at - call.received_at % DAY
        total, later, days = await self._count(caller, None), 0, []
        for number in range(USAGE_DAYS):
            day = Instant(today - number * DAY)
            so_far = later if later >= total else await self._count(caller, day)
            days.append({"timestamp": format_instant(day), "email": so_far - later, "sms": 0})
            later = so_far
        return json_reply({"items": days})

    async def _count(self, caller: Caller, since: Instant | None) -> int:
        wanted = MessageFilter(since=since, allowed=caller.rights.tags)
        return (await self._read.page(caller.account_id, wanted, 1, 1)).total

    async def _find(
        self, caller: Caller, request: ListMessages, filters: Sequence[MessageFilter]
    ) -> list[ListedMessage]:
        """Return a page of the messages that match any filter, newest first."""
        if request.dir == SENT:
            return []
        size, page = request.items_per_page, request.page
        if len(filters) == 1:
            return await self._page(caller, filters[0], size, page + 1)
        lists = [await self._page(caller, one, size * (page + 1), 1) for one in filters]
        return _newest_of(lists)[size * page : size * (page + 1)]

    async def _page(
        self, caller: Caller, wanted: MessageFilter, size: int, page: int
    ) -> list[ListedMessage]:
        found = await self._read.page(caller.account_id, wanted, size, page)
        if page > 1 or not found.not_searched:
            return list(found.messages)
        # The text of a mail can be searched a moment after its arrival.
        new = await self._read.page(caller.account_id, replace(wanted, text=None), NEWEST, 1)
        matches = [one for one in new.messages if await self._has_text(one, wanted)]
        return _newest_of([matches, list(found.messages)])[:size]

    async def _has_text(self, found: ListedMessage, wanted: MessageFilter) -> bool:
        summary = found.summary
        try:
            message = await self._read.message(summary.account_id, summary.id)
        except MessageNotFound:
            return False  # deleted since the page was read
        return not wanted.content_mismatches(message.content)

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
        return read_report(found.report.document)


def _newest_of(lists: Sequence[Sequence[ListedMessage]]) -> list[ListedMessage]:
    """Return the messages of several lists, each once and newest first."""
    found = {one.summary.id: one for some in lists for one in some}
    return sorted(found.values(), key=lambda one: -one.summary.position)


def key_of_headers(headers: Mapping[str, str]) -> str:
    """Return the API key, which is the user name of Basic authentication (RFC 7617).

    :raises InvalidCredentials: there is none.
    """
    scheme, _, encoded = headers.get("authorization", "").strip().partition(" ")
    try:
        given = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        given = ""
    key = given.partition(":")[0]
    if scheme.lower() != "basic" or not key:
        raise InvalidCredentials(
            "an API key is missing: send it as the user name of Basic authentication"
        )
    return key


def _filter(caller: Caller, request: ListMessages) -> MessageFilter:
    """Return the filter of a server.

    :raises InvalidParameter: the server, the page or the time is invalid.
    """
    require_page(request.page)
    if not 1 <= request.items_per_page <= MAX_ITEMS:
        raise InvalidParameter(
            "itemsPerPage",
            f"itemsPerPage is between 1 and {MAX_ITEMS}; you sent {request.items_per_page}",
        )
    since = None
    if request.received_after:
        try:
            since = parse_instant(request.received_after)
        except ValueError:
            sent = request.received_after[:100]
            raise InvalidParameter(
                "receivedAfter", f"receivedAfter is a time in ISO 8601; you sent {sent!r}"
            ) from None
    server = require_server(request.server)
    return MessageFilter(tag_prefix=server, since=since, allowed=caller.rights.tags)


def _criteria(caller: Caller, request: SearchMessages) -> Sequence[MessageFilter]:
    """Return one filter for all criteria, or one for each.

    :raises InvalidParameter: a criterion is missing, or the page is too far.
    """
    base = _filter(caller, request)
    given = {
        "author": request.sent_from,
        "recipient": request.sent_to,
        "subject": request.subject,
        "text": request.body,
    }
    given = {name: value for name, value in given.items() if value}
    if not given:
        raise InvalidParameter(
            "criteria", "send at least one of sentFrom, sentTo, subject and body"
        )
    if request.match == "ALL":
        return [replace(base, **given)]
    if request.items_per_page * (request.page + 1) > MAX_ITEMS:
        raise InvalidParameter(
            "page", f"a search with match ANY shows the newest {MAX_ITEMS:,} messages only"
        )
    return [replace(base, **{name: value}) for name, value in given.items()]
