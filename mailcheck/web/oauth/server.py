"""The endpoints of the authorization server that programs call, and its metadata."""

import base64
import binascii
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from msgspec import Struct
from twisted.web.server import Request

from mailcheck.api.requests.parsing import Query, split_query
from mailcheck.api.urls import MCP_PATH, PublicUrls
from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.domains.domain_names import origin_of
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.core.instants import SECOND
from mailcheck.core.memory.instruments import Tally
from mailcheck.core.memory.keys import key_of
from mailcheck.core.network_addresses import counting_key
from mailcheck.core.oauth.clients import (
    MAX_DOCUMENT_URL,
    MAX_REDIRECT_URI,
    PUBLIC,
    SECRET_METHODS,
    parse_metadata,
)
from mailcheck.core.oauth.grants import (
    OFFERED,
    OAuthRefused,
    RefusalCode,
    is_verifier,
    require_resource,
)
from mailcheck.core.rights import Scope
from mailcheck.operations.accounts.sign_in import Attempts
from mailcheck.operations.oauth.clients import OAuthClients, OpenTo, RegisteredClient
from mailcheck.operations.oauth.grants import Grants
from mailcheck.ports.journals import AccessJournal
from mailcheck.web.oauth.authorization import MAX_RESOURCES, as_description, read_one
from mailcheck.web.site import costs
from mailcheck.web.site.application import (
    NOBODY,
    NOWHERE,
    Call,
    Door,
    OpenDoor,
    Route,
    read_nothing,
    wrong_method,
)
from mailcheck.web.site.cross_origin import PREFLIGHT, READABLE, preflight_reply
from mailcheck.web.site.failures import NOT_FOUND, UNAUTHORIZED, BodyTooLarge, Crash, Problem
from mailcheck.web.site.replies import MoreHeaders, Reply, error_reply, json_reply, write_error
from mailcheck.web.site.requests import header_values

AUTHORIZE_PATH, TOKEN_PATH = "/authorize", "/token"
REGISTER_PATH, REVOKE_PATH = "/register", "/revoke"
SERVER_METADATA_PATH = "/.well-known/oauth-authorization-server"
RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource"
OPENID_PATH = "/.well-known/openid-configuration"

GUIDE_PATH = "/docs/how-to/connect-a-hosted-agent.html"

PER_ADDRESS = RequestLimits(per_minute=300, per_day=50_000)
"""Token requests per client address. A hosted agent refreshes the tokens of many people."""

MAX_TOKEN = 200
"""Maximum number of characters of a token or a code."""

CREATED = 201


class OAuthSettings(Struct, frozen=True):
    """Whether people can connect agents by OAuth, and the URLs of this service."""

    is_on: bool
    urls: PublicUrls

    @property
    def resource_metadata_url(self) -> str:
        """The URL of the metadata of the MCP endpoint (RFC 9728 section 3.1)."""
        parts = urlsplit(self.urls.public_url)
        origin = f"{parts.scheme}://{parts.netloc}"
        return f"{origin}{RESOURCE_METADATA_PATH}{parts.path}{MCP_PATH}"

    def challenge(self, *, had_token: bool) -> str:
        """Return the value of WWW-Authenticate for a request without a valid key or token.

        It names all scopes, from which the person chooses: many clients never ask for more.

        :param had_token: whether the request had one (RFC 6750 section 3.1).
        """
        if not self.is_on:
            return "Bearer"
        error = {"error": "invalid_token"} if had_token else {}
        return self._bearer(error, OFFERED)

    def ask_for_more(self, scopes: Collection[Scope], problem: str) -> str:
        """Return the value of WWW-Authenticate for a client that needs these scopes.

        :param problem: a sentence about the scope that is missing.
        """
        error = {"error": "insufficient_scope", "error_description": as_description(problem)}
        return self._bearer(error, scopes)

    def _bearer(self, error: Mapping[str, str], scopes: Collection[Scope]) -> str:
        parameters = {
            **error,
            "scope": " ".join(scope for scope in OFFERED if scope in scopes),
            "resource_metadata": self.resource_metadata_url,
        }
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parameters.items())

    def is_for_pages(self, request: Request) -> bool:
        """Return whether web pages of other origins may read the response to a request (CORS).

        They may if this service has a public https URL, and the browser used its host. So no page
        reads from a listener on the person's own machine: by its address, or by DNS rebinding.
        """
        hosts = [_without_port(value.strip().lower()) for value in header_values(request, b"Host")]
        own = [f"https://{host}" for host in hosts]
        return self.is_on and own == [origin_of(self.urls.public_url)]

    def explain_off(self) -> str:
        """Return a sentence that helps when OAuth is off."""
        return (
            "OAuth is off on this service: send an API key as Authorization: Bearer <key>. Keys "
            f"are created at {self.urls.public_url}/keys. An operator switches OAuth on with an "
            "https [web] public_url"
        )


def _without_port(host: str) -> str:
    """Return a host without the default port of https, which browsers leave out."""
    return host.removesuffix(":443")


Handle = Callable[[Call[None]], Awaitable[Reply]]
"""Answers a request of a client."""


class OAuthServer(Struct, frozen=True, eq=False):
    """Answers programs: metadata, tokens, registration and revocation.

    :param outcomes: counts requests by endpoint and outcome.
    """

    settings: OAuthSettings
    clients: OAuthClients
    grants: Grants
    attempts: Attempts
    journal: AccessJournal
    outcomes: Tally

    def door(self) -> OpenDoor:
        """Return the door, which needs no key: clients authenticate in their requests."""
        documents = {
            SERVER_METADATA_PATH: self._show_server,
            RESOURCE_METADATA_PATH: self._show_resource,
            OPENID_PATH: self._refuse_openid,
        }
        endpoints = {
            TOKEN_PATH: self._give_tokens,
            REGISTER_PATH: self._register,
            REVOKE_PATH: self._revoke,
        }
        routes = [
            Route("GET", f"{path}{ending}", partial(self._show, show), type(None), costs.FREE)
            for path, show in documents.items()
            for ending in ("", "/<path:name>")
        ]
        routes += [
            Route(
                "POST",
                path,
                partial(self._answer, path, handle),
                type(None),
                costs.CONNECTION,
                write_error=refuse,
            )
            for path, handle in endpoints.items()
        ]
        routes += [
            Route(
                PREFLIGHT,
                route.path,
                partial(self._preflight, route.method),
                type(None),
                costs.FREE,
            )
            for route in routes
        ]
        return OpenDoor(
            Door("oauth", "", "", routes, read_nothing, write_error=write_error), self._admit
        )

    async def _admit(self, request: Request, route: Route[Any], headers: MoreHeaders) -> Caller:
        if route is not NOWHERE and self.settings.is_for_pages(request):
            headers.update(READABLE)
        return NOBODY

    async def _preflight(self, method: str, call: Call[None]) -> Reply:
        if self.settings.is_for_pages(call.http):
            return preflight_reply([method])
        raise wrong_method(call.http, [method])

    async def _show(self, show: Callable[[Call[None]], Reply], call: Call[None]) -> Reply:
        """Answer with a document, if OAuth is on."""
        if not self.settings.is_on:
            return error_reply(NOT_FOUND, self.settings.explain_off())
        return show(call)

    def _show_server(self, call: Call[None]) -> Reply:
        """GET /.well-known/oauth-authorization-server: the metadata (RFC 8414)."""
        url, name = self.settings.urls.public_url, call.path.get("name")
        if name and f"/{name}" != urlsplit(url).path:
            return error_reply(NOT_FOUND, f"the authorization server of this service is {url}")
        methods = [PUBLIC, *SECRET_METHODS]
        is_open = self.clients.open_to is OpenTo.ANY
        metadata: dict[str, object] = {
            "issuer": url,
            "authorization_endpoint": url + AUTHORIZE_PATH,
            "token_endpoint": url + TOKEN_PATH,
            "revocation_endpoint": url + REVOKE_PATH,
            "scopes_supported": list(map(str, OFFERED)),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": methods,
            "revocation_endpoint_auth_methods_supported": methods,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": is_open,
            "protected_resources": [self.settings.urls.mcp_url],
            "service_documentation": url + GUIDE_PATH,
        }
        if is_open:
            metadata["registration_endpoint"] = url + REGISTER_PATH
        return json_reply(metadata)

    def _show_resource(self, call: Call[None]) -> Reply:
        """GET /.well-known/oauth-protected-resource: the MCP endpoint (RFC 9728)."""
        urls, name = self.settings.urls, call.path.get("name")
        if name and f"/{name}" != urlsplit(urls.mcp_url).path:
            return error_reply(
                NOT_FOUND, f"the protected resource of this service is {urls.mcp_url}"
            )
        return json_reply(
            {
                "resource": urls.mcp_url,
                "authorization_servers": [urls.public_url],
                "scopes_supported": list(map(str, OFFERED)),
                "bearer_methods_supported": ["header"],
                "resource_name": "mailcheck",
                "resource_documentation": urls.public_url + GUIDE_PATH,
            }
        )

    def _refuse_openid(self, _: Call[None]) -> Reply:
        """GET /.well-known/openid-configuration: this service is not an OpenID provider."""
        return error_reply(
            NOT_FOUND, f"there is no OpenID provider here: read {SERVER_METADATA_PATH} (RFC 8414)"
        )

    async def _answer(self, path: str, handle: Handle, call: Call[None]) -> Reply:
        """Answer a request of a client, and count its outcome."""
        endpoint = path.strip("/")
        if not self.settings.is_on:
            return _error(NOT_FOUND, RefusalCode.ACCESS_DENIED, self.settings.explain_off())
        try:
            reply = await handle(call)
        except OAuthRefused as failure:
            self.outcomes.add(endpoint, failure.code)
            if failure.code in (RefusalCode.INVALID_CLIENT, RefusalCode.INVALID_GRANT):
                self.journal.note_failed_access("oauth", call.client_ip, str(failure))
            raise
        except InvalidParameter:
            self.outcomes.add(endpoint, RefusalCode.INVALID_REQUEST)
            raise
        except ExpectedFailure:
            self.outcomes.add(endpoint, "failed")
            raise
        self.outcomes.add(endpoint, "done")
        return reply

    async def _count(self, call: Call[None]) -> str:
        """Count a request of a client, and return the address that it is counted for."""
        client = counting_key(call.client_ip)
        subject = key_of("token requests from", client)
        await self.attempts.count(subject, PER_ADDRESS, "too many token requests")
        return client

    async def _give_tokens(self, call: Call[None]) -> Reply:
        """POST /token: exchange a code or a refresh token (RFC 6749 sections 4.1.3 and 6)."""
        client = await self._count(call)
        form = _read_form(call)
        client_id = await self._authenticate(call, form)
        grant_type = read_one(form, "grant_type", 100)
        resources = form.texts("resource", MAX_RESOURCES, MAX_DOCUMENT_URL)
        require_resource(resources, self.settings.urls.mcp_url)
        if grant_type == "authorization_code":
            verifier = read_one(form, "code_verifier", MAX_TOKEN)
            if not is_verifier(verifier):
                raise OAuthRefused(
                    RefusalCode.INVALID_REQUEST,
                    "code_verifier is missing or is not a text of 43 to 128 characters",
                )
            tokens = await self.grants.exchange(
                client_id,
                _required(form, "code"),
                read_one(form, "redirect_uri", MAX_REDIRECT_URI),
                verifier,
                client,
            )
        elif grant_type == "refresh_token":
            scopes = read_one(form, "scope", 1_000).split()
            token = _required(form, "refresh_token")
            tokens = await self.grants.refresh(client_id, token, scopes, client)
        else:
            raise OAuthRefused(
                RefusalCode.UNSUPPORTED_GRANT_TYPE,
                f"grant_type must be authorization_code or refresh_token; got {grant_type[:50]!r}",
            )
        return json_reply(tokens, headers={"Pragma": "no-cache"})

    async def _revoke(self, call: Call[None]) -> Reply:
        """POST /revoke: end a grant (RFC 7009)."""
        client = await self._count(call)
        form = _read_form(call)
        client_id = await self._authenticate(call, form)
        await self.grants.revoke(client_id, _required(form, "token"), client)
        return json_reply({})

    async def _register(self, call: Call[None]) -> Reply:
        """POST /register: register the client that asks (RFC 7591)."""
        client = counting_key(call.client_ip)
        try:
            metadata = parse_metadata(call.body)
        except InvalidParameter as failure:
            raise OAuthRefused(RefusalCode.INVALID_CLIENT_METADATA, str(failure)) from None
        made = await self.clients.register_itself(metadata, client)
        method = metadata.token_endpoint_auth_method or PUBLIC
        return json_reply(_describe(made, method), CREATED)

    async def _authenticate(self, call: Call[None], form: Query) -> str:
        """Return the id of the client that sends a request, after checking its secret.

        :raises OAuthRefused: the client is unknown, or its credentials are wrong.
        """
        client_id = read_one(form, "client_id", MAX_DOCUMENT_URL)
        secret: str | None = read_one(form, "client_secret", MAX_TOKEN) or None
        basic = _read_basic(call.http)
        if basic is not None:
            if secret is not None or client_id not in ("", basic[0]):
                raise OAuthRefused(
                    RefusalCode.INVALID_REQUEST,
                    "send the credentials of the client once: in Authorization or in the body",
                )
            client_id, secret = basic
        if not client_id:
            raise OAuthRefused(RefusalCode.INVALID_CLIENT, "client_id is missing")
        await self.clients.authenticate(client_id, secret)
        return client_id


def _read_form(call: Call[None]) -> Query:
    """Return the form of a request.

    :raises InvalidParameter: it is not form-encoded.
    """
    types = header_values(call.http, b"Content-Type")
    wanted = "application/x-www-form-urlencoded"
    if [kind.partition(";")[0].strip().lower() for kind in types] != [wanted]:
        raise InvalidParameter("body", f"Content-Type must be {wanted}")
    return Query(split_query(call.body))


def _required(form: Query, name: str) -> str:
    found = read_one(form, name, MAX_TOKEN)
    if not found:
        raise OAuthRefused(RefusalCode.INVALID_REQUEST, f"{name} is missing")
    return found


def _read_basic(request: Request) -> tuple[str, str] | None:
    """Return the credentials in the Authorization header (RFC 6749 section 2.3.1), or `None`.

    :raises OAuthRefused: they cannot be decoded.
    """
    for value in header_values(request, b"Authorization"):
        scheme, _, encoded = value.strip().partition(" ")
        if scheme.lower() != "basic":
            continue
        try:
            text = base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            text = ""
        client_id, colon, secret = text.partition(":")
        if not colon or len(text) > MAX_DOCUMENT_URL + MAX_TOKEN:
            raise OAuthRefused(
                RefusalCode.INVALID_CLIENT, "the Authorization header cannot be decoded"
            )
        return unquote_plus(client_id), unquote_plus(secret)
    return None


def _describe(made: RegisteredClient, method: str) -> dict[str, object]:
    """Return the registration of a client (RFC 7591 section 3.2.1)."""
    client = made.client
    found: dict[str, object] = {
        "client_id": client.id,
        "client_id_issued_at": client.created_at // SECOND,
        "client_name": client.name,
        "redirect_uris": client.redirect_uris.split(),
        "token_endpoint_auth_method": method,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
    }
    if made.secret:
        # The client may expire, but not at a time that is known now.
        found |= {"client_secret": made.secret, "client_secret_expires_at": 0}
    return found


def refuse(problem: Problem) -> Reply:
    """Return a problem of an endpoint as OAuth requires. A crash is reported as everywhere."""
    failure = problem.failure
    if isinstance(failure, Crash):
        return write_error(problem)
    if isinstance(failure, OAuthRefused):
        if failure.code is RefusalCode.INVALID_CLIENT:
            headers = {"WWW-Authenticate": 'Basic realm="mailcheck"'}
            return _error(UNAUTHORIZED, failure.code, problem.sentence, headers)
        return _error(problem.status, failure.code, problem.sentence)
    is_invalid = isinstance(failure, InvalidParameter | BodyTooLarge)
    code = RefusalCode.INVALID_REQUEST if is_invalid else "temporarily_unavailable"
    return _error(problem.status, code, problem.sentence)


def _error(status: int, code: str, problem: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Return an error of OAuth (RFC 6749 section 5.2)."""
    return json_reply({"error": str(code), "error_description": problem}, status, headers)
