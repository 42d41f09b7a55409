"""A test double for the OpenID Connect provider of a company."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey
from twisted.internet.defer import Deferred, fail, succeed

from mailcheck.ports.identity_provider import JsonObject, ProviderRefused, Visited
from tests.fakes.clock_and_randomness import TEST_START

ISSUER = "https://login.company.example"
CLIENT_ID, CLIENT_SECRET = "mailcheck", "a secret of the client"

_KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}, private=True)
_OTHER = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}, private=True)
PUBLIC_KEY = _KEY.as_dict(private=False)


def _mac_token(header: dict[str, Any], claims: dict[str, Any], secret: bytes) -> str:
    """Return a token in the compact form, which a careful library does not make."""
    signed = ".".join(_encode(json.dumps(part).encode()) for part in (header, claims))
    return f"{signed}.{_encode(hmac.digest(secret, signed.encode(), 'sha256'))}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Company:
    """A provider. A test may change what it answers at any time.

    ``change`` changes the claims of the next ID tokens, and ``sign`` replaces their signature.
    """

    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "jwks_uri": f"{ISSUER}/keys",
            "userinfo_endpoint": f"{ISSUER}/userinfo",
            "end_session_endpoint": f"{ISSUER}/logout",
            "authorization_response_iss_parameter_supported": True,
        }
        self.published: dict[str, Any] = {"keys": [PUBLIC_KEY]}
        self.fault: Exception | None = None
        self.claims: dict[str, Any] = {"sub": "ann-1", "preferred_username": "ann"}
        self.user_info: dict[str, Any] = {"sub": "ann-1"}
        self.change: Callable[[dict[str, Any]], object] = lambda claims: None
        self.sign: Callable[[dict[str, Any]], str] = self.sign_properly
        self.asked: list[str] = []
        self.visited: Visited | None = None
        self.forms: list[tuple[Mapping[str, str], tuple[str, str] | None]] = []
        self._codes: dict[str, dict[str, str]] = {}

    def get(self, url: str, token: str = "") -> Deferred[JsonObject]:
        """Answer as defined by `IdentityProvider`."""
        self.asked.append(url)
        if self.fault is not None:
            return fail(self.fault)
        if url.endswith("/.well-known/openid-configuration"):
            return succeed(dict(self.metadata))
        if url.endswith("/userinfo"):
            return succeed(dict(self.user_info))
        return succeed(self.published)

    def visit(self, url: str) -> Deferred[Visited]:
        """Answer as defined by `IdentityProvider`: a person is needed, unless a test changes it."""
        self.asked.append(url)
        if self.visited is None:
            back = parse_qs(urlsplit(url).query)["redirect_uri"][0]
            return succeed(Visited(302, f"{back}?error=login_required&state=doctor"))
        return succeed(self.visited)

    def post(
        self, url: str, form: Mapping[str, str], user: tuple[str, str] | None
    ) -> Deferred[JsonObject]:
        """Answer as defined by `IdentityProvider`. A code works once, with its verifier."""
        self.forms.append((form, user))
        if self.fault is not None:
            return fail(self.fault)
        asked = self._codes.pop(form["code"], None)
        challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
        encoded = _encode(challenge)
        if (
            asked is None
            or encoded != asked["code_challenge"]
            or form["redirect_uri"] != asked["redirect_uri"]
            or user != (CLIENT_ID, CLIENT_SECRET)
        ):
            return fail(ProviderRefused("refused", "invalid_grant"))
        claims = {
            "iss": ISSUER,
            "aud": CLIENT_ID,
            "iat": int(TEST_START),
            "exp": int(TEST_START) + 300,
            "nonce": asked["nonce"],
            **self.claims,
        }
        self.change(claims)
        return succeed({"id_token": self.sign(claims), "access_token": "access"})

    def sign_properly(self, claims: dict[str, Any]) -> str:
        """Return an ID token with the signature of the provider."""
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, _KEY)

    def replace_key(self, key_id: str | None) -> None:
        """Publish and use another key, under an id or without one."""
        public = {**_OTHER.as_dict(private=False), "kid": key_id, "use": None}
        header = {"alg": "RS256"} if key_id is None else {"alg": "RS256", "kid": key_id}
        self.published = {"keys": [public]}
        self.sign = lambda claims: jwt.encode(header, claims, _OTHER)

    def sign_with_another_key(self, claims: dict[str, Any]) -> str:
        """Return a token that an attacker has signed, under the id of the real key."""
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, _OTHER)

    def sign_with_public_key(self, claims: dict[str, Any]) -> str:
        """Return a token whose HMAC has the public key as its secret (algorithm confusion)."""
        return _mac_token({"alg": "HS256", "kid": "one"}, claims, _KEY.as_pem(private=False))

    def sign_with_client_secret(self, claims: dict[str, Any]) -> str:
        """Return a token whose HMAC has the client secret."""
        return _mac_token({"alg": "HS256"}, claims, CLIENT_SECRET.encode())

    def sign_not(self, claims: dict[str, Any]) -> str:
        """Return a token without a signature."""
        return _mac_token({"alg": "none"}, claims, b"").rpartition(".")[0] + "."

    def sign_with_key_in_header(self, claims: dict[str, Any]) -> str:
        """Return a token that brings its own key."""
        header = {"alg": "RS256", "jwk": _OTHER.as_dict(private=False)}
        return jwt.encode(header, claims, _OTHER)

    def approve(self, location: str, code: str = "code") -> str:
        """Sign the person in at the provider. Return the path of the callback."""
        parts = urlsplit(location)
        assert f"{parts.scheme}://{parts.netloc}" == ISSUER
        asked = {name: one for name, (one,) in parse_qs(parts.query).items()}
        assert asked["code_challenge_method"] == "S256"
        assert asked["client_id"] == CLIENT_ID
        self._codes[code] = asked
        back = urlsplit(asked["redirect_uri"])
        return f"{back.path}?code={code}&state={asked['state']}&iss={ISSUER}"
