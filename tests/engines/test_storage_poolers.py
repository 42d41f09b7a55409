"""What stands before the database, and how old that is: found out before anything relies on it."""

from pathlib import Path

import psycopg2
import pytest

from mailcheck.core.errors import StoreAway, StoreUnavailable
from mailcheck.engines.backup import require_database
from mailcheck.engines.postgresql import PostgresqlPresence
from mailcheck.engines.postgresql_connection import (
    connection_failure,
    require_sessions,
    require_version,
)
from tests.servers.pgbouncer import running_pgbouncer, url_through
from tests.servers.postgresql import PostgresqlServer


@pytest.mark.parametrize("more", ["", "server_round_robin = 1", "default_pool_size = 1"])
@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pooler_that_gives_sessions_away(
    postgresql_server: PostgresqlServer, mode: str, more: str
) -> None:
    """PgBouncer in these modes is refused by a start and by the doctor, with what to change."""
    with running_pgbouncer(postgresql_server, mode, more) as folder:
        url = url_through(folder, "mailcheck_template")
        for refuse in (PostgresqlPresence(url, is_alone=True).begin, lambda: require_database(url)):
            with pytest.raises(StoreUnavailable, match="pool") as refused:
                refuse()
            assert not isinstance(refused.value, StoreAway)


def test_warm_pools_are_no_sessions(postgresql_server: PostgresqlServer) -> None:
    """A pool in transaction mode that has many sessions at hand is found out too."""
    with running_pgbouncer(postgresql_server, "transaction") as folder:
        url = url_through(folder, "mailcheck_template")
        held = [psycopg2.connect(url) for _ in range(5)]
        for connection in held:
            connection.cursor().execute("SELECT 1")
        for connection in held:
            connection.close()
        with pytest.raises(StoreUnavailable, match="pool_mode = session"):
            require_sessions(url)


def test_a_pooler_that_keeps_sessions(postgresql_server: PostgresqlServer) -> None:
    """Session mode is fine, and the guard against a second daemon works through it."""
    with running_pgbouncer(postgresql_server, "session") as folder:
        url = url_through(folder, "mailcheck_template")
        presence = PostgresqlPresence(url, is_alone=True)
        presence.begin()
        presence.end()


def test_a_pooler_whose_server_is_away(tmp_path: Path) -> None:
    """It is waited for as the server itself would be."""
    nowhere = PostgresqlServer(tmp_path)
    with (
        running_pgbouncer(nowhere, "session", "server_connect_timeout = 1") as folder,
        pytest.raises(StoreAway),
    ):
        require_sessions(url_through(folder, "mail") + "&connect_timeout=3")


@pytest.mark.parametrize(
    ("number", "version"),
    [(90624, "9.6.24"), (100023, "10.23"), (120022, "12.22"), (129999, "12.9999")],
)
def test_an_old_server_is_refused(number: int, version: str) -> None:
    """A server older than 13 is named with its version."""
    with pytest.raises(StoreUnavailable, match=f"PostgreSQL {version}: mailcheck needs 13"):
        require_version(number)


@pytest.mark.parametrize("number", [130000, 130004, 150018, 180001])
def test_a_server_that_is_new_enough(number: int) -> None:
    """13 is enough."""
    require_version(number)


@pytest.mark.parametrize(
    ("said", "is_away"),
    [
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
    ],
)
def test_what_is_waited_for(said: str, is_away: bool) -> None:
    """A server that may come is waited for; one that has said no is not."""
    assert isinstance(connection_failure(psycopg2.OperationalError(said)), StoreAway) == is_away
