"""The store of decisions about the senders in DMARC reports."""

from __future__ import annotations

from mailcheck.core.domains.receiver_reports import MAX_DECISIONS, SenderDecision
from mailcheck.core.errors import TooManyDecisions
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.ports.engine import Transaction
from mailcheck.store.messages import lock_inboxes
from mailcheck.store.transactions import Store, frees_space, inbox_write, read

_DECIDE = """
    INSERT INTO sender_decision (account_id, domain, sender, decision, decided_at)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT (account_id, domain, sender)
    DO UPDATE SET decision = excluded.decision, decided_at = excluded.decided_at
"""

_COUNT_OTHERS = """
    SELECT COUNT(*) AS number FROM sender_decision
    WHERE account_id = ? AND NOT (domain = ? AND sender = ?)
"""


class SenderStore(Store):
    """Decisions whether a sender is the owner's own."""

    @inbox_write(lambda _, account_id, *others: (account_id,))
    def decide(
        self,
        transaction: Transaction,
        account_id: AccountId,
        domain: str,
        sender: str,
        decision: SenderDecision,
        now: Instant,
    ) -> TooManyDecisions | None:
        """Store a decision in place of an earlier one.

        :raises TooManyDecisions: the account has the maximum number of decisions.
        """
        # Two concurrent decisions must see each other.
        lock_inboxes(transaction, (account_id,))
        row = transaction.row(_COUNT_OTHERS, (account_id, domain, sender))
        assert row is not None, "COUNT returns a row"
        if row.number >= MAX_DECISIONS:
            return TooManyDecisions(
                f"an account can decide about at most {MAX_DECISIONS} senders: make some undecided"
            )
        transaction.execute(_DECIDE, (account_id, domain, sender, decision.value, now))
        return None

    @frees_space
    @inbox_write(lambda _, account_id, *others: (account_id,))
    def forget(
        self, transaction: Transaction, account_id: AccountId, domain: str, sender: str
    ) -> None:
        """Delete a decision, so that the sender is undecided again."""
        transaction.execute(
            "DELETE FROM sender_decision WHERE account_id = ? AND domain = ? AND sender = ?",
            (account_id, domain, sender),
        )

    @read
    def decisions(
        self, transaction: Transaction, account_id: AccountId, domain: str
    ) -> dict[str, SenderDecision]:
        """Return the decisions about the senders of a domain."""
        sql = "SELECT sender, decision FROM sender_decision WHERE account_id = ? AND domain = ?"
        rows = transaction.rows(sql, (account_id, domain))
        return {row.sender: SenderDecision(row.decision) for row in rows}
