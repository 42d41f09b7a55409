"""Limits on amount, time and frequency for clients."""

from tests.smtp.talk import MAIL, PUBLIC_IP, RCPT, House, Talk
from tests.table import rows


def test_a_silent_client_is_disconnected(house: House) -> None:
    """After 30 s without a first command, or 5 minutes without another, it gets 421 4.4.2."""
    talk = house.connect()
    house.clock.advance(29)
    assert talk.heard().startswith(b"220 ")
    house.clock.advance(1)
    assert talk.say().startswith(b"421 4.4.2 ")
    talk = house.connect()
    talk.heard()
    house.clock.advance(29)
    assert talk.codes(b"EHLO x\r\n") == ["250"]
    house.clock.advance(299)
    assert not talk.is_closed
    house.clock.advance(2)
    assert talk.say().startswith(b"421 4.4.2 ")
    assert talk.is_closed


def test_half_a_command_is_silence(house: House, talk: Talk) -> None:
    """A client that sends single octets does not extend its timeout."""
    for _ in range(6):
        talk.say(b"N")
        house.clock.advance(60)
    assert talk.is_closed


def test_a_slow_message_has_a_deadline(house: House) -> None:
    """Each piece of a message resets the timeout; after 15 minutes it must be complete."""
    talk = house.at_data()
    for _ in range(14):
        assert talk.codes(b"x\r\n") == []
        house.clock.advance(60)
    assert talk.codes(b".\r\n") == ["250"]
    talk.say(MAIL + RCPT + b"DATA\r\n")
    for _ in range(15):
        assert talk.codes(b"x\r\n") == []
        house.clock.advance(59.9)
    house.clock.advance(2)
    assert talk.say().startswith(b"421 4.4.2 ")
    assert talk.is_closed
    talk.leave()
    assert house.factory.memory.used == 0


def test_chunks_share_the_time_of_their_message(house: House, talk: Talk) -> None:
    """The deadline of a message counts from its first chunk."""
    talk.say(MAIL + RCPT)
    for _ in range(15):
        assert talk.codes(b"BDAT 3\r\nx\r\n") == ["250"]
        house.clock.advance(59)
    house.clock.advance(60)
    assert talk.codes(b"BDAT 3 LAST\r\nx\r\n") == ["421"]


def test_a_client_that_does_not_read_its_last_reply_is_disconnected(house: House) -> None:
    """Five seconds after the last reply the connection is aborted."""
    talk = house.connect()
    house.clock.advance(300)
    assert talk.transport.disconnecting
    assert not talk.transport.disconnected
    house.clock.advance(6)
    assert talk.transport.disconnected


def test_input_after_the_last_reply_is_ignored(house: House, talk: Talk) -> None:
    """Commands after the last reply are not run."""
    talk.say(b"QUIT\r\n")
    talk.protocol.dataReceived(MAIL + RCPT)
    assert talk.heard() == b""
    assert house.receiver.asked == []


@rows((b"FOO", "500", 19, 19), (b"NOOP", "250", 990, 1000))
def test_too_much_without_a_mail(command: bytes, code: str, first: int, most: int) -> None:
    """The twentieth error and the command after a thousand are the last; a mail resets both."""
    talk = House().greeted()
    assert talk.codes((command + b"\r\n") * first) == [code] * first
    assert talk.codes(MAIL + RCPT + b"DATA\r\nhi\r\n.\r\n")[-1] == "250"
    assert talk.codes((command + b"\r\n") * most) == [code] * most
    assert talk.say(command + b"\r\nNOOP\r\n").startswith(b"421 4.7.0 ")
    assert talk.is_closed


def test_many_large_chunks_are_allowed(talk: Talk) -> None:
    """Chunks of 1 KiB and more are limited by the size of the message only."""
    talk.say(MAIL + RCPT)
    chunk = b"BDAT 1024\r\n" + b"x" * 1024
    assert talk.codes(*[chunk] * 2000) == ["250"] * 2000
    assert talk.codes(b"BDAT 2 LAST\r\n\r\n") == ["250"]


@rows((2046, "250"), (2047, "500"), (100_000, "500"))
def test_a_long_line_is_refused_as_a_whole(length: int, code: str) -> None:
    """A line of up to 2048 octets is run; a longer one is discarded and gets one reply."""
    talk = House().greeted()
    line = b"NOOP ".ljust(length, b"x") + b"\r\n"
    assert talk.codes(line + b"RSET\r\n") == [code, "250"]
    pieces = [line[n : n + 1000] for n in range(0, len(line), 1000)]
    assert talk.codes(*pieces, b"RSET\r\n") == [code, "250"]


def test_connections_of_one_address_are_limited(house: House) -> None:
    """The 101st connection of a public client is rejected; another client is not."""
    first = house.connect()
    for _ in range(99):
        assert house.connect().heard().startswith(b"220 ")
    excess = house.connect()
    assert excess.heard().startswith(b"421 4.7.0 ")
    assert excess.is_closed
    assert house.connect("93.184.216.35").heard().startswith(b"220 ")
    excess.leave()
    assert not house.connect().heard().startswith(b"220 ")
    first.leave()
    assert house.connect().heard().startswith(b"220 ")


def test_an_ipv6_client_is_its_network() -> None:
    """All addresses of a /64 count as one client."""
    house = House(limits={"connections_per_address": 1})
    assert house.connect("2606:2800:220:1::1").heard().startswith(b"220 ")
    assert house.connect("2606:2800:220:1::2").heard().startswith(b"421 ")
    assert house.connect("2606:2800:220:2::1").heard().startswith(b"220 ")


@rows("127.0.0.1", "10.1.2.3", "172.20.0.1", "::1", "fd00::1")
def test_private_clients_have_no_limit_per_address(near: str) -> None:
    """Many programs may share a private address."""
    house = House(limits={"connections_per_address": 1})
    for _ in range(3):
        assert house.connect(near).heard().startswith(b"220 ")


def test_the_total_of_connections_is_limited() -> None:
    """There is a maximum number of connections; when one ends, another is accepted."""
    house = House(limits={"connections": 2})
    first = house.connect("10.0.0.1")
    house.connect("10.0.0.1")
    for _ in range(3):
        assert house.connect("10.0.0.1").heard().startswith(b"421 4.7.0 ")
    assert house.factory.connection_count == 5
    first.leave()
    assert house.connect("10.0.0.1").heard().startswith(b"220 ")


def test_counting_leaves_nothing_behind(house: House) -> None:
    """After all clients have left, no counter and no timer remains."""
    talks = [house.connect(PUBLIC_IP), house.greeted("10.0.0.1"), house.at_data("::1")]
    for talk in talks:
        talk.leave()
    assert house.factory.connection_count == 0
    assert house.clock.getDelayedCalls() == []


def test_idle_connections_make_room() -> None:
    """At the limit a client's first connection replaces the connection that is idle longest."""
    house = House(limits={"connections": 3})
    silent, sending, idle = house.connect("10.0.0.1"), house.connect("10.0.0.2"), house.greeted()
    sending.say(b"EHLO x\r\n" + MAIL)
    for talk in (silent, sending, idle):
        talk.heard()
    idle.say(b"NOOP\r\n")
    first = house.connect("10.0.0.4")
    assert first.heard().startswith(b"220 ")
    assert silent.heard().startswith(b"421 4.4.2 ")
    assert silent.is_closed
    # A second connection of a client does not displace another client.
    assert house.connect("10.0.0.4").heard().startswith(b"421 4.7.0 ")
    assert house.connect("10.0.0.5").heard().startswith(b"220 ")
    assert idle.is_closed
    first.say(b"EHLO x\r\n" + MAIL)
    assert house.connect("10.0.0.6").heard().startswith(b"220 ")
    # Now only clients with mail are left, and a new client connects again.
    assert [sending.is_closed, first.is_closed] == [False, False]
    assert house.factory.connection_count >= 3


def test_connections_with_mail_do_not_make_room() -> None:
    """If all clients have a mail in progress, a new client is asked to retry later."""
    house = House(limits={"connections": 2})
    talks = [house.at_data("10.0.0.1"), house.greeted("10.0.0.2")]
    talks[1].say(MAIL)
    assert house.connect("10.0.0.3").heard().startswith(b"421 4.7.0 ")
    assert not any(talk.is_closed for talk in talks)
