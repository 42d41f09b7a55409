"""Invitations: links with which one account each can be made."""

from mailcheck.core.accounts import Account
from mailcheck.core.errors import InvitationInvalid, NotOperator
from mailcheck.core.identifiers import digest_secret, new_session_secret
from mailcheck.core.instants import DAY, Instant
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.store.accounts.account_store import PasswordStore

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
