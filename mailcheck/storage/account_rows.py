"""Accounts as rows: read and inserted the same way by every store that has to do with them."""

from collections.abc import Sequence
from typing import Any

from mailcheck.core.accounts import Account
from mailcheck.core.errors import AccountNameTaken
from mailcheck.storage.engine import Transaction

ACCOUNT_COLUMNS = """
    account.id, account.name, inbox.mailbox_name, account.is_operator,
    account.created_at, account.max_messages, account.max_bytes
"""

ACCOUNTS = 0x6D61_6961
"""The work of adding accounts: of several daemons one does it at a time."""

ACCOUNT_TABLES = "account JOIN inbox ON inbox.account_id = account.id"


def account_of(row: Sequence[Any]) -> Account:
    """Make an account of the values of `ACCOUNT_COLUMNS`."""
    account_id, name, mailbox_name, is_operator, *rest = row
    return Account(account_id, name, mailbox_name, bool(is_operator), *rest)


def insert_account(transaction: Transaction, account: Account) -> AccountNameTaken | None:
    """Insert an account and its empty inbox; the operator's role moves to it where it has it."""
    # Names, the operator and invitations are looked at before they are given away.
    transaction.lock(ACCOUNTS)
    if transaction.row("SELECT 1 FROM account WHERE name = ?", (account.name,)) is not None:
        return AccountNameTaken(f"there is an account named {account.name!r} already")
    if account.is_operator:
        transaction.execute("UPDATE account SET is_operator = 0 WHERE is_operator = 1")
    transaction.execute(
        "INSERT INTO account (id, name, is_operator, created_at, max_messages, max_bytes) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (
            account.id,
            account.name,
            int(account.is_operator),
            account.created_at,
            account.max_messages,
            account.max_bytes,
        ),
    )
    transaction.execute(
        "INSERT INTO inbox (account_id, mailbox_name, last_position, message_count, byte_count) "
        "VALUES (?, ?, 0, 0, 0)",
        (account.id, account.mailbox_name),
    )
    return None
