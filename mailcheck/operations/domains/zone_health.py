"""Which blocklists may be asked now: those that are well, within their budgets.

A list that lists everything, or nothing, isn't believed. Operators allow so many free
questions a day.
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
from mailcheck.core.client_limits import DAY_WINDOW
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.instants import DAY, MINUTE, Instant
from mailcheck.core.keys import key_of
from mailcheck.operations.cached_values import CachedValues
from mailcheck.operations.dns_evaluation import DEADLINE, QuestionBudget, evaluate_with_dns
from mailcheck.ports.clocks import Now, TimeAndChance
from mailcheck.ports.cluster import Hit, RateCounters, WakeUps
from mailcheck.ports.resolver import Resolver

UNLIMITED = 1 << 53
"""More than a day has time for."""


class ListBudgets:
    """Counts the questions to each zone, of all daemons, from midnight to midnight UTC.

    :param overrides: budgets by zone in place of those of the catalogue; 0 is no limit.
    """

    def __init__(self, overrides: Mapping[str, int], counters: RateCounters, now: Now) -> None:
        self._overrides = overrides
        self._counters = counters
        self._now = now

    async def take(self, wanted: Sequence[tuple[Blocklist, int]]) -> list[bool]:
        """Count questions that are about to be asked; false for a list with too many for today."""
        counts = await self._hit(wanted)
        return [count <= self._limit(one) for count, (one, _) in zip(counts, wanted, strict=True)]

    def limit_of(self, blocklist: Blocklist) -> int | None:
        """Give the questions a day that a zone may get; nothing where there is no limit."""
        budget = self._overrides.get(blocklist.zone, blocklist.daily_budget)
        return budget or None

    async def asked_today(self, blocklists: Sequence[Blocklist]) -> dict[str, int]:
        """Give the questions that were counted since midnight, by zone."""
        counts = await self._hit([(one, 0) for one in blocklists])
        return {one.zone: count for count, one in zip(counts, blocklists, strict=True)}

    def _limit(self, blocklist: Blocklist) -> int:
        return self.limit_of(blocklist) or UNLIMITED

    async def _hit(self, wanted: Sequence[tuple[Blocklist, int]]) -> list[int]:
        today = DAY_WINDOW.index(self._now())
        hits = [
            Hit(key_of("list", one.zone), ((DAY_WINDOW, today, self._limit(one)),), questions)
            for one, questions in wanted
        ]
        return [count for (count,) in await self._counters.hit(*hits)]


INTERVAL = 30 * MINUTE
"""Milliseconds between self-tests."""
INTERVAL_WITHOUT_LISTS = MINUTE
"""Milliseconds between self-tests while no list passes: the resolver is probably at fault."""
LOOK_INTERVAL = 60.0  # seconds between looks whether one is due
KEPT = DAY  # what was found out before a longer stop says nothing any more
TESTING = 30_000  # milliseconds for which one daemon tests; a test ends after ten seconds
NONCE_OCTETS = 3
FIRST_TEST_AFTER = 0.5
"""Seconds after a start until the first look: hundreds of questions would hold it up."""
FIRST_TEST_PATIENCE = 2.0
"""Seconds from then on in which who asks waits for what the daemon's first self-test says."""

QUESTIONS_PER_KIND = 3  # two test points and a random target


class BlocklistHealth(Struct, frozen=True):
    """What the last self-test of each list found, by zone, and when the last one ended."""

    tested_at: Instant
    found: Mapping[str, tuple[ZoneHealth, ...]]


class ZoneHealthCheck:
    """Knows what the last self-test of each list found; one of all daemons tests.

    What was found holds for the DNS servers and the zones, with their keys, that were asked. A
    daemon with others tests the lists itself, at once.

    :param resolver: one that remembers nothing: an old answer says nothing about now.
    :param servers: the addresses of the DNS servers that it asks.
    :param tested: tells all daemons that there is something new in ``kept``.
    """

    def __init__(
        self,
        blocklists: Sequence[Blocklist],
        resolver: Resolver,
        servers: Sequence[str],
        budgets: ListBudgets,
        cache: CachedValues[BlocklistHealth],
        tested: WakeUps[str],
        time_and_chance: TimeAndChance,
    ) -> None:
        self._blocklists = blocklists
        self._resolver = resolver
        self._budgets = budgets
        self._clock = time_and_chance.clock
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes
        self._found: dict[str, tuple[ZoneHealth, ...]] = {}
        self.tested_at: Instant | None = None
        self._known_at: float | None = None
        self._is_known = False
        self._waiting: list[Deferred[None]] = []
        self._cache = cache
        self._key = _key_of(servers, blocklists)
        self._tested = tested
        tested.listen(self._hear)

    async def refresh(self) -> None:
        """Learn what was found out, and test where that is too long ago, unless another does.

        To be done again every `LOOK_INTERVAL` seconds.
        """
        self.expect()
        await self._take_over()
        if not self._is_due() or not await self._cache.acquire(self._key, TESTING):
            return
        try:
            await self._take_over()  # it may have been done since
            if self._is_due():
                await self.test_all()
        finally:
            await self._cache.release(self._key)

    async def test_all(self) -> None:
        """Test all lists that are switched on, within the budget of their day."""
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
        """Test all lists once, at most so long, beside checks that wait for the result.

        For a process that makes a check or two and ends. A list that has not answered by then
        counts as not tested.
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
        """Wait a moment if the first test is under way: a sick list would be believed.

        The same mail would be judged in another way before and after a restart.
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
        # In a minute it is looked for anyway.
        taking.addErrback(lambda failure: failure.trap(StoreUnavailable))

    async def _take_over(self) -> None:
        known = await self._cache.get(self._key)
        if known is not None and (self.tested_at is None or known.tested_at > self.tested_at):
            self._found.update(known.found)
            self.tested_at = known.tested_at
            self._end_waiting()

    def _is_due(self) -> bool:
        # A clock that was set back must not keep what was found for ever.
        if self.tested_at is None:
            return True
        found = (health.status for kinds in self._found.values() for health in kinds)
        interval = INTERVAL if HealthStatus.HEALTHY in found else INTERVAL_WITHOUT_LISTS
        return not 0 <= self._now() - self.tested_at < interval

    def expect(self, seconds: float = FIRST_TEST_PATIENCE) -> None:
        """Have checks wait for the first test at most so long from now on."""
        if self._known_at is None:
            self._known_at = self._clock.seconds() + seconds

    def _end_waiting(self) -> None:
        self._is_known = True  # as far as it will be: the next test keeps nobody waiting
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            waiter.callback(None)

    async def _test_all(self, seconds: float = DEADLINE) -> None:
        enabled = [one for one in self._blocklists if one.is_enabled]
        taken = await self._budgets.take(
            [(one, QUESTIONS_PER_KIND * len(one.query_zones)) for one in enabled]
        )
        tested = [one for one, is_taken in zip(enabled, taken, strict=True) if is_taken]
        nonce = int.from_bytes(self._random_bytes(NONCE_OCTETS), "big")
        budget = QuestionBudget.starting_now(self._clock, seconds)
        budget.questions_left = QUESTIONS_PER_KIND * len(TargetKind) * len(tested)
        found = await evaluate_with_dns(
            self._resolver,
            lambda answers: [evaluate_health(one, answers, nonce) for one in tested],
            clock=self._clock,
            budget=budget,
        )
        for blocklist, health in zip(tested, found, strict=True):
            self._found[blocklist.zone] = _carry_over(self.of(blocklist), health)
        self.tested_at = self._now()

    def of(self, blocklist: Blocklist) -> tuple[ZoneHealth, ...]:
        """Give what is known of a list, kind by kind; nothing before its first test."""
        return self._found.get(blocklist.zone, ())

    def unhealthy_kinds(self, blocklist: Blocklist) -> frozenset[TargetKind]:
        """Give the kinds of targets about which a list is not believed."""
        return frozenset(
            health.kind for health in self.of(blocklist) if health.status is HealthStatus.UNHEALTHY
        )


def _key_of(servers: Sequence[str], blocklists: Sequence[Blocklist]) -> str:
    """Return a key for these servers and the zones that are asked; it reveals no list's key."""
    zones = [zone for one in blocklists if one.is_enabled for zone in one.query_zones.values()]
    return sha256("\n".join((*sorted(servers), "", *sorted(zones))).encode()).hexdigest()[:32]


def _carry_over(
    before: tuple[ZoneHealth, ...], after: tuple[ZoneHealth, ...]
) -> tuple[ZoneHealth, ...]:
    """Keep a list sick that has given no answer this time: only an answer shows recovery."""
    sick = {health.kind: health for health in before if health.status is HealthStatus.UNHEALTHY}
    return tuple(
        sick.get(health.kind, health) if health.status is HealthStatus.UNREACHABLE else health
        for health in after
    )
