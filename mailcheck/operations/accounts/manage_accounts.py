"""Operations on accounts and API keys: create, change, list, disable and delete."""

from collections.abc import Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import asdict, replace

from mailcheck.core.accounts import (
    Account,
    AccountLimits,
    AccountUse,
    ApiKey,
    KeyMaker,
    PersonalAccess,
    columns_of_rights,
)
from mailcheck.core.addresses import new_mailbox_name
from mailcheck.core.audit import COMMAND_LINE, Action, Actor
from mailcheck.core.errors import (
    AccountDisabled,
    AccountIsOperator,
    AccountNameTaken,
    AccountNotFound,
    InvalidParameter,
    KeyNotFound,
    OnlyOwner,
    nearest_word,
)
from mailcheck.core.faults import LARGEST_EVERY
from mailcheck.core.identifiers import (
    API_KEY_PREFIX,
    MIN_PRESET_KEY,
    AccountId,
    KeyId,
    digest_secret,
    is_possible_key,
    new_api_key,
    new_short_id,
)
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.rights import ALL_RIGHTS, Rights, Scope
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.concurrency import delete_in_batches
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.store.accounts.account_removal import AccountRemoval, Holdings
from mailcheck.store.accounts.account_store import AccountStore

HINT_LENGTH = len(API_KEY_PREFIX) + 4
"""Length of the key prefix shown in lists: long enough to tell keys apart, too short to help
guess one."""


SHORTEST_RETENTION, LONGEST_RETENTION = 24, 24 * 365
"""Hours for which the mail of one account can be kept."""

MAX_QUOTA = 2**63 - 1
"""The largest number that the columns of all databases can store."""

BATCH = 200
"""Maximum number of messages deleted in one transaction, so that incoming mail waits briefly."""


class IssuedKey(Struct, frozen=True):
    """A new key and its secret. The secret is shown once and is not stored."""

    key: ApiKey
    secret: str


class RotatedKey(IssuedKey, frozen=True):
    """A new key, its secret, and the older key, which is valid for a while."""

    earlier: ApiKey


class ManageAccounts(Struct, frozen=True, eq=False):
    """The operator's operations on accounts and keys.

    ``by`` is the person who changes something, for the audit log.
    """

    store: AccountStore
    removal: AccountRemoval
    audit: Audit
    clocks: ClockAndRandomness

    async def add(
        self,
        name: str,
        *,
        is_operator: bool = False,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        by: Actor = COMMAND_LINE,
    ) -> Account:
        """Create an account with an inbox. The very first account becomes the operator's.

        :raises InvalidParameter: the name is empty.
        :raises AccountNameTaken: an account with this name exists.
        """
        account = replace(
            await self.draft(name),
            is_operator=is_operator or not await self.store.list_accounts(),
            max_messages=max_messages,
            max_bytes=max_bytes,
        )
        with self.audit.noting(Action.ACCOUNT_CREATED, account.id, by) as entry:
            await self.store.add_account(account, entry)
        return account

    async def draft(self, name: str) -> Account:
        """Return a new account without storing it. Operators are created on the machine itself.

        :raises InvalidParameter: the name is empty.
        :raises AccountNameTaken: an account with this name exists.
        """
        name = require_name(name)
        if await self.store.find_account(name) is not None:
            raise AccountNameTaken(f"an account named {name!r} already exists")
        return Account(
            id=AccountId(new_short_id(self.clocks.random_bytes)),
            name=name,
            mailbox_name=new_mailbox_name(self.clocks.random_bytes),
            is_operator=False,
            created_at=self.clocks.now(),
            max_messages=None,
            max_bytes=None,
        )

    async def find(self, name: str) -> Account:
        """Return the account with a name. For the operator, whom the error tells similar names.

        :raises AccountNotFound: no account has this name.
        """
        account = await self.store.find_account(name)
        if account is None:
            similar = nearest_word(name, [known.name for known in await self.accounts()])
            hint = f"did you mean {similar!r}?" if similar else "`mailcheck account list` shows all"
            raise AccountNotFound(f"no account named {name!r} exists; {hint}")
        return account

    async def first(self) -> Account | None:
        """Return the account that the bootstrap or the operator has made first, if it exists."""
        return await self.store.first_account()

    async def meant_by(self, name: str) -> Account:
        """Return the account that an option names: the one that had the name at the first use.

        :raises AccountNotFound: no account had this name, or it was deleted.
        """
        account = await self.store.bind(name)
        if account is None:
            raise AccountNotFound(f"no account named {name!r} exists")
        return account

    async def accounts(self) -> list[Account]:
        """List all accounts, oldest first."""
        return await self.store.list_accounts()

    async def uses(self) -> list[AccountUse]:
        """List all accounts with what they use, oldest first."""
        return await self.store.list_uses()

    async def get(self, account_id: str) -> Account:
        """Return the account with an id.

        :raises AccountNotFound: no account has this id.
        """
        account = await self.store.get_account(account_id)
        if account is None:
            raise AccountNotFound("this account does not exist, or was deleted")
        return account

    async def rename(self, account: Account, name: str, by: Actor = COMMAND_LINE) -> None:
        """Rename an account. Its addresses, keys and password stay.

        :raises InvalidParameter: the name is empty.
        :raises AccountNameTaken: another account has the name, or a similar one.
        """
        name = require_name(name)
        was = f"was {account.name}"
        with self.audit.noting(Action.ACCOUNT_RENAMED, account.id, by, was) as entry:
            await self.store.rename(account.id, name, entry)

    async def set_limits(
        self, account: Account, limits: AccountLimits, by: Actor = COMMAND_LINE
    ) -> None:
        """Set the quota and the retention of an account.

        The retention applies to mail that arrives from now on.

        :raises InvalidParameter: a number is out of range.
        """
        _require_limits(limits)
        changed = ", ".join(
            f"{name} {'default' if value is None else value}"
            for name, value in asdict(limits).items()
        )
        with self.audit.noting(Action.LIMITS_CHANGED, account.id, by, changed) as entry:
            await self.store.set_limits(account.id, limits, entry)

    async def make_operator(self, account: Account, by: Actor = COMMAND_LINE) -> None:
        """Transfer the operator's role to an account.

        :raises AccountDisabled: the account is disabled.
        :raises InvalidParameter: the account is a project.
        """
        if account.disabled_at is not None:
            raise AccountDisabled(f"the account {account.name!r} is disabled: enable it first")
        account.require_person()
        with self.audit.noting(Action.OPERATOR_CHANGED, account.id, by) as entry:
            await self.store.make_operator(account.id, entry)

    async def disable(self, account: Account, by: Actor = COMMAND_LINE) -> None:
        """Disable an account: end its sessions, and refuse its keys and its mail.

        Nothing is deleted.

        :raises AccountIsOperator: the account has the operator's role.
        """
        _require_other(account)
        with self.audit.noting(Action.ACCOUNT_DISABLED, account.id, by) as entry:
            await self.store.disable(account.id, entry)

    async def access_of(self, account: Account) -> PersonalAccess:
        """Count what ends if an account is disabled, and the keys that go on in projects."""
        return await self.store.access_of(account.id, self.clocks.now())

    async def end_access(self, account: Account, by: Actor = COMMAND_LINE) -> PersonalAccess:
        """End the sessions of a person, and the access that the person has given to programs.

        Return what there was. The person can sign in again.
        """
        with self.audit.noting(Action.ACCESS_ENDED, account.id, by) as entry:
            return await self.store.end_access(account.id, entry)

    async def enable(self, account: Account, by: Actor = COMMAND_LINE) -> None:
        """Enable a disabled account."""
        with self.audit.noting(Action.ACCOUNT_ENABLED, account.id, by) as entry:
            await self.store.enable(account.id, entry)

    async def holdings(self, account: Account) -> Holdings:
        """Count what is deleted together with an account.

        :raises AccountNotFound: the account has been deleted.
        """
        found = await self.removal.holdings(account.id)
        if found is None:
            raise AccountNotFound(f"no account named {account.name!r} exists")
        return found

    async def delete(self, account: Account, by: Actor = COMMAND_LINE) -> Holdings:
        """Delete an account with all of its data; return what was deleted.

        The account is disabled first, so that an interrupted deletion can be repeated.

        :raises AccountIsOperator: the account has the operator's role.
        :raises AccountNotFound: the account has been deleted.
        :raises OnlyOwner: a project would have no owner left.
        """
        sole = await self.removal.projects_without(account.id)
        if sole:
            raise OnlyOwner(
                f"{account.name!r} is the only owner of the project {sole[0]!r}: "
                "delete the project, or make another member an owner"
            )
        await self.disable(account, by)
        holdings = await self.holdings(account)
        await delete_in_batches(partial(self.removal.delete_messages, account.id), BATCH)
        counts = ", ".join(f"{number} {name}" for name, number in holdings if number)
        detail = f"{account.name}: {counts or 'empty'}"
        with self.audit.noting(Action.ACCOUNT_DELETED, None, by, detail) as entry:
            await self.removal.delete(account.id, entry)
        return holdings

    async def issue_key(
        self,
        account: Account,
        key_name: str,
        *,
        per_minute: int | None = None,
        per_day: int | None = None,
        preset: str | None = None,
        rights: Rights = ALL_RIGHTS,
        expires_at: Instant | None = None,
        made_by: AccountId | None = None,
        by: Actor = COMMAND_LINE,
    ) -> IssuedKey:
        """Issue an API key. ``preset`` is a secret that the operator has chosen.

        ``rights`` limits what the key may do, and ``expires_at`` until when. ``made_by`` is the
        person who makes it, if a person does.

        :raises InvalidParameter: the preset secret is too short.
        :raises NotOperator: only keys of the operator's account can have the scope ``operator``.
        """
        if Scope.OPERATOR in rights.granted:
            account.require_operator("have a key with the scope operator")
        if preset is not None and not is_possible_key(preset):
            raise InvalidParameter(
                "bootstrap_key",
                f"bootstrap_key needs at least {MIN_PRESET_KEY} printable ASCII characters",
            )
        secret = preset or new_api_key(self.clocks.random_bytes)
        key = ApiKey(
            id=KeyId(new_short_id(self.clocks.random_bytes)),
            account_id=account.id,
            name=key_name,
            hint=secret[:HINT_LENGTH],
            created_at=self.clocks.now(),
            last_used_at=None,
            revoked_at=None,
            per_minute=per_minute,
            per_day=per_day,
            expires_at=expires_at,
            made_by=made_by,
            **columns_of_rights(rights),
        )
        with self.audit.noting(Action.KEY_ISSUED, account.id, by, key.described) as entry:
            await self.store.add_key(key, digest_secret(secret), entry)
        return IssuedKey(key, secret)

    async def has_key(self, secret: str) -> bool:
        """Return whether a key was ever issued, including revoked keys."""
        return await self.store.find_key(digest_secret(secret)) is not None

    async def list_keys(self, account: Account) -> list[ApiKey]:
        """List the keys of an account, oldest first."""
        return await self.store.list_keys(account.id)

    async def makers_of(self, account: Account) -> Mapping[KeyId, KeyMaker]:
        """Return who has made the keys of an account, as far as it is known."""
        return await self.store.makers_of(account.id)

    async def maker_of(self, key_id: KeyId) -> AccountId | None:
        """Return the person who has made a key, if it is known."""
        key = await self.store.get_key(key_id)
        return None if key is None else key.made_by

    async def find_key(self, key_id: str) -> ApiKey:
        """Return a key by its id.

        :raises KeyNotFound: there is none.
        """
        key = await self.store.get_key(KeyId(key_id))
        if key is None:
            raise KeyNotFound(f"no key has the id {key_id!r}; `mailcheck key list` shows the ids")
        return key

    async def rotate_key(
        self, key: ApiKey, overlap: int, made_by: AccountId | None, by: Actor
    ) -> RotatedKey:
        """Issue a key with the same name, rights and limits in place of a valid one.

        The older key is valid for another ``overlap`` milliseconds. A key that expires is followed
        by one that is valid for the same time.

        :raises KeyNotFound: the key is not valid any more, or belongs to a program.
        """
        now, secret = self.clocks.now(), new_api_key(self.clocks.random_bytes)
        lifetime = None if key.expires_at is None else key.expires_at - key.created_at
        following = replace(
            key,
            id=KeyId(new_short_id(self.clocks.random_bytes)),
            hint=secret[:HINT_LENGTH],
            created_at=now,
            last_used_at=None,
            expires_at=None if lifetime is None else Instant(now + lifetime),
            made_by=made_by,
        )
        until = Instant(now + overlap)
        detail = f"{key.id} until {format_instant(until)}, then {following.described}"
        with self.audit.noting(Action.KEY_ROTATED, key.account_id, by, detail) as entry:
            older = await self.store.rotate_key(
                key.id, until, following, digest_secret(secret), entry
            )
        if older is None:
            raise KeyNotFound("only a valid key can be rotated, and none of a connected program")
        return RotatedKey(following, secret, older)

    async def set_fault(self, key_id: str, every: int | None) -> None:
        """Reject every Nth mail that a key submits with 451, or none (``None``).

        :raises InvalidParameter: ``every`` is out of range.
        :raises KeyNotFound: no valid key has this id.
        """
        if every is not None and not 1 <= every <= LARGEST_EVERY:
            problem = f"every must be null or an integer from 1 to {LARGEST_EVERY}; got {every}"
            raise InvalidParameter("every", problem)
        if not await self.store.set_key_fault(KeyId(key_id), every):
            raise KeyNotFound(f"no valid key has the id {key_id!r}")

    async def revoke_key(self, key_id: str, by: Actor = COMMAND_LINE) -> None:
        """Revoke a key permanently.

        :raises KeyNotFound: no key has this id, or it is already revoked.
        """
        with self.audit.noting(Action.KEY_REVOKED, None, by) as entry:
            key = await self.store.revoke_key(KeyId(key_id), entry)
        if key is None:
            raise KeyNotFound(
                f"no key with the id {key_id!r} can be revoked; `mailcheck key list` shows the ids"
            )


def require_name(name: str) -> str:
    """Return the name of an account without surrounding spaces.

    :raises InvalidParameter: the name is empty.
    """
    name = name.strip()
    if not name:
        raise InvalidParameter("name", "the account name is empty; enter a name")
    return name


def _require_limits(limits: AccountLimits) -> None:
    for name, value in asdict(limits).items():
        lowest = SHORTEST_RETENTION if name == "retention_hours" else 1
        highest = LONGEST_RETENTION if name == "retention_hours" else MAX_QUOTA
        if value is not None and not lowest <= value <= highest:
            problem = f"{name} must be an integer from {lowest} to {highest}; got {value}"
            raise InvalidParameter(name, problem)


def _require_other(account: Account) -> None:
    if account.is_operator:
        raise AccountIsOperator(
            f"{account.name!r} is the operator's account: give that role to another account first"
        )
