"""Retention: expired data is hidden at once and deleted soon."""

from collections.abc import Iterator

import pytest

from mailcheck.assembly.workers import Workers
from mailcheck.config.options import InboxOptions
from mailcheck.core.accounts import AccountLimits
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import HOUR, instant_of, parse_instant
from mailcheck.core.messages import Refusal
from mailcheck.daemon.retention import BATCH, REFUSALS_KEPT, Retention
from mailcheck.ports.engine import Transaction
from mailcheck.store.messages import ExpiryStore
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.blocked_worker import BlockedWorker
from tests.house import House, config_in_memory, result_of, run
from tests.table import rows


class Archive(House):
    """An application with a retention of one hour that counts writes."""

    def __init__(self) -> None:
        self.writer = BlockedWorker()
        config = config_in_memory(inbox=InboxOptions(retention_hours=1.0))
        super().__init__(config, Workers(self.writer, DirectWorker(), DirectWorker()))
        self.retention = self.assembly.mail.retention

    def rows(self, table: str) -> int:
        """Return the number of rows of a table."""

        def query(transaction: Transaction) -> int:
            row = transaction.row(f"SELECT COUNT(*) FROM {table}")
            return int(row[0]) if row else 0

        count: int = result_of(self.assembly.runtime.engine.read(query))
        return count

    def listed(self) -> int:
        """Return the number of messages in the API's list."""
        page = run(self.assembly.inbox.read.page(self.account.id, MessageFilter(), 100, 1))
        return int(page.total)


@pytest.fixture
def archive() -> Iterator[Archive]:
    """An application with one mail, received at its start."""
    archive = Archive()
    archive.receive()
    yield archive
    archive.close()


class Keeping(House):
    """An application with a retention of a week, whose account may have its own."""

    def __init__(self) -> None:
        super().__init__(config_in_memory(inbox=InboxOptions(retention_hours=168.0)))
        self.store = ExpiryStore(self.assembly.runtime.engine)

    def ages(self) -> list[float]:
        """Return how many hours after its receipt each message expires, as the API tells it."""
        messages = self.get("/inbox/messages").json["messages"]
        return [
            (parse_instant(one["expiresAt"]) - parse_instant(one["receivedAt"])) / HOUR
            for one in messages
        ]

    def restart(self, hours: int) -> None:
        """Sweep as a daemon with another retention does."""
        retention = Retention(self.store, hours * HOUR, self.assembly.runtime.now, lambda _: None)
        run(retention.sweep())


@rows((72, [72, 72]), (48, [48]), (24, [24]), (1, [24]), (200, [168, 168]))
def test_a_shorter_retention(hours: int, ages: list[float]) -> None:
    """Stored mail that is older than the new retention, and than a day, is dropped."""
    house = Keeping()
    house.receive()
    house.clock.advance(50 * 3600)
    house.receive()
    house.restart(hours)
    assert house.ages() == ages
    house.clock.advance(23 * 3600)
    assert house.ages(), "a mail of 23 hours was dropped"
    house.close()


def test_the_retention_of_an_inbox() -> None:
    """A shorter retention of one inbox applies to its stored mail within a round."""
    house = Keeping()
    house.receive()
    house.clock.advance(30 * 3600)
    house.receive()
    run(house.assembly.mail.retention.sweep())
    assert house.ages() == [168, 168]
    limits = AccountLimits(retention_hours=26)
    run(house.assembly.accounts.keep.set_limits(house.account, limits))
    run(house.assembly.mail.retention.sweep())
    assert house.ages() == [26]
    house.close()


def test_sweeping(archive: Archive) -> None:
    """A sweep deletes exactly what has expired, with its bytes."""
    archive.clock.advance(1800)
    archive.receive()
    archive.clock.advance(1799)
    run(archive.retention.sweep())
    assert (archive.rows("message"), archive.rows("delivery")) == (2, 2)
    archive.clock.advance(1)
    run(archive.retention.sweep())
    assert (archive.rows("message"), archive.rows("delivery")) == (1, 1)
    assert archive.listed() == 1


@pytest.mark.parametrize("count", [BATCH - 1, BATCH, BATCH + 1])
def test_sweeping_in_pieces(archive: Archive, count: int) -> None:
    """Expired mail is deleted in batches, so that incoming mail waits briefly."""
    archive.receive(*[archive.address(f"t{number}") for number in range(count - 1)])
    archive.clock.advance(3600)
    before = archive.writer.calls
    run(archive.retention.sweep())
    assert archive.rows("message") == 0
    others = ("old refusals", "space that is given back", "the log, which makes the file shorter")
    assert archive.writer.calls - before == count // BATCH + 1 + len(others)


def test_old_refusals(archive: Archive) -> None:
    """Records of rejected mail are stored for an hour."""
    store = archive.assembly.mail.store
    now = instant_of(archive.clock.seconds())
    result_of(store.note_refusal(Refusal(archive.account.id, "a", "", "192.0.2.7", "full", now)))
    archive.clock.advance(REFUSALS_KEPT / 1000)
    run(archive.retention.sweep())
    assert archive.rows("refusal") == 1
    archive.clock.advance(0.001)
    run(archive.retention.sweep())
    assert archive.rows("refusal") == 0


def test_retention_is_what_the_configuration_says(archive: Archive) -> None:
    """Mail expires after the configured number of hours."""
    (message,) = run(
        archive.assembly.inbox.read.page(archive.account.id, MessageFilter(), 1, 1)
    ).messages
    assert message.summary.expires_at - message.summary.received_at == HOUR
