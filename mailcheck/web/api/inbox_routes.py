"""The routes of the developer inbox (docs/reference/contract.md)."""

from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct, field
from msgspec.structs import replace

from mailcheck.api.errors import Interrupted
from mailcheck.api.inbox.checks import (
    CheckedLinks,
    MessageChecks,
    PressedUnsubscribe,
    render_checked_links,
    render_checks,
    render_pressed,
)
from mailcheck.api.inbox.messages import Message, render_message
from mailcheck.api.inbox.overview import (
    Deleted,
    DeletedMany,
    Inbox,
    InboxAddress,
    Messages,
    RawMessage,
    ReleasedMessage,
    Share,
    render_address,
    render_list,
    render_overview,
    render_raw_message,
    render_released,
    render_share,
)
from mailcheck.api.inbox.waits import (
    GatheredMessages,
    ManyTimedOut,
    NoMessage,
    TimedOut,
    UnwantedMessage,
    render_many_timed_out,
    render_no_message,
    render_timed_out,
    render_unexpected_message,
    render_wait_for_many,
)
from mailcheck.api.openapi.operations import (
    BYTES,
    Body,
    Link,
    Operation,
    Response,
    error_response,
    json_body,
    json_response,
)
from mailcheck.api.requests.inbox import (
    DeleteMessages,
    ExpectNoMessage,
    LinksToCheck,
    ListMessages,
    ReleaseMessage,
    TakeAddress,
    WaitForMessage,
    WaitForMessages,
)
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.api.urls import PublicUrls
from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.core.addresses import MAX_TAG, explain_bad_tag
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import MessageId, RandomBytes, new_short_id
from mailcheck.core.messages import StoredMessage
from mailcheck.core.rights import Rights, Scope
from mailcheck.operations.concurrency import PacedQueue, SingleFlight
from mailcheck.operations.inbox import explain_wait
from mailcheck.operations.inbox.all_operations import InboxOperations
from mailcheck.operations.inbox.contents import LARGE
from mailcheck.operations.inbox.wait_for_message import NoMessage as NoneArrived
from mailcheck.web.api.calls import COMMON_ERRORS, DOWNLOAD, Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.costs import Cost
from mailcheck.web.site.failures import UNEXPECTED_MESSAGE, WAIT_TIMED_OUT
from mailcheck.web.site.replies import Reply, download_reply, json_reply, large_json_reply

_TAG = "Inbox"

_CUT_SHORT = json_response(
    "The wait was interrupted: continue with `after` set to `cursor`.",
    "interrupted",
    Interrupted,
    headers=COMMON_ERRORS[503].headers,
)

_THIS = {"id": "$response.body#/id"}
_FIRST = {"id": "$response.body#/messages/0/id"}

_MESSAGE_LINKS = {
    "message": Link("getMessage", _THIS, "the complete message"),
    "raw": Link("getRawMessage", _THIS, "the raw mail"),
    "delete": Link("deleteMessage", _THIS, "delete it"),
    "next": Link("waitForMessage", {"after": "$response.body#/cursor"}, "wait for the next one"),
    "test": Link("scoreMessage", _THIS, "create a deliverability test of it"),
    "checks": Link("getMessageChecks", _THIS, "check its HTML and links"),
}

INBOX_OVERVIEW = Operation(
    "getInbox",
    (Scope.INBOX_READ,),
    _TAG,
    "Get the inbox",
    "Returns its address, the number of messages, and the tags in use, newest first.",
    answer=json_response("The inbox.", "inbox", Inbox),
)

ADDRESS = Operation(
    "getInboxAddress",
    (Scope.INBOX_READ,),
    _TAG,
    "Get an inbox address",
    "Returns an address for the software under test, and the cursor to wait from. Every +tag "
    "works without setup.",
    answer=json_response(
        "The address.",
        "address",
        InboxAddress,
        links={
            "wait": Link(
                "waitForMessage",
                {"after": "$response.body#/cursor", "tag": "$response.body#/tag"},
                "wait for mail to it",
            )
        },
    ),
    request=TakeAddress,
)

WAIT = Operation(
    "waitForMessage",
    (Scope.INBOX_READ,),
    _TAG,
    "Wait for a message",
    "Returns the oldest matching message as soon as there is one. A message is not consumed: every "
    "matching wait receives it. To avoid races, take a cursor, trigger the mail, and wait with "
    "`after`.",
    answer=json_response("The message.", "waited message", Message, links=_MESSAGE_LINKS),
    errors={
        408: json_response(
            "No matching message arrived before the timeout. `seen` contains the messages that "
            "arrived, and why they did not match.",
            "timedOut",
            TimedOut,
        ),
        503: _CUT_SHORT,
    },
    request=WaitForMessage,
)

WAIT_MANY = Operation(
    "waitForMessages",
    (Scope.INBOX_READ,),
    _TAG,
    "Wait for several messages",
    "Responds when `count` messages match, with all of them, oldest first. After a timeout, repeat "
    "the request with `after` set to `cursor`: messages that have already arrived count again.",
    answer=json_response(
        "The messages.",
        "gathered",
        GatheredMessages,
        links={
            "first": Link("getMessage", _FIRST, "the oldest message"),
            "next": Link("waitForMessages", {"after": "$response.body#/cursor"}, "wait for more"),
        },
    ),
    errors={
        408: json_response(
            "Fewer messages arrived before the timeout; `matched` is their number.",
            "manyTimedOut",
            ManyTimedOut,
        ),
        503: _CUT_SHORT,
    },
    request=WaitForMessages,
)

WAIT_NONE = Operation(
    "expectNoMessage",
    (Scope.INBOX_READ,),
    _TAG,
    "Check that no message arrives",
    "Waits for the given seconds, and confirms that no message matches since `after` or `since`, "
    "or since the request if neither is given. Responds at once if a message matches, or if a "
    "mail to the address is rejected.",
    answer=json_response("No message arrived.", "none", NoMessage),
    errors={
        409: json_response(
            "A message arrived, or a mail was rejected.", "unwanted", UnwantedMessage
        ),
        503: _CUT_SHORT,
    },
    request=ExpectNoMessage,
)

MESSAGES_LIST = Operation(
    "listMessages",
    (Scope.INBOX_READ,),
    _TAG,
    "List messages",
    "Newest first, without text, HTML and headers.",
    answer=json_response(
        "A page of messages.",
        "messages",
        Messages,
        links={
            "first": Link("getMessage", _FIRST, "the newest message"),
            "firstRaw": Link("getRawMessage", _FIRST, "the newest mail"),
            "firstHtml": Link("getMessageHtml", _FIRST, "its HTML"),
            "deleteFirst": Link("deleteMessage", _FIRST, "delete it"),
            "shareFirst": Link("renewMessageShare", _FIRST, "create a new share link of it"),
        },
    ),
    request=ListMessages,
)

MESSAGES_DELETE = Operation(
    "deleteMessages",
    (Scope.INBOX_WRITE,),
    _TAG,
    "Delete messages",
    "Deletes all matching messages, or all messages of the inbox without parameters. This cannot "
    "be undone.",
    answer=json_response("The number of deleted messages.", "deleted many", DeletedMany),
    request=DeleteMessages,
)

MESSAGE_SHOW = Operation(
    "getMessage",
    (Scope.INBOX_READ,),
    _TAG,
    "Get a message",
    "Returns the complete message with headers, attachments, all candidates for links and codes, "
    "and the results of SPF, DKIM and DMARC.",
    answer=json_response(
        "The message.",
        "message",
        Message,
        links={
            **_MESSAGE_LINKS,
            "attachment": Link(
                "getAttachment",
                {**_THIS, "attachmentId": "$response.body#/attachments/0/id"},
                "the first attachment",
            ),
        },
    ),
)

MESSAGE_DELETE = Operation(
    "deleteMessage",
    (Scope.INBOX_WRITE,),
    _TAG,
    "Delete a message",
    "Deletes the message and its share link.",
    answer=json_response("The message is deleted.", "deleted", Deleted),
)

MESSAGE_RAW = Operation(
    "getRawMessage",
    (Scope.INBOX_READ,),
    _TAG,
    "Get the raw mail",
    "JSON with the mail as text, or in Base64 if it is not valid UTF-8. With "
    "`Accept: message/rfc822`, the exact bytes as a download.",
    answer=Response(
        "The mail.",
        [json_body("raw", RawMessage), Body(media_type="message/rfc822")],
    ),
)

MESSAGE_HTML = Operation(
    "getMessageHtml",
    (Scope.INBOX_READ,),
    _TAG,
    "Download the HTML of a message",
    "The original, unsanitized HTML, as a download that browsers do not open.",
    answer=Response("The HTML.", [Body(media_type="text/html")], DOWNLOAD),
)

ATTACHMENT = Operation(
    "getAttachment",
    (Scope.INBOX_READ,),
    _TAG,
    "Download an attachment",
    "The decoded attachment, with the media type from the mail if that is valid.",
    answer=Response("The attachment.", [Body(media_type=BYTES), Body(media_type="*/*")], DOWNLOAD),
)

MESSAGE_CHECKS = Operation(
    "getMessageChecks",
    (Scope.INBOX_READ,),
    _TAG,
    "Check the HTML of a message",
    "Reports HTML and CSS features without support in some mail clients, with their lines, "
    "accessibility problems, and the links. Sends no request and changes no score.",
    answer=json_response(
        "The checks.",
        "checks",
        MessageChecks,
        links={"links": Link("checkMessageLinks", _THIS, "check whether its links work")},
    ),
)

LINK_CHECKS = Operation(
    "checkMessageLinks",
    (Scope.INBOX_WRITE,),
    _TAG,
    "Check the links of a message",
    "Sends a request to each link, HEAD or GET, and follows its redirects. Without `urls`, it "
    "checks all links except the best one and unsubscribe links, which a request may consume. "
    "Hosts on private addresses are not checked. An account may check 200 links a minute and "
    "5,000 a day; further links are `not-checked`.",
    answer=json_response("The results.", "checked links", CheckedLinks),
    request=LinksToCheck,
)

PRESS_UNSUBSCRIBE = Operation(
    "pressUnsubscribe",
    (Scope.INBOX_WRITE,),
    _TAG,
    "Press the one-click unsubscribe of a message",
    "Sends the request of RFC 8058 to the https URL of List-Unsubscribe, as a mailbox provider "
    "does: one POST, without cookies, and without following a redirect. **It unsubscribes the "
    "recipient.** No other request of this API sends it. Hosts on private addresses are not "
    "contacted. An account may send 10 a minute and 200 a day.",
    answer=json_response("The result.", "pressed unsubscribe", PressedUnsubscribe),
)

MESSAGE_SHARE = Operation(
    "renewMessageShare",
    (Scope.INBOX_WRITE,),
    _TAG,
    "Create a new share link of a message",
    "The old link stops working immediately.",
    answer=json_response("The new link.", "share", Share),
)


MESSAGE_RELEASE = Operation(
    "releaseMessage",
    (Scope.INBOX_WRITE,),
    _TAG,
    "Release a message to a real mailbox",
    "Sends the mail over the relay of the operator to addresses that `[release] allow_recipients` "
    "names for the account. The mail is sent as it was received, behind new fields Resent-Date, "
    "Resent-From, Resent-To and Resent-Message-ID. It stays in the inbox. The operator limits the "
    "recipients of an hour, and the audit log names the key.",
    answer=json_response(
        "The relay has accepted the mail for at least one recipient.", "released", ReleasedMessage
    ),
    errors={
        403: Response(
            "The operator does not release mail, or the API key is limited.",
            COMMON_ERRORS[403].bodies,
        ),
        502: error_response(
            "The relay rejected the mail or all recipients for good; `error` has its answer.",
            "relay rejected",
        ),
        503: Response(
            "The relay does not take the mail now. `error` says why, and a retry may succeed.",
            COMMON_ERRORS[503].bodies,
            COMMON_ERRORS[503].headers,
        ),
    },
    request=ReleaseMessage,
)


_Handler = Callable[[Call[Any]], Awaitable[Reply]]

_RenderedFor = tuple[PublicUrls, Authentication | None]
"""The arguments of a rendered reply, other than the message."""

_LargeMessage = tuple[StoredMessage, PublicUrls, Authentication | None]


class InboxRoutes(Struct, frozen=True, eq=False):
    """Handlers that parse parameters, call an operation and render its result."""

    inbox: InboxOperations
    domain: str
    retention: int
    random_bytes: RandomBytes
    mail_server: str
    turns: PacedQueue
    _rendering: SingleFlight[_LargeMessage, Reply, PacedQueue] = field(
        default_factory=lambda: SingleFlight(_render_large, cancels_unwanted=True)
    )
    _rendered: WeakKeyDictionary[StoredMessage, tuple[_RenderedFor, Reply]] = field(
        default_factory=WeakKeyDictionary
    )

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        of_message: list[tuple[str, str, _Handler, Operation[Any], Cost]] = [
            ("GET", "", self.message, MESSAGE_SHOW, costs.MESSAGE),
            ("DELETE", "", self.delete_message, MESSAGE_DELETE, costs.FREE),
            ("GET", "/raw", self.raw_message, MESSAGE_RAW, costs.FREE),
            ("GET", "/html", self.html_part, MESSAGE_HTML, costs.PARTS),
            ("GET", "/attachments/<attachment_id>", self.attachment, ATTACHMENT, costs.PARTS),
            ("GET", "/checks", self.checks, MESSAGE_CHECKS, costs.PARTS),
            ("POST", "/checks/links", self.check_links, LINK_CHECKS, costs.PARTS),
            ("POST", "/checks/unsubscribe", self.press_unsubscribe, PRESS_UNSUBSCRIBE, costs.PARTS),
            ("POST", "/release", self.release, MESSAGE_RELEASE, costs.RELEASE),
            ("POST", "/share", self.renew_share, MESSAGE_SHARE, costs.FREE),
        ]
        messages = "/inbox/messages"
        return [
            make_route("GET", "/inbox", self.overview, INBOX_OVERVIEW, costs.FREE),
            make_route("GET", "/inbox/address", self.address, ADDRESS, costs.FREE),
            make_route("GET", "/inbox/wait", self.wait, WAIT, costs.FREE),
            make_route("GET", "/inbox/wait/many", self.wait_for_many, WAIT_MANY, costs.FREE),
            make_route("GET", "/inbox/wait/none", self.wait_for_none, WAIT_NONE, costs.FREE),
            make_route("GET", messages, self.messages, MESSAGES_LIST, costs.FREE),
            make_route("DELETE", messages, self.delete_messages, MESSAGES_DELETE, costs.FREE),
            *(
                make_route(
                    method,
                    f"{messages}/<message_id>{path}",
                    self._of_allowed(handle),
                    operation,
                    cost,
                )
                for method, path, handle, operation, cost in of_message
            ),
        ]

    def _of_allowed(self, handle: _Handler) -> _Handler:
        """Return a handler that finds no message with a tag that the key is not limited to."""

        async def handle_allowed(call: Call[Any]) -> Reply:
            await self.inbox.read.require_allowed(call.caller, _message_id(call))
            return await handle(call)

        return handle_allowed

    async def overview(self, call: Call[NoParameters]) -> Reply:
        """GET /inbox."""
        caller = call.caller
        overview = await self.inbox.read.overview(caller.account_id, caller.rights.tags)
        return json_reply(render_overview(overview, self.domain, self.retention, self.mail_server))

    async def address(self, call: Call[TakeAddress]) -> Reply:
        """GET /inbox/address."""
        tag, rights = call.request.tag, call.caller.rights
        if call.request.unique:
            tag = self._make_unique(tag, rights)
        rights.require_tag(tag)
        inbox = await self.inbox.read.state(call.caller.account_id)
        return json_reply(render_address(inbox, tag, self.domain))

    async def wait(self, call: Call[WaitForMessage]) -> Reply:
        """GET /inbox/wait."""
        request = call.request
        outcome = await self.inbox.wait.wait(call.caller, request.wanted, request.timeout)
        if isinstance(outcome, explain_wait.TimedOut):
            return json_reply(render_timed_out(outcome), WAIT_TIMED_OUT)
        return await self._message_reply(outcome, call.urls)

    async def wait_for_many(self, call: Call[WaitForMessages]) -> Reply:
        """GET /inbox/wait/many."""
        request = call.request
        outcome = await self.inbox.wait.wait_for_many(
            call.caller, request.wanted, request.timeout, request.count
        )
        if isinstance(outcome, explain_wait.TimedOut):
            return json_reply(render_many_timed_out(outcome), WAIT_TIMED_OUT)
        return json_reply(render_wait_for_many(outcome, call.urls))

    async def wait_for_none(self, call: Call[ExpectNoMessage]) -> Reply:
        """GET /inbox/wait/none."""
        request = call.request
        outcome = await self.inbox.wait.wait_for_none(call.caller, request.wanted, request.seconds)
        if isinstance(outcome, NoneArrived):
            return json_reply(render_no_message(outcome))
        return await large_json_reply(
            render_unexpected_message(outcome, call.urls), self.turns, status=UNEXPECTED_MESSAGE
        )

    async def messages(self, call: Call[ListMessages]) -> Reply:
        """GET /inbox/messages."""
        request, caller = call.request, call.caller
        wanted = replace(request.wanted_at(call.received_at), allowed=caller.rights.tags)
        messages = await self.inbox.read.page(
            caller.account_id, wanted, request.limit, request.page
        )
        return json_reply(render_list(messages, call.urls))

    async def message(self, call: Call[NoParameters]) -> Reply:
        """GET /inbox/messages/{id}."""
        message = await self.inbox.read.message(call.caller.account_id, _message_id(call))
        authentication = await self.inbox.authenticate.of(message)
        return await self._message_reply(message, call.urls, authentication)

    async def raw_message(self, call: Call[NoParameters]) -> Reply:
        """GET /inbox/messages/{id}/raw."""
        raw = await self.inbox.read.raw_message(call.caller.account_id, _message_id(call))
        if "message/rfc822" in call.accept.lower():
            return download_reply(raw, "message/rfc822", f"{call.path['message_id']}.eml")
        return await large_json_reply(render_raw_message(_message_id(call), raw), self.turns)

    async def html_part(self, call: Call[NoParameters]) -> Reply:
        """GET /inbox/messages/{id}/html."""
        message = await self.inbox.read.message(call.caller.account_id, _message_id(call))
        html = message.content.html.encode("utf-8", "replace")
        return download_reply(html, "text/html; charset=utf-8", f"{call.path['message_id']}.html")

    async def attachment(self, call: Call[NoParameters]) -> Reply:
        """GET /inbox/messages/{id}/attachments/{attachmentId}."""
        attachment = await self.inbox.read.attachment(
            call.caller.account_id, _message_id(call), call.path["attachment_id"]
        )
        return download_reply(attachment.data, attachment.content_type, attachment.filename)

    async def checks(self, call: Call[NoParameters]) -> Reply:
        """GET /inbox/messages/{id}/checks."""
        message = await self.inbox.read.message(call.caller.account_id, _message_id(call))
        found = await self.inbox.check.of_message(message)
        return await large_json_reply(render_checks(_message_id(call), found), self.turns)

    async def check_links(self, call: Call[LinksToCheck]) -> Reply:
        """POST /inbox/messages/{id}/checks/links."""
        account_id, urls, method = call.caller.account_id, call.request.urls, call.request.method
        message = await self.inbox.read.message(account_id, _message_id(call))
        checks = await self.inbox.check.of_message(message)
        found = await self.inbox.check_links.check(account_id, checks, urls, method)
        return json_reply(render_checked_links(_message_id(call), found))

    async def press_unsubscribe(self, call: Call[NoParameters]) -> Reply:
        """POST /inbox/messages/{id}/checks/unsubscribe."""
        account_id = call.caller.account_id
        message = await self.inbox.read.message(account_id, _message_id(call))
        checks = await self.inbox.check.of_message(message)
        found = await self.inbox.check_links.press_unsubscribe(account_id, checks.one_click)
        return json_reply(render_pressed(found))

    async def release(self, call: Call[ReleaseMessage]) -> Reply:
        """POST /inbox/messages/{id}/release."""
        recipients, caller = call.request.to, call.caller
        message = await self.inbox.read.message(caller.account_id, _message_id(call))
        found = await self.inbox.release.release(message, recipients, caller.actor)
        return json_reply(render_released(found))

    async def delete_message(self, call: Call[NoParameters]) -> Reply:
        """DELETE /inbox/messages/{id}."""
        await self.inbox.delete.one(call.caller.account_id, _message_id(call))
        return json_reply(Deleted(success=True, id=_message_id(call)))

    async def delete_messages(self, call: Call[DeleteMessages]) -> Reply:
        """DELETE /inbox/messages."""
        wanted = replace(call.request.wanted, allowed=call.caller.rights.tags)
        deleted = await self.inbox.delete.matching(call.caller.account_id, wanted)
        return json_reply(DeletedMany(success=True, deleted=deleted))

    async def renew_share(self, call: Call[NoParameters]) -> Reply:
        """POST /inbox/messages/{id}/share."""
        message = await self.inbox.share.renew(call.caller.account_id, _message_id(call))
        return json_reply(render_share(message, call.urls))

    def _make_unique(self, tag: str, rights: Rights) -> str:
        ending = new_short_id(self.random_bytes)
        unique = f"{tag}-{ending}" if tag else rights.unique_tag(ending)
        if explain_bad_tag(unique) is not None:
            longest = MAX_TAG - len(f"-{ending}")
            raise InvalidParameter(
                "tag", f"tag must have at most {longest} octets with unique=true"
            )
        return unique

    async def _message_reply(
        self,
        message: StoredMessage,
        urls: PublicUrls,
        authentication: Authentication | None = None,
    ) -> Reply:
        """Render a message once for all clients that request it at the same time."""
        if message.summary.size >= LARGE:
            return await self._rendering.call((message, urls, authentication), self.turns)
        rendered_for, reply = self._rendered.get(message, (None, None))
        if reply is None or rendered_for != (urls, authentication):
            reply = json_reply(render_message(message, urls, authentication))
            self._rendered[message] = (urls, authentication), reply
        return reply


async def _render_large(wanted: _LargeMessage, turns: PacedQueue) -> Reply:
    return await large_json_reply(render_message(*wanted), turns)


def _message_id(call: Call[Any]) -> MessageId:
    return MessageId(call.path["message_id"])
