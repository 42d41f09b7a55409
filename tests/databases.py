"""Databases for tests: SQLite in memory, and the PostgreSQL server of a test run."""

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import psycopg2
import pytest

from mailcheck.engines import sqlite
from mailcheck.engines.schema_upgrade import SchemaStep, schema_steps, upgrade_schema
from mailcheck.engines.sqlite import IN_MEMORY
from mailcheck.engines.sqlite_writer import SqliteWriter
from tests.servers.postgresql import TEMPLATE, PostgresqlServer, require_installed, shared_server

_numbers = count(1)

NEW_DATABASE = """
    SELECT 1 FROM pragma_user_version WHERE user_version = 0 AND NOT EXISTS (
        SELECT 1 FROM sqlite_schema
    )
"""


@pytest.fixture(scope="session", autouse=True)
def _newest_schema() -> Iterator[None]:
    """Create the schema once, and copy it into each of the thousands of new databases."""
    newest = SqliteWriter(IN_MEMORY)
    upgrade_schema(newest.connection, IN_MEMORY, schema_steps())

    def upgrade(connection: sqlite3.Connection, path: str, steps: Sequence[SchemaStep]) -> None:
        is_new = connection.execute(NEW_DATABASE).fetchone() is not None
        if is_new:
            newest.connection.backup(connection)
        else:
            upgrade_schema(connection, path, steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "upgrade_schema", upgrade)
        yield
    newest.close()


@pytest.fixture(scope="session")
def postgresql_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PostgresqlServer]:
    """Yield the server of the test run, which all its processes share."""
    require_installed()
    folder = tmp_path_factory.getbasetemp()
    is_worker = hasattr(request.config, "workerinput")
    with shared_server(folder.parent if is_worker else folder) as server:
        yield server


@pytest.fixture
def postgresql_database(
    postgresql_server: PostgresqlServer, request: pytest.FixtureRequest
) -> Iterator[str]:
    """Yield the URL of a new database with the newest schema, for daemons in processes."""
    name = f"own_{_worker(request)}_{next(_numbers)}"
    yield postgresql_server.make_database(name, TEMPLATE)
    postgresql_server.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def _one_database(
    postgresql_server: PostgresqlServer, request: pytest.FixtureRequest
) -> Iterator[tuple[str, Any]]:
    name = f"shared_{_worker(request)}"
    url = postgresql_server.make_database(name, TEMPLATE)
    connection = psycopg2.connect(url)
    connection.autocommit = True
    yield url, connection
    connection.close()


@pytest.fixture
def postgresql_url(_one_database: tuple[str, Any]) -> str:
    """Return the URL of a database without rows, which the tests of a process share."""
    url, connection = _one_database
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM message; DELETE FROM deliverability_test; DELETE FROM receiver_report; "
            "DELETE FROM inbound_mail; "
            "DELETE FROM delivery; "
            "DELETE FROM invitation; DELETE FROM account; "
            "DELETE FROM audit_entry; DELETE FROM audit_position; "
            "DELETE FROM oauth_client; "
            "DELETE FROM request_count; "
            "DELETE FROM remembered; DELETE FROM known_selector; DELETE FROM lease; "
            "DELETE FROM passkey_challenge; DELETE FROM report_mailbox; "
            "DELETE FROM heartbeat_reception; "
            "DELETE FROM provisioned_group"
        )
    return url


def _worker(request: pytest.FixtureRequest) -> str:
    facts: dict[str, str] = getattr(request.config, "workerinput", {})
    return facts.get("workerid", "main")
