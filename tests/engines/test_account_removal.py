"""The deletion of an account, in a database with rows in each table."""

import sqlite3
from pathlib import Path

from mailcheck.core.identifiers import AccountId
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.store.accounts.account_removal import AccountRemoval
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import noted
from tests.engines.test_storage_copy import fill
from tests.house import result_of

WITHOUT_ACCOUNT = {
    # They belong to the service: schema, invitations, caches and leases of daemons.
    *("schema_step", "invitation", "known_selector", "lease", "remembered", "request_count"),
    *("oauth_client", "passkey_challenge", "heartbeat_reception"),
    # The operator has configured it; without its account, no daemon reads it.
    "report_mailbox",
    # The directory of the company manages its groups.
    "provisioned_group",
    # The log stays. Its entries have the name of the account, but no longer its id.
    *("audit_entry", "audit_position"),
}


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows of all tables, by table."""
    connection = sqlite3.connect(path)
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}
    connection.close()
    return found


def hand_over(path: Path) -> None:
    """Take the operator's role from Ann, and let Bob own her project: so she can be deleted."""
    connection = sqlite3.connect(path)
    connection.execute("UPDATE account SET is_operator = 0")
    connection.execute("INSERT INTO member VALUES ('shop', 'bob', 'owner', 0)")
    connection.commit()
    connection.close()


def test_no_row_of_a_deleted_account_is_left(tmp_path: Path) -> None:
    """After all accounts have been deleted, only tables of the service itself have rows."""
    path = tmp_path / "mail.db"
    fill(str(path))
    assert all(rows_of(path).values())
    hand_over(path)
    engine = SqliteEngine(str(path), DirectWorker(), DirectWorker())
    engine.open()
    removal = AccountRemoval(engine)
    assert result_of(removal.delete_messages(AccountId("ann"), 1_000)) == 1_000
    for name in ("shop", "ann", "bob"):
        assert result_of(removal.delete(AccountId(name), noted()))
    assert not result_of(removal.delete(AccountId("bob"), noted()))
    engine.close()
    left = rows_of(path)
    assert {name for name, rows in left.items() if rows} <= WITHOUT_ACCOUNT
    (entry,) = (row for row in left["audit_entry"] if row[0] == "e1")
    assert "ann" in entry
    assert entry[2] is None


def test_other_accounts_keep_everything(tmp_path: Path) -> None:
    """The deletion of one account leaves the mail that it shares with another account."""
    path = tmp_path / "mail.db"
    fill(str(path))
    hand_over(path)
    before = rows_of(path)
    engine = SqliteEngine(str(path), DirectWorker(), DirectWorker())
    engine.open()
    assert result_of(AccountRemoval(engine).delete(AccountId("ann"), noted()))
    engine.close()
    after = rows_of(path)
    assert [row[0] for row in after["account"]] == ["bob", "shop"]
    of_bob = [row for row in before["message"] if row[1] == "bob"]
    assert len(of_bob) == 1
    assert after["message"] == of_bob
    assert len(after["delivery"]) == 1
    assert after["inbox"] == [row for row in before["inbox"] if row[0] != "ann"]
