"""Who is calling: from the secret of an API key to the account behind it."""

from mailcheck.core.accounts import ApiKey, Caller, RequestLimits
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
        found = await self._store.find_caller(digest_secret(secret))
        if found is None:
            raise InvalidCredentials("the API key is unknown")
        key, position = found
        if key.revoked_at is not None:
            raise InvalidCredentials("the API key has been revoked")
        self._uses[key.id] = self._now()
        return Caller(key.account_id, key.id, self.limits_of(key), position)

    def limits_of(self, key: ApiKey) -> RequestLimits:
        """Give the limits of a key: its own, else the configured ones."""
        default = self._default_limits
        return RequestLimits(
            per_minute=default.per_minute if key.per_minute is None else key.per_minute,
            per_day=default.per_day if key.per_day is None else key.per_day,
        )

    def last_use(self, key: ApiKey) -> Instant | None:
        """Tell when a key was last used, as far as this daemon knows."""
        return self._uses.get(key.id, key.last_used_at)

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
