"""Simulated faults, as seen by a client."""

import pytest

from mailcheck.ports.mail_receiver import ReceiverReply
from tests.smtp.talk import MAIL, House, Talk
from tests.table import rows

PLAIN = b"RCPT TO:<dev-b@inbox.example>\r\n"
MESSAGE = b"hi\r\n.\r\n"


def rcpt(tag: str) -> bytes:
    """Return RCPT with a tag."""
    return b"RCPT TO:<dev-a+%s@inbox.example>\r\n" % tag.encode()


def begun(house: House, *commands: bytes) -> Talk:
    """Send all commands before a message."""
    talk = house.greeted()
    talk.say(MAIL, *commands, b"DATA\r\n")
    return talk


@rows(("fault.data-451", b"451 4.3.0 fault.data-451"), ("fault.data-554", b"554 5.7.1 fault.data"))
def test_a_refused_message(tag: str, reply: bytes) -> None:
    """The whole mail gets the reply. It is not stored, and each recipient's refusal is recorded."""
    house = House()
    talk = begun(house, PLAIN, rcpt(tag))
    assert talk.say(MESSAGE).startswith(reply)
    assert house.messages == []
    (refused,) = house.receiver.refused
    assert len(refused.recipients) == 2
    assert refused.reason.encode().startswith(reply)
    assert talk.codes(MAIL + PLAIN + b"DATA\r\n", MESSAGE)[-1] == "250"


def test_a_refused_message_in_chunks(house: House, talk: Talk) -> None:
    """With BDAT the fault occurs at the last chunk, and pipelined commands continue after it."""
    said = MAIL + rcpt("fault.data-451") + b"BDAT 2\r\nhiBDAT 2 LAST\r\n\r\nNOOP\r\n"
    assert talk.codes(said) == ["250", "250", "250", "451", "250"]
    assert house.messages == []


@rows(1, 2)
def test_a_dropped_connection(packets: int) -> None:
    """The connection ends instead of a reply, after earlier replies; the mail is not stored."""
    house = House()
    talk = house.greeted()
    commands = MAIL + rcpt("fault.drop-data") + b"BDAT 4 LAST\r\nhi\r\n"
    said = [commands] if packets == 1 else [commands[:-3], commands[-3:]]
    assert talk.codes(*said) == ["250", "250"]
    assert talk.is_closed
    assert house.messages == []
    (refused,) = house.receiver.refused
    assert "fault.drop-data" in refused.reason


def test_a_connection_dropped_after_storing(house: House) -> None:
    """The mail is stored once, the reply never comes, and no refusal is recorded."""
    talk = begun(house, rcpt("fault.drop-after"))
    assert talk.say(MESSAGE + b"NOOP\r\n") == b""
    assert talk.is_closed
    assert house.messages == [b"hi\r\n"]
    assert house.receiver.refused == []


def test_a_slow_reply(house: House) -> None:
    """The mail is stored at once; its reply and later ones come after the delay."""
    talk = begun(house, rcpt("fault.slow-30"))
    assert talk.say(MESSAGE + b"NOOP\r\n") == b""
    assert house.messages == [b"hi\r\n"]
    house.clock.advance(29.9)
    assert talk.say() == b""
    house.clock.advance(0.2)
    assert talk.codes() == ["250", "250"]


@pytest.mark.usefixtures("logged_failures")
def test_an_undetermined_fault_is_temporary(house: House) -> None:
    """If the count of a key's mails is unavailable, the mail gets 451 and is not lost."""
    house.receiver.failures["find_fault"] = RuntimeError("no counter")
    assert begun(house, rcpt("fault.data-554")).codes(MESSAGE) == ["451"]
    assert house.messages == []


def test_slow_replies_are_bounded_by_account() -> None:
    """An account has at most twenty at a time; more mails get 451, while other accounts have
    room.
    """
    house = House(limits={"slow_replies": 2})
    slow = [begun(house, rcpt("fault.slow-60")) for _ in range(3)]
    assert [talk.codes(MESSAGE) for talk in slow] == [[], [], ["451"]]
    other = begun(house, b"RCPT TO:<dev-c+fault.slow-60@inbox.example>\r\n")
    assert other.codes(MESSAGE) == []
    slow[0].leave()
    assert begun(house, rcpt("fault.slow-60")).codes(MESSAGE) == []
    house.clock.advance(60)
    assert not house.factory.slow_replies


def test_a_client_that_disconnects_during_a_delay(house: House) -> None:
    """A client that disconnects during the delay leaves no timer and no counter behind."""
    talk = begun(house, rcpt("fault.slow-60"))
    talk.say(MESSAGE)
    talk.leave()
    assert house.clock.getDelayedCalls() == []
    assert not house.factory.slow_replies


def test_a_slow_reply_makes_room() -> None:
    """If all connections are in use, one with a delayed reply gets it at once and ends."""
    house = House(limits={"connections": 1})
    slow = begun(house, rcpt("fault.slow-60"))
    slow.say(MESSAGE)
    assert house.connect("198.51.100.7").heard().startswith(b"220 ")
    house.clock.advance(0)
    assert slow.codes() == ["250", "421"]
    assert slow.is_closed


def test_a_slow_reply_does_not_delay_the_stop(house: House) -> None:
    """When the daemon stops, a delayed reply is sent at once: its mail is stored."""
    slow = begun(house, rcpt("fault.slow-60"))
    slow.say(MESSAGE)
    house.factory.drain(20)
    house.clock.advance(0)
    assert slow.codes() == ["250", "421"]


def test_the_reply_of_a_receiver(house: House) -> None:
    """The mail is stored, and the client gets the receiver's reply once the mail is scored."""
    house.receiver.slow = frozenset({"reply_as_receiver"})
    talk = begun(house, PLAIN, rcpt("receiver.gmail"))
    assert talk.say(MESSAGE) == b""
    assert house.messages == [b"hi\r\n"]
    house.receiver.answer()
    assert talk.say() == (
        b"550-5.7.26 The sender is unauthenticated.\r\n"
        b"550 5.7.26 Gmail: reject. Stored as delivery delivery-1\r\n"
    )
    assert house.receiver.refused == []
    assert talk.codes(MAIL + PLAIN + b"DATA\r\n", MESSAGE)[-1] == "250"


def test_a_reply_that_closes_the_connection(house: House) -> None:
    """After 421 the connection ends; the text of a mail cannot add a line to the reply."""
    house.receiver.receiver_reply = ReceiverReply(421, "", "slow\r\n250 OK", "Gmail: defer.")
    talk = begun(house, rcpt("receiver.gmail-bulk"))
    assert talk.say(MESSAGE + b"NOOP\r\n") == (
        b"421-slow??250 OK\r\n421 Gmail: defer. Stored as delivery delivery-1\r\n"
    )
    assert talk.is_closed


def test_replies_of_receivers_are_bounded_by_account() -> None:
    """A waiting reply counts as a slow one, and a tag without a receiver is an ordinary tag."""
    house = House(limits={"slow_replies": 1})
    house.receiver.slow = frozenset({"reply_as_receiver"})
    waiting = begun(house, rcpt("receiver.gmail"))
    assert waiting.codes(MESSAGE) == []
    assert begun(house, rcpt("receiver.yahoo")).codes(MESSAGE) == ["451"]
    assert begun(house, rcpt("receiver.example")).codes(MESSAGE) == ["250"]
    house.receiver.answer()
    assert not house.factory.slow_replies
