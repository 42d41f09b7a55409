"""The SQLite engine: durability, readers that never wait, and failures."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from mailcheck.core.errors import StoreUnavailable
from mailcheck.engines.sqlite import IN_MEMORY, SqliteEngine
from mailcheck.engines.sqlite_writer import VACUUM_PAGES, SqliteWriter
from mailcheck.ports.engine import Transaction
from mailcheck.store.transactions import for_each
from mailcheck.workers.scheduling import DirectWorker
from mailcheck.workers.threads import ThreadWorker
from tests.house import result_of


@for_each
def add_account(transaction: Transaction, name: str) -> str:
    """Insert an account."""
    transaction.execute(
        "INSERT INTO account (id, name, is_operator, created_at) VALUES (?, ?, 0, 0)", (name, name)
    )
    return name


@for_each
def run_script(transaction: Transaction, statements: list[str]) -> None:
    """Run any statements."""
    for statement in statements:
        transaction.execute(statement)


def names(transaction: Transaction) -> list[str]:
    """Return the names of all accounts."""
    return [name for (name,) in transaction.rows("SELECT name FROM account ORDER BY name")]


def direct_engine(path: Path | str) -> SqliteEngine:
    """Return an engine without threads."""
    return SqliteEngine(str(path), DirectWorker(), DirectWorker())


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SqliteEngine]:
    """An engine for a file."""
    engine = direct_engine(tmp_path / "mail.db")
    engine.open()
    yield engine
    result_of(engine.close())


def threaded_engine(path: Path) -> SqliteEngine:
    """Return an engine with threads."""
    from twisted.internet import reactor

    threads: Any = reactor
    return SqliteEngine(
        str(path), ThreadWorker(threads, "writer", 1), ThreadWorker(threads, "reader", 2)
    )


def test_commits_are_durable(tmp_path: Path) -> None:
    """The writer syncs every commit to disk in WAL mode, and enforces foreign keys."""
    writer = SqliteWriter(str(tmp_path / "mail.db"))
    pragmas = [
        writer.connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("synchronous", "journal_mode", "foreign_keys", "auto_vacuum", "secure_delete")
    ]
    assert pragmas == [2, "wal", 1, 2, 2]
    writer.close()


def test_readers_cannot_write(engine: SqliteEngine) -> None:
    """A query cannot change any data."""
    with pytest.raises(StoreUnavailable, match="readonly"):
        result_of(engine.read(lambda t: t.execute("DELETE FROM account")))


def test_a_query_sees_one_snapshot(engine: SqliteEngine) -> None:
    """A write during a query is visible to the next query only."""
    result_of(engine.write(add_account, "ann"))

    def query(transaction: Transaction) -> tuple[list[str], list[str]]:
        before = names(transaction)
        result_of(engine.write(add_account, "bob"))
        return before, names(transaction)

    assert result_of(engine.read(query)) == (["ann"], ["ann"])
    assert result_of(engine.read(names)) == ["ann", "bob"]


def test_a_query_that_fails(engine: SqliteEngine) -> None:
    """A failed query leaves its reader usable."""
    with pytest.raises(ZeroDivisionError):
        result_of(engine.read(lambda t: 1 // 0))
    with pytest.raises(StoreUnavailable):
        result_of(engine.read(lambda t: t.rows("SELECT * FROM nowhere")))
    assert result_of(engine.read(names)) == []


async def test_readers_never_wait_for_the_writer(tmp_path: Path) -> None:
    """A query is answered during the transaction of a write."""
    engine = threaded_engine(tmp_path / "mail.db")
    engine.open()
    await engine.write(add_account, "ann")
    has_begun, may_go_on = threading.Event(), threading.Event()

    @for_each
    def write_slowly(transaction: Transaction, name: str) -> None:
        transaction.execute("UPDATE account SET created_at = 1")
        has_begun.set()
        may_go_on.wait(20)
        transaction.execute("UPDATE account SET name = ?", (name,))

    written = engine.write(write_slowly, "eve")
    assert await engine.read(lambda t: has_begun.wait(20))
    assert await engine.read(names) == ["ann"]
    assert not written.called
    may_go_on.set()
    await written
    assert await engine.read(names) == ["eve"]
    await engine.close()


def test_an_engine_that_is_not_open(tmp_path: Path) -> None:
    """Before it is opened and after it is closed, the engine fails at once."""
    engine = direct_engine(tmp_path / "mail.db")
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=r"not open|closed"):
            result_of(engine.read(names))
        with pytest.raises(StoreUnavailable, match=r"not open|closed"):
            result_of(engine.write(add_account, "ann"))
        engine.open()
        result_of(engine.close())


def test_closing_before_opening(tmp_path: Path) -> None:
    """An engine that was never opened can be closed."""
    assert direct_engine(tmp_path / "mail.db").close().called


async def test_a_reader_of_a_closed_engine(tmp_path: Path) -> None:
    """A reader's thread that runs after the close gets `StoreUnavailable`."""
    engine = threaded_engine(tmp_path / "mail.db")
    engine.open()
    await engine.close()
    failed: Deferred[list[str]] = engine.read(names)
    with pytest.raises(StoreUnavailable):
        await failed


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """Another kind of file, a folder, and a path below a file are rejected."""
    text = tmp_path / "notes.txt"
    text.write_text("no database" * 1000)
    for path in (text, tmp_path, text / "mail.db"):
        with pytest.raises(StoreUnavailable, match="cannot answer"):
            direct_engine(path).open()
    assert text.read_text().startswith("no database")


def test_another_process_holds_the_database(engine: SqliteEngine, tmp_path: Path) -> None:
    """While another process writes, a write times out and reads work; then all works again."""
    result_of(engine.write(add_account, "ann"))
    other = sqlite3.connect(tmp_path / "mail.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer = engine.writer
    assert isinstance(writer, SqliteWriter)
    writer.connection.execute("PRAGMA busy_timeout = 1")
    with pytest.raises(StoreUnavailable, match="locked"):
        result_of(engine.write(add_account, "bob"))
    assert result_of(engine.read(names)) == ["ann"]
    other.execute(
        "INSERT INTO account (id, name, is_operator, created_at) VALUES ('eve', 'eve', 0, 0)"
    )
    other.execute("COMMIT")
    result_of(engine.write(add_account, "bob"))
    assert result_of(engine.read(names)) == ["ann", "bob", "eve"]
    other.close()


def test_a_damaged_database(tmp_path: Path) -> None:
    """A damaged database is `StoreUnavailable` with SQLite's message."""
    path = tmp_path / "mail.db"
    engine = direct_engine(path)
    engine.open()
    result_of(engine.close())
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(bytes(data))
    engine = direct_engine(path)
    with pytest.raises(StoreUnavailable, match="malformed"):
        engine.open()
    result_of(engine.close())


def test_free_bytes(tmp_path: Path) -> None:
    """The free space is known for a file, but not for a database in memory."""
    assert (direct_engine(tmp_path / "mail.db").free_bytes() or 0) > 0
    assert direct_engine(IN_MEMORY).free_bytes() is None
    with pytest.raises(StoreUnavailable, match="disk"):
        direct_engine(tmp_path / "none" / "mail.db").free_bytes()


def test_space_goes_back_to_the_disk(engine: SqliteEngine, tmp_path: Path) -> None:
    """Freed space is returned to the disk in pieces until none is left."""
    fill = "INSERT INTO filler VALUES (zeroblob(4000000))"
    result_of(
        engine.write(
            run_script, ["CREATE TABLE filler (data)"] + [fill] * 4 + ["DELETE FROM filler"]
        )
    )

    def pages(transaction: Transaction) -> tuple[int, int]:
        (total,), (free,) = (
            transaction.rows(f"PRAGMA {name}")[0] for name in ("page_count", "freelist_count")
        )
        return total, free

    total, free = result_of(engine.read(pages))
    assert free > VACUUM_PAGES
    result_of(engine.reclaim_space())
    total_then, free_then = result_of(engine.read(pages))
    assert free_then == free - VACUUM_PAGES
    assert total_then <= total - VACUUM_PAGES
    while result_of(engine.read(pages))[1]:
        result_of(engine.reclaim_space())
    result_of(engine.reclaim_space())
    assert result_of(engine.read(pages))[0] <= total - free


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 9_000])
def test_inserting_many_rows(engine: SqliteEngine, count: int) -> None:
    """Any number of rows is inserted, although a statement has a maximum of parameters."""

    @for_each
    def insert(transaction: Transaction, rows: list[tuple[str, str, int, int]]) -> None:
        transaction.insert("account (id, name, is_operator, created_at)", rows)

    assert isinstance(engine.writer, SqliteWriter)
    most = 32_766  # SQLite's default
    engine.writer.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, most)
    rows = [(f"{number:04}", f"{number:04}", 0, 0) for number in range(count)]
    result_of(engine.write(insert, rows))
    assert result_of(engine.read(names)) == [name for _, name, _, _ in rows]
