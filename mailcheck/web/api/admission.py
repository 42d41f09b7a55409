"""Who may pass: the key of a request, and what is left of its limits (SPEC.md 5 and 8)."""

from dataclasses import dataclass

from twisted.web.server import Request

from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.errors import InvalidCredentials, LimitExceeded
from mailcheck.core.rate_limits import Usage
from mailcheck.operations.authenticate import Authenticator
from mailcheck.operations.count_requests import RequestMeter
from mailcheck.web.client_addresses import ClientAddresses

ANONYMOUS_PER_MINUTE = 60
"""Requests without a valid key that an address may make: keys can't be guessed fast."""

MAX_KEY = 256
"""Characters of a key that are looked at."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Nobody we serve, or too much of it; the headers still say what is left."""

    usage: Usage
    failure: InvalidCredentials | LimitExceeded


@dataclass(frozen=True, slots=True)
class Admitted:
    """A caller within its limits."""

    usage: Usage
    caller: Caller


def usage_headers(usage: Usage) -> dict[str, str]:
    """Give the headers that every response carries."""
    return {
        "X-RateLimit-Remaining": str(usage.remaining),
        "X-RateLimit-Daily-Remaining": str(usage.daily_remaining),
    }


class Gate:
    """Identifies and counts each request, once."""

    def __init__(
        self,
        authenticator: Authenticator,
        meter: RequestMeter,
        addresses: ClientAddresses,
        anonymous_per_day: int,
    ) -> None:
        self._authenticator = authenticator
        self._meter = meter
        self._addresses = addresses
        self._anonymous = RequestLimits(ANONYMOUS_PER_MINUTE, anonymous_per_day)

    async def admit(self, request: Request) -> Admitted | Refused:
        """Judge a request.

        :raises StoreUnavailable: can't tell now.
        """
        try:
            caller = await self._authenticator.identify(presented_key(request))
        except InvalidCredentials as failure:
            address = self._addresses.client_ip(request)
            usage = await self._meter.count(f"address {address}", self._anonymous)
            if usage.exhausted is not None:
                return Refused(usage, self._meter.refusal(usage, self._anonymous))
            return Refused(usage, failure)
        usage = await self._meter.count(f"key {caller.key_id}", caller.limits)
        if usage.exhausted is not None:
            return Refused(usage, self._meter.refusal(usage, caller.limits))
        return Admitted(usage, caller)


def presented_key(request: Request) -> str:
    """Take the key from ``Authorization: Bearer`` or ``X-API-Key``.

    :raises InvalidCredentials: there is none, or two that differ.
    """
    headers = request.requestHeaders
    keys = {value.strip() for value in headers.getRawHeaders("X-API-Key", ())}
    for value in headers.getRawHeaders("Authorization", ()):
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
    return keys.pop()[:MAX_KEY]
