"""An inbox that another writer keeps locked: only its own mail fails."""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg2
import pytest

from mailcheck.core.accounts import Quota
from mailcheck.core.cursors import Position
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant
from mailcheck.engines.committing import (
    SKIP_SECONDS,
    LockedInboxes,
    Outcome,
    Write,
    commit_group,
    touch,
)
from mailcheck.engines.postgresql import PostgresqlEngine
from mailcheck.engines.postgresql_connection import PostgresqlWriter
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.mail_delivery import DeliverMails
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import ExpiryStore
from mailcheck.store.transactions import write
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import NOON, RETENTION, account, delivery, noted, recipient, refusal
from tests.house import result_of

DELIVER = DeliverMails(Quota(100, 10**9))
ANN = AccountId("ann")


class Writer(PostgresqlWriter):
    """A writer with a fake clock and a lock timeout of a tenth of a second."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.now = 0.0
        self.waits = 0
        self.locked_inboxes = LockedInboxes(lambda: self.now)
        cursor = self._connection.open().cursor()
        cursor.execute("SET lock_timeout = 100")

    def rollback(self) -> None:
        """Roll back, and count it."""
        self.waits += 1
        super().rollback()

    def deliver(self, *names: str) -> list[Outcome]:
        """Commit a mail for each name in one group; a plus separates recipients of one mail."""
        return commit_group(
            self,
            [Write(DELIVER, delivery(*map(recipient, name.split("+")))) for name in names],
        )


def called(work: write[Any, ..., Any], *arguments: object) -> Write:
    """Return the queued write of a call to a store's method."""
    return Write(work, (None, arguments, {}))


@pytest.fixture
def url(postgresql_url: str) -> str:
    """A database with three accounts."""
    engine = PostgresqlEngine(postgresql_url, DirectWorker(), DirectWorker())
    engine.open()
    for name in ("ann", "bob", "cat"):
        result_of(AccountStore(engine).add_account(account(name), noted()))
    result_of(engine.close())
    return postgresql_url


@pytest.fixture
def writer(url: str) -> Iterator[Writer]:
    """The writer of a daemon."""
    writer = Writer(url)
    yield writer
    writer.close()


class Locker:
    """Another writer that keeps ann's inbox locked."""

    def __init__(self, url: str, how: str) -> None:
        self._connection = psycopg2.connect(url)
        with self._connection.cursor() as cursor:
            cursor.execute(how)

    def let_go(self) -> None:
        """Commit."""
        self._connection.commit()

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()


LOCKS = (
    "SELECT FROM inbox WHERE account_id = 'ann' FOR UPDATE",
    "SELECT FROM inbox WHERE account_id = 'ann' FOR NO KEY UPDATE",
    "UPDATE inbox SET byte_count = byte_count WHERE account_id = 'ann'",
)


@pytest.fixture(params=LOCKS)
def locker(request: pytest.FixtureRequest, url: str) -> Iterator[Locker]:
    """Each of the ways to keep an inbox locked."""
    locker = Locker(url, request.param)
    yield locker
    locker.close()


def kinds(outcomes: Sequence[Any]) -> list[Any]:
    """Return positions as numbers, and failures as their types."""
    return [
        type(one) if isinstance(one, Exception) else one if one is None else tuple(map(int, one))
        for one in outcomes
    ]


@pytest.mark.parametrize("is_known", [False, True])
def test_others_are_committed(writer: Writer, url: str, is_known: bool) -> None:
    """In one group, mail for other inboxes is stored, and mail for the locked one fails."""
    if is_known:
        writer.deliver("ann", "bob")
    first = 2 if is_known else 1
    locker = Locker(url, LOCKS[0])
    outcomes = writer.deliver("bob", "ann", "cat", "ann+bob", "bob")
    expected = [(first,), StoreUnavailable, (1,), StoreUnavailable, (first + 1,)]
    assert kinds(outcomes) == expected
    assert "locked" in str(outcomes[1])
    locker.let_go()
    assert kinds(writer.deliver("ann+bob")) == [(first, first + 2)]
    locker.close()


def test_the_lock_is_waited_for_once(writer: Writer, locker: Locker) -> None:
    """For some seconds no group waits for the inbox again; then one group tries."""
    writer.deliver("ann")
    assert writer.waits == 1
    for _ in range(3):
        assert kinds(writer.deliver("ann", "bob"))[0] is StoreUnavailable
    assert writer.waits == 1
    writer.now += SKIP_SECONDS
    assert kinds(writer.deliver("ann", "bob")) == [StoreUnavailable, (4,)]
    assert writer.waits == 2


def test_an_inbox_that_is_unlocked(writer: Writer, locker: Locker) -> None:
    """The next mail after the end of the lock is stored at once."""
    assert kinds(writer.deliver("ann")) == [StoreUnavailable]
    locker.let_go()
    assert kinds(writer.deliver("ann", "ann")) == [(1,), (2,)]
    assert writer.waits == 1


def test_a_refusal_is_recorded(writer: Writer, locker: Locker) -> None:
    """A refusal of the locked inbox is recorded, after all positions that a wait can know."""
    group = [
        called(MailStore.note_refusal, refusal("ann")),
        Write(DELIVER, delivery(recipient("bob"))),
    ]
    assert kinds(commit_group(writer, group)) == [None, (1,)]
    transaction = writer.begin()
    rows = transaction.rows("SELECT account_id, position FROM refusal")
    writer.rollback()
    assert rows == [("ann", Position(1))]


def test_other_writes(writer: Writer, url: str) -> None:
    """Deletions in the locked inbox fail; expiry continues in the others, and so do other
    writes.
    """
    sent = [delivery(recipient(name)) for name in ("ann", "bob")]
    commit_group(writer, [Write(DELIVER, one) for one in sent])
    locker = Locker(url, LOCKS[0])
    item = (ANN, sent[0].message_ids[0], NOON)
    expiry = (Instant(NOON + RETENTION + DAY), 100)
    group = [
        called(MailStore.delete_message, *item),
        called(ExpiryStore.expire, *expiry),
        Write(touch, None),
    ]
    deleted, expired, touched = commit_group(writer, group)
    assert isinstance(deleted, StoreUnavailable)
    assert (expired, touched) == (1, None)
    locker.let_go()
    assert commit_group(writer, [called(ExpiryStore.expire, *expiry)]) == [1]
    locker.close()
