"""Analysing mails of tests: concurrently, each once, and without losing any."""

from collections.abc import Iterator
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from mailcheck.cluster.local import LocalNotifications
from mailcheck.core.deliverability_tests import (
    MAX_ATTEMPTS,
    DeliverabilityResult,
    DeliverabilityTest,
    State,
    StoredReport,
    local_part_of,
)
from mailcheck.core.errors import StoreUnavailable, WorkTooSlow
from mailcheck.core.identifiers import DeliverabilityTestId
from mailcheck.core.instants import SECOND, instant_of
from mailcheck.engines.database import call_immediately
from mailcheck.operations.concurrency import MailTraffic
from mailcheck.operations.deliverability.run_test_checks import (
    AT_ONCE,
    DEADLINE,
    LEASE,
    PACE,
    RENEWAL,
    Analyse,
    RunTestChecks,
)
from mailcheck.ports.workers import Lease
from mailcheck.store.deliverability_store import DeliverabilityStore
from tests.fakes.analyst import REPORT, Analyst
from tests.house import HouseWithAnalyst, config_in_memory, mail, result_of, run


class Work:
    """A house with analyses that the test completes."""

    def __init__(self, house: HouseWithAnalyst) -> None:
        self.house = house
        self.analyst = house.analyst
        self.tests = house.assembly.tests
        self.runner = self.tests.runner
        self.other: list[RunTestChecks] = []

    def generate(self) -> DeliverabilityTest:
        """Create a test."""
        test: DeliverabilityTest = run(self.tests.operations.manage.create(self.house.account.id))
        return test

    def receive(self, test: DeliverabilityTest, subject: str = "Welcome") -> None:
        """Receive a mail for a test."""
        address = f"{local_part_of(test.id)}@{self.house.assembly.runtime.config.inbox.domain}"
        self.house.receive(address, raw=mail(subject))

    def received(self, subject: str = "Welcome") -> DeliverabilityTest:
        """Create a test and receive its mail."""
        test = self.generate()
        self.receive(test, subject)
        return test

    def found(self, test: DeliverabilityTest) -> DeliverabilityResult:
        """Return the current test."""
        found: DeliverabilityResult = run(
            self.tests.operations.manage.one(self.house.account.id, test.id)
        )
        return found

    def state(self, test: DeliverabilityTest) -> State:
        """Return the state of a test."""
        return self.found(test).test.state

    def another_daemon(self, analyse: Analyse) -> RunTestChecks:
        """Start a second daemon's analyses on the same store."""
        runner = RunTestChecks(
            self.tests.store,
            analyse,
            LocalNotifications(),
            MailTraffic(self.house.clock, call_immediately),
            holder="other",
            clocks=self.house.assembly.runtime.clocks,
        )
        run(runner.start())
        self.other.append(runner)
        return runner

    def close(self) -> None:
        """Stop all daemons."""
        for runner in (self.runner, *self.other):
            result = Deferred.fromCoroutine(runner.stop())
            self.house.clock.advance(10)
            result_of(result)


@pytest.fixture
def idle() -> Iterator[Work]:
    """Analyses that have not started."""
    work = Work(HouseWithAnalyst(config_in_memory()))
    yield work
    work.close()


@pytest.fixture
def work(idle: Work) -> Work:
    """Running analyses."""
    run(idle.runner.start())
    return idle


def test_from_mail_to_report(work: Work) -> None:
    """A mail is analysed as soon as it is on disk, with all known facts about its delivery."""
    test = work.generate()
    assert work.analyst.mails == []
    work.receive(test)
    (received,) = work.analyst.mails
    assert received.raw_message == mail()
    assert received.envelope_sender == "shop@example.com"
    assert received.session.client_ip == "192.0.2.7"
    assert work.found(test).report is None
    assert work.state(test) is State.PROCESSING
    work.analyst.report()
    assert work.state(test) is State.COMPLETED
    assert work.found(test).report == REPORT
    assert work.runner.count() == 0


def test_mail_goes_first(work: Work) -> None:
    """While inbox mail arrives, analyses start one at a time with a pause between them."""
    house = work.house
    house.receive()
    tests = [work.received(f"{number}") for number in range(3)]
    assert len(work.analyst.mails) == 1
    house.clock.advance(PACE / 2)
    assert len(work.analyst.mails) == 1
    house.receive()
    house.clock.advance(PACE / 2)
    assert len(work.analyst.mails) == 2
    house.clock.advance(PACE)
    assert len(work.analyst.mails) == 3
    for _ in tests:
        work.analyst.report()
    assert {work.state(test) for test in tests} == {State.COMPLETED}


def test_no_pause_without_mail(work: Work) -> None:
    """Without inbox mail, analyses start without a pause."""
    work.house.receive()
    for number in range(3):
        work.received(f"{number}")
    assert len(work.analyst.mails) == 1
    work.house.clock.advance(PACE)
    assert len(work.analyst.mails) == 2
    work.received("3")
    assert len(work.analyst.mails) == 3


def test_stopping_before_its_turn(work: Work) -> None:
    """An analysis that is still queued when the daemon stops is done by the next daemon."""
    work.house.receive()
    tests = [work.received(f"{number}") for number in range(2)]
    run(work.runner.stop())
    assert {work.state(test) for test in tests} == {State.PROCESSING}
    work.analyst.pending.clear()  # it was cancelled
    run(work.runner.start())
    work.house.clock.advance(AT_ONCE * PACE)
    for _ in tests:
        work.analyst.report()
    assert {work.state(test) for test in tests} == {State.COMPLETED}


def test_bound(work: Work) -> None:
    """The number of concurrent analyses is limited. The next starts when one ends."""
    tests = [work.received(f"{number}") for number in range(AT_ONCE + 3)]
    assert len(work.analyst.mails) == work.runner.count() == AT_ONCE
    for _ in range(2):
        work.analyst.report()
    assert len(work.analyst.mails) == AT_ONCE + 2
    while work.analyst.pending:
        work.analyst.report()
    assert {work.state(test) for test in tests} == {State.COMPLETED}
    assert len(work.analyst.mails) == AT_ONCE + 3


def test_tests_that_were_waiting(idle: Work) -> None:
    """All tests that were waiting before the start are analysed, oldest first."""
    tests = [idle.received(f"{number}") for number in range(AT_ONCE + 2)]
    assert idle.analyst.mails == []
    run(idle.runner.start())
    while idle.analyst.pending:
        idle.analyst.report()
    assert {idle.state(test) for test in tests} == {State.COMPLETED}


def test_killed_and_started_again(idle: Work) -> None:
    """Analyses of a killed daemon are started again at once after its restart."""
    test = idle.received()
    now = instant_of(idle.house.clock.seconds())
    lease = Lease("daemon", instant_of(idle.house.clock.seconds() + 30))
    assert len(result_of(idle.tests.store.claim(lease, now, 1)).tests) == 1
    run(idle.runner.start())
    assert len(idle.analyst.mails) == 1
    idle.analyst.report()
    assert idle.state(test) is State.COMPLETED


def test_stopped_and_started_again(work: Work) -> None:
    """A daemon that stops drops its analyses. Another daemon starts them from the beginning."""
    test = work.received()
    run(work.runner.stop())
    assert (work.analyst.cancelled, work.runner.count()) == (1, 0)
    assert work.found(test).test.attempts == 0
    others = Analyst()
    work.another_daemon(others)
    assert len(others.mails) == 1
    others.report()
    assert work.state(test) is State.COMPLETED


def test_nothing_is_begun_after_the_stop(work: Work) -> None:
    """A mail that arrives while the daemon stops is analysed after the next start."""
    run(work.runner.stop())
    test = work.received()
    run(work.runner.renew())
    assert work.analyst.mails == []
    assert work.state(test) is State.PROCESSING


def test_an_analysis_that_cannot_be_stopped(idle: Work) -> None:
    """An analysis that ignores its cancellation delays the stop by seconds, and is not stored."""
    ends: list[Deferred[StoredReport]] = [Deferred(lambda _: None), Deferred()]

    async def twice(_: Any) -> StoredReport:
        try:
            return await ends[0]
        except BaseException:
            return await ends[1]

    test = idle.received()
    stopped = Deferred.fromCoroutine(idle.another_daemon(twice).stop())
    assert not stopped.called
    idle.house.clock.advance(5)
    result_of(stopped)
    ends[1].callback(REPORT)
    assert idle.state(test) is State.PROCESSING


def test_failures(work: Work, logged_failures: list[Any]) -> None:
    """A failed analysis is retried some seconds later. The third failure is an error."""
    test = work.received()
    for attempt in range(1, MAX_ATTEMPTS + 1):
        assert len(work.analyst.mails) == attempt
        assert work.state(test) is State.PROCESSING
        work.analyst.fail(RuntimeError("broken"))
        run(work.runner.renew())
        assert len(work.analyst.mails) == attempt
        work.house.clock.advance(RENEWAL)
        run(work.runner.renew())
    found = work.found(test)
    assert (found.test.state, found.failure) == (
        State.ERROR,
        "the analysis failed: RuntimeError",
    )
    assert len(work.analyst.mails) == MAX_ATTEMPTS
    assert len(logged_failures) == MAX_ATTEMPTS


def test_an_analysis_that_exceeds_its_time(work: Work) -> None:
    """A mail that exceeds the worker's time is an error at once: a retry would take as long."""
    test = work.received()
    work.analyst.fail(WorkTooSlow("it took the analysis process longer than 20 seconds"))
    found = work.found(test)
    assert (found.test.state, found.failure) == (
        State.ERROR,
        "the analysis was given up: it took the analysis process longer than 20 seconds",
    )
    assert len(work.analyst.mails) == 1


def test_an_analysis_that_hangs(work: Work, logged_failures: list[Any]) -> None:
    """An analysis that does not end fails at its deadline."""
    test = work.received()
    for _ in range(int(DEADLINE / RENEWAL)):
        work.house.clock.advance(RENEWAL)
        run(work.runner.renew())
    assert (work.analyst.cancelled, work.runner.count()) == (1, 0)
    assert work.state(test) is State.PROCESSING
    assert len(logged_failures) == 1


def test_a_long_analysis_keeps_its_lease(work: Work) -> None:
    """No other daemon takes over a running analysis, however long it lasts."""
    test = work.received()
    others = Analyst()
    other = work.another_daemon(others)
    for _ in range(8):
        work.house.clock.advance(RENEWAL)
        run(work.runner.renew())
        run(other.renew())
    assert others.mails == []
    work.analyst.report()
    assert work.state(test) is State.COMPLETED


def test_a_daemon_that_is_gone(work: Work) -> None:
    """When a daemon falls silent, another one takes over, and late results are not stored."""
    test = work.received()
    others = Analyst()
    other = work.another_daemon(others)
    work.house.clock.advance(LEASE / SECOND)
    run(other.renew())
    assert len(others.mails) == 1
    work.analyst.report(StoredReport(0, "{}"))
    assert work.state(test) is State.PROCESSING
    others.report()
    assert work.found(test).report == REPORT


def test_a_lease_that_was_lost(work: Work) -> None:
    """A daemon that has lost the lease of a test cancels its own analysis."""
    work.received()
    others = Analyst()
    other = work.another_daemon(others)
    work.house.clock.advance(LEASE / SECOND)
    run(other.renew())
    run(work.runner.renew())
    assert (work.analyst.cancelled, work.runner.count()) == (1, 0)
    others.report()


def test_a_clock_that_is_put_forward(work: Work, logged_failures: list[Any]) -> None:
    """If the clock jumps past the end of a lease, its daemon starts no second analysis."""
    test = work.received()
    work.house.clock.advance(LEASE / SECOND + 1)
    other = work.received("another")
    assert (len(work.analyst.mails), work.runner.count()) == (2, 2)
    work.analyst.report()
    assert work.state(test) is State.COMPLETED
    work.analyst.report()
    assert (work.state(other), work.runner.count()) == (State.COMPLETED, 0)


def test_waits_are_notified_of_changes(work: Work, logged_failures: list[Any]) -> None:
    """Waits are notified of each change once the store contains it."""
    seen: list[tuple[DeliverabilityTestId, State]] = []
    test = work.generate()
    work.tests.notifications.listen(lambda test_id: seen.append((test_id, work.state(test))))
    work.receive(test)
    work.analyst.report()
    states = [state for test_id, state in seen if test_id == test.id]
    assert states == [State.PROCESSING, State.COMPLETED]


def test_giving_up_notifies_waits(idle: Work) -> None:
    """Mails that crash every daemon end as an error, and delay no other test."""
    lost = [idle.received(f"{number}") for number in range(AT_ONCE)]
    idle.house.clock.advance(1)
    other = idle.received("other")
    now = instant_of(idle.house.clock.seconds())
    for _ in range(MAX_ATTEMPTS):
        found = result_of(idle.tests.store.claim(Lease("gone", now), now, AT_ONCE))
        assert {test.id for test in found.tests} == {test.id for test in lost}
    woken: list[DeliverabilityTestId] = []
    idle.tests.notifications.listen(woken.append)
    run(idle.runner.start())
    assert sorted(woken) == sorted(test.id for test in lost)
    assert {idle.state(test) for test in lost} == {State.ERROR}
    assert len(idle.analyst.mails) == 1
    idle.analyst.report()
    assert idle.state(other) is State.COMPLETED


class BrokenStore:
    """A store whose named methods fail."""

    def __init__(self, store: DeliverabilityStore, *broken: str) -> None:
        self._store = store
        self.broken = set(broken)

    def __getattr__(self, name: str) -> Any:
        if name in self.broken:
            return lambda *_, **__: Deferred.fromCoroutine(self._fail())
        return getattr(self._store, name)

    async def _fail(self) -> None:
        raise StoreUnavailable("the disk is full")


@pytest.mark.parametrize(
    "broken", ["release", "claim", "read_mail", "complete", "renew", "fail_attempt"]
)
def test_a_store_that_fails(idle: Work, broken: str, logged_failures: list[Any]) -> None:
    """A test is completed after any failed read or write, once the store works again."""
    test = idle.received()
    store: Any = BrokenStore(idle.tests.store, broken)
    analyst = Analyst()
    runner = RunTestChecks(
        store,
        analyst,
        LocalNotifications(),
        MailTraffic(idle.house.clock, call_immediately),
        holder="another",
        clocks=idle.house.assembly.runtime.clocks,
    )
    run(runner.start())
    if broken == "fail_attempt":
        analyst.fail(RuntimeError("broken"))
    elif analyst.pending and broken == "complete":
        analyst.report()
    run(runner.renew())
    store.broken = set()
    for _ in range(int(LEASE / SECOND / RENEWAL) + 1):
        idle.house.clock.advance(RENEWAL)
        run(runner.renew())
    analyst.report()
    assert idle.state(test) is State.COMPLETED
    run(runner.stop())
