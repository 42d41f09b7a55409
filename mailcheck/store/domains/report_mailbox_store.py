"""The store of the mailboxes that reports are fetched from: places, tokens, problems and claims."""

from __future__ import annotations

from collections.abc import Sequence

from mailcheck.core.domains.report_mailboxes import MailboxState
from mailcheck.core.instants import DAY, Instant
from mailcheck.ports.engine import Transaction
from mailcheck.store.transactions import Store, columns_of, read, value_of, write

ABANDONED_AFTER = 30 * DAY
"""How long the state of a mailbox is kept that no daemon reads any more, with its token."""

_COLUMNS = columns_of(MailboxState, "report_mailbox")

_ADD = """
    INSERT INTO report_mailbox (id, next_at, uid_validity, last_uid, refresh_token, refresh_origin,
    failures, problem, mails, reports, tried_at) VALUES (?, 0, 0, 0, '', '', 0, '', 0, 0, ?)
    ON CONFLICT DO NOTHING
"""

_CLAIM = """
    UPDATE report_mailbox SET holder = ?, held_until = ?, tried_at = ?
    WHERE id = ? AND (next_at <= ? OR (? = 1 AND failures > 0))
    AND (held_until IS NULL OR held_until <= ?)
"""

_ADVANCE = """
    UPDATE report_mailbox SET uid_validity = ?, last_uid = ?, mails = mails + ?,
    reports = reports + ?, held_until = ? WHERE id = ? AND holder = ?
"""

_FINISH = """
    UPDATE report_mailbox SET next_at = ?, problem = ?, failures = ?,
    succeeded_at = COALESCE(?, succeeded_at), holder = NULL, held_until = NULL
    WHERE id = ? AND holder = ?
"""


class ReportMailboxStore(Store):
    """The states of mailboxes. One daemon at a time holds the claim of a mailbox."""

    @write
    def claim(
        self,
        transaction: Transaction,
        mailbox_id: str,
        holder: str,
        now: Instant,
        milliseconds: int,
        is_hurried: bool = False,
    ) -> MailboxState | None:
        """Claim a mailbox that is due; return `None` if it is not due or claimed.

        :param is_hurried: a mailbox whose last attempt has failed is due now.
        """
        shared_now = now + transaction.clock_offset()
        transaction.execute(_ADD, (mailbox_id, now))
        values = (holder, shared_now + milliseconds, now, mailbox_id, now, int(is_hurried))
        if not transaction.execute(_CLAIM, (*values, shared_now)):
            return None
        sql = f"SELECT {_COLUMNS} FROM report_mailbox WHERE id = ?"
        row = transaction.row(sql, (mailbox_id,))
        return None if row is None else value_of(MailboxState, row)

    @write
    def advance(
        self,
        transaction: Transaction,
        mailbox_id: str,
        holder: str,
        place: tuple[int, int],
        mails: int,
        reports: int,
        now: Instant,
        milliseconds: int,
    ) -> bool:
        """Record that all mails up to a place are read, and renew the claim.

        :param place: UIDVALIDITY and the last UID.
        :return: false, without a change, if the holder has lost the claim.
        """
        until = now + transaction.clock_offset() + milliseconds
        values = (*place, mails, reports, until, mailbox_id, holder)
        return bool(transaction.execute(_ADVANCE, values))

    @write
    def keep_token(
        self, transaction: Transaction, mailbox_id: str, token: str, origin: str
    ) -> None:
        """Store a new refresh token, and the digest of the configured token that it replaces."""
        transaction.execute(
            "UPDATE report_mailbox SET refresh_token = ?, refresh_origin = ? WHERE id = ?",
            (token, origin, mailbox_id),
        )

    @write
    def finish(
        self,
        transaction: Transaction,
        mailbox_id: str,
        holder: str,
        next_at: Instant,
        problem: str = "",
        failures: int = 0,
        succeeded_at: Instant | None = None,
    ) -> None:
        """Record the outcome of an attempt, and release the mailbox."""
        values = (next_at, problem, failures, succeeded_at, mailbox_id, holder)
        transaction.execute(_FINISH, values)

    @write
    def release(self, transaction: Transaction, holder: str) -> None:
        """Release all mailboxes of a holder; they stay due."""
        transaction.execute(
            "UPDATE report_mailbox SET holder = NULL, held_until = NULL WHERE holder = ?", (holder,)
        )

    @write
    def forget(self, transaction: Transaction, now: Instant) -> int:
        """Delete the states of mailboxes that no daemon has read for `ABANDONED_AFTER`."""
        before = now - ABANDONED_AFTER
        return transaction.execute("DELETE FROM report_mailbox WHERE tried_at < ?", (before,))

    @read
    def states(
        self, transaction: Transaction, mailbox_ids: Sequence[str]
    ) -> dict[str, MailboxState]:
        """Return the states of mailboxes that a daemon has tried, by their ids."""
        found = {}
        for mailbox_id in mailbox_ids:
            sql = f"SELECT {_COLUMNS} FROM report_mailbox WHERE id = ?"
            row = transaction.row(sql, (mailbox_id,))
            if row is not None:
                found[mailbox_id] = value_of(MailboxState, row)
        return found
