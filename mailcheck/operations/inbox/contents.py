"""The raw bytes of mails (large ones with limits), and their content, derived once and stored."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
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
    WorkerDied,
    WorkTooSlow,
)
from mailcheck.core.identifiers import AccountId, DeliveryId, MessageId
from mailcheck.core.memory.recent import LruCache
from mailcheck.core.messages import Delivery, MessageSummary, StoredMessage
from mailcheck.operations.concurrency import SingleFlight
from mailcheck.operations.semaphores import FairSemaphore
from mailcheck.operations.worker_calls import derive_content
from mailcheck.ports.clocks import Now
from mailcheck.ports.workers import Worker
from mailcheck.store.content_store import ContentStore
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import MessageRow

LARGE = 1024 * 1024
"""Size in bytes from which a mail counts as large. Small mails never wait behind large ones."""

AT_ONCE = 4
"""Maximum number of large mails in memory. One worker parses them, and reading is fast."""

OF_ACCOUNT = 2
"""Maximum number of large mails in memory per account."""

WAITING = 500
"""Maximum number of waiting requests. They do not have the mail in memory yet."""

PATIENCE = 20.0
"""Seconds that a request waits. Clients time out after thirty."""


Result = TypeVar("Result")


class Mail(Protocol):
    """The mail that a request needs; a `MessageSummary` is one."""

    @property
    def delivery_id(self) -> DeliveryId:
        """Identifier of its bytes."""

    @property
    def size(self) -> int:
        """Number of its bytes."""

    @property
    def account_id(self) -> AccountId:
        """The account whose permits the request uses."""


class MailBytes:
    """Reads mails and their parts.

    :param worker: parses small mails. Large mails have a separate worker, so that small ones
        do not wait behind them.
    :param at_once: maximum number of large mails in hand.
    """

    def __init__(
        self,
        store: ContentStore,
        worker: Worker,
        large_worker: Worker,
        clock: IReactorTime,
        at_once: int = AT_ONCE,
    ) -> None:
        self._store = store
        self._worker = worker
        self._large_worker = large_worker
        self._semaphore: FairSemaphore[AccountId] = FairSemaphore(
            clock, limit=at_once, per_owner=OF_ACCOUNT, max_waiting=WAITING
        )

    @asynccontextmanager
    async def opened(self, mail: Mail, patience: float = PATIENCE) -> AsyncIterator[bytes]:
        """Provide the exact bytes received after DATA while the block runs.

        A large mail waits up to ``patience`` seconds for a permit.

        :raises MessageNotFound: the message was deleted meanwhile.
        :raises Overloaded: too many large mails are being read.
        """
        async with self.turn(mail, patience):
            raw = await self._store.raw_message(mail.delivery_id)
            if raw is None:
                raise MessageNotFound
            yield raw

    def turn(self, mail: Mail, patience: float = PATIENCE) -> AbstractAsyncContextManager[None]:
        """Hold a permit while the block runs, if the mail is large.

        :raises Overloaded: too many large mails are being read.
        """
        if mail.size < LARGE:
            return nullcontext()
        busy = "too many large mails are being read; try again in a moment"
        return self._semaphore.held(mail.account_id, patience, busy)

    def work(
        self, call: Callable[[], Result], size: int, account_id: AccountId
    ) -> Deferred[Result]:
        """Run a call in the worker for mails of this size."""
        worker = self._large_worker if size >= LARGE else self._worker
        return worker.run(call, account_id)

    async def whole(self, summary: MessageSummary) -> bytes:
        """Return the exact bytes received after DATA; raises as `opened`."""
        async with self.opened(summary) as raw:
            return raw

    async def attachment(self, summary: MessageSummary, attachment_id: str) -> Attachment:
        """Return a decoded attachment; raises as `opened`.

        :raises AttachmentNotFound: the message has no such attachment.
        """
        async with self.opened(summary) as raw:
            find = partial(find_attachment, raw, attachment_id)
            attachment = await self.work(find, len(raw), summary.account_id)
        if attachment is None:
            raise AttachmentNotFound(f"the message has no attachment {attachment_id!r}")
        return attachment


RECENT_CONTENTS = 64
"""Number of contents cached in memory. Waiting clients read a mail right after its arrival."""

RECENT_SIZE = 262_144
"""Length in characters above which a content is not cached in memory."""

DERIVING_PATIENCE = 300.0
"""Seconds that a large mail waits for its derivation. The result is stored for the next reader,
even if the client has given up."""

SAVE_DELAY = 0.02
"""Seconds until a derived content is saved. Waiting clients are served first."""

ATTEMPTS = 3
"""Attempts per mail. A worker may have died because of the mail before."""

UNREADABLE = MessageContent(
    header_list=(),
    text="",
    html="",
    attachments=(),
    links=(),
    best_link=None,
    codes=(),
    candidates=(),
    problems=("this mail could not be parsed because of a bug here; its raw bytes are available",),
)
"""Replaces content that cannot be derived. It is not stored, and lets the other messages of a
list be shown."""

TOO_SLOW = "this mail was not parsed because that takes too long; its raw bytes are available"
"""Problem of a mail whose derivation timed out. It is stored, since another attempt would occupy
the worker for as long again."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A delivery to load. Requests are equal if the delivery is; the first one's permit counts."""

    delivery_id: DeliveryId
    size: int = field(default=0, compare=False)
    account_id: AccountId = field(default=AccountId(""), compare=False)
    raw_message: bytes | None = field(default=None, compare=False)
    found: MessageContent | bytes | None = field(default=None, compare=False)


class MessageContents:
    """Returns the content of deliveries. The first request derives and stores it.

    :param learn: called with the header of each content that is loaded into memory.
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
        self._recent: LruCache[DeliveryId, MessageContent] = LruCache(RECENT_CONTENTS)
        self._loading: SingleFlight[_Wanted, MessageContent] = SingleFlight(self._load)

    async def of_message(
        self, message: MessageSummary, found: MessageContent | bytes | None = None
    ) -> MessageContent:
        """Return the content of a message. A large one waits for a permit.

        :param found: its content or its bytes, if they have been read already.
        :raises MessageNotFound: the message was deleted meanwhile.
        :raises Overloaded: too many large mails are being read.
        """
        return await self._of(
            _Wanted(message.delivery_id, message.size, message.account_id, found=found)
        )

    async def of(self, delivery_id: DeliveryId) -> MessageContent:
        """Return the content of a delivery without a permit, for callers that work sequentially.

        :raises MessageNotFound: the delivery was deleted meanwhile.
        """
        return await self._of(_Wanted(delivery_id))

    async def keep(self, message: MessageSummary) -> None:
        """Derive the content of a message if necessary, and store it before returning.

        :raises MessageNotFound: the message was deleted meanwhile.
        :raises Overloaded: too many large mails are being read.
        """
        content = await self.of_message(message)
        if content is not UNREADABLE:
            await self._store.save_content(message.delivery_id, content)

    def prepare(self, delivery: Delivery) -> None:
        """Start deriving the content of a mail that is being stored, for waiting clients.

        No client can read it before its message exists. Large mails are left to their readers.
        """
        raw_message = delivery.raw_message
        if len(raw_message) <= RECENT_SIZE:
            owner = delivery.envelope.recipients[0].account_id
            wanted = _Wanted(delivery.id, len(raw_message), owner, raw_message=raw_message)
            # A reader gets the failure and causes another attempt.
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
            self._log.error(
                "{delivery} cannot be derived: {why}", delivery=delivery_id, why=failure
            )
            return UNREADABLE
        except CancelledError:
            raise
        except Exception:
            self._log.failure("{delivery} cannot be derived", delivery=delivery_id)
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
        # Nothing is lost; the content can be derived again.
        self._log.warn("derived content was not saved: {reason}", reason=failure.getErrorMessage())


class MessageLoader:
    """Loads messages with their content."""

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

        :raises MessageNotFound: the account has no such message.
        """
        return await self._loading.call((account_id, message_id))

    async def complete(self, row: MessageRow) -> StoredMessage:
        """Add the content to a message that has been read.

        All callers with the same row get the same message, as long as any of them keeps it.

        :raises MessageNotFound: the message was deleted meanwhile.
        """
        if self._last is not None and self._last[0] is row:
            return self._last[1]  # thousands of clients may wait for the same mail
        message = self._alive.get(row)
        if message is not None:
            return message
        return await self._completing.call(row)

    async def _complete(self, row: MessageRow) -> StoredMessage:
        content = await self._contents.of_message(row.summary, row.content)
        message = StoredMessage(row.summary, row.envelope_sender, row.session, content, row.request)
        self._last = row, message
        self._alive[row] = message
        return message

    async def _load(self, key: tuple[AccountId, MessageId]) -> StoredMessage:
        row = await self._store.find_message(*key, self._now())
        if row is None:
            raise MessageNotFound
        return await self.complete(row)
