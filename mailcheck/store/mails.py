"""Lists of mails, each once with all its recipients: for clients that know no messages of ours.

A mail is the delivery that its messages share. Its id is that of the delivery.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import MessageSummary
from mailcheck.ports.engine import Transaction
from mailcheck.store.filter_sql import UNDERIVED, allowed_sql, select_matching
from mailcheck.store.listing import read_page
from mailcheck.store.mail_store import read_rows, with_contents
from mailcheck.store.messages import SUMMARY_COLUMNS, MessageRow, Prefetch, summary_of
from mailcheck.store.transactions import Store, columns_of, read, value_of


class MailMessage(Struct, frozen=True):
    """A message of a mail."""

    delivery_id: DeliveryId
    recipient: str
    tag: str
    is_read: bool
    flags: str


class MailCount(Struct, frozen=True):
    """The number of mails, and of those that are not read."""

    total: int
    unread: int


class MailPage(Struct, frozen=True):
    """A page of mails, newest first: the first message of each, and all messages of these mails.

    ``count`` is that of all matches. ``not_searched`` counts further possible matches, whose
    content is not derived yet.
    """

    rows: tuple[MessageRow, ...]
    messages: tuple[MailMessage, ...]
    count: MailCount
    not_searched: int


class MailsStore(Store):
    """Lists whole mails. ``now`` hides expired messages."""

    @read
    def page(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
        offset: int,
        prefetch: Prefetch,
    ) -> MailPage:
        """Return a page of mails, newest first; ``wanted`` asks for each once."""
        found = read_page(transaction, account_id, wanted, now, limit, offset=offset)
        positions = [summary.position for summary, _ in found.entries]
        rows = read_rows(transaction, account_id, positions)
        return MailPage(
            with_contents(transaction, rows, prefetch),
            _messages_of(transaction, account_id, wanted, [row.summary for row in rows]),
            _count(transaction, account_id, wanted, now),
            found.not_searched,
        )

    @read
    def count(
        self, transaction: Transaction, account_id: AccountId, wanted: MessageFilter, now: Instant
    ) -> MailCount:
        """Count the matching mails."""
        return _count(transaction, account_id, wanted, now)

    @read
    def underived(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: MessageFilter,
        now: Instant,
        limit: int,
    ) -> tuple[MessageSummary, ...]:
        """Return possible matches whose content is not derived yet, newest first."""
        rows = select_matching(
            transaction,
            SUMMARY_COLUMNS,
            (account_id, wanted, now),
            f"AND {UNDERIVED} ORDER BY message.position DESC LIMIT ?",
            (limit,),
            or_underived=True,
        )
        return tuple(map(summary_of, rows))

    @read
    def ids(
        self, transaction: Transaction, account_id: AccountId, wanted: MessageFilter, now: Instant
    ) -> tuple[DeliveryId, ...]:
        """Return the ids of all matching mails."""
        of = (account_id, wanted, now)
        rows = select_matching(transaction, "message.delivery_id", of, "ORDER BY message.position")
        return tuple(row.delivery_id for row in rows)


def _count(
    transaction: Transaction, account_id: AccountId, wanted: MessageFilter, now: Instant
) -> MailCount:
    counts = "COUNT(*) AS total, COUNT(CASE WHEN message.is_read = 0 THEN 1 END) AS unread"
    (row,) = select_matching(transaction, counts, (account_id, wanted, now))
    return value_of(MailCount, row)


def _messages_of(
    transaction: Transaction,
    account_id: AccountId,
    wanted: MessageFilter,
    mails: Sequence[MessageSummary],
) -> tuple[MailMessage, ...]:
    if not mails:
        return ()
    marks = ", ".join("?" * len(mails))
    limits = allowed_sql(wanted.allowed, "message")
    condition = " AND ".join([f"message.delivery_id IN ({marks})", *(term for term, _ in limits)])
    rows = transaction.rows(
        f"SELECT {columns_of(MailMessage, 'message')} FROM message "
        f"WHERE message.account_id = ? AND {condition} ORDER BY message.position",
        [
            account_id,
            *(mail.delivery_id for mail in mails),
            *(v for _, some in limits for v in some),
        ],
    )
    return tuple(value_of(MailMessage, row) for row in rows)
