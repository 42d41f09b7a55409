"""Derivation of new mail in the background."""

from collections.abc import Iterator

import pytest
from twisted.logger import LogEvent

from mailcheck.assembly.workers import Workers
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import DeliveryId
from mailcheck.daemon.derivation import LONGEST_PUT_OFF, REST_SHARE, Derivation
from mailcheck.engines.database import call_immediately
from mailcheck.operations.concurrency import QUIET, MailTraffic
from mailcheck.operations.inbox.contents import MessageContents
from mailcheck.ports.engine import Transaction
from mailcheck.store.transactions import for_each
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.blocked_worker import BlockedWorker
from tests.house import House, config_in_memory, result_of, run


class Workshop(House):
    """An application whose parsing of mails can be delayed."""

    def __init__(self) -> None:
        self.reader, self.content = BlockedWorker(), BlockedWorker()
        super().__init__(config_in_memory(), Workers(DirectWorker(), self.reader, self.content))
        self.derivation: Derivation = self.assembly.mail.derivation

    def underived(self) -> list[DeliveryId]:
        """Return the deliveries that are not derived yet."""
        found: list[DeliveryId] = result_of(self.assembly.mail.content_store.underived(1_000))
        return found

    def another(
        self, kind: type[MessageContents] = MessageContents, *, is_alone: bool
    ) -> Derivation:
        """Return a second derivation of the same mail, with its own kind of contents."""
        mail, clocks = self.assembly.mail, self.assembly.runtime.clocks
        contents = kind(mail.content_store, mail.mail_bytes, lambda content: None, self.clock)
        traffic = MailTraffic(self.clock, call_immediately)
        return Derivation(contents, mail.content_store, traffic, clocks, is_alone=is_alone)

    def rest(self, seconds: float = 10) -> None:
        """Advance the time in small steps."""
        for _ in range(int(seconds * 20)):
            self.clock.advance(0.05)


@for_each
def _rename(transaction: Transaction, names: tuple[str, str]) -> None:
    transaction.execute(f"ALTER TABLE {names[0]} RENAME TO {names[1]}")


@pytest.fixture
def shop() -> Iterator[Workshop]:
    """An application whose derivation is not started."""
    shop = Workshop()
    yield shop
    if shop.derivation.running:
        result_of(shop.derivation.stopService())
    shop.close()
    assert shop.clock.getDelayedCalls() == []


def test_new_mail(shop: Workshop) -> None:
    """New mail is derived after a short pause without mail."""
    shop.derivation.startService()
    for _ in range(3):
        shop.receive()
    assert len(shop.underived()) == 3
    shop.clock.advance(QUIET)
    shop.rest(1)
    assert shop.underived() == []


def test_mail_of_an_earlier_run(shop: Workshop) -> None:
    """Mail that an earlier run left is derived after a start, the oldest first."""
    for _ in range(3):
        shop.receive()
        shop.clock.advance(1)
    left = shop.underived()
    shop.content.hold_calls()
    shop.derivation.startService()
    for number in range(3):
        while not shop.content.held:
            shop.clock.advance(0.05)
        assert shop.underived() == left[number:]
        shop.content.held.pop(0)()
    assert shop.underived() == []
    shop.content.let_go()


def test_nothing_before_the_start(shop: Workshop) -> None:
    """Before the start of the service mail is queued."""
    shop.receive()
    shop.rest(1)
    assert len(shop.underived()) == 1
    shop.derivation.startService()
    shop.rest(1)
    assert shop.underived() == []


def test_it_rests(shop: Workshop) -> None:
    """After each mail there is a rest of three times its duration."""
    for _ in range(2):
        shop.receive()
    shop.clock.advance(1)
    shop.content.hold_calls()
    shop.derivation.startService()
    shop.clock.advance(2)
    shop.content.held.pop(0)()
    assert shop.content.held == []
    shop.clock.advance(2 * REST_SHARE - 0.1)
    assert shop.content.held == []
    shop.clock.advance(0.1)
    assert len(shop.content.held) == 1
    shop.content.let_go()
    shop.rest(1)


def test_a_burst_puts_it_off(shop: Workshop) -> None:
    """A burst of mail delays the work for a limited time."""
    shop.derivation.startService()
    steps = 0
    while shop.content.calls == 0:
        shop.receive()
        shop.clock.advance(QUIET / 2)
        steps += 1
        assert steps < 1_000
    assert LONGEST_PUT_OFF <= steps * QUIET / 2 <= LONGEST_PUT_OFF + 3 * QUIET


def test_a_mail_that_breaks_it(shop: Workshop, logged_failures: list[LogEvent]) -> None:
    """A mail that cannot be parsed is logged with its id, and others are derived."""
    broken = shop.receive()
    shop.receive()
    shop.clock.advance(1)

    class Breaking(MessageContents):
        async def of(self, delivery_id: DeliveryId) -> object:  # type: ignore[override]
            if delivery_id == broken:
                raise ZeroDivisionError
            return await super().of(delivery_id)

    derivation = shop.another(Breaking, is_alone=True)
    derivation.startService()
    shop.rest(1)
    assert shop.underived() == [broken]
    (event,) = logged_failures
    assert event["delivery"] == broken
    result_of(derivation.stopService())


def test_mail_that_was_deleted(shop: Workshop) -> None:
    """Mail that was deleted before its turn is skipped."""
    shop.receive()
    shop.clock.advance(1)
    shop.reader.hold_answers()
    shop.derivation.startService()
    now = shop.assembly.runtime.now()
    deleted = shop.assembly.mail.store.delete_matches(shop.account.id, MessageFilter(), now, 9)
    assert result_of(deleted) == 1
    shop.reader.let_go()
    shop.receive()
    shop.rest(1)
    assert shop.underived() == []


def test_a_store_that_is_away_at_the_start(shop: Workshop) -> None:
    """If the mail of an earlier run cannot be listed, new mail is derived."""
    result_of(shop.assembly.runtime.engine.write(_rename, ("content", "hidden")))
    shop.derivation.startService()
    result_of(shop.assembly.runtime.engine.write(_rename, ("hidden", "content")))
    shop.receive()
    shop.rest(1)
    assert shop.underived() == []


def test_stopping(shop: Workshop) -> None:
    """Stopping interrupts the work, which continues after the next start."""
    for _ in range(3):
        shop.receive()
    shop.clock.advance(1)
    shop.reader.hold_calls()
    shop.derivation.startService()  # listing what was left behind
    assert shop.derivation.stopService().called
    shop.reader.let_go()
    shop.content.hold_calls()
    shop.derivation.startService()  # taking a mail apart
    assert shop.derivation.stopService().called
    shop.content.let_go()
    shop.derivation.startService()
    shop.receive()
    shop.clock.advance(0)  # resting
    assert shop.derivation.stopService().called
    assert shop.clock.getDelayedCalls() == []
    shop.derivation.startService()
    shop.rest(1)
    assert shop.underived() == []


def test_stopping_when_idle(shop: Workshop) -> None:
    """A service that is idle or was never started stops at once."""
    assert shop.derivation.stopService().called
    shop.derivation.startService()
    assert shop.derivation.stopService().called


def test_mail_of_daemons_that_have_died(shop: Workshop) -> None:
    """The daemon that received a mail derives it, or any other daemon after a minute."""
    other = shop.another(is_alone=False)
    other.startService()
    for _ in range(3):
        shop.receive()
        shop.clock.advance(40)
        run(other.look_after_others())
        shop.rest(1)
    assert len(shop.underived()) == 1
    shop.clock.advance(60)
    run(other.look_after_others())
    shop.rest(1)
    assert shop.underived() == []
    result_of(other.stopService())
