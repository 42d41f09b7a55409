"""An OpenID Connect provider on loopback, made of Authlib's parts and Flask."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any

from authlib.integrations.flask_oauth2 import AuthorizationServer, ResourceProtector
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc6750 import BearerTokenValidator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9207.parameter import IssuerParameter
from authlib.oidc.core import UserInfo
from authlib.oidc.core.grants import OpenIDCode
from flask import Flask, Response, jsonify, redirect, request
from joserfc.jwk import KeySet, RSAKey
from werkzeug.serving import make_server

from tests.servers.daemon import HOST, free_ports

CLIENT_ID, CLIENT_SECRET = "mailcheck", "secret of the client"

PAGE = """<!doctype html><title>Example Ltd</title><h1>Example Ltd</h1>
<form method="post"><label>User <input name="user"></label><button>Continue</button></form>"""


@dataclass
class Person:
    """A person of the company."""

    sub: str
    name: str
    groups: list[str]

    def get_user_id(self) -> str:
        """Return the subject."""
        return self.sub


@dataclass
class Client:
    """The registration of mailcheck."""

    back: str
    after: str

    def get_client_id(self) -> str:
        """Return the id."""
        return CLIENT_ID

    def get_default_redirect_uri(self) -> str:
        """Return the address of the callback."""
        return self.back

    def get_allowed_scope(self, scope: str) -> str:
        """Allow every scope."""
        return scope

    def check_redirect_uri(self, uri: str) -> bool:
        """Return whether the address is registered."""
        return uri == self.back

    def check_client_secret(self, secret: str) -> bool:
        """Return whether the secret is right."""
        return secret == CLIENT_SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Accept HTTP Basic authentication only."""
        return method == "client_secret_basic"

    def check_response_type(self, response_type: str) -> bool:
        """Accept codes only."""
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        """Accept codes only."""
        return grant_type == "authorization_code"


@dataclass
class Code:
    """An authorization code."""

    code: str
    person: Person
    redirect_uri: str
    scope: str
    nonce: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        """Return the address of the callback."""
        return self.redirect_uri

    def get_scope(self) -> str:
        """Return the scopes."""
        return self.scope

    def get_nonce(self) -> str:
        """Return the nonce."""
        return self.nonce

    def get_auth_time(self) -> int:
        """Return the time of the sign-in."""
        return int(time.time())

    def get_acr(self) -> None:
        """Return no class."""

    def get_amr(self) -> None:
        """Return no methods."""


@dataclass
class Token:
    """An access token."""

    person: Person

    def is_expired(self) -> bool:
        """Return false."""
        return False

    def is_revoked(self) -> bool:
        """Return false."""
        return False

    def get_scope(self) -> str:
        """Return the scope."""
        return "openid"


class CompanyServer:
    """The provider, with its people by their names. ``signed_out`` counts logouts."""

    def __init__(self, back: str, after: str) -> None:
        (port,) = free_ports(1)
        self.port = port
        self.issuer = f"http://{HOST}:{port}/company"
        self.people: dict[str, Person] = {}
        self.signed_out = 0
        self.client = Client(back, after)
        self.codes: dict[str, Code] = {}
        self.tokens: dict[str, Token] = {}
        self.keys = KeySet([RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"})])
        self._server = make_server(HOST, port, self._application(), threaded=True)
        self._thread = Thread(target=self._server.serve_forever)

    def start(self) -> None:
        """Start to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _application(self) -> Flask:
        application = Flask("company")
        server = self._authorization_server(application)
        self._add_pages(application, server)
        self._add_endpoints(application, server)
        return application

    def _authorization_server(self, application: Flask) -> AuthorizationServer:
        company = self

        class Codes(AuthorizationCodeGrant):  # type: ignore[misc]
            TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic",)

            def save_authorization_code(self, code: str, request: Any) -> None:
                data = request.payload.data
                company.codes[code] = Code(
                    code,
                    request.user,
                    request.payload.redirect_uri,
                    request.payload.scope,
                    data["nonce"],
                    data["code_challenge"],
                    data["code_challenge_method"],
                )

            def query_authorization_code(self, code: str, client: Client) -> Code | None:
                return company.codes.get(code)

            def delete_authorization_code(self, authorization_code: Code) -> None:
                del company.codes[authorization_code.code]

            def authenticate_user(self, authorization_code: Code) -> Person:
                return authorization_code.person

        def save(token: dict[str, str], request: Any) -> None:
            company.tokens[token["access_token"]] = Token(request.user)

        server = AuthorizationServer(
            application, query_client=lambda client_id: self.client, save_token=save
        )
        server.register_grant(Codes, [IdTokens(company), CodeChallenge(required=True)])
        server.register_extension(Issuer(company.issuer))
        return server

    def _add_pages(self, application: Flask, server: AuthorizationServer) -> None:
        company = self

        @application.get("/company/authorize")
        def ask() -> str:
            return PAGE

        @application.post("/company/authorize")
        def authorize() -> Response:
            person = company.people[request.form["user"]]
            grant = server.get_consent_grant(end_user=person)
            answer: Response = server.create_authorization_response(grant_user=person, grant=grant)
            return answer

        @application.get("/company/logout")
        def logout() -> Any:
            company.signed_out += 1
            back = request.args["post_logout_redirect_uri"]
            return redirect(back) if back == self.client.after else ("unknown address", 400)

    def _add_endpoints(self, application: Flask, server: AuthorizationServer) -> None:
        company, issuer = self, self.issuer

        protector = ResourceProtector()
        protector.register_token_validator(Tokens(company))

        @application.get("/company/.well-known/openid-configuration")
        def metadata() -> Response:
            return jsonify(
                issuer=issuer,
                authorization_endpoint=f"{issuer}/authorize",
                token_endpoint=f"{issuer}/token",
                jwks_uri=f"{issuer}/keys",
                userinfo_endpoint=f"{issuer}/userinfo",
                end_session_endpoint=f"{issuer}/logout",
                token_endpoint_auth_methods_supported=["client_secret_basic"],
                authorization_response_iss_parameter_supported=True,
            )

        @application.get("/company/keys")
        def keys() -> Response:
            return jsonify(company.keys.as_dict(private=False))

        @application.post("/company/token")
        def token() -> Response:
            answer: Response = server.create_token_response()
            return answer

        @application.get("/company/userinfo")
        def user_info() -> Response:
            with protector.acquire() as found:
                return jsonify(sub=found.person.sub, groups=found.person.groups)


class IdTokens(OpenIDCode):  # type: ignore[misc]
    """Makes the ID tokens."""

    def __init__(self, company: CompanyServer) -> None:
        super().__init__(require_nonce=True)
        self._company = company

    def exists_nonce(self, nonce: str, request: Any) -> bool:
        """Accept every nonce."""
        return False

    def resolve_client_private_key(self, client: Client) -> KeySet:
        """Return the keys."""
        return self._company.keys

    def get_client_algorithm(self, client: Client) -> str:
        """Return the algorithm of the keys."""
        return "RS256"

    def get_client_claims(self, client: Client) -> dict[str, object]:
        """Return the claims about the token."""
        now = int(time.time())
        return {"iss": self._company.issuer, "iat": now, "exp": now + 300, "aud": [CLIENT_ID]}

    def generate_user_info(self, user: Person, scope: str) -> UserInfo:
        """Return the claims about the person."""
        return UserInfo(sub=user.sub, preferred_username=user.name)


class Issuer(IssuerParameter):  # type: ignore[misc]
    """Adds the issuer to the answers (RFC 9207)."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    def get_issuer(self) -> str:
        """Return the issuer."""
        return self._issuer


class Tokens(BearerTokenValidator):  # type: ignore[misc]
    """Checks access tokens."""

    def __init__(self, company: CompanyServer) -> None:
        super().__init__()
        self._company = company

    def authenticate_token(self, token_string: str) -> Token | None:
        """Return the token, or `None`."""
        return self._company.tokens.get(token_string)


@contextmanager
def running_company(back: str, after: str) -> Iterator[CompanyServer]:
    """Run a provider that sends browsers back to these addresses."""
    # Authlib refuses plain HTTP, even on loopback, unless this is set.
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
    server = CompanyServer(back, after)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        del os.environ["AUTHLIB_INSECURE_TRANSPORT"]
