"""Making an account for oneself: open to all, by invitation, or not at all."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.accounts import Account, RequestLimits
from mailcheck.core.errors import (
    AccountNameTaken,
    InvalidParameter,
    InvitationInvalid,
    NotOperator,
    RegistrationClosed,
)
from mailcheck.core.identifiers import digest_secret, new_session_secret
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.keys import key_of
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.accounts.passwords import PasswordHasher, require_strong
from mailcheck.operations.accounts.sign_in import MAX_NAME, Attempts, SignedIn, SignIn
from mailcheck.ports.clocks import Now, TimeAndChance
from mailcheck.store.accounts.account_store import PasswordStore, look_alike

INVITATION_DAYS = 7
"""Days until an invitation that nobody used expires."""


class Invitations:
    """Makes invitations and looks at them; the store keeps digests only."""

    def __init__(self, store: PasswordStore, time_and_chance: TimeAndChance) -> None:
        self._store = store
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes

    async def invite(self) -> str:
        """Make an invitation; gives the code that its link ends with."""
        code, now = new_session_secret(self._random_bytes), self._now()
        expires_at = Instant(now + INVITATION_DAYS * DAY)
        await self._store.add_invitation(digest_secret(code), now, expires_at)
        return code

    async def invite_as(self, account: Account) -> str:
        """Make an invitation, as an account that may.

        :raises NotOperator: it may not.
        """
        if not account.is_operator:
            raise NotOperator("only the operator of this service can invite people")
        return await self.invite()

    async def require(self, code: str) -> None:
        """Look whether an invitation can be used.

        :raises InvitationInvalid: it can't.
        """
        if not await self._store.has_invitation(digest_secret(code), self._now()):
            raise InvitationInvalid("this invitation was used before, or has expired")


ATTEMPTS = RequestLimits(per_minute=20, per_day=500)
"""Sign-ups that one client address may send: most are refused for a name or a password."""


class Registration(StrEnum):
    """Who may make an account."""

    OPEN = "open"
    INVITE = "invite"
    CLOSED = "closed"


class RegistrationRules(Struct, frozen=True):
    """The rule for new accounts, and how many a client address may make in a UTC day.

    Names that look like a ``reserved`` one are refused: only the operator adds such accounts.
    With ``is_first_ours`` the daemon itself creates the first account, and issues a key to it.
    """

    mode: Registration
    per_address: int
    reserved: tuple[str, ...] = ()
    is_first_ours: bool = False


class Register:
    """The operations of who has no account yet."""

    def __init__(
        self,
        rules: RegistrationRules,
        accounts: ManageAccounts,
        store: PasswordStore,
        hasher: PasswordHasher,
        sign_in: SignIn,
        invitations: Invitations,
        attempts: Attempts,
        now: Now,
    ) -> None:
        self.rules = rules
        self._accounts = accounts
        self._store = store
        self._hasher = hasher
        self._sign_in = sign_in
        self._invitations = invitations
        self._attempts = attempts
        self._now = now

    async def require_open(self, invitation: str) -> None:
        """Look whether one who holds this invitation (or none: empty) may make an account.

        :raises RegistrationClosed: nobody may, or nobody without an invitation, or not yet.
        :raises InvitationInvalid: it can't be used (any more).
        """
        if self.rules.is_first_ours and not await self._accounts.accounts():
            raise RegistrationClosed("the service is starting: try again in a moment")
        if self.rules.mode is Registration.CLOSED:
            raise RegistrationClosed("accounts are made by the operator of this service alone")
        if self.rules.mode is Registration.INVITE:
            if not invitation:
                raise RegistrationClosed("you need an invitation to make an account here")
            await self._invitations.require(invitation)

    async def register(self, name: str, password: str, invitation: str, client: str) -> SignedIn:
        """Make an account and sign in to it; ``client`` is an address.

        :raises RegistrationClosed: nobody may, or nobody without an invitation.
        :raises InvitationInvalid: it can't be used (any more).
        :raises InvalidParameter: the name or the password will not do.
        :raises AccountNameTaken: there is an account of this name or one that looks like it, or
            the name is reserved.
        :raises LimitExceeded: this address has made enough of them.
        :raises Overloaded: too many people are signing in.
        """
        await self._attempts.count(key_of("sign-up from", client), ATTEMPTS, "too many attempts")
        await self.require_open(invitation)
        name = name.strip()
        if not name or len(name) > MAX_NAME:
            raise InvalidParameter("name", f"a name has 1 to {MAX_NAME} characters")
        if not name.isprintable():
            raise InvalidParameter("name", "a name has no characters that can't be seen")
        if any(look_alike(name, reserved) for reserved in self.rules.reserved):
            problem = f"the name {name!r} is reserved by the operator of this service"
            raise AccountNameTaken(f"{problem}: choose another one")
        require_strong(password, name)
        # Whoever comes first may be a stranger: an operator is made on the machine itself.
        account = replace(await self._accounts.draft(name), is_operator=False)
        number = self.rules.per_address
        await self._attempts.count(
            key_of("accounts from", client),
            RequestLimits(per_minute=number, per_day=number),
            "too many accounts have been made from your address",
        )
        hashed = await self._hasher.write(password, client)
        is_invited = self.rules.mode is Registration.INVITE
        digest = digest_secret(invitation) if is_invited else None
        await self._store.register(account, hashed, digest, self._now())
        return await self._sign_in.open(account)
