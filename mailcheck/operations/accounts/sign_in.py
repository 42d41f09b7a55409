"""Signing in with name and password, and changing the password."""

from dataclasses import dataclass

from mailcheck.core.accounts import Account, RequestLimits
from mailcheck.core.errors import LimitExceeded, SignInFailed
from mailcheck.operations.accounts.attempts import Attempts
from mailcheck.operations.accounts.dashboard_ports import PasswordStore
from mailcheck.operations.accounts.dashboard_sessions import DashboardSessions
from mailcheck.operations.accounts.passwords import PasswordHasher, require_fit
from mailcheck.operations.journals import AccessJournal
from mailcheck.operations.ports import Now

PER_ADDRESS = RequestLimits(per_minute=10, per_day=300)
"""Attempts to sign in from one client address: an office signs in, a list of passwords does not."""

PER_NAME = RequestLimits(per_minute=10, per_day=5_000)
"""Attempts for one account, from wherever: nobody is locked out by others for long."""

MAX_NAME = 64
"""Characters that the name of an account may have."""

TOO_MANY = "too many attempts to sign in"


@dataclass(frozen=True, slots=True)
class SignedIn:
    """An account, and the secret of the session that was opened for it."""

    account: Account
    secret: str


class SignIn:
    """The operations of who has a password."""

    def __init__(
        self,
        store: PasswordStore,
        hasher: PasswordHasher,
        sessions: DashboardSessions,
        attempts: Attempts,
        now: Now,
        journal: AccessJournal,
    ) -> None:
        self._store = store
        self._hasher = hasher
        self._sessions = sessions
        self._attempts = attempts
        self._now = now
        self._journal = journal

    async def sign_in(self, name: str, password: str, client: str) -> SignedIn:
        """Open a session for who knows the password; ``client`` is an address.

        :raises SignInFailed: no account has this name and this password.
        :raises LimitExceeded: too many attempts from this address, or for this name.
        :raises Overloaded: too many people are signing in.
        """
        name = name.strip()
        try:
            await self._attempts.count(f"sign-in from {client}", PER_ADDRESS, TOO_MANY)
            await self._attempts.count(_subject(name), PER_NAME, TOO_MANY)
            account = await self._prove(name, password)
        except (SignInFailed, LimitExceeded) as failure:
            self._journal.note_failed_access("sign-in", client, str(failure))
            raise
        return await self.open(account)

    async def open(self, account: Account) -> SignedIn:
        """Open a session for who has proved who they are."""
        return SignedIn(account, await self._sessions.open(account.id))

    async def change_password(self, account: Account, old: str, new: str) -> SignedIn:
        """Change a password: all sessions end, and a new one is opened.

        :raises SignInFailed: the old password is wrong.
        :raises InvalidParameter: the new one is too easily guessed.
        :raises LimitExceeded: too many attempts.
        """
        await self._attempts.count(_subject(account.name), PER_NAME, TOO_MANY)
        require_fit(new, account.name)
        kept = await self._store.find_password(account.name)
        if not await self._hasher.matches(old, kept.password_hash if kept else None):
            raise SignInFailed("that is not your present password")
        await self.set_password(account, new)
        return await self.open(account)

    async def set_password(self, account: Account, new: str) -> None:
        """Set a password without asking for the old one: for the operator.

        :raises InvalidParameter: it is too easily guessed.
        """
        written = await self.hash_password(new, account.name)
        await self._store.set_password(account.id, written, self._now())

    async def hash_password(self, new: str, name: str) -> str:
        """Hash a password for the account of that name, which need not exist yet.

        :raises InvalidParameter: it is too easily guessed.
        """
        require_fit(new, name)
        return await self._hasher.write(new)

    async def set_first_hash(self, account: Account, written: str) -> bool:
        """Set the password that `hash_password` has hashed; false when the account has one."""
        return await self._store.set_first_password(account.id, written, self._now())

    async def has_password(self, account: Account) -> bool:
        """Tell whether an account has any password."""
        kept = await self._store.find_password(account.name)
        return kept is not None and kept.password_hash is not None

    async def is_password(self, account: Account, password: str) -> bool:
        """Tell whether this is the account's password; nothing is counted."""
        kept = await self._store.find_password(account.name)
        return await self._hasher.matches(password, kept.password_hash if kept else None)

    async def _prove(self, name: str, password: str) -> Account:
        kept = await self._store.find_password(name) if name else None
        written = kept.password_hash if kept else None
        is_right = await self._hasher.matches(password, written)
        if kept is None or written is None or not is_right:
            raise SignInFailed("no account has this name and this password")
        if self._hasher.is_outdated(written):
            renewed = await self._hasher.write(password)
            await self._store.renew_hash(kept.account.id, written, renewed)
        return kept.account


def _subject(name: str) -> str:
    return f"sign-in as {name.casefold()[:MAX_NAME]}"
