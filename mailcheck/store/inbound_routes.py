"""The store of inbound routes: what sends mail of an account to an application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mailcheck.core.audit import AuditEntry
from mailcheck.core.errors import TooManyRoutes
from mailcheck.core.identifiers import AccountId
from mailcheck.core.inbound import MOST_ROUTES, InboundDelivery, InboundRoute, InboundRouteId
from mailcheck.ports.engine import Row, Transaction, Value
from mailcheck.store.accounts.account_store import AccountNames
from mailcheck.store.accounts.audit_store import write_entry
from mailcheck.store.messages import delete_unreferenced, lock_inboxes
from mailcheck.store.routed_mails import add_deliveries
from mailcheck.store.transactions import (
    columns_of,
    frees_space,
    inbox_write,
    insert,
    read,
    read_number,
    read_value,
    read_values,
    row_of,
    write,
)

_NO_COLUMNS = ("to", "user", "account_name")
"""Fields of a route whose columns have other names."""

ROUTES = f"""
    SELECT {columns_of(InboundRoute, "inbound_route", *_NO_COLUMNS)},
        inbound_route.pattern AS "to", inbound_route.user_name AS "user",
        account.name AS account_name
    FROM inbound_route JOIN account ON account.id = inbound_route.account_id
"""

_COUNT_ROUTES = """
    UPDATE inbox SET has_routes = CASE WHEN EXISTS (
        SELECT 1 FROM inbound_route WHERE inbound_route.account_id = inbox.account_id
    ) THEN 1 ELSE 0 END WHERE account_id = ?
"""


class InboundRoutes(AccountNames):
    """The routes of accounts."""

    @inbox_write(lambda _, route, *others, **options: (route.account_id,))
    def add_route(
        self,
        transaction: Transaction,
        route: InboundRoute,
        entry: AuditEntry,
        *,
        is_per_recipient: bool,
        opening: InboundDelivery | None,
    ) -> InboundRoute | TooManyRoutes | None:
        """Add a route; return it as stored, or `None` if the account was deleted.

        :param opening: the delivery of the request that opens the route.
        :raises TooManyRoutes: the account has the maximum number.
        """
        lock_inboxes(transaction, (route.account_id,))
        count = "SELECT COUNT(*) FROM inbound_route WHERE account_id = ?"
        if read_number(transaction, count, (route.account_id,)) >= MOST_ROUTES:
            return TooManyRoutes(
                f"an account can have at most {MOST_ROUTES} inbound routes: delete one first"
            )
        columns = {"pattern": route.to, "user_name": route.user}
        row = row_of(route, *_NO_COLUMNS, **columns, is_per_recipient=int(is_per_recipient))
        insert(transaction, "inbound_route", [row])
        transaction.execute(_COUNT_ROUTES, (route.account_id,))
        if opening is not None:
            add_deliveries(transaction, [(opening, "")])
        write_entry(transaction, entry)
        return _find_route(transaction, route.account_id, route.id)

    @read
    def routes(self, transaction: Transaction, account_id: AccountId) -> list[InboundRoute]:
        """Return the routes of an account, oldest first."""
        order = "ORDER BY inbound_route.created_at, inbound_route.id"
        sql = f"{ROUTES} WHERE inbound_route.account_id = ? {order}"
        return read_values(transaction, InboundRoute, sql, (account_id,))

    @read
    def find_route(
        self, transaction: Transaction, account_id: AccountId, route_id: InboundRouteId
    ) -> InboundRoute | None:
        """Return a route of an account, or `None`."""
        return _find_route(transaction, account_id, route_id)

    @read
    def find_any_route(
        self, transaction: Transaction, route_id: InboundRouteId
    ) -> InboundRoute | None:
        """Return a route of any account: for requests that a secret of the route proves."""
        return read_value(
            transaction, InboundRoute, f"{ROUTES} WHERE inbound_route.id = ?", (route_id,)
        )

    @write
    def change_route(
        self,
        transaction: Transaction,
        account_id: AccountId,
        route_id: InboundRouteId,
        changes: Mapping[str, Value],
        entry: AuditEntry,
    ) -> InboundRoute | None:
        """Set columns of a route; return it, or `None` if there is none.

        :param changes: values by column: pattern, url, secret, user_name, password, speed, fault.
        """
        settings = ", ".join(f"{column} = ?" for column in changes)
        if changes and transaction.execute(
            f"UPDATE inbound_route SET {settings} WHERE id = ? AND account_id = ?",
            (*changes.values(), route_id, account_id),
        ):
            write_entry(transaction, entry)
        return _find_route(transaction, account_id, route_id)

    @write
    def confirm_route(self, transaction: Transaction, route_id: InboundRouteId) -> bool:
        """Let mails be sent to a route; return false if there is none."""
        changed = transaction.execute(
            "UPDATE inbound_route SET is_confirmed = 1 WHERE id = ?", (route_id,)
        )
        return bool(changed)

    @frees_space
    @inbox_write(lambda _, account_id, *others: (account_id,))
    def delete_route(
        self,
        transaction: Transaction,
        account_id: AccountId,
        route_id: InboundRouteId,
        entry: AuditEntry,
    ) -> bool:
        """Delete a route with its mails and attempts; return false if there is none."""
        lock_inboxes(transaction, (account_id,))
        gone = transaction.execute(
            "DELETE FROM inbound_route WHERE id = ? AND account_id = ?", (route_id, account_id)
        )
        if not gone:
            return False
        write_entry(transaction, entry)
        transaction.execute(_COUNT_ROUTES, (account_id,))
        delete_mails(
            transaction,
            transaction.rows(
                "SELECT id, delivery_id FROM inbound_mail WHERE account_id = ? AND NOT EXISTS ("
                "SELECT 1 FROM inbound_delivery WHERE mail_id = inbound_mail.id)",
                (account_id,),
            ),
        )
        return True

    @read
    def accounts(self, transaction: Transaction) -> frozenset[AccountId]:
        """Return the accounts that have routes."""
        return frozenset(
            row.account_id
            for row in transaction.rows("SELECT DISTINCT account_id FROM inbound_route")
        )


def _find_route(
    transaction: Transaction, account_id: AccountId, route_id: InboundRouteId
) -> InboundRoute | None:
    sql = f"{ROUTES} WHERE inbound_route.account_id = ? AND inbound_route.id = ?"
    return read_value(transaction, InboundRoute, sql, (account_id, route_id))


def delete_mails(transaction: Transaction, found: Sequence[Row]) -> int:
    """Delete mails for applications; return their number."""
    for row in found:
        transaction.execute("DELETE FROM inbound_mail WHERE id = ?", (row.id,))
    delete_unreferenced(transaction, found)
    return len(found)
