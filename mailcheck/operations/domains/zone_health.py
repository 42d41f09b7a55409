"""Health and daily budgets of blocklists, which decide whether a list may be queried.

A blocklist that lists every address, or none, is not trusted. Operators of blocklists allow a
limited number of free questions per day.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256

from msgspec import Struct
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.python.failure import Failure

from mailcheck.checks.dnsbl.catalogue import Blocklist, TargetKind
from mailcheck.checks.dnsbl.health import HealthStatus, ZoneHealth, evaluate_health
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.instants import DAY, MINUTE, Instant
from mailcheck.core.memory.client_limits import DAY_WINDOW
from mailcheck.core.memory.keys import key_of
from mailcheck.operations.cached_values import CachedValues
from mailcheck.operations.dns_evaluation import DEADLINE, QuestionBudget, evaluate_with_dns
from mailcheck.ports.clocks import ClockAndRandomness, Now
from mailcheck.ports.cluster import Hit, Notifications, RateCounters
from mailcheck.ports.resolver import Resolver

UNLIMITED = 1 << 53
"""A limit that a day never reaches."""


class ListBudgets(Struct, eq=False):
    """Counts the questions of all daemons to each zone per UTC day.

    :param overrides: budgets by zone that replace the catalogue's; 0 means no limit. A reload of
        the configuration changes them.
    """

    overrides: Mapping[str, int]
    counters: RateCounters
    now: Now

    async def take(self, wanted: Sequence[tuple[Blocklist, int]]) -> list[bool]:
        """Count questions before they are sent. Return false for each exhausted blocklist."""
        counts = await self._hit(wanted)
        return [
            count <= self._limit(blocklist)
            for count, (blocklist, _) in zip(counts, wanted, strict=True)
        ]

    def limit_of(self, blocklist: Blocklist) -> int | None:
        """Return the daily budget of a zone, or `None` without a limit."""
        budget = self.overrides.get(blocklist.zone, blocklist.daily_budget)
        return budget or None

    async def asked_today(self, blocklists: Sequence[Blocklist]) -> dict[str, int]:
        """Return the number of questions since midnight UTC, by zone."""
        counts = await self._hit([(blocklist, 0) for blocklist in blocklists])
        return {blocklist.zone: count for count, blocklist in zip(counts, blocklists, strict=True)}

    def _limit(self, blocklist: Blocklist) -> int:
        return self.limit_of(blocklist) or UNLIMITED

    async def _hit(self, wanted: Sequence[tuple[Blocklist, int]]) -> list[int]:
        today = DAY_WINDOW.index(self.now())
        hits = [
            Hit(
                key_of("list", blocklist.zone),
                ((DAY_WINDOW, today, self._limit(blocklist)),),
                questions,
            )
            for blocklist, questions in wanted
        ]
        return [count for (count,) in await self.counters.hit(*hits)]


INTERVAL = 30 * MINUTE
"""Milliseconds between self-tests."""
INTERVAL_WITHOUT_LISTS = MINUTE
"""Milliseconds between self-tests while no blocklist passes; the resolver is probably at fault."""
LOOK_INTERVAL = 60.0
"""Seconds between two checks whether a self-test is due."""
KEPT = DAY
"""Lifetime of stored results. After a longer stop of all daemons they are outdated."""
TESTING = 30_000
"""Milliseconds for which one daemon has the lock for testing. A test takes up to ten seconds."""
NONCE_OCTETS = 3
FIRST_TEST_AFTER = 0.5
"""Seconds between startup and the first self-test, whose hundreds of questions would slow the
startup down."""
FIRST_TEST_PATIENCE = 2.0
"""How long, in seconds, a check waits for the first self-test after startup."""

QUESTIONS_PER_KIND = 3  # two test entries and a random target


class BlocklistHealth(Struct, frozen=True):
    """The results of the last self-test by zone, and when it ended."""

    tested_at: Instant
    found: Mapping[str, tuple[ZoneHealth, ...]]


class ZoneHealthCheck:
    """Runs self-tests of blocklists and knows their results. One of all daemons runs them.

    Results hold for the DNS servers and zones (with their keys) that were queried. A daemon with
    other servers or zones tests the blocklists itself, at once.

    :param resolver: a resolver without a cache, since old answers say nothing about now.
    :param servers: the addresses of its DNS servers.
    :param tested: notifies all daemons of new results in ``cache``.
    """

    def __init__(
        self,
        blocklists: Sequence[Blocklist],
        resolver: Resolver,
        servers: Sequence[str],
        budgets: ListBudgets,
        cache: CachedValues[BlocklistHealth],
        tested: Notifications[str],
        clocks: ClockAndRandomness,
    ) -> None:
        self._blocklists = blocklists
        self._servers = servers
        self._resolver = resolver
        self._budgets = budgets
        self._clock = clocks.clock
        self._now = clocks.now
        self._random_bytes = clocks.random_bytes
        self._found: dict[str, tuple[ZoneHealth, ...]] = {}
        self.tested_at: Instant | None = None
        self._known_at: float | None = None
        self._is_known = False
        self._waiting: list[Deferred[None]] = []
        self._cache = cache
        self._key = _key_of(servers, blocklists)
        self._tested = tested
        tested.listen(self._hear)

    def change(self, blocklists: Sequence[Blocklist]) -> None:
        """Test other blocklists from now on; the next `refresh` begins with them."""
        self._blocklists = blocklists
        key = _key_of(self._servers, blocklists)
        if key != self._key:
            self._key, self.tested_at = key, None

    async def refresh(self) -> None:
        """Load stored results, and run a self-test if they are too old and no daemon does.

        Called every `LOOK_INTERVAL` seconds.
        """
        self.expect()
        await self._take_over()
        if not self._is_due() or not await self._cache.acquire(self._key, TESTING):
            return
        try:
            await self._take_over()  # another daemon may have tested since
            if self._is_due():
                await self.test_all()
        finally:
            await self._cache.release(self._key)

    async def test_all(self) -> None:
        """Test all enabled blocklists within their daily budgets."""
        self.expect()
        try:
            await self._test_all()
        finally:
            self._end_waiting()
        assert self.tested_at is not None
        await self._cache.put(self._key, BlocklistHealth(self.tested_at, self._found), KEPT)
        self._tested.publish(self._key)

    @asynccontextmanager
    async def testing_in_background(self, seconds: float) -> AsyncIterator[None]:
        """Test all blocklists once, concurrently with checks that wait for the results.

        For a process that runs a few checks and exits. A blocklist without an answer within
        ``seconds`` counts as not tested.
        """

        def end_test(result: Failure | None) -> None:
            self._end_waiting()
            if isinstance(result, Failure):
                result.trap(CancelledError)

        self.expect(seconds)
        testing = Deferred.fromCoroutine(self._test_all(seconds)).addBoth(end_test)
        try:
            yield
        finally:
            testing.cancel()

    async def wait_for_first_test(self) -> None:
        """Wait for the first self-test, since an unhealthy blocklist would be trusted.

        Otherwise a restart would change the results of the same mail.
        """
        if self._is_known or self._known_at is None:
            return
        left = self._known_at - self._clock.seconds()
        if left <= 0:
            return
        waiter: Deferred[None] = Deferred()
        self._waiting.append(waiter)
        try:
            await waiter.addTimeout(left, self._clock)
        except DeferredTimeout:
            pass
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def _hear(self, _: str) -> None:
        taking = Deferred.fromCoroutine(self._take_over())
        # The periodic `refresh` loads the results otherwise.
        taking.addErrback(lambda failure: failure.trap(StoreUnavailable))

    async def _take_over(self) -> None:
        known = await self._cache.get(self._key)
        if known is not None and (self.tested_at is None or known.tested_at > self.tested_at):
            self._found.update(known.found)
            self.tested_at = known.tested_at
            self._end_waiting()

    def _is_due(self) -> bool:
        # If the clock was set back, results must not stay valid forever.
        if self.tested_at is None:
            return True
        found = (health.status for kinds in self._found.values() for health in kinds)
        interval = INTERVAL if HealthStatus.HEALTHY in found else INTERVAL_WITHOUT_LISTS
        return not 0 <= self._now() - self.tested_at < interval

    def expect(self, seconds: float = FIRST_TEST_PATIENCE) -> None:
        """Let checks wait for the first self-test for at most ``seconds`` from now."""
        if self._known_at is None:
            self._known_at = self._clock.seconds() + seconds

    def _end_waiting(self) -> None:
        self._is_known = True  # later self-tests do not delay checks
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            waiter.callback(None)

    async def _test_all(self, seconds: float = DEADLINE) -> None:
        enabled = [zone for zone in self._blocklists if zone.is_enabled]
        taken = await self._budgets.take(
            [
                (enabled_blocklist, QUESTIONS_PER_KIND * len(enabled_blocklist.query_zones))
                for enabled_blocklist in enabled
            ]
        )
        tested = [zone for zone, is_taken in zip(enabled, taken, strict=True) if is_taken]
        nonce = int.from_bytes(self._random_bytes(NONCE_OCTETS), "big")
        budget = QuestionBudget.starting_now(self._clock, seconds)
        budget.questions_left = QUESTIONS_PER_KIND * len(TargetKind) * len(tested)
        found = await evaluate_with_dns(
            self._resolver,
            lambda answers: [
                evaluate_health(tested_blocklist, answers, nonce) for tested_blocklist in tested
            ],
            clock=self._clock,
            budget=budget,
        )
        for blocklist, health in zip(tested, found, strict=True):
            self._found[blocklist.zone] = _carry_over(self.of(blocklist), health)
        self.tested_at = self._now()

    def of(self, blocklist: Blocklist) -> tuple[ZoneHealth, ...]:
        """Return the health of a blocklist by kind; empty before its first self-test."""
        return self._found.get(blocklist.zone, ())

    def unhealthy_kinds(self, blocklist: Blocklist) -> frozenset[TargetKind]:
        """Return the kinds of targets for which a blocklist is not trusted."""
        return frozenset(
            health.kind for health in self.of(blocklist) if health.status is HealthStatus.UNHEALTHY
        )


def _key_of(servers: Sequence[str], blocklists: Sequence[Blocklist]) -> str:
    """Return a cache key for DNS servers and zones. It does not reveal the keys of zones."""
    zones = [
        zone
        for blocklist in blocklists
        if blocklist.is_enabled
        for zone in blocklist.query_zones.values()
    ]
    return sha256("\n".join((*sorted(servers), "", *sorted(zones))).encode()).hexdigest()[:32]


def _carry_over(
    before: tuple[ZoneHealth, ...], after: tuple[ZoneHealth, ...]
) -> tuple[ZoneHealth, ...]:
    """Keep a blocklist unhealthy if it did not answer now, since only answers show recovery."""
    sick = {health.kind: health for health in before if health.status is HealthStatus.UNHEALTHY}
    return tuple(
        sick.get(health.kind, health) if health.status is HealthStatus.UNREACHABLE else health
        for health in after
    )
