"""Writing and reading of the audit log."""

from mailcheck.core.audit import ENDS_ACCESS, Action, Actor, AuditEntry
from mailcheck.core.identifiers import AccountId, new_time_ordered_id
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Notifications
from mailcheck.store.accounts.audit_store import AuditStore

PAGE = 100
"""Number of entries on a page."""


class Audit:
    """The audit log. Operations add an entry after each change that succeeded.

    :param ending: gets a notification after each change that may have ended access.
    """

    def __init__(
        self,
        store: AuditStore,
        ending: Notifications[str],
        clock_and_randomness: ClockAndRandomness,
    ) -> None:
        self._store = store
        self._ending = ending
        self._now = clock_and_randomness.now
        self._random_bytes = clock_and_randomness.random_bytes

    async def note(
        self, action: Action, account_id: AccountId | None, by: Actor, detail: str = ""
    ) -> None:
        """Add an entry about an account, or about the service (`None`).

        ``detail`` is for people, and has no secrets.
        """
        if action in ENDS_ACCESS:
            self._ending.publish(action)
        now = self._now()
        await self._store.add(
            AuditEntry(
                id=new_time_ordered_id(now, self._random_bytes),
                happened_at=now,
                account_id=account_id,
                account_name="",
                actor=by.name,
                client=by.client,
                action=action,
                detail=detail,
            )
        )

    async def newest(
        self, account_id: AccountId | None = None, before: str = "", limit: int = PAGE
    ) -> list[AuditEntry]:
        """Return entries about an account, or about all, newest first.

        :param before: only entries older than the one with this id.
        """
        return await self._store.newest(account_id, before, limit)
