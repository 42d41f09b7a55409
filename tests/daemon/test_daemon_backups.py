"""Backups on a schedule: when they are made, what is kept, and that they can be restored."""

import gzip
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone, ProcessTerminated
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.memory.instruments import Conditions
from mailcheck.daemon.backups import BACKUP, BUSY, INTERVAL, PATIENCE, RETRY, BackupPlan, Backups
from mailcheck.engines.backup import restore
from mailcheck.engines.backup_process import make_backup
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.operations.backups import find_backups, name_of_backup
from mailcheck.workers.scheduling import DirectWorker
from tests.house import result_of
from tests.table import rows

OLD_DATABASE = Path(__file__).parents[1] / "engines" / "version-0.1.db.gz"
START = datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()
HOUR = 3_600.0


class Machine(Clock):
    """A reactor whose processes are ended by the test."""

    def __init__(self) -> None:
        super().__init__()
        self.advance(START)
        self.started: list[tuple[Any, Sequence[str]]] = []
        self.signals: list[str] = []
        self.sent = b""

    def spawnProcess(
        self, protocol: Any, _: str, arguments: Sequence[str], env: Mapping[str, str]
    ) -> None:
        """Record a process."""
        self.started.append((protocol, arguments))
        protocol.transport = self
        protocol.connectionMade()

    def write(self, data: bytes) -> None:
        """Record what is sent to a process."""
        self.sent += data

    def closeStdin(self) -> None:
        """Accept the end of the input."""

    def signalProcess(self, name: str) -> None:
        """Record a signal."""
        self.signals.append(name)

    def end(self, status: int = 0, problem: bytes = b"") -> None:
        """End the newest process. It has made its backup if its status is 0."""
        protocol, arguments = self.started[-1]
        if not status:
            Path(arguments[3]).parent.mkdir(exist_ok=True)
            Path(arguments[3]).write_bytes(b"backup")
        protocol.errReceived(problem)
        why: Exception = ProcessTerminated(status) if status else ProcessDone(0)
        protocol.processEnded(Failure(why))


class Scheduled:
    """The backups of a daemon."""

    def __init__(self, folder: Path, every: float = 24.0) -> None:
        self.machine, self.conditions = Machine(), Conditions()
        self.folder = folder / "backup"
        self.plan = BackupPlan(every, 2, self.folder, "sqlite:/mail.db", 7)
        self.backups = Backups(
            lambda: self.plan, self.conditions, self.machine.seconds, self.machine
        )
        self.backups.startService()

    def look(self, seconds: float = 0.0) -> bool:
        """Let time pass and look for due backups. Return whether a process was started."""
        self.machine.advance(seconds)
        before = len(self.machine.started)
        Deferred.fromCoroutine(self.backups.look())
        return len(self.machine.started) > before

    @property
    def names(self) -> list[str]:
        """The names of the backups, the newest first."""
        return [backup.path.name for backup in find_backups(self.folder)]


def test_backups_are_made_in_time(tmp_path: Path) -> None:
    """The first is made at once, the next ones after the interval, and the newest ones are kept.

    Other files in the folder stay. After a restart, the newest one counts.
    """
    one = Scheduled(tmp_path)
    assert one.look()
    _, command = one.machine.started[0]
    assert command[1:3] == ["-m", "mailcheck.engines.backup_process"]
    assert command[3:] == [str(one.folder / "mailcheck-20261129T120000Z.db"), "7"]
    assert one.machine.sent == b"sqlite:/mail.db"
    one.machine.end()
    (one.folder / "notes.db").write_text("mine")
    assert not one.look(24 * HOUR - 1)
    for _ in range(2):
        assert one.look(24 * HOUR)
        one.machine.end()
    assert one.names == ["mailcheck-20261202T115959Z.db", "mailcheck-20261201T115959Z.db"]
    assert (one.folder / "notes.db").exists()
    assert one.backups.newest is not None
    assert one.backups.newest.made_at == one.machine.seconds()
    assert not Scheduled(tmp_path, every=0).look()
    again = Scheduled(tmp_path)
    assert not again.look(one.machine.seconds() - START + 23 * HOUR)
    assert again.look(HOUR)
    assert one.backups.outcomes.counts == {("made",): 3}


def test_a_failed_backup_is_a_problem_until_the_next_one(tmp_path: Path) -> None:
    """A failure is reported with its cause, and tried again after ten minutes.

    A backup of another daemon is no failure.
    """
    one = Scheduled(tmp_path)
    one.look()
    one.machine.end(1, b"warning\nthe disk is full\n")
    assert one.conditions.for_operator(BACKUP) == (
        "the last one failed, and is tried again: the disk is full"
    )
    assert not one.look(RETRY - 1)
    assert one.look(1)
    one.machine.end(BUSY)
    assert one.conditions.problems[BACKUP]
    assert one.look(INTERVAL)
    one.machine.end()
    assert one.conditions.problems[BACKUP] == ""
    assert one.backups.outcomes.counts == {("failed",): 1, ("made",): 1}


def test_a_stop_ends_the_backup(tmp_path: Path) -> None:
    """A backup that is being made does not delay the end of the daemon for long."""
    one = Scheduled(tmp_path)
    one.look()
    ended: list[Any] = []
    one.backups.stopService().addCallback(ended.append)
    assert one.machine.signals == ["TERM"]
    one.machine.advance(PATIENCE)
    assert one.machine.signals == ["TERM", "KILL"]
    assert ended == []
    one.machine.end(1)
    assert ended
    assert one.conditions.problems.get(BACKUP, "") == ""


def write_database(path: Path) -> None:
    """Write a database file with an account and mail."""
    path.write_bytes(gzip.decompress(OLD_DATABASE.read_bytes()))
    engine = SqliteEngine(str(path), DirectWorker(), DirectWorker())
    engine.open()
    result_of(engine.close())


def content(path: Path) -> list[str]:
    """Return the whole content of a database file as statements."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_the_newest_backup_can_be_restored(tmp_path: Path) -> None:
    """A backup has the whole content, and is restored over a database that was lost."""
    database = tmp_path / "mail.db"
    write_database(database)
    before = content(database)
    folder = tmp_path / "backup"
    for seconds in (0.0, 1.0):
        make_backup(f"sqlite:{database}", folder / name_of_backup("sqlite:", START + seconds), 0)
    newest, _ = find_backups(folder)
    assert newest.made_at == START + 1
    assert newest.path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    database.write_bytes(b"")
    restore(newest.path, database)
    assert content(database) == before


def break_counter(database: Path) -> None:
    """Make a counter of an inbox wrong, which only mailcheck's own check finds."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("UPDATE inbox SET message_count = 99")


def lose(database: Path) -> None:
    """Delete the database."""
    database.unlink()


@rows(
    (break_counter, 0, "the copy is not correct: inbox dev-lwgngioajnhhh: the message counter"),
    (lose, 0, "there is no database"),
    (lambda _: None, 2**60, "a backup needs"),
)
def test_no_wrong_backup_has_a_name(
    tmp_path: Path, damage: Any, least_free: int, problem: str
) -> None:
    """A copy that is not correct or does not fit is not kept, and the problem is told.

    Leftovers of killed processes are deleted.
    """
    database, folder = tmp_path / "mail.db", tmp_path / "backup"
    write_database(database)
    damage(database)
    folder.mkdir(exist_ok=True)
    (folder / "mailcheck-20260101T000000Z.db.unchecked.part").write_text("half")
    with pytest.raises(StoreUnavailable, match=problem):
        make_backup(f"sqlite:{database}", folder / name_of_backup("sqlite:", START), least_free)
    assert list(folder.iterdir()) == []


def test_a_backup_of_postgresql_can_be_restored(postgresql_database: str, tmp_path: Path) -> None:
    """The backup is a dump that pg_restore reads. Without the database, the problem is told."""

    def run(statement: str) -> list[str]:
        with closing(psycopg2.connect(postgresql_database)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(f"{statement}; SELECT * FROM note ORDER BY 1")
                return [text for (text,) in cursor.fetchall()]

    assert run("CREATE TABLE note (text text); INSERT INTO note VALUES ('first')") == ["first"]
    path = tmp_path / "backup" / name_of_backup(postgresql_database, START)
    make_backup(postgresql_database, path, 0)
    assert [backup.path.suffix for backup in find_backups(path.parent)] == [".dump"]
    assert run("INSERT INTO note VALUES ('second')") == ["first", "second"]
    command = ["pg_restore", "--clean", f"--dbname={postgresql_database}", str(path)]
    subprocess.run(command, check=True)
    assert run("SELECT 1") == ["first"]
    with pytest.raises(StoreUnavailable, match="refused"):
        make_backup("postgresql://127.0.0.1:1/none", path.with_name("x.dump"), 0)
