"""The upgrade of a database from before accounts could be limited, disabled and shared."""

import sqlite3
from pathlib import Path

from mailcheck.engines.schema_upgrade import schema_steps
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.test_account_removal import rows_of
from tests.engines.test_storage_copy import fill
from tests.house import result_of

BEFORE = 26
"""The last step of the schema before these columns and tables."""

NEW_TABLES = ("audit_entry", "member", "project_invitation")
NEW_INDEXES = ("dashboard_session_project",)
NEW_COLUMNS = {
    "api_key": ("scopes", "tags", "tag_prefix", "expires_at"),
    "account": ("disabled_at", "retention_hours", "is_project"),
    "dashboard_session": ("client", "project_id"),
    "message": ("via",),
    "delivery": ("request",),
}


def named_rows_of(path: Path) -> dict[str, list[dict[str, object]]]:
    """Return all rows of all tables, with the names of their columns."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    found = {
        name: [dict(row) for row in connection.execute(f"SELECT * FROM {name}")]
        for name in rows_of(path)
    }
    connection.close()
    return found


def test_an_upgrade_keeps_every_row(tmp_path: Path) -> None:
    """Accounts, keys, mail, watches, webhooks and share links are the same after the upgrade."""
    path = tmp_path / "mail.db"
    fill(str(path))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DELETE FROM account WHERE name = 'shop'")
    for table in NEW_TABLES:
        connection.execute(f"DROP TABLE {table}")
    for index in NEW_INDEXES:
        connection.execute(f"DROP INDEX {index}")
    columns = {
        table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for table in NEW_COLUMNS
    }
    for table, names in NEW_COLUMNS.items():
        for name in columns[table].intersection(names):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
    connection.execute(f"PRAGMA user_version = {BEFORE}")
    connection.close()
    before = named_rows_of(path)
    engine = SqliteEngine(str(path), DirectWorker(), DirectWorker())
    engine.open()
    (version,) = result_of(engine.read(lambda t: [t.row("PRAGMA user_version")]))
    assert version[0] == len(schema_steps())
    engine.close()
    after = named_rows_of(path)
    assert all(before.values())
    for table, rows in before.items():
        kept = [{name: row[name] for name in rows[0]} for row in after[table]]
        assert kept == rows, table
    assert {one["is_project"] for one in after["account"]} == {0}
    assert {one["scopes"] for one in after["api_key"]} == {None}
