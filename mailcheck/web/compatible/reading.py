"""Whole messages for the facades: their content, their links and pictures, and their files."""

from functools import partial

from mailcheck.checks.content.bodies import Attachment
from mailcheck.checks.content.outline import Outline
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import AttachmentNotFound, InvalidParameter
from mailcheck.core.identifiers import MessageId
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.contents import MailBytes
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.operations.lazy_functions import outline_mail

_JOINT = "."

MAX_PAGE = 1_000_000
"""Maximum number of a page. Databases have no larger offsets than 64 bits."""


def require_page(page: int) -> int:
    """Return the number of a page, counted from 0.

    :raises InvalidParameter: it is out of range.
    """
    if not 0 <= page <= MAX_PAGE:
        raise InvalidParameter("page", f"page is from 0 to {MAX_PAGE:,}; you sent {page}")
    return page


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


class ReadMessages:
    """Reads messages that a caller may use."""

    def __init__(self, read: ReadInbox, mail_bytes: MailBytes) -> None:
        self._read = read
        self._mail_bytes = mail_bytes

    async def message(self, caller: Caller, message_id: str) -> StoredMessage:
        """Return a whole message.

        :raises MessageNotFound: the account has no such message, or the caller may not use it.
        """
        wanted = MessageId(message_id)
        await self._read.require_allowed(caller, wanted)
        return await self._read.message(caller.account_id, wanted)

    async def raw_message(self, caller: Caller, message_id: str) -> bytes:
        """Return the exact bytes of a message; raises as `message`."""
        wanted = MessageId(message_id)
        await self._read.require_allowed(caller, wanted)
        return await self._read.raw_message(caller.account_id, wanted)

    async def outline(self, message: StoredMessage) -> Outline:
        """Return the links and pictures of a message."""
        html, text = message.content.html, message.content.text
        call = partial(outline_mail, html, text)
        return await self._mail_bytes.work(call, len(html) + len(text), message.summary.account_id)

    async def file(self, caller: Caller, file_id: str) -> Attachment:
        """Return an attachment.

        :param file_id: as `join_file_id` has returned it.
        :raises AttachmentNotFound: the id or the attachment does not exist.
        :raises MessageNotFound: the account has no such message, or the caller may not use it.
        """
        wanted, attachment_id = split_file_id(file_id)
        await self._read.require_allowed(caller, wanted)
        return await self._read.attachment(caller.account_id, wanted, attachment_id)
