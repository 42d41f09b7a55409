"""Copying a SQLite file of a stopped daemon into an empty PostgreSQL database.

The copy is one transaction of the target, and the file is only read. After an interruption the
target is still empty, so the copy can start again.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from graphlib import TopologicalSorter
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from mailcheck.core.errors import ExpectedFailure, StoreFull, StoreUnavailable
from mailcheck.engines.postgresql import PostgresqlPresence
from mailcheck.engines.postgresql import upgrade_schema as upgrade_target
from mailcheck.engines.postgresql_connection import Connection, PostgresqlTransaction
from mailcheck.engines.postgresql_rows import replace_nul
from mailcheck.engines.schema_upgrade import schema_steps, upgrade_schema
from mailcheck.engines.sqlite_writer import as_unavailable, connect
from mailcheck.ports.engine import Row, Transaction, Value

LOCK_TIMEOUT = 1.0
"""Seconds to wait for another program that uses the file, such as a command."""

STEP_TIMEOUT = 3_600.0
"""Timeout of one call to the target in seconds. One commit may contain many gigabytes."""

MAX_ROWS, MAX_OCTETS = 500, 8 * 2**20
"""Maximum number of rows, and of octets, in one batch. A single row may be larger."""

FETCH_ROWS = 2_000
"""Number of digest rows that are read from the target at a time."""

TEXT, BYTES = "TEXT", "BYTEA"
"""Types of the columns that the target hashes. Columns of all other types are numbers."""

ReportProgress = Callable[[str, int, int], None]
"""Receives the progress: the table, the number of copied rows, and the number of all rows."""


class StoreInUse(ExpectedFailure):
    """A daemon or another program uses the file."""


class TargetNotEmpty(ExpectedFailure):
    """The target database is not empty."""


class CopyDiffers(ExpectedFailure):
    """The target's data differs from the source's; the target was rolled back."""


class CopyUndetermined(ExpectedFailure):
    """The answer of the target to the commit was lost."""


class Table(NamedTuple):
    """A table, and the types of its columns in order."""

    name: str
    columns: Mapping[str, str]


class Summary(NamedTuple):
    """The number of rows of a table, and the sum of their digests, which ignores the order."""

    rows: int
    digest: int


def copy_store(
    path: str, url: str, report_progress: ReportProgress, timeout: float = LOCK_TIMEOUT
) -> dict[str, Summary]:
    """Copy everything, compare both sides by counts and digests, and only then commit.

    The file is first upgraded to the newest schema, as at a start of the daemon.

    :param timeout: seconds to wait for a file that another process has locked.
    :return: the copied rows by table.
    :raises StoreUnavailable: one side cannot be opened, read or written, or a daemon uses the
        target.
    :raises SchemaTooNew: a newer mailcheck wrote one side.
    :raises StoreInUse: another process uses the file.
    :raises TargetNotEmpty: the target has data.
    :raises CopyDiffers: the target returns other data.
    :raises CopyUndetermined: the answer of the target to the commit was lost.
    """
    with as_unavailable(), closing(open_exclusively(path, timeout)) as source:
        presence = PostgresqlPresence(url, is_alone=True)
        presence.begin()
        connection = Connection(url, longest_call=STEP_TIMEOUT)
        try:
            upgrade_target(url, schema_steps())
            return _copy(source, connection, report_progress)
        finally:
            connection.close()
            presence.end()


def _copy(
    source: sqlite3.Connection, connection: Connection, report_progress: ReportProgress
) -> dict[str, Summary]:
    tables = list_tables(source)
    target = PostgresqlTransaction(
        connection,
        b"BEGIN; SET LOCAL statement_timeout = 0; "
        b"SET LOCAL idle_in_transaction_session_timeout = 0",
    )
    _require_empty(target, tables)
    copied = {table.name: _copy_table(source, target, table, report_progress) for table in tables}
    for table in tables:
        found, given = summarize_target(target, table), copied[table.name]
        if found != given:
            raise CopyDiffers(
                f"the copy of {table.name} differs ({found.rows} rows instead of {given.rows}): "
                f"the copy was rolled back"
            )
    _commit(target)
    return copied


def open_exclusively(path: str, timeout: float) -> sqlite3.Connection:
    """Open a file exclusively, and upgrade it to the newest schema.

    :raises StoreUnavailable: the file is missing.
    :raises StoreInUse: another process has it open.
    """
    if not Path(path).is_file():
        raise StoreUnavailable(f"there is no database {path}")
    # In WAL mode each process that has the file open holds a shared lock on it. An exclusive lock
    # is therefore granted only if no other process has the file open. It lasts until the close.
    connection = connect(
        path, f"PRAGMA busy_timeout = {timeout * 1000:.0f}", "PRAGMA locking_mode = EXCLUSIVE"
    )
    try:
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
        upgrade_schema(connection, path, schema_steps())
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.OperationalError) and _is_busy(error):
            raise StoreInUse(f"another process uses {path}: stop the daemon first") from error
        raise
    return connection


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def list_tables(source: sqlite3.Connection) -> list[Table]:
    """Return all tables of a SQLite database, each after the tables that it refers to."""
    rows = source.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    names = [name for (name,) in rows if not name.startswith("sqlite_")]
    order: TopologicalSorter[str] = TopologicalSorter()
    for name in names:
        order.add(name, *(row[2] for row in source.execute(f"PRAGMA foreign_key_list({name})")))
    return [
        Table(name, {row[1]: row[2] for row in source.execute(f"PRAGMA table_info({name})")})
        for name in order.static_order()
    ]


def _require_empty(target: Transaction, tables: Sequence[Table]) -> None:
    """Lock the tables until the end of the transaction, and require that they are empty."""
    target.execute(f"LOCK TABLE {', '.join(table.name for table in tables)}")
    for table in tables:
        if target.row(f"SELECT 1 FROM {table.name} LIMIT 1") is not None:
            raise TargetNotEmpty(
                f"the target is not empty (table {table.name} has rows): copy into a new database"
            )


def _copy_table(
    source: sqlite3.Connection, target: Transaction, table: Table, report_progress: ReportProgress
) -> Summary:
    columns = ", ".join(table.columns)
    (total,) = source.execute(f"SELECT COUNT(*) FROM {table.name}").fetchone()
    copied = Summary(0, 0)
    for rows in _in_batches(source.execute(f"SELECT {columns} FROM {table.name}")):
        target.insert(f"{table.name} ({columns})", rows)
        copied = _add(copied, ([_digested(value) for value in row] for row in rows))
        report_progress(table.name, copied.rows, total)
    return copied


def _in_batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    piece: list[Row] = []
    octets = 0
    for row in rows:
        piece.append(row)
        octets += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(piece) == MAX_ROWS or octets >= MAX_OCTETS:
            yield piece
            piece, octets = [], 0
    if piece:
        yield piece


def summarize_target(target: Transaction, table: Table) -> Summary:
    """Return the summary of a target table; the server computes the digests of texts and bytes."""
    columns = ", ".join(_digest_sql(column, kind) for column, kind in table.columns.items())
    target.execute(f"DECLARE copied NO SCROLL CURSOR FOR SELECT {columns} FROM {table.name}")
    found = Summary(0, 0)
    while rows := target.rows(f"FETCH {FETCH_ROWS} FROM copied"):
        found = _add(found, rows)
    target.execute("CLOSE copied")
    return found


def _digest_sql(column: str, kind: str) -> str:
    if kind == TEXT:
        return f"sha256(convert_to({column}, 'UTF8'))"
    return f"sha256({column})" if kind == BYTES else column


def _digested(value: Value) -> Value:
    """Return the result of `_digest_sql` for a value in the target."""
    if isinstance(value, str):
        return sha256(replace_nul(value).encode()).digest()
    return sha256(value).digest() if isinstance(value, bytes) else value


def _add(summary: Summary, rows: Iterable[Sequence[Value]]) -> Summary:
    count, total = summary
    for row in rows:
        count += 1
        # Digests have a fixed length and numbers end with a space, so different rows differ.
        written = b"".join(
            value if isinstance(value, bytes) else f"{value} ".encode() for value in row
        )
        total += int.from_bytes(sha256(written).digest())
    return Summary(count, total % 2**256)


def _commit(target: PostgresqlTransaction) -> None:
    try:
        target.send(b"COMMIT", is_retryable=False)
    except StoreFull:
        raise
    except StoreUnavailable as failure:
        raise CopyUndetermined(
            f"{failure}; it is unknown whether the copy was committed: copy again. If the target "
            f"is not empty then, the copy was committed"
        ) from failure
