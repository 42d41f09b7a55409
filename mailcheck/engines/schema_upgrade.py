"""The numbered files of the schema, and the upgrade of a SQLite file."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from twisted.logger import Logger

from mailcheck.core.errors import ExpectedFailure

_log = Logger()

_NUMBERED = re.compile(r"(\d{4})_\w+(?:\.(postgresql|sqlite))?\.sql", re.ASCII)


class SchemaStep(NamedTuple):
    """One step: SQL for both engines, and additional SQL for each of them."""

    version: int
    sql: str
    postgresql: str = ""
    sqlite: str = ""


class SchemaTooNew(ExpectedFailure):
    """A newer mailcheck has written this database, which this version would damage."""


@cache
def schema_steps() -> Sequence[SchemaStep]:
    """Return the steps from files named ``0001_name.sql``, oldest first.

    Additional files are ``0001_name.postgresql.sql`` and ``0001_name.sqlite.sql``.
    """
    steps: dict[int, dict[str, str]] = {}
    for file in sorted(files("mailcheck.store.schema").iterdir(), key=lambda file: file.name):
        match = _NUMBERED.fullmatch(file.name)
        if match is not None:
            step = steps.setdefault(int(match[1]), {"sql": ""})
            step[match[2] or "sql"] = file.read_text("utf-8")
    return [SchemaStep(version, **step) for version, step in sorted(steps.items())]


def require_known(version: int, steps: Sequence[SchemaStep], name: str) -> None:
    """Reject a database that a newer mailcheck has written.

    :raises SchemaTooNew: the version of its schema is unknown.
    """
    newest = steps[-1].version
    if version > newest:
        raise SchemaTooNew(
            f"{name} has schema version {version}, but this mailcheck supports versions up to "
            f"{newest}: install the newer mailcheck again, or restore a backup that this version "
            "has made (mailcheck store restore)"
        )


def announce_upgrade(name: str, version: int, newest: int) -> None:
    """Log that a start may take long, unless the database is new."""
    if 0 < version < newest:
        _log.info(
            "{name}: upgrading schema version {version} to {newest}; this may take a while",
            name=name,
            version=version,
            newest=newest,
        )


def upgrade_schema(connection: sqlite3.Connection, path: str, steps: Sequence[SchemaStep]) -> None:
    """Apply the missing steps, all or none.

    A database with data is first copied to ``<path>.v<version>.backup``.

    :raises SchemaTooNew: the version of its schema is unknown.
    """
    newest = steps[-1].version
    version = read_version(connection)
    require_known(version, steps, path)
    if version == newest:
        return
    announce_upgrade(path, version, newest)
    if version > 0:
        _back_up(connection, f"{path}.v{version}.backup")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have upgraded it while this one waited for the lock.
        version = read_version(connection)
        for step in steps:
            if step.version > version:
                for statement in _statements(step.sql + step.sqlite):
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {newest}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def read_version(connection: sqlite3.Connection) -> int:
    """Return the version of the schema of a SQLite file; 0 if it is new."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _back_up(connection: sqlite3.Connection, path: str) -> None:
    copy = sqlite3.connect(path)
    try:
        connection.backup(copy)
    finally:
        copy.close()


def _statements(script: str) -> Iterator[str]:
    """Split a script where SQLite finds complete statements (``executescript`` would commit)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
