"""OAuth clients: their metadata, their redirect URIs, and the URLs that identify documents."""

import re
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec
from msgspec import Struct

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import Instant

MAX_CLIENT_NAME = 60
"""Maximum number of characters of a client's name."""

MAX_REDIRECT_URIS = 10
"""Maximum number of redirect URIs of a client."""

MAX_REDIRECT_URI = 1_000
"""Maximum number of characters of a redirect URI."""

MAX_DOCUMENT_URL = 500
"""Maximum number of characters of the URL of a client metadata document."""

LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")

PUBLIC = "none"
"""The authentication method of a client without a secret (RFC 7591 section 2)."""

SECRET_METHODS = ("client_secret_basic", "client_secret_post")
"""The authentication methods of a client with a secret."""

_URI = re.compile(r"[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]+", re.ASCII)
"""The characters of a URI without a fragment (RFC 3986 section 2)."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]{1,40}", re.ASCII)

_RESERVED_SCHEMES = frozenset(
    {"about", "blob", "chrome", "data", "file", "filesystem", "ftp", "intent", "javascript"}
    | {"mailto", "sms", "tel", "vbscript", "view-source", "ws", "wss"}
)
"""Schemes that do not lead to a program of the person, or that run code in the browser."""


class ClientSource(StrEnum):
    """How this service knows a client. The values are stored."""

    OPERATOR = "operator"
    """An operator has registered the client."""
    REGISTRATION = "registration"
    """The client has registered itself (RFC 7591)."""
    DOCUMENT = "document"
    """The client's id is the URL of its metadata document."""


class Client(Struct, frozen=True):
    """A program that people can connect.

    ``redirect_uris`` are separated by spaces. ``expires_at`` is `None` for a client that does not
    expire.
    """

    id: str
    name: str
    redirect_uris: str
    source: ClientSource
    has_secret: bool
    created_at: Instant
    expires_at: Instant | None = None

    @property
    def is_verified(self) -> bool:
        """Whether the identity is confirmed by the operator or by a host."""
        return self.source is not ClientSource.REGISTRATION

    @property
    def host(self) -> str:
        """The host that serves the client's metadata document, or an empty text."""
        is_document = self.source is ClientSource.DOCUMENT
        return urlsplit(self.id).netloc if is_document else ""

    def accepts_redirect(self, uri: str) -> bool:
        """Return whether a redirect URI is one of the client's.

        The port of a loopback address may differ (RFC 8252 section 7.3).
        """
        return any(
            uri == known or _is_same_loopback(uri, known) for known in self.redirect_uris.split()
        )

    def is_same_program(self, other: "Client") -> bool:
        """Return whether another client is probably the same program.

        A program that registers itself does so for each connection, with another loopback port.
        """
        if self.id == other.id:
            return True
        return (
            self.source is other.source is ClientSource.REGISTRATION
            and self.name == other.name
            and _addresses_of(self) == _addresses_of(other)
        )


def _addresses_of(client: Client) -> set[object]:
    """Return the redirect URIs of a client, without the ports of loopback addresses."""
    parts = map(urlsplit, client.redirect_uris.split())
    return {_without_port(part) if _is_loopback(part) else part for part in parts}


def _is_same_loopback(uri: str, known: str) -> bool:
    try:
        one, other = urlsplit(require_redirect_uri(uri)), urlsplit(known)
    except InvalidParameter:
        return False
    return _is_loopback(one) and _without_port(one) == _without_port(other)


def _is_loopback(parts: SplitResult) -> bool:
    return parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS


def _without_port(parts: SplitResult) -> tuple[str, str | None, str, str]:
    return parts.scheme, parts.hostname, parts.path, parts.query


def require_redirect_uri(uri: str) -> str:
    """Return a redirect URI that codes may be sent to.

    It is an https URL, an http URL of a loopback address, or has a scheme of a native program
    (RFC 8252 section 7).

    :raises InvalidParameter: it is not; the message names the URI.
    """
    shown = repr(uri[:100])
    if len(uri) > MAX_REDIRECT_URI or _URI.fullmatch(uri) is None:
        raise _invalid(
            f"{shown} is not a URI of at most {MAX_REDIRECT_URI} characters without a fragment"
        )
    try:
        parts = urlsplit(uri)
        is_address = bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:
        raise _invalid(f"{shown} is not a URI") from None
    if parts.scheme == "https" or _is_loopback(parts):
        if not is_address:
            raise _invalid(f"{shown} has no host, a user name or an invalid port")
        return uri
    if parts.scheme == "http":
        raise _invalid(f"{shown} must use https: http is for loopback addresses only")
    if _SCHEME.fullmatch(parts.scheme) is None or parts.scheme in _RESERVED_SCHEMES:
        raise _invalid(f"{shown} must use https, http on a loopback address, or an own scheme")
    if not uri[len(parts.scheme) :].startswith(":/"):
        raise _invalid(f"{shown} needs a slash after its scheme")
    return uri


def _invalid(problem: str) -> InvalidParameter:
    return InvalidParameter("redirect_uri", f"the redirect URI {problem}")


def has_known_scheme(uri: str, known: Collection[str]) -> bool:
    """Return whether no other program is likely to have taken the scheme of a redirect URI.

    A scheme of a native program is a reversed domain name, so it has a dot (RFC 8252 8.4). Any
    program can take a scheme without one, so only ``known`` ones are accepted.
    """
    scheme = urlsplit(uri).scheme
    return scheme in ("https", "http") or "." in scheme or scheme in known


def describe_redirect(uri: str) -> str:
    """Return where a redirect URI leads to, for people."""
    parts = urlsplit(uri)
    if _is_loopback(parts):
        return "a program on your own computer"
    return parts.netloc if parts.scheme == "https" else f"the program for {parts.scheme}: links"


def add_parameters(uri: str, parameters: dict[str, str]) -> str:
    """Return a redirect URI with more parameters (RFC 6749 section 4.1.2)."""
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(parameters)}"


def is_document_url(client_id: str) -> bool:
    """Return whether a client id is the URL of a client metadata document.

    It is an https URL with a path, and without dot segments, fragment and user name
    (draft-ietf-oauth-client-id-metadata-document section 3).
    """
    if len(client_id) > MAX_DOCUMENT_URL or _URI.fullmatch(client_id) is None:
        return False
    try:
        parts = urlsplit(client_id)
        has_host = bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:
        return False
    segments = parts.path.lower().replace("%2e", ".").split("/")
    return (
        client_id.startswith("https://")
        and has_host
        and parts.path not in ("", "/")
        and not {".", ".."}.intersection(segments)
    )


class ClientMetadata(Struct, frozen=True):
    """The metadata of a client in a registration or in its document (RFC 7591 section 2).

    Other members are ignored, and no URL among them is loaded.
    """

    client_id: str | None = None
    client_name: str | None = None
    redirect_uris: tuple[str, ...] = ()
    token_endpoint_auth_method: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ()
    grant_types: tuple[str, ...] | None = None
    response_types: tuple[str, ...] | None = None
    client_secret: str | None = None

    @property
    def name(self) -> str:
        """The printable characters of the name, or a text if there are none."""
        shown = "".join(
            character for character in self.client_name or "" if character.isprintable()
        ).strip()
        return shown[:MAX_CLIENT_NAME] or "unnamed program"

    @property
    def may_be_public(self) -> bool:
        """Whether the client can do without a secret.

        ChatGPT prefers ``private_key_jwt`` and lists ``none`` among the methods that it supports
        (OpenID Connect Relying Party Metadata Choices).
        """
        preferred = self.token_endpoint_auth_method or PUBLIC
        return PUBLIC in (preferred, *self.token_endpoint_auth_methods_supported)

    def require_usable(self) -> str:
        """Return the redirect URIs, separated by spaces.

        :raises InvalidParameter: a redirect URI is missing or not acceptable, or the client needs
            a grant type that this service does not have.
        """
        if not 1 <= len(self.redirect_uris) <= MAX_REDIRECT_URIS:
            raise InvalidParameter(
                "redirect_uris",
                f"redirect_uris must have 1 to {MAX_REDIRECT_URIS} URIs; "
                f"got {len(self.redirect_uris)}",
            )
        if self.grant_types is not None and "authorization_code" not in self.grant_types:
            raise InvalidParameter("grant_types", "grant_types must contain authorization_code")
        if self.response_types is not None and "code" not in self.response_types:
            raise InvalidParameter("response_types", "response_types must contain code")
        return " ".join(map(require_redirect_uri, self.redirect_uris))


def parse_metadata(body: bytes) -> ClientMetadata:
    """Parse the metadata of a client.

    :raises InvalidParameter: it is not JSON of this form.
    """
    try:
        # Some programs write null for an absent member.
        given = msgspec.json.decode(body, type=dict[str, Any])
        members = {name: value for name, value in given.items() if value is not None}
        return msgspec.convert(members, ClientMetadata)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidParameter("metadata", f"the metadata is not valid: {error}") from None


class ClientDocument(Struct, frozen=True):
    """A client metadata document, or the reason why it cannot be used (``problem``)."""

    name: str = ""
    redirect_uris: str = ""
    problem: str = ""


def read_document(url: str, body: bytes) -> ClientDocument:
    """Return the client that a metadata document at a URL describes."""
    try:
        metadata = parse_metadata(body)
        if metadata.client_id != url:
            shown = repr((metadata.client_id or "")[:200])
            return ClientDocument(problem=f"the client_id in the document is {shown}, not its URL")
        if metadata.client_secret is not None:
            return ClientDocument(problem="a public document contains a client_secret")
        if not metadata.may_be_public:
            return ClientDocument(
                problem="the document must allow the token_endpoint_auth_method none"
            )
        return ClientDocument(metadata.name, metadata.require_usable())
    except InvalidParameter as failure:
        return ClientDocument(problem=str(failure))


def join_redirect_uris(uris: Sequence[str]) -> str:
    """Return redirect URIs as they are stored.

    :raises InvalidParameter: one is not acceptable, or there are none or too many.
    """
    return ClientMetadata(redirect_uris=tuple(uris)).require_usable()
