"""Waiting for mail: no order of events loses a message, and waits leave no data behind."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from mailcheck.assembly.workers import Workers
from mailcheck.cluster.local import LocalNotifications
from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.content import MessageContent
from mailcheck.core.cursors import START, Position
from mailcheck.core.errors import (
    ExpectedFailure,
    InvalidParameter,
    StoreUnavailable,
    TooManyWaits,
    WaitInterrupted,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, DeliveryId, KeyId, MessageId
from mailcheck.core.instants import Instant, instant_of
from mailcheck.core.messages import Delivery, Envelope, Recipient, Session, StoredMessage
from mailcheck.operations.inbox.contents import LARGE, SAVE_DELAY
from mailcheck.operations.inbox.explain_wait import SEEN_LIMIT, TimedOut
from mailcheck.operations.inbox.feeds import LOOK_SIZE, MailHandoff
from mailcheck.operations.inbox.wait_for_message import GRACE, Messages, NoMessage
from mailcheck.ports.engine import Transaction
from mailcheck.store.transactions import for_each
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.blocked_worker import BlockedWorker
from tests.house import House, config_in_memory, mail, result_of, run

ANY = MessageFilter()

STEPS = st.tuples(
    st.sampled_from(["wait", "send", "hold calls", "hold answers", "let one go", "let one go"]),
    st.sampled_from(["", "a", "b"]),
    st.integers(0, 9),
)
"""An event: its kind, its tag, and the index of the object it affects."""

Steps = list[tuple[str, str, int]]


class WaitingRoom(House):
    """A house whose reads can be held, and whose waits are called directly.

    Unless ``ours`` is true, another daemon receives the mail, and only its hints arrive here.
    """

    def __init__(self, *, ours: bool = False) -> None:
        self.reader, self.content = BlockedWorker(), BlockedWorker()
        super().__init__(config_in_memory(), Workers(DirectWorker(), self.reader, self.content))
        if not ours:
            self.receiver = self.receiver_elsewhere()
        self.receive()  # now the receiver has cached the inbox
        run(self.assembly.inbox.delete.matching(self.account.id, ANY))

    def caller(self, key: str = "key") -> Caller:
        """Return a caller of the first account."""
        position = result_of(self.assembly.runtime.engine.write(_newest_position, self.account.id))
        return Caller(self.account.id, KeyId(key), RequestLimits(60, 1000), position)

    def wait(
        self, wanted: MessageFilter = ANY, timeout: float = 30, key: str = "key"
    ) -> "Deferred[StoredMessage | TimedOut]":
        """Start a wait whose request arrives now."""
        return Deferred.fromCoroutine(
            self.assembly.inbox.wait.wait(self.caller(key), wanted, timeout)
        )

    def send_large(self, subject: str = "Welcome") -> None:
        """Receive a mail that is too large to be read along with its message."""
        self.send(subject=subject, body="x\r\n" * (LARGE // 3))

    def send(self, tag: str = "", subject: str = "Welcome", body: str = "Hello") -> None:
        """Receive a mail. Reads may be held meanwhile."""
        self.receive(self.address(tag), raw=mail(subject, body))

    def delete_unread(self) -> None:
        """Delete all mail without a read. Reads may be held meanwhile."""
        everything = (self.account.id, ANY, self.assembly.runtime.now(), 9)
        result_of(self.assembly.mail.store.delete_matches(*everything))

    def cursor(self) -> Position:
        """Return the newest position of the inbox."""
        position: Position = run(self.assembly.inbox.read.state(self.account.id)).last_position
        return position

    def is_idle(self) -> bool:
        """Return whether no wait is parked and no call is scheduled."""
        return self.assembly.mail.feeds.count() == 0 and not self.clock.getDelayedCalls()


@for_each
def _newest_position(transaction: Transaction, account_id: AccountId) -> Position:
    """Read the position without the readers, which may be held."""
    row = transaction.row("SELECT last_position FROM inbox WHERE account_id = ?", (account_id,))
    assert row is not None
    return Position(row[0])


@for_each
def _break_store(transaction: Transaction, item: None) -> None:
    transaction.execute("ALTER TABLE inbox RENAME TO hidden")


@pytest.fixture
def room() -> Iterator[WaitingRoom]:
    """An empty inbox whose newest position is 1."""
    room = WaitingRoom()
    yield room
    room.reader.let_go()
    room.content.let_go()
    assert room.is_idle()
    room.close()


def found(waiting: "Deferred[StoredMessage | TimedOut]") -> StoredMessage:
    """Return the message that a wait must have received by now."""
    outcome = result_of(waiting)
    assert isinstance(outcome, StoredMessage)
    return outcome


def in_vain(waiting: "Deferred[StoredMessage | TimedOut]") -> TimedOut:
    """Return the timeout result that a wait must have by now."""
    outcome = result_of(waiting)
    assert isinstance(outcome, TimedOut)
    return outcome


def lose_hints(room: WaitingRoom) -> None:
    """Drop all hints from now on."""
    assert isinstance(room.assembly.mail.notifications, LocalNotifications)
    room.assembly.mail.notifications._listeners.clear()


def failure_of(waiting: "Deferred[Any]", kind: type[ExpectedFailure]) -> Any:
    """Return the failure that a wait must have by now."""
    with pytest.raises(kind) as caught:
        result_of(waiting)
    return caught.value


def delivery_to(room: WaitingRoom) -> Delivery:
    """Return a mail to the inbox in the form that the store expects."""
    return Delivery(
        id=DeliveryId("delivery"),
        session=Session("192.0.2.7", "mx.example.com", True),
        envelope=Envelope("shop@example.com", (Recipient(room.address(), room.account.id, ""),)),
        raw_message=mail(),
        received_at=Instant(0),
        expires_at=Instant(1),
        message_ids=(MessageId("message"),),
        share_tokens=("token",),
    )


def play(
    room: WaitingRoom, steps: Steps, begin: Callable[[str, Position], "Deferred[Any]"]
) -> tuple[list[tuple[str, Position, "Deferred[Any]"]], list[str]]:
    """Run the steps, then release all held reads; return the waits and the tags of the mails.

    :param begin: starts a wait for a tag, after a position.
    """
    waits, sent = [], list[str]()
    for step, tag, number in steps:
        if step == "wait":
            after = Position(1 + number % (len(sent) + 1))
            waits.append((tag, after, begin(tag, after)))
        elif step == "send":
            room.send(tag)
            sent.append(tag)
        elif step == "hold calls":
            room.reader.hold_calls()
        elif step == "hold answers":
            room.reader.hold_answers()
        elif room.reader.held:
            room.reader.held.pop(number % len(room.reader.held))()
    room.reader.let_go()
    return waits, sent


def leave(room: WaitingRoom, waits: "list[Deferred[Any]]") -> None:
    """Stop the daemon, and check that its waits leave nothing behind."""
    room.assembly.mail.feeds.close()
    for waiting in waits:
        waiting.addErrback(lambda _: None)
    room.clock.advance(SAVE_DELAY)
    assert room.is_idle()
    room.close()


class TestNothingIsMissed:
    """A mail that arrives at any moment reaches every wait for it."""

    def test_more_than_one_read_returns(self, room: WaitingRoom) -> None:
        """If a mail has more recipients than one read returns, all messages are found."""
        for size in (LOOK_SIZE, LOOK_SIZE + 1):
            waits = [room.wait(MessageFilter(tag=f"t{number}")) for number in (0, size - 1)]
            room.receive(*[room.address(f"t{number}") for number in range(size)])
            assert [found(one).summary.tag for one in waits] == ["t0", f"t{size - 1}"]
            run(room.assembly.inbox.delete.matching(room.account.id, ANY))

    def test_a_lost_hint(self, room: WaitingRoom) -> None:
        """A mail whose hint was lost is found when the feed next reads all inboxes."""
        waiting = room.wait()
        lose_hints(room)
        room.send(subject="unheard")
        assert not waiting.called
        room.assembly.mail.feeds.check_all()
        assert found(waiting).summary.header.subject == "unheard"

    def test_mail_of_another_daemon_between_own_mails(self, room: WaitingRoom) -> None:
        """One hint for two own mails makes the feed read what lies between them."""
        waiting = room.wait(MessageFilter(tag="wanted"))
        lose_hints(room)
        for tag in ("own", "wanted", "own"):
            room.send(tag)
        feeds, last = room.assembly.mail.feeds, room.cursor()
        feeds.advance_past(room.account.id, Position(last - 2))
        feeds.advance_past(room.account.id, last)
        assert not waiting.called
        feeds.on_hint(room.account.id)
        assert found(waiting).summary.tag == "wanted"

    def test_a_lost_hint_at_the_end(self, room: WaitingRoom) -> None:
        """A wait reads once more at its end, so that it returns stored mail without a hint."""
        waiting = room.wait(timeout=5)
        lose_hints(room)
        room.send(subject="unheard")
        room.clock.advance(5)
        assert found(waiting).summary.header.subject == "unheard"

    @settings(max_examples=settings().max_examples // 2)
    @given(st.lists(STEPS, min_size=1, max_size=14), st.booleans())
    def test_any_order(self, steps: Steps, ours: bool) -> None:
        """In any order of waits, mails, reads and answers, each wait gets its oldest match."""
        room = WaitingRoom(ours=ours)

        def begin(tag: str, after: Position) -> "Deferred[StoredMessage | TimedOut]":
            return room.wait(MessageFilter(tag=tag or None, after=after))

        waits, sent = play(room, steps, begin)
        for wanted_tag, after, waiting in waits:
            expected = [
                number
                for number, tag in enumerate(sent, 2)
                if number > after and wanted_tag in ("", tag)
            ]
            assert waiting.called == bool(expected)
            if expected:
                assert found(waiting).summary.position == expected[0]
        leave(room, [waiting for _, _, waiting in waits])


@pytest.fixture
def lobby() -> Iterator[WaitingRoom]:
    """An empty inbox whose mail arrives at the same daemon as its waits."""
    lobby = WaitingRoom(ours=True)
    yield lobby
    lobby.reader.let_go()
    lobby.clock.advance(SAVE_DELAY)
    assert lobby.is_idle()
    lobby.close()


class TestOwnMail:
    """Mail stored by this daemon is passed directly to its waits."""

    def test_it_is_not_read_again(self, lobby: WaitingRoom) -> None:
        """A new message is passed on without a read. Its content is saved soon afterwards."""
        waits = [lobby.wait(key=f"key {number}") for number in range(3)]
        lobby.reader.hold_calls()
        lobby.send("A", subject="Gr\u00fc\u00dfe")
        message, *others = map(found, waits)
        assert all(other is message for other in others)
        lobby.reader.let_go()
        load = lobby.assembly.inbox.read.message(lobby.account.id, message.summary.id)
        stored = run(load)
        for name in ("summary", "envelope_sender", "session", "content"):
            assert getattr(stored, name) == getattr(message, name)
        content = lobby.assembly.mail.content_store.find_content
        assert result_of(content(message.summary.delivery_id)) is None
        lobby.clock.advance(SAVE_DELAY)
        assert result_of(content(message.summary.delivery_id)) == message.content

    def test_mail_without_waits_is_not_parsed(self, lobby: WaitingRoom) -> None:
        """Mail without a wait is derived later, not while it is being written."""
        waiting = lobby.wait(MessageFilter(tag="a"))
        lobby.send("b")
        assert not lobby.clock.getDelayedCalls()[1:]  # except for the end of the wait
        lobby.send("A")
        assert found(waiting).summary.tag == "A"

    def test_it_goes_to_the_disk_first(self, lobby: WaitingRoom) -> None:
        """A mail is parsed after its write has started, so that the write is not delayed."""
        later: list[Callable[[], object]] = []
        assembly = lobby.assembly
        contents, want = assembly.mail.contents, assembly.mail.derivation.want
        waiting = lobby.wait()
        lobby.content.hold_calls()
        MailHandoff(assembly.mail.feeds, contents, want, later.append).expect(delivery_to(lobby))
        assert not lobby.content.held
        (derive,) = later
        derive()
        assert len(lobby.content.held) == 1
        lobby.content.let_go()
        waiting.cancel()
        with pytest.raises(CancelledError):
            result_of(waiting)

    def test_earlier_mail_of_another_daemon(self, lobby: WaitingRoom) -> None:
        """A wait does not get a message before an older match that must be read."""
        ours, lobby.receiver = lobby.receiver, lobby.receiver_elsewhere()
        lobby.send(subject="before")  # now this daemon knows the inbox, too
        waiting = lobby.wait()
        lobby.reader.hold_calls()
        lose_hints(lobby)
        lobby.send(subject="from elsewhere")
        lobby.receiver = ours
        lobby.send(subject="ours")
        assert not waiting.called
        lobby.assembly.mail.feeds.check_all()
        lobby.reader.let_go()
        assert found(waiting).summary.header.subject == "from elsewhere"

    def test_mail_that_could_not_be_written(self, lobby: WaitingRoom) -> None:
        """A mail whose commit failed is passed to no wait."""
        waiting = lobby.wait()
        result_of(lobby.assembly.runtime.engine.write(_break_store, None))
        with pytest.raises(StoreUnavailable):
            lobby.send()
        assert not waiting.called
        lobby.assembly.mail.feeds.close()
        failure_of(waiting, WaitInterrupted)


class TestManyWaits:
    """The cost of a mail does not depend on the number of waits."""

    def test_a_broadcast_is_one_read(self, room: WaitingRoom) -> None:
        """For any number of waits, a mail is found by one read and loaded once."""
        waits = [room.wait(key=f"key {number}") for number in range(300)]
        calls = room.reader.calls
        room.reader.hold_calls()
        room.send()
        assert room.reader.calls == calls + 1
        room.reader.held.pop(0)()
        room.reader.let_go()
        # The read also returns the bytes from which the content is derived.
        assert room.reader.calls == calls + 1
        assert len({id(found(one)) for one in waits}) == 1

    def test_a_stored_message_is_one_read(self, room: WaitingRoom) -> None:
        """One call of the store returns the message with its content, or with the raw bytes."""
        room.send("a", subject="new")
        room.send("a", subject="known")
        run(room.assembly.inbox.read.page(room.account.id, ANY, 1, 1))
        for position, content in ((1, bytes), (2, MessageContent)):
            calls = room.reader.calls
            room.assembly.inbox.wait.loader._contents._recent.clear()
            assert found(room.wait(MessageFilter(after=Position(position)))).content.text
            assert room.reader.calls == calls + 1, content

    def test_waits_for_other_tags_are_not_touched(self, room: WaitingRoom) -> None:
        """A mail is passed to waits for its tag, in any case, and to waits without a tag."""
        order: list[str] = []

        def note(outcome: object, name: str) -> None:
            if isinstance(outcome, StoredMessage):
                order.append(name)

        for tag in ("a", None, "B", "b", "c"):
            waiting: Deferred[Any] = room.wait(MessageFilter(tag=tag))
            waiting.addCallback(note, str(tag))
        room.send("b")
        assert order == ["B", "b", "None"]
        assert room.assembly.mail.feeds.count() == 2
        room.clock.advance(30)

    def test_inboxes_are_apart(self, room: WaitingRoom) -> None:
        """Mail for one account does not wake waits of another."""
        other = room.add_account("other")
        waiting = room.wait()
        calls = room.reader.calls
        room.receive(room.address(account=other))
        assert not waiting.called
        assert room.reader.calls <= calls + 1  # the receiver finds the inbox
        room.send()
        assert found(waiting).summary.account_id == room.account.id

    def test_slots(self, room: WaitingRoom) -> None:
        """A key has a limited number of wait slots, and an ended wait frees its slot."""
        limit = room.assembly.runtime.config.limits.waits_per_key
        waits = [room.wait(MessageFilter(tag="x"), timeout=10 + n) for n in range(limit)]
        refused = failure_of(room.wait(), TooManyWaits)
        assert refused.retry_after == 1
        assert str(limit) in str(refused)
        other = room.wait(timeout=1, key="other key")
        room.clock.advance(1)
        in_vain(other)
        room.clock.advance(9)
        in_vain(waits[0])
        again = room.wait(timeout=1)
        room.clock.advance(1)
        in_vain(again)
        room.clock.advance(limit)
        assert all(one.called for one in waits)


class TestTheEnd:
    """However a wait ends, it returns a cursor to continue from, and leaves no data behind."""

    def test_time_out(self, room: WaitingRoom) -> None:
        """A wait without a match ends on time with the newest cursor and its duration."""
        waiting = room.wait(MessageFilter(tag="x"), timeout=7.5)
        room.send("y")
        room.clock.advance(7.4)
        assert not waiting.called
        room.clock.advance(0.1)
        outcome = in_vain(waiting)
        assert (outcome.waited, outcome.cursor) == (7.5, 2)
        assert (outcome.seen, outcome.other_tags) == ((), 1)
        assert outcome.missed is None

    def test_going_on(self, room: WaitingRoom) -> None:
        """A client that continues from the cursor of a timed-out wait misses no message."""
        waiting = room.wait(MessageFilter(tag="x"), timeout=1)
        room.reader.hold_answers()
        room.clock.advance(1)
        room.reader.hold_calls()
        room.reader.held.pop(0)()  # the last read
        room.send("x")
        room.reader.let_go()
        outcome = in_vain(waiting)
        assert outcome.cursor == 1
        assert (outcome.seen, outcome.other_tags, outcome.missed) == ((), 0, None)
        again = room.wait(MessageFilter(tag="x", after=outcome.cursor))
        assert found(again).summary.position == 2

    def test_seen(self, room: WaitingRoom) -> None:
        """Near misses of the last ten minutes are explained; other messages are counted.

        A near miss has the expected recipient, or a mistyped or missing tag.
        """
        room.send("sign-up", subject="old")
        room.clock.advance(601)
        for number in range(120):
            room.send(f"t{number}")
        room.send("", subject="lost")
        room.send("signup", subject="mistyped")
        for number in range(SEEN_LIMIT):
            room.send("sign-up", subject=f"other {number}")
        wanted = MessageFilter(tag="sign-up", subject="code", author="nobody")
        waiting = room.wait(wanted, timeout=1)
        room.send("t0", subject="code")
        room.clock.advance(1)
        outcome = in_vain(waiting)
        subjects = [seen.message.header.subject for seen in outcome.seen]
        assert subjects == [f"other {number}" for number in range(SEEN_LIMIT - 1, -1, -1)]
        assert outcome.other_tags == 121
        again = room.wait(MessageFilter(tag="sign-up", after=Position(121)), timeout=1)
        assert found(again).summary.header.subject == "other 0"
        waiting = room.wait(MessageFilter(tag="sign_up", after=Position(121)), timeout=1)
        room.clock.advance(1)
        reasons = [seen.reasons for seen in in_vain(waiting).seen]
        assert reasons == [("its tag is 'sign-up', not 'sign_up'",)] * SEEN_LIMIT

    def test_nothing_behind_a_cursor(self, room: WaitingRoom) -> None:
        """After a cursor, earlier messages and rejections are not explained."""
        room.send("x")
        room.refuse("x")
        position = room.cursor()
        reads = room.reader.calls
        waiting = room.wait(MessageFilter(tag="x", after=position), timeout=1)
        room.clock.advance(1)
        outcome = in_vain(waiting)
        assert room.reader.calls == reads + 2  # the first read and the last
        assert (outcome.seen, outcome.rejected, outcome.missed) == ((), (), None)
        waiting = room.wait(MessageFilter(tag="x", after=position), timeout=1)
        room.refuse("other")
        room.refuse("X")
        room.refuse("another")
        room.clock.advance(1)
        outcome = in_vain(waiting)
        assert [one.tag for one in outcome.rejected] == ["X"]
        waiting = room.wait(MessageFilter(tag="y", after=position), timeout=1)
        room.clock.advance(1)
        assert in_vain(waiting).rejected == ()

    def test_missed(self, room: WaitingRoom) -> None:
        """A match that arrived before the request is reported, with its age."""
        room.send("x")
        room.clock.advance(4)
        since = instant_of(room.clock.seconds())
        waiting = room.wait(MessageFilter(tag="x", since=since), timeout=2)
        room.clock.advance(2)
        outcome = in_vain(waiting)
        assert outcome.missed is not None
        assert (outcome.missed.position, outcome.missed_by) == (2, 4_000)

    def test_the_default_start(self, room: WaitingRoom) -> None:
        """Without ``since`` and ``after``, only mail that arrives after the request counts."""
        room.send(subject="before")
        room.clock.advance(0.001)
        waiting = room.wait(timeout=1)
        room.clock.advance(1)
        outcome = in_vain(waiting)
        assert [seen.reasons for seen in outcome.seen] == [("it arrived 0.0 s before since",)]
        waiting = room.wait()
        room.send(subject="after")
        assert found(waiting).summary.header.subject == "after"

    def test_no_clock_decides(self, room: WaitingRoom) -> None:
        """Mail that another daemon received counts, even if the clock of that daemon is wrong."""
        for seconds in (-2, 4):
            waiting = room.wait()
            room.clock.rightNow += seconds
            room.send(subject=f"{seconds} s")
            assert found(waiting).summary.header.subject == f"{seconds} s"

    def test_from_the_start(self, room: WaitingRoom) -> None:
        """The cursor before all mail is valid: earlier messages count."""
        room.send(subject="before")
        room.clock.advance(1)
        outcome = found(room.wait(MessageFilter(after=START)))
        assert outcome.summary.header.subject == "before"

    def test_whether_since_was_given(self, room: WaitingRoom) -> None:
        """A timed-out wait reports whether the caller gave ``since``, or it is the default."""
        now = instant_of(room.clock.seconds())
        filters = (ANY, MessageFilter(after=Position(1)), MessageFilter(since=now))
        waits = [room.wait(wanted, timeout=1) for wanted in filters]
        room.clock.advance(1)
        assert [in_vain(one).gave_since for one in waits] == [False, False, True]

    @pytest.mark.parametrize("moment", ["parked", "reading", "at its end"])
    def test_cancelled(self, room: WaitingRoom, moment: str) -> None:
        """A client that disconnects at any moment leaves no wait and no call behind."""
        if moment == "reading":
            room.reader.hold_answers()
        waiting = room.wait(timeout=1)
        if moment == "at its end":
            room.reader.hold_calls()
            room.clock.advance(1)
        self.cancel(waiting)
        assert room.is_idle()
        room.send()

    def test_cancelled_while_loading(self, room: WaitingRoom) -> None:
        """A client that disconnects while its message is loaded does not affect other waits."""
        waits = [room.wait() for _ in range(3)]
        room.reader.hold_calls()
        room.send_large()
        room.reader.held.pop(0)()
        self.cancel(waits.pop(1))
        room.reader.let_go()
        assert len({found(one).summary.id for one in waits}) == 1

    @staticmethod
    def cancel(waiting: "Deferred[Any]") -> None:
        """Cancel a wait, as a disconnect does."""
        failures: list[Failure] = []
        waiting.addErrback(failures.append)
        waiting.cancel()
        assert [failure.type for failure in failures] == [CancelledError]

    def test_shutdown(self, room: WaitingRoom) -> None:
        """At shutdown a wait ends with its first cursor, and new waits are rejected."""
        room.send()
        waiting = room.wait(MessageFilter(tag="x"))
        with_cursor = room.wait(MessageFilter(tag="x", after=Position(1)))
        room.send()
        room.assembly.mail.feeds.close()
        assert failure_of(waiting, WaitInterrupted).cursor == "c2"
        assert failure_of(with_cursor, WaitInterrupted).cursor == "c1"
        late = failure_of(room.wait(MessageFilter(after=Position(1))), WaitInterrupted)
        assert late.cursor == "c1"
        assert failure_of(room.wait(), WaitInterrupted).cursor == "c3"

    def test_shutdown_while_reading(self, room: WaitingRoom) -> None:
        """A wait that finds its message during shutdown returns it, and nothing is logged."""
        room.send()
        room.reader.hold_answers()
        finds = room.wait(MessageFilter(after=Position(1)))
        finds_nothing = room.wait(MessageFilter(tag="x"))
        room.assembly.mail.feeds.close()
        room.reader.let_go()
        assert found(finds).summary.position == 2
        assert failure_of(finds_nothing, WaitInterrupted).cursor == "c2"

    def test_store_failure(self, room: WaitingRoom) -> None:
        """If the store fails, a wait is interrupted, with the cursor to continue from."""
        waiting = room.wait()
        result_of(room.assembly.runtime.engine.write(_break_store, None))
        room.assembly.mail.feeds.on_hint(room.account.id)
        assert failure_of(waiting, WaitInterrupted).cursor == "c1"

    def test_store_failure_at_first(self, room: WaitingRoom) -> None:
        """If the inbox cannot be read at all, the cursor is the one given or cached before."""
        caller = room.caller()
        result_of(room.assembly.runtime.engine.write(_break_store, None))
        wait = room.assembly.inbox.wait.wait
        for wanted, known, cursor in (
            (ANY, caller, "c1"),
            (MessageFilter(after=Position(7)), caller, "c7"),
            (ANY, replace(caller, position=None), None),
        ):
            waiting = Deferred.fromCoroutine(wait(known, wanted, 30))
            assert failure_of(waiting, WaitInterrupted).cursor == cursor

    def test_a_message_that_is_deleted_in_between(self, room: WaitingRoom) -> None:
        """A wait whose message was deleted before it was loaded waits for the next one."""
        waiting = room.wait()
        room.reader.hold_calls()
        room.send_large("deleted")
        room.reader.held.pop(0)()
        room.delete_unread()
        room.reader.let_go()
        assert not waiting.called
        room.send(subject="kept")
        assert found(waiting).summary.header.subject == "kept"

    def test_a_message_that_is_deleted_while_the_next_one_comes(self, room: WaitingRoom) -> None:
        """The next match may arrive before the read shows that the first one is deleted."""
        waiting = room.wait()
        room.reader.hold_calls()
        room.send_large("deleted")
        room.reader.held.pop(0)()
        room.delete_unread()
        room.send(subject="kept")
        room.reader.let_go()
        assert found(waiting).summary.header.subject == "kept"

    def test_a_foreign_cursor(self, room: WaitingRoom) -> None:
        """A cursor that the inbox has not reached is rejected."""
        assert failure_of(room.wait(MessageFilter(after=Position(9))), InvalidParameter).name == (
            "after"
        )

    def test_a_wait_without_time(self, room: WaitingRoom) -> None:
        """A wait ends at its timeout even if the store is slower."""
        room.reader.hold_calls()
        waiting = room.wait(timeout=1)
        room.clock.advance(5)
        room.reader.let_go()
        assert not waiting.called
        room.clock.advance(0)
        assert in_vain(waiting).waited == 5.0


class TestSeveral:
    """A wait for several messages returns exactly those, oldest first, or how many arrived."""

    @staticmethod
    def begin(
        room: WaitingRoom, count: int, wanted: MessageFilter = ANY, timeout: float = 30
    ) -> "Deferred[Any]":
        """Start a wait for several messages."""
        many = room.assembly.inbox.wait.wait_for_many(room.caller(), wanted, timeout, count)
        return Deferred.fromCoroutine(many)

    @staticmethod
    def positions(waiting: "Deferred[Any]") -> list[int]:
        """Return the positions of the messages that a wait must have by now."""
        gathered = result_of(waiting)
        assert isinstance(gathered, Messages)
        positions: list[int] = [message.summary.position for message in gathered.messages]
        assert gathered.cursor == positions[-1]
        return positions

    def test_stored_and_new_ones(self, room: WaitingRoom) -> None:
        """Stored and new messages count together. Further ones are left for the next wait."""
        for tag in ("a", "b", "a"):
            room.send(tag)
        waiting = self.begin(room, 3, MessageFilter(tag="a", after=Position(1)))
        assert not waiting.called
        room.send("b")
        assert not waiting.called
        room.receive(room.address("A"), room.address("a"))
        assert self.positions(waiting) == [2, 4, 6]
        assert self.positions(self.begin(room, 2, MessageFilter(after=Position(2)))) == [3, 4]

    def test_too_few_messages(self, room: WaitingRoom) -> None:
        """If too few arrive, the wait returns their number and the cursor of its start."""
        waiting = self.begin(room, 3, timeout=2)
        room.send("a")
        room.send("a")
        room.clock.advance(2)
        outcome = in_vain(waiting)
        assert (outcome.matched, outcome.count, outcome.cursor) == (2, 3, 1)
        assert outcome.seen == ()
        again = self.begin(room, 3, MessageFilter(after=outcome.cursor))
        room.send("a")
        assert self.positions(again) == [2, 3, 4]

    @settings(max_examples=settings().max_examples // 2)
    @given(st.lists(STEPS, min_size=1, max_size=14), st.integers(1, 3), st.booleans())
    def test_any_order(self, steps: Steps, count: int, ours: bool) -> None:
        """In any order of waits, mails, reads and answers, each wait gets its oldest matches."""
        room = WaitingRoom(ours=ours)

        def begin(prefix: str, after: Position) -> "Deferred[Any]":
            return self.begin(room, count, MessageFilter(tag_prefix=prefix or None, after=after))

        waits, sent = play(room, steps, begin)
        for prefix, after, waiting in waits:
            matching = [n for n, tag in enumerate(sent, 2) if n > after and tag.startswith(prefix)]
            assert waiting.called == (len(matching) >= count)
            if waiting.called:
                assert self.positions(waiting) == matching[:count]
        leave(room, [waiting for _, _, waiting in waits])


class TestNone:
    """A wait for no message succeeds only if there was none."""

    @staticmethod
    def begin(
        room: WaitingRoom, wanted: MessageFilter = ANY, seconds: float = 5
    ) -> "Deferred[Any]":
        """Start a wait for no message."""
        none = room.assembly.inbox.wait.wait_for_none(room.caller(), wanted, seconds)
        return Deferred.fromCoroutine(none)

    def test_quiet(self, room: WaitingRoom) -> None:
        """After its duration, the wait returns the cursor up to which no message arrived."""
        waiting = self.begin(room, MessageFilter(tag="x"))
        room.send("y")
        room.refuse("y")
        room.clock.advance(4.9)
        assert not waiting.called
        room.clock.advance(0.1)
        assert result_of(waiting) == NoMessage(Position(3), 5.0)

    def test_a_message(self, room: WaitingRoom) -> None:
        """A message after the cursor ends the wait at once. An earlier one does not."""
        room.send("x")
        waiting = self.begin(room, MessageFilter(tag="x", after=Position(2)))
        room.clock.advance(1)
        room.send("x", subject="unwanted")
        outcome = result_of(waiting)
        assert outcome.message.summary.header.subject == "unwanted"
        assert (outcome.cursor, outcome.waited, outcome.refusal) == (3, 1.0, None)
        stored = result_of(self.begin(room, MessageFilter(tag="x", after=Position(2))))
        assert stored.message.summary.position == 3
        assert result_of(self.begin(room, MessageFilter(after=START))).cursor == 2

    @pytest.mark.parametrize("when", ["before", "while looking", "meanwhile", "hint lost"])
    def test_a_refused_one(self, room: WaitingRoom, when: str) -> None:
        """A rejected mail that may have matched ends the wait as well."""
        room.refuse("x")
        room.refuse("y")
        wanted = MessageFilter(tag="x", subject="unknown", after=Position(3))
        if when == "before":
            room.refuse("X")
        elif when == "while looking":
            room.reader.hold_answers()
        waiting = self.begin(room, wanted)
        if when == "hint lost":
            lose_hints(room)
        if when != "before":
            assert not waiting.called
            room.refuse("y")
            room.refuse("X")
        room.reader.let_go()
        if when == "hint lost":
            room.clock.advance(5)
        outcome = result_of(waiting)
        assert (outcome.message, outcome.refusal.tag) == (None, "X")
        assert outcome.cursor == (4 if when == "before" else 5)

    def test_interrupted(self, room: WaitingRoom) -> None:
        """An interrupted wait has no result, and can be repeated from its start."""
        waiting = self.begin(room)
        broken = self.begin(room, MessageFilter(after=START, tag="x"))
        room.assembly.mail.feeds.close()
        assert failure_of(waiting, WaitInterrupted).cursor == "c1"
        assert failure_of(broken, WaitInterrupted).cursor == "c0"


class TestContent:
    """Content filters are applied once the content is known, and skip no message before."""

    TEXT = MessageFilter(text="YOUR code", headers=(("subject", "Wel"),), has_attachment=False)

    def test_messages_are_parsed_in_order(self, room: WaitingRoom) -> None:
        """The oldest match among stored and new messages is returned."""
        room.send(body="nothing", subject="Welcome")
        room.send(body="Your code", subject="News")
        first = room.wait(replace(self.TEXT, after=START))
        second = room.wait(replace(self.TEXT, after=Position(3)))
        assert not first.called
        room.content.hold_calls()
        for body in ("nothing", "Your CODE 1", "your  code 2"):
            room.send(body=body)
        assert not first.called
        room.content.let_go()
        assert found(first).content.text.strip() == "Your CODE 1"
        assert found(second).content.text.strip() == "Your CODE 1"
        run(room.assembly.inbox.read.page(room.account.id, ANY, 10, 1))
        # The contents are known now, so the store filters them without deriving any again.
        room.content.hold_calls()
        assert found(room.wait(replace(self.TEXT, after=Position(5)))).summary.position == 6

    def test_near_misses_have_reasons(self, room: WaitingRoom) -> None:
        """A timed-out wait names the filters that a mail did not match."""
        room.clock.advance(1)
        waiting = room.wait(replace(self.TEXT, has_attachment=True), timeout=1)
        room.send(body="Your number")
        room.clock.advance(1)
        (seen,) = in_vain(waiting).seen
        assert seen.reasons == (
            "its text does not contain 'YOUR code'",
            "it has no attachment",
        )
        waiting = room.wait(replace(self.TEXT, headers=(("X-None", ""),)), timeout=1)
        room.send(body="Your code")
        room.clock.advance(1)
        outcome = in_vain(waiting)
        assert outcome.missed is None
        assert outcome.seen[0].reasons == ("it has no header field X-None with ''",)
        waiting = room.wait(self.TEXT, timeout=1)
        room.clock.advance(1)
        outcome = in_vain(waiting)
        assert outcome.missed is not None
        assert outcome.missed.position == 3

    @pytest.mark.parametrize("body", ["Your code", "nothing", "too late"])
    def test_no_message_needs_all_contents(self, room: WaitingRoom, body: str) -> None:
        """A wait for none ends when the content of a possible match is known.

        If that takes too long, the wait is interrupted.
        """
        waiting = TestNone.begin(room, self.TEXT)
        room.content.hold_calls()
        room.send(body=body)
        room.clock.advance(5)
        assert not waiting.called
        if body == "too late":
            room.clock.advance(GRACE)
            assert failure_of(waiting, WaitInterrupted).cursor == "c1"
        room.content.let_go()
        room.clock.advance(0)
        if body == "nothing":
            assert result_of(waiting) == NoMessage(Position(2), 5.0)
        elif body == "Your code":
            assert result_of(waiting).message.summary.position == 2

    def test_a_cursor_does_not_skip_unknown_contents(self, room: WaitingRoom) -> None:
        """A wait that ends before a mail was parsed returns the cursor before that mail."""
        waiting = room.wait(self.TEXT, timeout=1)
        room.content.hold_calls()
        room.send(body="Your code")
        room.send(body="Your code")
        room.clock.advance(1)
        room.clock.advance(GRACE)
        cursor = in_vain(waiting).cursor
        assert cursor == 1
        room.content.let_go()
        assert found(room.wait(replace(self.TEXT, after=cursor))).summary.position == 2
