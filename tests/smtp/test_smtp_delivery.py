"""What happens between the final dot and its reply."""

from collections.abc import Sequence
from typing import Any

from twisted.logger import LogEvent

from mailcheck.core.errors import InboxFull, RecipientUnknown
from tests.fakes.mail_receiver import FakeMailReceiver
from tests.smtp.talk import House, Talk

MAIL = b"MAIL FROM:<s@client.example>\r\n"
RCPT = b"RCPT TO:<dev-a@inbox.example>\r\n"


def slow_house(**settings: Any) -> House:
    """A house where each delivery waits until it is told to go on."""
    return House(FakeMailReceiver(slow=frozenset({"deliver"})), **settings)


def deliver(talk: Talk, raw: bytes = b"hi\r\n.\r\n") -> Sequence[str]:
    """Send a message to where it is expected."""
    return talk.codes(raw)


def test_250_waits_for_the_receiver() -> None:
    """Nothing is promised before the receiver has kept the mail, and pipelined commands wait."""
    house = slow_house()
    talk = house.at_data()
    assert deliver(talk, b"hi\r\n.\r\nNOOP\r\n") == []
    assert talk.codes(b"NOOP\r\n") == []
    house.receiver.answer()
    assert talk.say() == b"250 2.0.0 OK, delivery delivery-1\r\n250 2.0.0 OK\r\n250 2.0.0 OK\r\n"


def test_expected_failures_are_told_and_noted() -> None:
    """A full inbox is told to the sender, and to those who wait for the mail; nothing is closed."""
    house = House(FakeMailReceiver(failures={"deliver": InboxFull("The inbox is full")}))
    talk = house.at_data()
    assert talk.say(b"hi\r\n.\r\n") == b"452 4.2.2 The inbox is full\r\n"
    (refused,) = house.receiver.refused
    assert refused.reason == "452 4.2.2 The inbox is full"
    assert refused.envelope_sender == "sender@client.example"
    house.receiver.failures.clear()
    assert talk.codes(MAIL + RCPT + b"DATA\r\n", b"hi\r\n.\r\n")[-1] == "250"


def test_an_inbox_that_went_away_is_a_550() -> None:
    """What the receiver says at the end counts, not what it said at RCPT."""
    house = House(FakeMailReceiver(failures={"deliver": RecipientUnknown("Gone")}))
    assert deliver(house.at_data()) == ["550"]


def test_a_client_that_leaves_changes_nothing() -> None:
    """The delivery goes on when nobody is there to hear its reply."""
    house = slow_house()
    talk = house.at_data()
    deliver(talk)
    talk.leave()
    house.receiver.answer()
    assert house.messages == [b"hi\r\n"]
    assert talk.heard() == b""
    assert house.clock.getDelayedCalls() == []


def test_a_long_delivery_is_not_the_clients_silence() -> None:
    """The idle time counts only while it is the client's turn, and anew after the reply."""
    house = slow_house()
    talk = house.at_data()
    deliver(talk)
    house.clock.pump([100] * 20)
    assert not talk.is_closed
    house.receiver.answer()
    assert talk.codes() == ["250"]
    house.clock.advance(299)
    assert not talk.is_closed
    house.clock.advance(2)
    assert talk.codes() == ["421"]


def test_a_client_that_goes_on_sending_is_not_read() -> None:
    """While a delivery is pending 64 KiB are read ahead, then no more until it is done."""
    house = slow_house()
    talk = house.at_data()
    deliver(talk)
    talk.say(*[b"NOOP\r\n" * 100] * 109)
    assert talk.transport.producerState == "producing"
    talk.say(b"NOOP\r\n" * 100)
    assert talk.transport.producerState == "paused"
    house.receiver.answer()
    assert talk.transport.producerState == "producing"


def test_a_message_is_let_go_of_after_its_delivery() -> None:
    """An idle connection does not hold on to the last mail it has brought."""
    house = House()
    talk = house.at_data()
    deliver(talk)
    assert house.factory.memory.used == 0
    assert talk.protocol.transaction is None


def test_a_fault_of_ours_is_temporary_and_logged(logged_failures: list[LogEvent]) -> None:
    """The sender tries again, those who wait are told, the log has the failure and no content."""
    house = House(FakeMailReceiver(failures={"deliver": ZeroDivisionError("oops")}))
    talk = house.at_data()
    assert talk.say(b"secret\r\n.\r\n").startswith(b"451 4.3.0 ")
    assert house.receiver.refused[0].reason.startswith("451 4.3.0 ")
    (event,) = logged_failures
    assert "oops" in event["log_failure"].getTraceback()
    assert "secret" not in repr(event) + event["log_failure"].getTraceback()
    assert talk.codes(b"NOOP\r\n") == ["250"]


def test_a_receiver_that_fails_twice_closes_the_connection(
    logged_failures: list[LogEvent],
) -> None:
    """When even the note fails the sender has its reply, and the connection ends."""
    receiver = FakeMailReceiver(
        failures={"deliver": InboxFull("full"), "record_refusal": ZeroDivisionError()}
    )
    talk = House(receiver).at_data()
    assert talk.codes(b"hi\r\n.\r\n") == ["452", "421"]
    assert talk.is_closed
    assert len(logged_failures) == 1


def test_a_fault_in_the_middle_of_the_input_closes_the_connection(
    logged_failures: list[LogEvent],
) -> None:
    """What a fault leaves undone is not guessed: the client is told 421, and comes again."""
    receiver = FakeMailReceiver(failures={"record_refusal": ZeroDivisionError()})
    talk = House(receiver, limits={"message_size": 10}).at_data()
    assert talk.codes(b"x" * 20 + b"\r\n.\r\nNOOP\r\n") == ["552", "421"]
    assert talk.is_closed
    assert len(logged_failures) == 1
