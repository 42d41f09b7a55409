"""Poolers and old servers are detected before the daemon relies on the database."""

from pathlib import Path

import psycopg2
import pytest

from mailcheck.core.errors import StoreAway, StoreUnavailable
from mailcheck.engines.backup import require_database
from mailcheck.engines.postgresql import PostgresqlPresence
from mailcheck.engines.postgresql_server import (
    connection_failure,
    require_sessions,
    require_version,
)
from tests.servers.pgbouncer import running_pgbouncer, url_through
from tests.servers.postgresql import PostgresqlServer
from tests.table import rows

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("more", ["", "server_round_robin = 1", "default_pool_size = 1"])
@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pooler_that_gives_sessions_away(
    postgresql_server: PostgresqlServer, mode: str, more: str
) -> None:
    """The start and the doctor reject PgBouncer in these modes, and name the setting to change."""
    with running_pgbouncer(postgresql_server, mode, more) as folder:
        url = url_through(folder, "mailcheck_template")
        for refuse in (PostgresqlPresence(url, is_alone=True).begin, lambda: require_database(url)):
            with pytest.raises(StoreUnavailable, match="pool") as refused:
                refuse()
            assert not isinstance(refused.value, StoreAway)


def test_warm_pools(postgresql_server: PostgresqlServer) -> None:
    """A pool in transaction mode with many free sessions is detected, too."""
    with running_pgbouncer(postgresql_server, "transaction") as folder:
        url = url_through(folder, "mailcheck_template")
        held = [psycopg2.connect(url) for _ in range(5)]
        for connection in held:
            connection.cursor().execute("SELECT 1")
        for connection in held:
            connection.close()
        with pytest.raises(StoreUnavailable, match="pool_mode = session"):
            require_sessions(url)


def test_session_mode(postgresql_server: PostgresqlServer) -> None:
    """Session mode works, and so does the lock against a second daemon."""
    with running_pgbouncer(postgresql_server, "session") as folder:
        url = url_through(folder, "mailcheck_template")
        presence = PostgresqlPresence(url, is_alone=True)
        presence.begin()
        presence.end()


def test_a_pooler_without_its_server(tmp_path: Path) -> None:
    """The start waits for it as for the server itself."""
    nowhere = PostgresqlServer(tmp_path)
    with (
        running_pgbouncer(nowhere, "session", "server_connect_timeout = 1") as folder,
        pytest.raises(StoreAway),
    ):
        require_sessions(url_through(folder, "mail") + "&connect_timeout=3")


@rows((90624, "9.6.24"), (100023, "10.23"), (120022, "12.22"), (129999, "12.9999"))
def test_an_old_server_is_rejected(number: int, version: str) -> None:
    """The message for a server older than 13 contains its version."""
    with pytest.raises(StoreUnavailable, match=f"PostgreSQL {version}: mailcheck needs 13"):
        require_version(number)


@rows(130000, 130004, 150018, 180001)
def test_a_server_that_is_new_enough(number: int) -> None:
    """Version 13 is accepted."""
    require_version(number)


@rows(
    ('connection to server at "10.0.0.1", port 5432 failed: Connection refused', True),
    ('connection to server on socket "/x/.s.PGSQL.5432" failed: No such file', True),
    ('could not translate host name "db.example" to address: Name or service', True),
    ("FATAL:  the database system is starting up", True),
    ("FATAL:  sorry, too many clients already", True),
    ("timeout expired", True),
    ('FATAL:  password authentication failed for user "mailcheck"', False),
    ("fe_sendauth: no password supplied", False),
    ('FATAL:  database "mailcheck" does not exist', False),
    ('FATAL:  role "mailcheck" does not exist', False),
    ('FATAL:  no pg_hba.conf entry for host "10.0.0.1"', False),
    ("SSL error: certificate verify failed", False),
    ("server does not support SSL, but SSL was required", False),
)
def test_temporary_and_permanent_failures(said: str, is_away: bool) -> None:
    """The start waits for a server that may become available, but not after a rejection."""
    assert isinstance(connection_failure(psycopg2.OperationalError(said)), StoreAway) == is_away
