"""Following an inbox: every message is sent exactly once."""

from contextlib import aclosing
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred, succeed

from mailcheck.assembly.workers import Workers
from mailcheck.config.options import LimitsOptions
from mailcheck.core.cursors import START, Position
from mailcheck.core.errors import (
    ExpectedFailure,
    InvalidCredentials,
    InvalidParameter,
    StoreUnavailable,
    TooManyWaits,
    WaitInterrupted,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.operations.accounts import authenticate
from mailcheck.operations.inbox.feeds import LOOK_SIZE
from mailcheck.operations.inbox.follow_inbox import (
    CursorReached,
    Event,
    MailRefused,
    MessageArrived,
)
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.blocked_worker import BlockedWorker
from tests.house import House, config_in_memory, mail, result_of, run
from tests.web.workers import FaultyWorker

FROM_START = MessageFilter(after=START)


class Listener:
    """A client that follows an inbox. A slow one reads an event and then pauses."""

    def __init__(
        self,
        house: House,
        wanted: MessageFilter = FROM_START,
        *,
        is_slow: bool = False,
        **more: Any,
    ) -> None:
        caller = run(house.assembly.accounts.authenticator.identify(more.pop("key", house.key)))
        self.events = house.assembly.inbox.follow.follow(caller, wanted, **more)
        self.heard: list[Event] = []
        self.failure: Any = None
        self.has_ended = False
        self.may_read: Deferred[None] = Deferred() if is_slow else succeed(None)
        self._listening = Deferred.fromCoroutine(self._listen())

    async def _listen(self) -> None:
        try:
            async with aclosing(self.events):
                async for event in self.events:
                    self.heard.append(event)
                    await self.may_read
        except CancelledError:
            pass
        except ExpectedFailure as failure:
            self.failure = failure
        self.has_ended = True

    @property
    def subjects(self) -> list[str]:
        """Return the subjects of the received messages."""
        return [
            one.message.summary.header.subject
            for one in self.heard
            if isinstance(one, MessageArrived)
        ]

    @property
    def cursor(self) -> Position:
        """Return the last received cursor."""
        return [one.cursor for one in self.heard if not isinstance(one, MailRefused)][-1]

    def leave(self) -> None:
        """Disconnect."""
        self._listening.cancel()
        result_of(self._listening)


def test_without_a_cursor_it_begins_now(house: House) -> None:
    """Without a cursor, only later messages are sent. The first event is the starting cursor."""
    house.receive(raw=mail("Before"))
    listener = Listener(house, MessageFilter())
    assert listener.heard == [CursorReached(Position(1))]
    house.receive(raw=mail("After"))
    assert listener.subjects == ["After"]
    listener.leave()


def test_filters(house: House) -> None:
    """Only messages that match the filters for envelope, header and content are sent."""
    tagged = Listener(house, MessageFilter(tag="A", after=START))
    text = Listener(house, MessageFilter(text="code is 7", after=START))
    house.receive(house.address("a"), raw=mail("One"))
    house.receive(house.address("b"), raw=mail("Two", "Your code is 7"))
    assert (tagged.subjects, text.subjects) == (["One"], ["Two"])
    for listener in (tagged, text):
        listener.leave()


def test_rejections_are_sent_in_order(house: House) -> None:
    """Rejections that may have matched, including stored ones, are sent in order."""
    house.receive(raw=mail("One"))
    house.refuse("a", "too large")
    house.receive(raw=mail("Two"))
    everybody = Listener(house)
    other = Listener(house, MessageFilter(tag="b", after=START))
    house.refuse("b", "too late")
    kinds = [type(one).__name__ for one in everybody.heard if not isinstance(one, CursorReached)]
    assert kinds == ["MessageArrived", "MailRefused", "MessageArrived", "MailRefused"]
    reasons = [one.refusal.reason for one in other.heard if isinstance(one, MailRefused)]
    assert reasons == ["too late"]
    for listener in (everybody, other):
        listener.leave()


def test_heartbeats_carry_the_newest_cursor(house: House) -> None:
    """A cursor is sent after 15 s without one. No unsent message before it matches."""
    listener = Listener(house, MessageFilter(tag="mine", after=START))
    house.receive(house.address("other"))
    house.pass_time(14.9)
    assert len(listener.heard) == 1
    house.pass_time(0.2)
    assert listener.heard[1:] == [CursorReached(Position(1))]
    house.receive(house.address("mine"))
    house.pass_time(14)
    assert len(listener.heard) == 3
    house.pass_time(1.1)
    assert listener.heard[3:] == [CursorReached(Position(2))]
    listener.leave()


def test_it_ends_in_time(house: House) -> None:
    """A stream with a duration ends on time, with the cursor after all sent messages."""
    listener = Listener(house, FROM_START, seconds=20)
    house.pass_time(10)
    house.receive(raw=mail("In time"))
    house.pass_time(10)
    assert listener.has_ended
    assert listener.failure is None
    assert listener.heard[-1] == CursorReached(Position(1))
    assert house.assembly.mail.feeds.count() == 0


def test_a_foreign_cursor_is_refused(house: House) -> None:
    """A position that the inbox has not reached is rejected: it belongs to another inbox."""
    listener = Listener(house, MessageFilter(after=Position(7)))
    assert isinstance(listener.failure, InvalidParameter)
    assert listener.heard == []


def test_streams_use_wait_slots() -> None:
    """Waits and streams of a key share its slots, and an ended stream frees its slot."""
    house = House(config_in_memory(limits=LimitsOptions(waits_per_key=1)))
    first, second = Listener(house), Listener(house)
    assert isinstance(second.failure, TooManyWaits)
    assert house.get("/inbox/wait").status == 429
    first.leave()
    third = Listener(house)
    assert third.failure is None
    third.leave()


def test_it_ends_with_its_key(house: House) -> None:
    """When a key is revoked, its streams end at the next check, and no others."""
    (key,) = run(house.assembly.accounts.keep.list_keys(house.account))
    other_key = house.issue_key(house.account)
    listener, other = Listener(house), Listener(house, key=other_key)
    run(house.assembly.accounts.ended_access.check())
    assert not listener.has_ended
    run(house.assembly.accounts.keep.revoke_key(key.id))
    run(house.assembly.accounts.ended_access.check())
    assert isinstance(listener.failure, InvalidCredentials)
    assert not other.has_ended
    other.leave()
    assert house.assembly.accounts.ended_access._ends.watched() == ()
    assert authenticate.ACCESS_INTERVAL < 1


def test_a_slow_client_misses_nothing(house: House) -> None:
    """At most a few hundred messages are held for a slow client, and it gets all of them."""
    listener = Listener(house, is_slow=True)
    count = LOOK_SIZE + 30
    for number in range(count):
        house.receive(raw=mail(f"{number}"))
    (waiter,) = house.assembly.mail.feeds.waiters()
    assert waiter.has_missed
    assert len(waiter._messages) == LOOK_SIZE
    listener.may_read.callback(None)
    assert listener.subjects == [str(number) for number in range(count)]
    house.receive(raw=mail("and then"))
    assert listener.subjects[-1] == "and then"
    listener.leave()


def test_a_stopping_daemon_and_a_failing_store() -> None:
    """Both end the stream, with a cursor to continue from."""
    reader = FaultyWorker()
    workers = Workers(DirectWorker(), reader, DirectWorker(), DirectWorker())
    house = House(config_in_memory(), workers)
    house.receive()
    first = Listener(house)
    reader.fault = StoreUnavailable("the disk is gone")
    house.assembly.mail.notifications.publish(house.account.id)
    reader.fault = None
    second = Listener(house)
    house.assembly.mail.feeds.close()
    for listener in (first, second):
        assert isinstance(listener.failure, WaitInterrupted)
        assert listener.failure.cursor == "c1"


STEPS = st.tuples(
    st.sampled_from(
        ["send", "send", "refuse", "hold calls", "hold answers", "let one go", "come again"]
    ),
    st.sampled_from(["a", "b"]),
)


class Room(House):
    """A house whose reads can be held.

    Unless ``ours`` is true, another daemon receives the mail, and only its hints arrive here.
    """

    def __init__(self, *, ours: bool) -> None:
        self.reader = BlockedWorker()
        super().__init__(config_in_memory(), Workers(DirectWorker(), self.reader, DirectWorker()))
        if not ours:
            self.receiver = self.receiver_elsewhere()
        self.receive(self.address("start"))  # from here on the receiver knows the inbox


@settings(max_examples=settings().max_examples // 2)
@given(steps=st.lists(STEPS, max_size=25), ours=st.booleans())
def test_any_order(steps: list[tuple[str, str]], ours: bool) -> None:
    """In any order of reads, mails and connections, each message is sent exactly once."""
    house = Room(ours=ours)
    wanted = MessageFilter(tag="a", after=START)
    listener = Listener(house, wanted)
    told: list[str] = []
    sent: list[str] = []
    for number, (step, tag) in enumerate(steps):
        if step == "send":
            house.receive(house.address(tag), raw=mail(str(number)))
            sent += [str(number)] if tag == "a" else []
        elif step == "refuse":
            house.refuse(tag)
        elif step == "hold calls":
            house.reader.hold_calls()
        elif step == "hold answers":
            house.reader.hold_answers()
        elif step == "let one go" and house.reader.held:
            house.reader.held.pop(0)()
        elif step == "come again" and listener.heard:
            told += listener.subjects
            wanted = replace(wanted, after=listener.cursor)
            listener.leave()
            house.reader.let_go()  # what tells whose key it is
            listener = Listener(house, wanted)
    house.reader.let_go()
    assert told + listener.subjects == sent
    listener.leave()
    house.reader.let_go()
    house.close()
