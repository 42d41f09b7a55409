"""Webhooks: their settings, how far each was told, and which daemon tells."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from mailcheck.core.cursors import START, Position, require_reached
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
from mailcheck.store.engine import (
    Engine,
    Row,
    Transaction,
    Value,
    columns_of,
    for_each,
    for_each_in,
    insert,
    makes_room,
    value_of,
)
from mailcheck.store.inbox_rows import lock_inboxes

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

WORK = "webhooks"
"""The name of the lease."""

_COLUMNS = f"{columns_of(Webhook, 'webhook', 'account_name')}, account.name AS account_name"

_WEBHOOKS = f"SELECT {_COLUMNS} FROM webhook JOIN account ON account.id = webhook.account_id"

_DELIVERIES = """
    SELECT event_id, attempted_at AS at, status, problem, milliseconds FROM webhook_delivery
    WHERE webhook_id = ? ORDER BY number DESC
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
    (webhook_id, slot, number, event_id, attempted_at, status, problem, milliseconds)
    SELECT id, (attempts - ?) % {DELIVERIES_KEPT}, attempts - ?, ?, ?, ?, ?, ? FROM webhook
    WHERE id = ?
    ON CONFLICT (webhook_id, slot) DO UPDATE SET number = excluded.number,
    event_id = excluded.event_id, attempted_at = excluded.attempted_at, status = excluded.status,
    problem = excluded.problem, milliseconds = excluded.milliseconds
"""


class WebhookStore:
    """Webhooks, and how far each was told."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, webhook: Webhook, *, is_from_now: bool) -> Deferred[Webhook]:
        """Add one; gives it as it is kept. ``is_from_now``: its position is the inbox's newest.

        :raises TooManyWebhooks: the account has as many as it may.
        :raises InvalidParameter: the inbox has not reached its position.
        """
        return self._engine.write(_add, (webhook, is_from_now))

    def account_name(self, account_id: AccountId) -> Deferred[str]:
        """Give the name of an account; empty where there is none."""

        def query(transaction: Transaction) -> str:
            row = transaction.row("SELECT name FROM account WHERE id = ?", (account_id,))
            return "" if row is None else str(row.name)

        return self._engine.read(query)

    def of_account(self, account_id: AccountId) -> Deferred[list[Webhook]]:
        """List the webhooks of an account, oldest first."""
        order = "WHERE webhook.account_id = ? ORDER BY webhook.created_at, webhook.id"
        return self._engine.read(
            lambda t: [_webhook_of(row) for row in t.rows(f"{_WEBHOOKS} {order}", (account_id,))]
        )

    def find(self, account_id: AccountId, webhook_id: WebhookId) -> Deferred[Webhook | None]:
        """Find a webhook of an account."""
        return self._engine.read(lambda t: _find(t, account_id, webhook_id))

    def deliveries(self, webhook_id: WebhookId) -> Deferred[list[WebhookDelivery]]:
        """List the last tries, newest first."""
        return self._engine.read(
            lambda t: [
                value_of(WebhookDelivery, row, attempt=Attempt(row.status, row.problem))
                for row in t.rows(_DELIVERIES, (webhook_id,))
            ]
        )

    def delete(self, account_id: AccountId, webhook_id: WebhookId) -> Deferred[bool]:
        """Delete a webhook; false where there is none."""
        return self._engine.write(_delete, (webhook_id, account_id))

    def replace_secret(
        self, account_id: AccountId, webhook_id: WebhookId, secret: str, until: Instant
    ) -> Deferred[Webhook | None]:
        """Let a new secret sign; the one before it does too, until that moment."""
        return self._engine.write(_replace_secret, (account_id, webhook_id, secret, until))

    def restart(
        self, account_id: AccountId, webhook_id: WebhookId, after: Position | None
    ) -> Deferred[Webhook | None]:
        """Let a webhook go on as if it had never failed, from behind a position if one is given.

        :raises WebhookEnded: its receiver has ended it.
        :raises InvalidParameter: the inbox has not reached that position.
        """
        return self._engine.write(_restart, (account_id, webhook_id, after))

    def is_wanted(self, holder: str, now: Instant) -> Deferred[bool]:
        """Tell whether there is a webhook that may be told, and nobody else holds the lease."""

        def query(transaction: Transaction) -> bool:
            if transaction.row(f"SELECT 1 FROM webhook WHERE {_IS_OPEN} LIMIT 1") is None:
                return False
            others = "SELECT 1 FROM lease WHERE work = ? AND holder <> ? AND ends_at > ?"
            moment = now + transaction.clock_offset()
            return transaction.row(others, (WORK, holder, moment)) is None

        return self._engine.read(query)

    def claim(self, holder: str, now: Instant, milliseconds: int) -> Deferred[bool]:
        """Take the lease, or hold it for so much longer; false while another daemon has it."""
        return self._engine.write(_claim, (holder, now, milliseconds))

    def release(self, holder: str) -> Deferred[None]:
        """Let go of the lease."""
        return self._engine.write(_release, holder)

    def open_ones(self) -> Deferred[list[Webhook]]:
        """List all webhooks that have not ended."""
        return self._engine.read(
            lambda t: [_webhook_of(row) for row in t.rows(f"{_WEBHOOKS} WHERE webhook.{_IS_OPEN}")]
        )

    def record(
        self, holder: str, webhook: Webhook, deliveries: Sequence[WebhookDelivery]
    ) -> Deferred[bool]:
        """Keep what came of some tries, in their order, and how the webhook stands after them.

        False, and nothing is changed, where its owner has changed or deleted it meanwhile, or
        the holder has lost the lease.
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
            WORK,
            holder,
        )
        last = deliveries[-DELIVERIES_KEPT:]
        noted = [
            _noted(webhook.id, one, len(last) - number) for number, one in enumerate(last, start=1)
        ]
        return self._engine.write(_record, (changes, noted))

    def note(self, webhook_id: WebhookId, delivery: WebhookDelivery) -> Deferred[None]:
        """Keep what came of a try that changes nothing; nothing happens where it was deleted."""
        return self._engine.write(_note, _noted(webhook_id, delivery, 0))


def _noted(webhook_id: WebhookId, delivery: WebhookDelivery, later: int) -> tuple[Value, ...]:
    """Give the values of a try that so many ``later`` ones came after."""
    attempt = delivery.attempt
    return (
        later,
        later,
        delivery.event_id,
        delivery.at,
        attempt.status,
        attempt.problem,
        delivery.milliseconds,
        webhook_id,
    )


def _webhook_of(row: Row) -> Webhook:
    return value_of(Webhook, row, wanted=_filter_of(row.wanted))


def _filter_of(text: str) -> MessageFilter:
    known: dict[str, Any] = json.loads(text)
    headers = tuple((name, part) for name, part in known.pop("headers", ()))
    return MessageFilter(**known, headers=headers)


def _text_of(wanted: MessageFilter) -> str:
    """Write what is asked; moments, positions and searches are no part of a webhook's filter."""
    asked = {name: getattr(wanted, name) for name in MessageFilter.__struct_fields__}
    return json.dumps({name: value for name, value in asked.items() if value not in (None, ())})


def _find(transaction: Transaction, account_id: AccountId, webhook_id: WebhookId) -> Webhook | None:
    row = transaction.row(
        f"{_WEBHOOKS} WHERE webhook.account_id = ? AND webhook.id = ?", (account_id, webhook_id)
    )
    return None if row is None else _webhook_of(row)


def _newest_position(transaction: Transaction, account_id: AccountId) -> Position:
    row = transaction.row("SELECT last_position FROM inbox WHERE account_id = ?", (account_id,))
    return START if row is None else row.last_position


@for_each_in(lambda _, item: (item[0].account_id,))
def _add(transaction: Transaction, item: tuple[Webhook, bool]) -> Webhook | ExpectedFailure:
    webhook, is_from_now = item
    # Two that are added at a time see each other.
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
    return _find(transaction, account_id, webhook.id) or StoreUnavailable("the account has gone")


def _require_room(
    transaction: Transaction, account_id: AccountId, more: int
) -> ExpectedFailure | None:
    ((count,),) = transaction.rows(
        "SELECT COUNT(*) FROM webhook WHERE account_id = ?", (account_id,)
    )
    if count + more <= MOST_WEBHOOKS:
        return None
    return TooManyWebhooks(
        f"an account has at most {MOST_WEBHOOKS} webhooks, with those that alerts of watches go "
        "to: delete one first"
    )


def _insert(transaction: Transaction, webhook: Webhook, position: Position) -> None:
    row: dict[str, Value] = {
        "id": webhook.id,
        "account_id": webhook.account_id,
        "url": webhook.url,
        "wanted": _text_of(webhook.wanted),
        "created_at": webhook.created_at,
        "position": position,
        "secret": webhook.secret,
        "revision": 0,
        "state": webhook.state.value,
        "failures": 0,
        "problem": "",
        "attempts": 0,
        "is_of_watches": int(webhook.is_of_watches),
    }
    insert(transaction, "webhook", [row])


_OF_WATCHES = "account_id = ? AND is_of_watches = 1"


def add_receivers(transaction: Transaction, receivers: Sequence[Webhook]) -> ExpectedFailure | None:
    """Add those that alerts of a watch go to, where its account has none of the URL yet.

    The inbox of the account is locked. Gives why they can't be added: then none is.
    """
    same = f"SELECT 1 FROM webhook WHERE {_OF_WATCHES} AND url = ?"
    missing = [one for one in receivers if transaction.row(same, (one.account_id, one.url)) is None]
    failure = _require_room(transaction, missing[0].account_id, len(missing)) if missing else None
    for receiver in missing if failure is None else ():
        _insert(transaction, receiver, _newest_position(transaction, receiver.account_id))
    return failure


def delete_receivers(
    transaction: Transaction, account_id: AccountId, named: Callable[[], Collection[str]]
) -> None:
    """Delete those of watches whose URL none of them names any more.

    The inbox of the account is locked.
    """
    rows = transaction.rows(f"SELECT id, url FROM webhook WHERE {_OF_WATCHES}", (account_id,))
    kept = named() if rows else ()
    for row in rows:
        if row.url not in kept:
            transaction.execute("DELETE FROM webhook WHERE id = ?", (row.id,))


@makes_room
@for_each
def _delete(transaction: Transaction, item: tuple[WebhookId, AccountId]) -> bool:
    return bool(transaction.execute("DELETE FROM webhook WHERE id = ? AND account_id = ?", item))


@for_each
def _replace_secret(
    transaction: Transaction, item: tuple[AccountId, WebhookId, str, Instant]
) -> Webhook | None:
    account_id, webhook_id, secret, until = item
    transaction.execute(
        "UPDATE webhook SET earlier_secret = secret, earlier_until = ?, secret = ? "
        "WHERE id = ? AND account_id = ?",
        (until, secret, webhook_id, account_id),
    )
    return _find(transaction, account_id, webhook_id)


@for_each
def _restart(
    transaction: Transaction, item: tuple[AccountId, WebhookId, Position | None]
) -> Webhook | ExpectedFailure | None:
    account_id, webhook_id, after = item
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
        return WebhookEnded("its receiver has ended this webhook with 410: make another one")
    return webhook


@for_each
def _claim(transaction: Transaction, item: tuple[str, Instant, int]) -> bool:
    holder, own_now, milliseconds = item
    now = own_now + transaction.clock_offset()
    return bool(transaction.execute(_CLAIM, (WORK, holder, now + milliseconds, now)))


@for_each
def _release(transaction: Transaction, holder: str) -> None:
    transaction.execute("DELETE FROM lease WHERE work = ? AND holder = ?", (WORK, holder))


@for_each
def _record(
    transaction: Transaction, item: tuple[Sequence[Value], Sequence[Sequence[Value]]]
) -> bool:
    changes, noted = item
    if not transaction.execute(_RECORD, changes):
        return False
    for one in noted:
        transaction.execute(_NOTE, one)
    return True


@for_each
def _note(transaction: Transaction, noted: Sequence[Value]) -> None:
    transaction.execute("UPDATE webhook SET attempts = attempts + 1 WHERE id = ?", noted[-1:])
    transaction.execute(_NOTE, noted)
