"""Sign-up: open to everyone, by invitation only, or closed."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.accounts import Account, RequestLimits
from mailcheck.core.audit import COMMAND_LINE, Action, Actor
from mailcheck.core.errors import (
    AccountNameTaken,
    InvalidParameter,
    InvitationInvalid,
    RegistrationClosed,
)
from mailcheck.core.identifiers import digest_secret, new_session_secret
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.keys import key_of
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.accounts.passwords import PasswordHasher, require_strong
from mailcheck.operations.accounts.sign_in import MAX_NAME, Attempts, SignedIn, SignIn
from mailcheck.ports.clocks import ClockAndRandomness, Now
from mailcheck.store.accounts.account_store import PasswordStore, look_alike

INVITATION_DAYS = 7
"""Days until an unused invitation expires."""


class Invitations:
    """Creates and verifies invitations. The store has only their digests."""

    def __init__(
        self, store: PasswordStore, audit: Audit, clock_and_randomness: ClockAndRandomness
    ) -> None:
        self._store = store
        self._audit = audit
        self._now = clock_and_randomness.now
        self._random_bytes = clock_and_randomness.random_bytes

    async def invite(self, by: Actor = COMMAND_LINE) -> str:
        """Create an invitation and return the code for its link."""
        code, now = new_session_secret(self._random_bytes), self._now()
        expires_at = Instant(now + INVITATION_DAYS * DAY)
        await self._store.add_invitation(digest_secret(code), now, expires_at)
        await self._audit.note(Action.PERSON_INVITED, None, by)
        return code

    async def invite_as(self, account: Account, by: Actor) -> str:
        """Create an invitation on behalf of an account.

        :raises NotOperator: the account is not an operator.
        """
        account.require_operator("invite people")
        return await self.invite(by)

    async def require(self, code: str) -> None:
        """Verify that an invitation can be used.

        :raises InvitationInvalid: the invitation is unknown, used or expired.
        """
        if not await self._store.has_invitation(digest_secret(code), self._now()):
            raise InvitationInvalid("this invitation has been used or has expired")


ATTEMPTS = RequestLimits(per_minute=20, per_day=500)
"""Sign-up attempts per client address. Most are rejected for the name or the password."""


class Registration(StrEnum):
    """Policy for new accounts."""

    OPEN = "open"
    INVITE = "invite"
    CLOSED = "closed"


class NameRules(Struct, frozen=True):
    """Which names people may choose: none that is similar to a ``reserved`` one.

    Only the operator can add such accounts.
    """

    reserved: tuple[str, ...] = ()

    def require(self, name: str, *, is_assigned: bool = False) -> str:
        """Return the name of a new account or project without surrounding spaces.

        :param is_assigned: whether the operator chooses the name, which may be reserved then.

        :raises InvalidParameter: the name is empty, too long, or has invisible characters.
        :raises AccountNameTaken: the name is reserved.
        """
        name = name.strip()
        if not name or len(name) > MAX_NAME:
            raise InvalidParameter("name", f"the name must have 1 to {MAX_NAME} characters")
        if not name.isprintable():
            raise InvalidParameter("name", "the name contains invisible characters")
        if not is_assigned and any(look_alike(name, one) for one in self.reserved):
            problem = f"the name {name!r} is reserved by the operator of this service"
            raise AccountNameTaken(f"{problem}; choose another one")
        return name


class RegistrationRules(Struct, frozen=True):
    """The policy for new accounts, and how many one client address may create in a UTC day.

    With ``is_first_ours``, the daemon creates the first account and issues a key for it.
    """

    mode: Registration
    per_address: int
    names: NameRules = NameRules()
    is_first_ours: bool = False


class Register:
    """The operations of visitors without an account."""

    def __init__(
        self,
        rules: RegistrationRules,
        accounts: ManageAccounts,
        store: PasswordStore,
        hasher: PasswordHasher,
        sign_in: SignIn,
        invitations: Invitations,
        attempts: Attempts,
        audit: Audit,
        now: Now,
    ) -> None:
        self.rules = rules
        self._accounts = accounts
        self._store = store
        self._hasher = hasher
        self._sign_in = sign_in
        self._invitations = invitations
        self._attempts = attempts
        self._audit = audit
        self._now = now

    async def require_open(self, invitation: str) -> None:
        """Verify that a visitor with this invitation, or without one (empty), may sign up.

        :raises RegistrationClosed: sign-up is closed, needs an invitation, or is not ready yet.
        :raises InvitationInvalid: the invitation is unknown, used or expired.
        """
        if self.rules.is_first_ours and not await self._accounts.accounts():
            raise RegistrationClosed("the service is starting; try again in a moment")
        if self.rules.mode is Registration.CLOSED:
            raise RegistrationClosed("only the operator of this service can create accounts")
        if self.rules.mode is Registration.INVITE:
            if not invitation:
                raise RegistrationClosed("you need an invitation to sign up")
            await self._invitations.require(invitation)

    async def register(self, name: str, password: str, invitation: str, client: str) -> SignedIn:
        """Create an account and sign in to it. ``client`` is the address of the browser.

        :raises RegistrationClosed: sign-up is closed or needs an invitation.
        :raises InvitationInvalid: the invitation is unknown, used or expired.
        :raises InvalidParameter: the name or the password is not acceptable.
        :raises AccountNameTaken: the name, or a similar one, is taken or reserved.
        :raises LimitExceeded: this address has created the maximum number of accounts.
        :raises Overloaded: too many people are signing in.
        """
        await self._attempts.count(key_of("sign-up from", client), ATTEMPTS, "too many attempts")
        await self.require_open(invitation)
        name = self.rules.names.require(name)
        require_strong(password, name)
        # The first visitor may be a stranger. Operators are created on the machine itself.
        account = replace(await self._accounts.draft(name), is_operator=False)
        number = self.rules.per_address
        await self._attempts.count(
            key_of("accounts from", client),
            RequestLimits(per_minute=number, per_day=number),
            "too many accounts have been created from your address",
        )
        hashed = await self._hasher.write(password, client)
        is_invited = self.rules.mode is Registration.INVITE
        digest = digest_secret(invitation) if is_invited else None
        await self._store.register(account, hashed, digest, self._now())
        await self._audit.note(Action.ACCOUNT_CREATED, account.id, Actor(name, client), "sign-up")
        return await self._sign_in.open(account, client)
