"""A daemon on PostgreSQL: what works on a file works on a server, and its faults are survived."""

import smtplib
from pathlib import Path

import pytest

from tests.end_to_end.load import send
from tests.servers.daemon import HOST, running_daemon

pytestmark = pytest.mark.end_to_end


def test_a_daemon_on_postgresql(postgresql_database: str, tmp_path: Path) -> None:
    """Mail comes in, is waited for, and is there after a crash; the URL may lie in a file."""
    url_file = tmp_path / "url"
    url_file.write_text(postgresql_database + "\n")
    with running_daemon(tmp_path, storage_url_file=str(url_file)) as daemon:
        cursor, recipient = daemon.cursor(), daemon.address("signup")
        with smtplib.SMTP(HOST, daemon.smtp_port) as client:
            assert send(client, [recipient], b"Subject: code\r\n\r\nYour code is 482913\r\n") == 250
        message = daemon.get("/inbox/wait", after=cursor, timeout=20).json
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
