"""Confirmation of the person before actions that outlast a session.

A stolen session ends. A passkey, a key or a connected agent that a thief adds would stay. So the
person proves again who they are, if they signed in longer ago.
"""

from msgspec import Struct

from mailcheck.core.accounts import Account
from mailcheck.core.errors import LimitExceeded, SignInFailed
from mailcheck.core.instants import MINUTE, Instant
from mailcheck.operations.accounts.company_sign_in import CompanySignIn
from mailcheck.operations.accounts.passkeys import Passkeys
from mailcheck.operations.accounts.sign_in import DashboardSessions, SignIn
from mailcheck.ports.clocks import Now
from mailcheck.ports.journals import AccessJournal

FRESH_MINUTES = 10
"""Minutes after a sign-in or a confirmation in which the person is not asked again."""


class WaysToConfirm(Struct, frozen=True):
    """How a person can confirm who they are.

    ``company`` is the name of the company's sign-in service where the person can sign in again, or
    `None`.
    """

    has_password: bool
    has_passkey: bool
    company: str | None


class Confirmation(Struct, frozen=True, eq=False):
    """Asks people who are signed in to confirm who they are."""

    sign_in: SignIn
    sessions: DashboardSessions
    passkeys: Passkeys | None
    company: CompanySignIn | None
    journal: AccessJournal
    now: Now

    def is_fresh(self, confirmed_at: Instant) -> bool:
        """Return whether a person who confirmed at this time is not asked again."""
        return self.now() - confirmed_at < FRESH_MINUTES * MINUTE

    async def ways_of(self, account: Account) -> WaysToConfirm:
        """Return how a person can confirm who they are.

        The password alone is not enough if it does not sign in alone.
        """
        passkeys, company = self.passkeys, self.company
        return WaysToConfirm(
            has_password=await self._accepts_password(account),
            has_passkey=passkeys is not None and bool(await passkeys.of_account(account)),
            company=company.rules.title
            if company is not None and await company.is_linked(account)
            else None,
        )

    async def by_password(self, account: Account, session: str, password: str, client: str) -> None:
        """Confirm a session with the password.

        :param session: the secret of the session.
        :param client: the address of the browser.
        :raises SignInFailed: the password is wrong, or is not enough.
        :raises LimitExceeded: too many attempts.
        """
        try:
            if not await self._accepts_password(account):
                raise SignInFailed("the password is not enough: confirm in another way")
            await self.sign_in.require_password(account, password)
        except (SignInFailed, LimitExceeded) as failure:
            self.journal.note_failed_access("sign-in", client, str(failure))
            raise
        await self.sessions.note_confirmation(session)

    async def by_passkey(
        self, account: Account, session: str, credential: str, client: str
    ) -> None:
        """Confirm a session with the answer of a browser; see `by_password`."""
        try:
            if self.passkeys is None:
                raise SignInFailed("this service has no passkeys")
            await self.passkeys.require(account, credential)
        except (SignInFailed, LimitExceeded) as failure:
            self.journal.note_failed_access("sign-in", client, str(failure))
            raise
        await self.sessions.note_confirmation(session)

    async def _accepts_password(self, account: Account) -> bool:
        return (
            self.sign_in.has_passwords
            and await self.sign_in.has_password(account)
            and not await self.sign_in.needs_passkey(account)
        )
