"""What an account holds, and its deletion."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import fields

from mailcheck.core.audit import AuditEntry
from mailcheck.core.errors import AccountIsOperator, OnlyOwner
from mailcheck.core.identifiers import AccountId
from mailcheck.ports.engine import Transaction
from mailcheck.store.accounts.account_store import ACCOUNTS_LOCK
from mailcheck.store.accounts.audit_store import write_entry
from mailcheck.store.messages import MAIL_HOLDERS, delete_unreferenced, remove_messages
from mailcheck.store.transactions import Store, frees_space, inbox_write, read, read_value, write


class Holdings(Struct, frozen=True):
    """What is deleted together with an account, in numbers."""

    messages: int
    bytes: int
    tests: int
    reports: int
    watches: int
    webhooks: int
    routes: int
    keys: int
    sessions: int
    members: int

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Iterate over names and numbers, for lists that people read."""
        return ((field.name, getattr(self, field.name)) for field in fields(self))


_COUNTS = """
    SELECT (SELECT message_count FROM inbox WHERE account_id = account.id) AS messages,
        (SELECT byte_count FROM inbox WHERE account_id = account.id) AS bytes,
        (SELECT COUNT(*) FROM deliverability_test WHERE account_id = account.id) AS tests,
        (SELECT COUNT(*) FROM receiver_report WHERE account_id = account.id) AS reports,
        (SELECT COUNT(*) FROM watch WHERE account_id = account.id) AS watches,
        (SELECT COUNT(*) FROM webhook WHERE account_id = account.id) AS webhooks,
        (SELECT COUNT(*) FROM inbound_route WHERE account_id = account.id) AS routes,
        (SELECT COUNT(*) FROM api_key WHERE account_id = account.id) AS keys,
        (SELECT COUNT(*) FROM dashboard_session WHERE account_id = account.id) AS sessions,
        (SELECT COUNT(*) FROM member WHERE project_id = account.id) AS members
    FROM account WHERE id = ?
"""

_DELIVERIES = " UNION ".join(
    f"SELECT delivery_id FROM {table} WHERE account_id = ?" for table in MAIL_HOLDERS
)


class AccountRemoval(Store):
    """Deletion of an account with everything that belongs to it."""

    @read
    def holdings(self, transaction: Transaction, account_id: AccountId) -> Holdings | None:
        """Count what an account holds; return `None` if there is no such account."""
        return read_value(transaction, Holdings, _COUNTS, (account_id,))

    @read
    def projects_without(self, transaction: Transaction, account_id: AccountId) -> list[str]:
        """Return the names of the projects that have no other owner than this person."""
        return _projects_without(transaction, account_id)

    @frees_space
    @inbox_write(lambda _, account_id, *others: (account_id,))
    def delete_messages(self, transaction: Transaction, account_id: AccountId, limit: int) -> int:
        """Delete at most ``limit`` messages of an account; return their number."""
        found = transaction.rows(
            "SELECT id, account_id FROM message WHERE account_id = ? ORDER BY position LIMIT ?",
            (account_id, limit),
        )
        return remove_messages(transaction, found)

    @frees_space
    @write
    def delete(
        self, transaction: Transaction, account_id: AccountId, entry: AuditEntry
    ) -> bool | OnlyOwner | AccountIsOperator:
        """Delete an account and all that is left of it; return false if there is none.

        :raises OnlyOwner: the other owners of a project have left meanwhile.
        :raises AccountIsOperator: the account has got the operator's role meanwhile.
        """
        transaction.lock(ACCOUNTS_LOCK)
        sole = _projects_without(transaction, account_id)
        if sole:
            return OnlyOwner(f"the account is the only owner of the project {sole[0]!r} now")
        if transaction.row("SELECT 1 FROM account WHERE id = ? AND is_operator = 1", (account_id,)):
            return AccountIsOperator("the account is the operator's now")
        found = transaction.rows(_DELIVERIES, (account_id,) * len(MAIL_HOLDERS))
        if not transaction.execute("DELETE FROM account WHERE id = ?", (account_id,)):
            return False
        # Foreign keys delete the other rows. Mails may belong to other accounts, too.
        delete_unreferenced(transaction, found)
        write_entry(transaction, entry)
        return True


def _projects_without(transaction: Transaction, account_id: AccountId) -> list[str]:
    rows = transaction.rows(
        "SELECT account.name FROM account JOIN member ON member.project_id = account.id "
        "WHERE member.account_id = ? AND member.role = 'owner' AND NOT EXISTS ("
        "SELECT 1 FROM member AS other WHERE other.project_id = account.id "
        "AND other.role = 'owner' AND other.account_id <> ?) ORDER BY account.name",
        (account_id, account_id),
    )
    return [row.name for row in rows]
