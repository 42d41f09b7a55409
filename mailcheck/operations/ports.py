"""What the operations need of the outside. Each port has one contract suite for all that fill it.

Any method may fail with `StoreUnavailable`; ``now`` hides what has expired.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred

from mailcheck.core.accounts import Account, ApiKey, InboxState
from mailcheck.core.content import Extracted, MessageContent
from mailcheck.core.cursors import Position
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, DeliveryId, KeyId, MessageId
from mailcheck.core.instants import BEGINNING, END, Instant
from mailcheck.core.messages import (
    Delivery,
    MessageSummary,
    Refusal,
    Session,
    TagCount,
)
from mailcheck.core.rate_limits import Window

Result = TypeVar("Result")
Subject = TypeVar("Subject")

Now = Callable[[], Instant]
"""``now()`` reads the injected clock."""


@dataclass(frozen=True, slots=True)
class MessagePage:
    """A page of a list; what is not derived yet is missing from an entry.

    ``total`` counts all that match; ``last_position`` is the inbox's newest
    cursor in the same snapshot.
    """

    entries: tuple[tuple[MessageSummary, Extracted | None], ...]
    total: int
    last_position: Position


@dataclass(frozen=True, slots=True)
class InboxOverview:
    """An inbox with its newest tags; expired mail is not counted."""

    state: InboxState
    tags: tuple[TagCount, ...]
    tag_total: int


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A stored message without its content."""

    summary: MessageSummary
    envelope_sender: str
    session: Session


class Worker(Protocol):
    """Runs blocking work away from the reactor."""

    def run(self, call: Callable[[], Result]) -> Deferred[Result]:
        """Run the call; the Deferred fires in the reactor's thread.

        A worker may be another process: a call that can be pickled can run in any.
        """

    def start(self) -> None:
        """Make ready to run calls."""

    def stop(self) -> Deferred[None] | None:
        """Run what was given, then take no more; fires when that is done."""


class DeliveryStore(Protocol):
    """Takes mails in."""

    def find_inbox(self, mailbox_name: str) -> Deferred[InboxState | None]:
        """Find an inbox by its mailbox name (lower case)."""

    def find_account_inbox(self, account_id: AccountId) -> Deferred[InboxState | None]:
        """Find the inbox of an account."""

    def find_operator_inbox(self) -> Deferred[InboxState | None]:
        """Find the inbox that postmaster's mail goes to."""

    def deliver(self, delivery: Delivery) -> Deferred[tuple[Position, ...]]:
        """Store a mail; fires when it is on disk, with the position for each recipient.

        :raises RecipientUnknown: an inbox has gone; nothing was stored.
        :raises InboxFull: an inbox has no room; nothing was stored.
        """

    def note_refusal(self, refusal: Refusal) -> Deferred[None]:
        """Keep a refusal for those who wait for the mail."""

    def free_bytes(self) -> int | None:
        """Say how much more can be stored; nothing when that is not ours to know."""


class MessageStore(Protocol):
    """Reads and removes stored messages of one account."""

    def find_account_inbox(self, account_id: AccountId) -> Deferred[InboxState | None]:
        """Find the inbox of an account."""

    def oldest_matches(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, limit: int
    ) -> Deferred[tuple[tuple[MessageRow, ...], Position]]:
        """List the oldest messages that match, and the inbox's newest position."""

    def newest_positions(
        self, account_ids: Sequence[AccountId]
    ) -> Deferred[dict[AccountId, Position]]:
        """Give the newest position of each of these inboxes."""

    def newest(
        self, account_id: AccountId, since: Instant, now: Instant, limit: int
    ) -> Deferred[tuple[MessageSummary, ...]]:
        """List the newest messages since a moment, newest first; nothing is counted."""

    def page(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, limit: int, offset: int
    ) -> Deferred[MessagePage]:
        """List messages that match, newest first."""

    def overview(self, account_id: AccountId, now: Instant, tags: int) -> Deferred[InboxOverview]:
        """Sum an inbox up, with at most ``tags`` of its tags, newest first."""

    def find_message(
        self, account_id: AccountId, message_id: MessageId, now: Instant
    ) -> Deferred[MessageRow | None]:
        """Find a message of the account."""

    def find_any_message(self, message_id: MessageId, now: Instant) -> Deferred[MessageRow | None]:
        """Find a message whosever it is: for share links, which prove their right themselves."""

    def replace_share_token(
        self, account_id: AccountId, message_id: MessageId, token: str, now: Instant
    ) -> Deferred[bool]:
        """Give a message a new share token; false when there is no such message."""

    def mark_read(self, account_id: AccountId, message_id: MessageId) -> Deferred[None]:
        """Remember that a message was opened; nothing happens when there is none."""

    def delete_message(
        self, account_id: AccountId, message_id: MessageId, now: Instant
    ) -> Deferred[bool]:
        """Delete a message; false when there is none."""

    def delete_matches(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, limit: int
    ) -> Deferred[int]:
        """Delete at most ``limit`` messages that match; gives how many."""

    def recent_refusals(
        self, account_id: AccountId, since: Instant, limit: int
    ) -> Deferred[list[Refusal]]:
        """List the newest refusals since a moment, newest first."""


class ContentStore(Protocol):
    """Keeps what was derived from a delivery's bytes."""

    def raw_message(self, delivery_id: DeliveryId) -> Deferred[bytes | None]:
        """Read the bytes of a delivery."""

    def find_content(
        self, delivery_id: DeliveryId, or_bytes: int = 0
    ) -> Deferred[MessageContent | bytes | None]:
        """Read what was derived earlier; else the mail itself, if it has less than ``or_bytes``."""

    def save_content(self, delivery_id: DeliveryId, content: MessageContent) -> Deferred[None]:
        """Keep what was derived; nothing happens when the delivery has gone."""

    def underived(
        self, limit: int, *, since: Instant = BEGINNING, before: Instant = END
    ) -> Deferred[list[DeliveryId]]:
        """List deliveries of these moments nothing was derived of yet, oldest first."""


class ExpiryStore(Protocol):
    """Forgets what is too old."""

    def expire(self, now: Instant, limit: int) -> Deferred[int]:
        """Delete at most ``limit`` messages that have expired; gives how many."""

    def forget_refusals(self, before: Instant) -> Deferred[int]:
        """Delete refusals older than a moment."""

    def give_back_space(self) -> Deferred[None]:
        """Return freed space to the disk, where the engine can."""


class AccountStore(Protocol):
    """Accounts and their API keys."""

    def add_account(self, account: Account) -> Deferred[None]:
        """Add an account and its empty inbox; the operator's role moves to it where it has it.

        :raises AccountNameTaken: there is one of this name.
        """

    def find_account(self, name: str) -> Deferred[Account | None]:
        """Find an account by name."""

    def list_accounts(self) -> Deferred[list[Account]]:
        """List all accounts, oldest first."""

    def add_key(self, key: ApiKey, digest: bytes) -> Deferred[None]:
        """Add an API key by its digest; nothing happens when there is one of this digest."""

    def find_key(self, digest: bytes) -> Deferred[ApiKey | None]:
        """Find a key by the digest of its secret, a revoked one too."""

    def find_caller(self, digest: bytes) -> Deferred[tuple[ApiKey, Position] | None]:
        """Find a key as `find_key` does, and the newest position of its inbox at that moment."""

    def list_keys(self, account_id: AccountId) -> Deferred[list[ApiKey]]:
        """List the keys of an account, oldest first."""

    def revoke_key(self, key_id: KeyId, now: Instant) -> Deferred[bool]:
        """Revoke a key for good; false when there is none (left) to revoke."""

    def note_key_use(self, uses: Sequence[tuple[KeyId, Instant]]) -> Deferred[None]:
        """Remember when keys were last used."""


@dataclass(frozen=True, slots=True)
class Hit:
    """``amount`` requests of a subject, in windows given as (window, index, limit).

    With an ``amount`` of 0 it is a look: nothing is counted.
    """

    subject: str
    windows: tuple[tuple[Window, int, int], ...]
    amount: int = 1


class RateCounters(Protocol):
    """Counts requests in fixed windows, for this daemon or for all of them."""

    def hit(self, *hits: Hit) -> Deferred[list[list[int]]]:
        """Count requests; gives for each hit, and each of its windows, the count with it.

        A hit is really counted, in all of its windows, only where none goes over
        its limit: all or none.
        """


class WakeUps(Protocol[Subject]):
    """Tells all daemons of something that has come or moved: a hint, never data.

    A hint may be lost: who waits for it looks again where that may have happened.
    """

    def publish(self, subject: Subject) -> None:
        """Tell who listens, here at once and elsewhere soon, what to look at."""

    def listen(self, heard: Callable[[Subject], None]) -> None:
        """Call ``heard`` for every hint from now on."""


class HeldPlaces(Protocol):
    """Places that an owner may hold only so many of at a time, in this daemon or in all."""

    def held(self, owner: str) -> AbstractAsyncContextManager[None]:
        """Have a place while the block runs.

        :raises NoPlace: the owner has all of its places taken.
        """
