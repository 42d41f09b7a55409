"""The bytes of a mail, large ones in turn, and what it contains: derived once, and kept."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.checks.content.bodies import Attachment, find_attachment
from mailcheck.core.content import MessageContent
from mailcheck.core.errors import (
    AttachmentNotFound,
    ExpectedFailure,
    MessageNotFound,
    Overloaded,
    WorkerDied,
    WorkTooSlow,
)
from mailcheck.core.identifiers import AccountId, DeliveryId, MessageId
from mailcheck.core.messages import Delivery, MessageSummary, StoredMessage
from mailcheck.core.recent import RecentlyUsed
from mailcheck.operations.concurrency import SingleFlight
from mailcheck.operations.lazy_functions import derive_content
from mailcheck.operations.semaphores import FairSemaphore, NoPermit
from mailcheck.ports.clocks import Now
from mailcheck.ports.workers import Worker
from mailcheck.store.content_store import ContentStore
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import MessageRow

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
        self._semaphore: FairSemaphore[AccountId] = FairSemaphore(
            clock, limit=AT_ONCE, per_owner=OF_ACCOUNT, max_waiting=WAITING
        )

    @asynccontextmanager
    async def opened(self, mail: Mail, patience: float = PATIENCE) -> AsyncIterator[bytes]:
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
        place = self._semaphore.held(mail.account_id, patience) if is_large else nullcontext()
        try:
            async with place:
                yield
        except NoPermit:
            raise Overloaded("too many large mails are being read: try again in a moment") from None

    def work(
        self, call: Callable[[], Result], size: int, account_id: AccountId
    ) -> Deferred[Result]:
        """Run a call about a mail of so many bytes in the worker for such mails."""
        worker = self._large_worker if size >= LARGE else self._worker
        return worker.run(call, account_id)

    async def whole(self, summary: MessageSummary) -> bytes:
        """Give the exact bytes that came after DATA; raises as `opened`."""
        async with self.opened(summary) as raw:
            return raw

    async def attachment(self, summary: MessageSummary, attachment_id: str) -> Attachment:
        """Give an attachment, decoded; raises as `opened`.

        :raises AttachmentNotFound: the message has no such attachment.
        """
        async with self.opened(summary) as raw:
            find = partial(find_attachment, raw, attachment_id)
            attachment = await self.work(find, len(raw), summary.account_id)
        if attachment is None:
            raise AttachmentNotFound(f"the message has no attachment {attachment_id!r}")
        return attachment


RECENT_CONTENTS = 64
"""Contents kept in memory: those who wait for a mail come right after it."""

RECENT_SIZE = 262_144
"""Characters over which a content is not kept in memory."""

DERIVING_PATIENCE = 300.0
"""Seconds that a large mail waits for its turn: what is derived then is kept for the next reader,
also where the one who asked has given up."""

SAVE_DELAY = 0.02
"""Seconds after which what was derived is saved: who waits for the mail has it by then."""

ATTEMPTS = 3
"""Times a mail is tried: a worker that died may have died of the one before it."""

UNREADABLE = MessageContent(
    header_list=(),
    text="",
    html="",
    attachments=(),
    links=(),
    best_link=None,
    codes=(),
    candidates=(),
    problems=("this mail could not be taken apart, a fault of ours: its raw bytes can be read",),
)
"""Stands in for what can't be derived, and is not kept: a mail that we fail at must not hide
the others of its list."""

TOO_SLOW = "this mail was not taken apart, since that takes too long: its raw bytes can be read"
"""Problem of a mail that exceeded the time of its derivation. It is kept: another reader would
hold the worker up for as long again."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A delivery, the same one whoever wants it; the turn it waits for is that of the first."""

    delivery_id: DeliveryId
    size: int = field(default=0, compare=False)
    account_id: AccountId = field(default=AccountId(""), compare=False)
    raw_message: bytes | None = field(default=None, compare=False)
    found: MessageContent | bytes | None = field(default=None, compare=False)


class MessageContents:
    """Gives the content of a delivery; whoever comes first has it derived.

    :param learn: is told of the header of each content that is taken into memory.
    """

    _log = Logger()

    def __init__(
        self,
        store: ContentStore,
        mail_bytes: MailBytes,
        learn: Callable[[tuple[tuple[str, str], ...]], None],
        clock: IReactorTime,
    ) -> None:
        self._store = store
        self._mail_bytes = mail_bytes
        self._learn = learn
        self._clock = clock
        self._recent: RecentlyUsed[DeliveryId, MessageContent] = RecentlyUsed(RECENT_CONTENTS)
        self._loading: SingleFlight[_Wanted, MessageContent] = SingleFlight(self._load)

    async def of_message(
        self, message: MessageSummary, found: MessageContent | bytes | None = None
    ) -> MessageContent:
        """Give what a message contains; a large one waits for its turn among those of all readers.

        :param found: its content or its bytes, where they were read already.
        :raises MessageNotFound: it has gone meanwhile.
        :raises Overloaded: its turn did not come.
        """
        return await self._of(
            _Wanted(message.delivery_id, message.size, message.account_id, found=found)
        )

    async def of(self, delivery_id: DeliveryId) -> MessageContent:
        """Give what a delivery contains, for who asks for one after the other: no turn is needed.

        :raises MessageNotFound: the delivery has gone meanwhile.
        """
        return await self._of(_Wanted(delivery_id))

    def prepare(self, delivery: Delivery) -> None:
        """Begin to derive the content of a mail that is being stored, for those who wait for it.

        It becomes nobody's before there is a message of it. A large one is left to its readers.
        """
        raw_message = delivery.raw_message
        if len(raw_message) <= RECENT_SIZE:
            owner = delivery.envelope.recipients[0].account_id
            wanted = _Wanted(delivery.id, len(raw_message), owner, raw_message=raw_message)
            # Who reads it hears of a failure, and has it tried again.
            self._loading.call(wanted).addErrback(lambda _: None)

    async def _of(self, wanted: _Wanted) -> MessageContent:
        content = self._recent.get(wanted.delivery_id)
        if content is None:
            content = await self._loading.call(wanted)
        return content

    async def _load(self, wanted: _Wanted) -> MessageContent:
        delivery_id = wanted.delivery_id
        if wanted.raw_message is not None:
            content = await self._derive(wanted, wanted.raw_message)
            self._clock.callLater(SAVE_DELAY, self._save, delivery_id, content)
        else:
            content = await self._find_or_derive(wanted)
        self._learn(content.header_list)
        if len(content.text) + len(content.html) <= RECENT_SIZE:
            self._recent.put(delivery_id, content)
        return content

    async def _find_or_derive(self, wanted: _Wanted) -> MessageContent:
        delivery_id = wanted.delivery_id
        if wanted.size >= LARGE:
            async with self._mail_bytes.turn(wanted, DERIVING_PATIENCE):
                return await self._find_or_derive_large(wanted)
        found = wanted.found
        if found is None:
            found = await self._store.find_content(delivery_id, or_raw_below=LARGE)
        if isinstance(found, MessageContent):
            return found
        if found is not None:
            content = await self._derive(wanted, found)
        else:
            async with self._mail_bytes.opened(wanted, DERIVING_PATIENCE) as raw_message:
                content = await self._derive(wanted, raw_message)
        self._save(delivery_id, content)
        return content

    async def _find_or_derive_large(self, wanted: _Wanted) -> MessageContent:
        delivery_id = wanted.delivery_id
        unpack = await self._store.packed_content(delivery_id)
        if unpack is not None:
            return await self._mail_bytes.work(unpack, LARGE, wanted.account_id)
        raw_message = await self._store.raw_message(delivery_id)
        if raw_message is None:
            raise MessageNotFound
        content = await self._derive(wanted, raw_message)
        self._save(delivery_id, content)
        return content

    async def _derive(self, wanted: _Wanted, raw_message: bytes) -> MessageContent:
        delivery_id = wanted.delivery_id
        try:
            content = await self._take_apart(raw_message, wanted.account_id)
        except WorkTooSlow as failure:
            self._log.error("{delivery} is not derived: {why}", delivery=delivery_id, why=failure)
            return replace(UNREADABLE, problems=(TOO_SLOW,))
        except ExpectedFailure as failure:
            if not isinstance(failure, WorkerDied):
                raise
            self._log.error("{delivery} can't be derived: {why}", delivery=delivery_id, why=failure)
            return UNREADABLE
        except CancelledError:
            raise
        except Exception:
            self._log.failure("{delivery} can't be derived", delivery=delivery_id)
            return UNREADABLE
        return content

    def _save(self, delivery_id: DeliveryId, content: MessageContent) -> None:
        if content is UNREADABLE:
            return
        self._store.save_content(delivery_id, content).addErrback(self._log_unsaved)

    async def _take_apart(self, raw_message: bytes, account_id: AccountId) -> MessageContent:
        work = partial(derive_content, raw_message), len(raw_message), account_id
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._mail_bytes.work(*work)
            except WorkTooSlow:
                raise
            except WorkerDied:
                continue
        return await self._mail_bytes.work(*work)

    def _log_unsaved(self, failure: Failure) -> None:
        # Nothing is lost: it can be derived again from the bytes.
        self._log.warn("derived content was not saved: {reason}", reason=failure.getErrorMessage())


class MessageLoader:
    """Reads messages with their content."""

    def __init__(self, store: MailStore, contents: MessageContents, now: Now) -> None:
        self._store = store
        self._contents = contents
        self._now = now
        self._loading: SingleFlight[tuple[AccountId, MessageId], StoredMessage] = SingleFlight(
            self._load
        )
        self._completing: SingleFlight[MessageRow, StoredMessage] = SingleFlight(self._complete)
        self._alive: WeakValueDictionary[MessageRow, StoredMessage] = WeakValueDictionary()
        self._last: tuple[MessageRow, StoredMessage] | None = None

    async def load(self, account_id: AccountId, message_id: MessageId) -> StoredMessage:
        """Load a message of an account.

        :raises MessageNotFound: the account has no such message (any more).
        """
        return await self._loading.call((account_id, message_id))

    async def complete(self, row: MessageRow) -> StoredMessage:
        """Add the content to a message that was read already.

        All who were offered the same row get the same message, also one after the other, and as
        long as anybody has it.

        :raises MessageNotFound: it has been deleted meanwhile.
        """
        if self._last is not None and self._last[0] is row:
            return self._last[1]  # thousands may wait for the same mail
        message = self._alive.get(row)
        if message is not None:
            return message
        return await self._completing.call(row)

    async def _complete(self, row: MessageRow) -> StoredMessage:
        content = await self._contents.of_message(row.summary, row.content)
        message = StoredMessage(row.summary, row.envelope_sender, row.session, content)
        self._last = row, message
        self._alive[row] = message
        return message

    async def _load(self, key: tuple[AccountId, MessageId]) -> StoredMessage:
        row = await self._store.find_message(*key, self._now())
        if row is None:
            raise MessageNotFound
        return await self.complete(row)
