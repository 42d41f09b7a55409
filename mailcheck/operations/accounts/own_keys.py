"""The API keys of an account, as its owner sees and changes them."""

from mailcheck.core.accounts import Account, ApiKey
from mailcheck.core.errors import InvalidParameter, KeyNotFound, TooManyKeys
from mailcheck.core.instants import Instant
from mailcheck.operations.accounts.authenticate import (
    Authenticator,
    LimitUse,
    RequestMeter,
    key_subject,
)
from mailcheck.operations.accounts.keep_accounts import IssuedKey, KeepAccounts

MAX_KEYS = 20
"""Valid keys of one account: limits count by key, and would be none without this one."""

MAX_KEY_NAME = 60
"""Characters."""


class KeyUse(LimitUse, frozen=True):
    """A key, its limits, and what it has used of them in this minute and today."""

    key: ApiKey
    last_used_at: Instant | None


class OwnKeys:
    """The operations on one's own keys."""

    def __init__(
        self, accounts: KeepAccounts, authenticator: Authenticator, meter: RequestMeter
    ) -> None:
        self._accounts = accounts
        self._authenticator = authenticator
        self._meter = meter

    async def valid(self, account: Account) -> list[KeyUse]:
        """List the keys that open the API, newest first, with their use; looking counts nothing."""
        return [await self._use_of(key) for key in reversed(await self._keys(account))]

    async def create(self, account: Account, name: str) -> IssuedKey:
        """Create a key.

        :raises InvalidParameter: the name can't be one.
        :raises TooManyKeys: the account has as many as it may.
        """
        name = name.strip()
        if not name or len(name) > MAX_KEY_NAME or not name.isprintable():
            problem = f"say what the key is for, in 1 to {MAX_KEY_NAME} characters"
            raise InvalidParameter("name", problem)
        if len(await self._keys(account)) >= MAX_KEYS:
            raise TooManyKeys(f"an account has at most {MAX_KEYS} keys: revoke one first")
        return await self._accounts.issue_key(account, name)

    async def set_fault(self, account: Account, key_id: str, every: int | None) -> None:
        """Let every so manieth mail that a key hands in get 451, or none.

        :raises InvalidParameter: that is no such number.
        :raises KeyNotFound: the account has no valid key with this id.
        """
        await self._require(account, key_id)
        await self._accounts.set_fault(key_id, every)

    async def revoke(self, account: Account, key_id: str) -> None:
        """Revoke a key for good.

        :raises KeyNotFound: the account has no valid key with this id.
        """
        await self._require(account, key_id)
        await self._accounts.revoke_key(key_id)

    async def _require(self, account: Account, key_id: str) -> None:
        if key_id not in {key.id for key in await self._keys(account)}:
            raise KeyNotFound("you have no such key (any more)")

    async def _keys(self, account: Account) -> list[ApiKey]:
        return [key for key in await self._accounts.list_keys(account) if key.revoked_at is None]

    async def _use_of(self, key: ApiKey) -> KeyUse:
        limits = self._authenticator.limits_of(key)
        usage = await self._meter.look(key_subject(key.id), limits)
        return KeyUse(limits, usage, key, self._authenticator.last_use(key))
