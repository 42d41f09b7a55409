"""Group commit: waiting writes share a commit, and failing ones do not affect the others."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailcheck.core.errors import AccountNameTaken, ExpectedFailure, StoreUnavailable
from mailcheck.engines.committing import Outcome, Write, commit_group
from mailcheck.engines.database import MAX_GROUP, GroupCommit
from mailcheck.engines.sqlite_writer import SqliteWriter
from mailcheck.ports.engine import Transaction
from mailcheck.store.transactions import for_each
from tests.house import result_of


class HeldCommits:
    """Holds commits until the test ends them, as a disk would."""

    def __init__(self) -> None:
        self.groups: list[list[object]] = []
        self._ends: list[Deferred[list[Outcome]]] = []

    def __call__(self, group: Sequence[Write]) -> Deferred[list[Outcome]]:
        """Begin a commit."""
        self.groups.append([write.item for write in group])
        self._ends.append(Deferred())
        return self._ends[-1]

    def end(self, outcomes: list[Outcome] | Exception | None = None) -> None:
        """End the oldest pending commit; by default each item is its own result."""
        done = self._ends.pop(0)
        if isinstance(outcomes, Exception):
            done.errback(Failure(outcomes))
        else:
            done.callback(outcomes or self.groups[-1 - len(self._ends)])


@for_each
def nothing(transaction: Transaction, item: object) -> None:
    """Write without effect."""


def failure_of(deferred: "Deferred[Any]") -> BaseException:
    """Return the exception of a failed Deferred."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any exception
        result_of(deferred)
    return caught.value


@pytest.fixture
def commits() -> HeldCommits:
    """Return commits that are held."""
    return HeldCommits()


@pytest.fixture
def group_commit(commits: HeldCommits) -> GroupCommit:
    """Return a group commit over the held commits."""
    return GroupCommit(commits)


def test_a_single_write_is_committed_at_once(commits: HeldCommits) -> None:
    """An idle store commits a write without waiting for others."""
    written = GroupCommit(commits).submit(nothing, 1)
    assert commits.groups == [[1]]
    assert not written.called
    commits.end()
    assert result_of(written) == 1


def test_waiting_writes_share_a_commit(commits: HeldCommits, group_commit: GroupCommit) -> None:
    """While two groups are in the writer, further writes are committed together, in order."""
    written = [group_commit.submit(nothing, number) for number in range(5)]
    assert commits.groups == [[0], [1]]
    commits.end()
    assert commits.groups == [[0], [1], [2, 3, 4]]
    assert [one.called for one in written] == [True, False, False, False, False]
    commits.end()
    assert [one.called for one in written] == [True, True, False, False, False]
    commits.end()
    assert [result_of(one) for one in written] == [0, 1, 2, 3, 4]


def test_writes_of_one_iteration_share_a_commit(commits: HeldCommits) -> None:
    """All writes of one iteration of the reactor share a commit."""
    later: list[Callable[[], object]] = []
    group_commit = GroupCommit(commits, later.append)
    written = [group_commit.submit(nothing, number) for number in range(3)]
    assert commits.groups == []
    assert len(later) == 1
    later.pop()()
    assert commits.groups == [[0, 1, 2]]
    written.append(group_commit.submit(nothing, 3))
    assert len(later) == 1
    commits.end()
    written.append(group_commit.submit(nothing, 4))
    assert commits.groups == [[0, 1, 2]]
    later.pop()()
    assert commits.groups == [[0, 1, 2], [3, 4]]
    commits.end()
    assert [result_of(one) for one in written] == [0, 1, 2, 3, 4]


def test_closing_while_writes_are_collected(commits: HeldCommits) -> None:
    """A store that closes commits the writes that it was collecting."""
    later: list[Callable[[], object]] = []
    group_commit = GroupCommit(commits, later.append)
    written = group_commit.submit(nothing, 1)
    closed = group_commit.close()
    assert commits.groups == [[1]]
    assert not closed.called
    later.pop()()
    commits.end()
    assert (result_of(written), closed.called) == (1, True)


def test_no_smaller_group_beside_another(commits: HeldCommits) -> None:
    """A second group starts when at least as many writes wait as the first one has."""
    later: list[Callable[[], object]] = []
    group_commit = GroupCommit(commits, later.append)
    written = [group_commit.submit(nothing, number) for number in range(3)]
    later.pop()()
    for number in range(3, 6):
        assert commits.groups == [[0, 1, 2]]
        written.append(group_commit.submit(nothing, number))
        later.pop()()
    assert commits.groups == [[0, 1, 2], [3, 4, 5]]
    commits.end()
    commits.end()
    assert [result_of(one) for one in written] == list(range(6))


def test_groups_are_bounded(commits: HeldCommits, group_commit: GroupCommit) -> None:
    """No group exceeds the maximum; the other writes wait for the next group."""
    written = [group_commit.submit(nothing, number) for number in range(2 * MAX_GROUP)]
    for _ in range(4):
        commits.end()
    assert [len(group) for group in commits.groups] == [1, 1, MAX_GROUP, MAX_GROUP - 2]
    assert [result_of(one) for one in written] == list(range(2 * MAX_GROUP))


def test_the_next_commit_begins_before_the_callbacks(
    commits: HeldCommits, group_commit: GroupCommit
) -> None:
    """The disk works while replies are written."""
    seen: list[int] = []
    group_commit.submit(nothing, 1).addCallback(lambda _: seen.append(len(commits.groups)))
    group_commit.submit(nothing, 2)
    group_commit.submit(nothing, 3)
    commits.end()
    assert seen == [3]
    commits.end()
    commits.end()


def test_a_write_in_a_callback(commits: HeldCommits, group_commit: GroupCommit) -> None:
    """A callback may write again."""
    again: list[Deferred[object]] = []
    group_commit.submit(nothing, 1).addCallback(
        lambda _: again.append(group_commit.submit(nothing, 2))
    )
    commits.end()
    assert commits.groups == [[1], [2]]
    commits.end()
    assert result_of(again[0]) == 2


def test_failures_reach_their_own_write(commits: HeldCommits, group_commit: GroupCommit) -> None:
    """An expected or unexpected failure only fails the write that it belongs to."""
    written = [group_commit.submit(nothing, number) for number in range(5)]
    commits.end()
    commits.end()
    commits.end([AccountNameTaken("taken"), Failure(ZeroDivisionError()), 4])
    assert isinstance(failure_of(written[2]), AccountNameTaken)
    assert isinstance(failure_of(written[3]), ZeroDivisionError)
    assert [result_of(one) for one in (written[0], written[1], written[4])] == [0, 1, 4]


def test_a_commit_that_fails(commits: HeldCommits, group_commit: GroupCommit) -> None:
    """A failed commit fails all its writes and no others, and the store continues."""
    written = [group_commit.submit(nothing, number) for number in range(4)]
    commits.end()
    later = group_commit.submit(nothing, 4)
    commits.end()
    commits.end(StoreUnavailable("the disk is full"))
    assert [type(failure_of(one)) for one in written[2:]] == [StoreUnavailable] * 2
    assert [result_of(one) for one in written[:2]] == [0, 1]
    assert commits.groups[-1] == [4]
    commits.end()
    assert result_of(later) == 4


def test_a_commit_that_cannot_begin() -> None:
    """A commit that cannot begin fails its writes without raising, and the store continues."""

    def refuse(group: Sequence[Write]) -> Deferred[list[Outcome]]:
        raise StoreUnavailable("the database is not open")

    group_commit = GroupCommit(refuse)
    for _ in range(2):
        assert isinstance(failure_of(group_commit.submit(nothing, 1)), StoreUnavailable)


def test_a_cancelled_write(commits: HeldCommits, group_commit: GroupCommit) -> None:
    """Cancelling a write affects neither other writes nor the write itself."""
    written = [group_commit.submit(nothing, number) for number in range(4)]
    failures: list[Failure] = []
    written[2].addErrback(failures.append)
    written[2].cancel()
    commits.end()
    assert commits.groups[2] == [2, 3]
    commits.end()
    commits.end()
    assert result_of(written[3]) == 3
    assert len(failures) == 1


def test_closing_finishes_submitted_writes(commits: HeldCommits, group_commit: GroupCommit) -> None:
    """A store that is closed commits all submitted writes and accepts no more."""
    written = [group_commit.submit(nothing, number) for number in range(4)]
    closed = group_commit.close()
    late = group_commit.submit(nothing, 9)
    assert isinstance(failure_of(late), StoreUnavailable)
    for _ in range(3):
        assert not closed.called
        commits.end()
    assert [result_of(one) for one in written] == [0, 1, 2, 3]
    assert closed.called
    assert commits.groups == [[0], [1], [2, 3]]


def test_closing_an_idle_store() -> None:
    """An idle store closes at once; closing it again is harmless."""
    group_commit = GroupCommit(HeldCommits())
    assert group_commit.close().called
    assert group_commit.close().called


@pytest.fixture
def writer(tmp_path: Path) -> "SqliteWriter":
    """A writer for a file with one table of numbers."""
    writer = SqliteWriter(str(tmp_path / "numbers.db"))
    writer.connection.execute("CREATE TABLE number (value INTEGER PRIMARY KEY)")
    return writer


@for_each
def insert(transaction: Transaction, item: int) -> int:
    """Insert a number and its negative."""
    transaction.execute("INSERT INTO number VALUES (?)", (item,))
    if item % 7 == 3:
        raise ZeroDivisionError(item)
    if item % 7 == 5:
        transaction.execute("INSERT INTO number VALUES (?)", (item,))  # taken: IntegrityError
    transaction.execute("INSERT INTO number VALUES (?)", (-item,))
    return item


@for_each
def insert_elsewhere(transaction: Transaction, item: int) -> int | ExpectedFailure:
    """Insert another number, or return an expected failure."""
    if item % 7 == 4:
        return AccountNameTaken(str(item))
    transaction.execute("INSERT INTO number VALUES (?)", (1_000 + item,))
    return item


def numbers(connection: sqlite3.Connection) -> set[int]:
    """Return the stored numbers."""
    return {value for (value,) in connection.execute("SELECT value FROM number")}


@given(
    st.lists(
        st.tuples(st.sampled_from([insert, insert_elsewhere]), st.integers(1, 40)),
        unique_by=lambda one: (id(one[0]), one[1]),
    )
)
def test_failing_work_is_rolled_back_alone(writes: list[tuple[for_each[int, int], int]]) -> None:
    """In a group, failing work leaves no rows, and all other rows are stored."""
    writer = SqliteWriter(":memory:")
    writer.connection.execute("CREATE TABLE number (value INTEGER PRIMARY KEY)")
    outcomes = commit_group(writer, [Write(work, item) for work, item in writes])
    expected = set()
    for (work, item), outcome in zip(writes, outcomes, strict=True):
        if work is insert and item % 7 in (3, 5):
            kind = ZeroDivisionError if item % 7 == 3 else sqlite3.IntegrityError
            assert isinstance(outcome, Failure)
            assert outcome.check(kind)
        elif work is insert_elsewhere and item % 7 == 4:
            assert isinstance(outcome, AccountNameTaken)
        else:
            assert outcome == item
            expected |= {item, -item} if work is insert else {1_000 + item}
    assert numbers(writer.connection) == expected
    assert not writer.connection.in_transaction
    writer.close()


def test_a_database_that_aborts_the_transaction(writer: SqliteWriter) -> None:
    """If the database aborts the whole transaction, no write of the group succeeds.

    SQLite does so when the disk is full. A savepoint would then begin a transaction of its own and
    commit a part.
    """

    @for_each
    def give_up(transaction: Transaction, item: int) -> int:
        if item == 2:
            transaction.execute("ROLLBACK")
            raise sqlite3.OperationalError("database or disk is full")
        transaction.execute("INSERT INTO number VALUES (?)", (item,))
        return item

    with pytest.raises(StoreUnavailable, match="disk is full"):
        commit_group(writer, [Write(give_up, number) for number in (1, 2, 3)])
    assert numbers(writer.connection) == set()
    assert commit_group(writer, [Write(give_up, 4)]) == [4]
    assert numbers(writer.connection) == {4}
    writer.close()


def test_a_full_disk(writer: SqliteWriter) -> None:
    """A full disk is reported, the group is rolled back, and the store works again with room."""
    connection = writer.connection
    connection.execute("CREATE TABLE blob (data BLOB)")
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 20}")

    @for_each
    def insert_blob(transaction: Transaction, size: int) -> int:
        transaction.execute("INSERT INTO blob VALUES (?)", (bytes(size),))
        return size

    with pytest.raises(StoreUnavailable, match="disk is full"):
        commit_group(writer, [Write(insert_blob, size) for size in (10, 10**6, 20)])
    assert connection.execute("SELECT COUNT(*) FROM blob").fetchone() == (0,)
    assert not connection.in_transaction
    connection.execute("PRAGMA max_page_count = 1000000")
    assert commit_group(writer, [Write(insert_blob, 10**6)]) == [10**6]
    writer.close()


def test_a_locked_database(writer: SqliteWriter, tmp_path: Path) -> None:
    """A database locked by another process is `StoreUnavailable` until it is released."""
    other = sqlite3.connect(tmp_path / "numbers.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer.connection.execute("PRAGMA busy_timeout = 1")
    with pytest.raises(StoreUnavailable, match="locked"):
        commit_group(writer, [Write(insert, 1), Write(insert, 2)])
    other.execute("ROLLBACK")
    assert commit_group(writer, [Write(insert, 1), Write(insert, 2)]) == [1, 2]
    other.close()
    writer.close()
