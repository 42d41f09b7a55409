"""Disk space reserved for deleting, expiry and the start, which mail cannot use.

SQLite writes a page twice. A commit writes it to the log (WAL), and a checkpoint moves the log to
the file, after which the log restarts. If the disk became full between the two, no checkpoint could
finish. The log would then grow for ever, without room to delete anything. The reserve therefore
consists of blocks that already belong to the files, so that no other program or write can take
them:

* The file has blocks for each page before the page is committed (`FileReserve`), so a checkpoint
  needs no room. Deleting takes no page as a rule. For a page of a split index the file has a few
  spare blocks, which are used for nothing else.
* The log has its own blocks. After a restart it has room for one transaction. Large deletions are
  split into transactions that become smaller until they fit.
* A file beside them is reserved for the start. The log is deleted when the daemon stops, and its
  blocks return to that file.

This requires a file system that overwrites files in place, such as ext4, XFS and tmpfs. On others,
and where blocks cannot be preallocated, a full disk is handled as far as possible.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

from mailcheck.core.errors import StoreFull, StoreUnavailable

MAX_LOG = 8 * 1024 * 1024
"""Bytes reserved for the log: more than deleting a few hundred messages needs."""

LOG_DISK_FRACTION = 16
"""On a small disk the log gets less: the size of the disk divided by this."""

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


class DiskReserve:
    """The blocks of the log, and a file beside the database that becomes the log at the start."""

    def __init__(self, database: str) -> None:
        self._database = Path(database)
        self._path = Path(f"{database}.reserve")
        self._log_of_database = Path(f"{database}-wal")
        self._is_allocated = False

    def free_for_mail(self) -> int:
        """Return the free bytes of the disk without the reserve; 0 while the reserve is incomplete.

        :raises StoreUnavailable: the disk cannot be queried.
        """
        free, log = _measure(self._path.parent)
        if not self._is_allocated:
            # Twice the size: otherwise the state would flap between full and not full.
            if free < 2 * log or not self._allocate_reserve(log):
                return 0
            free -= log
        return free

    def note_full(self) -> bool:
        """Record that the disk is full, until there is room for the whole reserve.

        :return: whether this is new.
        """
        was_held, self._is_allocated = self._is_allocated, False
        return was_held

    def free_for_start(self) -> None:
        """Provide room for the writes of a start."""
        with suppress(StoreUnavailable, OSError):  # a missing file: opening it reports that
            free, log = _measure(self._path.parent)
            if self._database.stat().st_size and free < log and _size(self._log_of_database) < log:
                spare = _size(self._path)
                os.truncate(self._path, 0)
                # SQLite takes a log of zeros for an empty one.
                _allocate(self._log_of_database, min(log, spare * 2 // 3), os.O_CREAT)

    def keep_for_start(self) -> None:
        """Reserve the blocks of the log, as far as possible, for the start after this stop."""
        with suppress(StoreUnavailable, OSError):
            _, log = _measure(self._path.parent)
            wanted = range(_start_reserve_size(log), 0, -max(log // 8, 1))
            any(_allocate(self._path, size, os.O_CREAT) for size in wanted)

    def _allocate_reserve(self, log: int) -> bool:
        try:
            self._is_allocated = _allocate(self._path, _start_reserve_size(log), os.O_CREAT)
            with suppress(FileNotFoundError):  # no write yet
                self._is_allocated &= _allocate(self._log_of_database, log)
        except OSError:
            return False
        return self._is_allocated


class FileReserve:
    """Blocks of a database file for the pages in its log; used by the process that writes."""

    def __init__(self, database: str) -> None:
        self._database = database
        _, self.log = _measure(Path(database).parent)
        """Bytes reserved for the log."""
        self.spare = self.log // 4
        """Spare bytes of the file beyond its pages, while the disk has room."""
        self._octets = 0
        self._file: int | None = None

    def allocate(self, octets: int, spare: int) -> None:
        """Ensure that the file has blocks for ``octets`` of pages, and ``spare`` bytes more.

        :raises StoreFull: the disk has less room.
        """
        if self._file is None:
            # Closed after SQLite's connections: closing it releases their locks.
            self._file = os.open(self._database, os.O_RDWR | os.O_CLOEXEC)
        size = os.fstat(self._file).st_size
        if size < octets + spare:
            # This also covers what another process truncates at this moment.
            start = max(0, size - 2 * self.spare)
            # Take more if possible, so that most commits need no new blocks.
            wanted = octets + spare - start
            more = (self.spare, self.spare // 2, self.spare // 4, 0)
            if not any(_has_allocated(self._file, start, wanted + extra) for extra in more):
                raise StoreFull("the server's disk is full; try again later")
        self._octets = octets

    def reallocate(self) -> None:
        """Allocate the spare bytes, or a part, again after a checkpoint has truncated them."""
        for part in (1, 2, 4, 8, 16):
            with suppress(StoreFull):
                self.allocate(self._octets, self.spare // part)
                break

    def close(self) -> None:
        """Close the file, after all connections of this process are closed."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _measure(folder: Path) -> tuple[int, int]:
    """Return the free bytes of a disk, and the size of the log for such a disk."""
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        raise StoreUnavailable(f"the database's disk cannot be read: {error}") from error
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
    """Allocate blocks for a file; also true where this is not supported (macOS)."""
    try:
        os.posix_fallocate(file, start, size)
    except AttributeError:
        pass
    except OSError as error:
        return error.errno not in _FULL
    return True
