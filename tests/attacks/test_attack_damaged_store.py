"""A damaged or emptied database is reported by the daemon and is never replaced."""

from pathlib import Path
from typing import Any

import pytest

from mailcheck.assembly.runtime import database_engine
from mailcheck.assembly.workers import Workers
from mailcheck.config.options import Config, StorageOptions
from mailcheck.core.errors import StoreDamaged
from mailcheck.core.memory.instruments import Conditions
from mailcheck.engines.database import DAMAGED, DatabaseEngine, call_immediately
from mailcheck.ops.watch import Watch, look_at_damage
from mailcheck.ports.engine import Transaction
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import account, noted
from tests.house import result_of, run
from tests.table import rows

pytestmark = pytest.mark.attack


def engine_of(folder: Path) -> DatabaseEngine:
    """Return the engine of a daemon with its state in a folder."""
    storage = StorageOptions(url=f"sqlite:{folder}/mailcheck.db", state_directory=str(folder))
    worker = DirectWorker()
    return database_engine(
        Config(storage=storage), Workers(worker, worker, worker), call_immediately
    )


def filled(folder: Path) -> None:
    """Create a database with hundreds of accounts."""
    engine = engine_of(folder)
    engine.open()
    store = AccountStore(engine)
    for number in range(300):
        result_of(store.add_account(account(f"account {number} {'x' * 200}"), noted()))
    result_of(engine.close())


def damage(folder: Path, table: str) -> None:
    """Overwrite the first page of a table."""
    engine = engine_of(folder)
    engine.open()

    def first_page(transaction: Transaction) -> tuple[int, int]:
        ((size,),) = transaction.rows("PRAGMA page_size")
        ((number,),) = transaction.rows(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)
        )
        return size, number

    size, number = result_of(engine.read(first_page))
    result_of(engine.close())
    with (folder / "mailcheck.db").open("r+b") as file:
        file.seek((number - 1) * size)
        file.write(b"\xff" * size)


@pytest.mark.parametrize("table", ["account", "inbox", "api_key"])
def test_a_damaged_page_is_not_ready(tmp_path: Path, table: str) -> None:
    """Before the first call, the daemon detects damage in pages that every call reads."""
    filled(tmp_path)
    damage(tmp_path, table)
    engine = engine_of(tmp_path)
    engine.open()
    with pytest.raises(StoreDamaged):
        result_of(engine.beat())
    result_of(engine.close())


def test_damage_that_a_call_has_met_is_remembered(tmp_path: Path) -> None:
    """The daemon reports damage from the first call that meets it, and stays ready."""
    filled(tmp_path)
    damage(tmp_path, "watch")
    engine = engine_of(tmp_path)
    engine.open()
    result_of(engine.beat())
    with pytest.raises(StoreDamaged):
        result_of(engine.read(lambda t: t.rows("SELECT * FROM watch")))
    conditions = Conditions()
    run(Watch(conditions, [look_at_damage(lambda: engine.damage)]).look())
    assert conditions.problems == {"database": DAMAGED}
    result_of(engine.beat())
    result_of(engine.close())


def emptied(folder: Path, *others: str) -> Any:
    """Create an empty database file with other files beside it, and try to open it."""
    (folder / "mailcheck.db").write_bytes(b"")
    for name in others:
        (folder / name).write_text("x")
    engine = engine_of(folder)
    engine.open()
    result_of(engine.close())


@rows("api-key", "dashboard-password", "mailcheck.db-wal", "mailcheck.db.reserve")
def test_an_emptied_database_is_not_begun_anew(tmp_path: Path, left: str) -> None:
    """A file of 0 bytes beside other files of a daemon is an error and is not written to."""
    with pytest.raises(StoreDamaged, match="has 0 bytes"):
        emptied(tmp_path, left)
    assert (tmp_path / "mailcheck.db").stat().st_size == 0
    assert (tmp_path / left).read_text() == "x"
    (tmp_path / left).unlink()


def test_an_empty_file_alone_is_a_first_start(tmp_path: Path) -> None:
    """A start that was interrupted before the database was written is repeated."""
    emptied(tmp_path, "mailcheck.db.lock")
    assert (tmp_path / "mailcheck.db").stat().st_size > 0
