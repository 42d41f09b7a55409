"""Webhooks: their settings, their progress, and the lease of the daemon that sends events."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from mailcheck.core.audit import AuditEntry
from mailcheck.core.cursors import Position, require_reached
from mailcheck.core.errors import (
    ExpectedFailure,
    InvalidParameter,
    StoreUnavailable,
    TooManyWebhooks,
    WebhookEnded,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, WebhookId
from mailcheck.core.instants import Instant
from mailcheck.core.webhooks import (
    DELIVERIES_KEPT,
    MOST_WEBHOOKS,
    Attempt,
    Webhook,
    WebhookDelivery,
    WebhookState,
)
from mailcheck.ports.engine import Transaction, Value
from mailcheck.store.accounts.account_store import AccountNames
from mailcheck.store.accounts.audit_store import write_entry, write_entry_if
from mailcheck.store.messages import lock_inboxes
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
    value_of,
    write,
)

LEASE = "webhooks"
"""The name of the lease."""

_COLUMNS = f"{columns_of(Webhook, 'webhook', 'account_name')}, account.name AS account_name"

_WEBHOOKS = f"SELECT {_COLUMNS} FROM webhook JOIN account ON account.id = webhook.account_id"

_DELIVERIES = """
    SELECT event_id, attempted_at AS at, status, problem, milliseconds, response
    FROM webhook_delivery WHERE webhook_id = ? ORDER BY number DESC
"""

_IS_OPEN = "state <> 'ended'"

_CLAIM = """
    INSERT INTO lease (work, holder, ends_at) VALUES (?, ?, ?)
    ON CONFLICT (work) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at
    WHERE lease.holder = excluded.holder OR lease.ends_at <= ?
"""

_RECORD = """
    UPDATE webhook SET position = ?, state = ?, failing_since = ?, failures = ?, retry_at = ?,
    problem = ?, attempts = attempts + ?
    WHERE id = ? AND revision = ? AND position <= ?
    AND EXISTS (SELECT 1 FROM lease WHERE work = ? AND holder = ?)
"""

_NOTE = f"""
    INSERT INTO webhook_delivery
    (webhook_id, slot, number, event_id, attempted_at, status, problem, milliseconds, response)
    SELECT id, (attempts - ?) % {DELIVERIES_KEPT}, attempts - ?, ?, ?, ?, ?, ?, ? FROM webhook
    WHERE id = ?
    ON CONFLICT (webhook_id, slot) DO UPDATE SET number = excluded.number,
    event_id = excluded.event_id, attempted_at = excluded.attempted_at, status = excluded.status,
    problem = excluded.problem, milliseconds = excluded.milliseconds, response = excluded.response
"""


class WebhookStore(AccountNames):
    """Webhooks and their progress."""

    @inbox_write(lambda _, webhook, *others, **options: (webhook.account_id,))
    def add(
        self, transaction: Transaction, webhook: Webhook, entry: AuditEntry, *, is_from_now: bool
    ) -> Webhook | ExpectedFailure:
        """Add a webhook; return it as stored. ``is_from_now`` starts at the newest position.

        :raises TooManyWebhooks: the account has the maximum number.
        :raises InvalidParameter: the inbox has not reached the position of the webhook.
        """
        # Two concurrent additions must see each other.
        account_id = webhook.account_id
        lock_inboxes(transaction, (account_id,))
        too_many = _require_room(transaction, account_id, 1)
        if too_many is not None:
            return too_many
        newest = _newest_position(transaction, account_id)
        try:
            require_reached(webhook.position, newest)
        except InvalidParameter as failure:
            return failure
        _insert(transaction, webhook, newest if is_from_now else webhook.position)
        write_entry(transaction, entry)
        return _find(transaction, account_id, webhook.id) or StoreUnavailable(
            "the account no longer exists"
        )

    @read
    def of_account(self, transaction: Transaction, account_id: AccountId) -> list[Webhook]:
        """Return the webhooks of an account, oldest first."""
        sql = f"{_WEBHOOKS} WHERE webhook.account_id = ? ORDER BY webhook.created_at, webhook.id"
        return read_values(transaction, Webhook, sql, (account_id,))

    @read
    def find(
        self, transaction: Transaction, account_id: AccountId, webhook_id: WebhookId
    ) -> Webhook | None:
        """Return a webhook of an account, or `None`."""
        return _find(transaction, account_id, webhook_id)

    @read
    def deliveries(self, transaction: Transaction, webhook_id: WebhookId) -> list[WebhookDelivery]:
        """Return the last deliveries, newest first."""
        return [
            value_of(
                WebhookDelivery,
                row,
                attempt=Attempt(row.status, row.problem, response=row.response),
            )
            for row in transaction.rows(_DELIVERIES, (webhook_id,))
        ]

    @frees_space
    @write
    def delete(
        self,
        transaction: Transaction,
        account_id: AccountId,
        webhook_id: WebhookId,
        entry: AuditEntry,
    ) -> bool:
        """Delete a webhook; return false if there is none."""
        sql = "DELETE FROM webhook WHERE id = ? AND account_id = ?"
        return write_entry_if(
            transaction, entry, transaction.execute(sql, (webhook_id, account_id))
        )

    @write
    def replace_secret(
        self,
        transaction: Transaction,
        account_id: AccountId,
        webhook_id: WebhookId,
        secret: str,
        until: Instant,
        entry: AuditEntry,
    ) -> Webhook | None:
        """Replace the secret for signing; the old one also signs until a given time."""
        transaction.execute(
            "UPDATE webhook SET earlier_secret = secret, earlier_until = ?, secret = ? "
            "WHERE id = ? AND account_id = ?",
            (until, secret, webhook_id, account_id),
        )
        found = _find(transaction, account_id, webhook_id)
        if found is not None:
            write_entry(transaction, replace(entry, detail=found.described))
        return found

    @write
    def restart(
        self,
        transaction: Transaction,
        account_id: AccountId,
        webhook_id: WebhookId,
        after: Position | None,
    ) -> Webhook | ExpectedFailure | None:
        """Restart a webhook as if it had never failed, after a position if one is given.

        :raises WebhookEnded: the receiver ended the webhook.
        :raises InvalidParameter: the inbox has not reached that position.
        """
        if after is not None:
            try:
                require_reached(after, _newest_position(transaction, account_id))
            except InvalidParameter as failure:
                return failure
        transaction.execute(
            "UPDATE webhook SET revision = revision + 1, position = COALESCE(?, position), "
            "state = 'active', failing_since = NULL, failures = 0, retry_at = NULL, problem = '' "
            f"WHERE id = ? AND account_id = ? AND {_IS_OPEN}",
            (after, webhook_id, account_id),
        )
        webhook = _find(transaction, account_id, webhook_id)
        if webhook is not None and webhook.state is WebhookState.ENDED:
            return WebhookEnded("the receiver ended this webhook with 410: create another one")
        return webhook

    @read
    def is_wanted(self, transaction: Transaction, holder: str, now: Instant) -> bool:
        """Return whether there is an open webhook and no other daemon holds the lease."""
        if transaction.row(f"SELECT 1 FROM webhook WHERE {_IS_OPEN} LIMIT 1") is None:
            return False
        others = "SELECT 1 FROM lease WHERE work = ? AND holder <> ? AND ends_at > ?"
        moment = now + transaction.clock_offset()
        return transaction.row(others, (LEASE, holder, moment)) is None

    @write
    def claim(self, transaction: Transaction, holder: str, now: Instant, milliseconds: int) -> bool:
        """Acquire or extend the lease; return false while another daemon has it."""
        shared_now = now + transaction.clock_offset()
        return bool(
            transaction.execute(_CLAIM, (LEASE, holder, shared_now + milliseconds, shared_now))
        )

    @write
    def release(self, transaction: Transaction, holder: str) -> None:
        """Release the lease."""
        transaction.execute("DELETE FROM lease WHERE work = ? AND holder = ?", (LEASE, holder))

    @read
    def open_webhooks(self, transaction: Transaction) -> list[Webhook]:
        """Return all webhooks that have not ended."""
        return read_values(transaction, Webhook, f"{_WEBHOOKS} WHERE webhook.{_IS_OPEN}")

    @write
    def record(
        self,
        transaction: Transaction,
        holder: str,
        webhook: Webhook,
        deliveries: Sequence[WebhookDelivery],
    ) -> bool:
        """Record deliveries, in order, and the state of the webhook after them.

        :return: false, without a change, if the owner changed or deleted the webhook meanwhile, or
            the holder lost the lease.
        """
        changes = (
            webhook.position,
            webhook.state.value,
            webhook.failing_since,
            webhook.failures,
            webhook.retry_at,
            webhook.problem,
            len(deliveries),
            webhook.id,
            webhook.revision,
            webhook.position,
            LEASE,
            holder,
        )
        last = deliveries[-DELIVERIES_KEPT:]
        noted = [
            _delivery_values(webhook.id, delivery, len(last) - number)
            for number, delivery in enumerate(last, start=1)
        ]
        if not transaction.execute(_RECORD, changes):
            return False
        for values in noted:
            transaction.execute(_NOTE, values)
        return True

    @write
    def note(
        self, transaction: Transaction, webhook_id: WebhookId, delivery: WebhookDelivery
    ) -> None:
        """Record a delivery that changes no state; do nothing if the webhook was deleted."""
        transaction.execute(
            "UPDATE webhook SET attempts = attempts + 1 WHERE id = ?", (webhook_id,)
        )
        transaction.execute(_NOTE, _delivery_values(webhook_id, delivery, 0))


def _delivery_values(
    webhook_id: WebhookId, delivery: WebhookDelivery, later: int
) -> tuple[Value, ...]:
    """Return the values of a delivery that ``later`` other deliveries follow."""
    attempt = delivery.attempt
    return (
        later,
        later,
        delivery.event_id,
        delivery.at,
        attempt.status,
        attempt.problem,
        delivery.milliseconds,
        attempt.response,
        webhook_id,
    )


def _text_of(wanted: MessageFilter) -> str:
    """Return the conditions that are set, as JSON.

    The filter of a webhook has no times, positions or searches.
    """
    asked = {name: getattr(wanted, name) for name in MessageFilter.__struct_fields__}
    return json.dumps({name: value for name, value in asked.items() if value not in (None, ())})


def _find(transaction: Transaction, account_id: AccountId, webhook_id: WebhookId) -> Webhook | None:
    sql = f"{_WEBHOOKS} WHERE webhook.account_id = ? AND webhook.id = ?"
    return read_value(transaction, Webhook, sql, (account_id, webhook_id))


def _newest_position(transaction: Transaction, account_id: AccountId) -> Position:
    sql = "SELECT last_position FROM inbox WHERE account_id = ?"
    return Position(read_number(transaction, sql, (account_id,)))


def _require_room(
    transaction: Transaction, account_id: AccountId, more: int
) -> ExpectedFailure | None:
    count = read_number(
        transaction, "SELECT COUNT(*) FROM webhook WHERE account_id = ?", (account_id,)
    )
    if count + more <= MOST_WEBHOOKS:
        return None
    return TooManyWebhooks(
        f"an account can have at most {MOST_WEBHOOKS} webhooks, including the receivers of alerts: "
        "delete one first"
    )


def _insert(transaction: Transaction, webhook: Webhook, position: Position) -> None:
    wanted = _text_of(webhook.wanted)
    row = row_of(webhook, "account_name", wanted=wanted, position=position, attempts=0)
    insert(transaction, "webhook", [row])


_OF_WATCHES = "account_id = ? AND is_of_watches = 1"


def add_receivers(transaction: Transaction, receivers: Sequence[Webhook]) -> ExpectedFailure | None:
    """Add the receivers of a watch's alerts; skip URLs that the account already has.

    The inbox of the account must be locked. If there are too many, add none and return the failure.
    """
    same = f"SELECT 1 FROM webhook WHERE {_OF_WATCHES} AND url = ?"
    missing = [
        webhook
        for webhook in receivers
        if transaction.row(same, (webhook.account_id, webhook.url)) is None
    ]
    failure = _require_room(transaction, missing[0].account_id, len(missing)) if missing else None
    for receiver in missing if failure is None else ():
        _insert(transaction, receiver, _newest_position(transaction, receiver.account_id))
    return failure


def delete_receivers(
    transaction: Transaction, account_id: AccountId, named: Callable[[], Collection[str]]
) -> None:
    """Delete receivers of alerts whose URL no watch names.

    The inbox of the account must be locked.
    """
    rows = transaction.rows(f"SELECT id, url FROM webhook WHERE {_OF_WATCHES}", (account_id,))
    kept = named() if rows else ()
    for row in rows:
        if row.url not in kept:
            transaction.execute("DELETE FROM webhook WHERE id = ?", (row.id,))
