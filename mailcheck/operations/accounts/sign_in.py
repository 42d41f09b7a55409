"""Signing in with name and password, dashboard sessions, and changing the password."""

import hmac
from functools import partial

from msgspec import Struct, field

from mailcheck.core.accounts import Account, RequestLimits
from mailcheck.core.audit import COMMAND_LINE, Action, Actor
from mailcheck.core.errors import (
    AccountDisabled,
    InvalidParameter,
    LimitExceeded,
    PasskeyNeeded,
    SignInFailed,
)
from mailcheck.core.identifiers import (
    AccountId,
    digest_secret,
    is_device_secret,
    new_device_secret,
    new_session_secret,
)
from mailcheck.core.instants import DAY, MINUTE, Instant
from mailcheck.core.memory.client_limits import MINUTE_WINDOW
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.core.memory.recent import Recent
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.accounts.authenticate import RequestMeter
from mailcheck.operations.accounts.passwords import PasswordHasher, require_strong
from mailcheck.ports.clocks import ClockAndRandomness, Now
from mailcheck.ports.journals import AccessJournal
from mailcheck.store.accounts.identity_store import IdentityStore
from mailcheck.store.accounts.sign_in_store import (
    ListedSession,
    PasswordStore,
    SessionRow,
    SessionStore,
    session_id,
)


class Attempts(Struct, frozen=True, eq=False):
    """Counts attempts and rejects those over a limit."""

    meter: RequestMeter
    now: Now

    async def count(self, subject: Key, limits: RequestLimits, what: str) -> None:
        """Count an attempt of a subject.

        :param what: beginning of the error message, such as "too many attempts to sign in".
        :raises LimitExceeded: the limit is reached. The message says when to try again.
        """
        usage = await self.meter.count(subject, limits)
        if usage.exhausted is None:
            return
        seconds = usage.exhausted.seconds_left(self.now())
        is_short = usage.exhausted is MINUTE_WINDOW
        when = f"in {seconds} second{'' if seconds == 1 else 's'}" if is_short else "tomorrow (UTC)"
        raise LimitExceeded(f"{what}; try again {when}", seconds)


IDLE_LIFE = 7 * DAY
"""Time until an unused session expires."""

WHOLE_LIFE = 30 * DAY
"""Time until a session expires, however much it is used."""

NOTING_INTERVAL = 5 * MINUTE
"""Time between two recorded uses of a session, so that not every page causes a write."""


class DashboardSessions(Struct, frozen=True, eq=False):
    """The operations on dashboard sessions. The store has only digests of their secrets."""

    store: SessionStore
    audit: Audit
    clocks: ClockAndRandomness

    async def open(self, account_id: AccountId, by: Actor, *, is_company: bool = False) -> str:
        """Open a session for a person and return its new secret.

        :param is_company: whether the company's sign-in service has identified the person.
        """
        secret, now = new_session_secret(self.clocks.random_bytes), self.clocks.now()
        digest = digest_secret(secret)
        ends_at = _end(now, now)
        detail = "company account" if is_company else ""
        with self.audit.noting(Action.SIGNED_IN, account_id, by, detail) as entry:
            await self.store.open_session(digest, account_id, ends_at, entry, is_company)
        return secret

    async def of_account(self, account_id: AccountId) -> list[ListedSession]:
        """List the sessions of an account, the last used first."""
        return await self.store.list_sessions(account_id, self.clocks.now())

    async def end_listed(self, account_id: AccountId, listed_id: str, by: Actor) -> bool:
        """End a session of an account by its id in the list; return whether there was one."""
        with self.audit.noting(Action.SESSION_ENDED, account_id, by, listed_id) as entry:
            return await self.store.end_listed(account_id, listed_id, entry)

    async def find(self, secret: str) -> SessionRow | None:
        """Return a session with its account, or `None` if it is unknown or expired."""
        digest, now = digest_secret(secret), self.clocks.now()
        session = await self.store.find_session(digest, now)
        if session is None:
            return None
        if now - session.seen_at >= NOTING_INTERVAL:
            await self.store.note_session_use(digest, now, _end(session.created_at, now))
        return session

    async def note_confirmation(self, secret: str) -> None:
        """Record that the person of a session has confirmed who they are."""
        await self.store.note_confirmation(digest_secret(secret), self.clocks.now())

    async def end(self, secret: str, account_id: AccountId, by: Actor) -> bool:
        """End a session of an account, if it exists. Return whether the company opened it."""
        with self.audit.noting(Action.SIGNED_OUT, account_id, by) as entry:
            return await self.store.end_session(digest_secret(secret), entry)

    @staticmethod
    def id_of(secret: str) -> str:
        """Return the id of a session in the list."""
        return session_id(digest_secret(secret))


def _end(created_at: Instant, used_at: Instant) -> Instant:
    return Instant(min(created_at + WHOLE_LIFE, used_at + IDLE_LIFE))


PER_ADDRESS = RequestLimits(per_minute=20, per_day=300)
"""Sign-in attempts per client address: enough for an office, too few for a password list."""

PER_NAME_AND_ADDRESS = RequestLimits(per_minute=10, per_day=50)
"""Sign-in attempts per account and client address: enough for typing mistakes, too few for
guessing."""

PER_NAME = RequestLimits(per_minute=30, per_day=5_000)
"""Sign-in attempts per account by unknown browsers, so that many addresses do not guess faster.
Strangers can exhaust this limit. A browser that has signed in before is exempt from it."""

PER_DEVICE = RequestLimits(per_minute=10, per_day=100)
"""Sign-in attempts of a known browser, instead of all other limits. It also limits the password
changes of an account."""

MAX_NAME = 64
"""Maximum length of an account name, in characters."""

LINK_MINUTES = 30
"""Minutes until an unused sign-in link expires."""

TOO_MANY = "too many attempts to sign in"


KNOWN_PASSWORDS = 1_000
"""Maximum number of verified passwords that are remembered, as keyed digests."""

KNOWN_FOR = DAY
"""Time after its last use in which a program uses a verified password without a hash of scrypt, and
without an attempt. A program that polls every minute would otherwise use up the attempts of its
account, and so would strangers behind the same address."""


class SignedIn(Struct, frozen=True):
    """An account and the secret of the session that was opened for it.

    ``device`` identifies the browser when it signs in again. It grants no access by itself.
    """

    account: Account
    secret: str
    device: str


class SignIn(Struct, frozen=True, eq=False):
    """The operations of accounts that have a password.

    :param digest_key: a random secret of the process, for digests of verified passwords.
    """

    store: PasswordStore
    hasher: PasswordHasher
    sessions: DashboardSessions
    audit: Audit
    attempts: Attempts
    journal: AccessJournal
    clocks: ClockAndRandomness
    links: IdentityStore
    digest_key: bytes
    has_passwords: bool = True
    _verified: Recent[bytes, bool] = field(
        default_factory=partial(Recent, KNOWN_PASSWORDS, KNOWN_FOR)
    )

    async def sign_in(self, name: str, password: str, client: str, device: str = "") -> SignedIn:
        """Open a session if the password is right. ``client`` is the address of the browser.

        ``device`` is the token from an earlier sign-in with this browser, or empty.

        :raises SignInFailed: no account has this name and password.
        :raises AccountDisabled: the password is right, but the account is disabled.
        :raises PasskeyNeeded: the password is right, but the account requires a passkey too.
        :raises LimitExceeded: too many attempts by this browser, from this address or for this
            name.
        :raises Overloaded: too many people are signing in.
        """
        try:
            account = await self.verify(name, password, client, device)
        except (SignInFailed, LimitExceeded, AccountDisabled) as failure:
            self.journal.note_failed_access("sign-in", client, str(failure))
            raise
        return await self.open(account, client)

    async def verify(self, name: str, password: str, client: str, device: str = "") -> Account:
        """Count an attempt, and return the account with this name and password; see `sign_in`."""
        name = name.strip()
        await self._count(name, client, device)
        if not self.has_passwords:
            raise SignInFailed("passwords are switched off: sign in with your company account")
        account = await self._prove(name, password, client)
        account.require_enabled()
        if await self.needs_passkey(account):
            raise PasskeyNeeded(
                "this account needs a passkey, too; programs use an API key", account.id
            )
        return account

    async def needs_passkey(self, account: Account) -> bool:
        """Return whether the password of an account alone does not sign in."""
        kept = await self.store.find_password(account.name)
        return kept is not None and kept.needs_passkey

    async def count_failed_key(self, client: str) -> None:
        """Count a wrong API key that a program sent as its password.

        :raises LimitExceeded: too many attempts from this address.
        """
        await self.attempts.count(key_of("sign-in from", client), PER_ADDRESS, TOO_MANY)

    async def create_link(self, account: Account, by: Actor = COMMAND_LINE) -> str:
        """Return the code of a link that signs in to an account once, within `LINK_MINUTES`.

        :raises InvalidParameter: the account is a project.
        :raises AccountDisabled: the account is disabled.
        """
        if account.is_project:
            raise InvalidParameter("name", f"{account.name!r} is a project: its members sign in")
        if account.disabled_at is not None:
            raise AccountDisabled(f"the account {account.name!r} is disabled: enable it first")
        code, now = new_session_secret(self.clocks.random_bytes), self.clocks.now()
        expires_at = Instant(now + LINK_MINUTES * MINUTE)
        with self.audit.noting(Action.SIGN_IN_LINK_CREATED, account.id, by) as entry:
            await self.links.add_link(digest_secret(code), account.id, expires_at, entry)
        return code

    async def follow_link(self, code: str, client: str) -> SignedIn:
        """Open a session with the code of a link. ``client`` is as in `sign_in`.

        :raises SignInFailed: the link was used, has expired, or never existed.
        :raises AccountDisabled: the account is disabled.
        :raises LimitExceeded: too many attempts from this address.
        """
        await self.attempts.count(key_of("sign-in from", client), PER_ADDRESS, TOO_MANY)
        account = await self.links.use_link(digest_secret(code), self.clocks.now())
        if account is None:
            self.journal.note_failed_access("sign-in", client, "invalid sign-in link")
            raise SignInFailed("this link was used before, or has expired: ask for a new one")
        account.require_enabled()
        return await self.open(account, client)

    async def open(self, account: Account, client: str, *, is_company: bool = False) -> SignedIn:
        """Open a session for an authenticated account. ``client`` is as in `sign_in`."""
        written = await self._hash_of(account)
        device = new_device_secret(written, self.clocks.random_bytes) if written else ""
        by = Actor(account.name, client)
        secret = await self.sessions.open(account.id, by, is_company=is_company)
        return SignedIn(account, secret, device)

    async def require_password(self, account: Account, password: str) -> None:
        """Check the password of a person who is signed in.

        :raises SignInFailed: it is wrong.
        :raises LimitExceeded: too many attempts.
        """
        await self.attempts.count(key_of("password of", account.id), PER_DEVICE, TOO_MANY)
        written = await self._hash_of(account)
        if not await self.hasher.matches(password, written, account.id):
            raise SignInFailed("the current password is wrong")

    async def change_password(self, account: Account, old: str, new: str, client: str) -> SignedIn:
        """Change a password, end all sessions and open a new one.

        :raises SignInFailed: the current password is wrong.
        :raises InvalidParameter: the new password is too easy to guess.
        :raises LimitExceeded: too many attempts.
        """
        require_strong(new, account.name)
        await self.require_password(account, old)
        await self.set_password(account, new, Actor(account.name, client))
        return await self.open(account, client)

    async def set_password(self, account: Account, new: str, by: Actor = COMMAND_LINE) -> None:
        """Set a password without verifying the current one. For the operator.

        :raises InvalidParameter: the password is too easy to guess, or the account is a project.
        """
        if account.is_project:
            raise InvalidParameter("name", f"{account.name!r} is a project: its members sign in")
        require_strong(new, account.name)
        written = await self.hasher.write(new, account.id)
        with self.audit.noting(Action.PASSWORD_CHANGED, account.id, by) as entry:
            await self.store.set_password(account.id, written, entry)

    async def set_first_password(
        self, account: Account, new: str, by: Actor = COMMAND_LINE
    ) -> bool:
        """Set a generated password (`new_password`). Return whether the account had none."""
        written = await self.hasher.write_random(new)
        with self.audit.noting(Action.PASSWORD_CHANGED, account.id, by, "the first one") as entry:
            return await self.store.set_first_password(account.id, written, entry)

    async def has_password(self, account: Account) -> bool:
        """Return whether an account has a password."""
        return await self._hash_of(account) is not None

    async def is_password(self, account: Account, password: str) -> bool:
        """Return whether this is the password of an account, without counting an attempt."""
        return await self.hasher.matches(password, await self._hash_of(account))

    async def _hash_of(self, account: Account) -> str | None:
        kept = await self.store.find_password(account.name)
        return kept.password_hash if kept else None

    async def _count(self, name: str, client: str, device: str) -> None:
        kept = await self.store.find_password(name) if device else None
        if kept and kept.password_hash and is_device_secret(device, kept.password_hash):
            digest = digest_secret(device).hex()
            await self.attempts.count(key_of("sign-in by device", digest), PER_DEVICE, TOO_MANY)
            return
        folded = name.casefold()
        for counted, limits in (
            (key_of("sign-in from", client), PER_ADDRESS),
            (key_of("sign-in as and from", folded, client), PER_NAME_AND_ADDRESS),
            (key_of("sign-in as", folded), PER_NAME),
        ):
            await self.attempts.count(counted, limits, TOO_MANY)

    async def _prove(self, name: str, password: str, client: str) -> Account:
        kept = await self.store.find_password(name) if name else None
        written = kept.password_hash if kept else None
        is_right = await self.hasher.matches(password, written, client)
        if kept is None or written is None or not is_right:
            raise SignInFailed("no account has this name and password")
        if self.hasher.is_outdated(written):
            renewed = await self.hasher.write(password, client)
            await self.store.renew_hash(kept.account.id, written, renewed)
            written = renewed
        self.note_verified(written, password)
        return kept.account

    def has_verified(self, password_hash: str | None, password: str) -> bool:
        """Return whether a password was verified before, on a page or by a program."""
        digest = self._digest(password_hash or "", password)
        return bool(password_hash and self._verified.get(digest, self.clocks.now()))

    def note_verified(self, password_hash: str, password: str) -> None:
        """Record a use of a verified password."""
        self._verified.put(self._digest(password_hash, password), True, self.clocks.now())

    def _digest(self, password_hash: str, password: str) -> bytes:
        text = f"{password_hash}\0{password}".encode("utf-8", "surrogatepass")
        return hmac.digest(self.digest_key, text, "sha256")
