"""Authorization requests, the resource that they ask for, and how they are refused."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct

from mailcheck.core.accounts import ApiKey
from mailcheck.core.domains.domain_names import origin_of
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, HOUR, MINUTE, Instant
from mailcheck.core.rights import Scope

CODE_LIFE = 2 * MINUTE
"""Milliseconds within which a code must be exchanged."""

ACCESS_LIFE = 1 * HOUR
"""Milliseconds for which an access token is valid."""

REFRESH_LIFE = 30 * DAY
"""Milliseconds after which an unused grant ends. Each refresh begins them anew."""

REUSE_WINDOW = 1 * MINUTE
"""Milliseconds within which an exchanged refresh token is exchanged again.

Hosted agents refresh from several processes and addresses, and answers are lost.
"""

MAX_PAIRS = 3
"""Maximum number of pairs of tokens of a grant whose refresh token was not exchanged yet, if any
of them comes from a repeated exchange."""

AGENT_TEXTS: Mapping[Scope, str] = {
    Scope.INBOX_READ: "take addresses, wait for mail, read messages, and get public links to them",
    Scope.INBOX_WRITE: "delete messages",
    Scope.TESTS: "create deliverability tests, and read their reports",
    Scope.DOMAINS: "check domains and blocklists, and read reports of receivers",
    Scope.WATCHES: "read watches and heartbeats with their alerts",
    Scope.WEBHOOKS: "send mail to your applications over inbound routes, and read their answers",
}
"""What the tools of each scope can do. A token is valid for the tools only, not for the API."""

OFFERED = tuple(AGENT_TEXTS)
"""The scopes of the tools for agents, which are the scopes that can be granted."""

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}", re.ASCII)

MAX_STATE = 2_000
"""Maximum number of characters of ``state``."""


class RefusalCode(StrEnum):
    """The error codes of OAuth that this service uses."""

    INVALID_REQUEST = "invalid_request"
    INVALID_CLIENT = "invalid_client"
    INVALID_GRANT = "invalid_grant"
    UNAUTHORIZED_CLIENT = "unauthorized_client"
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
    UNSUPPORTED_RESPONSE_TYPE = "unsupported_response_type"
    INVALID_SCOPE = "invalid_scope"
    INVALID_TARGET = "invalid_target"
    ACCESS_DENIED = "access_denied"
    INVALID_REDIRECT_URI = "invalid_redirect_uri"
    INVALID_CLIENT_METADATA = "invalid_client_metadata"


class OAuthRefused(ExpectedFailure):
    """A request of an OAuth client is refused. ``code`` is the error code for the client."""

    def __init__(self, code: RefusalCode, problem: str) -> None:
        super().__init__(problem)
        self.code = code


class AuthorizationRequest(Struct, frozen=True):
    """The request of a client to a person. ``scopes`` contains the scopes that can be granted."""

    client_id: str
    redirect_uri: str
    state: str | None
    challenge: str
    scopes: tuple[Scope, ...]


class AuthorizationCode(Struct, frozen=True):
    """A code that is exchanged for tokens once. ``scopes`` are separated by spaces.

    ``granted_by`` is the person who has allowed the use of the account. ``replaces`` are the ids of
    the grants that end when the code is exchanged, separated by spaces.
    """

    account_id: AccountId
    granted_by: AccountId
    client_id: str
    client_name: str
    redirect_uri: str
    challenge: str
    scopes: str
    expires_at: Instant
    replaces: str = ""


class NewTokens(Struct, frozen=True):
    """The digests of a new pair of tokens, and until when they are valid."""

    access_digest: bytes
    access_until: Instant
    refresh_digest: bytes
    refresh_until: Instant


class Redemption(Struct, frozen=True):
    """The result of a code or a refresh token.

    ``key`` is the grant, or `None` with a ``problem``. ``revoked`` is the grant that ended because
    the code or the token was used a second time, or by another client. ``is_repeated``: the token
    was exchanged a short time ago, too.
    """

    key: ApiKey | None = None
    problem: str = ""
    revoked: ApiKey | None = None
    is_repeated: bool = False


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a code verifier (RFC 7636 section 4.2)."""
    digest = hashlib.sha256(verifier.encode("ascii", "replace")).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def is_challenge(text: str) -> bool:
    """Return whether a text has the form of an S256 challenge."""
    return _CHALLENGE.fullmatch(text) is not None


def is_verifier(text: str) -> bool:
    """Return whether a text has the form of a code verifier (RFC 7636 section 4.1)."""
    return _VERIFIER.fullmatch(text) is not None


def choose_scopes(asked: str) -> tuple[Scope, ...]:
    """Return the scopes of a request that can be granted, or all of these if it names none.

    Unknown scopes, such as ``offline_access``, are ignored (RFC 6749 section 3.3).
    """
    words = set(asked.split())
    return tuple(scope for scope in OFFERED if scope in words) or OFFERED


def require_resource(named: Sequence[str], resource: str) -> None:
    """Check that a request is for this resource (RFC 8707). Naming none is naming this one.

    :raises OAuthRefused: it names another one.
    """
    for scope_name in named:
        if _normalized(scope_name) != _normalized(resource):
            raise OAuthRefused(
                RefusalCode.INVALID_TARGET,
                f"the resource must be {resource}; got {scope_name[:200]!r}",
            )


def _normalized(url: str) -> tuple[str, str] | None:
    try:
        parts = urlsplit(url)
        origin = origin_of(url)
    except ValueError:
        return None
    if parts.fragment or parts.query or parts.username is not None:
        return None
    return origin, parts.path.removesuffix("/")
