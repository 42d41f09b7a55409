"""A worker that runs calls one by one, with a timeout."""

import os
import signal
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import LogEvent

from mailcheck.core.errors import StoreUnavailable, WorkerDied, WorkTooSlow
from mailcheck.workers.process import LOOK, ProcessWorker
from mailcheck.workers.scheduling import SerialWorker
from tests.workers.stepped_reactor import SteppedReactor

SECONDS = 20
FOREVER = partial(time.sleep, 600)


@pytest.fixture
def clock() -> SteppedReactor:
    """A reactor whose clock controls the timeout of calls."""
    return SteppedReactor()


@pytest_twisted.async_yield_fixture
async def worker(clock: SteppedReactor) -> AsyncIterator[SerialWorker]:
    """A started worker."""
    worker = SerialWorker(ProcessWorker(clock, "test", SECONDS))
    worker.start()
    yield worker
    await worker.stop()


def test_the_child_is_started_with_the_first_call(clock: SteppedReactor) -> None:
    """Starting the worker starts no process, since most daemons never have work for some."""
    process = ProcessWorker(clock, "test", SECONDS)
    SerialWorker(process).start()
    assert process.pid is None


@pytest_twisted.ensureDeferred
async def test_a_call_that_does_not_end(
    worker: SerialWorker, clock: SteppedReactor, logged_failures: list[LogEvent]
) -> None:
    """A call that takes too long fails. A new child answers the calls behind it."""
    child = await worker.run(os.getpid)
    endless: Deferred[None] = worker.run(FOREVER)
    others = [worker.run(os.getpid), worker.run(os.getpid)]
    clock.pump([1] * SECONDS)
    with pytest.raises(WorkTooSlow, match="longer than 20 seconds"):
        await endless
    answers = [await other for other in others]
    assert answers[0] == answers[1] != child
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest_twisted.ensureDeferred
async def test_each_call_has_its_own_time(worker: SerialWorker, clock: SteppedReactor) -> None:
    """The timeout of a call begins with its turn, and no timer remains."""
    first, second = worker.run(os.getpid), worker.run(os.getpid)
    clock.pump([1] * (SECONDS - 1))
    child = await first
    clock.pump([1] * (SECONDS - 1))
    assert await second == child
    clock.advance(LOOK)
    assert clock.getDelayedCalls() == []


@pytest_twisted.ensureDeferred
async def test_a_child_that_dies_fails_one_call(
    worker: SerialWorker, logged_failures: list[LogEvent]
) -> None:
    """If the child is killed, only the running call fails."""
    child = await worker.run(os.getpid)
    dying = worker.run(partial(os.kill, child, signal.SIGKILL))
    other = worker.run(os.getpid)
    with pytest.raises(WorkerDied) as caught:
        await dying
    assert not isinstance(caught.value, WorkTooSlow)
    assert await other != child


@pytest_twisted.ensureDeferred
async def test_a_call_taken_back(worker: SerialWorker, tmp_path: Path) -> None:
    """A call that is cancelled in the queue never runs."""
    await worker.run(os.getpid)
    first = worker.run(os.getpid)
    given_up = worker.run(partial(Path.touch, tmp_path / "given-up"))
    given_up.cancel()
    with pytest.raises(CancelledError):
        await given_up
    await first
    await worker.run(os.getpid)
    assert not list(tmp_path.iterdir())


@pytest_twisted.ensureDeferred
async def test_an_answer_given_up(worker: SerialWorker, clock: SteppedReactor) -> None:
    """A cancelled call that is running continues, and the next call waits for it."""
    first = worker.run(partial(time.sleep, 0.05))
    first.cancel()
    with pytest.raises(CancelledError):
        await first
    assert len(clock.getDelayedCalls()) == 1
    assert await worker.run(partial(int, "7")) == 7
    clock.advance(LOOK)
    assert clock.getDelayedCalls() == []


@pytest_twisted.ensureDeferred
async def test_owners_take_turns(worker: SerialWorker) -> None:
    """Owners take turns, regardless of the number of their calls."""
    done: list[str] = []
    owners = ["many"] * 5 + ["few"] * 2 + ["one"]
    calls = [worker.run(partial(str, owner), owner).addCallback(done.append) for owner in owners]
    for call in calls:
        await call
    assert done == ["many", "many", "few", "one", "many", "few", "many", "many"]


@pytest_twisted.ensureDeferred
async def test_exceptions_of_a_call(worker: SerialWorker) -> None:
    """An exception in a call, or while its result is passed on, fails only that call."""
    with pytest.raises(ValueError, match="invalid literal"):
        await worker.run(partial(int, "seven"))
    with pytest.raises(AttributeError, match=r"pickle|local object"):
        await worker.run(lambda: 7)
    assert await worker.run(partial(int, "7")) == 7


@pytest_twisted.ensureDeferred
async def test_stopping(worker: SerialWorker) -> None:
    """The queued calls run before the end, and later calls fail at once."""
    last, stopped, late = worker.run(os.getpid), worker.stop(), worker.run(os.getpid)
    child = await last
    await stopped
    with pytest.raises(StoreUnavailable):
        await late
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest_twisted.ensureDeferred
async def test_stopping_beside_an_endless_call(
    worker: SerialWorker, clock: SteppedReactor, logged_failures: list[LogEvent]
) -> None:
    """A call that does not end delays the stop until its timeout."""
    endless, stopped = worker.run(FOREVER), worker.stop()
    assert not stopped.called
    clock.pump([1] * SECONDS)
    with pytest.raises(WorkerDied):
        await endless
    await stopped
