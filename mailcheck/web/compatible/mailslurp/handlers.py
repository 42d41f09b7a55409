"""The requests of MailSlurp's API, and their handlers."""

import base64
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from mailcheck.checks.content.bodies import Attachment
from mailcheck.checks.content.patterns import find_pattern
from mailcheck.core.accounts import Caller
from mailcheck.core.addresses import (
    UNTAGGED,
    explain_bad_tag,
    join_subaddress,
    parse_mailbox,
    split_subaddress,
    without_subdomain,
)
from mailcheck.core.conditions import OLDER, UNREAD, WITH_WORDS, Term
from mailcheck.core.content import fold_text
from mailcheck.core.errors import AttachmentNotFound, InvalidParameter, MessageNotFound
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.identifiers import RandomBytes, new_short_id
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.messages import StoredMessage
from mailcheck.core.rights import Scope
from mailcheck.operations.concurrency import PacedQueue
from mailcheck.operations.inbox.contents import MailBytes
from mailcheck.operations.inbox.messages import OVERVIEW_TAGS, MessageList, ReadInbox
from mailcheck.operations.inbox.webhooks.manage_webhooks import ManageWebhooks
from mailcheck.web.compatible.facade import NoParameters
from mailcheck.web.compatible.hold import Hold
from mailcheck.web.compatible.mailslurp.names import InboxNames, KeepNames
from mailcheck.web.compatible.mailslurp.shapes import (
    NEW_EMAIL,
    Json,
    body_of,
    render_codes,
    render_email,
    render_file,
    render_inbox,
    render_page,
    render_preview,
    render_webhook,
)
from mailcheck.web.compatible.reading import Messages, PageNumber, parse_time, split_file_id
from mailcheck.web.site.application import Call
from mailcheck.web.site.failures import TimeIsUp
from mailcheck.web.site.replies import JSON, Reply, download_reply, json_reply, large_json_reply

MAX_EMAILS = 100
"""Maximum number of messages that a wait or a list looks at, the newest ones."""

DEFAULT_TIMEOUT = 60_000
MAX_TIMEOUT = 300_000
"""Milliseconds of a wait without a timeout, and of the longest one."""

MAX_MATCHES = 20
"""Maximum number of conditions of a wait."""

_UNREAD = Term(UNREAD, UNREAD.fixed)
_NOTHING = Reply(204, b"", JSON)

Sort = Literal["ASC", "DESC"]
Count = Annotated[int, Meta(ge=1, le=MAX_EMAILS)]
Milliseconds = Annotated[int, Meta(ge=0, le=MAX_TIMEOUT)]


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

    page: PageNumber = 0
    size: Count | None = None
    limit: Count | None = None
    sort: Sort | None = None
    sort_direction: Sort | None = None
    unread_only: bool = False
    since: str | None = None
    before: str | None = None
    search_filter: str | None = None
    timeout: Milliseconds = DEFAULT_TIMEOUT
    timeout_millis: Milliseconds = 0
    retry_timeout: Milliseconds = 0
    min_count: int = 0
    count: Count = 1
    count_type: Literal["EXACTLY", "ATLEAST"] = "ATLEAST"
    index: Annotated[int, Meta(ge=0, lt=MAX_EMAILS)] = 0
    matches: Annotated[list[Match], Meta(max_length=MAX_MATCHES)] = []
    conditions: list[Condition] = []

    @property
    def most(self) -> int:
        """The size of a page, or of a list."""
        return self.size or self.limit or MAX_EMAILS

    def is_met_by(self, found: int, count: int) -> bool:
        """Return whether a number of messages is the one that is waited for."""
        return found == count if self.count_type == "EXACTLY" else found >= count


class CodeOptions(Struct, frozen=True, rename="camel"):
    """The options of a search for codes."""

    min_length: int = 1
    max_length: int = 100
    custom_patterns: list[str] = []


class Pattern(Struct, frozen=True):
    """A pattern to search for."""

    pattern: str


class MarkRead(OfInbox, frozen=True):
    """The query ``read``, and the inbox of a request about all messages."""

    read: bool = True


class WebhookToCreate(Struct, frozen=True, rename="camel"):
    """The options of a new webhook."""

    url: str
    event_name: str | None = None
    basic_auth: dict[str, str] | None = None


class MailSlurp(Struct, frozen=True):
    """Handles the requests of MailSlurp's clients."""

    _read: ReadInbox
    _webhooks: ManageWebhooks
    _messages: Messages
    _mail_bytes: MailBytes
    _names: KeepNames
    _hold: Hold
    _turns: PacedQueue
    _domain: str
    _random_bytes: RandomBytes

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
        return json_reply(await self._inbox(call, tag), 201)

    async def update_inbox(self, call: Call[InboxNames]) -> Reply:
        """PATCH /inboxes/{id}: name an inbox."""
        tag = _require_inbox(call.caller, call.path["id"])
        await self._keep_names(call, tag)
        return json_reply(await self._inbox(call, tag))

    async def _keep_names(self, call: Call[NewInbox] | Call[InboxNames], tag: str) -> None:
        call.caller.rights.require((Scope.INBOX_WRITE,))
        given = call.request
        names = InboxNames(given.name, given.description, given.all_tags)
        await self._names.keep(call.caller, tag, names)

    async def inbox(self, call: Call[NoParameters]) -> Reply:
        """GET /inboxes/{id}."""
        tag = _require_inbox(call.caller, call.path["id"])
        return json_reply(await self._inbox(call, tag))

    async def inboxes(self, call: Call[FindEmails]) -> Reply:
        """GET /inboxes."""
        found, _ = await self._inboxes(call.caller, call.request.most)
        return json_reply(found)

    async def inbox_page(self, call: Call[FindEmails]) -> Reply:
        """GET /inboxes/paginated."""
        size, page = call.request.most, call.request.page
        found, total = await self._inboxes(call.caller, size, page)
        return json_reply(render_page(found, total, page, size))

    async def inbox_ids(self, call: Call[NoParameters]) -> Reply:
        """GET /inboxes/ids."""
        found, _ = await self._inboxes(call.caller, OVERVIEW_TAGS)
        return json_reply({"inboxIds": found})

    async def count_inboxes(self, call: Call[NoParameters]) -> Reply:
        """GET /inboxes/count."""
        _, total = await self._inboxes(call.caller, 0)
        return json_reply({"totalElements": total})

    async def find_inbox(self, call: Call[ByAddress]) -> Reply:
        """GET /inboxes/byEmailAddress and /inboxes/exists."""
        inbox_id = await self._inbox_of(call.caller, call.request.email_address)
        return json_reply({"exists": inbox_id is not None, "inboxId": inbox_id})

    async def empty_inbox(self, call: Call[OfInbox]) -> Reply:
        """DELETE /inboxes/{id}, /emptyInbox and others: delete the messages of an inbox."""
        inbox_id = call.path.get("id") or call.request.inbox_id
        wanted = MessageFilter(tag=_require_inbox(call.caller, inbox_id))
        await self._messages.delete_matches(call.caller, wanted)
        return _NOTHING

    async def delete_all(self, call: Call[NoParameters]) -> Reply:
        """DELETE /emails and /inboxes: delete all messages that the key may use."""
        await self._messages.delete_matches(call.caller, ANY)
        return _NOTHING

    # Lists and waits.

    async def wait_for_latest(self, call: Call[FindEmails]) -> Reply:
        """GET /waitForLatestEmail: return the newest message, or the first one to arrive."""
        return await self._whole(call.caller, await self._wait(call, 1, "DESC"), 0)

    async def latest(self, call: Call[FindEmails]) -> Reply:
        """GET /emails/latest and others: return the newest message.

        With ``timeoutMillis``, the request is held until there is one.
        """
        caller, request = call.caller, call.request
        wanted = _filter(caller, request, request.inbox_id)

        async def look() -> list[StoredMessage]:
            return await self._load(await self._messages.page(caller, wanted, 1))

        found = await self._hold.until(caller, look, bool, request.timeout_millis / SECOND)
        if not found:
            raise MessageNotFound("the inbox has no message")
        return await self._whole(caller, found, 0)

    async def wait_for_nth(self, call: Call[FindEmails]) -> Reply:
        """GET /waitForNthEmail: return the message with an index, from the oldest one."""
        index = call.request.index
        return await self._whole(call.caller, await self._wait(call, index + 1, "ASC"), index)

    async def wait_for_matching(self, call: Call[FindEmails]) -> Reply:
        """POST /waitForMatchingFirstEmail: return the oldest message that matches."""
        return await self._whole(call.caller, await self._wait(call, 1, "ASC"), 0)

    async def wait_for_count(self, call: Call[FindEmails]) -> Reply:
        """GET /waitForEmailCount and others: return the list when it has enough messages."""
        found = await self._wait(call, call.request.count, "DESC")
        return json_reply([render_preview(message) for message in found])

    async def list_of_inbox(self, call: Call[FindEmails]) -> Reply:
        """GET /inboxes/{id}/emails: return the newest messages, held for ``minCount``."""
        request = call.request
        seconds = request.retry_timeout / SECOND if request.min_count else None
        found = await self._hold.until(
            call.caller,
            lambda: self._find(call.caller, request, "DESC", call.path["id"]),
            lambda one: len(one) >= max(1, request.min_count),
            seconds,
        )
        return json_reply([render_preview(message) for message in found])

    async def page(self, call: Call[FindEmails]) -> Reply:
        """GET /emails and /inboxes/{id}/emails/paginated."""
        caller, request = call.caller, call.request
        wanted = _filter(caller, request, call.path.get("id") or request.inbox_id)
        listed = await self._messages.page(caller, wanted, request.most, request.page)
        found = [render_preview(message) for message in await self._load(listed)]
        return json_reply(render_page(found, listed.total, request.page, request.most))

    async def count(self, call: Call[OfInbox]) -> Reply:
        """GET /emails/emails/count and /inboxes/{id}/emails/count."""
        inbox_id = call.path.get("id") or call.request.inbox_id
        wanted = MessageFilter(tag=_require_inbox(call.caller, inbox_id) if inbox_id else None)
        return json_reply({"totalElements": await self._messages.count(call.caller, wanted)})

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

    async def mark_all_read(self, call: Call[MarkRead]) -> Reply:
        """PATCH /emails/read."""
        caller = call.caller
        wanted = MessageFilter(tag=call.request.inbox_id, allowed=caller.rights.tags)
        await self._read.mark_all(caller.account_id, wanted, is_read=call.request.read)
        return _NOTHING

    async def mark_read(self, call: Call[MarkRead]) -> Reply:
        """PATCH /emails/{id}/read."""
        message, is_read = await self._message(call), call.request.read
        wanted = MessageFilter(mails=(message.summary.delivery_id,), tag=message.summary.tag)
        await self._read.mark_all(call.caller.account_id, wanted, is_read=is_read)
        return json_reply({**render_preview(message), "read": is_read})

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
        return await large_json_reply({"content": raw.decode("utf-8", "replace")}, self._turns)

    async def links(self, call: Call[NoParameters]) -> Reply:
        """GET /emails/{id}/links."""
        message = await self._message(call)
        found = {"links": message.content.links, "body": body_of(message)}
        return await large_json_reply(found, self._turns)

    async def lines(self, call: Call[NoParameters]) -> Reply:
        """GET /emails/{id}/textLines."""
        text = (await self._message(call)).content.text
        return await large_json_reply({"lines": text.splitlines(), "body": text}, self._turns)

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
        await self._messages.delete(call.caller, call.path["id"])
        return _NOTHING

    # Files.

    async def files(self, call: Call[NoParameters]) -> Reply:
        """GET /emails/{id}/attachments."""
        message = await self._message(call)
        found = message.content.attachments
        return json_reply([render_file(message.summary.id, attachment) for attachment in found])

    async def file_facts(self, call: Call[NoParameters]) -> Reply:
        """GET /attachments/{file}/metadata and /emails/{id}/attachments/{file}/metadata."""
        message_id, attachment_id = split_file_id(call.path["file"])
        message = await self._messages.message(call.caller, message_id)
        for attachment in message.content.attachments:
            if attachment.id == attachment_id:
                return json_reply(render_file(message_id, attachment))
        raise AttachmentNotFound(f"the message has no attachment {attachment_id[:100]!r}")

    async def file(self, call: Call[NoParameters]) -> Reply:
        """GET /attachments/{file}/bytes and /emails/{id}/attachments/{file}."""
        found = await self._file(call)
        return download_reply(found.data, found.content_type, found.filename)

    async def file_base64(self, call: Call[NoParameters]) -> Reply:
        """GET /attachments/{file}/base64 and /emails/{id}/attachments/{file}/base64."""
        found = await self._file(call)
        content = {
            "base64FileContents": base64.b64encode(found.data).decode(),
            "contentType": found.content_type,
            "sizeBytes": len(found.data),
        }
        return await large_json_reply(content, self._turns)

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
        return json_reply(await self._all_webhooks(call))

    async def webhook_page(self, call: Call[FindEmails]) -> Reply:
        """GET /webhooks/paginated and /inboxes/{id}/webhooks/paginated."""
        found, size, page = await self._all_webhooks(call), call.request.most, call.request.page
        shown = found[size * page : size * (page + 1)]
        return json_reply(render_page(shown, len(found), page, size))

    async def _all_webhooks(self, call: Call[Any]) -> list[Json]:
        """Return the webhooks of the inbox in the path, or all."""
        found = await self._webhooks.of_account(call.caller.account_id)
        inbox_id = call.path.get("id")
        return [
            render_webhook(webhook) for webhook in found if inbox_id in (None, webhook.wanted.tag)
        ]

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
            lambda one: request.is_met_by(len(one), count),
            request.timeout / SECOND,
        )
        if not request.is_met_by(len(found), count):
            raise TimeIsUp(
                f"{len(found)} of {count} matching messages arrived within {request.timeout} ms"
            )
        return found

    async def _find(
        self, caller: Caller, request: FindEmails, sort: Sort, inbox_id: str | None = None
    ) -> list[StoredMessage]:
        """Return the newest messages that match, in the order of the request or in ``sort``."""
        inbox_id = _require_inbox(caller, inbox_id or request.inbox_id)
        listed = await self._messages.page(caller, _filter(caller, request, inbox_id), MAX_EMAILS)
        loaded = await self._load(listed)
        found = [message for message in loaded if await self._matches(message, request)][
            : request.most
        ]
        return found[::-1] if (request.sort or request.sort_direction or sort) == "ASC" else found

    async def _load(self, listed: MessageList) -> list[StoredMessage]:
        found = []
        for message in listed.messages:
            with suppress(MessageNotFound):  # deleted since the page was read
                found.append(
                    await self._read.message(message.summary.account_id, message.summary.id)
                )
        return found

    async def _matches(self, message: StoredMessage, request: FindEmails) -> bool:
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

    async def _inbox(self, call: Call[Any], tag: str) -> Json:
        state = await self._read.state(call.caller.account_id)
        return await self._show(call.caller, state.mailbox_name, tag, call.received_at)

    async def _inboxes(self, caller: Caller, size: int, page: int = 0) -> tuple[list[Json], int]:
        """Return a page of inboxes, one for each of the newest tags, and the number of all."""
        overview = await self._read.overview(caller.account_id, caller.rights.tags)
        tags = [tag for tag in overview.tags if tag.tag != UNTAGGED]
        name = overview.state.mailbox_name
        shown = [
            await self._show(caller, name, tag.tag, tag.latest_at)
            for tag in tags[size * page : size * (page + 1)]
        ]
        return shown, len(tags)

    async def _show(self, caller: Caller, mailbox_name: str, tag: str, at: Instant) -> Json:
        address = join_subaddress(mailbox_name, tag, self._domain)
        names = await self._names.recall(caller, tag)
        return render_inbox(tag, caller.account_id, address, at, names)

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


def _filter(caller: Caller, request: FindEmails, inbox_id: str | None) -> MessageFilter:
    terms = [_UNREAD] if request.unread_only else []
    if request.search_filter:
        terms.append(Term(WITH_WORDS, request.search_filter))
    before = parse_time("before", request.before)
    if before is not None:
        terms.append(Term(OLDER, before + 1))
    files = [condition.value == "TRUE" for condition in request.conditions]
    return MessageFilter(
        tag=_require_inbox(caller, inbox_id) if inbox_id else None,
        since=parse_time("since", request.since),
        has_attachment=files[0] if files else None,
        search=tuple(terms),
    )


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
    return [
        *own,
        *(person.address for person in people),
        *(person.name for person in people if person.name),
    ]
