"""Reading of authorization requests, and the answers that are sent back through a browser."""

from msgspec import Struct

from mailcheck.api.requests.parsing import Query
from mailcheck.api.urls import PublicUrls
from mailcheck.core.identifiers import AccountId
from mailcheck.core.oauth.clients import (
    MAX_DOCUMENT_URL,
    MAX_REDIRECT_URI,
    Client,
    add_parameters,
)
from mailcheck.core.oauth.grants import (
    MAX_STATE,
    AuthorizationRequest,
    OAuthRefused,
    RefusalCode,
    choose_scopes,
    is_challenge,
    require_resource,
)
from mailcheck.operations.oauth.clients import OAuthClients

MAX_RESOURCES = 5
"""Maximum number of resources that a request names."""


class Return(Struct, frozen=True):
    """A client whose redirect URI is verified, so that answers can be sent to it."""

    client: Client
    redirect_uri: str
    state: str | None

    def answer(self, urls: PublicUrls, **parameters: str) -> str:
        """Return the address that gives an answer to the client.

        It names this service as the issuer (RFC 9207).
        """
        state = {} if self.state is None else {"state": self.state}
        return add_parameters(self.redirect_uri, {**parameters, **state, "iss": urls.public_url})

    def refuse(self, urls: PublicUrls, failure: OAuthRefused) -> str:
        """Return the address that tells the client why its request was refused."""
        return self.answer(urls, error=failure.code, error_description=as_description(str(failure)))


async def read_return(query: Query, clients: OAuthClients, account_id: AccountId) -> Return:
    """Return the client of an authorization request, and where to answer it.

    :param account_id: the account of the person; fetched documents are counted for it.
    :raises InvalidParameter: a parameter is missing, repeated or too long.
    :raises OAuthRefused: the client is unknown, or the redirect URI is not one of its own.
    :raises LimitExceeded: the person has opened too many documents.
    """
    client_id = read_one(query, "client_id", MAX_DOCUMENT_URL)
    redirect_uri = read_one(query, "redirect_uri", MAX_REDIRECT_URI)
    client = await clients.find(client_id, account_id)
    known = client.redirect_uris.split()
    if not redirect_uri and len(known) == 1:
        redirect_uri = known[0]
    if not client.accepts_redirect(redirect_uri):
        raise OAuthRefused(
            RefusalCode.INVALID_REDIRECT_URI,
            f"{redirect_uri[:200]!r} is not a redirect URI of this program",
        )
    clients.require_scheme(client, redirect_uri)
    state = read_one(query, "state", MAX_STATE)
    return Return(client, redirect_uri, state if query.texts("state", 1, MAX_STATE) else None)


def read_request(query: Query, back: Return, resource: str) -> AuthorizationRequest:
    """Return what the client asks for.

    :param resource: the URL of the MCP endpoint.
    :raises InvalidParameter: a parameter is repeated or too long.
    :raises OAuthRefused: the request cannot be granted.
    """
    response_type = read_one(query, "response_type", 50)
    if response_type != "code":
        raise OAuthRefused(
            RefusalCode.UNSUPPORTED_RESPONSE_TYPE,
            f"response_type must be code; got {response_type!r}",
        )
    method = read_one(query, "code_challenge_method", 20)
    challenge = read_one(query, "code_challenge", 200)
    if method != "S256" or not is_challenge(challenge):
        raise OAuthRefused(
            RefusalCode.INVALID_REQUEST,
            "PKCE is required: send code_challenge with code_challenge_method S256",
        )
    require_resource(query.texts("resource", MAX_RESOURCES, MAX_DOCUMENT_URL), resource)
    return AuthorizationRequest(
        back.client.id,
        back.redirect_uri,
        back.state,
        challenge,
        choose_scopes(read_one(query, "scope", 1_000)),
    )


def read_one(query: Query, name: str, longest: int) -> str:
    """Return a parameter, or an empty text if it is absent.

    :raises InvalidParameter: it was sent twice, or is too long.
    """
    found = query.texts(name, 1, longest)
    return found[0] if found else ""


def as_description(text: str) -> str:
    """Return a text with the characters of a description (RFC 6749 4.1.2.1, RFC 6750 3)."""
    plain = text.replace('"', "'").replace("\\", "/")
    return "".join(character if " " <= character <= "~" else "?" for character in plain)
