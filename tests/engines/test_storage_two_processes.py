"""Two store processes on one PostgreSQL that take mail for one inbox, and sweep it."""

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
from tests.engines.deliveries import account
from tests.engines.test_storage_postgresql import ask_of
from tests.house import result_of

ANN = AccountId("ann")
ALWAYS = 0
"""Before anything has expired: a follower sees what is there, expired or not."""


class Follower:
    """Follows an inbox by its cursor, and notes each position that it did not see."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.position: Position = START
        self.seen: set[int] = set()

    def look(self, store: MailStore) -> None:
        """Read on from the last position that was seen."""
        wanted = MessageFilter(after=self.position)
        found, _ = result_of(store.oldest_matches(ANN, wanted, ALWAYS, 1_000))  # type: ignore[arg-type]
        for message in found:
            self.seen.add(message.summary.position)
            self.position = message.summary.position


def require_order(url: str, seconds: float) -> int:
    """Let two processes take mail while a follower reads; gives how many mails they stored."""
    engine = PostgresqlEngine(url, DirectWorker(), DirectWorker())
    engine.open()
    result_of(AccountStore(engine).add_account(account("ann")))
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
    # Those that were never seen had expired when they came, and were swept away at once;
    # of all others none may have been overtaken by a position above it.
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
    """For two seconds: no error, no gap for a follower, counters equal the rows."""
    require_order(postgresql_url, 2)


@pytest.mark.soak
def test_two_processes_take_mail_for_a_minute(postgresql_url: str) -> None:
    """For a minute: no error, no gap for a follower, counters equal the rows."""
    print(f"{require_order(postgresql_url, 60)} mails in a minute")
