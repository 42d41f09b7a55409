"""What the operations need of the outside. Each port has one contract suite for all that fill it.

Any method may fail with `StoreUnavailable`; ``now`` hides what has expired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from mailcheck.core.accounts import Account, ApiKey, InboxState
from mailcheck.core.client_limits import Window
from mailcheck.core.content import Extracted, MessageContent
from mailcheck.core.cursors import Position
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.identifiers import AccountId, DeliveryId, KeyId, MessageId, RandomBytes
from mailcheck.core.instants import BEGINNING, END, Instant
from mailcheck.core.keys import Key
from mailcheck.core.messages import (
    Delivery,
    MessageSummary,
    Refusal,
    Session,
    TagCount,
)

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IReactorTime


Result = TypeVar("Result")
Subject = TypeVar("Subject")

Now = Callable[[], Instant]
"""``now()`` reads the injected clock."""


class TimeAndChance(Struct, frozen=True):
    """What no two runs have alike: whoever needs more than one of it takes it as a whole.

    :param now: gives the time of day, which may be set.
    :param expiry_now: gives the moment up to which things have expired: they are kept no shorter
        for the time of day being set.
    :param clock: nobody sets it: time-outs and periodic work run on it.
    :param random_bytes: is fit for secrets.
    """

    now: Now
    expiry_now: Now
    clock: IReactorTime
    random_bytes: RandomBytes


Soon = Callable[[Callable[[], object]], object]
"""Calls what it is given as soon as what is being done now is done, in the order of the asking."""


class Lease(Struct, frozen=True):
    """The right to do a job: ``holder`` has it until ``until``, then another one may take over."""

    holder: str
    until: Instant


class MessagePage(Struct, frozen=True):
    """A page of a list; what is not derived yet is missing from an entry.

    ``total`` counts all that match; ``last_position`` is the inbox's newest
    cursor in the same snapshot. ``not_searched`` counts messages that may match as well:
    their content is asked for, and not derived yet.
    """

    entries: tuple[tuple[MessageSummary, Extracted | None], ...]
    total: int
    last_position: Position
    not_searched: int = 0


class NewestMessages(Struct, frozen=True):
    """The newest messages of some, newest first: the first few of them, and where all are."""

    messages: tuple[MessageSummary, ...]
    positions: tuple[Position, ...]


class InboxOverview(Struct, frozen=True):
    """An inbox with its newest tags; expired mail is not counted."""

    state: InboxState
    tags: tuple[TagCount, ...]
    tag_total: int


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A stored message; its content, or the mail itself, where that was read along with it."""

    summary: MessageSummary
    envelope_sender: str
    session: Session
    content: MessageContent | bytes | None = field(default=None, compare=False, repr=False)


class ReadAlong(Struct, frozen=True):
    """Whose content is read along with messages: the first ``most`` that are ``wanted``.

    Only as many as have less than ``below`` bytes together are; what was not derived yet comes as
    the mail itself. ``wanted`` is asked in another thread.
    """

    wanted: Callable[[MessageSummary], bool]
    below: int
    most: int = 4
    """What is waited for is one, or a few in a burst."""


class Worker(Protocol):
    """Runs blocking work away from the reactor."""

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call; the Deferred fires in the reactor's thread.

        A worker may be another process: a call that can be pickled can run in any.

        :param owner: the account that the work is for. Where calls wait, owners take turns.
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
        """Keep a refusal for those who wait for the mail; it takes the inbox's next position."""

    def free_bytes(self) -> int | None:
        """Say how much more can be stored; nothing when that is not ours to know."""


class MessageStore(Protocol):
    """Reads and removes stored messages of one account."""

    def find_account_inbox(self, account_id: AccountId) -> Deferred[InboxState | None]:
        """Find the inbox of an account."""

    def oldest_matches(
        self,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
        along: ReadAlong | None = None,
    ) -> Deferred[tuple[tuple[MessageRow, ...], Position]]:
        """List the oldest messages that match, and the inbox's newest position.

        One that was not taken apart yet is among them whatever is asked of its content.
        """

    def newest_positions(
        self, account_ids: Sequence[AccountId]
    ) -> Deferred[dict[AccountId, Position]]:
        """Give the newest position of each of these inboxes."""

    def page(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, limit: int, offset: int
    ) -> Deferred[MessagePage]:
        """List messages that match, newest first."""

    def newest(
        self,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
        looked_through: int,
    ) -> Deferred[NewestMessages]:
        """Give those that came ``since``, of so many newest ones that match all else.

        Its cost does not grow with what came. ``limit`` of them are given whole. ``wanted``
        says to whom and when, and asks for nothing that is in a message.
        """

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

    def mark_matches_read(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, limit: int
    ) -> Deferred[int]:
        """Remember of at most ``limit`` unread messages that they were seen; gives how many."""

    def count_unread(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, looked_through: int
    ) -> Deferred[int]:
        """Count the unread ones of so many newest messages that match.

        Its cost does not grow with what came. ``wanted`` says to whom and when, and asks for
        nothing that is in a message.
        """

    def delete_message(
        self, account_id: AccountId, message_id: MessageId, now: Instant
    ) -> Deferred[bool]:
        """Delete a message; false when there is none."""

    def delete_matches(
        self, account_id: AccountId, wanted: MessageFilter, now: Instant, limit: int
    ) -> Deferred[int]:
        """Delete at most ``limit`` messages that match; gives how many."""

    def recent_refusals(
        self, account_id: AccountId, since: Instant, limit: int, wanted: MessageFilter = ANY
    ) -> Deferred[list[Refusal]]:
        """List the newest refusals since a moment, newest first.

        Only those between the positions of the filter; of mail to whom it asks for
        come before all others.
        """


class ContentStore(Protocol):
    """Keeps what was derived from a delivery's bytes."""

    def raw_message(self, delivery_id: DeliveryId) -> Deferred[bytes | None]:
        """Read the bytes of a delivery."""

    def find_content(
        self, delivery_id: DeliveryId, or_bytes: int = 0
    ) -> Deferred[MessageContent | bytes | None]:
        """Read what was derived earlier; else the mail itself, if it has less than ``or_bytes``."""

    def packed_content(
        self, delivery_id: DeliveryId
    ) -> Deferred[Callable[[], MessageContent] | None]:
        """Read what was derived earlier, and leave it packed: for a worker, who calls what comes.

        A large one takes a while to unpack. The call can be pickled; where it reads what it unpacks
        only then, it raises `MessageNotFound` for what has been deleted meanwhile.
        """

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

    def forget_refusals(self, before: Instant, limit: int) -> Deferred[int]:
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

    def revoked_of(self, key_ids: Sequence[KeyId]) -> Deferred[list[KeyId]]:
        """Give those of these keys that have been revoked."""

    def set_key_fault(self, key_id: KeyId, every: int | None) -> Deferred[bool]:
        """Let every so manieth mail of a valid key fail, or none; false where there is no such."""

    def note_key_use(self, uses: Sequence[tuple[KeyId, Instant]]) -> Deferred[None]:
        """Remember when keys were last used."""


class Hit(Struct, frozen=True):
    """``amount`` requests of a subject, in windows given as (window, index, limit).

    With an ``amount`` of 0 it is a look: nothing is counted.
    """

    subject: Key
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


class Memory(Protocol):
    """Texts kept for a while by their names, in this daemon or for all of them.

    Any of them may be forgotten early: who needs it finds it out again.
    """

    def recall(self, name: Key) -> Deferred[str | None]:
        """Give what is kept under a name."""

    def keep(self, name: Key, text: str, milliseconds: int) -> Deferred[None]:
        """Keep a text so long, in place of the one that was there."""

    def claim(self, work: Key, milliseconds: int) -> Deferred[bool]:
        """Take work on, for so long; false while another daemon has it."""

    def give_up(self, work: Key) -> Deferred[None]:
        """End a claim early."""


KNOWN_DOMAINS = 10_000
"""Domains of which a `SelectorStore` knows selectors."""

KNOWN_SELECTORS = 8
"""Selectors of a domain that it knows; few, as keys are changed."""


class SelectorStore(Protocol):
    """Keeps which selectors domains sign with: the newest of each, and of the newest domains."""

    def note_selectors(self, pairs: Sequence[tuple[str, str]]) -> Deferred[bool]:
        """Note domains and selectors, oldest first; false where that can't be done now."""

    def selectors_of(self, domain: str) -> Deferred[tuple[str, ...]]:
        """Give the selectors of a domain, the newest first."""


class WebFault(NamedTuple):
    """An HTTP request that was answered with 5xx; texts are empty where nothing is known."""

    status: int
    client_ip: str
    method: str
    path: str
    reference: str
    problem: str


class AccessJournal(Protocol):
    """Hears of who was not let in."""

    def note_failed_access(self, kind: str, client_ip: str, why: str) -> None:
        """Note a wrong ``key`` or a failed ``sign-in``; never with the key or the name itself."""


class WebJournal(Protocol):
    """Hears of faults of ours."""

    def note_fault(self, fault: WebFault) -> None:
        """Note a request that was answered with 5xx."""
