"""Authentication by API key, rate limits, and the end of requests whose access has ended."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from msgspec import Struct
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from mailcheck.checks.quality.wording import count_of
from mailcheck.core.accounts import Access, ApiKey, Caller, RequestLimits
from mailcheck.core.errors import (
    ExpectedFailure,
    InvalidCredentials,
    LimitExceeded,
    NotPermitted,
    StoreUnavailable,
)
from mailcheck.core.identifiers import ACCESS_TOKEN_PREFIX, AccountId, KeyId, digest_secret
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.memory.client_limits import DAY_WINDOW, MINUTE_WINDOW, Usage, judge_usage
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.operations.watchers import Watchers
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import Hit, RateCounters
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.accounts.key_store import KnownKey

DAYS_KEPT = 90
"""Number of days for which the requests of keys are counted by day."""


class Authenticator:
    """Identifies callers by API key. Each request reads its key, so revocation is immediate.

    ``default_limits`` are those of keys without their own. They may be changed.
    """

    def __init__(self, store: AccountStore, default_limits: RequestLimits, now: Now) -> None:
        self._store = store
        self.default_limits = default_limits
        self._now = now
        self._uses: dict[KeyId, Instant] = {}
        self._days: Counter[tuple[KeyId, int]] = Counter()

    async def identify(self, secret: str, client: str = "") -> Caller:
        """Return the caller that an API key belongs to, at the address ``client``.

        :raises InvalidCredentials: the key is unknown, revoked or expired, or its account is
            disabled.
        :raises StoreUnavailable: the store cannot be read now.
        """
        found = await self._store.find_caller(digest_secret(secret))
        if found is None:
            raise InvalidCredentials(_explain_unknown(secret))
        return self.admit(found, client)

    def admit(self, found: KnownKey, client: str) -> Caller:
        """Return the caller that a known key belongs to, and record its use.

        :raises InvalidCredentials: the key is revoked or expired, or its account is disabled.
        """
        key = found.key
        if key.revoked_at is not None:
            raise InvalidCredentials("the API key has been revoked")
        now = self._now()
        if key.expires_at is not None and key.is_expired(now):
            expired_at = format_instant(key.expires_at)
            raise InvalidCredentials(f"the API key expired at {expired_at}: use another one")
        if found.is_disabled:
            raise InvalidCredentials("the account of the API key is disabled")
        self._uses[key.id] = now
        self._days[key.id, DAY_WINDOW.index(now)] += 1
        limits = self.limits_of(key)
        return Caller(
            key.account_id,
            key.id,
            limits,
            found.position,
            key.fails_every,
            rights=key.rights,
            client=client,
            is_grant=key.client_id is not None,
        )

    def limits_of(self, key: ApiKey) -> RequestLimits:
        """Return the limits of a key: its own where set, otherwise the configured ones."""
        default = self.default_limits
        return RequestLimits(
            per_minute=default.per_minute if key.per_minute is None else key.per_minute,
            per_day=default.per_day if key.per_day is None else key.per_day,
        )

    def last_use(self, key: ApiKey) -> Instant | None:
        """Return when a key was last used, as far as this daemon knows."""
        return self._uses.get(key.id, key.last_used_at)

    async def save_key_uses(self) -> None:
        """Save when keys were last used. Called periodically instead of for every request.

        :raises StoreUnavailable: the store cannot be written now. The next call tries again.
        """
        uses, self._uses = self._uses, {}
        if not uses:
            return
        try:
            await self._store.note_key_use(list(uses.items()))
        except StoreUnavailable:
            self._uses = {**uses, **self._uses}
            raise
        days, self._days = self._days, Counter()
        counts = [(key_id, day, number) for (key_id, day), number in days.items()]
        try:
            await self._store.add_key_days(counts, DAY_WINDOW.index(self._now()) - DAYS_KEPT)
        except StoreUnavailable:
            self._days += days
            raise

    async def requests_by_day(self, account_id: AccountId, length: int) -> Mapping[int, int]:
        """Return the requests of all keys of an account on the last days, as far as it is saved.

        The keys are days since 1970.
        """
        since = DAY_WINDOW.index(self._now()) - length + 1
        return await self._store.key_days(account_id, since)


def _explain_unknown(secret: str) -> str:
    if secret.startswith(ACCESS_TOKEN_PREFIX):
        return (
            "an OAuth access token is valid at the MCP endpoint only, while OAuth is on: use an "
            "API key here"
        )
    return "the API key is unknown"


def key_subject(key_id: KeyId) -> Key:
    """Return the rate-limit subject of an API key."""
    return key_of("requests of key", key_id)


class LimitUse(Struct, frozen=True):
    """Rate limits and their current usage."""

    limits: RequestLimits
    usage: Usage

    @property
    def used_this_minute(self) -> int:
        """Number of requests in this clock minute."""
        return self.limits.per_minute - self.usage.remaining

    @property
    def used_today(self) -> int:
        """Number of requests in this UTC day."""
        return self.limits.per_day - self.usage.daily_remaining


LIMIT_OPTIONS = {
    MINUTE_WINDOW: "--per-minute 6000",
    DAY_WINDOW: "--per-day 1000000",
}
"""Options of ``mailcheck key issue`` that raise each limit enough for a parallel test suite."""


class RequestMeter(Struct, frozen=True, eq=False):
    """Counts requests of an API key, or of a client address without a valid key."""

    counters: RateCounters
    now: Now

    async def count(self, subject: Key, limits: RequestLimits) -> Usage:
        """Count a request. A request over the limit is not counted."""
        minute, day = await self._hit(subject, limits, 1)
        return judge_usage(minute, day, limits)

    async def peek(self, subject: Key, limits: RequestLimits) -> Usage:
        """Return the current usage without counting a request."""
        minute, day = await self._hit(subject, limits, 0)
        return judge_usage(minute, day, limits)

    def refusal(
        self,
        usage: Usage,
        limits: RequestLimits,
        *,
        is_of_key: bool = False,
        checks: str = "",
    ) -> LimitExceeded:
        """Return the error that names the exhausted limit and when it resets.

        For an API key, the error also says how the operator issues one with higher limits. Pages
        say whose ``checks`` are limited, and show the reset time in the time zone of the reader.
        """
        now = self.now()
        window = usage.exhausted or MINUTE_WINDOW
        limit = limits.per_day if window is DAY_WINDOW else limits.per_minute
        reset = format_instant(Instant(window.reset_at(now)))
        if checks:
            message = (
                f"the limit of {count_of(limit, 'check')} per {window.name} {checks} is reached"
            )
            return LimitExceeded(message, window.seconds_left(now))
        counted = "of this API key" if is_of_key else "of your address"
        limited = f"the limit of {count_of(limit, 'request')} per {window.name} {counted}"
        message = f"{limited} is reached; it resets at {reset}"
        if is_of_key:
            issue = f"mailcheck key issue NAME {LIMIT_OPTIONS[window]}"
            message += f"; `{issue}` issues a key with a higher limit"
        return LimitExceeded(message, window.seconds_left(now))

    async def _hit(self, subject: Key, limits: RequestLimits, amount: int) -> list[int]:
        now = self.now()
        windows = (
            (MINUTE_WINDOW, MINUTE_WINDOW.index(now), limits.per_minute),
            (DAY_WINDOW, DAY_WINDOW.index(now), limits.per_day),
        )
        (counts,) = await self.counters.hit(Hit(subject, windows, amount))
        return counts


CHECKS_OF_PAGES = "on the pages of this account or project"

CHECKS_OF_STRANGERS = "without an account"


class CheckBudget(Struct, eq=False):
    """Limits the checks that an account starts on the pages. Viewing results is not limited.

    Without it, the pages would bypass the rate limits of the API. ``limits`` may be changed.
    """

    meter: RequestMeter
    limits: RequestLimits

    async def take(self, account_id: AccountId) -> None:
        """Count a check.

        :raises LimitExceeded: the limit is reached. The message says when it resets.
        """
        usage = await self.meter.count(_subject(account_id), self.limits)
        if usage.exhausted is not None:
            raise self.meter.refusal(usage, self.limits, checks=CHECKS_OF_PAGES)

    async def peek(self, account_id: AccountId) -> LimitUse:
        """Return the current usage without counting a check."""
        usage = await self.meter.peek(_subject(account_id), self.limits)
        return LimitUse(self.limits, usage)


STRANGER_PER_MINUTE = 3
"""Maximum number of checks in a minute from an address without an account."""

STRANGERS_PER_MINUTE, STRANGERS_AT_MOST = 20, 50
"""Maximum number of checks in a minute from all these addresses together, and in a day as a
multiple of what one address may start: DNS servers and blocklists count what this server asks."""


class StrangerBudget(Struct, eq=False):
    """Limits the checks of people without an account, by address and in all.

    ``per_day`` is the number of checks for an address in a day. Zero permits none. It may be
    changed.
    """

    meter: RequestMeter
    per_day: int

    async def take(self, client: str) -> None:
        """Count a check of an address.

        :raises NotPermitted: such checks are off.
        :raises LimitExceeded: a limit is reached.
        """
        if not self.per_day:
            raise NotPermitted("sign in to check a domain")
        own = RequestLimits(STRANGER_PER_MINUTE, self.per_day)
        common = RequestLimits(STRANGERS_PER_MINUTE, STRANGERS_AT_MOST * self.per_day)
        subjects = (key_of("checks from address", client), key_of("checks of strangers"))
        for subject, limits in zip(subjects, (own, common), strict=True):
            usage = await self.meter.count(subject, limits)
            if usage.exhausted is not None:
                raise self.meter.refusal(usage, limits, checks=CHECKS_OF_STRANGERS)


def _subject(account_id: AccountId) -> Key:
    return key_of("checks of account", account_id)


ACCESS_INTERVAL = 0.5
"""Seconds between two checks for access that has ended. They find keys, tokens and sessions that
expire, and changes by the command line and by a daemon whose notification was lost."""

ENDED = (
    "the access has ended: the API key, token or session was revoked or has expired, the password "
    "was changed, the person has left the project, or the account is disabled or gone"
)

End = Callable[[ExpectedFailure], None]


class EndedAccess:
    """Ends the requests and connections of callers whose access ends while they run.

    A notification about a change is a hint: all access in use is read again.
    """

    _log = Logger()

    def __init__(self, store: AccountStore, now: Now) -> None:
        self._store = store
        self._now = now
        self._ends: Watchers[Access, End] = Watchers()
        self._is_reading = self._is_due = False

    def watched(self, caller: Caller, end: End) -> AbstractContextManager[None]:
        """Call ``end`` once if the caller loses its access while the block runs."""
        return self._ends.joined(caller.access, end)

    def on_hint(self, _: object = None) -> None:
        """Handle the hint that some access may have ended."""
        self._is_due = True
        if not self._is_reading:
            Deferred.fromCoroutine(self._follow_hints())

    async def check(self) -> None:
        """End everything whose access has ended.

        :raises StoreUnavailable: the store cannot be read now.
        """
        if not self._ends:
            return
        for access in await self._store.ended_of(self._ends.watched(), self._now()):
            for end in self._ends.take(access):
                end(InvalidCredentials(ENDED))

    async def _follow_hints(self) -> None:
        self._is_reading = True
        try:
            while self._is_due:
                self._is_due = False
                await self.check()
        except ExpectedFailure:
            pass  # the next periodic check tries again
        except Exception:
            self._log.failure("the access of callers could not be checked")
        finally:
            self._is_reading = False
