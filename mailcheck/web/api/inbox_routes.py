"""The routes of the developer inbox (SPEC.md section 4, DECISIONS.md section 4)."""

from weakref import WeakKeyDictionary

from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.core.addresses import MAX_TAG, explain_bad_tag
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import RandomBytes, new_short_id
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.offered import InboxOperations
from mailcheck.operations.inbox.wait_for_message import TimedOut
from mailcheck.operations.ranges import (
    DEFAULT_PAGE,
    DEFAULT_WAIT,
    LARGEST_PAGE,
    LAST_PAGE,
    LONGEST_WAIT,
    SHORTEST_WAIT,
)
from mailcheck.web.api import described_inbox as described
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.site.downloads import download_reply
from mailcheck.web.site.errors import WAIT_OVER
from mailcheck.web.site.replies import Reply, json_reply
from mailcheck.wire.inbox.messages import render_message
from mailcheck.wire.inbox.overview import (
    Deleted,
    DeletedMany,
    render_address,
    render_list,
    render_overview,
    render_raw_message,
    render_share,
    render_timed_out,
)
from mailcheck.wire.urls import PublicUrls

_RenderedFor = tuple[PublicUrls, Authentication | None]


class InboxRoutes:
    """Parameters in, operation, shape out; no rule of its own."""

    def __init__(
        self,
        operations: InboxOperations,
        domain: str,
        retention: int,
        random_bytes: RandomBytes,
    ) -> None:
        self._read = operations.read
        self._wait = operations.wait
        self._delete = operations.delete
        self._share = operations.share
        self._authenticate = operations.authenticate
        self._domain = domain
        self._retention = retention
        self._random_bytes = random_bytes
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
            Route("POST", f"{message}/share", self.renew_share, described.MESSAGE_SHARE),
        ]

    async def overview(self, call: Call) -> Reply:
        """GET /inbox."""
        overview = await self._read.overview(call.caller.account_id)
        return json_reply(render_overview(overview, self._domain, self._retention))

    async def address(self, call: Call) -> Reply:
        """GET /inbox/address."""
        tag = call.query.tag() or ""
        if call.query.flag("unique"):
            tag = self._make_unique(tag)
        inbox = await self._read.state(call.caller.account_id)
        return json_reply(render_address(inbox, tag, self._domain))

    async def wait(self, call: Call) -> Reply:
        """GET /inbox/wait."""
        wanted = call.query.message_filter(call.asked_at)
        timeout = call.query.seconds("timeout", SHORTEST_WAIT, LONGEST_WAIT, DEFAULT_WAIT)
        outcome = await self._wait.wait(call.caller, wanted, timeout)
        if isinstance(outcome, TimedOut):
            return json_reply(render_timed_out(outcome), WAIT_OVER)
        return self._message_reply(outcome, call.urls)

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
        return self._message_reply(message, call.urls, authentication)

    async def raw_message(self, call: Call) -> Reply:
        """GET /inbox/messages/{id}/raw."""
        raw = await self._read.raw_message(call.caller.account_id, call.message_id)
        if "message/rfc822" in call.accept.lower():
            return download_reply(raw, "message/rfc822", f"{call.message_id}.eml")
        return json_reply(render_raw_message(call.message_id, raw))

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

    async def delete_message(self, call: Call) -> Reply:
        """DELETE /inbox/messages/{id}."""
        await self._delete.one(call.caller.account_id, call.message_id)
        return json_reply(Deleted(success=True, id=call.message_id))

    async def delete_messages(self, call: Call) -> Reply:
        """DELETE /inbox/messages."""
        if call.query.text("q") is not None:
            raise InvalidParameter(
                "q",
                "q is for lists: a search is no safe way to say what to delete; send tag, "
                "to, from, subject, since or after, or delete each message by its id",
            )
        wanted = call.query.message_filter(call.asked_at)
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

    def _message_reply(
        self,
        message: StoredMessage,
        urls: PublicUrls,
        authentication: Authentication | None = None,
    ) -> Reply:
        """Render a message once for all who get it at the same time by the same way."""
        rendered_for, reply = self._rendered.get(message, (None, None))
        if reply is None or rendered_for != (urls, authentication):
            reply = json_reply(render_message(message, urls, authentication))
            self._rendered[message] = (urls, authentication), reply
        return reply
