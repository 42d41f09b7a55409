"""Readiness is checked by a write to the store and by pings of the workers."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.memory.instruments import Conditions
from mailcheck.engines.database import DatabaseEngine
from mailcheck.engines.postgresql import PostgresqlEngine
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.ops.heartbeat import INTERVAL, LONGEST_SILENCE, NOT_MADE, NOT_THERE, Heartbeat
from mailcheck.ports.engine import Transaction
from mailcheck.workers.scheduling import DirectWorker
from tests.house import result_of, run


class Worker:
    """A child process."""

    def __init__(self, subject: str = "content process") -> None:
        self.subject = subject
        self.silence = 0.0
        self.problem = ""
        self.can_work = True
        self.pings = 0

    def ping(self) -> None:
        """Count the ping."""
        self.pings += 1


class Store:
    """A store whose writes are completed by the test."""

    def __init__(self) -> None:
        self.beats: list[Deferred[None]] = []

    def beat(self) -> Deferred[None]:
        """Start a write."""
        self.beats.append(Deferred())
        return self.beats[-1]

    def freeable(self) -> Deferred[dict[str, int]]:
        """Return what would free space."""
        return succeed({"deleting all mail": 7})


def test_a_write_without_an_answer() -> None:
    """A write without an answer after one interval is a problem of the store."""
    clock, store = Clock(), Store()
    heartbeat = Heartbeat(Conditions(), store, [], clock)
    run(heartbeat.look())
    assert heartbeat.state == (True, {}, {})
    clock.advance(INTERVAL)
    run(heartbeat.look())
    assert heartbeat.state == (False, {"store": "it has not taken a write for 5 s"}, {})
    assert len(store.beats) == 1
    store.beats[0].errback(StoreUnavailable("disk gone"))
    assert heartbeat.state == (False, {"store": "disk gone"}, {})
    run(heartbeat.look())
    store.beats[1].callback(None)
    assert heartbeat.state == (True, {}, {})


def test_a_child_without_an_answer() -> None:
    """Each worker is pinged, and one without an answer for too long is reported."""
    child = Worker()
    store = Store()
    heartbeat = Heartbeat(Conditions(), store, [child], Clock())
    for silence, is_ready in ((0.0, True), (LONGEST_SILENCE - 1, True), (LONGEST_SILENCE, False)):
        child.silence = silence
        run(heartbeat.look())
        store.beats[-1].callback(None)
        assert heartbeat.state.is_ready is is_ready
    assert heartbeat.state.problems["content process"] == "no answer for 10 s"
    assert child.pings == 3


def test_a_worker_that_has_died() -> None:
    """A death is reported at once. The daemon is not ready without a working worker."""
    content, large, store = Worker(), Worker("large process"), Store()
    conditions = Conditions()
    heartbeat = Heartbeat(conditions, store, [content], Clock(), [large])

    def look() -> None:
        run(heartbeat.look())
        store.beats[-1].callback(None)

    large.silence = 2 * LONGEST_SILENCE
    look()
    assert heartbeat.state == (True, {}, {})
    for worker, is_ready in ((large, True), (content, False)):
        worker.problem = "it has died"
        assert heartbeat.state == (True, {worker.subject: "it has died"}, {})
        look()
        assert conditions.problems[worker.subject] == "it has died"
        worker.can_work = False
        assert heartbeat.state == (is_ready, {worker.subject: "it has died"}, {})
        worker.problem, worker.can_work = "", True
        assert heartbeat.state == (True, {}, {})
        look()
        assert not conditions.problems[worker.subject]


def test_what_is_made_at_the_start() -> None:
    """The daemon is not ready before all parts exist, and reports the missing ones."""
    conditions = Conditions()
    heartbeat = Heartbeat(conditions, Store(), [], Clock())
    assert heartbeat.when_ready().called
    note = heartbeat.wait_for("first account")
    ready = heartbeat.when_ready()
    assert heartbeat.state == (False, {"first account": NOT_THERE}, {})
    assert not conditions.problems
    note("[Errno 13] Permission denied: '/srv/api-key'")
    assert heartbeat.state == (False, {"first account": NOT_MADE}, {})
    assert "/srv/api-key" in conditions.for_operator("first account")
    assert not ready.called
    note("")
    assert ready.called
    assert heartbeat.state == (True, {}, {})


def test_what_frees_a_disk() -> None:
    """If disk space is low, the state says what would free how much."""
    conditions, store = Conditions(), Store()
    heartbeat = Heartbeat(conditions, store, [], Clock())
    for problem, frees in (("full", {"deleting all mail": 7}), ("", {})):
        conditions.set("disk", problem)
        run(heartbeat.look())
        store.beats[-1].callback(None)
        assert heartbeat.state.is_ready
        assert heartbeat.state.frees == frees


@pytest.fixture(params=["sqlite", "postgresql"])
def make_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], DatabaseEngine]:
    """Create an engine of each kind."""
    if request.param == "sqlite":
        return lambda: SqliteEngine(str(tmp_path / "mail.db"), DirectWorker(), DirectWorker())
    url = request.getfixturevalue("postgresql_url")
    return lambda: PostgresqlEngine(url, DirectWorker(), DirectWorker())


def test_a_beat_writes(make_engine: Callable[[], DatabaseEngine], tmp_path: Path) -> None:
    """The write of the heartbeat reaches the disk and changes no data."""
    engine = make_engine()
    engine.open()
    log = tmp_path / "mail.db-wal"
    before = log.stat().st_size if log.exists() else 0
    result_of(engine.beat())
    assert result_of(engine.freeable())["deleting all mail"] == 0
    if log.exists():
        assert log.stat().st_size > before
    else:
        # A transaction without changes has no number on the server.
        assert result_of(engine.write(_number_of_touched, None)) is not None
    result_of(engine.close())


def _number_of_touched(transaction: Transaction, items: Sequence[None]) -> list[str | None]:
    transaction.touch()
    ((number,),) = transaction.rows("SELECT CAST(pg_current_xact_id_if_assigned() AS TEXT)")
    return [number] * len(items)
