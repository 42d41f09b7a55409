"""The store of watches: settings, claims of due runs, changes, scores and alerts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from mailcheck.core.domains.watches import (
    MOST_WATCHES,
    Alert,
    AlertId,
    Ended,
    Raised,
    Watch,
    WatchChange,
    WatchId,
    WatchScore,
    WatchSettings,
)
from mailcheck.core.errors import ExpectedFailure, TooManyWatches, WatchExists
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.webhooks import Webhook, split_kind
from mailcheck.ports.engine import Transaction, Value
from mailcheck.store.accounts.webhook_store import add_receivers, delete_receivers
from mailcheck.store.leases import LeasedRows
from mailcheck.store.messages import lock_inboxes
from mailcheck.store.transactions import (
    Store,
    columns_of,
    delete_first,
    frees_space,
    inbox_write,
    insert,
    json_of,
    read,
    read_number,
    read_value,
    read_values,
    row_of,
    value_of,
    write,
)


class WatchPage(NamedTuple):
    """A page of the watches of an account, and the number of all."""

    watches: list[Watch]
    total: int


class WatchList(NamedTuple):
    """A page of watches, worst first, and the number of all.

    ``scores`` has the scores of each watch in the period, oldest first. The first one may be
    older: it applies at the start. ``failing`` counts all watches that need attention.
    """

    watches: list[Watch]
    scores: dict[WatchId, list[WatchScore]]
    total: int
    failing: int


class RunRecord(Struct, frozen=True):
    """The result of a run to be stored.

    ``events`` are problems that begin and end, in their order, with ids for their alerts.
    """

    watch: Watch
    at: Instant
    next_run_at: Instant
    state: str
    changes: tuple[WatchChange, ...] = ()
    events: tuple[tuple[AlertId, Raised | Ended], ...] = ()
    score: WatchScore | None = None
    problem_count: int = 0


class History(Struct, frozen=True):
    """Changes and scores, oldest first. ``is_cut``: older changes of the period are left out."""

    changes: tuple[WatchChange, ...]
    scores: tuple[WatchScore, ...]
    is_cut: bool = False


class PendingAlert(Struct, frozen=True):
    """An alert whose start or end is to be sent to the owner, and the name of the owner's inbox.

    ``settings`` are those of the watch.
    """

    mailbox_name: str
    settings: WatchSettings
    alert: Alert


_COLUMNS = columns_of(Watch, "watch")

_WITHOUT_STATE = f"{columns_of(Watch, 'watch', 'state')}, '' AS state"

_OF_ACCOUNT = f"""
    SELECT {_WITHOUT_STATE} FROM watch WHERE account_id = ? AND {{these}}
    ORDER BY target LIMIT ? OFFSET ?
"""

_NEWEST_SCORE = """
    (SELECT score FROM watch_score WHERE watch_id = watch.id ORDER BY number DESC LIMIT 1)
"""

# An address has no score, and neither has a new watch.
_GRADE = f"""
    COALESCE({_NEWEST_SCORE}, CASE WHEN COALESCE(problem_count, 0) > 0 THEN 0 ELSE 101 END)
"""

_WORST_FIRST = f"""
    SELECT {_COLUMNS} FROM watch WHERE account_id = ? AND {{these}}
    ORDER BY {_GRADE}, COALESCE(problem_count, 0) DESC, target LIMIT ? OFFSET ?
"""

_FAILING = f"SELECT COUNT(*) FROM watch WHERE account_id = ? AND {{these}} AND {_GRADE} < ?"

_SCORES = """
    SELECT at, score, grade, points FROM watch_score WHERE watch_id = ? AND at >= COALESCE(
        (SELECT MAX(at) FROM watch_score WHERE watch_id = ? AND at < ?), 0
    ) ORDER BY number
"""

# An interval that the owner has changed meanwhile takes precedence.
_RECORD = """
    UPDATE watch SET last_run_at = ?, state = ?, changes = changes + ?, problem_count = ?,
    next_run_at = CASE WHEN next_run_at = ? THEN ? ELSE next_run_at END,
    holder = NULL, held_until = NULL WHERE id = ? AND holder = ?
"""

_ALERT_COLUMNS = """
    watch_alert.id, watch_id, kind, target, problem AS key, severity, sentence, opened_at, ended_at,
    ending, acknowledged_at
"""

ALERTS = f"SELECT {_ALERT_COLUMNS} FROM watch_alert JOIN watch ON watch.id = watch_id"

_OPEN_FIRST = "CASE WHEN ended_at IS NULL THEN 0 ELSE 1 END, opened_at DESC, watch_alert.id"

_PENDING_ALERTS = f"""
    SELECT mailbox_name, settings, {_ALERT_COLUMNS} FROM watch_alert
    JOIN watch ON watch.id = watch_id JOIN inbox ON inbox.account_id = watch.account_id
    WHERE is_untold = 1 ORDER BY opened_at, watch_alert.id LIMIT ?
"""

_MARK_SENT = """
    UPDATE watch_alert SET is_untold = 0
    WHERE id = ? AND severity = ? AND COALESCE(ended_at, 0) = ?
"""

_OLD = (
    ("watch_change", "watch_id, number", "at < ?"),
    ("watch_score", "watch_id, number", "at < ?"),
    ("watch_alert", "id", "ended_at < ?"),
    ("heartbeat_day", "watch_id, day", "day < ?"),
)
"""Tables, the key columns of their rows, and the condition of old rows."""

EXPIRY_LOCK = 0x6D61_6977
"""Lock for deleting old data, which one daemon does at a time."""


class WatchStore(Store):
    """Watches, changes and alerts: those of domains and addresses, except where all are named.

    ``these`` is the condition of their rows, and ``most`` the maximum of an account.
    """

    these = "kind <> 'heartbeat'"
    most = MOST_WATCHES
    plural = "watches"

    @inbox_write(lambda _, watch, *others: (watch.account_id,))
    def add(
        self, transaction: Transaction, watch: Watch, receivers: Sequence[Webhook] = ()
    ) -> Watch | ExpectedFailure:
        """Add a watch, and those receivers of its alerts that its account does not have yet.

        :raises TooManyWatches: the account has the maximum number.
        :raises TooManyWebhooks: the account has the maximum number of receivers.
        :raises WatchExists: the account already watches the target.
        """
        account_id = watch.account_id
        # Two concurrent additions must see each other.
        lock_inboxes(transaction, (account_id,))
        if self._count(transaction, account_id) >= self.most:
            return TooManyWatches(
                f"an account can have at most {self.most} {self.plural}: delete one first"
            )
        same = "SELECT id FROM watch WHERE account_id = ? AND target = ?"
        row = transaction.row(same, (account_id, watch.target))
        if row is not None:
            return self._explain_same(watch.target, row.id)
        failure = add_receivers(transaction, receivers)
        if failure is not None:
            return failure
        insert(transaction, "watch", [row_of(watch, is_paused=int(watch.settings.is_paused))])
        return watch

    @read
    def of_account(
        self, transaction: Transaction, account_id: AccountId, limit: int, offset: int = 0
    ) -> WatchPage:
        """Return a page of the watches of an account by target, without their states."""
        sql = _OF_ACCOUNT.format(these=self.these)
        watches = read_values(transaction, Watch, sql, (account_id, limit, offset))
        return WatchPage(watches, self._count(transaction, account_id))

    @read
    def worst_first(
        self,
        transaction: Transaction,
        account_id: AccountId,
        good_score: int,
        since: Instant,
        limit: int,
        offset: int,
    ) -> WatchList:
        """Return a page of the watches of an account with their scores since a time.

        :param good_score: a watch with a lower score needs attention.
        """
        sql = _WORST_FIRST.format(these=self.these)
        watches = read_values(transaction, Watch, sql, (account_id, limit, offset))
        scores = {
            watch.id: read_values(transaction, WatchScore, _SCORES, (watch.id, watch.id, since))
            for watch in watches
        }
        sql = _FAILING.format(these=self.these)
        failing = read_number(transaction, sql, (account_id, good_score))
        return WatchList(watches, scores, self._count(transaction, account_id), failing)

    @read
    def find_target(
        self, transaction: Transaction, account_id: AccountId, target: str
    ) -> Watch | None:
        """Return the watch of a domain or an address, or `None`."""
        sql = f"SELECT {_COLUMNS} FROM watch WHERE account_id = ? AND target = ? AND {self.these}"
        return read_value(transaction, Watch, sql, (account_id, target))

    @read
    def find(
        self, transaction: Transaction, account_id: AccountId, watch_id: WatchId
    ) -> Watch | None:
        """Return a watch of an account, or `None`."""
        return self._find(transaction, account_id, watch_id)

    @inbox_write(lambda _, account_id, *others: (account_id,))
    def change(
        self,
        transaction: Transaction,
        account_id: AccountId,
        watch_id: WatchId,
        settings: WatchSettings,
        next_run_at: Instant,
        receivers: Sequence[Webhook] = (),
    ) -> Watch | ExpectedFailure | None:
        """Change the settings of a watch; return `None` if there is none.

        Receivers of alerts are added as in `add`. Receivers that no watch names are deleted.

        :raises TooManyWebhooks: the account has the maximum number of receivers.
        """
        lock_inboxes(transaction, (account_id,))
        if self._find(transaction, account_id, watch_id) is None:
            return None
        failure = add_receivers(transaction, receivers)
        if failure is not None:
            return failure
        transaction.execute(
            "UPDATE watch SET settings = ?, is_paused = ?, next_run_at = ? "
            "WHERE id = ? AND account_id = ?",
            (json_of(settings), int(settings.is_paused), next_run_at, watch_id, account_id),
        )
        _delete_unnamed(transaction, account_id)
        return self._find(transaction, account_id, watch_id)

    @frees_space
    @inbox_write(lambda _, account_id, *others: (account_id,))
    def delete(self, transaction: Transaction, account_id: AccountId, watch_id: WatchId) -> bool:
        """Delete a watch with all its data; return false if there is none.

        Receivers of alerts that no other watch names are deleted, too.
        """
        lock_inboxes(transaction, (account_id,))
        if not transaction.execute(
            f"DELETE FROM watch WHERE id = ? AND account_id = ? AND {self.these}",
            (watch_id, account_id),
        ):
            return False
        _delete_unnamed(transaction, account_id)
        return True

    @write
    def claim(
        self, transaction: Transaction, holder: str, now: Instant, milliseconds: int, limit: int
    ) -> list[Watch]:
        """Claim at most ``limit`` due watches, the longest overdue first; accounts take turns.

        Watches that another holder has claimed are skipped until its claim ends.
        """
        shared_now = now + transaction.clock_offset()
        until = shared_now + milliseconds
        leases = self._leases
        due = f"watch WHERE is_paused = 0 AND next_run_at <= ? AND {self.these}"
        rows = transaction.rows(leases.in_turns(due), (shared_now, now, shared_now, limit))
        taken = [
            row.id for row in rows if leases.claim(transaction, row.id, holder, until, shared_now)
        ]
        sql = f"SELECT {_COLUMNS} FROM watch WHERE id = ?"
        return [
            watch
            for watch_id in taken
            for watch in read_values(transaction, Watch, sql, (watch_id,))
        ]

    @write
    def claim_one(
        self,
        transaction: Transaction,
        account_id: AccountId,
        watch_id: WatchId,
        holder: str,
        now: Instant,
        milliseconds: int,
    ) -> Watch | None:
        """Claim a watch, due or not; return `None` if it is claimed or does not exist."""
        shared_now = now + transaction.clock_offset()
        until = shared_now + milliseconds
        if self._find(transaction, account_id, watch_id) is None:
            return None
        if not self._leases.claim(transaction, watch_id, holder, until, shared_now):
            return None
        return self._find(transaction, account_id, watch_id)

    @write
    def release(self, transaction: Transaction, holder: str) -> None:
        """Release all watches of a holder; they stay due."""
        self._leases.release(transaction, holder)

    @write
    def postpone(
        self, transaction: Transaction, holder: str, watch_id: WatchId, until: Instant
    ) -> None:
        """Release a watch that could not be run until a given time."""
        self._leases.give_back(transaction, watch_id, holder, next_run_at=until)

    @write
    def record(self, transaction: Transaction, holder: str, recorded: RunRecord) -> bool:
        """Store the result of a run, and release its watch.

        :return: false, without a change, if the holder lost the claim or the watch was deleted.
        """
        return keep_run(transaction, holder, recorded)

    @read
    def history(
        self, transaction: Transaction, watch_id: WatchId, since: Instant, limit: int
    ) -> History:
        """Return the changes and scores since a time; of the changes, the newest ones."""
        changes = read_values(
            transaction,
            WatchChange,
            "SELECT at, topic, name, value_before AS before, value_after AS after, sentence, "
            "severity FROM watch_change "
            "WHERE watch_id = ? AND at >= ? ORDER BY number DESC LIMIT ?",
            (watch_id, since, limit + 1),
        )
        scores = read_values(
            transaction,
            WatchScore,
            "SELECT at, score, grade, points FROM watch_score "
            "WHERE watch_id = ? AND at >= ? ORDER BY number DESC LIMIT ?",
            (watch_id, since, limit),
        )
        is_cut = len(changes) > limit
        return History(tuple(changes[:limit][::-1]), tuple(scores[::-1]), is_cut)

    @read
    def alerts(
        self, transaction: Transaction, account_id: AccountId, watch_id: WatchId, limit: int
    ) -> list[Alert]:
        """Return the alerts of a watch: open ones first, then the newest."""
        sql = (
            f"{ALERTS} WHERE account_id = ? AND watch_id = ? AND {self.these} "
            f"ORDER BY {_OPEN_FIRST} LIMIT ?"
        )
        return read_values(transaction, Alert, sql, (account_id, watch_id, limit))

    @read
    def open_alerts(
        self, transaction: Transaction, account_id: AccountId, limit: int
    ) -> list[Alert]:
        """Return the open alerts of an account, newest first."""
        sql = (
            f"{ALERTS} WHERE account_id = ? AND ended_at IS NULL AND {self.these} "
            f"ORDER BY {_OPEN_FIRST} LIMIT ?"
        )
        return read_values(transaction, Alert, sql, (account_id, limit))

    @write
    def acknowledge(
        self,
        transaction: Transaction,
        account_id: AccountId,
        watch_id: WatchId,
        alert_id: AlertId,
        now: Instant,
    ) -> Alert | None:
        """Record that the owner knows of an alert, and send it no more; `None` if it is missing."""
        transaction.execute(
            "UPDATE watch_alert SET acknowledged_at = COALESCE(acknowledged_at, ?), "
            "is_untold = CASE WHEN ended_at IS NULL THEN 0 ELSE is_untold END "
            "WHERE id = ? AND watch_id IN "
            f"(SELECT id FROM watch WHERE id = ? AND account_id = ? AND {self.these})",
            (now, alert_id, watch_id, account_id),
        )
        sql = (
            f"{ALERTS} WHERE account_id = ? AND watch_id = ? AND watch_alert.id = ? "
            f"AND {self.these}"
        )
        return read_value(transaction, Alert, sql, (account_id, watch_id, alert_id))

    @read
    def pending_alerts(self, transaction: Transaction, limit: int) -> list[PendingAlert]:
        """Return alerts of all watches whose start or end is not sent yet, oldest first."""
        return [
            value_of(PendingAlert, row, alert=value_of(Alert, row))
            for row in transaction.rows(_PENDING_ALERTS, (limit,))
        ]

    @write
    def mark_alerts_sent(self, transaction: Transaction, alerts: Sequence[Alert]) -> None:
        """Record that these alerts were sent; later changes of them are still to be sent."""
        values = [(alert.id, alert.severity, alert.ended_at or 0) for alert in alerts]
        transaction.execute_many(_MARK_SENT, values)

    @property
    def _leases(self) -> LeasedRows:
        return LeasedRows(
            "watch", self.these, due="next_run_at", holder="holder", until="held_until"
        )

    def _count(self, transaction: Transaction, account_id: AccountId) -> int:
        sql = f"SELECT COUNT(*) FROM watch WHERE account_id = ? AND {self.these}"
        return read_number(transaction, sql, (account_id,))

    def _find(
        self, transaction: Transaction, account_id: AccountId, watch_id: WatchId
    ) -> Watch | None:
        sql = f"SELECT {_COLUMNS} FROM watch WHERE account_id = ? AND id = ? AND {self.these}"
        return read_value(transaction, Watch, sql, (account_id, watch_id))

    def _explain_same(self, target: str, watch_id: str) -> WatchExists:
        return WatchExists(f"{target} is already watched by {watch_id}")

    @frees_space
    @write
    def forget(self, transaction: Transaction, before: Instant, limit: int) -> int:
        """Delete at most ``limit`` changes, scores and ended alerts of all watches.

        Only those from before a time are deleted, and days of heartbeats likewise.
        """
        if not transaction.try_lock(EXPIRY_LOCK):
            return 0
        left = limit
        for old in _OLD:
            left -= transaction.execute(delete_first(*old), (before, max(0, left)))
        return limit - left


def keep_run(transaction: Transaction, holder: str, recorded: RunRecord) -> bool:
    """Store the result of a run as `WatchStore.record` does."""
    watch = recorded.watch
    numbers = len(recorded.changes) + (recorded.score is not None)
    kept = (
        recorded.at,
        recorded.state,
        numbers,
        recorded.problem_count,
        watch.next_run_at,
        recorded.next_run_at,
        watch.id,
        holder,
    )
    if not transaction.execute(_RECORD, kept):
        return False
    _keep_changes(transaction, watch, recorded)
    for alert_id, event in recorded.events:
        if isinstance(event, Raised):
            _raise(transaction, watch.id, alert_id, event, recorded.at)
        else:
            _end(transaction, watch.id, event, recorded.at)
    return True


def _urls_named(transaction: Transaction, account_id: AccountId) -> set[str]:
    sql = f"SELECT {_WITHOUT_STATE} FROM watch WHERE account_id = ?"
    watches = read_values(transaction, Watch, sql, (account_id,))
    return {split_kind(named)[1] for watch in watches for named in watch.settings.alert_to}


def _delete_unnamed(transaction: Transaction, account_id: AccountId) -> None:
    delete_receivers(transaction, account_id, lambda: _urls_named(transaction, account_id))


def _keep_changes(transaction: Transaction, watch: Watch, recorded: RunRecord) -> None:
    rows = [
        row_of(
            change,
            "before",
            "after",
            value_before=change.before,
            value_after=change.after,
            watch_id=watch.id,
            number=number,
        )
        for number, change in enumerate(recorded.changes, watch.changes)
    ]
    insert(transaction, "watch_change", rows)
    if recorded.score is not None:
        number = watch.changes + len(recorded.changes)
        score = row_of(recorded.score, watch_id=watch.id, number=number)
        insert(transaction, "watch_score", [score])


def _raise(
    transaction: Transaction, watch_id: WatchId, alert_id: AlertId, raised: Raised, at: Instant
) -> None:
    is_untold = int(raised.is_new)
    is_open = transaction.execute(
        "UPDATE watch_alert SET severity = ?, sentence = ?, "
        "is_untold = CASE WHEN ? = 1 AND acknowledged_at IS NULL THEN 1 ELSE is_untold END "
        "WHERE watch_id = ? AND problem = ? AND ended_at IS NULL",
        (raised.severity, raised.sentence, is_untold, watch_id, raised.key),
    )
    if not is_open:
        alert: dict[str, Value] = {
            "id": alert_id,
            "watch_id": watch_id,
            "problem": raised.key,
            "severity": raised.severity,
            "sentence": raised.sentence,
            "opened_at": at,
            "ending": "",
            "is_untold": 1,
        }
        insert(transaction, "watch_alert", [alert])


def _end(transaction: Transaction, watch_id: WatchId, ended: Ended, at: Instant) -> None:
    transaction.execute(
        "UPDATE watch_alert SET ended_at = ?, ending = ?, is_untold = 1 "
        "WHERE watch_id = ? AND problem = ? AND ended_at IS NULL",
        (at, ended.sentence, watch_id, ended.key),
    )
