"""Deliverability tests in a daemon: analysis, leases, expiry and deletion."""

from collections.abc import Iterator
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from mailcheck.assembly.deliverability import deliverability_services
from mailcheck.core.deliverability_tests import (
    DeliverabilityTest,
    State,
    local_part_of,
)
from mailcheck.core.errors import DeliverabilityTestNotFound
from mailcheck.core.instants import DAY, SECOND
from mailcheck.daemon.retention import BATCH, DeliverabilityRetention
from mailcheck.daemon.services import LeasedWorkService, ParkedWaits
from tests.fakes.analyst import REPORT
from tests.house import House, HouseWithAnalyst, config_in_memory, result_of, run


class Runner:
    """A replacement of the analyses that records calls and starts slowly."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.started: Deferred[None] = Deferred()

    async def start(self) -> None:
        """Record the call and wait."""
        self.told.append("start")
        await self.started
        self.told.append("started")

    async def stop(self) -> None:
        """Record the call."""
        self.told.append("stop")


@pytest.fixture
def house() -> HouseWithAnalyst:
    """An application whose analyses are completed by the test."""
    return HouseWithAnalyst(config_in_memory())


@pytest.fixture
def services(house: House) -> Iterator[list[Any]]:
    """The services of the tests, with an analysis that is completed by the test."""
    services = deliverability_services(house.assembly.runtime, house.assembly.tests)
    yield services
    for service in reversed(services):
        if service.running:
            result_of(service.stopService())


def start(services: list[Any]) -> None:
    """Start the services in order."""
    for service in services:
        service.startService()


def generate(house: House) -> DeliverabilityTest:
    """Create a test."""
    operations = house.assembly.tests.operations
    test: DeliverabilityTest = run(operations.manage.create(house.account.id))
    return test


def receive(house: House, test: DeliverabilityTest) -> None:
    """Receive a mail for a test."""
    house.receive(f"{local_part_of(test.id)}@mailcheck.example")


def state(house: House, test: DeliverabilityTest) -> State:
    """Return the state of a test."""
    find = house.assembly.tests.operations.manage
    state: State = run(find.one(house.account.id, test.id)).test.state
    return state


def test_a_daemon_that_stops(house: HouseWithAnalyst, services: list[Any]) -> None:
    """An analysis that is interrupted by a shutdown is completed after the next start."""
    start(services)
    analyst = house.analyst
    test = generate(house)
    receive(house, test)
    for service in reversed(services):
        result_of(service.stopService())
    assert analyst.cancelled == 1
    assert house.clock.getDelayedCalls() == []
    analyst.pending.clear()  # it was cancelled
    start(services)
    analyst.report()
    assert state(house, test) is State.COMPLETED


def test_tests_expire_and_are_forgotten(house: HouseWithAnalyst, services: list[Any]) -> None:
    """Tests without mail expire after an hour, and all are deleted after seven days."""
    start(services)
    unused, used = generate(house), generate(house)
    house.clock.advance(60)
    receive(house, used)
    analyst = house.analyst
    analyst.report(REPORT)
    house.clock.advance(3600)
    assert (state(house, unused), state(house, used)) == (State.EXPIRED, State.COMPLETED)
    rows = run_sql(house, "SELECT state FROM deliverability_test ORDER BY state")
    assert rows == [("completed",), ("expired",)]
    house.clock.advance(7 * DAY / SECOND)
    for test in (unused, used):
        with pytest.raises(DeliverabilityTestNotFound):
            state(house, test)
    assert run_sql(house, "SELECT id FROM deliverability_test") == []
    assert run_sql(house, "SELECT id FROM delivery") == []


def run_sql(house: House, sql: str) -> list[Any]:
    """Read rows of the database."""
    rows: list[Any] = result_of(house.assembly.runtime.engine.read(lambda t: t.rows(sql)))
    return rows


class Batches:
    """A store with a number of rows to expire and to delete."""

    def __init__(self, expiring: int, forgetting: int) -> None:
        self.left = {"expire": expiring, "forget": forgetting}
        self.calls: list[tuple[str, int]] = []

    async def _take(self, name: str, limit: int) -> int:
        count = min(limit, self.left[name])
        self.left[name] -= count
        self.calls.append((name, count))
        return count

    def expire(self, now: int, limit: int) -> "Deferred[int]":
        """Expire a batch."""
        return Deferred.fromCoroutine(self._take("expire", limit))

    def forget(self, now: int, limit: int) -> "Deferred[int]":
        """Delete a batch."""
        return Deferred.fromCoroutine(self._take("forget", limit))


def test_a_round_leaves_nothing(house: House) -> None:
    """A round deletes in batches until no row is left."""
    store: Any = Batches(BATCH, 2 * BATCH + 1)
    run(DeliverabilityRetention(store, house.assembly.runtime.now).sweep())
    assert store.left == {"expire": 0, "forget": 0}
    assert max(count for _, count in store.calls) == BATCH


def test_a_stop_waits_for_the_start() -> None:
    """If a daemon is stopped during its start, the start is finished first."""
    runner: Any = Runner()
    service = LeasedWorkService(runner)
    service.startService()
    stopped = service.stopService()
    assert not stopped.called
    runner.started.callback(None)
    result_of(stopped)
    assert runner.told == ["start", "started", "stop"]


def test_parked_waits_of_all_kinds() -> None:
    """Waits for messages and for tests end together."""
    closed: list[str] = []

    class Feeds:
        """Records that it was closed."""

        def __init__(self, name: str) -> None:
            self._name = name

        def close(self) -> None:
            """Record it."""
            closed.append(self._name)

    service = ParkedWaits(Feeds("messages"), Feeds("tests"))
    service.startService()
    service.stopService()
    assert closed == ["messages", "tests"]
