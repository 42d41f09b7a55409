"""The bytes of stored mails, for those who want them: only so many large ones in hand at a time."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.content.bodies import Attachment, find_attachment
from mailcheck.core.errors import AttachmentNotFound, MessageNotFound, Overloaded
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.messages import MessageSummary
from mailcheck.operations.places import NoPlace, Places
from mailcheck.ports.workers import Worker
from mailcheck.store.content_store import ContentStore

LARGE = 1024 * 1024
"""Bytes from which on a mail waits for its turn; the others never wait behind such a one."""

AT_ONCE = 4
"""Large mails in hand at a time: one worker takes them apart, and reading them is quick."""

OF_ACCOUNT = 2
"""Of those one account may have so many."""

WAITING = 500
"""Requests that may wait for a turn; they hold no mail yet."""

PATIENCE = 20.0
"""Seconds that they wait; programs give up after thirty."""


Result = TypeVar("Result")


class Mail(Protocol):
    """What a turn depends on; a `MessageSummary` is one."""

    @property
    def delivery_id(self) -> DeliveryId:
        """Name its bytes."""

    @property
    def size(self) -> int:
        """Say how many they are."""

    @property
    def account_id(self) -> AccountId:
        """Name who has the turn."""


class MailBytes:
    """Reads mails, and parts of them.

    :param worker: what mails are worked on in; large ones in one of their own, so that no small
        one waits behind them.
    """

    def __init__(
        self, store: ContentStore, worker: Worker, large_worker: Worker, clock: IReactorTime
    ) -> None:
        self._store = store
        self._worker = worker
        self._large_worker = large_worker
        self._places: Places[AccountId] = Places(
            clock, at_once=AT_ONCE, of_one=OF_ACCOUNT, waiting=WAITING
        )

    @asynccontextmanager
    async def in_hand(self, mail: Mail, patience: float = PATIENCE) -> AsyncIterator[bytes]:
        """Give the exact bytes that came after DATA, for the time that they are worked on.

        A large mail waits for its turn, at most ``patience`` seconds.

        :raises MessageNotFound: the message has been deleted meanwhile.
        :raises Overloaded: too many large mails are asked for.
        """
        async with self.turn(mail, patience):
            raw = await self._store.raw_message(mail.delivery_id)
            if raw is None:
                raise MessageNotFound
            yield raw

    @asynccontextmanager
    async def turn(self, mail: Mail, patience: float = PATIENCE) -> AsyncIterator[None]:
        """Have a turn for what is worked on, where that is large.

        :raises Overloaded: too many large mails are asked for.
        """
        is_large = mail.size >= LARGE
        place = self._places.held(mail.account_id, patience) if is_large else nullcontext()
        try:
            async with place:
                yield
        except NoPlace:
            raise Overloaded("too many large mails are being read: try again in a moment") from None

    def work(
        self, call: Callable[[], Result], size: int, account_id: AccountId
    ) -> Deferred[Result]:
        """Run a call about a mail of so many bytes in the worker for such mails."""
        worker = self._large_worker if size >= LARGE else self._worker
        return worker.run(call, account_id)

    async def whole(self, summary: MessageSummary) -> bytes:
        """Give the exact bytes that came after DATA; raises as `in_hand`."""
        async with self.in_hand(summary) as raw:
            return raw

    async def attachment(self, summary: MessageSummary, attachment_id: str) -> Attachment:
        """Give an attachment, decoded; raises as `in_hand`.

        :raises AttachmentNotFound: the message has no such attachment.
        """
        async with self.in_hand(summary) as raw:
            find = partial(find_attachment, raw, attachment_id)
            attachment = await self.work(find, len(raw), summary.account_id)
        if attachment is None:
            raise AttachmentNotFound(f"the message has no attachment {attachment_id!r}")
        return attachment
