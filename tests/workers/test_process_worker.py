"""A worker in a child process: calls, results and crashes."""

import os
import pickle
import signal
from collections.abc import AsyncIterator
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Lock

import pytest
import pytest_twisted
from twisted.internet.defer import gatherResults
from twisted.internet.task import deferLater
from twisted.logger import LogEvent

import mailcheck.store
from mailcheck.assembly.workers import WRITTEN_BY
from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.domains.domain_names import parse_domain
from mailcheck.core.errors import InvalidParameter, StoreUnavailable, WorkerDied
from mailcheck.operations.worker_calls import derive_content
from mailcheck.store.transactions import Store, write
from mailcheck.workers.child import load
from mailcheck.workers.process import LAST_GRACE, LOOK, ProcessWorker
from tests.linear import memory_below
from tests.workers.loaded_modules import loaded_modules
from tests.workers.stepped_reactor import SteppedReactor

STORAGE = Path(mailcheck.store.__path__[0])

WRITES = sorted(
    ".".join(("mailcheck", "store", *path.relative_to(STORAGE).with_suffix("").parts))
    for path in STORAGE.rglob("*.py")
    if "@write" in path.read_text()
)
"""The package that contains the writes."""


@pytest_twisted.async_yield_fixture
async def worker() -> AsyncIterator[ProcessWorker]:
    """A started worker."""
    from twisted.internet import reactor

    worker = ProcessWorker(reactor, "test")
    worker.start()
    yield worker
    await worker.stop()


@pytest_twisted.ensureDeferred
async def test_calls_run_in_another_process_in_order(worker: ProcessWorker) -> None:
    """Calls run in order in one other process."""
    answers = await gatherResults([worker.run(os.getpid), worker.run(os.getpid)])
    assert answers[0] == answers[1] != os.getpid()


@pytest_twisted.ensureDeferred
async def test_children_load_what_they_do_and_no_more(worker: ProcessWorker) -> None:
    """A process that writes or parses mail does not import Twisted (15 MiB).

    It does not import the modules for DNS lookups and signatures either (another 15 MiB).
    """
    await worker.run(partial(load, *WRITES, *WRITTEN_BY[False], *WRITTEN_BY[True]))
    assert await worker.run(partial(derive_content, b"\r\ncode 482913"))
    loaded = await worker.run(loaded_modules)
    assert "mailcheck.checks.content.derive" in loaded
    assert "mailcheck.store.mail_store" in loaded
    assert not {"twisted", "dns", "cryptography"} & {*loaded}


@pytest_twisted.ensureDeferred
async def test_expected_failures_are_themselves(worker: ProcessWorker) -> None:
    """An expected failure arrives with its message, without importing Twisted."""
    with pytest.raises(InvalidParameter, match="not a domain") as caught:
        await worker.run(partial(parse_domain, "no domain"))
    assert caught.value.name
    assert "twisted" not in await worker.run(loaded_modules)


@pytest_twisted.ensureDeferred
async def test_a_method_is_called_there(worker: ProcessWorker) -> None:
    """A method is pickled with its object, without importing Twisted."""
    assert await worker.run(Path("/etc/mail").as_uri) == "file:///etc/mail"
    assert "twisted" not in await worker.run(loaded_modules)


@pytest_twisted.ensureDeferred
async def test_large_calls_and_answers_arrive_whole(worker: ProcessWorker) -> None:
    """A mail of 25 MiB is sent to the child and back unchanged."""
    raw = os.urandom(1024) * 25 * 1024
    assert await worker.run(partial(bytes, raw)) == raw


@pytest_twisted.ensureDeferred
async def test_large_answers_are_copied_once(worker: ProcessWorker) -> None:
    """A large result is held once as bytes and once as a value, without other copies."""
    size = 8 * 1024 * 1024
    await worker.run(int)
    answer = worker.run(partial(bytes, size))
    with memory_below(2.5 * size):
        await answer


@pytest_twisted.ensureDeferred
async def test_large_calls_are_copied_once(worker: ProcessWorker) -> None:
    """A large call is held once, as the bytes that the child receives."""
    raw = bytes(8 * 1024 * 1024)
    await worker.run(int)
    with memory_below(1.75 * len(raw)):  # pickle takes half as much more while it works
        assert await worker.run(partial(len, raw)) == len(raw)


@pytest_twisted.ensureDeferred
async def test_calls_that_the_pipe_does_not_take_at_once_keep_their_order(
    worker: ProcessWorker,
) -> None:
    """Small and large calls are answered in order."""
    sizes = [10, 400_000, 10, 10, 90_000, 70_000, 10] * 4
    for _ in range(2):  # the second time, the pipe is empty again
        calls = [worker.run(partial(bytes.upper, b"a" * size)) for size in sizes]
        assert [len(answer) for answer in await gatherResults(calls)] == sizes


@pytest_twisted.ensureDeferred
async def test_an_exception_of_the_call_is_the_exception_of_the_answer(
    worker: ProcessWorker,
) -> None:
    """An exception of the call is raised in the parent, and the child continues."""
    with pytest.raises(ValueError, match="no @ in the address"):
        await worker.run(partial(parse_mailbox, "nonsense"))
    assert await worker.run(partial(int, "7")) == 7


@pytest_twisted.ensureDeferred
async def test_an_answer_that_cannot_be_sent_is_an_error(worker: ProcessWorker) -> None:
    """A result that cannot be pickled fails only its own call."""
    with pytest.raises(RuntimeError, match="cannot be pickled"):
        await worker.run(Lock)
    assert await worker.run(partial(int, "7")) == 7


@pytest_twisted.ensureDeferred
async def test_a_child_leaves_endings_to_its_parent(logged_failures: list[LogEvent]) -> None:
    """A signal to the whole process group does not end a child, even one that just started."""
    from twisted.internet import reactor

    held = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    worker = ProcessWorker(reactor, "test")
    worker.start()
    child = worker.pid
    assert child is not None
    for _ in range(2):
        for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(child, ending)
        assert await worker.run(os.getpid) == child
    assert await worker.run(partial(signal.pthread_sigmask, signal.SIG_BLOCK, ())) == held
    assert await worker.run(os.getpid) == child
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == held
    await worker.stop()
    assert not logged_failures


@pytest_twisted.ensureDeferred
async def test_a_killed_child_fails_what_was_under_way_and_is_replaced(
    worker: ProcessWorker, logged_failures: list[LogEvent]
) -> None:
    """Running calls fail with `StoreUnavailable` when the child dies. Later calls work."""
    child = await worker.run(os.getpid)
    with pytest.raises(StoreUnavailable):
        await worker.run(partial(os.kill, child, signal.SIGKILL))
    assert await worker.run(os.getpid) != child


HANG_UP = "import os, signal; os.close(0); os.close(1); signal.pause()"
"""Closes the pipes of the child, as its end does, before the parent learns of the end."""


@pytest_twisted.ensureDeferred
async def test_a_child_that_is_dying(
    worker: ProcessWorker, logged_failures: list[LogEvent]
) -> None:
    """A call between the end of the pipes and the end of the child fails like those before it."""
    child = await worker.run(os.getpid)
    hanging = worker.run(partial(exec, HANG_UP))
    while not (failed := worker.run(int)).called:
        await pause()
    with pytest.raises(WorkerDied):
        await failed
    os.kill(child, signal.SIGKILL)
    with pytest.raises(WorkerDied):
        await hanging
    assert await worker.run(os.getpid) != child


@pytest_twisted.ensureDeferred
async def test_a_death_is_reported_until_a_successor_answers(
    worker: ProcessWorker, logged_failures: list[LogEvent]
) -> None:
    """A ping restarts a dead child. After two deaths in a row, the worker reports a problem."""
    assert (worker.subject, worker.problem, worker.can_work) == ("test process", "", True)
    for is_able in (True, False):
        with pytest.raises(WorkerDied):
            await worker.run(partial(signal.raise_signal, signal.SIGKILL))
        assert worker.problem == "it has died: signal 9"
        assert worker.can_work is is_able
    worker.ping()
    while worker.problem:
        await pause()
    assert worker.can_work
    with pytest.raises(WorkerDied):
        await worker.run(partial(os._exit, 0))
    assert worker.problem.endswith("died: exit status 0")


@pytest_twisted.ensureDeferred
async def test_a_child_that_was_not_prepared(logged_failures: list[LogEvent]) -> None:
    """A failed preparation of the child is reported until a child was prepared."""
    from twisted.internet import reactor

    path = Path(os.devnull) / "none"
    worker = ProcessWorker(reactor, "test", None, partial(os.stat, path))
    worker.ping()
    assert worker.problem == ""  # not started yet, so not missing
    assert await worker.run(partial(int, "7")) == 7
    assert worker.problem == "it was not prepared: the log has the cause"
    assert not worker.can_work
    await worker.stop()
    assert len(logged_failures) == 1


@pytest_twisted.ensureDeferred
async def test_the_end_of_the_daemon_is_no_death(logged_failures: list[LogEvent]) -> None:
    """A stopped child is not reported as dead."""
    from twisted.internet import reactor

    worker = ProcessWorker(reactor, "test")
    await worker.run(int)
    await worker.stop()
    worker.ping()
    assert (worker.problem, logged_failures) == ("", [])


@pytest_twisted.ensureDeferred
async def test_a_stopped_worker_takes_no_calls() -> None:
    """After the stop, calls fail at once and the child is gone."""
    from twisted.internet import reactor

    worker = ProcessWorker(reactor, "test")
    child = await worker.run(os.getpid)
    await worker.stop()
    with pytest.raises(StoreUnavailable):
        await worker.run(os.getpid)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest_twisted.ensureDeferred
async def test_a_worker_that_was_never_used_is_stopped_at_once() -> None:
    """A worker that was not used is stopped without starting a child."""
    from twisted.internet import reactor

    worker = ProcessWorker(reactor, "test")
    await worker.stop()
    with pytest.raises(StoreUnavailable):
        await worker.run(os.getpid)


def test_every_expected_failure_survives_the_way_between_processes() -> None:
    """An expected failure keeps its class, message and attributes."""
    failure = InvalidParameter("timeout", "timeout is seconds")
    copy = pickle.loads(pickle.dumps(failure))
    assert (type(copy), str(copy), copy.name) == (InvalidParameter, str(failure), "timeout")


def test_a_write_is_pickled_as_its_name() -> None:
    """Each write is pickled by name, and can be found without a database engine."""
    for module in WRITES:
        import_module(module)
    writes = [
        (store, one)
        for store in Store.__subclasses__()
        for one in vars(store).values()
        if isinstance(one, write)
    ]
    assert len(writes) > 50
    for store, one in writes:
        work, copy = pickle.loads(pickle.dumps((one, object.__new__(store))))
        assert work is one
        assert type(copy) is store
        assert not vars(copy)


@pytest_twisted.ensureDeferred
async def test_a_child_that_does_not_answer_is_replaced(logged_failures: list[LogEvent]) -> None:
    """A child that is stopped by a signal, busy or idle, is killed after the timeout."""
    clock = SteppedReactor()
    worker = ProcessWorker(clock, "test", longest=6)
    for ask in (worker.run, lambda _: worker.ping()):
        child = await worker.run(os.getpid)
        clock.pump([1] * 6)
        assert worker.silence == 0
        os.kill(child, signal.SIGSTOP)
        asked = ask(os.getpid)
        clock.pump([1] * 5)
        assert worker.silence == 5
        clock.advance(1)
        if asked is not None:
            with pytest.raises(WorkerDied):
                await asked
        while worker.silence:
            await pause()
        assert await worker.run(os.getpid) != child
    os.kill(await worker.run(os.getpid), signal.SIGSTOP)
    stopped = worker.stop()
    clock.advance(12)
    await stopped


@pytest_twisted.ensureDeferred
async def test_a_blocked_daemon_reads_results_first() -> None:
    """A daemon that was blocked reads the results of its children before it kills one."""
    clock = SteppedReactor()
    worker = ProcessWorker(clock, "test", longest=6)
    child = await worker.run(os.getpid)
    clock.advance(60)
    asked = worker.run(os.getpid)
    clock.rightNow += 60
    assert worker.silence == LOOK
    clock.advance(0)
    assert worker.silence == LOOK
    assert await asked == child
    await worker.stop()


@pytest_twisted.ensureDeferred
async def test_a_child_that_cannot_be_killed(logged_failures: list[LogEvent]) -> None:
    """Its calls fail with an unknown outcome, and the next call is answered."""
    clock = SteppedReactor()
    worker = ProcessWorker(clock, "test", longest=6)
    child = await worker.run(os.getpid)
    os.kill(child, signal.SIGSTOP)
    worker.kill = worker._child.kill = lambda: None  # type: ignore[method-assign, union-attr]
    asked = worker.run(os.getpid)
    clock.pump([1] * 6)
    clock.advance(LAST_GRACE)
    with pytest.raises(StoreUnavailable, match="does not end") as caught:
        await asked
    assert not isinstance(caught.value, WorkerDied)
    assert await worker.run(os.getpid) != child
    os.kill(child, signal.SIGKILL)
    await worker.stop()


async def pause() -> None:
    """Run the reactor for a while."""
    from twisted.internet import reactor

    await deferLater(reactor, 0.01)
