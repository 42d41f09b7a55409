"""The routes of the developer inbox (SPEC.md section 4, DECISIONS.md section 4)."""

from weakref import WeakKeyDictionary

from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.core.addresses import MAX_TAG, explain_bad_tag
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import RandomBytes, new_short_id
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.concurrency import SharedCalls, Turns
from mailcheck.operations.inbox.explain_wait import TimedOut
from mailcheck.operations.inbox.mail_bytes import LARGE
from mailcheck.operations.inbox.offered import InboxOperations
from mailcheck.operations.inbox.wait_for_message import Quiet
from mailcheck.operations.ranges import (
    DEFAULT_PAGE,
    DEFAULT_SILENCE,
    DEFAULT_WAIT,
    LARGEST_PAGE,
    LAST_PAGE,
    LONGEST_WAIT,
    MOST_WAITED_FOR,
    SHORTEST_WAIT,
)
from mailcheck.web.api import described_inbox as described
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.site.downloads import download_reply
from mailcheck.web.site.errors import NOT_NONE, WAIT_OVER
from mailcheck.web.site.replies import Reply, json_reply, large_json_reply
from mailcheck.wire.inbox.checks import (
    parse_links_to_check,
    render_checked_links,
    render_checks,
)
from mailcheck.wire.inbox.messages import render_message
from mailcheck.wire.inbox.overview import (
    Deleted,
    DeletedMany,
    render_address,
    render_list,
    render_overview,
    render_raw_message,
    render_share,
)
from mailcheck.wire.inbox.waits import (
    render_disturbed,
    render_gathered,
    render_many_timed_out,
    render_quiet,
    render_timed_out,
)
from mailcheck.wire.urls import PublicUrls

_RenderedFor = tuple[PublicUrls, Authentication | None]
_LargeMessage = tuple[StoredMessage, PublicUrls, Authentication | None]


class InboxRoutes:
    """Parameters in, operation, shape out; no rule of its own."""

    def __init__(
        self,
        operations: InboxOperations,
        domain: str,
        retention: int,
        random_bytes: RandomBytes,
        mail_server: str,
        turns: Turns,
    ) -> None:
        self._read = operations.read
        self._wait = operations.wait
        self._delete = operations.delete
        self._share = operations.share
        self._authenticate = operations.authenticate
        self._check = operations.check
        self._check_links = operations.check_links
        self._domain = domain
        self._retention = retention
        self._random_bytes = random_bytes
        self._mail_server = mail_server
        self._turns = turns
        self._rendering: SharedCalls[_LargeMessage, Reply] = SharedCalls(
            self._render_large, ends_unwanted=True
        )
        self._rendered: WeakKeyDictionary[StoredMessage, tuple[_RenderedFor, Reply]] = (
            WeakKeyDictionary()
        )

    def routes(self) -> list[Route]:
        """List the routes."""
        message = "/inbox/messages/<message_id>"
        return [
            Route("GET", "/inbox", self.overview, described.INBOX_OVERVIEW),
            Route("GET", "/inbox/address", self.address, described.ADDRESS),
            Route("GET", "/inbox/wait", self.wait, described.WAIT),
            Route("GET", "/inbox/wait/many", self.wait_for_many, described.WAIT_MANY),
            Route("GET", "/inbox/wait/none", self.wait_for_none, described.WAIT_NONE),
            Route("GET", "/inbox/messages", self.messages, described.MESSAGES_LIST),
            Route("DELETE", "/inbox/messages", self.delete_messages, described.MESSAGES_DELETE),
            Route("GET", message, self.message, described.MESSAGE_SHOW),
            Route("DELETE", message, self.delete_message, described.MESSAGE_DELETE),
            Route("GET", f"{message}/raw", self.raw_message, described.MESSAGE_RAW),
            Route("GET", f"{message}/html", self.html_part, described.MESSAGE_HTML),
            Route(
                "GET",
                f"{message}/attachments/<attachment_id>",
                self.attachment,
                described.ATTACHMENT,
            ),
            Route("GET", f"{message}/checks", self.checks, described.MESSAGE_CHECKS),
            Route("POST", f"{message}/checks/links", self.check_links, described.LINK_CHECKS),
            Route("POST", f"{message}/share", self.renew_share, described.MESSAGE_SHARE),
        ]

    async def overview(self, call: Call) -> Reply:
        """GET /inbox."""
        overview = await self._read.overview(call.caller.account_id)
        return json_reply(
            render_overview(overview, self._domain, self._retention, self._mail_server)
        )

    async def address(self, call: Call) -> Reply:
        """GET /inbox/address."""
        tag = call.query.tag() or ""
        if call.query.flag("unique"):
            tag = self._make_unique(tag)
        inbox = await self._read.state(call.caller.account_id)
        return json_reply(render_address(inbox, tag, self._domain))

    async def wait(self, call: Call) -> Reply:
        """GET /inbox/wait."""
        wanted = call.query.wait_filter()
        timeout = call.query.seconds("timeout", SHORTEST_WAIT, LONGEST_WAIT, DEFAULT_WAIT)
        outcome = await self._wait.wait(call.caller, wanted, timeout)
        if isinstance(outcome, TimedOut):
            return json_reply(render_timed_out(outcome), WAIT_OVER)
        return await self._message_reply(outcome, call.urls)

    async def wait_for_many(self, call: Call) -> Reply:
        """GET /inbox/wait/many."""
        wanted = call.query.wait_filter()
        timeout = call.query.seconds("timeout", SHORTEST_WAIT, LONGEST_WAIT, DEFAULT_WAIT)
        count = call.query.whole_number("count", 1, MOST_WAITED_FOR, 1)
        outcome = await self._wait.wait_for_many(call.caller, wanted, timeout, count)
        if isinstance(outcome, TimedOut):
            return json_reply(render_many_timed_out(outcome), WAIT_OVER)
        return json_reply(render_gathered(outcome, call.urls))

    async def wait_for_none(self, call: Call) -> Reply:
        """GET /inbox/wait/none."""
        wanted = call.query.wait_filter()
        seconds = call.query.seconds("seconds", SHORTEST_WAIT, LONGEST_WAIT, DEFAULT_SILENCE)
        outcome = await self._wait.wait_for_none(call.caller, wanted, seconds)
        if isinstance(outcome, Quiet):
            return json_reply(render_quiet(outcome))
        return await large_json_reply(
            render_disturbed(outcome, call.urls), self._turns, status=NOT_NONE
        )

    async def messages(self, call: Call) -> Reply:
        """GET /inbox/messages."""
        wanted = call.query.message_filter(call.asked_at)
        limit = call.query.whole_number("limit", 1, LARGEST_PAGE, DEFAULT_PAGE)
        page = call.query.whole_number("page", 1, LAST_PAGE, 1)
        messages = await self._read.page(call.caller.account_id, wanted, limit, page)
        return json_reply(render_list(messages, call.urls))

    async def message(self, call: Call) -> Reply:
        """GET /inbox/messages/{id}."""
        message = await self._read.message(call.caller.account_id, call.message_id)
        authentication = await self._authenticate.of(message)
        return await self._message_reply(message, call.urls, authentication)

    async def raw_message(self, call: Call) -> Reply:
        """GET /inbox/messages/{id}/raw."""
        raw = await self._read.raw_message(call.caller.account_id, call.message_id)
        if "message/rfc822" in call.accept.lower():
            return download_reply(raw, "message/rfc822", f"{call.message_id}.eml")
        return await large_json_reply(render_raw_message(call.message_id, raw), self._turns)

    async def html_part(self, call: Call) -> Reply:
        """GET /inbox/messages/{id}/html."""
        message = await self._read.message(call.caller.account_id, call.message_id)
        html = message.content.html.encode("utf-8", "replace")
        return download_reply(html, "text/html; charset=utf-8", f"{call.message_id}.html")

    async def attachment(self, call: Call) -> Reply:
        """GET /inbox/messages/{id}/attachments/{attachmentId}."""
        attachment = await self._read.attachment(
            call.caller.account_id, call.message_id, call.path["attachment_id"]
        )
        return download_reply(attachment.data, attachment.content_type, attachment.filename)

    async def checks(self, call: Call) -> Reply:
        """GET /inbox/messages/{id}/checks."""
        message = await self._read.message(call.caller.account_id, call.message_id)
        found = await self._check.of_message(message)
        return await large_json_reply(render_checks(call.message_id, found), self._turns)

    async def check_links(self, call: Call) -> Reply:
        """POST /inbox/messages/{id}/checks/links."""
        urls, method = parse_links_to_check(call.body)
        account_id = call.caller.account_id
        message = await self._read.message(account_id, call.message_id)
        checks = await self._check.of_message(message)
        found = await self._check_links.check(account_id, checks, urls, method)
        return json_reply(render_checked_links(call.message_id, found))

    async def delete_message(self, call: Call) -> Reply:
        """DELETE /inbox/messages/{id}."""
        await self._delete.one(call.caller.account_id, call.message_id)
        return json_reply(Deleted(success=True, id=call.message_id))

    async def delete_messages(self, call: Call) -> Reply:
        """DELETE /inbox/messages."""
        wanted = call.query.deletion_filter()
        deleted = await self._delete.matching(call.caller.account_id, wanted)
        return json_reply(DeletedMany(success=True, deleted=deleted))

    async def renew_share(self, call: Call) -> Reply:
        """POST /inbox/messages/{id}/share."""
        message = await self._share.renew(call.caller.account_id, call.message_id)
        return json_reply(render_share(message, call.urls))

    def _make_unique(self, tag: str) -> str:
        ending = new_short_id(self._random_bytes)
        unique = f"{tag}-{ending}" if tag else ending
        if explain_bad_tag(unique) is not None:
            room = MAX_TAG - len(f"-{ending}")
            raise InvalidParameter(
                "tag", f"tag has at most {room} octets where unique=true puts an ending behind it"
            )
        return unique

    async def _message_reply(
        self,
        message: StoredMessage,
        urls: PublicUrls,
        authentication: Authentication | None = None,
    ) -> Reply:
        """Render a message once for all who get it at the same time by the same way."""
        if message.summary.size >= LARGE:
            return await self._rendering.call((message, urls, authentication))
        rendered_for, reply = self._rendered.get(message, (None, None))
        if reply is None or rendered_for != (urls, authentication):
            reply = json_reply(render_message(message, urls, authentication))
            self._rendered[message] = (urls, authentication), reply
        return reply

    async def _render_large(self, wanted: _LargeMessage) -> Reply:
        return await large_json_reply(render_message(*wanted), self._turns)
