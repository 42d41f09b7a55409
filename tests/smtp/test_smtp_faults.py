"""Faults on request, as the client of a connection meets them."""

import pytest

from tests.smtp.talk import House, Talk

MAIL = b"MAIL FROM:<s@client.example>\r\n"
PLAIN = b"RCPT TO:<dev-b@inbox.example>\r\n"
MESSAGE = b"hi\r\n.\r\n"


def rcpt(tag: str) -> bytes:
    """Write the RCPT of a tag."""
    return b"RCPT TO:<dev-a+%s@inbox.example>\r\n" % tag.encode()


def begun(house: House, *commands: bytes) -> Talk:
    """Begin a mail to where its message is expected."""
    talk = house.greeted()
    talk.say(MAIL, *commands, b"DATA\r\n")
    return talk


@pytest.mark.parametrize(
    ("tag", "reply"),
    [("fault.data-451", b"451 4.3.0 fault.data-451"), ("fault.data-554", b"554 5.7.1 fault.data")],
)
def test_a_refused_message(tag: str, reply: bytes) -> None:
    """The whole mail gets the reply; nothing is stored, and each recipient's refusal is noted."""
    house = House()
    talk = begun(house, PLAIN, rcpt(tag))
    assert talk.say(MESSAGE).startswith(reply)
    assert house.messages == []
    (refused,) = house.receiver.refused
    assert len(refused.recipients) == 2
    assert refused.reason.encode().startswith(reply)
    assert talk.codes(MAIL + PLAIN + b"DATA\r\n", MESSAGE)[-1] == "250"


def test_a_refused_message_in_chunks() -> None:
    """BDAT meets the fault at its last chunk, and pipelined commands go on behind it."""
    house = House()
    talk = house.greeted()
    said = MAIL + rcpt("fault.data-451") + b"BDAT 2\r\nhiBDAT 2 LAST\r\n\r\nNOOP\r\n"
    assert talk.codes(said) == ["250", "250", "250", "451", "250"]
    assert house.messages == []


@pytest.mark.parametrize("packets", [1, 2])
def test_a_dropped_connection(packets: int) -> None:
    """It ends in place of the reply, behind the replies that were due; nothing is stored."""
    house = House()
    talk = house.greeted()
    commands = MAIL + rcpt("fault.drop-data") + b"BDAT 4 LAST\r\nhi\r\n"
    said = [commands] if packets == 1 else [commands[:-3], commands[-3:]]
    assert talk.codes(*said) == ["250", "250"]
    assert talk.is_closed
    assert house.messages == []
    (refused,) = house.receiver.refused
    assert "fault.drop-data" in refused.reason


def test_a_connection_dropped_after_storing() -> None:
    """The mail is stored once, the reply never comes, and nothing counts as refused."""
    house = House()
    talk = begun(house, rcpt("fault.drop-after"))
    assert talk.say(MESSAGE + b"NOOP\r\n") == b""
    assert talk.is_closed
    assert house.messages == [b"hi\r\n"]
    assert house.receiver.refused == []


def test_a_slow_reply() -> None:
    """The mail is stored at once; its reply, and those behind it, come when the time is over."""
    house = House()
    talk = begun(house, rcpt("fault.slow-30"))
    assert talk.say(MESSAGE + b"NOOP\r\n") == b""
    assert house.messages == [b"hi\r\n"]
    house.clock.advance(29.9)
    assert talk.say() == b""
    house.clock.advance(0.2)
    assert talk.codes() == ["250", "250"]


@pytest.mark.usefixtures("logged_failures")
def test_a_fault_that_can_not_be_found_out_is_temporary() -> None:
    """When the count of a key's mails is not to be had the mail gets 451, and is not lost."""
    house = House()
    house.receiver.failures["find_fault"] = RuntimeError("no counter")
    assert begun(house, rcpt("fault.data-554")).codes(MESSAGE) == ["451"]
    assert house.messages == []


def test_slow_replies_are_bounded_by_account() -> None:
    """Twenty of an account at a time; beyond it 451, also while others have room."""
    house = House(limits={"slow_replies": 2})
    slow = [begun(house, rcpt("fault.slow-60")) for _ in range(3)]
    assert [talk.codes(MESSAGE) for talk in slow] == [[], [], ["451"]]
    other = begun(house, b"RCPT TO:<dev-c+fault.slow-60@inbox.example>\r\n")
    assert other.codes(MESSAGE) == []
    slow[0].leave()
    assert begun(house, rcpt("fault.slow-60")).codes(MESSAGE) == []
    house.clock.advance(60)
    assert not house.factory.slow_replies


def test_who_leaves_leaves_nothing() -> None:
    """A client that goes away while its reply is late leaves no timer and no place behind."""
    house = House()
    talk = begun(house, rcpt("fault.slow-60"))
    talk.say(MESSAGE)
    talk.leave()
    assert house.clock.getDelayedCalls() == []
    assert not house.factory.slow_replies


def test_a_slow_reply_makes_room() -> None:
    """Where all connections are taken, one that waits for a late reply gets it, and ends."""
    house = House(limits={"connections": 1})
    slow = begun(house, rcpt("fault.slow-60"))
    slow.say(MESSAGE)
    assert house.connect("198.51.100.7").heard().startswith(b"220 ")
    house.clock.advance(0)
    assert slow.codes() == ["250", "421"]
    assert slow.is_closed


def test_a_slow_reply_does_not_hold_up_the_end() -> None:
    """When the daemon stops a late reply comes at once: its mail is stored."""
    house = House()
    slow = begun(house, rcpt("fault.slow-60"))
    slow.say(MESSAGE)
    house.factory.drain(20)
    house.clock.advance(0)
    assert slow.codes() == ["250", "421"]
