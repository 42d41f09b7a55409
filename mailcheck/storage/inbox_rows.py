"""Reading rows of the inbox tables into values."""

from collections.abc import Iterable

from mailcheck.core.accounts import InboxState, Quota
from mailcheck.core.content import HeaderSummary
from mailcheck.core.cursors import Position
from mailcheck.core.identifiers import AccountId, DeliveryId, MessageId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import MessageSummary, Session, TlsFacts
from mailcheck.storage.engine import Row, Transaction

_INBOX_COLUMNS = """
    inbox.account_id, inbox.mailbox_name, inbox.last_position, inbox.message_count,
    inbox.byte_count, account.max_messages, account.max_bytes
    FROM inbox JOIN account ON account.id = inbox.account_id
"""

SUMMARY_COLUMNS = """
    message.id, message.account_id, message.delivery_id, message.position,
    message.recipient, message.tag, delivery.author_address, delivery.author_name,
    delivery.subject, message.size, message.received_at, message.expires_at,
    message.share_token, message.is_read
"""
SUMMARY_WIDTH = 14

SESSION_COLUMNS = """
    delivery.client_ip, delivery.helo_name, delivery.is_extended,
    delivery.tls_version, delivery.tls_cipher
"""

FROM_MESSAGE = "FROM message JOIN delivery ON delivery.id = message.delivery_id"


def read_inboxes(
    transaction: Transaction, accounts: Iterable[AccountId], default_quota: Quota
) -> dict[AccountId, InboxState]:
    """Read the inboxes of some accounts; those that have none are left out."""
    rows = transaction.rows(*_inboxes(accounts))
    return {row[0]: _inbox(row, default_quota) for row in rows}


def lock_inboxes(transaction: Transaction, accounts: Iterable[AccountId]) -> list[Row]:
    """Keep inboxes from other writers until the end: all of them in one order for everybody.

    A position is given and the commit that shows it is done under this lock:
    nobody sees a position before those below it.
    """
    return transaction.locked_rows(*_inboxes(accounts), "inbox")


def read_locked_inboxes(
    transaction: Transaction, accounts: Iterable[AccountId], default_quota: Quota
) -> dict[AccountId, InboxState]:
    """Lock the inboxes of some accounts and read them; those that have none are left out."""
    return {row[0]: _inbox(row, default_quota) for row in lock_inboxes(transaction, accounts)}


def _inboxes(accounts: Iterable[AccountId]) -> tuple[str, list[AccountId]]:
    wanted = list(accounts)
    marks = ", ".join("?" * len(wanted))
    condition = f"WHERE inbox.account_id IN ({marks}) ORDER BY inbox.account_id"
    return f"SELECT {_INBOX_COLUMNS} {condition}", wanted


def read_inbox_named(
    transaction: Transaction, mailbox_name: str, default_quota: Quota
) -> InboxState | None:
    """Read the inbox of a mailbox name (lower case)."""
    row = transaction.row(
        f"SELECT {_INBOX_COLUMNS} WHERE inbox.mailbox_name = ?",
        (mailbox_name,),
    )
    return None if row is None else _inbox(row, default_quota)


def read_operator_inbox(transaction: Transaction, default_quota: Quota) -> InboxState | None:
    """Read the operator's inbox."""
    row = transaction.row(f"SELECT {_INBOX_COLUMNS} WHERE account.is_operator = 1")
    return None if row is None else _inbox(row, default_quota)


def _inbox(row: Row, default_quota: Quota) -> InboxState:
    account_id, mailbox_name, last_position, messages, size, max_messages, max_bytes = row
    quota = Quota(
        default_quota.max_messages if max_messages is None else max_messages,
        default_quota.max_bytes if max_bytes is None else max_bytes,
    )
    return InboxState(account_id, mailbox_name, Position(last_position), messages, size, quota)


def summary_of(row: Row) -> MessageSummary:
    """Make a summary of a row that begins with `SUMMARY_COLUMNS`."""
    return MessageSummary(
        id=MessageId(row[0]),
        account_id=AccountId(row[1]),
        delivery_id=DeliveryId(row[2]),
        position=Position(row[3]),
        recipient=row[4],
        tag=row[5],
        header=HeaderSummary(row[6], row[7], row[8]),
        size=row[9],
        received_at=Instant(row[10]),
        expires_at=Instant(row[11]),
        share_token=row[12],
        is_read=bool(row[13]),
    )


def session_of(row: Row) -> Session:
    """Make the connection facts of a row of `SESSION_COLUMNS`."""
    client_ip, helo_name, is_extended, tls_version, tls_cipher = row
    tls = None if tls_version is None else TlsFacts(tls_version, tls_cipher)
    return Session(client_ip, helo_name, bool(is_extended), tls)
