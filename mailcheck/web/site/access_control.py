"""Authentication and rate limits of API requests (docs/reference/contract.md)."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct
from twisted.web.server import Request

from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.errors import InvalidCredentials, LimitExceeded, StoreUnavailable
from mailcheck.core.memory.client_limits import Usage
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.core.network_addresses import counting_key
from mailcheck.operations.accounts.authenticate import RequestMeter, key_subject
from mailcheck.ports.journals import AccessJournal
from mailcheck.web.site.requests import ClientAddresses, header_values

ANONYMOUS_PER_MINUTE = 60
"""Requests without a valid key that an IP address may send per minute."""


class Denied(Struct, frozen=True):
    """A rejected request, with the remaining limits.

    The request has no valid key, is beyond a limit, or could not be checked.
    """

    usage: Usage
    failure: InvalidCredentials | LimitExceeded | StoreUnavailable


class Allowed(Struct, frozen=True):
    """A request of an authenticated caller within its limits."""

    usage: Usage
    caller: Caller


def rate_limit_headers(usage: Usage) -> dict[str, str]:
    """Return the rate limit headers, which every response contains."""
    return {
        "X-RateLimit-Remaining": str(usage.remaining),
        "X-RateLimit-Daily-Remaining": str(usage.daily_remaining),
    }


class Identifier(Protocol):
    """Identifies callers by the secret that they send."""

    async def identify(self, secret: str, client: str = "") -> Caller:
        """Return the caller, at the address ``client``.

        :raises InvalidCredentials: the secret is not valid.
        :raises StoreUnavailable: the store cannot be read now.
        """


class AccessControl(Struct, frozen=True, eq=False):
    """Authenticates each request, and counts it against the rate limits."""

    authenticator: Identifier
    meter: RequestMeter
    addresses: ClientAddresses
    anonymous_per_day: Callable[[], int]
    journal: AccessJournal

    async def check(
        self, request: Request, read_key: Callable[[], str] | None = None
    ) -> Allowed | Denied:
        """Authenticate a request, and count it.

        :param read_key: returns the key of the request, if it is not where this API expects it.
        """
        caller = await self.authenticate(request, read_key)
        return caller if isinstance(caller, Denied) else await self.count(caller)

    async def authenticate(
        self, request: Request, read_key: Callable[[], str] | None = None
    ) -> Caller | Denied:
        """Authenticate a request. A request without a valid key is counted by address."""
        try:
            secret = api_key_of(request) if read_key is None else read_key()
            client = counting_key(self.addresses.client_ip(request))
            return await self.authenticator.identify(secret, client)
        except (InvalidCredentials, StoreUnavailable) as failure:
            return await self._deny(request, failure)

    async def count(self, caller: Caller) -> Allowed | Denied:
        """Count a request of an authenticated caller against its limits."""
        usage = await self.meter.count(key_subject(caller.key_id), caller.limits)
        if usage.exhausted is not None:
            return Denied(usage, self.meter.refusal(usage, caller.limits, is_of_key=True))
        return Allowed(usage, caller)

    async def remaining(self, caller: Caller) -> Allowed:
        """Return what remains of a caller's limits, for a request that is not counted."""
        return Allowed(await self.meter.peek(key_subject(caller.key_id), caller.limits), caller)

    def _anonymous_limits(self) -> RequestLimits:
        return RequestLimits(ANONYMOUS_PER_MINUTE, self.anonymous_per_day())

    async def anonymous_usage(self, request: Request) -> Usage:
        """Return what remains for the client's address, for a request that needs no key."""
        return await self.meter.peek(self._address_subject(request), self._anonymous_limits())

    def _address_subject(self, request: Request) -> Key:
        client = counting_key(self.addresses.client_ip(request))
        return key_of("requests from address", client)

    async def _deny(
        self, request: Request, failure: InvalidCredentials | StoreUnavailable
    ) -> Denied:
        """Count a request without a valid key against the limits of its address."""
        if isinstance(failure, InvalidCredentials):
            client_ip = self.addresses.client_ip(request)
            self.journal.note_failed_access("key", client_ip, str(failure))
        usage = await self.meter.count(self._address_subject(request), self._anonymous_limits())
        if usage.exhausted is not None and isinstance(failure, InvalidCredentials):
            return Denied(usage, self.meter.refusal(usage, self._anonymous_limits()))
        return Denied(usage, failure)


def api_key_of(request: Request) -> str:
    """Return the key from ``Authorization: Bearer`` or ``X-API-Key``.

    :raises InvalidCredentials: there is no key, or there are two different keys.
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
        raise InvalidCredentials(
            "Authorization and X-API-Key contain different keys: send only one of them"
        )
    return keys.pop()
