"""Retention: what is too old is hidden at once and gone soon after; nothing younger is."""

from collections.abc import Iterator

import pytest

from mailcheck.assembly.workers import Workers
from mailcheck.config.options import InboxOptions
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import HOUR, instant_of
from mailcheck.core.messages import Refusal
from mailcheck.daemon.retention import BATCH, REFUSALS_KEPT
from mailcheck.ports.engine import Transaction
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.blocked_worker import BlockedWorker
from tests.house import House, config_in_memory, result_of, run


class Archive(House):
    """A house with a retention of one hour, whose writes are counted."""

    def __init__(self) -> None:
        self.writer = BlockedWorker()
        config = config_in_memory(inbox=InboxOptions(retention_hours=1.0))
        super().__init__(config, Workers(self.writer, DirectWorker(), DirectWorker()))
        self.retention = self.assembly.mail.retention

    def rows(self, table: str) -> int:
        """Count the rows of a table."""

        def query(transaction: Transaction) -> int:
            row = transaction.row(f"SELECT COUNT(*) FROM {table}")
            return int(row[0]) if row else 0

        count: int = result_of(self.assembly.runtime.engine.read(query))
        return count

    def listed(self) -> int:
        """Count what the API lists."""
        page = run(self.assembly.inbox.read.page(self.account.id, MessageFilter(), 100, 1))
        return int(page.total)


@pytest.fixture
def archive() -> Iterator[Archive]:
    """A house with one mail, received at its beginning."""
    archive = Archive()
    archive.receive()
    yield archive
    archive.close()


def test_expired_mail_is_hidden_at_once(archive: Archive) -> None:
    """Until the last millisecond of its hour a mail is there, then nowhere, swept or not."""
    (message,) = archive.get("/inbox/messages").json["messages"]
    path = f"/inbox/messages/{message['id']}"
    archive.clock.advance(3599.999)
    assert archive.listed() == 1
    assert archive.get(path).status == 200
    archive.clock.advance(0.001)
    assert archive.listed() == 0
    assert archive.rows("message") == 1
    for asked in (path, f"{path}/raw"):
        assert archive.get(asked).status == 404
    assert archive.ask("DELETE", path).answer().status == 404


def test_sweeping(archive: Archive) -> None:
    """A sweep deletes what has expired, bytes and all, and nothing younger."""
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
    """Much expired mail is deleted a piece at a time, so that mail coming in waits a moment."""
    archive.receive(*[archive.address(f"t{number}") for number in range(count - 1)])
    archive.clock.advance(3600)
    before = archive.writer.calls
    run(archive.retention.sweep())
    assert archive.rows("message") == 0
    others = ("old refusals", "space that is given back", "the log, which makes the file shorter")
    assert archive.writer.calls - before == count // BATCH + 1 + len(others)


def test_old_refusals(archive: Archive) -> None:
    """Refusals are kept for an hour, long enough for whoever waits."""
    store = archive.assembly.mail.store
    now = instant_of(archive.clock.seconds())
    result_of(store.note_refusal(Refusal(archive.account.id, "a", "", "192.0.2.7", "full", now)))
    archive.clock.advance(REFUSALS_KEPT / 1000)
    run(archive.retention.sweep())
    assert archive.rows("refusal") == 1
    archive.clock.advance(0.001)
    run(archive.retention.sweep())
    assert archive.rows("refusal") == 0


def test_a_quota_that_expires(archive: Archive) -> None:
    """An inbox that is full has room again when its mail was swept away."""
    archive.account = archive.add_account("small", max_messages=1)
    archive.receive()
    archive.clock.advance(3600)
    run(archive.retention.sweep())
    archive.receive()
    assert archive.listed() == 1


def test_retention_is_what_the_configuration_says(archive: Archive) -> None:
    """Mail expires as many hours after its receipt as the configuration says."""
    (message,) = run(
        archive.assembly.inbox.read.page(archive.account.id, MessageFilter(), 1, 1)
    ).messages
    assert message.summary.expires_at - message.summary.received_at == HOUR
