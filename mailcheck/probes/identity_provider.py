"""Requests to the OpenID Connect provider that the operator has configured.

Its host may be in a private network, so connections are not restricted to public addresses.
Redirects are not followed, and answers are bounded in size and time.
"""

import base64
import json
from collections.abc import Coroutine, Mapping
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from OpenSSL import SSL
from service_identity import VerificationError
from treq.content import collect
from twisted.internet.defer import CancelledError, Deferred
from twisted.web.client import URI, Agent
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse

from mailcheck.ports.identity_provider import (
    JsonObject,
    ProviderRefused,
    ProviderSilent,
    ProviderUnusable,
    Visited,
)
from mailcheck.probes.fetching import USER_AGENT, BytesBody, bounded
from mailcheck.probes.trust import FindTrust, NoAuthorities, VerifiedHosts

SECONDS = 10.0
"""Time limit of a request with its answer. A person waits for several of them."""

MAX_OCTETS = 262_144
"""Maximum number of bytes of an answer. A set of keys has a few kilobytes."""

TOO_MANY_REQUESTS = 429


Answer = TypeVar("Answer")


class HttpIdentityProvider:
    """Sends the requests over HTTP.

    :param find_trust: loads the certificate authorities. It is called before the first request.
    """

    def __init__(self, reactor: Any, find_trust: FindTrust) -> None:
        self._reactor = reactor
        self._find_trust = find_trust

    def get(self, url: str, token: str = "") -> Deferred[JsonObject]:
        """Fetch a JSON object, as defined by `IdentityProvider`."""
        return self._ask(b"GET", url, f"Bearer {token}" if token else "", None)

    def post(
        self, url: str, form: Mapping[str, str], user: tuple[str, str] | None
    ) -> Deferred[JsonObject]:
        """Send a form, as defined by `IdentityProvider`."""
        authorization = ""
        if user is not None:
            pair = ":".join(quote(part, safe="") for part in user).encode()
            authorization = f"Basic {base64.b64encode(pair).decode()}"
        return self._ask(b"POST", url, authorization, urlencode(form).encode())

    @cached_property
    def _agent(self) -> Agent:
        trust = self._find_trust()
        return Agent(self._reactor, VerifiedHosts(lambda: trust), connectTimeout=SECONDS)

    def visit(self, url: str) -> Deferred[Visited]:
        """Open a page, as defined by `IdentityProvider`."""

        async def open_page() -> Visited:
            response, _ = await self._exchange(b"GET", url, "", None)
            (location,) = response.headers.getRawHeaders(b"Location") or [b""]
            return Visited(response.code, location.decode("utf-8", "replace"))

        return self._in_time(url, open_page())

    def _ask(
        self, method: bytes, url: str, authorization: str, body: bytes | None
    ) -> Deferred[JsonObject]:
        async def ask() -> JsonObject:
            response, received = await self._exchange(method, url, authorization, body)
            return _read(url, response.code, received)

        return self._in_time(url, ask())

    def _in_time(self, url: str, exchange: Coroutine[Any, Any, Answer]) -> Deferred[Answer]:
        def too_late(_: object, __: float) -> Answer:
            raise ProviderSilent(f"{url} has not answered within {SECONDS:g} seconds")

        return Deferred.fromCoroutine(exchange).addTimeout(SECONDS, self._reactor, too_late)

    async def _exchange(
        self, method: bytes, url: str, authorization: str, body: bytes | None
    ) -> tuple[IResponse, bytes]:
        headers = Headers({"Accept": ["application/json"], "User-Agent": [USER_AGENT]})
        if authorization:
            headers.setRawHeaders("Authorization", [authorization])
        producer = None
        if body is not None:
            headers.setRawHeaders("Content-Type", ["application/x-www-form-urlencoded"])
            producer = BytesBody(body)
        received = bytearray()
        try:
            parsed = URI.fromBytes(url.encode("ascii")).toBytes()
            response: IResponse = await self._agent.request(method, parsed, headers, producer)
            await collect(response, bounded(received, MAX_OCTETS))
        except CancelledError:
            raise
        except NoAuthorities as failure:
            raise ProviderUnusable(str(failure)) from None
        except Exception as failure:
            problem = f"{url}: {type(failure).__name__} {failure}"
            kind = ProviderUnusable if _is_of_tls(failure) else ProviderSilent
            raise kind(problem) from failure
        return response, bytes(received)


def _is_of_tls(failure: Exception) -> bool:
    """Return whether a certificate or a version of TLS was not acceptable."""
    reasons = [reason.value for reason in getattr(failure, "reasons", ())]
    return any(isinstance(cause, SSL.Error | VerificationError) for cause in (failure, *reasons))


def _read(url: str, status: int, body: bytes) -> JsonObject:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if status >= 500 or status == TOO_MANY_REQUESTS:
        raise ProviderSilent(f"{url}: status {status}")
    if status < 400 and (status != 200 or not isinstance(found, dict)):
        raise ProviderUnusable(f"{url}: status {status} without a JSON object")
    if status != 200:
        error, description = _text(found, "error", 100), _text(found, "error_description", 300)
        raise ProviderRefused(f"{url}: status {status}, error {error!r}", error, description)
    answer: JsonObject = found
    return answer


def _text(found: object, name: str, most: int) -> str:
    """Return the beginning of a text in an error, or an empty string."""
    named = found.get(name) if isinstance(found, dict) else None
    return named[:most] if isinstance(named, str) else ""
