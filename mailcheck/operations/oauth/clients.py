"""Clients of the authorization server: finding, registering, authenticating and deleting them."""

import hmac
from collections.abc import Collection, Sequence
from enum import StrEnum

from msgspec import Struct

from mailcheck.core.accounts import RequestLimits
from mailcheck.core.audit import COMMAND_LINE, Action, Actor, AuditEntry
from mailcheck.core.errors import ClientNotFound, InvalidParameter
from mailcheck.core.identifiers import (
    CLIENT_SECRET_PREFIX,
    AccountId,
    digest_secret,
    new_oauth_secret,
    new_short_id,
)
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.memory.keys import key_of
from mailcheck.core.oauth.clients import (
    PUBLIC,
    SECRET_METHODS,
    Client,
    ClientMetadata,
    ClientSource,
    has_known_scheme,
    is_document_url,
    join_redirect_uris,
)
from mailcheck.core.oauth.grants import OAuthRefused, RefusalCode
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.accounts.sign_in import Attempts
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.probes import ClientDocuments
from mailcheck.store.accounts.oauth_store import KnownClient, OAuthStore

UNUSED_LIFE = 1 * DAY
"""Milliseconds until a client that has registered itself expires without a grant."""

USED_LIFE = 90 * DAY
"""Milliseconds until such a client expires after its last tokens."""

MAX_REGISTERED = 2_000
"""Maximum number of clients that have registered themselves."""

PER_ADDRESS = RequestLimits(per_minute=20, per_day=200)
"""Registrations per client address. A hosted agent registers for many people."""

DOCUMENTS_PER_ACCOUNT = RequestLimits(per_minute=20, per_day=500)
"""Client ids with a document that an account may open, since each may cause a request."""


class OpenTo(StrEnum):
    """Which clients people may connect."""

    ANY = "any"
    REGISTERED = "registered"
    """Only clients that an operator has registered."""


class RegisteredClient(Struct, frozen=True):
    """A new client and its secret, which is shown once. Without a secret it is empty."""

    client: Client
    secret: str


class OAuthClients(Struct, eq=False):
    """The clients that people may connect.

    :param schemes: those without a dot that programs may use in redirect URIs.
    """

    store: OAuthStore
    documents: ClientDocuments
    attempts: Attempts
    audit: Audit
    open_to: OpenTo
    schemes: Collection[str]
    clocks: ClockAndRandomness

    async def find(self, client_id: str, account_id: AccountId) -> Client:
        """Return the client that a person wants to connect. A document may have to be fetched.

        :param account_id: the account of the person; fetched documents are counted for it.
        :raises OAuthRefused: the client is unknown, or its document cannot be used.
        :raises LimitExceeded: the person has opened too many documents.
        """
        if self.open_to is OpenTo.ANY and is_document_url(client_id):
            return await self._find_document(client_id, account_id)
        return (await self._find_registered(client_id)).client

    def require_scheme(self, client: Client, redirect_uri: str) -> None:
        """Verify that a code is not sent to a scheme that any program may have taken.

        The operator may have registered any scheme for a client.

        :raises OAuthRefused: the scheme has no dot, and the operator has not listed it.
        """
        if client.source is not ClientSource.OPERATOR:
            self._require_scheme(redirect_uri)

    def _require_scheme(self, redirect_uri: str) -> None:
        if not has_known_scheme(redirect_uri, self.schemes):
            scheme = redirect_uri.partition(":")[0]
            raise OAuthRefused(
                RefusalCode.INVALID_REDIRECT_URI,
                f"the scheme {scheme!r} of the redirect URI has no dot (RFC 8252 8.4): use a "
                "reversed domain name, or ask the operator of this service to add it to "
                "[web] oauth_schemes",
            )

    async def _find_registered(self, client_id: str) -> KnownClient:
        known = await self.store.find_client(client_id, self.clocks.now())
        is_open = self.open_to is OpenTo.ANY
        if known is None or not (is_open or known.client.source is ClientSource.OPERATOR):
            raise OAuthRefused(RefusalCode.INVALID_CLIENT, self._explain_unknown(client_id))
        return known

    async def _find_document(self, url: str, account_id: AccountId) -> Client:
        await self.attempts.count(
            key_of("client documents of", account_id),
            DOCUMENTS_PER_ACCOUNT,
            "you have opened too many programs",
        )
        document = await self.documents.fetch_client(url)
        if document.problem:
            raise OAuthRefused(
                RefusalCode.INVALID_CLIENT,
                f"the client metadata document {url} cannot be used: {document.problem}",
            )
        return Client(
            id=url,
            name=document.name,
            redirect_uris=document.redirect_uris,
            source=ClientSource.DOCUMENT,
            has_secret=False,
            created_at=self.clocks.now(),
        )

    def _explain_unknown(self, client_id: str) -> str:
        shown = repr(client_id[:100])
        if self.open_to is OpenTo.REGISTERED:
            return (
                f"the client {shown} is not registered here: ask the operator of this service to "
                "register it with `mailcheck client add`"
            )
        return (
            f"the client {shown} is unknown or has expired: remove this service from the program, "
            "and add it again"
        )

    async def authenticate(self, client_id: str, secret: str | None) -> None:
        """Check the credentials of a client at the token endpoint.

        A client with a document has no secret, so its document is not needed here.

        :raises OAuthRefused: the client is unknown or may not be connected, or its secret is wrong.
        """
        if self.open_to is OpenTo.ANY and is_document_url(client_id):
            digest = None
        else:
            digest = (await self._find_registered(client_id)).secret_digest
        if digest is None:
            if secret:
                raise OAuthRefused(
                    RefusalCode.INVALID_CLIENT, "this client has no secret: send none"
                )
        elif not hmac.compare_digest(digest_secret(secret or ""), digest):
            raise OAuthRefused(
                RefusalCode.INVALID_CLIENT, "the secret of the client is missing or wrong"
            )

    async def keep(self, client_id: str) -> None:
        """Let a client that has registered itself live on, because it got tokens."""
        if not is_document_url(client_id):
            await self.store.keep_client(client_id, Instant(self.clocks.now() + USED_LIFE))

    async def register_itself(self, metadata: ClientMetadata, client: str) -> RegisteredClient:
        """Register a client by its own request (RFC 7591). ``client`` is its address.

        :raises OAuthRefused: the metadata is not acceptable, or registration is off.
        :raises LimitExceeded: too many registrations from this address.
        """
        await self.attempts.count(
            key_of("clients from", client), PER_ADDRESS, "too many programs were registered"
        )
        if self.open_to is OpenTo.REGISTERED:
            raise OAuthRefused(
                RefusalCode.INVALID_CLIENT_METADATA,
                "programs cannot register themselves here: ask the operator of this service to "
                "register it with `mailcheck client add`, and enter the client id",
            )
        method = metadata.token_endpoint_auth_method or PUBLIC
        if method != PUBLIC and method not in SECRET_METHODS:
            raise OAuthRefused(
                RefusalCode.INVALID_CLIENT_METADATA,
                "token_endpoint_auth_method must be one of "
                f"{', '.join((PUBLIC, *SECRET_METHODS))}; got {method[:40]!r}",
            )
        try:
            uris = metadata.require_usable()
        except InvalidParameter as failure:
            is_of_uris = failure.name in ("redirect_uri", "redirect_uris")
            code = (
                RefusalCode.INVALID_REDIRECT_URI
                if is_of_uris
                else RefusalCode.INVALID_CLIENT_METADATA
            )
            raise OAuthRefused(code, str(failure)) from None
        for uri in uris.split():
            self._require_scheme(uri)
        made = self._draw(
            metadata.name, uris, ClientSource.REGISTRATION, has_secret=method != PUBLIC
        )
        await self._add(made)
        return made

    async def add(
        self,
        name: str,
        redirect_uris: Sequence[str],
        *,
        has_secret: bool,
        by: Actor = COMMAND_LINE,
    ) -> RegisteredClient:
        """Register a client as the operator. It does not expire.

        :raises InvalidParameter: the name is empty, or a redirect URI is not acceptable.
        """
        if not name.strip():
            raise InvalidParameter("name", "the name of the client is empty; enter a name")
        uris = join_redirect_uris(redirect_uris)
        shown = ClientMetadata(client_name=name).name
        made = self._draw(shown, uris, ClientSource.OPERATOR, has_secret=has_secret)
        detail = f"{made.client.id} {made.client.name!r}: {uris}"
        with self.audit.noting(Action.CLIENT_REGISTERED, None, by, detail) as entry:
            await self._add(made, entry)
        return made

    def _draw(
        self, name: str, redirect_uris: str, source: ClientSource, *, has_secret: bool
    ) -> RegisteredClient:
        now, is_temporary = self.clocks.now(), source is ClientSource.REGISTRATION
        random_bytes = self.clocks.random_bytes
        secret = new_oauth_secret(CLIENT_SECRET_PREFIX, random_bytes) if has_secret else ""
        client = Client(
            id=new_short_id(random_bytes),
            name=name,
            redirect_uris=redirect_uris,
            source=source,
            has_secret=has_secret,
            created_at=now,
            expires_at=Instant(now + UNUSED_LIFE) if is_temporary else None,
        )
        return RegisteredClient(client, secret)

    async def _add(self, made: RegisteredClient, entry: AuditEntry | None = None) -> None:
        digest = digest_secret(made.secret) if made.secret else None
        await self.store.add_client(made.client, digest, MAX_REGISTERED, entry)

    async def list(self) -> Sequence[Client]:
        """List the registered clients, oldest first."""
        return await self.store.list_clients(self.clocks.now())

    async def delete(self, client_id: str, by: Actor = COMMAND_LINE) -> int:
        """Delete a registered client, and revoke what people have granted to it.

        :return: the number of revoked grants.
        :raises ClientNotFound: no client with this id is registered.
        """
        with self.audit.noting(Action.CLIENT_DELETED, None, by, client_id) as entry:
            revoked = await self.store.delete_client(client_id, entry)
        if revoked is None:
            raise ClientNotFound(f"no client with the id {client_id!r} is registered")
        return len(revoked)
