"""Is what is stored consistent? Counters against rows, and the file against itself."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from mailcheck.core.errors import StoreUnavailable
from mailcheck.storage.engine import Transaction
from mailcheck.storage.schema_upgrade import schema_steps
from mailcheck.storage.sqlite_writer import as_unavailable

MAX_SHOWN = 20
"""Problems of one kind that are told; a broken file has thousands."""

_INBOXES = (
    "SELECT i.mailbox_name, i.message_count, i.byte_count, i.last_position,"
    " COUNT(m.id), COALESCE(SUM(m.size), 0), COALESCE(MAX(m.position), 0)"
    " FROM inbox i LEFT JOIN message m ON m.account_id = i.account_id"
    " GROUP BY i.account_id, i.mailbox_name, i.message_count, i.byte_count, i.last_position"
)
_TAGS = (
    "SELECT i.mailbox_name, t.tag, t.message_count, COUNT(m.id)"
    " FROM inbox_tag t JOIN inbox i ON i.account_id = t.account_id"
    " LEFT JOIN message m ON m.account_id = t.account_id AND m.tag_key = t.tag_key"
    " GROUP BY i.mailbox_name, t.account_id, t.tag_key, t.tag, t.message_count"
    " HAVING t.message_count <> COUNT(m.id)"
)
_UNOWNED = (
    "SELECT COUNT(*) FROM delivery d"
    " WHERE NOT EXISTS (SELECT 1 FROM message m WHERE m.delivery_id = d.id)"
    " AND NOT EXISTS (SELECT 1 FROM deliverability_test t WHERE t.delivery_id = d.id)"
)


def check_rows(transaction: Transaction) -> list[str]:
    """List what does not fit together, a sentence each, on one snapshot of any database."""
    problems = [*_inbox_problems(transaction)]
    for mailbox, tag, counted, there in transaction.rows(_TAGS):
        problems.append(
            f"inbox {mailbox}: tag {tag!r} counts {counted} messages, {there} are there"
        )
    (unowned,) = transaction.row(_UNOWNED) or (0,)
    if unowned:
        problems.append(f"{unowned} mails belong to no message and no test")
    return problems


def _inbox_problems(transaction: Transaction) -> Iterator[str]:
    for mailbox, count, size, last, there, bytes_there, newest in transaction.rows(_INBOXES):
        if count != there:
            yield f"inbox {mailbox}: counts {count} messages, {there} are there"
        if size != bytes_there:
            yield f"inbox {mailbox}: counts {size} bytes, {bytes_there} are there"
        if newest > last:
            yield f"inbox {mailbox}: a message has position {newest}, behind the newest, {last}"


def check_file(path: Path) -> list[str]:
    """List what SQLite finds wrong with a database file; reads it and changes nothing.

    :raises StoreUnavailable: it is no database of ours, or can't be read.
    """
    with as_unavailable(), closing(open_to_read(path)) as connection:
        rows = connection.execute(f"PRAGMA integrity_check({MAX_SHOWN})").fetchall()
        problems = [text for (text,) in rows if text != "ok"]
        strangers = connection.execute("PRAGMA foreign_key_check").fetchmany(MAX_SHOWN)
        problems += [
            f"a row of {table} refers to a missing {other}" for table, _, other, _ in strangers
        ]
    return problems


def require_database(url: str) -> None:
    """See that the database of a URL is there and takes connections; blocks until it knows.

    :raises StoreUnavailable: it does not; says why.
    """
    kind, _, path = url.partition(":")
    if kind == "sqlite":
        open_to_read(Path(path)).close()
        return
    import psycopg2  # loaded where it is used

    from mailcheck.storage.postgresql_connection import connect

    try:
        connect(url).close()
    except psycopg2.Error as error:
        why = " ".join(str(error).split())
        raise StoreUnavailable(f"the database can't be reached: {why}") from error


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a database file that must be there, and must be ours; nothing is created.

    :raises StoreUnavailable: there is none, or it is something else.
    """
    if not path.is_file():
        raise StoreUnavailable(f"there is no database {path}")
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        has_inbox = connection.execute(
            "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'inbox'"
        ).fetchone()[0]
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StoreUnavailable(f"{path} can't be read as a database: {error}") from error
    if not has_inbox or not 1 <= version <= schema_steps()[-1].version:
        connection.close()
        raise StoreUnavailable(f"{path} is no database of this mailcheck (version {version})")
    return connection
