"""A daemon on PostgreSQL works as on SQLite, and survives faults of the server."""

import re
import smtplib
import tempfile
from pathlib import Path

import pytest

from tests.cli.command_line import run_command
from tests.end_to_end.load import send
from tests.end_to_end.test_dashboard import sign_in
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.pgbouncer import running_pgbouncer, url_through
from tests.servers.postgresql import PostgresqlServer, require_installed
from tests.servers.systemd import supervised_daemon

pytestmark = pytest.mark.end_to_end

ROOT = Path(__file__).parents[2]


def test_a_daemon_on_postgresql(postgresql_database: str, tmp_path: Path) -> None:
    """Mail is received, ends a wait, and survives a crash; the URL may come from a file."""
    url_file = tmp_path / "url"
    url_file.write_text(postgresql_database + "\n")
    with running_daemon(tmp_path, storage_url_file=str(url_file)) as daemon:
        cursor, recipient = daemon.cursor(), daemon.address("signup")
        with smtplib.SMTP(HOST, daemon.smtp_port) as client:
            assert send(client, [recipient], b"Subject: code\r\n\r\nYour code is 482913\r\n") == 250
        message = daemon.get("/inbox/wait", after=cursor, timeout=40).json
        assert message["codes"] == ["482913"]
        daemon.kill()
        daemon.start()
        assert daemon.total() == 1
    assert not (tmp_path / "var" / "mailcheck.db").exists()


def test_psycopg2_is_loaded_only_when_used(tmp_path: Path) -> None:
    """A daemon on SQLite never loads PostgreSQL's library."""
    with running_daemon(tmp_path) as daemon:
        with smtplib.SMTP(HOST, daemon.smtp_port) as client:
            assert send(client, [daemon.address()], b"Subject: x\r\n\r\n") == 250
        maps = [Path(f"/proc/{pid}/maps").read_text() for pid in daemon.pids()]
        assert len(maps) > 1
        assert not any("libpq" in one for one in maps)


def test_a_daemon_moves_to_postgresql(
    daemon: Daemon, postgresql_database: str, tmp_path: Path
) -> None:
    """After a copy from SQLite, mail, key, password and cursor work on PostgreSQL. The store of a
    running daemon is not copied.
    """
    config = daemon.folder / "mailcheck.toml"
    config.write_text(f'[storage]\nurl = "sqlite:{daemon.folder}/var/mailcheck.db"\n')
    page = (ROOT / "docs" / "how-to" / "set-up-postgresql.md").read_text()
    (command,) = re.findall(r"^mailcheck (--config mailcheck.toml store copy .*)$", page, re.M)
    places = {"mailcheck.toml": str(config), "postgresql://mailcheck@db.example/mailcheck": ""}
    copy = [places.get(word, word) or postgresql_database for word in command.split()]
    with smtplib.SMTP(HOST, daemon.smtp_port) as client:
        for number in range(5):
            mail = b"Subject: %d\r\n\r\nYour code is 482913\r\n" % number
            assert send(client, [daemon.address("signup")], mail) == 250
    daemon.get("/inbox/wait", after="c4")
    sign_in(daemon).open(f"/inbox/messages/{daemon.get('/inbox/wait', after='c0').json['id']}")
    before = daemon.get("/inbox/messages").json
    raw = daemon.get(f"/inbox/messages/{before['messages'][0]['id']}/raw").json
    running = run_command(*copy)
    assert (running.status, running.output) == (1, "")
    assert "stop the daemon" in running.errors
    daemon.stop()
    url_file = tmp_path / "database-url"
    url_file.write_text(postgresql_database + "\n")
    copied = run_command(*copy[:-1], str(url_file))
    assert copied.status == 0, copied.errors
    assert "message  5  sha256 " in copied.output
    again = run_command(*copy)
    assert (again.status, again.output) == (1, "")
    daemon.options["storage_url"] = postgresql_database
    daemon.start()
    assert daemon.get("/inbox/messages").json == before
    assert [one["isRead"] for one in before["messages"]] == [False] * 4 + [True]
    assert daemon.get(f"/inbox/messages/{before['messages'][0]['id']}/raw").json == raw
    sign_in(daemon)
    with smtplib.SMTP(HOST, daemon.smtp_port) as client:
        assert send(client, [daemon.address("next")], b"Subject: next\r\n\r\n") == 250
    assert daemon.get("/inbox/wait", after=before["cursor"]).json["subject"] == "next"


def test_a_pooler_that_gives_sessions_away(
    postgresql_server: PostgresqlServer, tmp_path: Path
) -> None:
    """A daemon behind PgBouncer in transaction mode does not start, and names the right setting."""
    with running_pgbouncer(postgresql_server, "transaction") as folder:
        url = url_through(folder, "mailcheck_template")
        daemon = Daemon(tmp_path, storage_url=url)
        daemon.launch()
        assert daemon.when_ended() == 1
        assert "mailcheck: the pooler before the database reuses sessions" in daemon.output()
        assert "pool_mode = session" in daemon.output()


def test_a_server_that_comes_later(tmp_path: Path) -> None:
    """A daemon that starts before its server logs this once, tells systemd, and waits."""
    require_installed()
    with tempfile.TemporaryDirectory(prefix="mailcheck-late-pg-") as folder:
        server = PostgresqlServer(Path(folder))
        server.initialise()
        server.start()
        url = server.make_database("mail")
        server.stop("fast")
        with supervised_daemon(tmp_path, 60.0, storage_url=url) as daemon:
            daemon.wait_for("STATUS=waiting for the database", 2)
            assert any("EXTEND_TIMEOUT_USEC=" in one for one in daemon.heard)
            server.start()
            daemon.wait_for("READY=1")
            assert daemon.is_ready()
            assert daemon.output().count("waiting for the database: ") == 1
            assert "the database is there" in daemon.output()
        server.stop()


def test_a_wait_for_a_server_that_is_ended(tmp_path: Path) -> None:
    """SIGTERM ends a daemon that waits for its database."""
    url = "postgresql:///mail?host=/nowhere&user=mailcheck"
    daemon = Daemon(tmp_path, storage_url=url)
    daemon.launch()
    daemon.wait_until(lambda: "waiting for the database: " in daemon.output())
    assert daemon.stop() in (0, -15)


def test_the_database_of_the_page(postgresql_server: PostgresqlServer) -> None:
    """The commands of the documentation create a suitable role and database."""
    page = (ROOT / "docs" / "how-to" / "set-up-postgresql.md").read_text()
    (shown,) = re.findall(r"^ *```sql\n(.*?)^ *```", page, re.S | re.M)
    statements = shown.replace("mailcheck", "of_the_page").split(";")[:-1]
    try:
        for statement in statements:
            postgresql_server.run(statement.strip())
        assert len(statements) == 2
    finally:
        postgresql_server.run("DROP DATABASE IF EXISTS of_the_page")
        postgresql_server.run("DROP ROLE IF EXISTS of_the_page")
