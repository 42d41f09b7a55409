"""``mailcheck store copy``: from the SQLite file of a stopped daemon to PostgreSQL."""

import argparse
import time

from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_UNDETERMINED
from mailcheck.config.reading import ConfigError

PROGRESS_EVERY = 2.0
"""Seconds between two lines on how far it is."""


def add_store_commands(store: argparse.ArgumentParser) -> None:
    """Add the commands to the parser of ``mailcheck store``."""
    commands = store.add_subparsers(required=True, metavar="COMMAND")
    copy = commands.add_parser(
        "copy", help="copy everything from the SQLite file of a stopped daemon to PostgreSQL"
    )
    copy.add_argument(
        "--to",
        required=True,
        metavar="URL",
        help="an empty database, postgresql://...; its password is better left to PGPASSFILE",
    )
    copy.set_defaults(command=copy_to_postgresql)


def copy_to_postgresql(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck store copy --to URL``: a line for each table; status 3 where nobody knows."""
    kind, _, path = console.config.storage.url.partition(":")
    if kind != "sqlite":
        raise ConfigError("[storage] url is no SQLite file: what is copied is the file of sqlite:")
    if not options.to.startswith(("postgresql://", "postgres://")):
        raise ConfigError("--to is the URL of a PostgreSQL database: postgresql://...")
    # Loaded where it is used alone: psycopg2 takes a while, and memory.
    from mailcheck.storage.store_copy import CopyUndetermined, copy_store

    try:
        copied = copy_store(path, options.to, Progress(console).tell)
    except CopyUndetermined as failure:
        console.remark(f"mailcheck: {failure}")
        return EXIT_UNDETERMINED
    except KeyboardInterrupt:
        console.remark("mailcheck: interrupted; the target is as empty as it was")
        return EXIT_PROBLEM
    for name, summary in copied.items():
        console.say(f"{name}  {summary.rows}  sha256 {summary.digest:064x}")
    console.remark("copied; counts and digests are the same on both sides")
    console.remark("next: set [storage] url, and start the daemon; the file stays as it is")
    return EXIT_FINE


class Progress:
    """Remarks now and then how far a copy is."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told_at = time.monotonic()

    def tell(self, table: str, done: int, total: int) -> None:
        """Hear that so many rows of a table are copied."""
        now = time.monotonic()
        if now >= self._told_at + PROGRESS_EVERY:
            self._told_at = now
            self._console.remark(f"{table}: {done:,} of {total:,}")
