"""The files of scheduled backups: their names, and the newest one."""

import re
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

_NAME = re.compile(r"mailcheck-(\d{8}T\d{6}Z)\.(?:db|dump)", re.ASCII)
_TIME = "%Y%m%dT%H%M%SZ"

SUFFIXES = {"sqlite": "db", "postgresql": "dump", "postgres": "dump"}
"""Suffixes of backups by the scheme of the database's URL."""

HOUR = 3_600.0
"""Seconds."""


class Backup(Struct, frozen=True):
    """A complete backup. ``made_at`` is the time at which it began, in seconds since 1970."""

    path: Path
    made_at: float


def name_of_backup(url: str, now: float) -> str:
    """Return the file name of a backup of a database that begins now."""
    suffix = SUFFIXES[url.partition(":")[0]]
    return f"mailcheck-{datetime.fromtimestamp(now, UTC):{_TIME}}.{suffix}"


def find_backups(folder: Path) -> list[Backup]:
    """Return the backups in a folder, the newest first. Other files are ignored.

    :raises OSError: the folder cannot be read.
    """
    if not folder.exists():
        return []
    found = []
    for path in folder.iterdir():
        match = _NAME.fullmatch(path.name)
        if match is not None:
            made_at = datetime.strptime(match[1], _TIME).replace(tzinfo=UTC).timestamp()
            found.append(Backup(path, made_at))
    return sorted(found, key=lambda backup: backup.made_at, reverse=True)


def find_newest_backup(folder: Path) -> Backup | None:
    """Return the newest backup in a folder, or `None` if there is none.

    :raises OSError: the folder cannot be read.
    """
    return next(iter(find_backups(folder)), None)


def is_overdue(newest: Backup | None, every: float, now: float) -> bool:
    """Return whether a backup is missing, or older than two intervals of ``every`` hours."""
    return newest is None or now - newest.made_at > 2 * every * HOUR
