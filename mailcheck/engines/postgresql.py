"""The PostgreSQL engine: one writer with group commit, readers in threads.

libpq finds what the URL leaves out: PGPASSFILE, PGSERVICE, further hosts and
``target_session_attrs`` work as anywhere.
"""

import re
import threading
from collections.abc import Callable, Sequence

import psycopg2
from twisted.internet.defer import Deferred, succeed

from mailcheck.core.errors import StoreUnavailable
from mailcheck.engines.database import DatabaseEngine
from mailcheck.engines.group_commit import at_once
from mailcheck.engines.postgresql_connection import (
    BY_INDEX,
    Connection,
    PostgresqlTransaction,
    PostgresqlWriter,
    connect,
    require_version,
    unreachable,
)
from mailcheck.engines.schema_upgrade import (
    SchemaStep,
    announce_upgrade,
    require_known,
    schema_steps,
)
from mailcheck.ports.clocks import Soon
from mailcheck.ports.workers import Worker
from mailcheck.store.engine import Repeatable, Result, Transaction

SCHEMA_LOCK = 0x6D61_696C
"""The advisory lock under which a schema is upgraded: two daemons may start at once."""

_SNAPSHOT = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_DIALECT = {
    # Sorted by code points, as SQLite does, whatever the language of the database.
    "TEXT": 'TEXT COLLATE "C"',
    # One kind of whole number: what is copied in needs no table of types.
    "INTEGER": "BIGINT",
}


class PostgresqlEngine(DatabaseEngine):
    """A PostgreSQL database behind the engine seam."""

    def __init__(
        self, url: str, writer_worker: Worker, reader_worker: Worker, soon: Soon = at_once
    ) -> None:
        """Prepare; nothing is opened yet. ``soon`` gathers writes, see `GroupCommit`."""
        super().__init__(writer_worker, reader_worker, soon)
        self._url = url
        self._readers = threading.local()
        self._open_readers: list[Connection] = []

    def _free_bytes(self) -> int | None:
        """Say nothing: a server's disk is not ours to look at, it says itself when it is full."""
        return None

    def give_back_space(self) -> Deferred[None]:
        """Do nothing: the server's autovacuum does it."""
        return succeed(None)

    def _open_writer(self) -> PostgresqlWriter:
        prepare_database(self._url)
        return PostgresqlWriter(self._url)

    def _query(self, query: Callable[[Transaction], Result]) -> Result:
        try:
            return self._query_once(query)
        except Repeatable:
            return self._query_once(query)

    def _query_once(self, query: Callable[[Transaction], Result]) -> Result:
        connection = self._reader()
        transaction = PostgresqlTransaction(connection, _SNAPSHOT)
        try:
            return query(transaction)
        finally:
            try:
                transaction.send(b"ROLLBACK")
            except (StoreUnavailable, psycopg2.Error):
                connection.close()

    def _reader(self) -> Connection:
        connection: Connection | None = getattr(self._readers, "connection", None)
        if connection is None:
            connection = self._readers.connection = Connection(self._url, settings=BY_INDEX)
            self._open_readers.append(connection)
        return connection

    def _close_readers(self) -> None:
        for connection in self._open_readers:
            connection.close()


def prepare_database(url: str) -> None:
    """Bring a database to the newest schema.

    :raises SchemaTooNew: a newer mailcheck wrote it.
    :raises StoreUnavailable: it can't be opened, or is none for us.
    """
    try:
        upgrade_schema(url, schema_steps())
    except psycopg2.Error as error:
        raise unreachable(error) from error


def upgrade_schema(url: str, steps: Sequence[SchemaStep]) -> None:
    """Apply the steps that the database lacks, all or none.

    :raises SchemaTooNew: its version is not known here.
    :raises StoreUnavailable: its encoding is not UTF-8, or the server is too old.
    """
    connection = connect(url)
    try:
        with connection.cursor() as cursor:
            require_version(connection.server_version)
            cursor.execute("SHOW server_encoding")
            (encoding,) = cursor.fetchone()
            if encoding != "UTF8":
                raise StoreUnavailable(f"the database's encoding is {encoding}, not UTF8")
            # Data is rewritten in some steps; who waits for the lock waits for all of them.
            cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0; BEGIN")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
            cursor.execute("SELECT to_regclass('schema_version')")
            if cursor.fetchone() == (None,):
                cursor.execute("CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY)")
            cursor.execute("SELECT COALESCE(MAX(version), 0) FROM schema_version")
            (version,) = cursor.fetchone()
            require_known(version, steps, "the database")
            announce_upgrade("the database", version, steps[-1].version)
            for step in steps:
                if step.version > version:
                    cursor.execute(_in_dialect(step.sql) + step.postgresql)
                    cursor.execute("INSERT INTO schema_version VALUES (%s)", (step.version,))
            cursor.execute("COMMIT")
    finally:
        connection.close()


def _in_dialect(script: str) -> str:
    return re.sub(r"\b(TEXT|INTEGER)\b", lambda match: _DIALECT[match[1]], script)
