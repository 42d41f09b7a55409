"""The mailboxes that reports are fetched from: IMAP servers and Maildirs."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from msgspec import Struct


class Remedy(Enum):
    """What helps after a failure."""

    RETRY = "a later attempt"
    RETRY_ONCE = "a later attempt; after a second failure, the operator"
    OPERATOR = "the operator must change something"
    RENEW = "a new access token, at once"


class MailboxFailed(Exception):
    """A mailbox cannot be read. The message is for the operator and for the owner.

    ``wait``: the milliseconds that the server asks to wait.
    """

    def __init__(self, problem: str, remedy: Remedy = Remedy.RETRY, wait: int = 0) -> None:
        super().__init__(problem)
        self.remedy = remedy
        self.wait = wait


class Place(NamedTuple):
    """A place in a mailbox: all mails up to ``last_uid`` are read.

    Of a Maildir, it is the time of the newest file that was read, in milliseconds since 1970.
    """

    uid_validity: int = 0
    last_uid: int = 0


class FetchedMail(Struct, frozen=True):
    """A mail of a mailbox; ``raw_message`` is `None` if it is too large. ``key`` identifies it.

    ``is_known``: it was read before, and is read again since it has no report.
    """

    key: str
    raw_message: bytes | None
    is_known: bool = False


class Batch(NamedTuple):
    """Mails that were fetched together, and the place after them."""

    mails: Sequence[FetchedMail]
    place: Place


class OpenMailbox(Protocol):
    """An open mailbox."""

    async def next_batch(self, limit: int) -> Batch | None:
        """Fetch the next mails, at most ``limit``; `None` if there are no more.

        :raises MailboxFailed: the mailbox cannot be read.
        """

    async def finish(self, keys: Sequence[str]) -> None:
        """Mark or move mails whose reports are stored, as the configuration says.

        The other mails of the last batch have no reports, and need not be read again.

        :raises MailboxFailed: the mailbox cannot be changed.
        """

    async def close(self) -> None:
        """Close it. Never fails."""


class MailboxOpener(Protocol):
    """Opens a mailbox."""

    async def open(self, token: str, place: Place) -> OpenMailbox:
        """Open it, and look for the mails after a place.

        :param token: an access token, or empty.
        :raises MailboxFailed: it cannot be opened.
        """
