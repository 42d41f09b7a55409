"""The upgrade of a database from before accounts could be limited, disabled and shared."""

import sqlite3
from pathlib import Path

from mailcheck.engines.schema_upgrade import schema_steps, upgrade_schema
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.test_account_removal import rows_of
from tests.engines.test_storage_copy import fill
from tests.house import result_of

BEFORE = 26
"""The last step of the schema before these columns and tables."""


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
    full, path = tmp_path / "full.db", tmp_path / "mail.db"
    fill(str(full))
    connection = sqlite3.connect(path, isolation_level=None)
    upgrade_schema(connection, str(path), schema_steps()[:BEFORE])
    connection.execute("ATTACH ? AS full", (str(full),))
    for table in rows_of(path):
        columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))
        connection.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM full.{table}")
    connection.execute("DELETE FROM account WHERE name = 'shop'")
    connection.close()
    before = named_rows_of(path)
    engine = SqliteEngine(str(path), DirectWorker(), DirectWorker())
    engine.open()
    (version,) = result_of(engine.read(lambda t: [t.row("PRAGMA user_version")]))
    assert version[0] == schema_steps()[-1].version
    engine.close()
    after = named_rows_of(path)
    assert all(before.values())
    for table, rows in before.items():
        kept = [{name: row[name] for name in rows[0]} for row in after[table]]
        assert kept == rows, table
    assert {one["is_project"] for one in after["account"]} == {0}
    assert {one["scopes"] for one in after["api_key"]} == {None}
