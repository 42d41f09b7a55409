"""Self-tests of blocklists: what a sick list says is not believed until it recovers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
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
        """Test the list, and give its health by kind."""
        run(self.health.test_all())
        return {one.kind: one.status for one in self.health.of(self.list)}

    def ask(self) -> tuple[ListingStatus, UnknownReason | None]:
        """Ask the list about an address that it does not list."""
        address = parse_ip_address("8.8.4.4")
        assert address is not None
        [row] = run(self.asker.query([self.list], [target_address(address)]))
        return row.status, row.unknown_reason


class SlowZone:
    """Answers from a zone, when it is told to."""

    def __init__(self, zone: MemoryZone) -> None:
        self._zone = zone
        self._held: list[tuple[Deferred[DnsAnswer], DnsQuestion]] = []

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Take a question."""
        answer: Deferred[DnsAnswer] = Deferred()
        self._held.append((answer, question))
        return answer

    def answer(self) -> None:
        """Answer all questions, and the questions that depend on the answers."""
        while self._held:
            answer, question = self._held.pop(0)
            answer.callback(result_of(self._zone.lookup(question)))


def living() -> MemoryZone:
    """Return a zone in which the blocklist has its test entry."""
    return MemoryZone({TEST_ENTRY: {"A": ["127.0.0.2"]}})


def test_a_living_list_is_healthy() -> None:
    """A list with its test entry, and without what no list has, is healthy."""
    bench = Bench(living())
    assert set(bench.statuses().values()) == {HealthStatus.HEALTHY}
    assert bench.ask() == (ListingStatus.CLEAN, None)


def test_a_list_that_lists_everything_is_not_believed() -> None:
    """A wildcard lists everybody: unknown instead of listed."""
    bench = Bench(MemoryZone({f"*.{PSBL}": {"A": ["127.0.0.2"]}}))
    assert bench.ask()[0] is ListingStatus.LISTED
    assert HealthStatus.UNHEALTHY in bench.statuses().values()
    assert bench.ask() == (ListingStatus.UNKNOWN, UnknownReason.FAILED_SELF_TEST)


def test_a_list_recovers() -> None:
    """A list that was empty is believed again when its test entry is back."""
    zone = MemoryZone({})
    bench = Bench(zone)
    assert HealthStatus.UNHEALTHY in bench.statuses().values()
    zone.publish(TEST_ENTRY, "A", "127.0.0.2")
    assert set(bench.statuses().values()) == {HealthStatus.HEALTHY}
    assert bench.ask() == (ListingStatus.CLEAN, None)


def test_silence_is_no_recovery() -> None:
    """A sick list that does not answer its next self-test stays sick."""
    zone = MemoryZone({})
    bench = Bench(zone)
    bench.statuses()
    zone.failing[TEST_ENTRY] = DnsStatus.TIMEOUT
    assert HealthStatus.UNHEALTHY in bench.statuses().values()


def test_silence_is_no_sickness() -> None:
    """A list that was not reached is asked all the same: the next answer will show."""
    bench = Bench(MemoryZone({}, failing={TEST_ENTRY: DnsStatus.TIMEOUT}))
    assert HealthStatus.UNREACHABLE in bench.statuses().values()
    assert bench.ask() == (ListingStatus.CLEAN, None)


def test_self_tests_count_against_the_budget() -> None:
    """The questions of a self-test are counted with the others, until midnight UTC."""
    bench = Bench(living(), {PSBL: 4})
    bench.statuses()
    assert run(bench.budgets.asked_today([bench.list])) == {bench.list.zone: 3}
    assert bench.ask() == (ListingStatus.CLEAN, None)
    assert bench.ask() == (ListingStatus.UNKNOWN, UnknownReason.OVER_BUDGET)
    bench.clock.advance(DAY / 1000)
    assert bench.ask() == (ListingStatus.CLEAN, None)


def test_a_self_test_of_a_silent_zone_ends() -> None:
    """A self-test of a list that never answers ends at the deadline of a check."""
    zone = living()
    zone.silent.add(TEST_ENTRY)
    bench = Bench(zone)
    testing = Deferred.fromCoroutine(bench.health.test_all())
    bench.clock.advance(9.9)
    assert not testing.called
    bench.clock.advance(0.2)
    assert testing.called
    assert bench.health.tested_at == Instant(10_100)


def test_zero_is_no_limit() -> None:
    """A budget of 0 lifts the catalogue's limit."""
    budgets = ListBudgets({"zen.spamhaus.org": 0}, LocalRateCounters(), lambda: Instant(0))
    lists = parse_catalogue(packaged_catalogue_text()).blocklists
    zen = next(one for one in lists if one.zone == "zen.spamhaus.org")
    assert ListBudgets({}, LocalRateCounters(), lambda: Instant(0)).limit_of(zen) == 300_000
    assert budgets.limit_of(zen) is None


class Daemons:
    """Several that share a memory, of which one can have taken the test on."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.memory = OneTester(self.clock)
        self.tested: LocalNotifications[str] = LocalNotifications()
        self.zone = living()

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
    """Has claims that are another daemon's, as long as ``is_taken`` says so."""

    is_taken = False

    def acquire(self, work: str, milliseconds: int) -> "Deferred[bool]":
        """Claim it."""
        return succeed(not self.is_taken)


def test_one_daemon_tests_and_all_know() -> None:
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


@pytest.mark.parametrize(
    ("servers", "query_zones"),
    [(("192.0.2.2 53",), {}), (("192.0.2.1 53",), {TargetKind.IPV4: f"key.{PSBL}"})],
)
def test_what_was_found_with_other_servers_or_keys_does_not_count(
    servers: Sequence[str], query_zones: Mapping[TargetKind, str]
) -> None:
    """A daemon with other DNS servers, or another key of a list, tests at once."""
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
    """While no list passes, the next test comes after a minute: a repaired resolver counts."""
    daemons = Daemons()
    daemons.zone = MemoryZone({f"*.{PSBL}": {"A": ["127.0.0.2"]}})
    run(daemons.daemon().refresh())
    daemons.zone = living()
    daemon = daemons.daemon()
    run(daemon.refresh())
    assert daemon.unhealthy_kinds(psbl())
    daemons.clock.advance(60)
    run(daemon.refresh())
    assert not daemon.unhealthy_kinds(psbl())


def test_a_test_beside_a_check_ends_with_it() -> None:
    """A command judges a blocklist by a concurrent self-test, which ends with the command."""
    bench = Bench(MemoryZone({f"*.{PSBL}": {"A": ["127.0.0.2"]}}))

    async def check() -> tuple[ListingStatus, UnknownReason | None]:
        async with bench.health.testing_in_background(3.0):
            address = parse_ip_address("8.8.4.4")
            assert address is not None
            [row] = await bench.asker.query([bench.list], [target_address(address)])
            return row.status, row.unknown_reason

    assert run(check()) == (ListingStatus.UNKNOWN, UnknownReason.FAILED_SELF_TEST)
    assert bench.clock.getDelayedCalls() == []


def test_a_test_that_another_daemon_does() -> None:
    """While another daemon tests, a daemon waits for the results, and its checks wait briefly."""
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
        """Ask a list that lists everybody, before its first self-test has ended."""
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
        """A check during the first self-test runs concurrently and is judged by its results."""
        bench, slow, tested, asked = self.bench()
        assert f"4.4.8.8.{PSBL}" in str(bench.zone.asked)
        assert not asked.called
        slow.answer()
        bench.clock.advance(1)
        assert tested.called
        [row] = result_of(asked)
        assert row.unknown_reason is UnknownReason.FAILED_SELF_TEST
        assert bench.clock.getDelayedCalls() == []

    def test_checks_wait_for_one_that_is_to_begin(self) -> None:
        """A check before the expected first self-test waits for it as well."""
        bench = Bench(MemoryZone({}))
        bench.health.expect(2)
        waiting = Deferred.fromCoroutine(bench.health.wait_for_first_test())
        assert not waiting.called
        run(bench.health.test_all())
        assert waiting.called
        assert bench.clock.getDelayedCalls() == []

    def test_checks_wait_a_moment_only(self) -> None:
        """While resolvers are down, checks do not wait for the end of the self-test."""
        bench, slow, tested, asked = self.bench()
        bench.clock.advance(FIRST_TEST_PATIENCE)
        [row] = result_of(asked)
        assert row.status is ListingStatus.LISTED
        slow.answer()
        bench.clock.advance(1)
        assert tested.called

    def test_one_who_goes_leaves_no_trace(self) -> None:
        """A check that is given up meanwhile is not woken."""
        bench, slow, tested, asked = self.bench()
        asked.addErrback(lambda failure: failure.trap(CancelledError))
        asked.cancel()
        slow.answer()
        bench.clock.advance(1)
        assert tested.called
        assert bench.clock.getDelayedCalls() == []

    def test_later_ones_are_not_waited_for(self) -> None:
        """While a later self-test is under way, the one before it counts."""
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
