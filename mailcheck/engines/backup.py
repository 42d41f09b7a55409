"""Integrity checks, backup and restore of a store.

A SQLite database is backed up while the daemon runs, and restored while it is stopped.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from mailcheck.core.errors import StoreUnavailable
from mailcheck.engines.schema_upgrade import schema_steps
from mailcheck.engines.sqlite_writer import as_unavailable, connect_to_read
from mailcheck.ports.engine import Transaction
from mailcheck.store.messages import IS_UNREFERENCED
from mailcheck.store.transactions import read_number

MAX_SHOWN = 20
"""Maximum number of reported problems of one kind; a broken file has thousands."""

_INBOXES = (
    "SELECT i.mailbox_name, i.message_count, i.byte_count, i.last_position,"
    " COUNT(m.id), COALESCE(SUM(m.size), 0), COALESCE(MAX(m.position), 0), i.tag_count,"
    " (SELECT COUNT(*) FROM inbox_tag t WHERE t.account_id = i.account_id)"
    " FROM inbox i LEFT JOIN message m ON m.account_id = i.account_id"
    " GROUP BY i.account_id, i.mailbox_name, i.message_count, i.byte_count, i.last_position,"
    " i.tag_count"
)
_TAGS = (
    "SELECT i.mailbox_name, t.tag, t.message_count, COUNT(m.id)"
    " FROM inbox_tag t JOIN inbox i ON i.account_id = t.account_id"
    " LEFT JOIN message m ON m.account_id = t.account_id AND m.tag_key = t.tag_key"
    " GROUP BY i.mailbox_name, t.account_id, t.tag_key, t.tag, t.message_count"
    " HAVING t.message_count <> COUNT(m.id)"
)
_UNOWNED = f"SELECT COUNT(*) FROM delivery WHERE {IS_UNREFERENCED}"


def check_rows(transaction: Transaction) -> list[str]:
    """Return the inconsistencies between rows, one sentence each, from one snapshot."""
    problems = [*_inbox_problems(transaction)]
    for mailbox, tag, counted, found in transaction.rows(_TAGS):
        problems.append(
            f"inbox {mailbox}: the counter of tag {tag!r} is {counted}, but it has {found} messages"
        )
    unowned = read_number(transaction, _UNOWNED)
    if unowned:
        problems.append(f"{unowned} mails belong to no message, test, report or route")
    return problems


def _inbox_problems(transaction: Transaction) -> Iterator[str]:
    for row in transaction.rows(_INBOXES):
        mailbox, count, size, last, found, bytes_found, newest, tags, tags_found = row
        if count != found:
            yield f"inbox {mailbox}: the message counter is {count}, but it has {found} messages"
        if size != bytes_found:
            yield f"inbox {mailbox}: the byte counter is {size}, but it has {bytes_found} bytes"
        if tags != tags_found:
            yield f"inbox {mailbox}: the tag counter is {tags}, but it has {tags_found} tags"
        if newest > last:
            yield f"inbox {mailbox}: a message has position {newest}, after the last one, {last}"


def check_file(path: Path, *, is_copy: bool = False) -> list[str]:
    """Return the problems that SQLite finds in a database file, which is only read.

    :param is_copy: as in `open_to_read`.
    :raises StoreUnavailable: it is not a database of mailcheck, or it cannot be read.
    """
    with as_unavailable(), closing(open_to_read(path, is_copy=is_copy)) as connection:
        rows = connection.execute(f"PRAGMA integrity_check({MAX_SHOWN})").fetchall()
        problems = [text for (text,) in rows if text != "ok"]
        strangers = connection.execute("PRAGMA foreign_key_check").fetchmany(MAX_SHOWN)
        problems += [
            f"a row of {table} refers to a missing {other}" for table, _, other, _ in strangers
        ]
    return problems


def require_database(url: str) -> None:
    """Require that the database of a URL exists and accepts connections; blocks.

    :raises StoreUnavailable: it does not; the message says why.
    """
    kind, _, path = url.partition(":")
    if kind == "sqlite":
        open_to_read(Path(path)).close()
        return
    # Imported here, since loading psycopg2 takes a while.
    from mailcheck.engines.postgresql_server import require_sessions

    require_sessions(url)


def open_to_read(path: Path, *, is_copy: bool = False) -> sqlite3.Connection:
    """Open an existing database file of mailcheck for reading.

    :param is_copy: no daemon uses it. Nothing is written beside it. A copy that was made without
        `store backup` may have a log beside it, which is read too.
    :raises StoreUnavailable: the file is missing, or it is something else.
    """
    if not path.is_file():
        raise StoreUnavailable(f"there is no database {path}")
    connection = connect_to_read(path, is_at_rest=is_copy and not _has_log(path))
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        has_inbox = connection.execute(
            "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'inbox'"
        ).fetchone()[0]
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StoreUnavailable(f"{path} cannot be read as a database: {error}") from error
    if not has_inbox or not 1 <= version <= schema_steps()[-1].version:
        connection.close()
        raise StoreUnavailable(f"{path} is not a database of this mailcheck (version {version})")
    return connection


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.is_file() and log.stat().st_size > 0


def back_up(database: Path, copy: Path) -> None:
    """Copy a snapshot of a database to a new file of mode 0600; no partial file is left.

    :raises StoreUnavailable: the database is missing, the file exists, or the disk is full.
    """
    if copy.exists():
        raise StoreUnavailable(f"{copy} already exists; choose another file")
    _copy(database, copy)


def restore(copy: Path, database: Path) -> Path | None:
    """Replace the database of a stopped daemon by a copy; return the new path of the old database.

    :raises StoreUnavailable: the copy is broken, or a daemon uses the database.
    """
    problems = check_file(copy, is_copy=True)
    if problems:
        raise StoreUnavailable(f"{copy} is broken: {problems[0]}")
    database.parent.mkdir(parents=True, exist_ok=True)
    aside: Path | None = None
    if database.exists():
        _require_unused(database)
        aside = _unused_name(database)
    part = database.with_name(database.name + ".restored")
    part.unlink(missing_ok=True)
    _copy(copy, part, is_copy=True)
    if aside is not None:
        database.rename(aside)
    for companion in ("-wal", "-shm"):
        database.with_name(database.name + companion).unlink(missing_ok=True)
    part.rename(database)
    return aside


def _copy(source: Path, target: Path, *, is_copy: bool = False) -> None:
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with (
            as_unavailable(),
            closing(open_to_read(source, is_copy=is_copy)) as reading,
            closing(sqlite3.connect(part)) as writing,
        ):
            # In one step, which reads one snapshot: each new mail would restart a stepwise copy.
            reading.backup(writing)
        _flush(part)
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Write a file to disk, so that a finished copy survives a power failure."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _require_unused(database: Path) -> None:
    """Require that no process has the database open, and leave WAL mode.

    :raises StoreUnavailable: a daemon uses it.
    """
    with closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"stop the daemon first: {database} is in use") from error
        except sqlite3.DatabaseError:
            return  # broken, which may be the reason for restoring a copy


def _unused_name(database: Path) -> Path:
    number = 1
    while (aside := database.with_name(f"{database.name}.replaced-{number}")).exists():
        number += 1
    return aside
