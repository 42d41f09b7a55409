"""MAIL and RCPT: the questions to the receiver, and the replies for its answers."""

from twisted.logger import LogEvent

from mailcheck.core.addresses import Mailbox
from mailcheck.core.errors import (
    InboxFull,
    OperatorMissing,
    OutOfSpace,
    RecipientUnknown,
    ShuttingDown,
    StoreUnavailable,
)
from tests.fakes.mail_receiver import FakeMailReceiver
from tests.smtp.talk import MAIL, House, Talk
from tests.table import rows


def test_the_receiver_is_asked_with_the_session_and_the_sender(house: House) -> None:
    """The receiver gets the client, the sender and the recipient unchanged."""
    talk = house.greeted("2606:2800:220:1::1")
    talk.say(b"MAIL FROM:<>\r\n", b"RCPT TO:<dev-a+Tag@inbox.example>\r\n")
    ((session, sender, mailbox),) = house.receiver.asked
    assert (session.client_ip, session.helo_name) == ("2606:2800:220:1::1", "client.example")
    assert (session.tls, session.account_id) == (None, None)
    assert (sender, mailbox) == ("", Mailbox("dev-a+Tag", "inbox.example"))


def test_an_ipv4_client_of_an_ipv6_socket_is_an_ipv4_client(house: House) -> None:
    """An IPv4-mapped address is converted to IPv4."""
    talk = house.greeted("::ffff:93.184.216.34")
    talk.say(MAIL, b"RCPT TO:<dev-a@inbox.example>\r\n")
    assert house.receiver.asked[0][0].client_ip == "93.184.216.34"


def test_postmaster_needs_no_domain(house: House, talk: Talk) -> None:
    """The bare postmaster is looked up with an empty domain (RFC 5321 4.5.1)."""
    assert talk.codes(MAIL, b"RCPT TO:<Postmaster>\r\n") == ["250", "250"]
    assert house.receiver.asked[0][2] == Mailbox("Postmaster", "")


@rows(
    "root",
    "try..this..0511.@docomo.ne.jp",
    "bounces+2309175-1e1a-dev-inboxinboxinb+signup-1=mailcheck.example@em123.shop.example",
    "x" * 300 + "@under_score_.example",
)
def test_unusual_addresses_are_looked_up(address: str) -> None:
    """Addresses outside RFC 5321 that exist reach the receiver unchanged."""
    house = House()
    talk = house.greeted()
    assert talk.codes(f"MAIL FROM:<{address}>\r\n".encode()) == ["250"]
    talk.say(f"RCPT TO:<{address}>\r\n".encode())
    _, sender, mailbox = house.receiver.asked[0]
    assert sender == str(mailbox) == address


def test_a_repeated_recipient_counts_once(house: House, talk: Talk) -> None:
    """The same address in another case gets 250 and no second message; another tag gets one."""
    talk.say(MAIL)
    for address in (
        "dev-a+tag@inbox.example",
        "DEV-A+Tag@inbox.example",
        "dev-a+other@inbox.example",
        "dev-a+TAG@Inbox.Example.",
    ):
        assert talk.say(f"RCPT TO:<{address}>\r\n".encode()).startswith(b"250 2.1.5 ")
    talk.say(b"DATA\r\n", b"hi\r\n.\r\n")
    recipients = house.receiver.delivered[0].envelope.recipients
    assert [recipient.tag for recipient in recipients] == ["tag", "other"]


def test_a_hundred_recipients_are_accepted(house: House, talk: Talk) -> None:
    """100 recipients are accepted (RFC 5321 4.5.3.1.8); the next one must come in another mail."""
    talk.say(MAIL)
    for number in range(100):
        rcpt = f"RCPT TO:<dev-a+{number}@inbox.example>\r\n".encode()
        assert talk.codes(rcpt) == ["250"]
    assert talk.say(b"RCPT TO:<dev-a+100@inbox.example>\r\n").startswith(b"452 4.5.3 ")
    assert talk.codes(b"RCPT TO:<dev-a+99@inbox.example>\r\n") == ["250"]
    assert talk.codes(b"DATA\r\n", b"hi\r\n.\r\n") == ["354", "250"]
    assert len(house.receiver.delivered[0].envelope.recipients) == 100


def test_an_announced_size_is_checked_at_once(talk: Talk) -> None:
    """A mail of exactly the limit is accepted, a larger one is rejected at MAIL (RFC 1870 6.1)."""
    assert talk.say(b"MAIL FROM:<a@b.example> SIZE=26214401\r\n").startswith(b"552 5.3.4 ")
    assert talk.codes(b"MAIL FROM:<a@b.example> SIZE=26214400\r\n") == ["250"]


@rows(
    (RecipientUnknown("No inbox here"), b"550 5.1.1 No inbox here\r\n"),
    (InboxFull("Full"), b"452 4.2.2 Full\r\n"),
    (OutOfSpace("Disk full"), b"452 4.3.1 Disk full\r\n"),
    (OperatorMissing("No account"), b"451 4.3.5 No account\r\n"),
    (StoreUnavailable("Locked"), b"451 4.3.0 Locked\r\n"),
    (ShuttingDown("Stopping"), b"451 4.3.2 Stopping\r\n"),
    (InboxFull("voll\r\n250 oh ü"), b"452 4.2.2 voll??250 oh ?\r\n"),
)
def test_expected_failures_have_their_replies(failure: Exception, reply: bytes) -> None:
    """Each condition has one code; its text becomes one line of ASCII."""
    house = House(FakeMailReceiver(failures={"accept_recipient": failure}))
    talk = house.greeted()
    talk.say(MAIL)
    assert talk.say(b"RCPT TO:<dev-a@inbox.example>\r\n") == reply
    assert talk.say(b"DATA\r\n").startswith(b"554 5.5.1 ")


def test_the_next_command_waits_for_the_recipient() -> None:
    """While the receiver's answer is pending, no other command runs; then all run in order."""
    house = House(FakeMailReceiver(slow=frozenset({"accept_recipient"})))
    talk = house.greeted()
    batch = MAIL + b"RCPT TO:<dev-a@inbox.example>\r\nRCPT TO:<nobody@inbox.example>\r\nDATA\r\n"
    assert talk.codes(batch) == ["250"]
    assert len(house.receiver.asked) == 1
    house.receiver.answer()
    assert talk.codes() == ["250"]
    house.receiver.answer()
    assert talk.codes() == ["550", "354"]


def test_guessing_addresses_is_slowed_down(house: House, talk: Talk) -> None:
    """After three unknown recipients the delays are 1, 2, 4 ... s, at most 10 s."""
    other = house.greeted()
    talk.say(MAIL)
    unknown = b"RCPT TO:<nobody@inbox.example>\r\n"
    assert talk.codes(unknown * 3) == ["550", "550", "550"]
    for delay in (1, 2, 4, 8, 10, 10):
        assert talk.codes(unknown) == []
        house.clock.advance(delay - 0.01)
        assert talk.codes() == []
        assert other.codes(b"NOOP\r\n") == ["250"]
        house.clock.advance(0.02)
        assert talk.codes() == ["550"]


def test_leaving_while_slowed_down_leaves_nothing_behind(house: House, talk: Talk) -> None:
    """No timer is left after the client has disconnected."""
    talk.say(MAIL + b"RCPT TO:<nobody@inbox.example>\r\n" * 4)
    talk.leave()
    assert house.clock.getDelayedCalls() == []


def test_an_unexpected_failure_is_temporary(logged_failures: list[LogEvent]) -> None:
    """An exception outside the table is a 451 for the sender and is logged."""
    house = House(FakeMailReceiver(failures={"accept_recipient": ZeroDivisionError()}))
    talk = house.greeted()
    talk.say(MAIL)
    assert talk.say(b"RCPT TO:<dev-a@inbox.example>\r\n").startswith(b"451 4.3.0 ")
    assert len(logged_failures) == 1
    assert talk.codes(b"NOOP\r\n") == ["250"]
