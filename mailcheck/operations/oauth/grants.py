"""Grants: a person allows a client to use an account, and the client exchanges codes for tokens.

A grant is a key on the page of keys. It has no secret of its own, but access tokens and refresh
tokens, of which the store has only digests.
"""

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace
from twisted.logger import Logger

from mailcheck.core.accounts import Account, ApiKey, Caller
from mailcheck.core.audit import Action, Actor
from mailcheck.core.errors import InvalidCredentials, InvalidParameter, TooManyKeys
from mailcheck.core.identifiers import (
    ACCESS_TOKEN_PREFIX,
    CODE_PREFIX,
    REFRESH_TOKEN_PREFIX,
    AccountId,
    KeyId,
    digest_secret,
    new_oauth_secret,
    new_short_id,
)
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.oauth.clients import Client
from mailcheck.core.oauth.grants import (
    ACCESS_LIFE,
    CODE_LIFE,
    REFRESH_LIFE,
    AuthorizationCode,
    AuthorizationRequest,
    NewTokens,
    OAuthRefused,
    Redemption,
    RefusalCode,
    challenge_of,
)
from mailcheck.core.projects import Role
from mailcheck.core.rights import Scope
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.accounts.authenticate import Authenticator
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.accounts.own_keys import MAX_KEYS
from mailcheck.operations.accounts.projects import ManageProjects
from mailcheck.operations.oauth.clients import OAuthClients
from mailcheck.ports.clocks import ClockAndRandomness, Now
from mailcheck.store.accounts.oauth_store import OAuthStore


class Tokens(Struct, frozen=True):
    """The answer to a client: a pair of tokens. ``expires_in`` is in seconds."""

    access_token: str
    token_type: str
    expires_in: int
    refresh_token: str
    scope: str


class OlderGrant(Struct, frozen=True):
    """A grant that a program has already, and its account."""

    key: ApiKey
    account: Account


class Grants(Struct, frozen=True, eq=False):
    """The operations on grants, by people and by clients."""

    _log = Logger()

    store: OAuthStore
    clients: OAuthClients
    accounts: ManageAccounts
    projects: ManageProjects
    audit: Audit
    clocks: ClockAndRandomness

    async def offered(self, person: Account) -> list[Account]:
        """List the accounts that a person may grant access to: the own one, and owned projects."""
        owned = await self.projects.of_person(person)
        return [
            person,
            *(membership.project for membership in owned if membership.role is Role.OWNER),
        ]

    async def older(self, client: Client, person: Account) -> list[OlderGrant]:
        """List the grants that a program has to the accounts of a person, oldest first."""
        found = []
        for account in await self.offered(person):
            for key in await self._valid_keys(account):
                if await self._is_of(key, client):
                    found.append(OlderGrant(key, account))
        return sorted(found, key=lambda one: one.key.created_at)

    async def _is_of(self, key: ApiKey, client: Client) -> bool:
        """Return whether a key is a grant of the same program."""
        if key.client_id in (None, client.id) or key.name != client.name:
            return key.client_id == client.id
        known = await self.store.find_client(key.client_id or "", self.clocks.now())
        return known is not None and client.is_same_program(known.client)

    async def _valid_keys(self, account: Account) -> list[ApiKey]:
        now = self.clocks.now()
        keys = await self.accounts.list_keys(account)
        return [key for key in keys if key.revoked_at is None and not key.is_expired(now)]

    async def allow(
        self,
        request: AuthorizationRequest,
        client: Client,
        person: Account,
        account_id: str,
        scopes: Collection[str],
        replaces: Collection[str] = (),
    ) -> str:
        """Return the code for a client that a person has allowed to use an account.

        :param scopes: the scopes that the person has chosen.
        :param replaces: the ids of older grants of the program that end when it gets the new one.
        :raises InvalidParameter: no scope was chosen, or the account is not offered to the person.
        :raises TooManyKeys: the account has the maximum number of keys.
        """
        account = {offered.id: offered for offered in await self.offered(person)}.get(
            AccountId(account_id)
        )
        if account is None:
            raise InvalidParameter("account", "choose your account, or a project that you own")
        chosen = [scope for scope in request.scopes if scope in scopes]
        if not chosen:
            raise InvalidParameter("scope", "choose at least one area that the program may use")
        older = [grant.key.id for grant in await self.older(client, person)] if replaces else []
        ended = [key_id for key_id in older if key_id in replaces]
        now = self.clocks.now()
        valid = [key for key in await self._valid_keys(account) if key.id not in ended]
        if len(valid) >= MAX_KEYS:
            raise TooManyKeys(f"an account has at most {MAX_KEYS} keys; revoke one first")
        code = new_oauth_secret(CODE_PREFIX, self.clocks.random_bytes)
        facts = AuthorizationCode(
            account_id=account.id,
            granted_by=person.id,
            client_id=client.id,
            client_name=client.name,
            redirect_uri=request.redirect_uri,
            challenge=request.challenge,
            scopes=" ".join(sorted(chosen)),
            expires_at=Instant(now + CODE_LIFE),
            replaces=" ".join(ended),
        )
        await self.store.add_code(digest_secret(code), facts, now)
        return code

    async def exchange(
        self, client_id: str, code: str, redirect_uri: str, verifier: str, client: str
    ) -> Tokens:
        """Exchange a code for the first tokens of a grant. ``client`` is the caller's address.

        :raises OAuthRefused: the code is unknown, expired, used or of another client, or the
            verifier does not match.
        """
        now = self.clocks.now()
        tokens, pair = self._draw(now)
        grant = ApiKey(
            id=KeyId(new_short_id(self.clocks.random_bytes)),
            account_id=AccountId(""),
            name="",
            hint="",
            created_at=now,
            last_used_at=None,
            revoked_at=None,
            per_minute=None,
            per_day=None,
            expires_at=tokens.refresh_until,
            client_id=client_id,
        )
        # No secret has this digest: the grant is used through its tokens only.
        unusable = self.clocks.random_bytes(32)
        with self.audit.noting(Action.KEY_ISSUED, None, Actor("OAuth", client)) as entry:
            redeemed = await self.store.redeem_code(
                digest_secret(code),
                grant,
                unusable,
                redirect_uri,
                challenge_of(verifier),
                tokens,
                MAX_KEYS,
                entry,
            )
        key = _require_grant(redeemed)
        await self.clients.keep(client_id)
        return _answer(key, pair)

    async def refresh(
        self, client_id: str, refresh_token: str, scopes: Sequence[str], client: str
    ) -> Tokens:
        """Exchange a refresh token for the next tokens. ``client`` is the caller's address.

        A token that was exchanged at most `REUSE_WINDOW` ago is exchanged again.

        :param scopes: the scopes that the client asks for; empty for all scopes of the grant.
        :raises OAuthRefused: the token is unknown, expired, used or of another client, or a scope
            was not granted.
        """
        now = self.clocks.now()
        tokens, pair = self._draw(now)
        digest = digest_secret(refresh_token)
        if scopes:
            found = await self.store.grant_of(digest)
            granted = set() if found is None else set((found.scopes or "").split())
            beyond = [scope for scope in scopes if scope in set(Scope) and scope not in granted]
            if found is not None and beyond:
                raise OAuthRefused(
                    RefusalCode.INVALID_SCOPE,
                    f"the scope {beyond[0]} was not granted: ask the person again",
                )
        with self.audit.noting(Action.KEY_REVOKED, None, Actor("OAuth", client)) as entry:
            redeemed = await self.store.redeem_refresh_token(digest, client_id, tokens, entry)
        key = _require_grant(redeemed)
        if redeemed.is_repeated:
            self._log.info(
                "a refresh token of the grant {id} was exchanged again, from {client}",
                id=key.id,
                client=client,
            )
        await self.clients.keep(client_id)
        return _answer(key, pair)

    async def revoke(self, client_id: str, token: str, client: str) -> None:
        """End the grant of an access token or a refresh token (RFC 7009), if there is one.

        :raises OAuthRefused: the token belongs to another client.
        """
        key = await self.store.grant_of(digest_secret(token))
        if key is None or key.revoked_at is not None:
            return
        if key.client_id != client_id:
            raise OAuthRefused(
                RefusalCode.UNAUTHORIZED_CLIENT, "the token belongs to another client"
            )
        await self.accounts.revoke_key(key.id, Actor("OAuth", client))

    def _draw(self, now: Instant) -> tuple[NewTokens, tuple[str, str]]:
        access = new_oauth_secret(ACCESS_TOKEN_PREFIX, self.clocks.random_bytes)
        refresh = new_oauth_secret(REFRESH_TOKEN_PREFIX, self.clocks.random_bytes)
        digests = NewTokens(
            digest_secret(access),
            Instant(now + ACCESS_LIFE),
            digest_secret(refresh),
            Instant(now + REFRESH_LIFE),
        )
        return digests, (access, refresh)


def _require_grant(redeemed: Redemption) -> ApiKey:
    """Return the grant.

    :raises OAuthRefused: there is none.
    """
    if redeemed.key is None:
        raise OAuthRefused(RefusalCode.INVALID_GRANT, redeemed.problem)
    return redeemed.key


def _answer(key: ApiKey, pair: tuple[str, str]) -> Tokens:
    return Tokens(pair[0], "Bearer", ACCESS_LIFE // SECOND, pair[1], key.scopes or "")


class AccessTokens(Struct, frozen=True, eq=False):
    """Identifies callers of the MCP endpoint by access token or API key.

    Access tokens are for this resource alone (RFC 8707), so other entry points do not know them.
    """

    store: OAuthStore
    authenticator: Authenticator
    now: Now

    async def identify(self, secret: str, client: str = "") -> Caller:
        """Return the caller that a token or a key belongs to, at the address ``client``.

        :raises InvalidCredentials: it is unknown, revoked or expired, or its account is disabled.
        :raises StoreUnavailable: the store cannot be read now.
        """
        if not secret.startswith(ACCESS_TOKEN_PREFIX):
            return await self.authenticator.identify(secret, client)
        found = await self.store.find_access(digest_secret(secret))
        if found is None or found.expires_at <= self.now():
            raise InvalidCredentials("the access token is unknown or has expired: refresh it")
        if not found.is_granted:
            raise InvalidCredentials("the person who connected this program has left the project")
        caller = self.authenticator.admit(found.known, client)
        return replace(caller, ends_at=found.expires_at)
