"""Writing and reading of the audit log."""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from mailcheck.core.audit import Action, Actor, AuditEntry, AuditFilter
from mailcheck.core.identifiers import AccountId, new_time_ordered_id
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Notifications
from mailcheck.store.accounts.audit_store import AuditStore

PAGE = 100
"""Number of entries on a page."""


class Audit(Struct, frozen=True, eq=False):
    """The audit log. A store writes the entry about a change in the transaction of the change.

    :param changes: gets a notification after each change. It may have ended access.
    """

    store: AuditStore
    changes: Notifications[str]
    clocks: ClockAndRandomness

    @contextmanager
    def noting(
        self, action: Action, account_id: AccountId | None, by: Actor, detail: str = ""
    ) -> Iterator[AuditEntry]:
        """Return the entry about a change that the block makes: it hands the entry to the store.

        ``account_id`` is the account that is changed, or `None` for the service. ``detail`` is for
        people, and has no secrets. The store may know more, and complete both.
        """
        now = self.clocks.now()
        yield AuditEntry(
            id=new_time_ordered_id(now, self.clocks.random_bytes),
            happened_at=now,
            account_id=account_id,
            account_name="",
            actor=by.name,
            client=by.client,
            action=action,
            detail=detail,
        )
        self.changes.publish(action)

    async def note(
        self, action: Action, account_id: AccountId | None, by: Actor, detail: str = ""
    ) -> None:
        """Add an entry about something that is not a change in the store."""
        with self.noting(action, account_id, by, detail) as entry:
            await self.store.add(entry)

    async def newest(
        self, account_id: AccountId | None = None, before: int = 0, limit: int = PAGE
    ) -> list[AuditEntry]:
        """Return entries about an account, or about all, newest first.

        :param before: only entries before the one with this position; zero is no limit.
        """
        return await self.store.newest(AuditFilter(account_id), before, limit)
