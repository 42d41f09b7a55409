"""A worker that is a process: calls go in, answers come back, and a death is survived."""

import os
import pickle
import signal
from collections.abc import AsyncIterator
from functools import partial
from threading import Lock

import pytest
import pytest_twisted
from twisted.internet.defer import gatherResults
from twisted.logger import LogEvent

from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.errors import InvalidParameter, StoreUnavailable
from mailcheck.storage.mail_store import _delete_message
from mailcheck.workers.process import ProcessWorker


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
    """Each call is answered with what it gives, from one process that is not ours."""
    answers = await gatherResults([worker.run(os.getpid), worker.run(os.getpid)])
    assert answers[0] == answers[1] != os.getpid()


@pytest_twisted.ensureDeferred
async def test_large_calls_and_answers_arrive_whole(worker: ProcessWorker) -> None:
    """A mail of 25 MiB goes there and back unchanged."""
    raw = os.urandom(1024) * 25 * 1024
    assert await worker.run(partial(bytes, raw)) == raw


@pytest_twisted.ensureDeferred
async def test_calls_that_the_pipe_does_not_take_at_once_keep_their_order(
    worker: ProcessWorker,
) -> None:
    """Small calls behind large ones, and large ones behind small ones, are answered in order."""
    sizes = [10, 400_000, 10, 10, 90_000, 70_000, 10] * 4
    for _ in range(2):  # the second time with an empty pipe again
        calls = [worker.run(partial(bytes.upper, b"a" * size)) for size in sizes]
        assert [len(answer) for answer in await gatherResults(calls)] == sizes


@pytest_twisted.ensureDeferred
async def test_an_exception_of_the_call_is_the_exception_of_the_answer(
    worker: ProcessWorker,
) -> None:
    """What the call raises arrives as itself, and the child goes on."""
    with pytest.raises(ValueError, match="no @ in the address"):
        await worker.run(partial(parse_mailbox, "nonsense"))
    assert await worker.run(partial(int, "7")) == 7


@pytest_twisted.ensureDeferred
async def test_an_answer_that_cannot_be_sent_is_an_error(worker: ProcessWorker) -> None:
    """An answer that can't be pickled fails its own call only."""
    with pytest.raises(RuntimeError, match="can't be sent"):
        await worker.run(Lock)
    assert await worker.run(partial(int, "7")) == 7


@pytest_twisted.ensureDeferred
async def test_a_killed_child_fails_what_was_under_way_and_is_replaced(
    worker: ProcessWorker, logged_failures: list[LogEvent]
) -> None:
    """Calls that a dying child leaves unanswered fail as a store that is away; later ones work."""
    child = await worker.run(os.getpid)
    with pytest.raises(StoreUnavailable):
        await worker.run(partial(os.kill, child, signal.SIGKILL))
    assert await worker.run(os.getpid) != child


@pytest_twisted.ensureDeferred
async def test_a_stopped_worker_takes_no_calls() -> None:
    """After the stop a call fails at once, and the child is gone."""
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
    """No child is started only to be ended."""
    from twisted.internet import reactor

    worker = ProcessWorker(reactor, "test")
    await worker.stop()
    with pytest.raises(StoreUnavailable):
        await worker.run(os.getpid)


def test_every_expected_failure_survives_the_way_between_processes() -> None:
    """Its class, its sentence and its facts are the same on the other side."""
    failure = InvalidParameter("timeout", "timeout is seconds")
    copy = pickle.loads(pickle.dumps(failure))
    assert (type(copy), str(copy), copy.name) == (InvalidParameter, str(failure), "timeout")


def test_a_write_is_pickled_as_its_name() -> None:
    """A write that another process runs is found there by its name."""
    assert pickle.loads(pickle.dumps(_delete_message)) is _delete_message
