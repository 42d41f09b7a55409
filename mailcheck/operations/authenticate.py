"""Who is calling: from the secret of an API key to the account behind it."""

from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.errors import InvalidCredentials, StoreUnavailable
from mailcheck.core.identifiers import KeyId, digest_secret
from mailcheck.core.instants import Instant
from mailcheck.operations.ports import AccountStore, Now


class Authenticator:
    """Reads the key anew for every request, so that a revoked one stops at once."""

    def __init__(self, store: AccountStore, default_limits: RequestLimits, now: Now) -> None:
        self._store = store
        self._default_limits = default_limits
        self._now = now
        self._uses: dict[KeyId, Instant] = {}

    async def identify(self, secret: str) -> Caller:
        """Find the caller who holds this key.

        :raises InvalidCredentials: no such key, or it was revoked.
        :raises StoreUnavailable: can't tell now.
        """
        key = await self._store.find_key(digest_secret(secret))
        if key is None or key.revoked_at is not None:
            raise InvalidCredentials(
                "the API key is unknown" if key is None else "the API key has been revoked"
            )
        self._uses[key.id] = self._now()
        limits = RequestLimits(
            per_minute=self._default_limits.per_minute
            if key.per_minute is None
            else key.per_minute,
            per_day=self._default_limits.per_day if key.per_day is None else key.per_day,
        )
        return Caller(key.account_id, key.id, limits)

    async def save_key_uses(self) -> None:
        """Write down when keys were last used: now and then, not for every request.

        :raises StoreUnavailable: not now; what was not written is tried again the next time.
        """
        uses, self._uses = self._uses, {}
        if not uses:
            return
        try:
            await self._store.note_key_use(list(uses.items()))
        except StoreUnavailable:
            self._uses = {**uses, **self._uses}
            raise
