"""PostgreSQL beyond the contracts: its schema, its connections, its failures."""

import threading
import time
from collections.abc import Iterator
from functools import partial

import psycopg2
import pytest

from mailcheck.core.errors import StoreFull, StoreUnavailable
from mailcheck.engines.postgresql import PostgresqlEngine, upgrade_schema
from mailcheck.engines.postgresql_connection import (
    COPY_PIECE,
    Connection,
    PostgresqlTransaction,
    PostgresqlWriter,
)
from mailcheck.engines.postgresql_server import LONGEST_CALL
from mailcheck.engines.schema_upgrade import SchemaStep, SchemaTooNew, schema_steps
from mailcheck.ports.engine import RetryableError
from mailcheck.smtp.replies import FAILURES, reply_to_failure
from mailcheck.workers.scheduling import DirectWorker
from tests.house import result_of
from tests.servers.postgresql import PostgresqlServer
from tests.table import rows

OLD = [SchemaStep(1, "CREATE TABLE a (x INTEGER, y TEXT);", "INSERT INTO a VALUES (1, 'ä');")]
NEW = [*OLD, SchemaStep(2, "ALTER TABLE a ADD COLUMN z TEXT;"), SchemaStep(3, "DROP TABLE a;")]
BROKEN = [*OLD, SchemaStep(2, "CREATE TABLE b (x TEXT);"), SchemaStep(3, "DROP TABLE nowhere;")]


@pytest.fixture
def empty(postgresql_server: PostgresqlServer) -> Iterator[str]:
    """The URL of an empty database."""
    name = f"empty_{threading.get_native_id()}"
    yield postgresql_server.make_database(name)
    postgresql_server.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def engine(postgresql_url: str) -> Iterator[PostgresqlEngine]:
    """An engine whose calls run at once."""
    engine = PostgresqlEngine(postgresql_url, DirectWorker(), DirectWorker())
    engine.open()
    yield engine
    result_of(engine.close())


def ask_of(url: str, sql: str) -> list[tuple[object, ...]]:
    """Run a query on a separate connection."""
    connection = psycopg2.connect(url)
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()
    finally:
        connection.close()


def test_an_upgrade(empty: str) -> None:
    """A database gets the missing steps, including those for PostgreSQL only."""
    upgrade_schema(empty, OLD)
    assert ask_of(empty, "SELECT * FROM a") == [(1, "ä")]
    upgrade_schema(empty, NEW)
    assert ask_of(empty, "SELECT version FROM schema_version ORDER BY 1") == [(1,), (2,), (3,)]
    upgrade_schema(empty, NEW)
    with pytest.raises(SchemaTooNew, match=r"schema version 3.*supports versions up to 1"):
        upgrade_schema(empty, OLD)


def test_a_look_before_a_start(empty: str) -> None:
    """A database is examined without an upgrade, and a schema of a newer version is rejected."""
    engine = PostgresqlEngine(empty, DirectWorker(), DirectWorker())
    engine.require_usable()
    assert ask_of(empty, "SELECT to_regclass('schema_version')") == [(None,)]
    upgrade_schema(empty, [SchemaStep(9999, "CREATE TABLE a (n INTEGER)")])
    with pytest.raises(SchemaTooNew, match="schema version 9999"):
        engine.require_usable()


def test_a_step_that_fails(empty: str) -> None:
    """When a step fails, the database stays at its old version as a whole."""
    upgrade_schema(empty, OLD)
    with pytest.raises(StoreUnavailable, match="nowhere"):
        upgrade_schema(empty, BROKEN)
    assert ask_of(empty, "SELECT version FROM schema_version") == [(1,)]
    assert ask_of(empty, "SELECT to_regclass('b')") == [(None,)]


def test_two_daemons_start_at_once(empty: str) -> None:
    """One of the daemons creates the schema, and the others find it."""
    failures: list[BaseException] = []

    def start() -> None:
        try:
            upgrade_schema(empty, schema_steps())
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(ask_of(empty, "SELECT version FROM schema_version")) == len(schema_steps())


def test_deleting_mail_queries_no_other_table(postgresql_url: str) -> None:
    """Only what is derived from a mail is deleted by reference; the server checks no other table.

    It would run a query for each mail and each table.
    """
    referring = "SELECT conrelid::regclass::text FROM pg_constraint WHERE confrelid = {}::regclass"
    found = {name for (name,) in ask_of(postgresql_url, referring.format("'delivery'"))}
    assert found == {"content", "mail_structure"}
    assert ask_of(postgresql_url, referring.format("'message'")) == []


def test_mail_is_compressed_by_lz4(postgresql_url: str) -> None:
    """The bytes of mails are compressed by lz4 if the server has it, and not otherwise."""
    methods = "SELECT enumvals FROM pg_settings WHERE name = 'default_toast_compression'"
    has_lz4 = "lz4" in str(ask_of(postgresql_url, methods))
    query = "SELECT attstorage, attcompression FROM pg_attribute WHERE attname = 'raw_message'"
    assert ask_of(postgresql_url, query) == [("x", "l") if has_lz4 else ("e", "")]


@rows(
    "postgresql://127.0.0.1:1/none?connect_timeout=2",
    "postgresql://user:secret@127.0.0.1:none/x",
    "postgresql:///none?host=/nowhere",
    "postgresql://user:secret%@127.0.0.1/x",
)
def test_an_unreachable_server(url: str) -> None:
    """A server that cannot be reached, or an invalid URL, is `StoreUnavailable`."""
    engine = PostgresqlEngine(url, DirectWorker(), DirectWorker())
    with pytest.raises(StoreUnavailable, match="the database") as failure:
        engine.open()
    assert "secret" not in str(failure.value)


def test_another_encoding(postgresql_server: PostgresqlServer) -> None:
    """A database that cannot store all of Unicode is rejected."""
    postgresql_server.run(
        "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C' STRATEGY file_copy"
    )
    engine = PostgresqlEngine(postgresql_server.url("latin"), DirectWorker(), DirectWorker())
    for look in (engine.open, engine.require_usable):
        with pytest.raises(StoreUnavailable, match="encoding is LATIN1, not UTF8"):
            look()
    postgresql_server.run("DROP DATABASE latin WITH (FORCE)")


def test_readers_cannot_write(engine: PostgresqlEngine) -> None:
    """A query that tries to write fails."""
    with pytest.raises(StoreUnavailable, match="read-only"):
        result_of(engine.read(lambda t: t.execute("DELETE FROM account")))


def test_a_read_is_one_snapshot(engine: PostgresqlEngine, postgresql_url: str) -> None:
    """All statements of a query see the same data, despite commits between them."""
    count = "SELECT COUNT(*) FROM invitation"

    def query(transaction: PostgresqlTransaction) -> tuple[object, object]:
        before = transaction.rows(count)
        other = psycopg2.connect(postgresql_url)
        with other, other.cursor() as cursor:
            cursor.execute("INSERT INTO invitation VALUES ('x', 1, 2)")
        other.close()
        return before, transaction.rows(count)

    assert result_of(engine.read(query)) == ([(0,)], [(0,)])  # type: ignore[arg-type]
    assert result_of(engine.read(lambda t: t.rows(count))) == [(1,)]


def test_a_lost_read_is_repeated(
    engine: PostgresqlEngine, postgresql_server: PostgresqlServer
) -> None:
    """A read that loses its connection is repeated once; losing both connections is a failure."""
    runs = []

    def query(transaction: PostgresqlTransaction, losses: int) -> object:
        runs.append(1)
        ((pid,),) = transaction.rows("SELECT pg_backend_pid()")
        if len(runs) <= losses:
            postgresql_server.run(f"SELECT pg_terminate_backend({pid}, 5000)")
        return transaction.rows("SELECT 7")

    assert result_of(engine.read(lambda t: query(t, 1))) == [(7,)]  # type: ignore[arg-type]
    runs.clear()
    with pytest.raises(StoreUnavailable, match="was lost"):
        result_of(engine.read(lambda t: query(t, 9)))  # type: ignore[arg-type]
    assert len(runs) == 2


def test_text_with_nul(engine: PostgresqlEngine) -> None:
    """NUL, which PostgreSQL's text cannot contain, is replaced; other unusual text is kept."""
    texts = ["a\0b", "é🎉\u2028", "\\x41 'quoted' \"twice\" %s ? {} $1", ""]
    row = result_of(engine.read(lambda t: t.row("SELECT ?, ?, ?, ?", texts)))
    assert row == ("a\ufffdb", *texts[1:])


@rows((1, 0), (1, COPY_PIECE), (2, 3), (40, 0), (40, 3), (40, COPY_PIECE))
def test_inserting_rows(postgresql_url: str, count: int, size: int) -> None:
    """Any number and size of rows is stored: unusual text, bytes, NULL."""
    text = "\t\n\\N é🎉 \\. 'it''s' \"{a,b}\" %s ? $1"
    writer = PostgresqlWriter(postgresql_url)
    transaction = writer.begin()
    transaction.execute("CREATE TEMPORARY TABLE r (a TEXT, b BYTEA, c BIGINT, d BIGINT, e BYTEA)")
    given = [
        (f"{text}{n}\0", bytes([0, n, 255, 92, 39]), -(2**62) + n, None, bytes(size) or None)
        for n in range(count)
    ]
    transaction.insert("r (a, b, c, d, e)", given)
    transaction.insert("r (a, b, c)", [("", b"", 0)])
    stored = transaction.rows("SELECT a, b, c, d, e FROM r ORDER BY c")
    assert stored == [(a.replace("\0", "\ufffd"), *rest) for a, *rest in given] + [
        ("", b"", 0, None, None)
    ]
    writer.rollback()
    writer.close()


def test_a_statement_over_rows_is_prepared_once(postgresql_url: str) -> None:
    """A prepared statement survives a rollback; each connection has its own."""
    changed = "UPDATE inbox SET byte_count = change.column2 FROM ({rows}) AS change WHERE false"
    writer = PostgresqlWriter(postgresql_url)
    for count in (1, 30):
        transaction = writer.begin()
        transaction.execute_over(changed, [(str(n), n) for n in range(count)])
        prepared = transaction.rows("SELECT count(*) FROM pg_prepared_statements")
        assert prepared == [(1,)]
        writer.rollback()
    writer.close()
    transaction = writer.begin()
    transaction.execute_over(changed, [("a", 1)])
    writer.commit()
    writer.close()


def test_a_full_disk(postgresql_url: str) -> None:
    """A full disk of the server is a 452 for the sender, and the mail is not stored."""
    connection = Connection(postgresql_url)
    transaction = PostgresqlTransaction(connection, b"BEGIN")
    with pytest.raises(StoreFull, match="No space left") as failure:
        transaction.execute(
            "DO $$ BEGIN RAISE EXCEPTION 'No space left' USING ERRCODE = '53100'; END $$"
        )
    reply = reply_to_failure(failure.value, FAILURES)
    assert reply is not None
    assert reply.startswith(b"452 4.3.1 ")
    connection.close()


def test_a_server_that_hangs(postgresql_url: str) -> None:
    """A call that takes too long is aborted and not repeated."""
    connection = Connection(postgresql_url)
    transaction = PostgresqlTransaction(connection, b"BEGIN")
    transaction.flush()
    failures: list[StoreUnavailable] = []

    def ask() -> None:
        try:
            transaction.rows("SELECT pg_sleep(60)")
        except StoreUnavailable as failure:
            failures.append(failure)

    thread = threading.Thread(target=ask)
    thread.start()
    sleeping = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    while not ask_of(postgresql_url, sleeping):
        connection.abort_if_late(time.monotonic())  # not yet
    connection.abort_if_late(time.monotonic() + LONGEST_CALL + 1)
    thread.join()
    (failure,) = failures
    assert "did not answer within 10 s" in str(failure)
    assert not isinstance(failure, RetryableError)
    assert PostgresqlTransaction(connection, b"BEGIN").rows("SELECT 7") == [(7,)]
    connection.close()


class Lost:
    """A connection that is lost when it is used."""

    closed = 0

    def fileno(self) -> int:
        """Fail like psycopg2."""
        raise psycopg2.InterfaceError("connection already closed")


def test_aborting_a_lost_connection() -> None:
    """It raises no exception, which would end the thread that enforces all timeouts."""
    connection = Connection("postgresql://nowhere")
    connection._connection = Lost()
    with connection.call(lambda: True):
        connection.abort_if_late(time.monotonic() + LONGEST_CALL + 1)


def wrong_clock(seconds: float) -> float:
    """Return a time that is wrong by some seconds."""
    return time.time() + seconds


def test_a_clock_that_is_wrong(postgresql_url: str) -> None:
    """Leases use the server's clock: a daemon determines the offset of its own clock."""
    for seconds in (-3600.0, 0.0, 3600.0):
        writer = PostgresqlWriter(postgresql_url, partial(wrong_clock, seconds))
        offset = writer.begin().clock_offset()
        assert abs(offset + seconds * 1000) < 1000
        assert seconds or offset == 0
        writer.rollback()
        writer.close()


@pytest.mark.parametrize("state", ["40P01", "40001", "25006"])
def test_retryable_failures(postgresql_url: str, state: str) -> None:
    """A deadlock, a serialization failure and a read-only server can be retried."""
    connection = Connection(postgresql_url)
    transaction = PostgresqlTransaction(connection, b"BEGIN")
    with pytest.raises(RetryableError):
        transaction.execute(f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{state}'; END $$")
    connection.close()
