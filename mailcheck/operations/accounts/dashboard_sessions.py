"""Sessions of the dashboard: opened, found by what the cookie holds, ended."""

from mailcheck.core.accounts import Account
from mailcheck.core.identifiers import AccountId, digest_secret, new_session_secret
from mailcheck.core.instants import DAY, MINUTE, Instant
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.store.accounts.account_store import SessionStore

IDLE_LIFE = 7 * DAY
"""A session that is not used for so long ends."""

WHOLE_LIFE = 30 * DAY
"""A session ends after so long, however much it is used."""

NOTING_INTERVAL = 5 * MINUTE
"""A use is noted when the last one noted is older: not every page needs a write."""


class DashboardSessions:
    """The operations on sessions; the store keeps digests only."""

    def __init__(self, store: SessionStore, time_and_chance: TimeAndChance) -> None:
        self._store = store
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes

    async def open(self, account_id: AccountId) -> str:
        """Open a session; gives its secret, which is always a new one."""
        secret, now = new_session_secret(self._random_bytes), self._now()
        await self._store.open_session(digest_secret(secret), account_id, now, _end(now, now))
        return secret

    async def find(self, secret: str) -> Account | None:
        """Find whose session this is; nobody's when it has ended or never was."""
        digest, now = digest_secret(secret), self._now()
        session = await self._store.find_session(digest, now)
        if session is None:
            return None
        if now - session.seen_at >= NOTING_INTERVAL:
            await self._store.note_session_use(digest, now, _end(session.created_at, now))
        return session.account

    async def end(self, secret: str) -> None:
        """End a session."""
        await self._store.end_session(digest_secret(secret))


def _end(created_at: Instant, used_at: Instant) -> Instant:
    return Instant(min(created_at + WHOLE_LIFE, used_at + IDLE_LIFE))
