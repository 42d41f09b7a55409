"""Group commit: what waits together is committed together, and falls alone."""

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
    """Holds commits until the test lets one end, as a disk would."""

    def __init__(self) -> None:
        self.groups: list[list[object]] = []
        self._ends: list[Deferred[list[Outcome]]] = []

    def __call__(self, group: Sequence[Write]) -> Deferred[list[Outcome]]:
        """Begin a commit."""
        self.groups.append([write.item for write in group])
        self._ends.append(Deferred())
        return self._ends[-1]

    def end(self, outcomes: list[Outcome] | Exception | None = None) -> None:
        """End the oldest commit under way; each item is its own result."""
        done = self._ends.pop(0)
        if isinstance(outcomes, Exception):
            done.errback(Failure(outcomes))
        else:
            done.callback(outcomes or self.groups[-1 - len(self._ends)])


@for_each
def nothing(transaction: Transaction, item: object) -> None:
    """Write nothing."""


def failure_of(deferred: "Deferred[Any]") -> BaseException:
    """Give the exception of a Deferred that has failed."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
        result_of(deferred)
    return caught.value


def test_a_lone_write_is_committed_at_once() -> None:
    """An idle store commits a write without waiting for company."""
    commits = HeldCommits()
    written = GroupCommit(commits).submit(nothing, 1)
    assert commits.groups == [[1]]
    assert not written.called
    commits.end()
    assert result_of(written) == 1


def test_writes_that_wait_share_a_commit() -> None:
    """Two groups are with the writer; what is given meanwhile is committed together, in order."""
    commits = HeldCommits()
    group_commit = GroupCommit(commits)
    written = [group_commit.submit(nothing, number) for number in range(5)]
    assert commits.groups == [[0], [1]]
    commits.end()
    assert commits.groups == [[0], [1], [2, 3, 4]]
    assert [one.called for one in written] == [True, False, False, False, False]
    commits.end()
    assert [one.called for one in written] == [True, True, False, False, False]
    commits.end()
    assert [result_of(one) for one in written] == [0, 1, 2, 3, 4]


def test_what_comes_at_once_is_gathered() -> None:
    """All that is given before the reactor has looked at everything shares a commit."""
    commits = HeldCommits()
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


def test_closing_while_writes_are_gathered() -> None:
    """A store that closes commits what it was gathering."""
    commits = HeldCommits()
    later: list[Callable[[], object]] = []
    group_commit = GroupCommit(commits, later.append)
    written = group_commit.submit(nothing, 1)
    closed = group_commit.close()
    assert commits.groups == [[1]]
    assert not closed.called
    later.pop()()
    commits.end()
    assert (result_of(written), closed.called) == (1, True)


def test_no_smaller_group_beside_another() -> None:
    """A second group goes to the writer once as many wait as are in the one that it has."""
    commits = HeldCommits()
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


def test_groups_are_bounded() -> None:
    """No group is larger than the bound; the rest waits for the next."""
    commits = HeldCommits()
    group_commit = GroupCommit(commits)
    written = [group_commit.submit(nothing, number) for number in range(2 * MAX_GROUP)]
    for _ in range(4):
        commits.end()
    assert [len(group) for group in commits.groups] == [1, 1, MAX_GROUP, MAX_GROUP - 2]
    assert [result_of(one) for one in written] == list(range(2 * MAX_GROUP))


def test_the_next_commit_begins_before_anyone_hears_of_the_last() -> None:
    """The disk works while replies are written."""
    commits = HeldCommits()
    group_commit = GroupCommit(commits)
    seen: list[int] = []
    group_commit.submit(nothing, 1).addCallback(lambda _: seen.append(len(commits.groups)))
    group_commit.submit(nothing, 2)
    group_commit.submit(nothing, 3)
    commits.end()
    assert seen == [3]
    commits.end()
    commits.end()


def test_a_write_from_within_an_answer() -> None:
    """Who writes again as soon as its write is there is served as well."""
    commits = HeldCommits()
    group_commit = GroupCommit(commits)
    again: list[Deferred[object]] = []
    group_commit.submit(nothing, 1).addCallback(
        lambda _: again.append(group_commit.submit(nothing, 2))
    )
    commits.end()
    assert commits.groups == [[1], [2]]
    commits.end()
    assert result_of(again[0]) == 2


def test_expected_failures_are_told_to_their_own() -> None:
    """An expected failure, or one that is not, goes to the write that it belongs to."""
    commits = HeldCommits()
    group_commit = GroupCommit(commits)
    written = [group_commit.submit(nothing, number) for number in range(5)]
    commits.end()
    commits.end()
    commits.end([AccountNameTaken("taken"), Failure(ZeroDivisionError()), 4])
    assert isinstance(failure_of(written[2]), AccountNameTaken)
    assert isinstance(failure_of(written[3]), ZeroDivisionError)
    assert [result_of(one) for one in (written[0], written[1], written[4])] == [0, 1, 4]


def test_a_commit_that_fails() -> None:
    """A commit that fails fails all its writes and no others, and the store goes on."""
    commits = HeldCommits()
    group_commit = GroupCommit(commits)
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


def test_a_commit_that_can_not_begin() -> None:
    """A store that can't even begin fails the write instead of raising, and is not stuck."""

    def refuse(group: Sequence[Write]) -> Deferred[list[Outcome]]:
        raise StoreUnavailable("the database is not open")

    group_commit = GroupCommit(refuse)
    for _ in range(2):
        assert isinstance(failure_of(group_commit.submit(nothing, 1)), StoreUnavailable)


def test_a_writer_that_has_gone() -> None:
    """Who cancels its write leaves its neighbours, and the write, alone."""
    commits = HeldCommits()
    group_commit = GroupCommit(commits)
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


def test_closing_finishes_what_was_given() -> None:
    """A store that is closed commits all it was given and takes no more."""
    commits = HeldCommits()
    group_commit = GroupCommit(commits)
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
    """An idle store is closed at once, and once more without harm."""
    group_commit = GroupCommit(HeldCommits())
    assert group_commit.close().called
    assert group_commit.close().called


@pytest.fixture
def writer(tmp_path: Path) -> "SqliteWriter":
    """A writer on a file with one table of numbers."""
    writer = SqliteWriter(str(tmp_path / "numbers.db"))
    writer.connection.execute("CREATE TABLE number (value INTEGER PRIMARY KEY)")
    return writer


@for_each
def insert(transaction: Transaction, item: int) -> int:
    """Insert a number twice over: itself, and its negative."""
    transaction.execute("INSERT INTO number VALUES (?)", (item,))
    if item % 7 == 3:
        raise ZeroDivisionError(item)
    if item % 7 == 5:
        transaction.execute("INSERT INTO number VALUES (?)", (item,))  # taken: IntegrityError
    transaction.execute("INSERT INTO number VALUES (?)", (-item,))
    return item


@for_each
def insert_elsewhere(transaction: Transaction, item: int) -> int | ExpectedFailure:
    """Insert another number, or say in advance why not."""
    if item % 7 == 4:
        return AccountNameTaken(str(item))
    transaction.execute("INSERT INTO number VALUES (?)", (1_000 + item,))
    return item


def numbers(connection: sqlite3.Connection) -> set[int]:
    """Give the numbers that are stored."""
    return {value for (value,) in connection.execute("SELECT value FROM number")}


@given(
    st.lists(
        st.tuples(st.sampled_from([insert, insert_elsewhere]), st.integers(1, 40)),
        unique_by=lambda one: (id(one[0]), one[1]),
    )
)
def test_work_that_fails_is_undone_alone(writes: list[tuple[for_each[int, int], int]]) -> None:
    """Of a group, what fails leaves nothing behind and all else is there."""
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


def test_a_database_that_gives_the_transaction_up(writer: SqliteWriter) -> None:
    """Where the database gave the whole transaction up, no write of the group is said to be there.

    SQLite does so when the disk is full; a savepoint would then begin a
    transaction of its own and commit a part.
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
    """A full disk is named, nothing of the group stays, and the store works when there is room."""
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
    """A database that another process holds is `StoreUnavailable`, and works when it is let go."""
    other = sqlite3.connect(tmp_path / "numbers.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer.connection.execute("PRAGMA busy_timeout = 1")
    with pytest.raises(StoreUnavailable, match="locked"):
        commit_group(writer, [Write(insert, 1), Write(insert, 2)])
    other.execute("ROLLBACK")
    assert commit_group(writer, [Write(insert, 1), Write(insert, 2)]) == [1, 2]
    other.close()
    writer.close()
