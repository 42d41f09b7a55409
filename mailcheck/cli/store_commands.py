"""``mailcheck store``: back up, restore and check the store, or copy it to PostgreSQL."""

import argparse
import sys
from pathlib import Path

from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_UNDETERMINED
from mailcheck.cli.parser import Parser
from mailcheck.config.reading import ConfigError

SCHEMES = ("postgresql://", "postgres://")


def add_store_commands(store: Parser) -> None:
    """Add the commands of ``mailcheck store``."""
    text = "copy the database to a file while it is in use"
    backup = store.add_command("backup", text, back_up_store)
    backup.add_argument("path", type=Path, help="the copy; the file must not exist")
    text = "restore a copy; the daemon must be stopped"
    restore = store.add_command("restore", text, restore_store)
    restore.add_argument("path", type=Path, help="a copy made by `store backup`")
    store.add_command("check", "check that the stored data is complete and correct", check_store)
    text = "copy everything from the SQLite file of a stopped daemon to PostgreSQL"
    copy = store.add_command("copy", text, copy_to_postgresql)
    copy.add_argument(
        "--to",
        required=True,
        metavar="URL|FILE",
        help="an empty database: its URL (postgresql://...), a file that contains it, or - for"
        " stdin. A password in a URL on the command line is visible in the list of processes",
    )


def back_up_store(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck store backup PATH``: copy a snapshot while the daemon runs."""
    from mailcheck.engines.backup import back_up

    database = _sqlite_path(console, "pg_dump --format=custom --file={path} {url}", options.path)
    back_up(database, options.path)
    console.print_line(f"{options.path}  {options.path.stat().st_size} bytes")
    return EXIT_FINE


def restore_store(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck store restore PATH``: keep the current database beside the restored one."""
    from mailcheck.engines.backup import restore

    database = _sqlite_path(console, "pg_restore --clean --dbname={url} {path}", options.path)
    aside = restore(options.path, database)
    console.print_line(f"restored {database}")
    if aside is not None:
        console.print_note(f"the previous database is now {aside}")
    return EXIT_FINE


def check_store(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck store check``: print a line for each problem, and exit with 1 if any."""
    from mailcheck.assembly.runtime import Runtime
    from mailcheck.cli.access.store_access import with_store
    from mailcheck.engines.backup import check_file, check_rows

    async def check(runtime: Runtime) -> list[str]:
        return await runtime.engine.read(check_rows)

    storage = console.config.storage
    problems = [] if storage.is_shared else check_file(Path(storage.file))
    problems = problems or with_store(console.config, check)
    for problem in problems:
        console.print_line(problem)
    if not problems:
        console.print_note("no problems found")
    return EXIT_PROBLEM if problems else EXIT_FINE


def _sqlite_path(console: Console, instead: str, path: Path) -> Path:
    """Return the path of the database.

    :raises ConfigError: the store is not a SQLite file. The message says what to run instead.
    """
    if console.config.storage.is_shared:
        command = instead.format(path=path, url="URL")
        raise ConfigError(f"[storage] url is a PostgreSQL server; use its own tool: {command}")
    return Path(console.config.storage.file)


def copy_to_postgresql(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck store copy --to FILE``: print a line per table; 3 if the outcome is unknown."""
    if console.config.storage.is_shared:
        raise ConfigError("[storage] url must be a SQLite file (sqlite:) to be copied")
    url = read_url(options.to)
    # Imported here because psycopg2 takes time and memory.
    from mailcheck.engines.store_copy import CopyUndetermined, copy_store

    def tell(table: str, done: int, total: int) -> None:
        console.progress.text = f"{table}: {done:,} of {total:,}"

    try:
        copied = copy_store(console.config.storage.file, url, tell)
    except CopyUndetermined as failure:
        console.print_note(f"mailcheck: {failure}")
        return EXIT_UNDETERMINED
    except KeyboardInterrupt:
        console.print_note("mailcheck: interrupted; the target is still empty")
        return EXIT_PROBLEM
    for name, summary in copied.items():
        console.print_line(f"{name}  {summary.rows}  sha256 {summary.digest:064x}")
    console.print_note("copied; row counts and digests are the same on both sides")
    console.print_note("next: set [storage] url and start the daemon; the file is unchanged")
    return EXIT_FINE


def read_url(given: str) -> str:
    """Read the URL of a PostgreSQL database from the source that ``--to`` names.

    :raises ConfigError: the source contains no such URL. The message does not repeat it.
    """
    if given.startswith(SCHEMES):
        return given
    try:
        text = sys.stdin.read() if given == "-" else Path(given).read_text("utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError(
            f"--to must be the URL of a PostgreSQL database (postgresql://...), a file that"
            f" contains it, or -; {given} cannot be read: {why}"
        ) from None
    url = text.strip()
    if not url.startswith(SCHEMES):
        where = "stdin" if given == "-" else given
        raise ConfigError(f"--to: {where} does not contain a URL like postgresql://...")
    return url
