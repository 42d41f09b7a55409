"""A disk that is full, fails or is locked is a temporary failure, and the daemon recovers."""

import resource
import smtplib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.end_to_end.load import send
from tests.servers.clocks import accelerated
from tests.servers.daemon import HOST, READY, Daemon, running_daemon
from tests.small_disk import SmallDisk, mounted

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]

MEBIBYTE = 1024 * 1024
DISK_SIZE = 12 * MEBIBYTE
ROOM = 4 * MEBIBYTE
"""Free space for mail on a disk that is about to be full."""

MAIL = b"Subject: large\r\nContent-Type: application/octet-stream\r\n\r\n" + b"x" * 70 * 1024
TEMPORARY = {451, 452}


class Disk(Protocol):
    """A disk that can be filled while a daemon writes to it."""

    folder: Path

    def fill(self, daemon: Daemon) -> None:
        """Fill the disk up to `ROOM`."""

    def make_room(self, daemon: Daemon) -> None:
        """Free the space."""


class FilledByFile:
    """A small disk, filled by a file."""

    def __init__(self, disk: SmallDisk) -> None:
        self.folder = disk.folder
        self.fill_up = disk.fill_up
        self._disk = disk

    def fill(self, daemon: Daemon) -> None:
        """Write the file."""
        self._disk.fill(DISK_SIZE - ROOM)

    def make_room(self, daemon: Daemon) -> None:
        """Delete the file."""
        self._disk.make_room()


class FileSizeLimit:
    """Writes that fail beyond a file size: RLIMIT_FSIZE of the daemon's processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, daemon: Daemon) -> None:
        """Set the limit."""
        for pid in daemon.pids():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))

    def make_room(self, daemon: Daemon) -> None:
        """Lift the limit."""
        for pid in daemon.pids():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """Mount a small filesystem, or limit the size of files if the user may not mount."""
    folder = tmp_path / "small"
    with mounted(folder, DISK_SIZE) as disk:
        yield FileSizeLimit(folder) if disk is None else FilledByFile(disk)


def require_resuming(disk: Disk, daemon: Daemon) -> None:
    """Send until the disk is full, free space, and send again."""
    recipient = daemon.address()
    disk.fill(daemon)
    acknowledged = 0
    with smtplib.SMTP(HOST, daemon.smtp_port) as client:
        while (code := send(client, [recipient], MAIL)) == 250:
            acknowledged += 1
            assert acknowledged < DISK_SIZE / len(MAIL), "the disk was never full"
        assert code in TEMPORARY
        assert send(client, [recipient], MAIL) in TEMPORARY
        assert daemon.total() == acknowledged
        disk.make_room(daemon)
        daemon.wait_until(lambda: send(client, [recipient], MAIL) == 250)
    assert daemon.total() == acknowledged + 1
    daemon.kill()
    daemon.start()
    assert daemon.total() == acknowledged + 1


def test_full_disk(small_disk: Disk, tmp_path: Path) -> None:
    """A full disk is a temporary failure: no acknowledged mail is lost, and delivery resumes."""
    url = f"sqlite:{small_disk.folder}/mailcheck.db"
    with running_daemon(tmp_path, storage_url=url) as daemon:
        require_resuming(small_disk, daemon)


def test_a_full_disk_is_a_state(small_disk: Disk, tmp_path: Path) -> None:
    """On a disk filled to the last byte the daemon reads, deletes, starts and reports its state,
    and mail gets 452.

    Without the right to mount a filesystem this test is skipped.
    """
    if not isinstance(small_disk, FilledByFile):
        return
    folder = small_disk.folder
    options = {"storage_url": f"sqlite:{folder}/mailcheck.db", "storage_state_directory": folder}
    with running_daemon(
        tmp_path,
        environment=accelerated(),  # the disk is checked every ten seconds
        **{name: str(value) for name, value in options.items()},
    ) as daemon:
        daemon._key = (folder / "api-key").read_text().strip()
        recipient = daemon.address("full")
        with smtplib.SMTP(HOST, daemon.smtp_port) as client:
            for _ in range(3):
                assert send(client, [recipient], MAIL) == 250
            small_disk.fill_up()
            while (code := send(client, [recipient], MAIL)) == 250:
                pass
            assert code == 452
            small_disk.fill_up()
            cursor = daemon.cursor()
            assert client.docmd("MAIL FROM:<a@example.com>")[0] == 250
            assert client.docmd(f"RCPT TO:<{daemon.address('later')}>")[0] == 452
        waited = daemon.get("/inbox/wait", tag="later", timeout=1, after=cursor)
        assert waited.status == 408
        assert any("short of disk space" in one["reason"] for one in waited.json["rejected"])
        daemon.wait_until(lambda: b"frees" in daemon.open("/readyz").body)
        state = daemon.open("/readyz")
        assert state.status == 503
        assert "disk: it is full" in state.json["error"]
        assert "warn disk: it is full" in daemon.output()
        assert state.json["frees"]["deleting all mail"] >= 3 * len(MAIL)
        for starts in range(2):
            if starts:
                daemon.kill()
                small_disk.fill_up()
                daemon.launch()  # it is not ready on a full disk
                daemon.wait_until(lambda: READY in daemon.output())
            first = daemon.get("/inbox/messages").json["messages"][0]["id"]
            assert daemon.get(f"/inbox/messages/{first}").status == 200
            assert daemon.request("DELETE", f"/inbox/messages/{first}").status == 200
        small_disk.make_room(daemon)
        with smtplib.SMTP(HOST, daemon.smtp_port) as client:
            daemon.wait_until(lambda: send(client, [recipient], MAIL) == 250)


def test_failing_writes(daemon: Daemon) -> None:
    """Failed writes are temporary too: no acknowledged mail is lost, and delivery resumes."""
    require_resuming(FileSizeLimit(daemon.folder), daemon)


def test_locked_database(hurried_daemon: Daemon) -> None:
    """While another process locks the database, mail gets 451 and reads work; then it resumes."""
    daemon = hurried_daemon
    recipient = daemon.address()
    codes: list[int] = []
    lock = sqlite3.connect(daemon.folder / "var" / "mailcheck.db", isolation_level=None)
    with smtplib.SMTP(HOST, daemon.smtp_port) as client:
        assert send(client, [recipient], MAIL) == 250
        lock.execute("BEGIN EXCLUSIVE")
        sender = threading.Thread(target=lambda: codes.append(send(client, [recipient], MAIL)))
        sender.start()
        assert daemon.total() == 1
        assert not codes, "the sender was not blocked by the lock"
        sender.join()
        assert codes == [451]
        daemon.wait_until(lambda: not daemon.is_ready())
        assert "warn store: " in daemon.output()
        lock.execute("ROLLBACK")
        assert send(client, [recipient], MAIL) == 250
    lock.close()
    assert daemon.total() == 2
    daemon.wait_until(daemon.is_ready)


def test_two_daemons_on_one_file(daemon: Daemon) -> None:
    """A second daemon refuses to start and names the first, and starts when the first is killed."""
    second = Daemon(daemon.folder, environment=accelerated())  # it retries for seconds
    second.launch()
    try:
        assert second.when_ended() == 1
        why = f"mailcheck: another daemon (process {daemon.process.pid}) uses var/mailcheck.db:"
        assert why in second.output()
        assert daemon.total() == 0
        daemon.kill()
        second.start()
        assert second.total() == 0
    finally:
        second.kill()
