"""The process that makes one scheduled backup: ``python -m mailcheck.engines.backup_process``.

It is separate from the daemon, so that a large copy takes no time of it, and can be ended. Its
arguments are the new file, and the bytes that must stay free on the disk of the database. The URL
of the database arrives on standard input, since it may contain a password.
"""

import fcntl
import os
import shutil
import signal
import sys
from contextlib import closing, suppress
from pathlib import Path

from mailcheck.core.errors import StoreUnavailable
from mailcheck.engines.backup import back_up, check_file, check_rows, open_to_read
from mailcheck.engines.sqlite_writer import as_unavailable, run_query

NICENESS = 10

BUSY = 75
"""Exit status while another process makes a backup in the same folder (EX_TEMPFAIL)."""

UNCHECKED = ".unchecked"
"""Suffix of a copy until it is known to be correct."""

MEBIBYTE = 1024 * 1024


def main() -> None:
    """Make a backup. Exit with 1, and the problem on standard error, if that fails."""
    # An exception ends the program that copies PostgreSQL, and deletes the partial file.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.umask(0o077)
    with suppress(OSError):
        os.nice(NICENESS)
    path, least_free = sys.argv[1:]
    try:
        make_backup(sys.stdin.read(), Path(path), int(least_free))
    except BlockingIOError:
        sys.exit(BUSY)
    except (StoreUnavailable, OSError) as error:
        sys.exit(str(error))


def make_backup(url: str, path: Path, least_free: int) -> None:
    """Copy a database to a new file and check the copy. Only a correct copy gets its name.

    :param least_free: bytes that must stay free if the file is on the disk of the database.
    :raises StoreUnavailable: the database cannot be read, or the copy is not correct.
    :raises OSError: the folder cannot be written.
    :raises BlockingIOError: another process makes a backup in the folder.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for left in path.parent.glob(f"*{UNCHECKED}*"):  # of a process that was killed
            left.unlink()
        part = path.with_name(path.name + UNCHECKED)
        try:
            problems = _copy_and_check(url, part, least_free)
            if problems:
                raise StoreUnavailable(f"the copy is not correct: {problems[0]}")
            part.rename(path)
            os.fsync(folder)
        finally:
            part.unlink(missing_ok=True)
    finally:
        os.close(folder)


def _copy_and_check(url: str, part: Path, least_free: int) -> list[str]:
    """Write the copy, and return its problems."""
    kind, _, place = url.partition(":")
    if kind != "sqlite":
        # Imported here, since loading psycopg2 takes time and memory.
        from mailcheck.engines.postgresql_backup import check_dump, dump_database

        dump_database(url, part)
        return check_dump(part)
    database = Path(place)
    _require_room(database, part.parent, least_free)
    back_up(database, part)
    problems = check_file(part, is_copy=True)
    if not problems:
        with as_unavailable(), closing(open_to_read(part, is_copy=True)) as connection:
            problems = run_query(connection, check_rows)
    return problems


def _require_room(database: Path, folder: Path, least_free: int) -> None:
    """Require that a copy fits, and that the daemon can accept mail beside it.

    :raises StoreUnavailable: it does not; the message has both sizes.
    """
    if not database.is_file():
        return  # the copy reports it
    is_same_disk = database.stat().st_dev == folder.stat().st_dev
    needed = database.stat().st_size + (least_free if is_same_disk else 0)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StoreUnavailable(
            f"{free // MEBIBYTE} MiB are free in {folder}, and a backup needs "
            f"{needed // MEBIBYTE + 1} MiB there: name a [backup] folder on another disk, or keep "
            "fewer backups"
        )


if __name__ == "__main__":
    main()
