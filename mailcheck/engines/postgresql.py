"""The PostgreSQL engine: one writer with group commit, and readers in threads.

libpq completes the URL, so that PGPASSFILE, PGSERVICE, several hosts and ``target_session_attrs``
work as usual.
"""

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg2
from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from mailcheck.core.errors import StoreUnavailable
from mailcheck.engines.database import DatabaseEngine, call_immediately
from mailcheck.engines.postgresql_connection import (
    INDEX_PLANS,
    Connection,
    PostgresqlTransaction,
    PostgresqlWriter,
)
from mailcheck.engines.postgresql_server import (
    connect,
    connection_failure,
    opened,
    require_sessions,
    require_version,
)
from mailcheck.engines.schema_upgrade import (
    SchemaStep,
    announce_upgrade,
    require_known,
    schema_steps,
)
from mailcheck.ports.clocks import CallSoon
from mailcheck.ports.engine import Result, RetryableError, Transaction
from mailcheck.ports.workers import Worker

SCHEMA_LOCK = 0x6D61_696C
"""The advisory lock for schema upgrades: two daemons may start at once."""

_SNAPSHOT = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_DIALECT = {
    # Sorted by code points in every locale, as in SQLite.
    "TEXT": 'TEXT COLLATE "C"',
    # A single integer type: copied data needs no table of types.
    "INTEGER": "BIGINT",
}


class PostgresqlEngine(DatabaseEngine):
    """An engine for a PostgreSQL database."""

    def __init__(
        self,
        url: str,
        writer_worker: Worker,
        reader_worker: Worker,
        call_soon: CallSoon = call_immediately,
    ) -> None:
        """Prepare without opening the database; see `GroupCommit` for ``call_soon``."""
        super().__init__(writer_worker, reader_worker, call_soon)
        self._url = url

    def _free_bytes(self) -> int | None:
        """Return `None`: the server reports a full disk itself."""
        return None

    def reclaim_space(self) -> Deferred[None]:
        """Do nothing, since the server's autovacuum does it."""
        return succeed(None)

    def open_writer(self) -> PostgresqlWriter:
        """Upgrade the schema, and return a writer."""
        upgrade_schema(self._url, schema_steps())
        return PostgresqlWriter(self._url)

    def require_usable(self) -> None:
        """Check what `upgrade_schema` refuses, without changing the database."""
        with opened(self._url) as connection, connection.cursor() as cursor:
            _require_suitable(connection, cursor)
            if _has_schema(cursor):
                _known_version(cursor, schema_steps())

    def _query(self, query: Callable[[Transaction], Result]) -> Result:
        try:
            return self._query_once(query)
        except RetryableError:
            return self._query_once(query)

    def _query_once(self, query: Callable[[Transaction], Result]) -> Result:
        connection: Connection = self._reader()
        transaction = PostgresqlTransaction(connection, _SNAPSHOT)
        try:
            return query(transaction)
        finally:
            try:
                transaction.send(b"ROLLBACK")
            except (StoreUnavailable, psycopg2.Error):
                connection.close()

    def _open_reader(self) -> Connection:
        return Connection(self._url, settings=INDEX_PLANS)

    def _store_bytes(self, transaction: Transaction) -> int:
        ((size,),) = transaction.rows("SELECT pg_database_size(current_database())")
        return int(size)


def upgrade_schema(url: str, steps: Sequence[SchemaStep]) -> None:
    """Apply the missing steps, all or none.

    :raises SchemaTooNew: the version of the schema is unknown.
    :raises StoreUnavailable: it cannot be opened, its encoding is not UTF-8, or the server is too
        old.
    """
    with opened(url) as connection, connection.cursor() as cursor:
        _require_suitable(connection, cursor)
        # Some steps rewrite data. A daemon that waits for the lock waits for all of them.
        cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0; BEGIN")
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
        if not _has_schema(cursor):
            cursor.execute("CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY)")
        version = _known_version(cursor, steps)
        announce_upgrade("the database", version, steps[-1].version)
        for step in steps:
            if step.version > version:
                cursor.execute(_in_dialect(step.sql) + step.postgresql)
                cursor.execute("INSERT INTO schema_version VALUES (%s)", (step.version,))
        cursor.execute("COMMIT")


def _require_suitable(connection: Any, cursor: Any) -> None:
    require_version(connection.server_version)
    cursor.execute("SHOW server_encoding")
    (encoding,) = cursor.fetchone()
    if encoding != "UTF8":
        raise StoreUnavailable(f"the database's encoding is {encoding}, not UTF8")


def _has_schema(cursor: Any) -> bool:
    cursor.execute("SELECT to_regclass('schema_version')")
    return bool(cursor.fetchone() != (None,))


def _known_version(cursor: Any, steps: Sequence[SchemaStep]) -> int:
    cursor.execute("SELECT COALESCE(MAX(version), 0) FROM schema_version")
    version: int = cursor.fetchone()[0]
    require_known(version, steps, "the database")
    return version


def _in_dialect(script: str) -> str:
    return re.sub(r"\b(TEXT|INTEGER)\b", lambda match: _DIALECT[match[1]], script)


PRESENCE_LOCK = 0x6D61_696F

_NAMES = """
    SELECT lpad(to_hex((classid::bigint << 32) | objid::bigint), 16, '0') FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND mode = 'ShareLock'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

LOCK_TIMEOUT = 5.0
"""Seconds to wait, since the server may still hold the lock of a daemon that was just restarted."""

POLL = 0.2

_REFUSAL = {
    True: "another daemon uses this database, and without [cluster] redis only one daemon can use "
    "it: stop the other one, or set the same [cluster] redis for both",
    False: "a daemon without [cluster] redis uses this database: stop it, or set the same "
    "[cluster] redis for it",
}


class PostgresqlPresence:
    """The lock of the daemons on a PostgreSQL database: one daemon, or several with one Redis.

    Each daemon holds an advisory lock while it runs, on a dedicated connection: exclusively without
    Redis, otherwise shared. The server releases it when the daemon ends in any way. A daemon with
    Redis holds a second lock that encodes its name, by which other daemons see that it is alive.
    """

    _log = Logger()

    def __init__(self, url: str, *, is_alone: bool, name: str = "") -> None:
        """Prepare. ``name`` has up to 16 hexadecimal digits, and is for shared use."""
        self._url = url
        self._name = name
        self._is_alone = is_alone
        self._connection: Any = None

    def begin(self, timeout: float = LOCK_TIMEOUT) -> None:
        """Acquire the lock, and retry for ``timeout`` seconds while another daemon holds it.

        :raises StoreAway: the server accepts no connections.
        :raises StoreUnavailable: another daemon holds it, or the server is not suitable.
        """
        require_sessions(self._url)
        deadline = time.monotonic() + timeout
        while not self._take():
            if time.monotonic() > deadline:
                raise StoreUnavailable(_REFUSAL[self._is_alone])
            time.sleep(POLL)

    def require_free(self) -> None:
        """Acquire the lock and release it."""
        self.begin()
        self.end()

    def keep(self) -> frozenset[str] | None:
        """Check that the server still has our lock, and acquire it again after its restart.

        :return: the names of all daemons, or `None` if the server cannot be queried.
        """
        try:
            names = self._names()
            if names is None and not self._take():
                self._log.error("{problem}", problem=_REFUSAL[self._is_alone])
        except StoreUnavailable:
            return None  # code that uses the database reports the problem
        return names

    def end(self) -> None:
        """Release the lock."""
        if self._connection is not None:
            self._connection.close()

    def _names(self) -> frozenset[str] | None:
        if self._connection is None or self._connection.closed:
            return None
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(_NAMES)
                return frozenset(name for (name,) in cursor)
        except psycopg2.Error:
            self._connection.close()
            return None

    def _take(self) -> bool:
        kind = "" if self._is_alone else "_shared"
        try:
            connection = connect(self._url)
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT pg_try_advisory_lock{kind}(%s)", (PRESENCE_LOCK,))
                (has_lock,) = cursor.fetchone()
                if has_lock and self._name:
                    name = int.from_bytes(bytes.fromhex(self._name), signed=True)
                    cursor.execute("SELECT pg_advisory_lock_shared(%s)", (name,))
        except psycopg2.Error as error:
            raise connection_failure(error) from error
        if not has_lock:
            connection.close()
            return False
        self._connection = connection
        return True
