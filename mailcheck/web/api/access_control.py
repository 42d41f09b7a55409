"""Authentication and rate limits of API requests (docs/reference/contract.md)."""

from msgspec import Struct
from twisted.web.server import Request

from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.client_limits import Usage
from mailcheck.core.errors import InvalidCredentials, LimitExceeded, StoreUnavailable
from mailcheck.core.keys import Key, key_of
from mailcheck.core.network_addresses import counting_key
from mailcheck.operations.accounts.authenticate import Authenticator, RequestMeter, key_subject
from mailcheck.ports.journals import AccessJournal
from mailcheck.web.site.requests import ClientAddresses, header_values

ANONYMOUS_PER_MINUTE = 60
"""Requests without a valid key that an address may make: keys can't be guessed fast."""


class Denied(Struct, frozen=True):
    """Nobody we serve, too much of it, or nobody can tell; the headers still say what is left."""

    usage: Usage
    failure: InvalidCredentials | LimitExceeded | StoreUnavailable


class Allowed(Struct, frozen=True):
    """A caller within its limits."""

    usage: Usage
    caller: Caller


def rate_limit_headers(usage: Usage) -> dict[str, str]:
    """Give the headers that every response carries."""
    return {
        "X-RateLimit-Remaining": str(usage.remaining),
        "X-RateLimit-Daily-Remaining": str(usage.daily_remaining),
    }


class AccessControl:
    """Identifies each request, and counts it once."""

    def __init__(
        self,
        authenticator: Authenticator,
        meter: RequestMeter,
        addresses: ClientAddresses,
        anonymous_per_day: int,
        journal: AccessJournal,
    ) -> None:
        self._authenticator = authenticator
        self._meter = meter
        self._addresses = addresses
        self._journal = journal
        self._anonymous = RequestLimits(ANONYMOUS_PER_MINUTE, anonymous_per_day)

    async def check(self, request: Request) -> Allowed | Denied:
        """Judge a request that counts."""
        caller = await self.authenticate(request)
        return caller if isinstance(caller, Denied) else await self.count(caller)

    async def authenticate(self, request: Request) -> Caller | Denied:
        """Find out who makes a request; only one of nobody we know is counted."""
        try:
            return await self._authenticator.identify(api_key_of(request))
        except (InvalidCredentials, StoreUnavailable) as failure:
            return await self._deny(request, failure)

    async def count(self, caller: Caller) -> Allowed | Denied:
        """Count a request of a known caller against its limits."""
        usage = await self._meter.count(key_subject(caller.key_id), caller.limits)
        if usage.exhausted is not None:
            return Denied(usage, self._meter.refusal(usage, caller.limits, is_of_key=True))
        return Allowed(usage, caller)

    async def remaining(self, caller: Caller) -> Allowed:
        """Say what a caller has left, for a request that does not count."""
        return Allowed(await self._meter.peek(key_subject(caller.key_id), caller.limits), caller)

    async def anonymous_usage(self, request: Request) -> Usage:
        """Say what the client's address has left, for a request that needs no key."""
        return await self._meter.peek(self._address_subject(request), self._anonymous)

    def _address_subject(self, request: Request) -> Key:
        client = counting_key(self._addresses.client_ip(request))
        return key_of("requests from address", client)

    async def _deny(
        self, request: Request, failure: InvalidCredentials | StoreUnavailable
    ) -> Denied:
        """Count a request of nobody we know against its address."""
        if isinstance(failure, InvalidCredentials):
            client_ip = self._addresses.client_ip(request)
            self._journal.note_failed_access("key", client_ip, str(failure))
        usage = await self._meter.count(self._address_subject(request), self._anonymous)
        if usage.exhausted is not None and isinstance(failure, InvalidCredentials):
            return Denied(usage, self._meter.refusal(usage, self._anonymous))
        return Denied(usage, failure)


def api_key_of(request: Request) -> str:
    """Take the key from ``Authorization: Bearer`` or ``X-API-Key``.

    :raises InvalidCredentials: there is none, or two that differ.
    """
    keys = {value.strip() for value in header_values(request, b"X-API-Key")}
    for value in header_values(request, b"Authorization"):
        scheme, _, credentials = value.strip().partition(" ")
        if scheme.lower() == "bearer":
            keys.add(credentials.strip())
    keys.discard("")
    if not keys:
        raise InvalidCredentials(
            "an API key is missing: send it as Authorization: Bearer <key> or X-API-Key: <key>"
        )
    if len(keys) > 1:
        raise InvalidCredentials("Authorization and X-API-Key carry different keys")
    return keys.pop()
