"""The schema: numbered steps, all or none, with a backup before the first."""

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from twisted.logger import capturedLogs, formatEvent

from mailcheck.checks.findings_table import ROWS
from mailcheck.core.instants import DAY
from mailcheck.engines.schema_upgrade import SchemaStep, SchemaTooNew, schema_steps, upgrade_schema
from mailcheck.store.messages import MAIL_HOLDERS

OLD = [SchemaStep(1, "CREATE TABLE a (x);\nINSERT INTO a VALUES (1);\n")]

NEW = [
    *OLD,
    SchemaStep(
        2,
        """
        -- A comment; with a semicolon.
        CREATE TABLE b (
            y TEXT -- another;
        );
        CREATE TRIGGER t AFTER INSERT ON a BEGIN
            INSERT INTO b VALUES ('a;b');
        END;
        """,
    ),
    SchemaStep(3, "ALTER TABLE a ADD COLUMN z;\nUPDATE a SET z = 3;\n"),
]

BROKEN = [*NEW, SchemaStep(4, "CREATE TABLE c (x);\nINSERT INTO nowhere VALUES (1);\n")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the database."""
    return tmp_path / "mail.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection with the settings of the writer."""
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


def state(connection: sqlite3.Connection) -> tuple[int, set[str]]:
    """Return version and tables."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return version, {name for (name,) in tables}


def test_steps_are_numbered_in_order() -> None:
    """The schema files are numbered from 1 on in the order in which they are applied."""
    versions = [step.version for step in schema_steps()]
    assert versions[0] == 1
    assert versions == sorted(set(versions))


def test_every_statement_of_the_schema_is_run() -> None:
    """Every schema file ends with a semicolon; otherwise its last statement would be skipped."""
    for step in schema_steps():
        for script in filter(None, (step.sql, step.postgresql, step.sqlite)):
            assert re.search(r";\s*(--[^\n]*\s*)*\Z", script)
            assert sqlite3.complete_statement(script)


def test_tables_that_hold_mails_are_known(connection: sqlite3.Connection, path: Path) -> None:
    """`MAIL_HOLDERS` are the tables whose reference to a mail does not end with the mail.

    Deletions, the check of a store and scheduled backups read it.
    """
    upgrade_schema(connection, str(path), schema_steps())
    _, tables = state(connection)
    holders = {
        table
        for table in tables
        for row in connection.execute(f"PRAGMA foreign_key_list({table})")
        if (row[2], row[6]) == ("delivery", "NO ACTION")
    }
    assert holders == set(MAIL_HOLDERS)


def test_derived_content_survives_a_new_table(connection: sqlite3.Connection, path: Path) -> None:
    """The table of contents gets another order; its rows are kept and can be searched."""
    steps = schema_steps()
    upgrade_schema(connection, str(path), steps[:15])
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(
        "INSERT INTO content (delivery_id, text_key, links, codes, document, attachment_count, "
        "header_key, derivation, snippet) VALUES ('d', 'text', '[1]', '[2]', '{}', 3, 'h', 2, 's')"
    )
    upgrade_schema(connection, str(path), steps)
    (row,) = connection.execute(
        "SELECT delivery_id, text_key, links, codes, document, attachment_count, header_key, "
        "derivation, snippet, best_link, signature FROM content"
    )
    assert row == ("d", "text", "[1]", "[2]", "{}", 3, "h", 2, "s", None, "")


def test_a_fresh_database(connection: sqlite3.Connection, path: Path) -> None:
    """A new database gets all steps, without a backup."""
    upgrade_schema(connection, str(path), NEW)
    assert state(connection) == (3, {"a", "b"})
    connection.execute("INSERT INTO a (x) VALUES (2)")
    assert connection.execute("SELECT y FROM b").fetchall() == [("a;b",)]
    assert [file.name for file in path.parent.iterdir()] == ["mail.db"]


def test_an_upgrade(connection: sqlite3.Connection, path: Path) -> None:
    """An older database gets the missing steps, keeps its data, and is copied first.

    The log announces this, so that a long start is not taken for a hanging one.
    """
    upgrade_schema(connection, str(path), OLD)
    with capturedLogs() as logged:
        upgrade_schema(connection, str(path), NEW)
        upgrade_schema(connection, str(path), NEW)
    (line,) = map(formatEvent, logged)
    assert line == f"{path}: upgrading schema version 1 to 3; this may take a while"
    assert state(connection) == (3, {"a", "b"})
    assert connection.execute("SELECT x, z FROM a").fetchall() == [(1, 3)]
    backup = sqlite3.connect(path.parent / "mail.db.v1.backup")
    assert state(backup) == (1, {"a"})
    assert backup.execute("SELECT x FROM a").fetchall() == [(1,)]
    backup.close()


def test_nothing_to_do(connection: sqlite3.Connection, path: Path) -> None:
    """A database of this version is not changed."""
    upgrade_schema(connection, str(path), NEW)
    before = path.read_bytes()
    upgrade_schema(connection, str(path), NEW)
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 1


def test_a_newer_database(connection: sqlite3.Connection, path: Path) -> None:
    """A database of a newer version is rejected without a change; the message has both versions."""
    upgrade_schema(connection, str(path), NEW)
    before = path.read_bytes()
    with pytest.raises(
        SchemaTooNew, match=r"mail\.db has schema version 3.*supports versions up to 1"
    ):
        upgrade_schema(connection, str(path), OLD)
    assert path.read_bytes() == before


def test_a_step_that_fails(connection: sqlite3.Connection, path: Path) -> None:
    """When a step fails, the database stays at its old version as a whole."""
    upgrade_schema(connection, str(path), OLD)
    for _ in range(2):
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            upgrade_schema(connection, str(path), BROKEN)
        assert state(connection) == (1, {"a"})
        assert not connection.in_transaction
    upgrade_schema(connection, str(path), NEW)
    assert state(connection) == (3, {"a", "b"})


CRASH = """
import os, sqlite3, sys
from mailcheck.engines.schema_upgrade import SchemaStep, upgrade_schema
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA cache_size = 1")
connection.create_function("crash", 0, lambda: os._exit(9))
fill = ["INSERT INTO b VALUES (zeroblob(100000));"] * 20
step = "\\n".join(["CREATE TABLE b (y);", *fill, "SELECT crash();"])
upgrade_schema(connection, sys.argv[1], [SchemaStep(1, ""), SchemaStep(2, step)])
"""


def test_a_crash_during_an_upgrade(connection: sqlite3.Connection, path: Path) -> None:
    """When the process dies during an upgrade, the complete old version remains."""
    upgrade_schema(connection, str(path), OLD)
    connection.close()
    died = subprocess.run([sys.executable, "-c", CRASH, str(path)], timeout=60)
    assert died.returncode == 9
    again = sqlite3.connect(path, isolation_level=None)
    assert state(again) == (1, {"a"})
    assert again.execute("SELECT x FROM a").fetchall() == [(1,)]
    upgrade_schema(again, str(path), NEW)
    assert state(again) == (3, {"a", "b"})
    again.close()


class OvertakenConnection(sqlite3.Connection):
    """A connection whose database another process upgrades during the backup."""

    def backup(self, target: sqlite3.Connection, **options: Any) -> None:
        """Back up after the upgrade of the other process."""
        super().backup(target, **options)
        (path,) = (file for _, name, file in self.execute("PRAGMA database_list") if name == "main")
        other = sqlite3.connect(path, isolation_level=None)
        upgrade_schema(other, path, NEW)
        other.close()


def test_two_processes_upgrade(path: Path) -> None:
    """If two processes start together, one upgrades, and the other finds it done."""
    first = sqlite3.connect(path, isolation_level=None)
    upgrade_schema(first, str(path), OLD)
    first.close()
    second = sqlite3.connect(path, isolation_level=None, factory=OvertakenConnection)
    upgrade_schema(second, str(path), NEW)
    assert state(second) == (3, {"a", "b"})
    second.close()


def test_numbers_are_unique() -> None:
    """Numbers have no duplicates: one of two steps with the same number would never run.

    A number may be left out, so that several steps can be written at the same time.
    """
    names = [file.name for file in files("mailcheck.store.schema").iterdir()]
    # A step may have a file for only one engine.
    steps = sorted({name.partition(".")[0] for name in names if re.match(r"\d{4}_", name)})
    assert [int(step[:4]) for step in steps] == [step.version for step in schema_steps()]


@pytest.mark.parametrize(
    ("old", "new"),
    [(alias, row.id) for row in ROWS for alias in row.aliases],
)
def test_stored_alerts_and_changes_get_the_current_ids(
    path: Path, connection: sqlite3.Connection, old: str, new: str
) -> None:
    """An alert that is open during the upgrade is found by the run that ends it."""
    steps = schema_steps()
    upgrade_schema(connection, str(path), [step for step in steps if step.version < 26])
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(
        "INSERT INTO watch_alert VALUES ('a', 'w', ?, 'error', 's', 1, NULL, '', NULL, 0)",
        (f"DKIM: {old}",),
    )
    connection.execute(
        "INSERT INTO watch_change VALUES ('w', 0, 1, 'DKIM', ?, NULL, 'found', 's', 'error')",
        (old,),
    )
    upgrade_schema(connection, str(path), [step for step in steps if step.version <= 26])
    assert connection.execute("SELECT problem FROM watch_alert").fetchall() == [(f"DKIM: {new}",)]
    assert connection.execute("SELECT name FROM watch_change").fetchall() == [(new,)]


def test_reports_with_one_id_are_counted_after_an_upgrade(
    path: Path, connection: sqlite3.Connection
) -> None:
    """A stored report stays unique for its period, and the next day with its id is accepted."""
    steps, day = schema_steps(), int(DAY)
    upgrade_schema(connection, str(path), [step for step in steps if step.version < 45])
    connection.execute("PRAGMA foreign_keys = OFF")

    def add(name: str, begins_at: int, kind: str = "dmarc") -> None:
        values = (name, kind, begins_at, begins_at + day - 1)
        connection.execute(
            "INSERT INTO receiver_report (id, account_id, kind, state, received_at, attempts,"
            " reason, domain, reporter, organisation, report_key, policy, messages, failing,"
            " problems, begins_at, ends_at) VALUES (?, 'a', ?, 'counted', 1, 1, '', 'd.example',"
            " 'r.example', 'R', 'same', '', 1, 0, '[]', ?, ?)",
            values,
        )

    add("first", 0)
    add("complaint", 0, "complaint")
    with pytest.raises(sqlite3.IntegrityError):
        add("next day", day)
    upgrade_schema(connection, str(path), steps)
    add("next day", day)
    for name, begins_at, kind in (("again", 0, "dmarc"), ("again", day, "complaint")):
        with pytest.raises(sqlite3.IntegrityError):
            add(name, begins_at, kind)
