"""Sign-up: open to everyone, by invitation only, or closed."""

from msgspec import Struct

from mailcheck.core.accounts import Account, RequestLimits
from mailcheck.core.audit import COMMAND_LINE, Action, Actor
from mailcheck.core.errors import InvalidParameter, InvitationInvalid, RegistrationClosed
from mailcheck.core.identifiers import digest_secret, new_session_secret
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.memory.keys import key_of
from mailcheck.core.projects import Invitation, Membership
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.accounts.passwords import PasswordHasher, require_strong
from mailcheck.operations.accounts.projects import ManageProjects
from mailcheck.operations.accounts.registration_rules import (
    INVITATION_DAYS,
    Registration,
    RegistrationRules,
)
from mailcheck.operations.accounts.sign_in import Attempts, SignedIn, SignIn
from mailcheck.ports.clocks import ClockAndRandomness, Now
from mailcheck.store.accounts.sign_in_store import PasswordStore


class Invitations(Struct, frozen=True, eq=False):
    """Creates and verifies invitations. The store has only their digests."""

    store: PasswordStore
    audit: Audit
    clocks: ClockAndRandomness

    async def invite(self, by: Actor = COMMAND_LINE) -> str:
        """Create an invitation and return the code for its link."""
        code, now = new_session_secret(self.clocks.random_bytes), self.clocks.now()
        expires_at = Instant(now + INVITATION_DAYS * DAY)
        with self.audit.noting(Action.PERSON_INVITED, None, by) as entry:
            await self.store.add_invitation(digest_secret(code), expires_at, entry)
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
        if not await self.store.has_invitation(digest_secret(code), self.clocks.now()):
            raise InvitationInvalid("this invitation has been used or has expired")


ATTEMPTS = RequestLimits(per_minute=20, per_day=500)
"""Sign-up attempts per client address. Most are rejected for the name or the password."""


class Registered(Struct, frozen=True):
    """A new account that is signed in, and the project that it has joined by its invitation."""

    signed_in: SignedIn
    joined: Membership | None


class Register(Struct, eq=False):
    """The operations of visitors without an account."""

    rules: RegistrationRules
    accounts: ManageAccounts
    store: PasswordStore
    hasher: PasswordHasher
    sign_in: SignIn
    invitations: Invitations
    projects: ManageProjects
    attempts: Attempts
    audit: Audit
    now: Now

    def can_register(self, invited: Invitation | None) -> bool:
        """Return whether a visitor may sign up who has an invitation to a project, or none."""
        is_invited = self.rules.mode is Registration.INVITE and bool(invited and invited.address)
        return self.rules.mode is Registration.OPEN or is_invited

    async def find_invitation(self, code: str) -> Invitation | None:
        """Return a valid invitation to a project, or `None`."""
        try:
            return await self.projects.find_invitation(code)
        except InvitationInvalid:
            return None

    async def require_open(self, invitation: str) -> Invitation | None:
        """Verify that a visitor with this invitation, or without one (empty), may sign up.

        Return the invitation if it is one to a project.

        :raises RegistrationClosed: sign-up is closed, needs an invitation, or is not ready yet.
        :raises InvitationInvalid: the invitation is unknown, used or expired.
        """
        if self.rules.is_first_ours and not await self.accounts.accounts():
            raise RegistrationClosed("the service is starting; try again in a moment")
        if self.rules.mode is Registration.CLOSED:
            raise RegistrationClosed("only the operator of this service can create accounts")
        found = await self.find_invitation(invitation) if invitation else None
        if self.can_register(found):
            return found
        if not invitation:
            raise RegistrationClosed("you need an invitation to sign up")
        if found is not None:
            raise RegistrationClosed(
                "this invitation is for a person who has an account: sign in, or ask for an "
                "invitation with your mail address"
            )
        await self.invitations.require(invitation)
        return None

    async def register(self, name: str, password: str, invitation: str, client: str) -> Registered:
        """Create an account and sign in to it. ``client`` is the address of the browser.

        An account with an invitation to a project joins the project. Its name is the address that
        the invitation names.

        :raises RegistrationClosed: sign-up is closed or needs an invitation.
        :raises InvitationInvalid: the invitation is unknown, used or expired.
        :raises InvalidParameter: the name or the password is not acceptable.
        :raises AccountNameTaken: the name, or a similar one, is taken or reserved.
        :raises LimitExceeded: this address has created the maximum number of accounts.
        :raises Overloaded: too many people are signing in.
        """
        await self.attempts.count(key_of("sign-up from", client), ATTEMPTS, "too many attempts")
        invited = await self.require_open(invitation)
        if invited is not None and invited.address and name.strip() != invited.address:
            problem = f"this invitation is for {invited.address}; got {name[:40]!r}"
            raise InvalidParameter("name", problem)
        name = self.rules.names.require(name)
        require_strong(password, name)
        account = await self.accounts.draft(name)
        number = self.rules.per_address
        await self.attempts.count(
            key_of("accounts from", client),
            RequestLimits(per_minute=number, per_day=number),
            "too many accounts have been created from your address",
        )
        hashed = await self.hasher.write(password, client)
        by = Actor(name, client)
        if invited is not None:
            joined = await self.projects.register(account, hashed, invitation, by)
            return Registered(await self.sign_in.open(account, client), joined)
        is_invited = self.rules.mode is Registration.INVITE
        digest = digest_secret(invitation) if is_invited else None
        with self.audit.noting(Action.ACCOUNT_CREATED, account.id, by, "sign-up") as entry:
            await self.store.register(account, hashed, digest, entry)
        return Registered(await self.sign_in.open(account, client), None)
