"""Login of programs with a name and a password: SMTP submission, IMAP and POP3.

The password is an API key, and the name is ignored; or both are those of an account.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager

from msgspec import Struct

from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.errors import AccountDisabled, InvalidCredentials, PasskeyNeeded, SignInFailed
from mailcheck.core.identifiers import API_KEY_PREFIX, KeyId
from mailcheck.core.network_addresses import counting_key
from mailcheck.core.rights import Scope
from mailcheck.operations.accounts.authenticate import Authenticator, End, EndedAccess
from mailcheck.operations.accounts.sign_in import SignIn
from mailcheck.store.accounts.sign_in_store import PasswordStore

WRONG = "no account has this name and password, and the password is not an API key"


class LogIn(Struct, frozen=True, eq=False):
    """Identifies programs by an API key, or by the name and the password of an account."""

    authenticator: Authenticator
    ended_access: EndedAccess
    passwords: PasswordStore
    sign_in: SignIn

    async def identify(
        self, name: str, password: str, client_ip: str, scopes: Iterable[Scope]
    ) -> Caller:
        """Return the caller with a name and a password, at the address of a client.

        Failures are counted for the address and the account, together with failed attempts to sign
        in on the pages. A valid key is not counted.

        :raises InvalidCredentials: the password is neither a valid key nor that of the account.
        :raises NotPermitted: the key lacks one of the scopes.
        :raises LimitExceeded: there are too many failures of this address or for this account.
        :raises Overloaded: too many passwords are being verified.
        :raises StoreUnavailable: the store cannot be read now.
        """
        client, name = counting_key(client_ip), name.strip()
        try:
            caller = await self.authenticator.identify(password, client)
        except InvalidCredentials:
            if not name or password.startswith(API_KEY_PREFIX):
                await self.sign_in.count_failed_key(client)
                raise
            caller = await self._by_password(name, password, client)
        caller.rights.require(scopes)
        return caller

    def watched(self, caller: Caller, end: End) -> AbstractContextManager[None]:
        """Call ``end`` once if the caller loses its access while the block runs."""
        return self.ended_access.watched(caller, end)

    async def _by_password(self, name: str, password: str, client: str) -> Caller:
        stored = await self.passwords.find_password(name)
        if stored is None or not self.sign_in.has_verified(stored.password_hash, password):
            try:
                await self.sign_in.verify(name, password, client)
            except (SignInFailed, AccountDisabled, PasskeyNeeded) as failure:
                # The other two say that the password is right.
                is_wrong = isinstance(failure, SignInFailed)
                raise InvalidCredentials(WRONG if is_wrong else str(failure)) from None
            stored = await self.passwords.find_password(name)  # the hash may have been renewed
        if stored is None or stored.password_hash is None:
            raise InvalidCredentials(WRONG)
        account = stored.account
        if account.disabled_at is not None:
            raise InvalidCredentials("the account is disabled")
        if stored.needs_passkey:
            raise InvalidCredentials("this account needs a passkey, too: use an API key")
        self.sign_in.note_verified(stored.password_hash, password)
        return Caller(
            account.id,
            KeyId(f"password of {account.id}"),
            RequestLimits(0, 0),
            client=client,
            password_hash=stored.password_hash,
        )
