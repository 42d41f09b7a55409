"""The MCP tools of the developer inbox (docs/reference/contract.md)."""

from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.api.inbox.overview import Share, render_share
from mailcheck.api.mcp import inbox as shapes
from mailcheck.api.mcp import messages as one_message
from mailcheck.api.mcp.attachments import AttachmentView, trim_attachment, view_attachment
from mailcheck.api.mcp.texts import (
    describe,
    describe_attachment,
    describe_list,
    describe_message,
    describe_wait,
)
from mailcheck.api.mcp.views import MessageView, trim_content, view_content
from mailcheck.checks.content.bodies import Attachment
from mailcheck.core.accounts import Caller
from mailcheck.core.cursors import Position
from mailcheck.core.identifiers import AccountId, RandomBytes, new_short_id
from mailcheck.core.instants import SECOND
from mailcheck.core.messages import StoredMessage
from mailcheck.core.rights import Scope
from mailcheck.operations.concurrency import SingleFlight
from mailcheck.operations.inbox.all_operations import InboxOperations
from mailcheck.operations.inbox.check_message import AUTHENTICATION_DEADLINE
from mailcheck.operations.inbox.explain_wait import TimedOut
from mailcheck.operations.inbox.wait_for_message import NoMessage, UnexpectedMessage
from mailcheck.ports.workers import Worker
from mailcheck.web.mcp.tools import (
    Annotations,
    Image,
    LongWait,
    Tool,
    ToolCall,
    ToolResult,
    as_json_text,
)
from mailcheck.web.site import costs


class MessageViews:
    """Creates and caches views of messages. HTML is parsed in a worker process."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._views: WeakKeyDictionary[StoredMessage, MessageView] = WeakKeyDictionary()
        self._making: SingleFlight[StoredMessage, MessageView] = SingleFlight(self._make)

    async def of(self, message: StoredMessage) -> MessageView:
        """Return the view of a message."""
        view = self._views.get(message)
        if view is None:
            view = await self._making.call(message)
        return view

    async def of_attachment(self, found: Attachment, owner: AccountId) -> AttachmentView:
        """Return the view of an attachment."""
        viewing = partial(view_attachment, trim_attachment(found), len(found.data))
        return await self._worker.run(viewing, owner)

    async def _make(self, message: StoredMessage) -> MessageView:
        content = message.content
        if content.html:
            viewing = partial(view_content, trim_content(content))
            view = await self._worker.run(viewing, message.summary.account_id)
        else:
            view = view_content(content)
        self._views[message] = view
        return view


_OPEN_WORLD = Annotations(is_open_world=True)


class InboxTools(Struct, frozen=True, eq=False):
    """Tools that parse arguments, call an operation and render its result."""

    inbox: InboxOperations
    views: MessageViews
    domain: str
    random_bytes: RandomBytes

    def tools(self) -> list[Tool[Any]]:
        """List the tools in the order in which an agent needs them."""
        return [
            Tool(
                "new_address",
                (Scope.INBOX_READ,),
                costs.FREE,
                "New mail address",
                "Get a new mail address, before the mail is triggered. Then call wait_for_message "
                "with its tag and after=<its cursor>. If a form refuses +, use plusFree.",
                request=shapes.NewAddressArguments,
                output=shapes.NewAddress,
                handle=self.new_address,
            ),
            Tool(
                "wait_for_message",
                (Scope.INBOX_READ,),
                costs.SMALL,
                "Wait for a mail",
                "Wait for the oldest matching mail; returns sender, subject, codes and best link. "
                "With after=<cursor of new_address>, mail that has arrived since then is returned "
                "at once; without it, only new mail. timedOut is no error: read hint, and go on "
                "with the returned cursor. Answers within 55 s.",
                request=shapes.WaitForMessageArguments,
                output=shapes.WaitResult,
                handle=self.wait_for_message,
                annotations=_OPEN_WORLD,
                has_card=True,
                long_wait=LongWait(
                    shapes.LongWaitArguments,
                    lambda request: request.seconds,
                    lambda found: found.timed_out or found.none is True,
                ),
            ),
            Tool(
                "list_messages",
                (Scope.INBOX_READ,),
                costs.FREE,
                "List received mail",
                "List or search received mail, newest first. A mail's cursor is valid as id.",
                request=shapes.ListMessagesArguments,
                output=shapes.ListResult,
                handle=self.list_messages,
                annotations=_OPEN_WORLD,
            ),
            Tool(
                "get_message",
                (Scope.INBOX_READ,),
                costs.MESSAGE,
                "Read a mail",
                "Read parts of a mail, text and html from an offset. more: sizes of the other "
                "parts.",
                request=one_message.GetMessageArguments,
                output=one_message.MessageResult,
                handle=self.get_message,
                annotations=_OPEN_WORLD,
                has_card=True,
            ),
            Tool(
                "get_attachment",
                (Scope.INBOX_READ,),
                costs.PARTS,
                "Read an attachment",
                "Read an attachment: its text, the image, or a link that ends after 10 minutes.",
                request=one_message.AttachmentArguments,
                output=one_message.AttachmentResult,
                handle=self.get_attachment,
                annotations=_OPEN_WORLD,
            ),
            Tool(
                "extract",
                (Scope.INBOX_READ,),
                costs.MESSAGE,
                "Extract codes and links",
                "Explain which codes and links were found in a mail, or rejected, and why.",
                request=one_message.MessageArguments,
                output=one_message.ExtractResult,
                handle=self.extract,
                annotations=_OPEN_WORLD,
            ),
            Tool(
                "share_link",
                (Scope.INBOX_READ,),
                costs.FREE,
                "Get a public link",
                "Get the public link to a mail, which needs no key and ends with the mail.",
                request=one_message.MessageArguments,
                output=Share,
                handle=self.share_link,
            ),
            Tool(
                "delete_message",
                (Scope.INBOX_WRITE,),
                costs.FREE,
                "Delete a mail",
                "Delete one mail permanently, by its id or its cursor in a list.",
                request=one_message.MessageArguments,
                output=one_message.DeleteResult,
                handle=self.delete_message,
                annotations=Annotations(is_read_only=False, is_destructive=True),
            ),
        ]

    async def new_address(self, call: ToolCall[shapes.NewAddressArguments]) -> ToolResult:
        """Return an inbox address, and the current cursor."""
        tag = call.request.tag
        if tag is None:
            tag = call.caller.rights.unique_tag(new_short_id(self.random_bytes))
        call.caller.rights.require_tag(tag)
        inbox = await self.inbox.read.state(call.caller.account_id)
        return as_json_text(shapes.render_new_address(inbox, tag, self.domain))

    async def wait_for_message(self, call: ToolCall[shapes.WaitForMessageArguments]) -> ToolResult:
        """Wait for a matching message, for several, or for none."""
        result = await self._wait_for(call)
        return ToolResult(result, [describe_wait(result, call.fence)])

    async def _wait_for(self, call: ToolCall[shapes.WaitForMessageArguments]) -> shapes.WaitResult:
        caller, wanted = call.caller, call.request.wanted
        timeout = call.left_of(call.request.seconds)
        if call.request.none:
            call.announce(timeout, "checking that no matching message arrives")
            outcome = await self.inbox.wait.wait_for_none(caller, wanted, timeout, call.elapsed)
            unwanted = _within(outcome, call)
            if isinstance(unwanted, NoMessage):
                return shapes.render_none_result(unwanted)
            view = None if unwanted.message is None else await self.views.of(unwanted.message)
            return shapes.render_unexpected_result(unwanted, view)
        call.announce(timeout, "waiting for a matching message")
        if call.request.count is not None:
            found = await self.inbox.wait.wait_for_many(
                caller, wanted, timeout, call.request.count, call.elapsed
            )
            if isinstance(found, TimedOut):
                return shapes.render_timed_out_wait(found)
            return shapes.render_arrivals(found)
        arrived = await self.inbox.wait.wait(caller, wanted, timeout, call.elapsed)
        if isinstance(arrived, TimedOut):
            return shapes.render_timed_out_wait(arrived)
        return shapes.render_arrival(arrived, await self.views.of(arrived))

    async def list_messages(self, call: ToolCall[shapes.ListMessagesArguments]) -> ToolResult:
        """List messages."""
        request, caller = call.request, call.caller
        wanted = replace(request.wanted_at(call.received_at), allowed=caller.rights.tags)
        messages = await self.inbox.read.page(
            caller.account_id, wanted, request.limit, request.page
        )
        result = shapes.render_message_list(messages)
        return ToolResult(result, [describe_list(result, call.fence)])

    async def get_message(self, call: ToolCall[one_message.GetMessageArguments]) -> ToolResult:
        """Return a message with the requested parts."""
        request = call.request
        message = await self._message(call.caller, request.id)
        view = await self.views.of(message)
        authentication = checks = None
        if "authentication" in request.include:
            call.announce(AUTHENTICATION_DEADLINE, "evaluating SPF, DKIM and DMARC")
            authentication = await self.inbox.authenticate.of(message)
        if "checks" in request.include:
            checks = await self.inbox.check.of_message(message)
        result = one_message.render_read_message(
            message, view, request, call.fence, call.urls, authentication, checks
        )
        return ToolResult(result, [describe_message(result, call.fence)])

    async def get_attachment(self, call: ToolCall[one_message.AttachmentArguments]) -> ToolResult:
        """Return an attachment as text, as an image, or as a link."""
        account_id, attachment_id = call.caller.account_id, call.request.attachment_id
        message_id = await self.inbox.read.id_of(call.caller, call.request.id)
        summary = await self.inbox.read.summary(account_id, message_id)
        found = await self.inbox.read.attachment(account_id, message_id, attachment_id)
        view = await self.views.of_attachment(found, account_id)
        url = None
        if not view.is_whole:
            token = self.inbox.share.attachment_token(summary, attachment_id)
            url = call.urls.attachment_link(attachment_id, token)
        shape = one_message.render_attachment(found, view, call.fence, url)
        images = [Image(found.data, view.image_type)] if view.image_type else []
        text = describe_attachment(shape, call.fence, has_image=bool(images))
        return ToolResult(shape, [text], images)

    async def extract(self, call: ToolCall[one_message.MessageArguments]) -> ToolResult:
        """Return the codes and links of a message, with all candidates."""
        message = await self._message(call.caller, call.request.id)
        result = one_message.render_extraction(message, await self.views.of(message))
        return ToolResult(result, [describe("Codes and links.", result, call.fence)])

    async def share_link(self, call: ToolCall[one_message.MessageArguments]) -> ToolResult:
        """Return the existing share link of a message. Links shared earlier stay valid."""
        message = await self._message(call.caller, call.request.id)
        return as_json_text(render_share(message, call.urls))

    async def delete_message(self, call: ToolCall[one_message.MessageArguments]) -> ToolResult:
        """Delete a message."""
        message_id = await self.inbox.read.id_of(call.caller, call.request.id)
        await self.inbox.delete.one(call.caller.account_id, message_id)
        return as_json_text(one_message.DeleteResult(message_id, deleted=True))

    async def _message(self, caller: Caller, given_id: str) -> StoredMessage:
        return await self.inbox.read.message(
            caller.account_id, await self.inbox.read.id_of(caller, given_id)
        )


def _within(
    outcome: NoMessage | UnexpectedMessage, call: ToolCall[shapes.WaitForMessageArguments]
) -> NoMessage | UnexpectedMessage:
    """Ignore a mail that came after the end of a wait, before the last poll of its task."""
    if isinstance(outcome, NoMessage):
        return outcome
    came_at = outcome.arrived_at
    if came_at <= call.received_at + call.request.seconds * SECOND or not call.elapsed:
        return outcome
    return NoMessage(Position(outcome.cursor - 1), outcome.waited)
