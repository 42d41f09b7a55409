"""Room on the disk that mail may not fill, for what makes room: deleting, expiry, and the start."""

import os
from contextlib import suppress
from pathlib import Path

from twisted.logger import Logger

from mailcheck.core.errors import StoreUnavailable

LARGEST = 8 * 1024 * 1024
"""Bytes: what thousands of messages that are deleted write into the log of the database."""

PART_OF_DISK = 16
"""A disk that is small keeps less: one part of so many."""


class DiskReserve:
    """Blocks that nobody uses: a file beside the database, and the log's own.

    When the disk is full the file is emptied: what stands in the log of the database moves into
    the database there, and from then on the log has room in its own blocks, which no other
    program can take.
    """

    _log = Logger()

    def __init__(self, database: str) -> None:
        self._path = Path(f"{database}.reserve")
        self._log_of_database = Path(f"{database}-wal")
        self._is_held = False

    def free_for_mail(self) -> int:
        """Say how many bytes the disk has left beside the reserve; none while that is not whole.

        :raises StoreUnavailable: the disk can't be asked.
        """
        free, size = self._look()
        if not self._is_held:
            # Twice: at the edge it would be taken and given back again and again.
            if free < 2 * size or not self._hold(size):
                return 0
            free -= size
        return free

    def release(self) -> None:
        """Give the room away."""
        self._is_held = False
        with suppress(OSError):
            if self._path.stat().st_size:
                os.truncate(self._path, 0)
                self._log.error(
                    "the disk is full: mail is refused until there is room; what is kept in "
                    "reserve goes to deleting and expiry"
                )

    def make_way(self) -> None:
        """Before the start: what that writes must have room."""
        with suppress(StoreUnavailable):  # no such folder: opening will tell
            free, size = self._look()
            if free < size:
                self.release()

    def _look(self) -> tuple[int, int]:
        """Give the free bytes, and how large the reserve of such a disk is."""
        try:
            disk = os.statvfs(self._path.parent)
        except OSError as error:
            raise StoreUnavailable(f"the database's disk can't be read: {error}") from error
        size = min(LARGEST, disk.f_blocks * disk.f_frsize // PART_OF_DISK)
        return disk.f_bavail * disk.f_frsize, size

    def _hold(self, size: int) -> bool:
        try:
            _allocate(self._path, size, os.O_CREAT)
            with suppress(FileNotFoundError):  # nothing was ever written
                _allocate(self._log_of_database, size)
        except AttributeError:
            pass  # a system without posix_fallocate, as macOS: there is no reserve
        except OSError:
            return False
        self._is_held = True
        return True


def _allocate(path: Path, size: int, flags: int = 0) -> None:
    file = os.open(path, os.O_WRONLY | flags, 0o600)
    try:
        os.posix_fallocate(file, 0, size)
    finally:
        os.close(file)
