"""Mailboxes of an inbox, as IMAP and POP3 show them.

A mailbox is a filter on the messages of an inbox: all mail, the mail of one tag, or the mail that
was caught for recipients of other domains. The UID of a message is its position in the inbox.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from mailcheck.checks.content.decoding import decode_transfer
from mailcheck.checks.content.header.fields import summarize_header
from mailcheck.core.accounts import Caller, InboxState
from mailcheck.core.addresses import join_subaddress, parse_mailbox
from mailcheck.core.cursors import Position
from mailcheck.core.errors import MailTooLarge, MessageNotFound, WorkerDied
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.memory.recent import LruCache
from mailcheck.core.messages import NULL_REVERSE_PATH, Envelope, Session
from mailcheck.core.rights import Scope
from mailcheck.operations.concurrency import SingleFlight
from mailcheck.operations.inbox.contents import (
    LARGE,
    PATIENCE,
    WAITING,
    MailBytes,
    MessageContents,
)
from mailcheck.operations.semaphores import FairSemaphore
from mailcheck.operations.watchers import Watchers
from mailcheck.operations.worker_calls import derive_structures, read_parts
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import Notifications
from mailcheck.ports.mail_receiver import MailReceiver
from mailcheck.store.mail_store import MailStore
from mailcheck.store.mailbox_store import (
    DELETED,
    MAX_MARKED,
    MailboxChanges,
    MailboxState,
    MailboxStatus,
    MailboxStore,
    MailEntry,
    MailStructure,
    Marking,
    MarkResult,
    Marks,
)

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

    from mailcheck.checks.content.mime_parts import Part

SMALL = 65_536
"""Octets up to which a mail is parsed at once; that takes about a millisecond."""

SENT_AT_ONCE = 8
"""Maximum number of large mails that are being sent. Each is in memory."""

SENT_TO_ACCOUNT = 2
"""Maximum number of large mails that are being sent to programs of one account."""

RECENT_PARTS = 256
"""Number of mails whose parts are cached. Programs read a mail part by part."""

Result = TypeVar("Result")

AT_ONCE = 200
"""Maximum number of messages that one query reads."""

STRUCTURES_AT_ONCE = 2_000_000
"""Maximum octets of mails whose structures are derived in one call of a worker."""


class MailboxSettings(Struct, frozen=True):
    """``domains`` belong to this server, in lower case; ``domain`` is used for new addresses.

    ``max_size`` is the maximum number of octets of an appended mail.
    """

    domain: str
    domains: tuple[str, ...]
    max_size: int


class _ChangesOf(Struct, frozen=True):
    account_id: AccountId
    wanted: MessageFilter
    after: Position


class Mailboxes:
    """The operations of a caller on the mailboxes of its account.

    Every filter is limited to the tags of the caller. Failures of the store are
    `StoreUnavailable`.
    """

    _log = Logger()

    def __init__(
        self,
        store: MailboxStore,
        mails: MailStore,
        mail_bytes: MailBytes,
        contents: MessageContents,
        receiver: MailReceiver,
        notifications: Notifications[AccountId],
        removals: Notifications[AccountId],
        settings: MailboxSettings,
        clock: IReactorTime,
        now: Now,
    ) -> None:
        self._store = store
        self._mails = mails
        self._mail_bytes = mail_bytes
        self._contents = contents
        self._receiver = receiver
        self._notifications = notifications
        self._removals = removals
        self.settings = settings
        self._now = now
        self._sending: FairSemaphore[AccountId] = FairSemaphore(
            clock, limit=SENT_AT_ONCE, per_owner=SENT_TO_ACCOUNT, max_waiting=WAITING
        )
        self._parts: LruCache[DeliveryId, Part] = LruCache(RECENT_PARTS)
        self._watchers: Watchers[AccountId, Callable[[], None]] = Watchers()
        self._reading: SingleFlight[_ChangesOf, MailboxChanges] = SingleFlight(self._changes)
        notifications.listen(self._wake)
        removals.listen(self._wake)

    # Reading. All of these require the scope `INBOX_READ`.

    @property
    def caught(self) -> MessageFilter:
        """The mail that was caught for recipients of other domains."""
        return MessageFilter(foreign_to=self.settings.domains)

    async def tags(self, caller: Caller) -> list[str]:
        """Return the tags of the messages that the caller may read, in order."""
        return await self._store.tags(caller.account_id, _limited(caller, ANY))

    async def has_tag(self, caller: Caller, tag: str) -> bool:
        """Return whether the caller may read messages with a tag, and there are some."""
        is_allowed = bool(tag) and caller.rights.allows_tag(tag)
        return is_allowed and await self._store.has_tag(caller.account_id, tag)

    async def open(self, caller: Caller, wanted: MessageFilter) -> MailboxState:
        """Return the messages of a mailbox, and its UIDVALIDITY."""
        return await self._store.state(caller.account_id, _limited(caller, wanted), self._now())

    async def status(self, caller: Caller, wanted: MessageFilter) -> MailboxStatus:
        """Return the counts of a mailbox."""
        return await self._store.status(caller.account_id, _limited(caller, wanted), self._now())

    async def changes(
        self, caller: Caller, wanted: MessageFilter, after: Position
    ) -> MailboxChanges:
        """Return what has changed in a mailbox after a position of its inbox.

        Callers that ask the same at the same time share one read.
        """
        return await self._reading.call(
            _ChangesOf(caller.account_id, _limited(caller, wanted), after)
        )

    async def marks(self, caller: Caller, wanted: MessageFilter) -> list[Marks]:
        """Return the marks of all messages of a mailbox, in order."""
        return await self._store.marks(caller.account_id, _limited(caller, wanted), self._now())

    async def first_unread(self, caller: Caller, wanted: MessageFilter) -> Position | None:
        """Return the first unread message of a mailbox, or `None`."""
        return await self._store.first_unread(
            caller.account_id, _limited(caller, wanted), self._now()
        )

    async def keywords(self, caller: Caller) -> frozenset[str]:
        """Return all flags that messages of the inbox have, without the read mark."""
        return await self._store.keywords(caller.account_id)

    async def deleted(self, caller: Caller, wanted: MessageFilter) -> list[Position]:
        """Return the messages of a mailbox with the flag that `expunge` deletes, in order."""
        return await self._store.flagged(
            caller.account_id, _limited(caller, wanted), self._now(), DELETED
        )

    async def entries(self, caller: Caller, positions: Sequence[Position]) -> list[MailEntry]:
        """Return the messages at these positions, in order; deleted ones are left out.

        The caller has opened a mailbox with these positions.
        """
        found: list[MailEntry] = []
        for some in _batches(positions, AT_ONCE):
            found += await self._store.entries(caller.account_id, some, self._now())
        return found

    async def structured(
        self, caller: Caller, positions: Sequence[Position]
    ) -> list[tuple[MailEntry, MailStructure]]:
        """Return messages with their structures; see `entries`. At most `AT_ONCE` positions.

        Structures that are not stored yet are derived and stored.
        """
        found = await self._store.structured_entries(caller.account_id, positions, self._now())
        missing = {entry.delivery_id: entry for entry, structure in found if structure is None}
        made = await self._derive(list(missing.values())) if missing else {}
        return [
            (entry, structure or made[entry.delivery_id])
            for entry, structure in found
            if structure is not None or entry.delivery_id in made
        ]

    async def whole(self, entry: MailEntry) -> bytes:
        """Return the exact bytes of a mail.

        :raises MessageNotFound: the message was deleted meanwhile.
        :raises Overloaded: too many large mails are being read.
        """
        async with self._mail_bytes.opened(entry) as raw:
            return raw

    @asynccontextmanager
    async def opened(self, entry: MailEntry) -> AsyncIterator[bytes]:
        """Provide the exact bytes of a mail while they are being sent to a client.

        The number of large mails that are being sent is limited, since slow clients keep them in
        memory.

        :raises MessageNotFound: the message was deleted meanwhile.
        :raises Overloaded: too many large mails are being sent.
        """
        busy = "too many large mails are being sent; try again"
        is_large = entry.size >= LARGE
        turn = self._sending.held(entry.account_id, PATIENCE, busy) if is_large else nullcontext()
        async with turn:
            yield await self.whole(entry)

    async def parts(self, entry: MailEntry, raw_message: bytes) -> Part:
        """Return the parts of a mail."""
        known = self._parts.get(entry.delivery_id)
        if known is None:
            known = await self._work(partial(read_parts, raw_message), entry)
            self._parts.put(entry.delivery_id, known)
        return known

    async def decoded(self, entry: MailEntry, body: bytes, encoding: str) -> bytes:
        """Return the body of a part without its transfer encoding."""
        decoded, _ = await self._work(partial(decode_transfer, body, encoding), entry)
        return decoded

    async def octets(self, entry: MailEntry, start: int, count: int) -> bytes:
        """Return some octets of a mail; ``start`` is counted from 0.

        :raises MessageNotFound: the message was deleted meanwhile.
        """
        part = await self._store.octets(entry.delivery_id, start, count)
        if part is None:
            raise MessageNotFound
        return part

    async def beginnings(self, entries: Sequence[MailEntry], count: int) -> dict[DeliveryId, bytes]:
        """Return the first octets of mails; deleted ones are left out."""
        return await self._store.beginnings([entry.delivery_id for entry in entries], count)

    async def matches(self, caller: Caller, wanted: MessageFilter) -> frozenset[Position]:
        """Return the positions of all messages that match a filter, its content included."""
        certain, possible = await self._store.matches(
            caller.account_id, _limited(caller, wanted), self._now()
        )
        found = set(certain)
        for message in possible:
            with suppress(MessageNotFound):
                content = await self._contents.of(message.delivery_id)
                if not wanted.content_mismatches(message, content):
                    found.add(message.position)
        return frozenset(found)

    # Changes. All of these require the scope `INBOX_WRITE`.

    async def mark(
        self,
        caller: Caller,
        positions: Sequence[Position],
        marking: Marking,
        flags: frozenset[str],
        unchanged_since: int | None = None,
    ) -> MarkResult:
        """Change the flags of messages.

        :param unchanged_since: messages with a larger mod-sequence are not changed.
        :raises NotPermitted: the key lacks the scope.
        """
        caller.rights.require((Scope.INBOX_WRITE,))
        marked: list[Marks] = []
        modified: list[Position] = []
        has_changed = False
        for some in _batches(positions, MAX_MARKED):
            result = await self._store.mark(
                caller.account_id, some, marking, flags, unchanged_since, self._now()
            )
            marked += result.marked
            modified += result.modified
            has_changed = has_changed or result.has_changed
        if has_changed:
            self._notifications.publish(caller.account_id)
        return MarkResult(tuple(marked), tuple(modified), has_changed)

    async def delete(self, caller: Caller, positions: Sequence[Position]) -> int:
        """Delete messages; return the number of messages that were still there.

        :raises NotPermitted: the key lacks the scope.
        """
        caller.rights.require((Scope.INBOX_WRITE,))
        deleted = 0
        for some in _batches(positions, MAX_MARKED):
            deleted += await self._store.remove(caller.account_id, some, self._now())
        if deleted:
            self._removals.publish(caller.account_id)
        return deleted

    def require_append(self, caller: Caller, tag: str, size: int) -> None:
        """Check that the caller may append a mail of this size with a tag.

        :raises NotPermitted: the key lacks the scope, or is limited to other tags.
        :raises MailTooLarge: the mail is too large.
        """
        caller.rights.require((Scope.INBOX_WRITE,))
        caller.rights.require_tag(tag)
        if size > self.settings.max_size:
            raise MailTooLarge(
                f"the mail has {size:,} bytes; the maximum is {self.settings.max_size:,}"
            )

    async def append(
        self,
        caller: Caller,
        session: Session,
        tag: str,
        raw_message: bytes,
        flags: frozenset[str] = frozenset(),
    ) -> tuple[int, Position]:
        """Store a mail as received now, with the quota and retention of the inbox.

        :return: the UIDVALIDITY and the position of the mail, when it is on disk.
        :raises RecipientUnknown: the tag is reserved for mail from this service.
        :raises InboxFull: the inbox is over its quota.
        :raises OutOfSpace: the disk is full.
        """
        self.require_append(caller, tag, len(raw_message))
        inbox = await self._inbox(caller.account_id)
        address = join_subaddress(inbox.mailbox_name, tag, self.settings.domain)
        sender = summarize_header(raw_message).author_address
        try:
            parse_mailbox(sender)
        except ValueError:
            sender = NULL_REVERSE_PATH
        session = replace(session, account_id=caller.account_id)
        # The same checks as for mail on the submission port: quota, disk, reserved tags, faults.
        found = self._receiver.accept_recipient(session, sender, parse_mailbox(address))
        recipient = await found if isinstance(found, Deferred) else found
        delivery_id = await self._receiver.deliver(
            session, Envelope(sender, (recipient,)), raw_message
        )
        row = await self._mails.find_delivered(caller.account_id, delivery_id, self._now())
        if row is None:
            raise MessageNotFound
        position = row.summary.position
        if flags:
            await self.mark(caller, (position,), Marking.REPLACE, flags)
        return await self._store.uid_validity(caller.account_id), position

    # Notifications.

    def watched(
        self, account_id: AccountId, wake: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """Call ``wake`` while the block runs whenever the inbox may have changed.

        A notification is a hint, and deletions by expiry have none.
        """
        return self._watchers.joined(account_id, wake)

    def wake_all(self) -> None:
        """Wake all watchers, since notifications may have been lost."""
        for account_id in self._watchers.watched():
            self._wake(account_id)

    def _wake(self, account_id: AccountId) -> None:
        for wake in self._watchers.of(account_id):
            wake()

    def _changes(self, asked: _ChangesOf) -> Deferred[MailboxChanges]:
        return self._store.changes(asked.account_id, asked.wanted, self._now(), asked.after)

    async def _work(self, call: Callable[[], Result], entry: MailEntry) -> Result:
        """Run a call that reads a mail, in a worker unless the mail is small."""
        if entry.size <= SMALL:
            return call()
        return await self._mail_bytes.work(call, entry.size, entry.account_id)

    async def _inbox(self, account_id: AccountId) -> InboxState:
        inbox = await self._mails.find_account_inbox(account_id)
        if inbox is None:
            raise MessageNotFound("the account has been deleted")
        return inbox

    async def _derive(self, entries: Sequence[MailEntry]) -> dict[DeliveryId, MailStructure]:
        """Derive and store structures, a few megabytes at a time."""
        made: dict[DeliveryId, MailStructure] = {}
        while entries:
            size = 0
            some: list[MailEntry] = []
            for entry in entries:
                size += entry.size
                if some and size > STRUCTURES_AT_ONCE:
                    break
                some.append(entry)
            entries = entries[len(some) :]
            made.update(await self._derive_some(some))
        return made

    async def _derive_some(self, entries: Sequence[MailEntry]) -> dict[DeliveryId, MailStructure]:
        if len(entries) == 1:
            try:
                raws = {entries[0].delivery_id: await self.whole(entries[0])}
            except MessageNotFound:
                return {}
        else:
            raws = await self.beginnings(entries, STRUCTURES_AT_ONCE)
        largest = max((len(raw) for raw in raws.values()), default=0)
        try:
            derived = await self._mail_bytes.work(
                partial(derive_structures, list(raws.values())), largest, entries[0].account_id
            )
        except WorkerDied as failure:
            return await self._derive_each(entries, failure)
        made = [
            (delivery_id, MailStructure(envelope, structure, sent_at))
            for delivery_id, (envelope, structure, sent_at) in zip(raws, derived, strict=True)
        ]
        saved = self._store.save_structures(made)
        saved.addErrback(lambda _: None)  # they can be derived again
        return dict(made)

    async def _derive_each(
        self, entries: Sequence[MailEntry], failure: WorkerDied
    ) -> dict[DeliveryId, MailStructure]:
        """Derive structures one by one, since one of the mails has stopped a worker."""
        if len(entries) == 1:
            mail = entries[0].delivery_id
            self._log.error("{mail} has no structure: {why}", mail=mail, why=failure)
            return {mail: _undescribed(entries[0])}
        made: dict[DeliveryId, MailStructure] = {}
        for entry in entries:
            made.update(await self._derive_some([entry]))
        return made


def _undescribed(entry: MailEntry) -> MailStructure:
    """Return the structure of a mail that cannot be read: octets without an envelope."""
    structure = b'("APPLICATION" "OCTET-STREAM" NIL NIL NIL "8BIT" %d NIL NIL NIL NIL)' % entry.size
    return MailStructure(b"(" + b" ".join([b"NIL"] * 10) + b")", structure, None)


def _limited(caller: Caller, wanted: MessageFilter) -> MessageFilter:
    caller.rights.require((Scope.INBOX_READ,))
    allowed = caller.rights.tags
    return wanted if allowed is None else replace(wanted, allowed=allowed)


def _batches(positions: Sequence[Position], size: int) -> Iterator[Sequence[Position]]:
    return (positions[first : first + size] for first in range(0, len(positions), size))
