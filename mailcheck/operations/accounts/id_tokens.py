"""The metadata, keys and ID tokens of an OpenID Connect provider.

Signatures and times are verified by ``joserfc`` (RFC 7515, 7517, 7519). OpenID Connect Core
3.1.3.7 has the rules for ID tokens.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct, field
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from mailcheck.core.errors import (
    ExpectedFailure,
    SignInFailed,
    SignInMisconfigured,
    SignInUnavailable,
)
from mailcheck.core.instants import HOUR, MINUTE, SECOND, Instant
from mailcheck.core.signing_in.company import DISCOVERY, MAX_SUBJECT, is_safe_url
from mailcheck.operations.concurrency import SingleFlight
from mailcheck.ports.clocks import Now
from mailcheck.ports.identity_provider import (
    IdentityProvider,
    JsonObject,
    ProviderRefused,
    ProviderSilent,
    ProviderUnusable,
)

if TYPE_CHECKING:
    from joserfc.jwk import Key

Answer = TypeVar("Answer")

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Signatures with the private key of the provider. ``none`` and secrets of clients are refused."""

KEY_TYPES = ("RSA", "EC", "OKP")

MAX_KEYS = 50
"""Maximum number of keys of a provider that are read."""

CACHED_FOR = HOUR
"""Time for which metadata and keys are cached. Keys are fetched again if none fits a token."""

REFETCH_INTERVAL = MINUTE
"""Shortest time between two requests for the keys, since any token may fit none."""

LEEWAY = 60
"""Accepted difference between the clocks, in seconds."""

UNAVAILABLE = "the company's sign-in service does not answer; try again in a moment"
REFUSED = "the company's sign-in service did not confirm who you are; sign in again"
DECLINED = (
    "you declined at the company's sign-in service, or it does not let you use this service; "
    "sign in again, or ask its operator"
)
MISCONFIGURED = (
    "the sign-in with your company is not set up correctly: ask the operator of this service, "
    "whose log names the reason"
)

_MEANINGS: dict[str, tuple[type[ExpectedFailure], str]] = {
    "access_denied": (SignInFailed, DECLINED),
    "consent_required": (SignInFailed, DECLINED),
    "invalid_grant": (SignInFailed, REFUSED),
    "server_error": (SignInUnavailable, UNAVAILABLE),
    "temporarily_unavailable": (SignInUnavailable, UNAVAILABLE),
    **dict.fromkeys(
        (
            *("invalid_client", "invalid_request", "invalid_request_uri", "invalid_scope"),
            *("invalid_target", "redirect_uri_mismatch", "registration_not_supported"),
            *("request_not_supported", "request_uri_not_supported", "unauthorized_client"),
            *("unsupported_grant_type", "unsupported_response_type"),
        ),
        (SignInMisconfigured, MISCONFIGURED),
    ),
}
"""The failure for an error code (RFC 6749 4.1.2.1 and 5.2, OpenID Connect Core 3.1.2.6)."""


def failure_of(error: str, otherwise: ExpectedFailure) -> ExpectedFailure:
    """Return the failure for an error code of the provider, or another one if it is unknown."""
    if error not in _MEANINGS:
        return otherwise
    kind, sentence = _MEANINGS[error]
    return kind(sentence)


class Metadata(Struct, frozen=True):
    """The metadata of a provider (OpenID Connect Discovery 3), as far as it is used."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    sends_issuer: bool = field(default=False, name="authorization_response_iss_parameter_supported")


_NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_OPTIONAL = ("userinfo_endpoint", "end_session_endpoint")


def discovery_url(issuer: str) -> str:
    """Return the address of the metadata of a provider."""
    return issuer.rstrip("/") + DISCOVERY


def read_metadata(document: JsonObject, issuer: str) -> tuple[Metadata | None, str]:
    """Return the metadata of a provider, or why it is not usable for this issuer."""
    try:
        found = msgspec.convert(_without_nulls(document), Metadata)
    except msgspec.ValidationError as failure:
        return None, f"its metadata is unusable: {failure}"
    if found.issuer != issuer:
        return None, f"its metadata names the issuer {found.issuer}: write exactly this one"
    given = [getattr(found, name) for name in _NEEDED]
    given += filter(None, (getattr(found, name) for name in _OPTIONAL))
    unsafe = [url for url in given if not is_safe_url(url)]
    if unsafe:
        return None, f"its metadata names an address without HTTPS: {unsafe[0]}"
    return found, ""


class Provider:
    """The provider of one issuer, with its cached metadata and keys."""

    _log = Logger()

    def __init__(self, issuer: str, connection: IdentityProvider, now: Now) -> None:
        self.issuer = issuer
        self._connection = connection
        self._now = now
        self._metadata: tuple[Instant, Metadata] | None = None
        self._keys: tuple[Instant, Sequence[Key]] | None = None
        self._fetching: SingleFlight[str, Any] = SingleFlight(self._fetch)

    async def metadata(self) -> Metadata:
        """Return the metadata.

        :raises SignInUnavailable: the provider does not answer.
        :raises SignInMisconfigured: its metadata is unusable.
        """
        if self._metadata is None or self._now() - self._metadata[0] >= CACHED_FOR:
            found: Metadata = await self._fetching.call("metadata")
            self._metadata = self._now(), found
        return self._metadata[1]

    async def exchange(
        self, form: Mapping[str, str], client_id: str, secret: str
    ) -> Mapping[str, Any]:
        """Exchange an authorization code for tokens (OpenID Connect Core 3.1.3).

        :raises SignInFailed: the provider refuses the code.
        :raises SignInUnavailable: the provider does not answer.
        """
        metadata = await self.metadata()
        methods = metadata.token_endpoint_auth_methods_supported
        user, sent = None, dict(form)
        if secret and ("client_secret_basic" in methods or "client_secret_post" not in methods):
            user = client_id, secret
        else:
            sent |= {"client_id": client_id} | ({"client_secret": secret} if secret else {})
        return await self._answer(self._connection.post(metadata.token_endpoint, sent, user))

    async def user_info(self, token: str, subject: str) -> Mapping[str, Any]:
        """Return the claims of the UserInfo endpoint; empty if there is none.

        :raises SignInFailed: the claims are about another subject.
        :raises SignInUnavailable: the provider does not answer.
        """
        metadata = await self.metadata()
        if not metadata.userinfo_endpoint or not token:
            return {}
        found = await self._answer(self._connection.get(metadata.userinfo_endpoint, token))
        if found.get("sub") != subject:
            self._log.warn("the UserInfo endpoint of the provider names another subject")
            raise SignInFailed(REFUSED)
        return found

    async def verify(self, token: object, client_id: str, nonce: str) -> Mapping[str, Any]:
        """Return the claims of an ID token that the provider issued for this client and nonce.

        :raises SignInFailed: the token is not valid.
        :raises SignInUnavailable: the keys of the provider cannot be fetched.
        """
        if not isinstance(token, str) or not token.isascii():
            raise SignInFailed(REFUSED)
        keys = await self._current_keys(CACHED_FOR)
        try:
            try:
                claims = _decode(token, keys)
            except _NotSigned:
                # The provider may have replaced a key, even under the same id or without one.
                newer = await self._current_keys(REFETCH_INTERVAL)
                if newer is keys:
                    raise
                claims = _decode(token, newer)
            return _check(claims, self.issuer, client_id, nonce, self._now())
        except ValueError as failure:
            # The reason is not shown, since it would help an attacker.
            self._log.warn("an ID token was refused: {why}", why=failure)
            raise SignInFailed(REFUSED) from None

    async def _current_keys(self, oldest: int) -> "Sequence[Key]":
        """Return the keys; fetch them again if they are this old, in milliseconds."""
        now = self._now()
        if self._keys is not None and now - self._keys[0] < oldest:
            return self._keys[1]
        found: Sequence[Key] = await self._fetching.call("keys")
        self._keys = now, found
        return found

    async def _fetch(self, what: str) -> Any:
        if what == "keys":
            metadata = await self.metadata()
            keys = await self._answer(self._connection.get(metadata.jwks_uri))
            return self._read_keys(keys)
        document = await self._answer(self._connection.get(discovery_url(self.issuer)))
        found, problem = read_metadata(document, self.issuer)
        if found is None:
            self._log.error("[oidc] issuer {issuer}: {why}", issuer=self.issuer, why=problem)
            raise SignInMisconfigured(MISCONFIGURED)
        return found

    def _read_keys(self, document: JsonObject) -> "Sequence[Key]":
        from joserfc.errors import JoseError
        from joserfc.jwk import JWKRegistry

        listed = document.get("keys")
        keys = []
        for entry in listed[:MAX_KEYS] if isinstance(listed, list) else ():
            if not isinstance(entry, dict) or entry.get("kty") not in KEY_TYPES:
                continue
            given = _without_nulls(entry)
            if given.get("use", "sig") != "sig":
                continue
            try:
                keys.append(JWKRegistry.import_key(given))
            except (JoseError, ValueError, TypeError, KeyError) as failure:
                self._log.warn("a key of the provider is not readable: {why}", why=failure)
        if not keys:
            self._log.error("the provider publishes no usable key")
            raise SignInMisconfigured(MISCONFIGURED)
        return tuple(keys)

    async def _answer(self, asking: "Deferred[Answer]") -> Answer:
        try:
            return await asking
        except ProviderSilent as failure:
            self._log.warn("the provider does not answer: {why}", why=failure)
            raise SignInUnavailable(UNAVAILABLE) from None
        except ProviderUnusable as failure:
            self._log.error("[oidc] does not lead to a usable provider: {why}", why=failure)
            raise SignInMisconfigured(MISCONFIGURED) from None
        except ProviderRefused as failure:
            self._log.warn("the provider refuses: {why}", why=failure)
            raise failure_of(failure.error, SignInMisconfigured(MISCONFIGURED)) from None


class _NotSigned(ValueError):
    """None of the keys has signed a token."""


def _without_nulls(document: JsonObject) -> dict[str, Any]:
    """Return the members that are not null: some providers write null for an absent member."""
    return {name: value for name, value in document.items() if value is not None}


def _key_id(token: str) -> str | None:
    from joserfc.errors import JoseError
    from joserfc.jws import extract_compact

    try:
        found = extract_compact(token.encode("ascii")).headers().get("kid")
    except (JoseError, ValueError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _decode(token: str, keys: "Sequence[Key]") -> Mapping[str, Any]:
    """Return the claims of a token that one of the keys has signed.

    A key or a token without an id may fit any other one.

    :raises _NotSigned: there is no such key.
    """
    from joserfc import jwt
    from joserfc.errors import JoseError

    key_id, problem = _key_id(token), "it names an unknown key"
    for key in keys:
        if key_id is not None and key.kid not in (None, key_id):
            continue
        try:
            return _without_nulls(jwt.decode(token, key, algorithms=ALGORITHMS).claims)
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as failure:
            problem = f"{type(failure).__name__} {failure}"
    raise _NotSigned(problem)


def _check(
    claims: Mapping[str, Any], issuer: str, client_id: str, nonce: str, now: Instant
) -> Mapping[str, Any]:
    """Return the claims of an ID token if they are valid.

    :raises ValueError: they are not.
    """
    from joserfc import jwt
    from joserfc.errors import JoseError

    rules = jwt.JWTClaimsRegistry(
        now=now // SECOND,
        leeway=LEEWAY,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": client_id},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True, "value": nonce},
    )
    try:
        rules.validate(dict(claims))
    except (JoseError, ValueError, TypeError, KeyError, RecursionError) as failure:
        raise ValueError(f"{type(failure).__name__} {failure}") from None
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if claims.get("azp", client_id) != client_id or (len(audiences) > 1 and "azp" not in claims):
        raise ValueError("it was issued for another client")
    if not 0 < len(claims["sub"]) <= MAX_SUBJECT:
        raise ValueError("the subject is empty or too long")
    return claims
