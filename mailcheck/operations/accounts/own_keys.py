"""The operations of an account on its own API keys, within the limits of accounts."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from mailcheck.core.accounts import Account, ApiKey, KeyMaker, RequestLimits
from mailcheck.core.audit import Actor
from mailcheck.core.errors import InvalidParameter, KeyNotFound, TooManyKeys
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.rights import ALL_RIGHTS, Rights
from mailcheck.operations.accounts.authenticate import (
    Authenticator,
    LimitUse,
    RequestMeter,
    key_subject,
)
from mailcheck.operations.accounts.manage_accounts import IssuedKey, ManageAccounts, RotatedKey
from mailcheck.ports.clocks import Now

MAX_KEYS = 20
"""Maximum number of valid keys per account. Rate limits are per key, so unlimited keys would
mean unlimited requests."""

MAX_KEYS_A_DAY = 1_000
"""Maximum number of keys that an account gets within 24 hours: revoked ones are stored, too."""

MAX_KEY_NAME = 60
"""Maximum length of a key's name, in characters."""


LONGEST_KEY_LIFE = 3650 * DAY
"""Maximum time until a key expires, in milliseconds."""

DEFAULT_OVERLAP, LONGEST_OVERLAP = 1 * DAY, 30 * DAY
"""Default and maximum time for which a rotated key stays valid, in milliseconds."""


class KeyUse(LimitUse, frozen=True):
    """A key, its limits and its usage in this minute and today, and who has made it."""

    key: ApiKey
    last_used_at: Instant | None
    maker: KeyMaker | None = None


class KeyWish(Struct, frozen=True):
    """A key that somebody wants. `None` stands for the configured limit, and for no end.

    ``lifetime`` is in milliseconds.
    """

    name: str
    rights: Rights = ALL_RIGHTS
    per_minute: int | None = None
    per_day: int | None = None
    lifetime: int | None = None


class OwnKeys(Struct, frozen=True, eq=False):
    """The operations of an account on its own keys."""

    accounts: ManageAccounts
    authenticator: Authenticator
    meter: RequestMeter
    now: Now

    async def valid(self, account: Account) -> list[KeyUse]:
        """List the valid keys with their usage, newest first. No request is counted."""
        makers = await self.accounts.makers_of(account)
        return [
            await self._use_of(key, makers.get(key.id))
            for key in reversed(await self._keys(account))
        ]

    async def requests_by_day(self, account: Account, length: int) -> Mapping[int, int]:
        """Return the requests of all keys of an account on the last days, by day since 1970."""
        return await self.authenticator.requests_by_day(account.id, length)

    async def show(self, account: Account, key_id: str) -> KeyUse:
        """Return a valid key with its usage.

        :raises KeyNotFound: the account has no valid key with this id.
        """
        key = await self._require(account, key_id)
        return await self._use_of(key, (await self.accounts.makers_of(account)).get(key.id))

    async def create(
        self,
        account: Account,
        wish: KeyWish,
        by: Actor,
        made_by: AccountId | None = None,
        most: RequestLimits | None = None,
    ) -> IssuedKey:
        """Create a key.

        :param made_by: the person who makes it, if a person does.
        :param most: the highest limits that it may have; `None` for the operator, who may raise
            them.
        :raises InvalidParameter: the name is empty, too long or not printable, or a limit or the
            lifetime is out of range.
        :raises TooManyKeys: the account has the maximum number of keys.
        :raises NotOperator: only keys of the operator's account can have the scope ``operator``.
        """
        name = wish.name.strip()
        if not name or len(name) > MAX_KEY_NAME or not name.isprintable():
            problem = f"name the purpose of the key in 1 to {MAX_KEY_NAME} printable characters"
            raise InvalidParameter("name", problem)
        await self._require_room(account, 1)
        lifetime = wish.lifetime
        if lifetime is not None and not 0 < lifetime <= LONGEST_KEY_LIFE:
            problem = f"a key expires within {LONGEST_KEY_LIFE // DAY} days, or never"
            raise InvalidParameter("expires", problem)
        if most is not None:
            _require_limit("perMinute", wish.per_minute, most.per_minute)
            _require_limit("perDay", wish.per_day, most.per_day)
        return await self.accounts.issue_key(
            account,
            name,
            per_minute=wish.per_minute,
            per_day=wish.per_day,
            rights=wish.rights,
            expires_at=None if lifetime is None else Instant(self.now() + lifetime),
            made_by=made_by,
            by=by,
        )

    async def rotate(
        self,
        account: Account,
        key_id: str,
        by: Actor,
        made_by: AccountId | None = None,
        overlap: int = DEFAULT_OVERLAP,
    ) -> RotatedKey:
        """Replace a key. The older one is valid for another ``overlap`` milliseconds.

        :raises KeyNotFound: the account has no valid key with this id.
        :raises InvalidParameter: the overlap is out of range.
        :raises TooManyKeys: the account has the maximum number of keys.
        """
        if not 0 <= overlap <= LONGEST_OVERLAP:
            problem = f"a rotated key stays valid for 0 to {LONGEST_OVERLAP // DAY} days"
            raise InvalidParameter("overlap", problem)
        key = await self._require(account, key_id)
        await self._require_room(account, 1 if overlap else 0)
        return await self.accounts.rotate_key(key, overlap, made_by, by)

    async def set_fault(self, account: Account, key_id: str, every: int | None) -> None:
        """Reject every Nth mail that a key submits with 451, or none (``None``).

        :raises InvalidParameter: ``every`` is out of range.
        :raises KeyNotFound: the account has no valid key with this id.
        """
        await self._require(account, key_id)
        await self.accounts.set_fault(key_id, every)

    async def revoke(self, account: Account, key_id: str, by: Actor) -> None:
        """Revoke a key permanently.

        :raises KeyNotFound: the account has no valid key with this id.
        """
        await self._require(account, key_id)
        await self.accounts.revoke_key(key_id, by)

    async def _require_room(self, account: Account, more: int) -> None:
        """Check that an account may get a new key, after which it has so many more valid ones."""
        listed = await self.accounts.list_keys(account)
        if len(self._valid_of(listed)) + more > MAX_KEYS:
            raise TooManyKeys(f"an account has at most {MAX_KEYS} keys; revoke one first")
        since = self.now() - DAY
        if sum(key.created_at > since for key in listed) >= MAX_KEYS_A_DAY:
            raise TooManyKeys(
                f"an account gets at most {MAX_KEYS_A_DAY} new keys in 24 hours: use keys longer"
            )

    async def _require(self, account: Account, key_id: str) -> ApiKey:
        for key in await self._keys(account):
            if key.id == key_id:
                return key
        raise KeyNotFound("you have no valid key with this id")

    async def _keys(self, account: Account) -> list[ApiKey]:
        return self._valid_of(await self.accounts.list_keys(account))

    def _valid_of(self, keys: Sequence[ApiKey]) -> list[ApiKey]:
        now = self.now()
        return [key for key in keys if key.revoked_at is None and not key.is_expired(now)]

    async def _use_of(self, key: ApiKey, maker: KeyMaker | None) -> KeyUse:
        limits = self.authenticator.limits_of(key)
        usage = await self.meter.peek(key_subject(key.id), limits)
        return KeyUse(limits, usage, key, self.authenticator.last_use(key), maker)


def _require_limit(name: str, value: int | None, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise InvalidParameter(name, f"{name} must be an integer from 1 to {most}; got {value}")
