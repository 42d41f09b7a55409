"""A disk that is full, fails or is locked by somebody: try later, and then it works again."""

import resource
import smtplib
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.end_to_end.load import send
from tests.servers.daemon import HOST, Daemon, running_daemon

pytestmark = pytest.mark.end_to_end

MEBIBYTE = 1024 * 1024
DISK_SIZE = 12 * MEBIBYTE
ROOM = 3 * MEBIBYTE
"""What is left for mail on a disk that is about to be full."""

MAIL = b"Subject: large\r\nContent-Type: application/octet-stream\r\n\r\n" + b"x" * 70 * 1024
TEMPORARY = {451, 452}


class Disk(Protocol):
    """A disk that can run out of room while a daemon writes to it."""

    folder: Path

    def fill(self, daemon: Daemon) -> None:
        """Leave `ROOM`."""

    def make_room(self, daemon: Daemon) -> None:
        """Give the room back."""


class SmallFilesystem:
    """A filesystem of its own, filled by a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, daemon: Daemon) -> None:
        """Write the filler."""
        self._filler.write_bytes(bytes(DISK_SIZE - ROOM))

    def make_room(self, daemon: Daemon) -> None:
        """Delete the filler."""
        self._filler.unlink()


class FileSizeLimit:
    """Writes that fail beyond a size: RLIMIT_FSIZE of the daemon's processes."""

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
    """Mount a small filesystem; where nobody may mount, limit the size of files instead."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        yield FileSizeLimit(folder)
        return
    yield SmallFilesystem(folder)
    subprocess.run(["umount", str(folder)], check=True)


def require_resuming(disk: Disk, daemon: Daemon) -> None:
    """Send until the disk is full, make room, and send again."""
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
        assert send(client, [recipient], MAIL) == 250
    assert daemon.total() == acknowledged + 1
    daemon.kill()
    daemon.start()
    assert daemon.total() == acknowledged + 1


def test_full_disk(small_disk: Disk, tmp_path: Path) -> None:
    """A full disk is a temporary failure: nothing acknowledged is lost, and delivery resumes."""
    url = f"sqlite:{small_disk.folder}/mailcheck.db"
    with running_daemon(tmp_path, storage_url=url) as daemon:
        require_resuming(small_disk, daemon)


def test_failing_writes(daemon: Daemon) -> None:
    """So are writes that fail: nothing acknowledged is lost, and delivery resumes."""
    require_resuming(FileSizeLimit(daemon.folder), daemon)


def test_locked_database(daemon: Daemon) -> None:
    """While another process locks the database mail gets 451 and readers read; then it resumes."""
    recipient = daemon.address()
    codes: list[int] = []
    lock = sqlite3.connect(daemon.folder / "var" / "mailcheck.db", isolation_level=None)
    with smtplib.SMTP(HOST, daemon.smtp_port) as client:
        assert send(client, [recipient], MAIL) == 250
        lock.execute("BEGIN EXCLUSIVE")
        sender = threading.Thread(target=lambda: codes.append(send(client, [recipient], MAIL)))
        sender.start()
        assert daemon.total() == 1
        assert not codes, "the lock did not hold the sender up"
        sender.join()
        assert codes == [451]
        lock.execute("ROLLBACK")
        assert send(client, [recipient], MAIL) == 250
    lock.close()
    assert daemon.total() == 2
