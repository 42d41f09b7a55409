"""The requests of MailSlurp's API, and their handlers."""

import base64
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal

from msgspec import Struct

from mailcheck.checks.content.bodies import Attachment
from mailcheck.core.accounts import Caller
from mailcheck.core.addresses import (
    UNTAGGED,
    explain_bad_tag,
    join_subaddress,
    parse_mailbox,
    split_subaddress,
    without_subdomain,
)
from mailcheck.core.content import fold_text
from mailcheck.core.errors import AttachmentNotFound, InvalidParameter, MessageNotFound
from mailcheck.core.filters import UNREAD, Field, MessageFilter, Search, Term
from mailcheck.core.identifiers import RandomBytes, new_short_id
from mailcheck.core.instants import SECOND, Instant, format_instant, parse_instant
from mailcheck.core.messages import StoredMessage
from mailcheck.core.rights import Scope
from mailcheck.operations.concurrency import PacedQueue
from mailcheck.operations.inbox.contents import MailBytes
from mailcheck.operations.inbox.manage_webhooks import ManageWebhooks
from mailcheck.operations.inbox.messages import DeleteMessages, MessageList, ReadInbox
from mailcheck.operations.lazy_functions import find_pattern
from mailcheck.web.compatible.facade import Call, NoParameters
from mailcheck.web.compatible.hold import Hold, TimeIsUp
from mailcheck.web.compatible.mailslurp.names import InboxNames, KeepNames
from mailcheck.web.compatible.mailslurp.shapes import (
    NEW_EMAIL,
    FileContent,
    Inbox,
    Lines,
    Links,
    RawEmail,
    body_of,
    render_codes,
    render_email,
    render_file,
    render_page,
    render_preview,
    render_webhook,
)
from mailcheck.web.compatible.reading import ReadMessages, require_page, split_file_id
from mailcheck.web.site.replies import JSON, Reply, download_reply, json_reply, large_json_reply

MAX_EMAILS = 100
"""Maximum number of messages that a wait or a list looks at, the newest ones."""

DEFAULT_TIMEOUT = 60_000
MAX_TIMEOUT = 300_000
"""Milliseconds of a wait without a timeout, and of the longest one."""

MAX_MATCHES = 20
"""Maximum number of conditions of a wait."""

_UNREAD = Term(Field.IS, UNREAD)
_NOTHING = Reply(204, b"", JSON)

Sort = Literal["ASC", "DESC"]


class NewInbox(InboxNames, frozen=True, rename="camel"):
    """The options of a new inbox that mean anything here."""

    email_address: str | None = None
    prefix: str | None = None


class OfInbox(Struct, frozen=True, rename="camel"):
    """The query ``inboxId``."""

    inbox_id: str | None = None


class ByAddress(Struct, frozen=True, rename="camel"):
    """The query ``emailAddress``."""

    email_address: str = ""


class Match(Struct, frozen=True):
    """A condition about a field of the header."""

    field: Literal["SUBJECT", "TO", "BCC", "CC", "FROM", "HEADERS"]
    should: Literal["MATCH", "CONTAIN", "EQUAL"]
    value: str


class Condition(Struct, frozen=True):
    """A condition about attachments."""

    condition: Literal["HAS_ATTACHMENTS"]
    value: Literal["TRUE", "FALSE"]


class FindEmails(OfInbox, frozen=True, rename="camel"):
    """The parameters of lists and waits; times are in milliseconds."""

    page: int = 0
    size: int | None = None
    limit: int | None = None
    sort: Sort | None = None
    sort_direction: Sort | None = None
    unread_only: bool = False
    since: str | None = None
    before: str | None = None
    search_filter: str | None = None
    timeout: int = DEFAULT_TIMEOUT
    timeout_millis: int | None = None
    retry_timeout: int = 0
    min_count: int = 0
    count: int = 1
    index: int = 0
    matches: list[Match] = []
    conditions: list[Condition] = []


class CodeOptions(Struct, frozen=True, rename="camel"):
    """The options of a search for codes."""

    min_length: int = 1
    max_length: int = 100
    custom_patterns: list[str] = []


class Pattern(Struct, frozen=True):
    """A pattern to search for."""

    pattern: str


class MarkRead(Struct, frozen=True):
    """The query ``read``."""

    read: bool = True


class WebhookToCreate(Struct, frozen=True, rename="camel"):
    """The options of a new webhook."""

    url: str
    event_name: str | None = None
    basic_auth: dict[str, str] | None = None


class MailSlurp:
    """Handles the requests of MailSlurp's clients."""

    def __init__(
        self,
        read: ReadInbox,
        delete: DeleteMessages,
        webhooks: ManageWebhooks,
        messages: ReadMessages,
        mail_bytes: MailBytes,
        names: KeepNames,
        hold: Hold,
        turns: PacedQueue,
        domain: str,
        random_bytes: RandomBytes,
    ) -> None:
        self._read = read
        self._delete = delete
        self._webhooks = webhooks
        self._messages = messages
        self._mail_bytes = mail_bytes
        self._names = names
        self._hold = hold
        self._turns = turns
        self._domain = domain
        self._random_bytes = random_bytes

    # Inboxes.

    async def create_inbox(self, call: Call[NewInbox]) -> Reply:
        """POST /inboxes: return a new tag, or that of an address."""
        request, rights = call.request, call.caller.rights
        if request.email_address:
            inbox_id = await self._inbox_of(call.caller, request.email_address)
            if inbox_id is None:
                raise InvalidParameter(
                    "emailAddress",
                    f"{request.email_address[:100]!r} is not an address of this inbox",
                )
        elif request.prefix:
            inbox_id = f"{request.prefix}-{new_short_id(self._random_bytes)}"
        elif rights.tags is None:
            inbox_id = str(uuid.UUID(bytes=self._random_bytes(16), version=4))
        else:
            inbox_id = rights.unique_tag(new_short_id(self._random_bytes))
        tag = _require_inbox(call.caller, inbox_id)
        if request.name or request.description or request.all_tags:
            await self._keep_names(call, tag)
        return json_reply(await self._inbox(call.caller, tag, call.received_at), 201)

    async def update_inbox(self, call: Call[InboxNames]) -> Reply:
        """PATCH /inboxes/{id}: name an inbox."""
        tag = _require_inbox(call.caller, call.path["id"])
        await self._keep_names(call, tag)
        return json_reply(await self._inbox(call.caller, tag, call.received_at))

    async def _keep_names(self, call: Call[NewInbox] | Call[InboxNames], tag: str) -> None:
        call.caller.rights.require((Scope.INBOX_WRITE,))
        given = call.request
        names = InboxNames(given.name, given.description, given.all_tags)
        await self._names.keep(call.caller, tag, names)

    async def inbox(self, call: Call[NoParameters]) -> Reply:
        """GET /inboxes/{id}."""
        return json_reply(await self._inbox(call.caller, call.path["id"], call.received_at))

    async def inboxes(self, call: Call[FindEmails]) -> Reply:
        """GET /inboxes."""
        found = (await self._all_inboxes(call.caller))[: _size(call.request)]
        return json_reply([await self._names.show(call.caller, one) for one in found])

    async def inbox_page(self, call: Call[FindEmails]) -> Reply:
        """GET /inboxes/paginated."""
        found, size = await self._all_inboxes(call.caller), _size(call.request)
        page = require_page(call.request.page)
        shown = found[size * page : size * (page + 1)]
        shown = [await self._names.show(call.caller, one) for one in shown]
        return json_reply(render_page(shown, len(found), page, size))

    async def inbox_ids(self, call: Call[NoParameters]) -> Reply:
        """GET /inboxes/ids."""
        return json_reply({"inboxIds": await self._all_inboxes(call.caller)})

    async def count_inboxes(self, call: Call[NoParameters]) -> Reply:
        """GET /inboxes/count."""
        return json_reply({"totalElements": len(await self._all_inboxes(call.caller))})

    async def find_inbox(self, call: Call[ByAddress]) -> Reply:
        """GET /inboxes/byEmailAddress and /inboxes/exists."""
        inbox_id = await self._inbox_of(call.caller, call.request.email_address)
        return json_reply({"exists": inbox_id is not None, "inboxId": inbox_id})

    async def empty_inbox(self, call: Call[OfInbox]) -> Reply:
        """DELETE /inboxes/{id}, /emptyInbox and others: delete the messages of an inbox."""
        inbox_id = call.path.get("id") or call.request.inbox_id
        wanted = MessageFilter(tag=_require_inbox(call.caller, inbox_id))
        await self._delete.matching(call.caller.account_id, wanted)
        return _NOTHING

    async def delete_all(self, call: Call[NoParameters]) -> Reply:
        """DELETE /emails and /inboxes: delete all messages that the key may use."""
        wanted = MessageFilter(allowed=call.caller.rights.tags)
        await self._delete.matching(call.caller.account_id, wanted)
        return _NOTHING

    # Lists and waits.

    async def wait_for_latest(self, call: Call[FindEmails]) -> Reply:
        """GET /waitForLatestEmail: return the newest message, or the first one to arrive."""
        return await self._whole(call.caller, await self._wait(call, 1, "DESC"), 0)

    async def latest(self, call: Call[FindEmails]) -> Reply:
        """GET /emails/latest and others: return the newest message, without a wait."""
        caller, request = call.caller, call.request
        wanted = _filter(caller, request, request.inbox_id)
        found = await self._load(await self._read.page(caller.account_id, wanted, 1, 1))
        if not found:
            raise MessageNotFound("the inbox has no message")
        return await self._whole(call.caller, found, 0)

    async def wait_for_nth(self, call: Call[FindEmails]) -> Reply:
        """GET /waitForNthEmail: return the message with an index, from the oldest one."""
        index = call.request.index
        if not 0 <= index < MAX_EMAILS:
            raise InvalidParameter("index", f"index is below {MAX_EMAILS}; you sent {index}")
        return await self._whole(call.caller, await self._wait(call, index + 1, "ASC"), index)

    async def wait_for_matching(self, call: Call[FindEmails]) -> Reply:
        """POST /waitForMatchingFirstEmail: return the oldest message that matches."""
        return await self._whole(call.caller, await self._wait(call, 1, "ASC"), 0)

    async def wait_for_count(self, call: Call[FindEmails]) -> Reply:
        """GET /waitForEmailCount and others: return the list when it has enough messages."""
        count = call.request.count
        if not 1 <= count <= MAX_EMAILS:
            raise InvalidParameter("count", f"count is from 1 to {MAX_EMAILS}; you sent {count}")
        return json_reply([render_preview(one) for one in await self._wait(call, count, "DESC")])

    async def list_of_inbox(self, call: Call[FindEmails]) -> Reply:
        """GET /inboxes/{id}/emails: return the newest messages, held for ``minCount``."""
        request = call.request
        seconds = _seconds(request.retry_timeout) if request.min_count else None
        found = await self._hold.until(
            call.caller,
            lambda: self._find(call.caller, request, "DESC", call.path["id"]),
            lambda one: len(one) >= max(1, request.min_count),
            seconds,
        )
        return json_reply([render_preview(one) for one in found])

    async def page(self, call: Call[FindEmails]) -> Reply:
        """GET /emails and /inboxes/{id}/emails/paginated."""
        caller, request, size = call.caller, call.request, _size(call.request)
        wanted = _filter(caller, request, call.path.get("id") or request.inbox_id)
        listed = await self._read.page(caller.account_id, wanted, size, request.page + 1)
        found = [render_preview(one) for one in await self._load(listed)]
        return json_reply(render_page(found, listed.total, request.page, size))

    async def count(self, call: Call[OfInbox]) -> Reply:
        """GET /inboxes/{id}/emails/count."""
        wanted = MessageFilter(tag=_require_inbox(call.caller, call.path["id"]))
        listed = await self._read.page(call.caller.account_id, wanted, 1, 1)
        return json_reply({"totalElements": listed.total})

    async def count_unread(self, call: Call[OfInbox]) -> Reply:
        """GET /emails/unreadCount."""
        wanted = MessageFilter(tag=call.request.inbox_id, allowed=call.caller.rights.tags)
        count = await self._read.count_unread(call.caller.account_id, wanted)
        return json_reply({"count": count})

    # Messages.

    async def email(self, call: Call[NoParameters]) -> Reply:
        """GET /emails/{id}."""
        return await self._whole(call.caller, [await self._message(call)], 0)

    async def summary(self, call: Call[NoParameters]) -> Reply:
        """GET /emails/{id}/summary."""
        return json_reply(render_preview(await self._message(call)))

    async def mark_read(self, call: Call[MarkRead]) -> Reply:
        """PATCH /emails/{id}/read."""
        if not call.request.read:
            raise InvalidParameter("read", "a message that was read stays read: send read=true")
        message = await self._message(call)
        message = await self._read.open_message(call.caller.account_id, message.summary.id)
        preview = render_preview(message)
        preview.read = True
        return json_reply(preview)

    async def body(self, call: Call[NoParameters]) -> Reply:
        """GET /emails/{id}/body and /emails/{id}/html."""
        text = body_of(await self._message(call)).encode("utf-8", "replace")
        return download_reply(text, "text/html; charset=utf-8", f"{call.path['id']}.html")

    async def raw(self, call: Call[NoParameters]) -> Reply:
        """GET /emails/{id}/raw."""
        raw = await self._messages.raw_message(call.caller, call.path["id"])
        return download_reply(raw, "message/rfc822", f"{call.path['id']}.eml")

    async def raw_json(self, call: Call[NoParameters]) -> Reply:
        """GET /emails/{id}/raw/json."""
        raw = await self._messages.raw_message(call.caller, call.path["id"])
        return await large_json_reply(RawEmail(raw.decode("utf-8", "replace")), self._turns)

    async def links(self, call: Call[NoParameters]) -> Reply:
        """GET /emails/{id}/links."""
        message = await self._message(call)
        return await large_json_reply(Links(message.content.links, body_of(message)), self._turns)

    async def lines(self, call: Call[NoParameters]) -> Reply:
        """GET /emails/{id}/textLines."""
        text = (await self._message(call)).content.text
        return await large_json_reply(Lines(tuple(text.splitlines()), text), self._turns)

    async def codes(self, call: Call[CodeOptions]) -> Reply:
        """POST /emails/{id}/codes."""
        message, request = await self._message(call), call.request
        codes: Sequence[str] = message.content.codes
        for pattern in request.custom_patterns[:MAX_MATCHES]:
            found = await self._search(message, pattern, message.content.text or body_of(message))
            if found:
                codes = [found[min(1, len(found) - 1)]]
                break
        lengths = range(request.min_length, request.max_length + 1)
        return json_reply(render_codes([code for code in codes if len(code) in lengths]))

    async def content_match(self, call: Call[Pattern]) -> Reply:
        """POST /emails/{id}/contentMatch."""
        message, pattern = await self._message(call), call.request.pattern
        found = await self._search(message, pattern, body_of(message))
        return json_reply({"pattern": pattern, "matches": found})

    async def delete_email(self, call: Call[NoParameters]) -> Reply:
        """DELETE /emails/{id}."""
        message = await self._message(call)
        await self._delete.one(call.caller.account_id, message.summary.id)
        return _NOTHING

    # Files.

    async def files(self, call: Call[NoParameters]) -> Reply:
        """GET /emails/{id}/attachments."""
        message = await self._message(call)
        found = message.content.attachments
        return json_reply([render_file(message.summary.id, one) for one in found])

    async def file_facts(self, call: Call[NoParameters]) -> Reply:
        """GET /attachments/{file}/metadata and /emails/{id}/attachments/{file}/metadata."""
        message_id, attachment_id = split_file_id(call.path["file"])
        message = await self._messages.message(call.caller, message_id)
        for one in message.content.attachments:
            if one.id == attachment_id:
                return json_reply(render_file(message_id, one))
        raise AttachmentNotFound(f"the message has no attachment {attachment_id[:100]!r}")

    async def file(self, call: Call[NoParameters]) -> Reply:
        """GET /attachments/{file}/bytes and /emails/{id}/attachments/{file}."""
        found = await self._file(call)
        return download_reply(found.data, found.content_type, found.filename)

    async def file_base64(self, call: Call[NoParameters]) -> Reply:
        """GET /attachments/{file}/base64 and /emails/{id}/attachments/{file}/base64."""
        found = await self._file(call)
        data = base64.b64encode(found.data).decode()
        return await large_json_reply(
            FileContent(data, found.content_type, len(found.data)), self._turns
        )

    # Webhooks.

    async def create_webhook(self, call: Call[WebhookToCreate]) -> Reply:
        """POST /webhooks and /inboxes/{id}/webhooks."""
        request, inbox_id = call.request, call.path.get("id")
        if request.event_name not in (None, NEW_EMAIL, "EMAIL_RECEIVED"):
            raise InvalidParameter(
                "eventName",
                f"eventName is {NEW_EMAIL} or EMAIL_RECEIVED; you sent {request.event_name!r}",
            )
        if request.basic_auth is not None:
            raise InvalidParameter("basicAuth", "events are signed; put no password into them")
        wanted = MessageFilter()
        if inbox_id is not None:
            wanted = MessageFilter(tag=_require_inbox(call.caller, inbox_id))
        caller = call.caller
        made = await self._webhooks.create(caller.account_id, request.url, wanted, caller.actor)
        return json_reply(render_webhook(made), 201)

    async def webhooks(self, call: Call[NoParameters]) -> Reply:
        """GET /inboxes/{id}/webhooks."""
        found = await self._webhooks.of_account(call.caller.account_id)
        inbox_id = call.path["id"]
        return json_reply([render_webhook(one) for one in found if one.wanted.tag == inbox_id])

    async def webhook(self, call: Call[NoParameters]) -> Reply:
        """GET /webhooks/{hook}."""
        found = await self._webhooks.show(call.caller.account_id, call.path["hook"])
        return json_reply(render_webhook(found.webhook))

    async def delete_webhook(self, call: Call[NoParameters]) -> Reply:
        """DELETE /webhooks/{hook} and /inboxes/{id}/webhooks/{hook}."""
        caller = call.caller
        await self._webhooks.delete(caller.account_id, call.path["hook"], caller.actor)
        return _NOTHING

    # Shared parts.

    async def _message(self, call: Call[Any]) -> StoredMessage:
        return await self._messages.message(call.caller, call.path["id"])

    async def _file(self, call: Call[Any]) -> Attachment:
        return await self._messages.file(call.caller, call.path["file"])

    async def _whole(self, caller: Caller, found: Sequence[StoredMessage], index: int) -> Reply:
        """Return one of the messages, and mark it as read."""
        message = await self._read.open_message(caller.account_id, found[index].summary.id)
        return await large_json_reply(render_email(message), self._turns)

    async def _wait(self, call: Call[FindEmails], count: int, sort: Sort) -> list[StoredMessage]:
        """Return the messages when there are enough of them.

        :raises TimeIsUp: there are too few until the timeout.
        """
        request = call.request
        found = await self._hold.until(
            call.caller,
            lambda: self._find(call.caller, request, sort),
            lambda one: len(one) >= count,
            _seconds(request.timeout),
        )
        if len(found) < count:
            raise TimeIsUp(
                f"{len(found)} of {count} matching messages arrived within {request.timeout} ms"
            )
        return found

    async def _find(
        self, caller: Caller, request: FindEmails, sort: Sort, inbox_id: str | None = None
    ) -> list[StoredMessage]:
        """Return the newest messages that match, in the order of the request or in ``sort``."""
        wanted = _filter(caller, request, inbox_id or request.inbox_id, is_required=True)
        listed = await self._read.page(caller.account_id, wanted, MAX_EMAILS, 1)
        before = _time("before", request.before)
        found = [
            one
            for one in await self._load(listed)
            if (before is None or one.summary.received_at <= before)
            and await self._matches(one, request)
        ][: _size(request)]
        return found[::-1] if (request.sort or request.sort_direction or sort) == "ASC" else found

    async def _load(self, listed: MessageList) -> list[StoredMessage]:
        found = []
        for one in listed.messages:
            with suppress(MessageNotFound):  # deleted since the page was read
                found.append(await self._read.message(one.summary.account_id, one.summary.id))
        return found

    async def _matches(self, message: StoredMessage, request: FindEmails) -> bool:
        has_files = bool(message.content.files)
        if any((one.value == "TRUE") != has_files for one in request.conditions):
            return False
        if len(request.matches) > MAX_MATCHES:
            raise InvalidParameter("matches", f"send at most {MAX_MATCHES} matches")
        for match in request.matches:
            texts, value = _texts_of(message, match.field), fold_text(match.value)
            if match.should == "MATCH":
                is_met = bool(await self._search(message, match.value, "\n".join(texts)))
            elif match.should == "EQUAL":
                is_met = any(fold_text(text) == value for text in texts)
            else:
                is_met = any(value in fold_text(text) for text in texts)
            if not is_met:
                return False
        return True

    async def _search(self, message: StoredMessage, pattern: str, text: str) -> tuple[str, ...]:
        call = partial(find_pattern, pattern, text)
        return await self._mail_bytes.work(call, len(text), message.summary.account_id)

    async def _inbox(self, caller: Caller, inbox_id: str | None, at: Instant) -> Inbox:
        tag = _require_inbox(caller, inbox_id)
        state = await self._read.state(caller.account_id)
        inbox = self._render_inbox(state.mailbox_name, caller, tag, at)
        return await self._names.show(caller, inbox)

    async def _all_inboxes(self, caller: Caller) -> list[Inbox]:
        """Return an inbox for each of the newest tags, newest first."""
        overview = await self._read.overview(caller.account_id, caller.rights.tags)
        name = overview.state.mailbox_name
        return [
            self._render_inbox(name, caller, one.tag, one.latest_at)
            for one in overview.tags
            if one.tag != UNTAGGED
        ]

    def _render_inbox(self, mailbox_name: str, caller: Caller, tag: str, at: Instant) -> Inbox:
        address = join_subaddress(mailbox_name, tag, self._domain)
        local_part, _, domain = address.rpartition("@")
        return Inbox(
            tag,
            caller.account_id,
            format_instant(at),
            address,
            domain_id=domain,
            domain=domain,
            local_part=local_part,
        )

    async def _inbox_of(self, caller: Caller, address: str) -> str | None:
        """Return the tag of an address of the caller's inbox."""
        try:
            mailbox = parse_mailbox(address)
        except ValueError:
            return None
        place = without_subdomain(mailbox, (self._domain.lower(),))
        name, tag = split_subaddress(place.local_part)
        state = await self._read.state(caller.account_id)
        is_own = name == state.mailbox_name and place.folded[1] == self._domain.lower()
        return tag if is_own and tag and caller.rights.allows_tag(tag) else None


def _require_inbox(caller: Caller, inbox_id: str | None) -> str:
    """Return the tag that the id of an inbox is.

    :raises InvalidParameter: the id is missing, or cannot be a tag.
    :raises NotPermitted: the key is limited to other tags.
    """
    if not inbox_id:
        raise InvalidParameter("inboxId", "inboxId is missing: send the id of an inbox")
    problem = explain_bad_tag(inbox_id)
    if problem is not None:
        raise InvalidParameter("inboxId", f"{inbox_id[:100]!r} is not an id of an inbox: {problem}")
    caller.rights.require_tag(inbox_id)
    return inbox_id


def _filter(
    caller: Caller, request: FindEmails, inbox_id: str | None, *, is_required: bool = False
) -> MessageFilter:
    require_page(request.page)
    terms = [_UNREAD] if request.unread_only else []
    if request.search_filter:
        terms.append(Term(Field.ANYWHERE, request.search_filter))
    return MessageFilter(
        tag=_require_inbox(caller, inbox_id) if inbox_id or is_required else None,
        since=_time("since", request.since),
        search=Search("", tuple(terms)) if terms else None,
        allowed=caller.rights.tags,
    )


def _time(name: str, text: str | None) -> Instant | None:
    try:
        return parse_instant(text) if text else None
    except ValueError:
        raise InvalidParameter(
            name, f"{name} is a time in ISO 8601; you sent {str(text)[:100]!r}"
        ) from None


def _size(request: FindEmails) -> int:
    size = request.size or request.limit or MAX_EMAILS
    if not 1 <= size <= MAX_EMAILS:
        raise InvalidParameter("size", f"size is from 1 to {MAX_EMAILS}; you sent {size}")
    return size


def _seconds(timeout: int) -> float:
    if not 0 <= timeout <= MAX_TIMEOUT:
        raise InvalidParameter(
            "timeout", f"timeout is from 0 to {MAX_TIMEOUT:,} milliseconds; you sent {timeout}"
        )
    return timeout / SECOND


def _texts_of(message: StoredMessage, field: str) -> Sequence[str]:
    """Return the texts that a condition is compared with."""
    header, content = message.summary.header, message.content
    if field == "SUBJECT":
        return [header.subject]
    if field == "FROM":
        return [header.author_address, header.author_text]
    if field == "HEADERS":
        return [f"{name}: {value}" for name, value in content.header_list]
    people = content.people_in(field.lower())
    own = [message.summary.recipient] if field == "TO" else []
    return [*own, *(one.address for one in people), *(one.name for one in people if one.name)]
