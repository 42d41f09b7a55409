"""Copies of a SQLite database: made while the daemon runs, put back while it is stopped."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from mailcheck.core.errors import StoreUnavailable
from mailcheck.storage.checking import check_file, open_to_read
from mailcheck.storage.sqlite_writer import as_unavailable


def back_up(database: Path, copy: Path) -> None:
    """Copy a database, as it is at the end, to a file of mode 0600 that is whole or not there.

    :raises StoreUnavailable: there is no database, the file is there already, or the disk is full.
    """
    if copy.exists():
        raise StoreUnavailable(f"{copy} is there already")
    _copy(database, copy)


def restore(copy: Path, database: Path) -> Path | None:
    """Put a copy in the place of a stopped daemon's database; gives where the old one went.

    :raises StoreUnavailable: the copy is broken, or a daemon holds the database.
    """
    problems = check_file(copy)
    if problems:
        raise StoreUnavailable(f"{copy} is broken: {problems[0]}")
    database.parent.mkdir(parents=True, exist_ok=True)
    aside: Path | None = None
    if database.exists():
        _require_unused(database)
        aside = _unused_name(database)
    part = database.with_name(database.name + ".restored")
    part.unlink(missing_ok=True)
    _copy(copy, part)
    if aside is not None:
        database.rename(aside)
    for companion in ("-wal", "-shm"):
        database.with_name(database.name + companion).unlink(missing_ok=True)
    part.rename(database)
    return aside


def _copy(source: Path, target: Path) -> None:
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with (
            as_unavailable(),
            closing(open_to_read(source)) as reading,
            closing(sqlite3.connect(part)) as writing,
        ):
            # In one step, which reads one snapshot: between steps each mail would begin it anew.
            reading.backup(writing)
        _flush(part)
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Have the disk write it: a copy that is said to be made survives a power cut."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _require_unused(database: Path) -> None:
    """See that nobody has the database open: WAL mode can only be left alone.

    :raises StoreUnavailable: a daemon holds it.
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
            return  # broken: that may be why a copy is put back


def _unused_name(database: Path) -> Path:
    number = 1
    while (aside := database.with_name(f"{database.name}.replaced-{number}")).exists():
        number += 1
    return aside
