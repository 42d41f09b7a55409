"""Room on the disk that mail may not fill, for what makes room: deleting, expiry, and the start.

SQLite writes a page twice: into its log when a transaction is committed, and into the file when
the log is moved there (a checkpoint), after which the log begins anew. On a disk that fills up
between the two the log could not be moved: it would never begin anew, and there would be no room
to delete anything, for ever. What is kept here is kept in blocks that belong to the files already,
so that no other program, and no other write of ours, can take it:

* The file has blocks for each page before that is committed (`FileReserve`), so a checkpoint needs
  no room. Deleting takes no page as a rule; for those that it may take before it frees some (where
  one of an index is split) the file has a few more, on which nothing else draws.
* The log has blocks of its own. Begun anew it has room for one transaction, and what deletes much
  does so in several, which are made smaller until they fit.
* A file beside them is kept for the start: the log goes when the daemon ends, and its blocks go
  back to that file.

That holds where files are overwritten in place, as on ext4, XFS and tmpfs. Elsewhere, and where
blocks can't be asked for, a full disk is survived as well as it goes.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

from mailcheck.core.errors import StoreFull, StoreUnavailable

MAX_LOG = 8 * 1024 * 1024
"""Bytes that the log keeps: more than to delete some hundred messages takes."""

LOG_DISK_FRACTION = 16
"""The log of a disk that is small keeps less: one part of so many."""

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


class DiskReserve:
    """The log's own blocks, and a file beside the database that becomes them at the start."""

    def __init__(self, database: str) -> None:
        self._database = Path(database)
        self._path = Path(f"{database}.reserve")
        self._log_of_database = Path(f"{database}-wal")
        self._is_allocated = False

    def free_for_mail(self) -> int:
        """Say how many bytes the disk has left beside the reserve; none while that is not whole.

        :raises StoreUnavailable: the disk can't be asked.
        """
        free, log = _measure(self._path.parent)
        if not self._is_allocated:
            # Twice: at the edge it would be full and not full again and again.
            if free < 2 * log or not self._allocate_reserve(log):
                return 0
            free -= log
        return free

    def note_full(self) -> bool:
        """Take note that the disk is full, until there is room again for all that is kept.

        Tells whether that is news.
        """
        was_held, self._is_allocated = self._is_allocated, False
        return was_held

    def free_for_start(self) -> None:
        """Before the start: what that writes must have room."""
        with suppress(StoreUnavailable, OSError):  # no such file: opening will tell
            free, log = _measure(self._path.parent)
            if self._database.stat().st_size and free < log and _size(self._log_of_database) < log:
                spare = _size(self._path)
                os.truncate(self._path, 0)
                # SQLite takes a log of zeros for an empty one.
                _allocate(self._log_of_database, min(log, spare * 2 // 3), os.O_CREAT)

    def keep_for_start(self) -> None:
        """After the end: what was the log's is kept for the next start, as far as it is there."""
        with suppress(StoreUnavailable, OSError):
            _, log = _measure(self._path.parent)
            wanted = range(_start_reserve_size(log), 0, -max(log // 8, 1))
            any(_allocate(self._path, size, os.O_CREAT) for size in wanted)

    def _allocate_reserve(self, log: int) -> bool:
        try:
            self._is_allocated = _allocate(self._path, _start_reserve_size(log), os.O_CREAT)
            with suppress(FileNotFoundError):  # nothing was ever written
                self._is_allocated &= _allocate(self._log_of_database, log)
        except OSError:
            return False
        return self._is_allocated


class FileReserve:
    """Blocks of a database file for the pages that its log holds; for the process that writes."""

    def __init__(self, database: str) -> None:
        self._database = database
        _, self.log = _measure(Path(database).parent)
        """Bytes that the log keeps."""
        self.spare = self.log // 4
        """Bytes that the file has beyond its pages, as long as the disk has room."""
        self._octets = 0
        self._file: int | None = None

    def allocate(self, octets: int, spare: int) -> None:
        """See that the file has blocks for so many bytes of pages, and ``spare`` bytes more.

        :raises StoreFull: the disk has not as many.
        """
        if self._file is None:
            # It is closed after SQLite's own: to close it takes away the locks of these.
            self._file = os.open(self._database, os.O_RDWR | os.O_CLOEXEC)
        size = os.fstat(self._file).st_size
        if size < octets + spare:
            # What another process has cut off at this moment is covered again.
            start = max(0, size - 2 * self.spare)
            # Take as much more as possible, so that most commits need no new blocks.
            wanted = octets + spare - start
            more = (self.spare, self.spare // 2, self.spare // 4, 0)
            if not any(_has_allocated(self._file, start, wanted + one) for one in more):
                raise StoreFull("the server's disk is full; try again later")
        self._octets = octets

    def reallocate(self) -> None:
        """After a checkpoint, which has cut off what the file has beyond its pages: take it again.

        Or what can be had of it.
        """
        for part in (1, 2, 4, 8, 16):
            with suppress(StoreFull):
                self.allocate(self._octets, self.spare // part)
                break

    def close(self) -> None:
        """Let go of the file; no connection of this process is open any more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _measure(folder: Path) -> tuple[int, int]:
    """Give the free bytes of a disk, and how many of such a disk a log keeps."""
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        raise StoreUnavailable(f"the database's disk can't be read: {error}") from error
    log = min(MAX_LOG, disk.f_blocks * disk.f_frsize // LOG_DISK_FRACTION)
    return disk.f_bavail * disk.f_frsize, log


def _start_reserve_size(log: int) -> int:
    """Return the bytes kept for the next start: a log, its index and what `FileReserve` keeps."""
    return log + log // 2


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _allocate(path: Path, size: int, flags: int = 0) -> bool:
    file = os.open(path, os.O_WRONLY | flags, 0o600)
    try:
        return _has_allocated(file, 0, size)
    finally:
        os.close(file)


def _has_allocated(file: int, start: int, size: int) -> bool:
    """Give a file blocks; true also where nobody can ask for them (as on macOS)."""
    try:
        os.posix_fallocate(file, start, size)
    except AttributeError:
        pass
    except OSError as error:
        return error.errno not in _FULL
    return True
