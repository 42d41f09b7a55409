"""Who is calling: from the secret of an API key to the account behind it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from mailcheck.core.accounts import ApiKey, Caller, RequestLimits
from mailcheck.core.client_limits import DAY_WINDOW, MINUTE_WINDOW, Usage, judge_usage
from mailcheck.core.errors import (
    ExpectedFailure,
    InvalidCredentials,
    LimitExceeded,
    StoreUnavailable,
)
from mailcheck.core.identifiers import AccountId, KeyId, digest_secret
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.keys import Key, key_of
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import Hit, RateCounters
from mailcheck.store.accounts.account_store import AccountStore


class Authenticator:
    """Reads the key anew for every request, so that a revoked one stops at once."""

    def __init__(self, store: AccountStore, default_limits: RequestLimits, now: Now) -> None:
        self._store = store
        self._default_limits = default_limits
        self._now = now
        self._uses: dict[KeyId, Instant] = {}

    async def identify(self, secret: str) -> Caller:
        """Find the caller who holds this key.

        :raises InvalidCredentials: no such key, or it was revoked.
        :raises StoreUnavailable: can't tell now.
        """
        found = await self._store.find_caller(digest_secret(secret))
        if found is None:
            raise InvalidCredentials("the API key is unknown")
        key, position = found
        if key.revoked_at is not None:
            raise InvalidCredentials("the API key has been revoked")
        self._uses[key.id] = self._now()
        return Caller(key.account_id, key.id, self.limits_of(key), position, key.fails_every)

    def limits_of(self, key: ApiKey) -> RequestLimits:
        """Give the limits of a key: its own, else the configured ones."""
        default = self._default_limits
        return RequestLimits(
            per_minute=default.per_minute if key.per_minute is None else key.per_minute,
            per_day=default.per_day if key.per_day is None else key.per_day,
        )

    def last_use(self, key: ApiKey) -> Instant | None:
        """Tell when a key was last used, as far as this daemon knows."""
        return self._uses.get(key.id, key.last_used_at)

    async def save_key_uses(self) -> None:
        """Write down when keys were last used: now and then, not for every request.

        :raises StoreUnavailable: not now; what was not written is tried again the next time.
        """
        uses, self._uses = self._uses, {}
        if not uses:
            return
        try:
            await self._store.note_key_use(list(uses.items()))
        except StoreUnavailable:
            self._uses = {**uses, **self._uses}
            raise


def key_subject(key_id: KeyId) -> Key:
    """Return the counter of the requests of an API key."""
    return key_of("requests of key", key_id)


class LimitUse(Struct, frozen=True):
    """Limits, and what is used of them."""

    limits: RequestLimits
    usage: Usage

    @property
    def used_this_minute(self) -> int:
        """Count the requests of this clock minute."""
        return self.limits.per_minute - self.usage.remaining

    @property
    def used_today(self) -> int:
        """Count the requests of this UTC day."""
        return self.limits.per_day - self.usage.daily_remaining


LIMIT_OPTIONS = {
    MINUTE_WINDOW: "--per-minute 6000",
    DAY_WINDOW: "--per-day 1000000",
}
"""What gives a key a limit of its own: enough for a suite of tests run side by side."""


class RequestMeter:
    """Judges requests of a key, or of an address that has no valid key."""

    def __init__(self, counters: RateCounters, now: Now) -> None:
        self._counters = counters
        self._now = now

    async def count(self, subject: Key, limits: RequestLimits) -> Usage:
        """Count a request; a refused one is not counted."""
        minute, day = await self._hit(subject, limits, 1)
        return judge_usage(minute, day, limits)

    async def peek(self, subject: Key, limits: RequestLimits) -> Usage:
        """Say what is left without counting anything."""
        minute, day = await self._hit(subject, limits, 0)
        return judge_usage(minute, day, limits)

    def refusal(
        self,
        usage: Usage,
        limits: RequestLimits,
        *,
        is_of_key: bool = False,
        is_of_pages: bool = False,
    ) -> LimitExceeded:
        """Say which limit is exhausted, what it is, and when it is free again.

        Of a key also how an operator issues one with more. A page says in its reader's time when
        the limit is free again.
        """
        now = self._now()
        window = usage.exhausted or MINUTE_WINDOW
        limit = limits.per_day if window is DAY_WINDOW else limits.per_minute
        reset = format_instant(Instant(window.reset_at(now)))
        if is_of_pages:
            said = f"the limit of {limit} checks per {window.name} on the pages is reached"
            return LimitExceeded(said, window.seconds_left(now))
        said = f"the limit of {limit} requests per {window.name} is reached; it resets at {reset}"
        if is_of_key:
            issue = f"mailcheck key issue NAME {LIMIT_OPTIONS[window]}"
            said += f"; `{issue}` issues a key with more"
        return LimitExceeded(said, window.seconds_left(now))

    async def _hit(self, subject: Key, limits: RequestLimits, amount: int) -> list[int]:
        now = self._now()
        windows = (
            (MINUTE_WINDOW, MINUTE_WINDOW.index(now), limits.per_minute),
            (DAY_WINDOW, DAY_WINDOW.index(now), limits.per_day),
        )
        (counts,) = await self._counters.hit(Hit(subject, windows, amount))
        return counts


class CheckBudget:
    """Counts the checks that an account starts on the pages; looking at results is free.

    Without it the pages would be a way around the limits of the API.
    """

    def __init__(self, meter: RequestMeter, limits: RequestLimits) -> None:
        self._meter = meter
        self._limits = limits

    async def take(self, account_id: AccountId) -> None:
        """Count a check.

        :raises LimitExceeded: says which limit is reached, and when it is free again.
        """
        usage = await self._meter.count(_subject(account_id), self._limits)
        if usage.exhausted is not None:
            raise self._meter.refusal(usage, self._limits, is_of_pages=True)

    async def peek(self, account_id: AccountId) -> LimitUse:
        """Say what is used; looking counts nothing."""
        usage = await self._meter.peek(_subject(account_id), self._limits)
        return LimitUse(self._limits, usage)


def _subject(account_id: AccountId) -> Key:
    return key_of("checks of account", account_id)


REVOKED_KEYS_INTERVAL = 5.0
"""Seconds between looks: one question for all keys in use, whoever has revoked them, and where."""

End = Callable[[ExpectedFailure], None]


class RevokedKeys:
    """Knows what goes on with which key, and ends it when that is revoked."""

    def __init__(self, store: AccountStore) -> None:
        self._store = store
        self._watched: dict[KeyId, dict[object, End]] = {}

    @contextmanager
    def watched(self, key_id: KeyId, end: End) -> Iterator[None]:
        """Call ``end`` once, should the key be revoked while the block runs."""
        watch = object()
        self._watched.setdefault(key_id, {})[watch] = end
        try:
            yield
        finally:
            ends = self._watched.get(key_id, {})
            ends.pop(watch, None)
            if not ends:
                self._watched.pop(key_id, None)

    async def check(self) -> None:
        """End what goes on with keys that have been revoked.

        :raises StoreUnavailable: can't tell now.
        """
        if not self._watched:
            return
        for key_id in await self._store.revoked_of(tuple(self._watched)):
            for end in tuple(self._watched.pop(key_id, {}).values()):
                end(InvalidCredentials("the API key has been revoked"))
