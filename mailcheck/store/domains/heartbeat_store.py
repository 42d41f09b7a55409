"""The store of heartbeats: watches whose mail is expected, their beats and their days."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.checks.watching.heartbeats import CLOCK_TOLERANCE, Reception
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.domains.heartbeats import MOST_HEARTBEATS, Beat, DayOfBeats, JudgedBeat
from mailcheck.core.domains.watches import Watch, WatchId
from mailcheck.core.errors import WatchExists
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.ports.engine import Transaction
from mailcheck.store.domains.watch_store import RunRecord, WatchStore, keep_run
from mailcheck.store.messages import SESSION_COLUMNS, session_of
from mailcheck.store.transactions import (
    columns_of,
    json_of,
    read,
    read_values,
    row_of,
    value_of,
    write,
)

MOST_BEATS = 200
"""Maximum number of judged beats of a heartbeat that are kept, the newest ones. Days are counted
apart."""

SEEN_EVERY = 30 * SECOND
"""Time between two writes of when a daemon observed the time."""

GAP = 90 * SECOND
"""Time without an observation that is a gap."""


class RecentBeats(Struct, frozen=True):
    """The newest beats of a heartbeat, newest first, and the days since a time, oldest first."""

    beats: tuple[JudgedBeat, ...]
    days: tuple[DayOfBeats, ...]


class HeartbeatRecord(Struct, frozen=True):
    """The result of an evaluation to be stored; ``days`` are added to the stored ones."""

    run: RunRecord
    judged: tuple[JudgedBeat, ...]
    days: tuple[DayOfBeats, ...]


_ALL = f"""
    SELECT {columns_of(Watch, "watch")} FROM watch
    WHERE account_id = ? AND {{these}} ORDER BY target LIMIT {MOST_HEARTBEATS}
"""

_WAITING = f"""
    SELECT {columns_of(Beat, "heartbeat_beat")} FROM heartbeat_beat
    WHERE watch_id = ? AND verdict IS NULL ORDER BY received_at, id LIMIT ?
"""

_JUDGED = """
    SELECT id, received_at, verdict, facts, late FROM heartbeat_beat
    WHERE watch_id = ? AND verdict IS NOT NULL ORDER BY received_at DESC, id DESC LIMIT ?
"""

_FORGET_BEATS = """
    DELETE FROM heartbeat_beat WHERE watch_id = ? AND verdict IS NOT NULL AND id NOT IN (
        SELECT id FROM heartbeat_beat WHERE watch_id = ? AND verdict IS NOT NULL
        ORDER BY received_at DESC, id DESC LIMIT ?
    )
"""

_ADD_DAY = """
    INSERT INTO heartbeat_day (watch_id, day, on_time, late, missing, refused, problems, lowest)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (watch_id, day) DO UPDATE SET
        on_time = heartbeat_day.on_time + excluded.on_time,
        late = heartbeat_day.late + excluded.late,
        missing = heartbeat_day.missing + excluded.missing,
        refused = heartbeat_day.refused + excluded.refused,
        problems = heartbeat_day.problems + excluded.problems,
        lowest = CASE
            WHEN excluded.lowest IS NULL THEN heartbeat_day.lowest
            WHEN heartbeat_day.lowest IS NULL THEN excluded.lowest
            WHEN excluded.lowest < heartbeat_day.lowest THEN excluded.lowest
            ELSE heartbeat_day.lowest END
"""


class HeartbeatStore(WatchStore):
    """Heartbeats. They are stored as watches, with the same alerts."""

    these = "kind = 'heartbeat'"
    most = MOST_HEARTBEATS
    plural = "heartbeats"

    @read
    def all_of(self, transaction: Transaction, account_id: AccountId) -> list[Watch]:
        """Return the heartbeats of an account by name, with their states."""
        return read_values(transaction, Watch, _ALL.format(these=self.these), (account_id,))

    @read
    def waiting(self, transaction: Transaction, watch_id: WatchId, limit: int) -> list[Beat]:
        """Return beats of a heartbeat that are not judged yet, oldest first."""
        return read_values(transaction, Beat, _WAITING, (watch_id, limit))

    @read
    def read_mail(self, transaction: Transaction, beat: Beat) -> ReceivedMail | None:
        """Return the mail of a beat, or `None` if it was deleted."""
        row = transaction.row(
            "SELECT delivery.envelope_sender, delivery.received_at, delivery.raw_message, "
            f"delivery.id AS delivery_id, {SESSION_COLUMNS} FROM delivery WHERE delivery.id = ?",
            (beat.delivery_id,),
        )
        return None if row is None else value_of(ReceivedMail, row, session=session_of(row))

    @read
    def recent(
        self, transaction: Transaction, watch_id: WatchId, since: Instant, limit: int = MOST_BEATS
    ) -> RecentBeats:
        """Return the newest beats of a heartbeat, and its days since a time."""
        beats = read_values(transaction, JudgedBeat, _JUDGED, (watch_id, limit))
        return RecentBeats(tuple(beats), _days(transaction, watch_id, since))

    @read
    def days(
        self, transaction: Transaction, watch_ids: Sequence[WatchId], since: Instant
    ) -> dict[WatchId, tuple[DayOfBeats, ...]]:
        """Return the days of some heartbeats since a time, oldest first."""
        return {watch_id: _days(transaction, watch_id, since) for watch_id in watch_ids}

    @write
    def observe(self, transaction: Transaction, now: Instant) -> Reception:
        """Record that a daemon observes the time, and return the last gap.

        If the clock was set back, all heartbeats become due, since they may wait for a time that
        is far away.
        """
        if transaction.row(f"SELECT 1 FROM watch WHERE {self.these} LIMIT 1") is None:
            transaction.execute("DELETE FROM heartbeat_reception")
            return Reception()
        row = transaction.row(
            "SELECT seen_at, down_from, up_since FROM heartbeat_reception WHERE number = 1"
        )
        if row is None:
            transaction.execute(
                "INSERT INTO heartbeat_reception (number, seen_at, down_from, up_since) "
                "VALUES (1, ?, 0, 0)",
                (now,),
            )
            return Reception()
        known = Reception(row.down_from, row.up_since)
        if now < row.seen_at - CLOCK_TOLERANCE:
            transaction.execute(
                f"UPDATE watch SET next_run_at = ? WHERE {self.these} AND next_run_at > ?",
                (now, now),
            )
            known = Reception() if known.up_since > now else known
        elif now > row.seen_at + GAP:
            known = Reception(row.seen_at, now)
        elif now < row.seen_at + SEEN_EVERY:
            return known
        transaction.execute(
            "UPDATE heartbeat_reception SET seen_at = ?, down_from = ?, up_since = ? "
            "WHERE number = 1",
            (now, known.down_from, known.up_since),
        )
        return known

    @write
    def record_beats(
        self, transaction: Transaction, holder: str, recorded: HeartbeatRecord
    ) -> bool:
        """Store the result of an evaluation, and release its heartbeat.

        :return: false, without a change, if the holder lost the claim or it was deleted.
        """
        if not keep_run(transaction, holder, recorded.run):
            return False
        watch_id = recorded.run.watch.id
        for verdict in recorded.judged:
            _keep_verdict(transaction, verdict)
        if recorded.judged:
            transaction.execute(_FORGET_BEATS, (watch_id, watch_id, MOST_BEATS))
        for day in recorded.days:
            transaction.execute(_ADD_DAY, (watch_id, *row_of(day).values()))
        return True

    def _explain_same(self, target: str, watch_id: str) -> WatchExists:
        return WatchExists(f"there is a heartbeat {target} already")


def _keep_verdict(transaction: Transaction, one: JudgedBeat) -> None:
    if one.verdict is None:
        transaction.execute(
            "UPDATE heartbeat_beat SET attempts = attempts + 1 WHERE id = ?", (one.id,)
        )
        return
    facts = None if one.facts is None else json_of(one.facts)
    transaction.execute(
        "UPDATE heartbeat_beat SET verdict = ?, facts = ?, late = ? WHERE id = ?",
        (one.verdict.value, facts, one.late, one.id),
    )


def _days(transaction: Transaction, watch_id: WatchId, since: Instant) -> tuple[DayOfBeats, ...]:
    columns = columns_of(DayOfBeats, "heartbeat_day")
    sql = f"SELECT {columns} FROM heartbeat_day WHERE watch_id = ? AND day >= ? ORDER BY day"
    return tuple(read_values(transaction, DayOfBeats, sql, (watch_id, since)))
