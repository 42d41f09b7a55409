"""Operations on the tests of an account: create, find, wait, recheck, share and score."""

from collections.abc import Iterator
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred

from mailcheck.assembly.workers import Workers
from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.deliverability_tests import (
    DeliverabilityResult,
    DeliverabilityTest,
    State,
    local_part_of,
)
from mailcheck.core.errors import (
    DeliverabilityTestNotFound,
    MessageNotFound,
    ShareNotFound,
    ShuttingDown,
    TooManyWaits,
    WaitInterrupted,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import (
    AccountId,
    KeyId,
    MessageId,
    format_share_token,
)
from mailcheck.core.instants import HOUR
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.blocked_worker import BlockedWorker
from tests.fakes.analyst import REPORT
from tests.house import HouseWithAnalyst, config_in_memory, result_of, run
from tests.table import rows

UNKNOWN = ["aaaaaaaaaaaaa", "", "x", "a" * 13 + "\n", "AAAAAAAAAAAAA", "\udcff" * 13, "'; --"]


class Owner:
    """An account of a house whose analyses the test completes."""

    def __init__(self, house: HouseWithAnalyst) -> None:
        self.house = house
        self.analyst = house.analyst
        self.operations = house.assembly.tests.operations
        run(house.assembly.tests.runner.start())
        self.me = house.account.id
        self.stranger = house.add_account("stranger").id

    def generate(self) -> DeliverabilityTest:
        """Create a test."""
        test: DeliverabilityTest = run(self.operations.manage.create(self.me))
        return test

    def receive(self, test: DeliverabilityTest, **facts: Any) -> None:
        """Receive a mail for a test."""
        self.house.receive(f"{local_part_of(test.id)}@mailcheck.example", **facts)

    def completed(self) -> DeliverabilityTest:
        """Create a test and complete it with a report."""
        test = self.generate()
        self.receive(test)
        self.analyst.report()
        return test

    def find(self, test: DeliverabilityTest, account: AccountId | None = None) -> Any:
        """Return the current test."""
        return run(self.operations.manage.one(account or self.me, test.id))

    def wait(
        self, test: DeliverabilityTest, timeout: float = 30, account: AccountId | None = None
    ) -> "Deferred[DeliverabilityResult]":
        """Wait for a test."""
        caller = Caller(account or self.me, KeyId("key"), RequestLimits(1, 1))
        return Deferred.fromCoroutine(self.operations.wait.wait(caller, test.id, timeout))

    def parked(self) -> int:
        """Return the number of parked waits."""
        return self.house.assembly.tests.feeds.count()


@pytest.fixture
def owner() -> Iterator[Owner]:
    """An account that creates tests."""
    house = HouseWithAnalyst(config_in_memory())
    owner = Owner(house)
    yield owner
    run(house.assembly.tests.runner.stop())


def test_a_new_test(owner: Owner) -> None:
    """A new test is pending for an hour. Its id has 13 characters and survives case folding."""
    test = owner.generate()
    assert test.state is State.PENDING
    assert test.expires_at - test.created_at == HOUR
    assert len(test.id) == 13
    assert set(test.id) <= set("abcdefghijklmnopqrstuvwxyz234567")
    assert owner.find(test) == DeliverabilityResult(test)
    assert owner.generate().id != test.id


@rows(*UNKNOWN)
def test_a_test_that_does_not_exist(owner: Owner, test_id: Any) -> None:
    """No operation finds a test that does not exist."""
    operations, me = owner.operations, owner.me
    caller = Caller(me, KeyId("key"), RequestLimits(1, 1))
    for asked in (
        operations.manage.one(me, test_id),
        operations.manage.mail(me, test_id),
        operations.manage.recheck(me, test_id),
        operations.manage.renew_share_link(me, test_id),
        operations.wait.wait(caller, test_id, 30),
    ):
        with pytest.raises(DeliverabilityTestNotFound):
            run(asked)
    assert owner.parked() == 0


def test_recheck(owner: Owner) -> None:
    """A recheck analyses the same mail again, once at a time. Meanwhile there is no report."""
    test = owner.completed()
    moved: list[str] = []
    owner.house.assembly.tests.notifications.listen(moved.append)
    assert run(owner.operations.manage.recheck(owner.me, test.id)) is True
    assert moved == [test.id]
    assert len(owner.analyst.mails) == 2
    assert owner.analyst.mails[0] == owner.analyst.mails[1]
    found = owner.find(test)
    assert (found.test.state, found.report) == (State.PROCESSING, None)
    assert run(owner.operations.manage.recheck(owner.me, test.id)) is False
    assert len(owner.analyst.mails) == 2
    owner.analyst.report()
    assert owner.find(test).report == REPORT


def test_share_links_that_lead_nowhere(owner: Owner) -> None:
    """Share links with a wrong secret, another id or a message's token are not found."""
    test, other = owner.generate(), owner.generate()
    message = MessageId("01234567-89ab-7def-8123-456789abcdef")
    for token in (
        "",
        test.id,
        test.id + "a" * 26,
        test.id + test.share_token[:-1],
        other.id + test.share_token,
        (test.id + test.share_token).upper(),
        format_share_token(message, test.share_token),
    ):
        with pytest.raises(ShareNotFound):
            run(owner.operations.manage.open_shared(token))


def message_of(owner: Owner) -> MessageId:
    """Receive a mail in the inbox, and return its id."""
    owner.house.receive()
    store = owner.house.assembly.mail.store
    (message,), _ = result_of(
        store.oldest_matches(owner.me, MessageFilter(), owner.house.assembly.runtime.now(), 1)
    )
    return MessageId(message.summary.id)


def test_scoring_a_message_of_another_account(owner: Owner) -> None:
    """Only messages of the account can be scored."""
    message_id = message_of(owner)
    for account, wanted in ((owner.stranger, message_id), (owner.me, MessageId("gone"))):
        with pytest.raises(MessageNotFound):
            run(owner.operations.manage.score_message(account, wanted))
    assert owner.analyst.mails == []


def test_waiting(owner: Owner) -> None:
    """A wait lasts from pending over processing to the end, and all waits are notified."""
    test = owner.generate()
    waiting = [owner.wait(test) for _ in range(3)]
    assert owner.parked() == 3
    owner.receive(test)
    assert not any(one.called for one in waiting)
    owner.analyst.report()
    for one in waiting:
        assert result_of(one).report == REPORT
    assert owner.parked() == 0


def test_a_wait_that_times_out(owner: Owner) -> None:
    """At its timeout, a wait returns the current test and leaves nothing behind."""
    test = owner.generate()
    waiting = owner.wait(test, 30)
    owner.house.clock.advance(29.9)
    assert not waiting.called
    owner.house.clock.advance(0.1)
    assert result_of(waiting).test.state is State.PENDING
    owner.receive(test)
    waiting = owner.wait(test, 1)
    owner.house.clock.advance(1)
    assert result_of(waiting).test.state is State.PROCESSING
    assert owner.parked() == 0


@rows(0, 0.0005, 3_590, 3_599.9995)
def test_waiting_for_an_expiry(owner: Owner, age: float) -> None:
    """A wait ends when the address expires, without a notification."""
    owner.house.clock.advance(0.0003)
    test = owner.generate()
    owner.house.clock.advance(age)
    waiting = owner.wait(test, 10_000)
    owner.house.clock.advance(max(0, 3_599.99 - age))
    assert not waiting.called
    owner.house.clock.advance(0.02)
    assert result_of(waiting).test.state is State.EXPIRED


def test_a_wait_that_is_cancelled(owner: Owner) -> None:
    """A client that disconnects leaves no wait and no slot behind."""
    test = owner.generate()
    for _ in range(200):
        waiting = owner.wait(test)
        waiting.cancel()
        with pytest.raises(CancelledError):
            result_of(waiting)
    assert owner.parked() == 0
    owner.receive(test)
    owner.analyst.report()


def test_wait_slots(owner: Owner) -> None:
    """Waits for tests and for messages count together in the slots of the key."""
    test = owner.generate()
    waiting = [owner.wait(test, 5) for _ in range(100)]
    with pytest.raises(TooManyWaits):
        result_of(owner.wait(test))
    caller = Caller(owner.me, KeyId("key"), RequestLimits(1, 1))
    with pytest.raises(TooManyWaits):
        run(owner.house.assembly.inbox.wait.wait(caller, MessageFilter(), 5))
    owner.house.clock.advance(5)
    for one in waiting:
        result_of(one)
    owner.wait(test, 0)


def test_waits_when_the_daemon_stops(owner: Owner) -> None:
    """A stopping daemon interrupts waits and accepts no new ones."""
    test = owner.generate()
    waiting = owner.wait(test)
    owner.house.assembly.tests.feeds.close()
    for one in (waiting, owner.wait(test)):
        with pytest.raises(WaitInterrupted, match="restarting") as caught:
            result_of(one)
        assert caught.value.cursor is None
        assert isinstance(caught.value.__cause__, ShuttingDown)


def test_a_change_between_read_and_wait() -> None:
    """A wait notices that a test ended after it was read and before the wait was registered."""
    reader = BlockedWorker()
    workers = Workers(DirectWorker(), reader, DirectWorker())
    house = HouseWithAnalyst(config_in_memory(), workers)
    owner = Owner(house)
    store = house.assembly.tests.store
    message_id = message_of(owner)
    test = run(owner.operations.manage.score_message(owner.me, message_id))
    reader.hold_answers()
    waiting = owner.wait(test)
    assert len(reader.held) == 1
    result_of(store.complete(test.id, "daemon", REPORT))
    house.assembly.tests.notifications.publish(test.id)
    assert not waiting.called
    reader.let_go()
    assert result_of(waiting).report == REPORT
    owner.analyst.report()
    run(house.assembly.tests.runner.stop())
