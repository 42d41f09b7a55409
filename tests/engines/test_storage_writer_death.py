"""A writer that dies with mails: each sender gets the outcome of its own mail."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from mailcheck.core.accounts import Quota
from mailcheck.core.errors import WorkerDied
from mailcheck.engines.database import MAX_GROUP_OCTETS, DatabaseEngine, GroupCommit
from mailcheck.engines.postgresql import PostgresqlEngine
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.ports.engine import Transaction
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.mail_delivery import DeliverMails
from mailcheck.store.mail_store import MailStore
from mailcheck.store.transactions import for_each
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import account, delivery, noted, recipient
from tests.engines.test_storage_group_commit import HeldCommits
from tests.house import result_of

pytestmark = pytest.mark.interop

Result = TypeVar("Result")


class DyingWorker(DirectWorker):
    """A process that dies once, before or after the call that it received."""

    def __init__(self) -> None:
        self.dies: str | None = None

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call, unless it dies before; its answer is lost in both cases."""
        dies, self.dies = self.dies, None
        if dies != "before":
            done = super().run(call)
        if dies is not None:
            return fail(WorkerDied("the writer process has died"))
        return done


class CallSoon:
    """Collects calls until the test runs them."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], object]] = []

    def __call__(self, call: Callable[[], object]) -> None:
        """Store a call."""
        self.calls.append(call)

    def now(self) -> None:
        """Run the stored calls."""
        while self.calls:
            self.calls.pop(0)()


@for_each
def count(transaction: Transaction, item: None) -> int:
    """A write that is not a mail."""
    return 1


@pytest.fixture(params=["sqlite", "postgresql"])
def make_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., DatabaseEngine]:
    """Return an engine of each kind with an empty database."""
    if request.param == "sqlite":
        return lambda *options: SqliteEngine(str(tmp_path / "mail.db"), *options)
    url = request.getfixturevalue("postgresql_url")
    return lambda *options: PostgresqlEngine(url, *options)


@pytest.mark.parametrize("dies", ["before", "after"])
def test_outcomes_of_a_dead_writer(make_engine: Callable[..., DatabaseEngine], dies: str) -> None:
    """Committed mails are accepted with their positions; all others were not stored."""
    worker, soon = DyingWorker(), CallSoon()
    engine = make_engine(worker, DirectWorker(), soon)
    engine.open()
    store = MailStore(engine, Quota(1_000, 10**9))

    def written(*writes: "Deferred[Any]") -> list[Any]:
        """Return the outcomes of writes that share one commit."""
        outcomes: list[Any] = []
        for write in writes:
            write.addBoth(outcomes.append)
        soon.now()
        return [getattr(one, "value", one) for one in outcomes]

    added = [AccountStore(engine).add_account(account(name), noted()) for name in ("ann", "bob")]
    written(*added)
    assert written(store.deliver(delivery(recipient("ann")))) == [(1,)]
    worker.dies = dies
    *mails, other = written(
        store.deliver(delivery(recipient("bob"), recipient("ann", "a"), recipient("ann", "b"))),
        store.deliver(delivery(recipient("ann"))),
        engine.write(count, None),
    )
    if dies == "after":
        assert mails == [(1, 2, 3), (4,)]
    else:
        assert [type(one) for one in mails] == [WorkerDied] * 2
    assert isinstance(other, WorkerDied)
    last = 4 if dies == "after" else 1
    assert written(store.deliver(delivery(recipient("ann")))) == [(last + 1,)]
    result_of(engine.close())


def test_writes_that_no_writer_received() -> None:
    """Writes that waited when the writer died fail at once; those in progress are committed."""
    commits = HeldCommits()
    group_commit = GroupCommit(commits)
    given: list[Deferred[int]] = [group_commit.submit(count, None) for _ in range(2)]
    waiting: Deferred[int] = group_commit.submit(count, None)
    group_commit.give_up(Failure(WorkerDied("died")))
    with pytest.raises(WorkerDied):
        result_of(waiting)
    for _ in given:
        commits.end([1])
    assert [result_of(one) for one in given] == [1, 1]


def test_large_mails_are_committed_apart() -> None:
    """One commit takes mails up to a total size, so that it ends in time on a slow disk."""
    commits = HeldCommits()
    soon = CallSoon()
    group_commit = GroupCommit(commits, soon)
    work = DeliverMails(Quota(1, 1))
    third = MAX_GROUP_OCTETS // 3
    for size in (third, third, third, third, 2 * MAX_GROUP_OCTETS, 10):
        mail = delivery(recipient("ann"), raw=bytes(size))
        group_commit.submit(work, mail)
    soon.now()
    while sum(map(len, commits.groups)) < 6:
        commits.end()
    assert [len(group) for group in commits.groups] == [3, 1, 1, 1]
