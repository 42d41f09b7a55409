"""A worker that is warmed up by a first call."""

from twisted.internet.task import Clock

from mailcheck.workers.scheduling import DirectWorker, WarmedWorker
from tests.house import result_of


def test_the_first_call_runs_some_seconds_after_the_start() -> None:
    """The first call runs once, some seconds after the daemon starts."""
    ran: list[int] = []
    clock = Clock()
    worker = WarmedWorker(DirectWorker(), lambda: ran.append(1), clock, 2)
    worker.start()
    clock.advance(1.9)
    assert ran == []
    clock.advance(0.1)
    assert ran == [1]
    clock.advance(10)
    assert ran == [1]
    assert worker.stop() is None


def test_calls_and_the_stop_do_not_wait_for_it() -> None:
    """A call before the warm-up runs at once, and stopping leaves no timer behind."""
    clock = Clock()
    worker = WarmedWorker(DirectWorker(), lambda: None, clock, 2)
    worker.start()
    assert result_of(worker.run(lambda: 2)) == 2
    assert clock.getDelayedCalls()
    worker.stop()
    assert clock.getDelayedCalls() == []


def test_a_failed_first_call_is_logged() -> None:
    """A failure of the first call is logged, and the worker continues to work."""

    def fail() -> None:
        raise ValueError("not now")

    clock = Clock()
    worker = WarmedWorker(DirectWorker(), fail, clock, 2)
    worker.start()
    clock.advance(2)
    assert result_of(worker.run(lambda: 2)) == 2


def test_one_that_follows_another() -> None:
    """The warm-up waits for the first call of the other worker, even a late one."""
    ran: list[str] = []
    clock = Clock()
    first = WarmedWorker(DirectWorker(), lambda: ran.append("first"), clock, 1)
    second = WarmedWorker(DirectWorker(), lambda: ran.append("second"), clock, 2, first)
    for worker in (first, second):
        worker.start()
    clock.advance(60)
    assert ran == ["first"]
    for _ in range(2):
        assert result_of(first.run(lambda: 2)) == 2
    clock.advance(2)
    assert ran == ["first", "second"]


def test_a_stopped_worker_ignores_the_other() -> None:
    """After the stop, calls of the other worker have no effect."""
    clock = Clock()
    first = WarmedWorker(DirectWorker(), lambda: None, clock, 1)
    second = WarmedWorker(DirectWorker(), lambda: None, clock, 2, first)
    second.start()
    second.stop()
    assert result_of(first.run(lambda: 2)) == 2
    assert clock.getDelayedCalls() == []
