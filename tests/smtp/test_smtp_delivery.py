"""The time between the final dot and its reply."""

from collections.abc import Sequence
from typing import Any

from twisted.logger import LogEvent

from mailcheck.core.errors import InboxFull, RecipientUnknown
from tests.fakes.mail_receiver import FakeMailReceiver
from tests.smtp.talk import MAIL, RCPT, House, Talk


def slow_house(**settings: Any) -> House:
    """Return a house in which each delivery waits until the test continues it."""
    return House(FakeMailReceiver(slow=frozenset({"deliver"})), **settings)


def deliver(talk: Talk, raw: bytes = b"hi\r\n.\r\n") -> Sequence[str]:
    """Send all commands and a message."""
    return talk.codes(raw)


def test_250_waits_for_the_receiver() -> None:
    """The reply comes after the receiver has stored the mail, and pipelined commands wait."""
    house = slow_house()
    talk = house.at_data()
    assert deliver(talk, b"hi\r\n.\r\nNOOP\r\n") == []
    assert talk.codes(b"NOOP\r\n") == []
    house.receiver.answer()
    assert talk.say() == b"250 2.0.0 OK, delivery delivery-1\r\n250 2.0.0 OK\r\n250 2.0.0 OK\r\n"


def test_expected_failures_are_reported_and_recorded() -> None:
    """A full inbox is reported to the sender and to waiting clients; the connection stays open."""
    house = House(FakeMailReceiver(failures={"deliver": InboxFull("The inbox is full")}))
    talk = house.at_data()
    assert talk.say(b"hi\r\n.\r\n") == b"452 4.2.2 The inbox is full\r\n"
    (refused,) = house.receiver.refused
    assert refused.reason == "452 4.2.2 The inbox is full"
    assert refused.envelope_sender == "sender@client.example"
    house.receiver.failures.clear()
    assert talk.codes(MAIL + RCPT + b"DATA\r\n", b"hi\r\n.\r\n")[-1] == "250"


def test_an_inbox_deleted_meanwhile_is_a_550() -> None:
    """The answer of the receiver at the end counts, not the one at RCPT."""
    house = House(FakeMailReceiver(failures={"deliver": RecipientUnknown("Gone")}))
    assert deliver(house.at_data()) == ["550"]


def test_a_client_that_leaves_changes_nothing() -> None:
    """The delivery continues after the client has disconnected."""
    house = slow_house()
    talk = house.at_data()
    deliver(talk)
    talk.leave()
    house.receiver.answer()
    assert house.messages == [b"hi\r\n"]
    assert talk.heard() == b""
    assert house.clock.getDelayedCalls() == []


def test_a_long_delivery_is_not_idle_time() -> None:
    """Only time in which the client must act counts as idle; it starts again after the reply."""
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


def test_input_during_a_delivery_is_limited() -> None:
    """While a delivery is pending, 64 KiB are read ahead; then reading stops until it is done."""
    house = slow_house()
    talk = house.at_data()
    deliver(talk)
    talk.say(*[b"NOOP\r\n" * 100] * 109)
    assert talk.transport.producerState == "producing"
    talk.say(b"NOOP\r\n" * 100)
    assert talk.transport.producerState == "paused"
    house.receiver.answer()
    assert talk.transport.producerState == "producing"


def test_a_message_is_released_after_its_delivery(house: House) -> None:
    """An idle connection does not keep its last mail in memory."""
    talk = house.at_data()
    deliver(talk)
    assert house.factory.memory.used == 0
    assert talk.protocol.transaction is None


def test_an_unexpected_failure_is_temporary(logged_failures: list[LogEvent]) -> None:
    """The sender can retry, waiting clients are told, and the log has no content of the mail."""
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
    """If recording the rejection fails too, the sender gets its reply and is disconnected."""
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
    """After an unexpected failure the client gets 421 and can retry."""
    receiver = FakeMailReceiver(failures={"record_refusal": ZeroDivisionError()})
    talk = House(receiver, limits={"message_size": 10}).at_data()
    assert talk.codes(b"x" * 20 + b"\r\n.\r\nNOOP\r\n") == ["552", "421"]
    assert talk.is_closed
    assert len(logged_failures) == 1
