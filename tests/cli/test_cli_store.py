"""``mailcheck store``, and ``init``: an operator's commands."""

import gzip
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.command_line import Mailcheck, run_command

OLD_DATABASE = Path(__file__).parent.parent / "engines" / "version-0.1.db.gz"
"""Written by the first version: an account with a key, three messages of two mails, a test."""

OLD_KEY = "mc_upgradeupgradeupgradeupgradeupgr"


@pytest.fixture
def old_database(database: Path) -> Path:
    """Copy the database of the first version to the configured path."""
    database.parent.mkdir()
    database.write_bytes(gzip.decompress(OLD_DATABASE.read_bytes()))
    return database


def test_the_first_version_s_database_is_brought_up_to_date(
    old_database: Path, mailcheck: Mailcheck
) -> None:
    """Accounts and keys are kept, the counters are right, and a backup lies beside the database."""
    assert mailcheck("account", "list").lines[0].startswith("developer  dev-lwgngioajnhhh@")
    assert OLD_KEY[:6] in mailcheck("key", "list").output
    checked = mailcheck("store", "check")
    assert (checked.status, checked.output) == (0, "")
    assert old_database.with_name("mail.db.v3.backup").is_file()


def test_a_backup_is_whole_private_and_can_be_put_back(
    old_database: Path, mailcheck: Mailcheck, tmp_path: Path
) -> None:
    """A restore removes later data, and keeps the replaced database beside the restored one."""
    copy = tmp_path / "copy.db"
    mailcheck("account", "add", "alice")
    assert mailcheck("store", "backup", str(copy)).status == 0
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    mailcheck("account", "add", "bob")
    restored = mailcheck("store", "restore", str(copy))
    assert restored.status == 0
    names = [line.split()[0] for line in mailcheck("account", "list").lines]
    assert names == ["developer", "alice"]
    aside = old_database.with_name("mail.db.replaced-1")
    assert str(aside) in restored.errors
    with closing(sqlite3.connect(aside)) as connection:
        assert ("bob",) in connection.execute("SELECT name FROM account").fetchall()


def test_a_copy_is_only_read(old_database: Path, mailcheck: Mailcheck, tmp_path: Path) -> None:
    """A copy is restored from a folder in which SQLite cannot create files beside it."""
    copy = tmp_path / "copy.db"
    mailcheck("account", "add", "alice")
    mailcheck("store", "backup", str(copy))
    before = copy.read_bytes()
    for beside in ("-wal", "-shm"):
        copy.with_name(f"copy.db{beside}").mkdir()
    assert mailcheck("store", "restore", str(copy)).status == 0
    assert "alice" in mailcheck("account", "list").output
    assert copy.read_bytes() == before


def test_a_copy_with_a_log(old_database: Path, mailcheck: Mailcheck, tmp_path: Path) -> None:
    """A file that was copied together with its log is restored with the content of the log."""
    copy = tmp_path / "copy.db"
    mailcheck("account", "list")
    with closing(sqlite3.connect(old_database, isolation_level=None)) as connection:
        connection.execute("UPDATE account SET name = 'renamed'")
        for end in ("", "-wal"):
            copy.with_name(f"copy.db{end}").write_bytes(Path(f"{old_database}{end}").read_bytes())
    assert mailcheck("store", "restore", str(copy)).status == 0
    assert "renamed" in mailcheck("account", "list").output


def test_a_backup_takes_nobody_s_place(old_database: Path, mailcheck: Mailcheck) -> None:
    """An existing file is not overwritten."""
    taken = old_database.with_name("taken")
    taken.write_text("mine")
    done = mailcheck("store", "backup", str(taken))
    assert (done.status, taken.read_text()) == (1, "mine")
    assert "already exists" in done.errors


def test_a_daemon_s_database_is_not_replaced(
    old_database: Path, mailcheck: Mailcheck, tmp_path: Path
) -> None:
    """A database in use is not replaced: the restore says to stop the daemon."""
    copy = tmp_path / "copy.db"
    mailcheck("store", "backup", str(copy))
    with closing(sqlite3.connect(old_database, isolation_level=None)) as daemon:
        daemon.execute("PRAGMA journal_mode = WAL")
        daemon.execute("SELECT COUNT(*) FROM account").fetchone()
        done = mailcheck("store", "restore", str(copy))
    assert done.status == 1
    assert "stop the daemon first" in done.errors


@pytest.mark.parametrize("damage", [lambda data: data[:5000], lambda _: b"no database"])
def test_a_broken_copy_is_not_put_back(
    old_database: Path,
    mailcheck: Mailcheck,
    tmp_path: Path,
    damage: Callable[[bytes], bytes],
) -> None:
    """A file that is not a complete database of mailcheck changes no data."""
    copy = tmp_path / "copy.db"
    copy.write_bytes(damage(old_database.read_bytes()))
    before = old_database.read_bytes()
    assert mailcheck("store", "restore", str(copy)).status == 1
    assert old_database.read_bytes() == before


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE inbox SET message_count = 7", "the message counter is 7, but it has 3 messages"),
        ("UPDATE inbox SET byte_count = 1", "the byte counter is 1"),
        ("UPDATE inbox SET last_position = 1", "after the last one, 1"),
        (
            "UPDATE inbox_tag SET message_count = 9 WHERE tag = 'signup'",
            "is 9, but it has 1 messages",
        ),
        ("DELETE FROM message", "belong to no message, test, report or route"),
        ("DELETE FROM account", "refers to a missing"),
    ],
)
def test_a_check_names_what_does_not_add_up(
    old_database: Path, mailcheck: Mailcheck, sql: str, said: str
) -> None:
    """Wrong counters, mail without an owner and rows without a parent are reported."""
    with closing(sqlite3.connect(old_database)) as connection:
        connection.execute(sql)
        connection.commit()
    done = mailcheck("store", "check")
    assert done.status == 1
    assert said in done.output


def test_what_is_checked_must_be_there(elsewhere: Mailcheck, database: Path) -> None:
    """In a wrong folder no file is created, and the error says that the database is missing."""
    done = elsewhere("store", "check")
    assert (done.status, database.exists()) == (1, False)
    assert f"there is no database {database}" in done.errors


def test_init_writes_what_serve_needs(tmp_path: Path) -> None:
    """A configuration, an account and its key are created, and no file is overwritten."""
    done = run_command("init", "mine.toml", "--domain", "mail.example.org")
    assert done.status == 0
    assert "@mail.example.org" in done.output
    key = tmp_path / "var" / "api-key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "var" / "mailcheck.db").stat().st_mode) == 0o600
    assert run_command("--config", "mine.toml", "config", "check").status == 0
    listed = run_command("--config", "mine.toml", "key", "list").output
    assert key.read_text()[:6] in listed
    again = run_command("init", "mine.toml")
    assert (again.status, "nothing was changed" in again.errors) == (1, True)
