"""Several writers on one PostgreSQL: each group sees the commits of the others."""

from collections.abc import Iterator
from typing import Any

import psycopg2
import pytest

from mailcheck.core.accounts import Quota
from mailcheck.core.cursors import Position
from mailcheck.core.errors import InboxFull, RecipientUnknown, StoreUnavailable
from mailcheck.engines.committing import Outcome, Write, commit_group
from mailcheck.engines.postgresql import PostgresqlEngine
from mailcheck.engines.postgresql_connection import PostgresqlWriter
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.mail_delivery import DeliverMails
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import account, delivery, noted, recipient
from tests.house import result_of
from tests.servers.postgresql import PostgresqlServer

QUOTA = Quota(4, 10**9)


class RecordingWriter(PostgresqlWriter):
    """A writer that records its statements."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked: list[bytes] = []

    def begin(self) -> Any:
        """Begin, and record the statements."""
        transaction: Any = super().begin()
        send = transaction.send

        def keep(statement: bytes, **given: bool) -> None:
            self.asked.append(statement)
            send(statement, **given)

        transaction.send = keep
        return transaction

    def deliver(self, *names: str) -> list[Outcome]:
        """Commit a mail for each name in one group; ``asked`` has the statements for it."""
        self.asked = []
        work = DeliverMails(QUOTA)
        return commit_group(self, [Write(work, delivery(recipient(name))) for name in names])


@pytest.fixture
def url(postgresql_url: str) -> str:
    """A database with the accounts ann and bob."""
    engine = PostgresqlEngine(postgresql_url, DirectWorker(), DirectWorker())
    engine.open()
    for name in ("ann", "bob"):
        result_of(AccountStore(engine).add_account(account(name), noted()))
    result_of(engine.close())
    return postgresql_url


@pytest.fixture
def writers(url: str) -> Iterator[tuple[RecordingWriter, RecordingWriter]]:
    """The writers of two daemons."""
    one, other = RecordingWriter(url), RecordingWriter(url)
    yield one, other
    one.close()
    other.close()


def change(url: str, sql: str) -> None:
    """Change data as another process."""
    connection = psycopg2.connect(url)
    with connection, connection.cursor() as cursor:
        cursor.execute(sql)
    connection.close()


def positions(*numbers: int) -> list[Outcome]:
    """Return the outcomes of mails stored at these positions."""
    return [(Position(number),) for number in numbers]


def test_a_group_is_two_questions(
    writers: tuple[RecordingWriter, RecordingWriter],
) -> None:
    """A group reads and locks its inboxes; then its mails are sent together with the COMMIT."""
    writer, _ = writers
    assert writer.deliver("ann", "bob", "ann") == positions(1, 1, 2)
    assert len(writer.asked) == 2
    assert writer.deliver("bob", "ann") == positions(2, 3)
    assert len(writer.asked) == 2
    assert writer.asked[-1] == b"COMMIT"


def test_an_inbox_that_another_daemon_has_moved_on(
    writers: tuple[RecordingWriter, RecordingWriter],
) -> None:
    """Positions continue after the stored ones."""
    one, other = writers
    assert one.deliver("ann", "bob") == positions(1, 1)
    assert other.deliver("ann") == positions(2)
    assert one.deliver("bob", "ann") == positions(2, 3)
    assert one.deliver("bob") == positions(3)


def test_a_quota_that_was_changed(
    url: str, writers: tuple[RecordingWriter, RecordingWriter]
) -> None:
    """A changed quota takes effect at once."""
    writer, _ = writers
    assert writer.deliver("ann") == positions(1)
    change(url, "UPDATE account SET max_messages = 1 WHERE id = 'ann'")
    (outcome,) = writer.deliver("ann")
    assert isinstance(outcome, InboxFull)
    change(url, "UPDATE account SET max_messages = NULL")
    assert writer.deliver("ann") == positions(2)


def test_room_that_others_have_made(
    url: str, writers: tuple[RecordingWriter, RecordingWriter]
) -> None:
    """The current usage of an inbox decides about a mail, not the usage after the last group."""
    writer, _ = writers
    assert writer.deliver(*["ann"] * 4) == positions(1, 2, 3, 4)
    change(url, "UPDATE inbox SET message_count = 0")
    assert writer.deliver("ann") == positions(5)
    assert isinstance(writer.deliver(*["ann"] * 4)[3], InboxFull)


def test_an_inbox_that_was_removed(
    url: str, writers: tuple[RecordingWriter, RecordingWriter]
) -> None:
    """Mail to a deleted account is rejected, and other mail of the group is stored."""
    writer, _ = writers
    assert writer.deliver("ann", "bob") == positions(1, 1)
    change(url, "DELETE FROM message; DELETE FROM account WHERE id = 'ann'")
    gone, stored = writer.deliver("ann", "bob")
    assert isinstance(gone, RecipientUnknown)
    assert [stored] == positions(2)


def test_a_connection_that_is_lost_before_the_mails_are_sent(
    writers: tuple[RecordingWriter, RecordingWriter], postgresql_server: PostgresqlServer
) -> None:
    """A group that found its connection lost is stored on a new one, once."""
    writer, _ = writers
    assert writer.deliver("ann") == positions(1)
    ((pid,),) = writer.begin().rows("SELECT pg_backend_pid()")
    writer.rollback()
    postgresql_server.run(f"SELECT pg_terminate_backend({pid}, 5000)")
    assert writer.deliver("ann") == positions(2)


END_AT_COMMIT = """
CREATE FUNCTION end_connection() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_terminate_backend(pg_backend_pid());
    PERFORM pg_sleep(60);
END $$;
CREATE CONSTRAINT TRIGGER ended AFTER INSERT ON message DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION end_connection();
"""
"""Ends a connection with new messages in its COMMIT, where deferred triggers run."""


def test_a_connection_that_is_lost_with_the_commit(
    url: str, writers: tuple[RecordingWriter, RecordingWriter]
) -> None:
    """A group that was sent completely is not repeated, since it may be stored."""
    writer, _ = writers
    assert writer.deliver("ann") == positions(1)
    change(url, END_AT_COMMIT)
    with pytest.raises(StoreUnavailable, match="was lost"):
        writer.deliver("ann")
    assert len(writer.asked) == 2
    change(url, "DROP TRIGGER ended ON message")
    assert writer.deliver("ann") == positions(2)
