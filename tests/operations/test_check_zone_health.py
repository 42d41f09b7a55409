"""Self-tests of blocklists: the listings of a failing list are ignored until it recovers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.task import Clock

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.checks.dnsbl.catalogue import (
    Blocklist,
    TargetKind,
    packaged_catalogue_text,
    parse_catalogue,
)
from mailcheck.checks.dnsbl.health import HealthStatus
from mailcheck.checks.dnsbl.listings import ListingStatus, UnknownReason, target_address
from mailcheck.cluster.local import LocalMemory, LocalNotifications, LocalRateCounters
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.operations.cached_values import CachedValues
from mailcheck.operations.domains.check_blocklists import QueryBlocklists
from mailcheck.operations.domains.zone_health import (
    FIRST_TEST_PATIENCE,
    BlocklistHealth,
    ListBudgets,
    ZoneHealthCheck,
)
from tests.fakes.clock_and_randomness import clock_and_randomness_of
from tests.fakes.memory_zone import MemoryZone
from tests.house import result_of, run
from tests.table import rows

PSBL = "psbl.surriel.com"
TEST_ENTRY = f"2.0.0.127.{PSBL}"


def psbl() -> Blocklist:
    """Return a blocklist of IPv4 addresses."""
    lists = parse_catalogue(packaged_catalogue_text()).blocklists
    return next(one for one in lists if one.zone == PSBL)


class Bench:
    """A blocklist, its self-test, and a client that queries it."""

    def __init__(self, zone: MemoryZone, budgets: Mapping[str, int] | None = None) -> None:
        self.zone = zone
        self.clock = Clock()
        self.list = psbl()
        self.clock_and_randomness = clock_and_randomness_of(self.clock)
        self.budgets = ListBudgets(
            budgets or {}, LocalRateCounters(), self.clock_and_randomness.now
        )
        self.health = ZoneHealthCheck(
            [self.list],
            zone,
            [],
            self.budgets,
            CachedValues(LocalMemory(self.clock), "health", BlocklistHealth),
            LocalNotifications(),
            self.clock_and_randomness,
        )
        self.asker = QueryBlocklists(zone, self.budgets, self.health, self.clock, 3.0)

    def statuses(self) -> dict[TargetKind, HealthStatus]:
        """Run the self-test, and return the health of the list by kind."""
        run(self.health.test_all())
        return {one.kind: one.status for one in self.health.of(self.list)}

    def ask(self) -> tuple[ListingStatus, UnknownReason | None]:
        """Query the list for an address that it does not list."""
        address = parse_ip_address("8.8.4.4")
        assert address is not None
        [row] = run(self.asker.query([self.list], [target_address(address)]))
        return row.status, row.unknown_reason


class SlowZone:
    """Holds the answers from a zone until the test releases them."""

    def __init__(self, zone: MemoryZone) -> None:
        self._zone = zone
        self._held: list[tuple[Deferred[DnsAnswer], DnsQuestion]] = []

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Queue a question."""
        answer: Deferred[DnsAnswer] = Deferred()
        self._held.append((answer, question))
        return answer

    def answer(self) -> None:
        """Answer all questions, including those that depend on the answers."""
        while self._held:
            answer, question = self._held.pop(0)
            answer.callback(result_of(self._zone.lookup(question)))


def working_zone() -> MemoryZone:
    """Return a zone in which the blocklist has its test entry."""
    return MemoryZone({TEST_ENTRY: {"A": ["127.0.0.2"]}})


def test_a_list_recovers() -> None:
    """An empty list is trusted again when its test entry is back."""
    zone = MemoryZone({})
    bench = Bench(zone)
    assert HealthStatus.UNHEALTHY in bench.statuses().values()
    zone.publish(TEST_ENTRY, "A", "127.0.0.2")
    assert set(bench.statuses().values()) == {HealthStatus.HEALTHY}
    assert bench.ask() == (ListingStatus.CLEAN, None)


def test_silence_is_no_recovery() -> None:
    """A failing list stays failing if it does not answer its next self-test."""
    zone = MemoryZone({})
    bench = Bench(zone)
    bench.statuses()
    zone.failing[TEST_ENTRY] = DnsStatus.TIMEOUT
    assert HealthStatus.UNHEALTHY in bench.statuses().values()


def test_an_unreachable_list_is_still_queried() -> None:
    """A list that could not be reached by its self-test is still queried."""
    bench = Bench(MemoryZone({}, failing={TEST_ENTRY: DnsStatus.TIMEOUT}))
    assert HealthStatus.UNREACHABLE in bench.statuses().values()
    assert bench.ask() == (ListingStatus.CLEAN, None)


def test_self_tests_count_against_the_budget() -> None:
    """The queries of a self-test count towards the daily budget, until midnight UTC."""
    bench = Bench(working_zone(), {PSBL: 4})
    bench.statuses()
    assert run(bench.budgets.asked_today([bench.list])) == {bench.list.zone: 3}
    assert bench.ask() == (ListingStatus.CLEAN, None)
    assert bench.ask() == (ListingStatus.UNKNOWN, UnknownReason.OVER_BUDGET)
    bench.clock.advance(DAY / 1000)
    assert bench.ask() == (ListingStatus.CLEAN, None)


def test_a_self_test_of_a_silent_zone_ends() -> None:
    """A self-test of a list that never answers ends at the deadline of a check."""
    zone = working_zone()
    zone.silent.add(TEST_ENTRY)
    bench = Bench(zone)
    testing = Deferred.fromCoroutine(bench.health.test_all())
    bench.clock.advance(9.9)
    assert not testing.called
    bench.clock.advance(0.2)
    assert testing.called
    assert bench.health.tested_at == Instant(10_100)


def test_zero_is_no_limit() -> None:
    """A budget of 0 removes the limit of the catalogue."""
    budgets = ListBudgets({"zen.spamhaus.org": 0}, LocalRateCounters(), lambda: Instant(0))
    lists = parse_catalogue(packaged_catalogue_text()).blocklists
    zen = next(one for one in lists if one.zone == "zen.spamhaus.org")
    assert ListBudgets({}, LocalRateCounters(), lambda: Instant(0)).limit_of(zen) == 300_000
    assert budgets.limit_of(zen) is None


class Daemons:
    """Several daemons that share a memory. Another daemon may hold the lease of the test."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.memory = OneTester(self.clock)
        self.tested: LocalNotifications[str] = LocalNotifications()
        self.zone = working_zone()

    def daemon(self, *servers: str, blocklist: Blocklist | None = None) -> ZoneHealthCheck:
        """Start a daemon that uses these DNS servers."""
        clock_and_randomness = clock_and_randomness_of(self.clock)
        return ZoneHealthCheck(
            [blocklist or psbl()],
            self.zone,
            servers,
            ListBudgets({}, LocalRateCounters(), clock_and_randomness.now),
            CachedValues(self.memory, "health", BlocklistHealth),
            self.tested,
            clock_and_randomness,
        )


class OneTester(LocalMemory):
    """A memory whose leases are held by another daemon while ``is_taken`` is true."""

    is_taken = False

    def acquire(self, work: str, milliseconds: int) -> "Deferred[bool]":
        """Acquire the lease."""
        return succeed(not self.is_taken)


def test_one_daemon_tests_for_all() -> None:
    """One daemon tests, and other or restarted daemons use the results until the next test."""
    daemons = Daemons()
    one, other = daemons.daemon(), daemons.daemon()
    run(one.refresh())
    asked = len(daemons.zone.asked)
    assert asked > 0
    assert other.of(psbl()) == one.of(psbl()) != ()
    started = daemons.daemon()
    for minute in range(29):
        for daemon in (one, other, started):
            run(daemon.refresh())
            assert daemon.tested_at == Instant(0), minute
        daemons.clock.advance(60)
    assert len(daemons.zone.asked) == asked
    daemons.clock.advance(60)
    for daemon in (started, one, other):
        run(daemon.refresh())
    assert one.tested_at == other.tested_at == started.tested_at == Instant(1_800_000)
    assert len(daemons.zone.asked) == 2 * asked


@rows((("192.0.2.2 53",), {}), (("192.0.2.1 53",), {TargetKind.IPV4: f"key.{PSBL}"}))
def test_results_with_other_servers_or_keys_do_not_count(
    servers: Sequence[str], query_zones: Mapping[TargetKind, str]
) -> None:
    """A daemon with other DNS servers, or another key for a list, runs the self-test at once."""
    daemons = Daemons()
    run(daemons.daemon("192.0.2.1 53").refresh())
    asked = len(daemons.zone.asked)
    again = daemons.daemon("192.0.2.1 53")
    run(again.refresh())
    assert len(daemons.zone.asked) == asked
    changed = daemons.daemon(
        *servers, blocklist=replace(psbl(), query_zones={**psbl().query_zones, **query_zones})
    )
    run(changed.refresh())
    assert len(daemons.zone.asked) == 2 * asked


def test_lists_that_all_fail_are_tested_again_soon() -> None:
    """If all lists fail, the next test runs after a minute, to notice a repaired resolver."""
    daemons = Daemons()
    daemons.zone = MemoryZone({f"*.{PSBL}": {"A": ["127.0.0.2"]}})
    run(daemons.daemon().refresh())
    daemons.zone = working_zone()
    daemon = daemons.daemon()
    run(daemon.refresh())
    assert daemon.unhealthy_kinds(psbl())
    daemons.clock.advance(60)
    run(daemon.refresh())
    assert not daemon.unhealthy_kinds(psbl())


def test_a_self_test_of_a_command() -> None:
    """A command runs a self-test concurrently to judge a blocklist, and ends it at its own end."""
    bench = Bench(MemoryZone({f"*.{PSBL}": {"A": ["127.0.0.2"]}}))

    async def check() -> tuple[ListingStatus, UnknownReason | None]:
        async with bench.health.testing_in_background(3.0):
            address = parse_ip_address("8.8.4.4")
            assert address is not None
            [row] = await bench.asker.query([bench.list], [target_address(address)])
            return row.status, row.unknown_reason

    assert run(check()) == (ListingStatus.UNKNOWN, UnknownReason.FAILED_SELF_TEST)
    assert bench.clock.getDelayedCalls() == []


def test_a_test_in_another_daemon() -> None:
    """While another daemon tests, a daemon waits for its results. Its checks wait briefly."""
    daemons = Daemons()
    one, other = daemons.daemon(), daemons.daemon()
    daemons.memory.is_taken = True
    run(other.refresh())
    assert daemons.zone.asked == []
    waiting = Deferred.fromCoroutine(other.wait_for_first_test())
    assert not waiting.called
    run(one.test_all())
    assert waiting.called
    assert other.tested_at == Instant(0)
    assert daemons.clock.getDelayedCalls() == []


class TestTheFirstTest:
    """Checks while the daemon's first self-test is under way."""

    @staticmethod
    def bench() -> tuple[Bench, SlowZone, "Deferred[None]", "Deferred[list[Any]]"]:
        """Query a list that lists everything, before its first self-test has ended."""
        bench = Bench(MemoryZone({f"*.{PSBL}": {"A": ["127.0.0.2"]}}))
        slow = SlowZone(bench.zone)
        bench.health = ZoneHealthCheck(
            [bench.list],
            slow,
            [],
            bench.budgets,
            CachedValues(LocalMemory(bench.clock), "health", BlocklistHealth),
            LocalNotifications(),
            bench.clock_and_randomness,
        )
        bench.asker = QueryBlocklists(bench.zone, bench.budgets, bench.health, bench.clock, 3.0)
        tested = Deferred.fromCoroutine(bench.health.test_all())
        address = parse_ip_address("8.8.4.4")
        assert address is not None
        asked = Deferred.fromCoroutine(bench.asker.query([bench.list], [target_address(address)]))
        return bench, slow, tested, asked

    def test_checks_wait_for_it(self) -> None:
        """A check during the first self-test runs at once, and is judged by the test's results."""
        bench, slow, tested, asked = self.bench()
        assert f"4.4.8.8.{PSBL}" in str(bench.zone.asked)
        assert not asked.called
        slow.answer()
        bench.clock.advance(1)
        assert tested.called
        [row] = result_of(asked)
        assert row.unknown_reason is UnknownReason.FAILED_SELF_TEST
        assert bench.clock.getDelayedCalls() == []

    def test_checks_wait_for_the_start_of_it(self) -> None:
        """A check before the expected first self-test waits for it as well."""
        bench = Bench(MemoryZone({}))
        bench.health.expect(2)
        waiting = Deferred.fromCoroutine(bench.health.wait_for_first_test())
        assert not waiting.called
        run(bench.health.test_all())
        assert waiting.called
        assert bench.clock.getDelayedCalls() == []

    def test_checks_wait_briefly(self) -> None:
        """While resolvers are down, checks do not wait until the self-test ends."""
        bench, slow, tested, asked = self.bench()
        bench.clock.advance(FIRST_TEST_PATIENCE)
        [row] = result_of(asked)
        assert row.status is ListingStatus.LISTED
        slow.answer()
        bench.clock.advance(1)
        assert tested.called

    def test_a_cancelled_check_leaves_no_wait(self) -> None:
        """A check that is cancelled while it waits is not resumed."""
        bench, slow, tested, asked = self.bench()
        asked.addErrback(lambda failure: failure.trap(CancelledError))
        asked.cancel()
        slow.answer()
        bench.clock.advance(1)
        assert tested.called
        assert bench.clock.getDelayedCalls() == []

    def test_later_tests_do_not_delay_checks(self) -> None:
        """During a later self-test, the results of the previous one are used."""
        bench, slow, _, asked = self.bench()
        slow.answer()
        bench.clock.advance(1)
        result_of(asked)
        again = Deferred.fromCoroutine(bench.health.test_all())
        assert bench.ask() == (ListingStatus.UNKNOWN, UnknownReason.FAILED_SELF_TEST)
        assert not again.called
        slow.answer()
        bench.clock.advance(1)
        assert again.called
