"""Brings a SQLite file to the newest schema: numbered files in order, a backup before the first."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from importlib.resources import files

from mailcheck.core.errors import ExpectedFailure

_NUMBERED = re.compile(r"(\d{4})_\w+\.sql", re.ASCII)


class SchemaTooNew(ExpectedFailure):
    """A newer mailcheck has written this database; this one would damage it."""


def schema_steps() -> list[tuple[int, str]]:
    """List the schema files as (version, SQL), oldest first."""
    steps = []
    for file in files("mailcheck.storage.schema").iterdir():
        match = _NUMBERED.fullmatch(file.name)
        if match is not None:
            steps.append((int(match[1]), file.read_text("utf-8")))
    return sorted(steps)


def upgrade_schema(
    connection: sqlite3.Connection, path: str, steps: Sequence[tuple[int, str]]
) -> None:
    """Apply the steps that the database lacks, all or none.

    A database that holds something is first copied to ``<path>.v<version>.backup``.

    :raises SchemaTooNew: its version is not known here.
    """
    newest = steps[-1][0]
    version = _version(connection)
    if version > newest:
        raise SchemaTooNew(
            f"{path} has schema version {version}, this mailcheck knows up to {newest}: "
            f"start the newer mailcheck again"
        )
    if version == newest:
        return
    if version > 0:
        _back_up(connection, f"{path}.v{version}.backup")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have upgraded it while this one waited for the lock.
        version = _version(connection)
        for number, script in steps:
            if number > version:
                for statement in _statements(script):
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {newest}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _back_up(connection: sqlite3.Connection, path: str) -> None:
    copy = sqlite3.connect(path)
    try:
        connection.backup(copy)
    finally:
        copy.close()


def _statements(script: str) -> Iterator[str]:
    """Split a script where SQLite says a statement is complete (``executescript`` would commit)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
