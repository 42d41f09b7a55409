"""What the handlers of facades share: the messages and mails that a caller may use."""

import re
from collections.abc import Iterable
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from mailcheck.checks.content.bodies import Attachment
from mailcheck.checks.content.outline import Outline, outline_mail
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import AttachmentNotFound, InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import MessageId
from mailcheck.core.instants import Instant, parse_instant
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.all_operations import InboxOperations
from mailcheck.operations.inbox.contents import MailBytes
from mailcheck.operations.inbox.mails import MailList
from mailcheck.operations.inbox.messages import MessageList
from mailcheck.web.compatible.hold import Hold

_JOINT = "."

PageNumber = Annotated[int, Meta(ge=0, le=1_000_000)]
"""The number of a page, counted from 0. Databases have no larger offsets than 64 bits."""


def parse_time(name: str, text: str | None) -> Instant | None:
    """Return the time of a parameter, or `None` without one.

    :raises InvalidParameter: it is not a time.
    """
    try:
        return parse_instant(text) if text else None
    except ValueError:
        raise InvalidParameter(
            name, f"{name} is a time in ISO 8601; you sent {str(text)[:100]!r}"
        ) from None


def group_fields(fields: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the values of each header field by its name, in the order of the header."""
    found: dict[str, list[str]] = {}
    for name, value in fields:
        found.setdefault(name, []).append(value)
    return found


def join_file_id(message_id: str, attachment_id: str) -> str:
    """Return the id of a file for clients that ask for it without its message."""
    return f"{message_id}{_JOINT}{attachment_id}"


def split_file_id(file_id: str) -> tuple[MessageId, str]:
    """Return the ids of the message and of the attachment.

    :raises AttachmentNotFound: it is not the id of a file.
    """
    message_id, joint, attachment_id = file_id.rpartition(_JOINT)
    if not joint:
        raise AttachmentNotFound(f"the attachment {file_id[:100]!r} does not exist")
    return MessageId(message_id), attachment_id


class Messages(Struct, frozen=True):
    """Reads and deletes the messages that a caller may use.

    A message that the caller may not use does not exist for it (`MessageNotFound`).
    """

    _inbox: InboxOperations
    _mail_bytes: MailBytes

    async def page(
        self, caller: Caller, wanted: MessageFilter, size: int, page: int = 0
    ) -> MessageList:
        """Return a page of matching messages, newest first. Pages are counted from 0.

        Content that was not derived yet is derived first, so that the search is complete.
        """
        asked = caller.account_id, replace(wanted, allowed=caller.rights.tags), size, page + 1
        found = await self._inbox.read.page(*asked)
        if found.not_searched:
            await self._inbox.mails.derive(*asked[:2])
            found = await self._inbox.read.page(*asked)
        return found

    async def count(self, caller: Caller, wanted: MessageFilter) -> int:
        """Return the number of matching messages."""
        return (await self.page(caller, wanted, 1)).total

    async def message(self, caller: Caller, message_id: str) -> StoredMessage:
        """Return a whole message."""
        wanted = await self._require(caller, message_id)
        return await self._inbox.read.message(caller.account_id, wanted)

    async def raw_message(self, caller: Caller, message_id: str) -> bytes:
        """Return the exact bytes of a message."""
        wanted = await self._require(caller, message_id)
        return await self._inbox.read.raw_message(caller.account_id, wanted)

    async def file(self, caller: Caller, file_id: str) -> Attachment:
        """Return an attachment.

        :param file_id: as `join_file_id` has returned it.
        :raises AttachmentNotFound: the id or the attachment does not exist.
        """
        message_id, attachment_id = split_file_id(file_id)
        wanted = await self._require(caller, message_id)
        return await self._inbox.read.attachment(caller.account_id, wanted, attachment_id)

    async def outline(self, message: StoredMessage) -> Outline:
        """Return the links and pictures of a message."""
        html, text = message.content.html, message.content.text
        call = partial(outline_mail, html, text)
        return await self._mail_bytes.work(call, len(html) + len(text), message.summary.account_id)

    async def delete(self, caller: Caller, message_id: str) -> None:
        """Delete a message."""
        wanted = await self._require(caller, message_id)
        await self._inbox.delete.one(caller.account_id, wanted)

    async def delete_matches(self, caller: Caller, wanted: MessageFilter) -> None:
        """Delete all matching messages."""
        wanted = replace(wanted, allowed=caller.rights.tags)
        await self._inbox.delete.matching(caller.account_id, wanted)

    async def _require(self, caller: Caller, message_id: str) -> MessageId:
        await self._inbox.read.require_allowed(caller, MessageId(message_id))
        return MessageId(message_id)


_NUMBER = re.compile(r"\+?0*([0-9]{1,9})")


def read_number(text: str, default: int, lowest: int) -> int:
    """Return a number of a query, or the default for any text that is not one.

    Mailpit and MailHog ignore such texts, and numbers below the lowest one.
    """
    match = _NUMBER.fullmatch(text)
    number = default if match is None else int(match[1])
    return number if number >= lowest else default


class MailRange(Struct, frozen=True):
    """A part of a list of mails, as Mailpit and MailHog ask for it."""

    start: str = ""
    limit: str = ""

    @property
    def first(self) -> int:
        """The number of newer mails that are left out."""
        return read_number(self.start, 0, 1)


class HeldMails(Struct, frozen=True):
    """Lists mails, each once with all its recipients. A list without mails is held."""

    _inbox: InboxOperations
    _hold: Hold

    async def find(
        self, caller: Caller, wanted: MessageFilter, asked: MailRange, most: int
    ) -> MailList:
        """Return a part of the matching mails, newest first, and at most so many."""
        look = partial(self._inbox.mails.page, caller, wanted, most, asked.first)
        return await self._hold.until(caller, look, lambda one: one.matches.total > 0)
