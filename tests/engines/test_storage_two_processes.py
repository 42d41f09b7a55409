"""Two store processes that store and expire mail for one inbox on one PostgreSQL."""

import subprocess
import sys
from pathlib import Path

import pytest

from mailcheck.core.accounts import Quota
from mailcheck.core.cursors import START, Position
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.engines.postgresql import PostgresqlEngine
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.mail_store import MailStore
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import account, noted
from tests.engines.test_storage_postgresql import ask_of
from tests.house import result_of

ANN = AccountId("ann")
ALWAYS = 0
"""Before any expiry: a follower sees all stored messages, expired or not."""


class Follower:
    """Follows an inbox by its cursor, and records the positions that it did not see."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.position: Position = START
        self.seen: set[int] = set()

    def look(self, store: MailStore) -> None:
        """Read on from the last seen position."""
        wanted = MessageFilter(after=self.position)
        found, _ = result_of(store.oldest_matches(ANN, wanted, ALWAYS, 1_000))  # type: ignore[arg-type]
        for message in found:
            self.seen.add(message.summary.position)
            self.position = message.summary.position


def require_order(url: str, seconds: float) -> int:
    """Store mails in two processes while a follower reads; return the number of stored mails."""
    engine = PostgresqlEngine(url, DirectWorker(), DirectWorker())
    engine.open()
    result_of(AccountStore(engine).add_account(account("ann"), noted()))
    store, follower = MailStore(engine, Quota(10**9, 10**15)), Follower(url)
    command = [sys.executable, "-m", "tests.engines.store_process", url, str(seconds)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2], text=True)
        for _ in range(2)
    ]
    while any(process.poll() is None for process in processes):
        follower.look(store)
    follower.look(store)
    stored = []
    for process in processes:
        output, _ = process.communicate()
        assert process.returncode == 0
        stored.append(int(output))
    assert min(stored) > 0
    # Unseen messages had expired on arrival and were deleted at once. No other message may have
    # appeared after one with a higher position.
    left = {position for (position,) in ask_of(url, "SELECT position FROM message")}
    assert left <= follower.seen
    ((last, messages, size),) = ask_of(
        url, "SELECT last_position, message_count, byte_count FROM inbox"
    )
    assert last == sum(stored)
    assert ask_of(url, "SELECT COUNT(*), CAST(SUM(size) AS BIGINT) FROM message") == [
        (messages, size)
    ]
    assert ask_of(url, "SELECT CAST(SUM(message_count) AS BIGINT) FROM inbox_tag") == [(messages,)]
    assert ask_of(url, "SELECT COUNT(*) FROM delivery") == [(messages,)]
    result_of(engine.close())
    return sum(stored)


def test_two_processes_take_mail(postgresql_url: str) -> None:
    """In half a second there is no error and no gap for a follower, and counters equal the rows."""
    require_order(postgresql_url, 0.5)


@pytest.mark.soak
def test_two_processes_take_mail_for_a_minute(postgresql_url: str) -> None:
    """In a minute there is no error and no gap for a follower, and counters equal the rows."""
    print(f"{require_order(postgresql_url, 60)} mails in a minute")
