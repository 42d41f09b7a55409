"""Too many, too fast or too slow SMTP commands: memory is limited, and others are served."""

import sys
from itertools import pairwise

import pytest

from mailcheck.core.errors import FaultMet, InboxFull, OutOfSpace
from mailcheck.smtp.protocol import MailFactory
from mailcheck.smtp.settings import Limits, SmtpSettings
from mailcheck.smtp.verbs import VERBS
from tests.fakes.mail_receiver import JOURNAL, FakeMailReceiver
from tests.smtp.loopback import served
from tests.smtp.talk import MAIL, RCPT, House, Talk
from tests.table import rows

pytestmark = [pytest.mark.attack, pytest.mark.untraced]

MIB = 1 << 20


def is_well(house: House) -> bool:
    """Return whether another client is served."""
    codes = house.greeted("10.0.0.9").codes(MAIL + RCPT + b"DATA\r\nneighbor\r\n.\r\n")
    return codes == ["250", "250", "354", "250"] and house.messages[-1] == b"neighbor\r\n"


@rows(
    b"NOOP\r\n",
    b"RSET\r\n",
    b"EHLO x\r\n",
    b"HELP\r\n",
    b"VRFY x\r\n",
    MAIL + b"RSET\r\n",
    MAIL + RCPT + b"RSET\r\n",
    b"FOO\r\n",
    b"\r\n",
    b"\xff\xfe\r\n",
    b"BDAT 0\r\n",
    b"BDAT 2000\r\n" + b"x" * 2000,
    b"DATA\r\n",
    b"x" * 3000 + b"\r\n",
)
def test_a_flood_of_commands_dries_up(command: bytes) -> None:
    """A client that never sends a mail is disconnected, with replies of limited size."""
    house = House()
    talk = house.connect("10.0.0.1")
    said = 0
    for _ in range(3000):
        said += len(talk.say(command))
        if talk.is_closed:
            break
    assert talk.is_closed
    assert said < MIB
    assert is_well(house)


@rows(
    FaultMet("fault.rcpt-451: refused on request", (451, "4.3.0")),
    InboxFull("the inbox is full"),
    OutOfSpace("the server is short of disk space"),
)
def test_refusals_that_nobody_waits_for_take_longer(failure: Exception) -> None:
    """Pipelined recipients that are rejected are looked up slowly, whatever the reason."""
    house = House()
    house.receiver.failures["accept_recipient"] = failure
    talk = house.greeted()
    talk.say(MAIL + RCPT * 900)
    assert len(house.receiver.asked) <= 4
    house.clock.pump([1] * 3600)
    assert len(house.receiver.asked) < 400


def test_refused_mails_that_nobody_waits_for_take_longer() -> None:
    """Pipelined mails that are rejected are handled one after another, each more slowly."""
    house = House()
    house.receiver.failures["deliver"] = InboxFull("the inbox is full")
    talk = house.greeted()
    talk.say((MAIL + RCPT + b"BDAT 1 LAST\r\nx") * 300)
    assert len(house.receiver.asked) <= 5
    house.clock.pump([1] * 600)
    assert len(house.receiver.asked) < 80


def test_a_client_that_waits_for_refusals_is_answered_at_once() -> None:
    """A test suite that waits for each reply meets the same fault repeatedly without a delay."""
    house = House()
    house.receiver.failures["accept_recipient"] = FaultMet("fault.quota", (452, "4.2.2"))
    talk = house.greeted()
    talk.say(MAIL)
    assert [talk.codes(RCPT) for _ in range(50)] == [["452"]] * 50


@rows(26_214_398, 998)
def test_the_largest_mail_is_taken_whole(line: int) -> None:
    """25 MiB, in one line or many, in pieces of 64 KiB, arrive byte for byte."""
    house = House()
    talk = house.at_data()
    size = house.settings.limits.message_size
    raw = ((b"A" * line + b"\r\n") * (size // (line + 2) + 1))[: size - 2] + b"\r\n"
    stream = raw + b".\r\n"
    edges = [*range(0, len(stream), 65_536), len(stream)]
    assert talk.codes(*(stream[a:b] for a, b in pairwise(edges))) == ["250"]
    assert house.messages == [raw]


def test_tiny_pieces_cost_little() -> None:
    """A mail in 30,000 packets of two octets uses about its own size of memory."""
    house = House()
    talk = house.at_data()
    for _ in range(30_000):
        talk.protocol.dataReceived(b"ab")
    transaction = talk.protocol.transaction
    assert transaction is not None
    assert transaction.message is not None
    kept = transaction.message._kept
    assert sys.getsizeof(kept) < 2 * 60_000
    assert talk.codes(b"\r\n.\r\n") == ["250"]


def test_a_slow_login_is_given_up() -> None:
    """An AUTH exchange times out after five minutes in all."""
    house = House(is_submission=True)
    talk = house.greeted("10.0.0.1")
    talk.say(b"AUTH PLAIN\r\n")
    for _ in range(10):
        talk.say(b"A")
        house.clock.advance(60)
    assert talk.is_closed


def pump(house: House, talk: Talk, data: bytes) -> None:
    """Send data while a delivery is pending, as long as the server reads."""
    for position in range(0, len(data), 4096):
        if talk.transport.producerState == "paused":
            return
        talk.say(data[position : position + 4096])


async def test_a_client_that_is_sent_away_hears_why() -> None:
    """On a real socket the last reply arrives even if the client has sent much unread data."""
    from twisted.internet import reactor

    factory = MailFactory(VERBS, FakeMailReceiver(), SmtpSettings("mx.example"), reactor, JOURNAL)
    async with served(factory, reactor) as port:
        client = await port.connect()
        client.say(b"FOO\r\n" * 1_000_000)
        said = await client.until(b"421 ")
        client.leave()
        await client.until_over()
    assert said.count(b"\r\n500 ") + 1 == Limits().errors - 1


async def test_a_client_that_does_not_read_is_given_up() -> None:
    """Unread replies use limited memory, and the client is disconnected in the end."""
    from twisted.internet import reactor

    limits = Limits(closing=0.2)
    factory = MailFactory(
        VERBS, FakeMailReceiver(), SmtpSettings("mx.example", limits), reactor, JOURNAL
    )
    async with served(factory, reactor) as port:
        client = await port.connect()
        client.pause()
        client.say(b"EHLO x\r\n" * 1_000_000)
        neighbor = await port.connect()
        neighbor.say(b"NOOP\r\n")
        assert b"250 2.0.0" in await neighbor.until(b"250 ")
        neighbor.say(b"QUIT\r\n")
        await neighbor.until_over()
        client.resume()
        assert b"421 4.7.0" in await client.until_over()
