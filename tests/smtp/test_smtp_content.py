"""DATA and BDAT on the wire."""

from tests.smtp.talk import MAIL, RCPT, House, Talk
from tests.table import rows

SMALL = {"message_size": 100}


def test_content_is_unchanged(house: House) -> None:
    """The delivered bytes are those of the client: 8-bit, long lines, blanks, no added header."""
    raw = b"X: \xff\xfe \r\n\r\n" + b"long" * 100_000 + b"\r\n \t \r\n\r\n\r\n"
    talk = house.at_data()
    assert talk.codes(raw + b".\r\n") == ["250"]
    assert house.messages == [raw]


def test_a_mail_that_is_too_large_is_rejected_once() -> None:
    """It is read up to the dot. It gets one 552 and a record, and the connection stays open."""
    house = House(limits=SMALL)
    talk = house.at_data()
    assert talk.codes(b"x" * 60, b"x" * 60, b"\r\nMAIL FROM:<a@b.example>\r\n") == []
    assert talk.say(b".\r\n").startswith(b"552 5.3.4 ")
    assert house.factory.memory.used == 0
    (refused,) = house.receiver.refused
    assert refused.reason == "552 5.3.4 Message too large"
    assert [recipient.address for recipient in refused.recipients] == ["dev-a@inbox.example"]
    assert talk.codes(MAIL + RCPT + b"DATA\r\n", b"hi\r\n.\r\n") == ["250", "250", "354", "250"]
    assert house.messages == [b"hi\r\n"]


@rows(b"a\nb\r\n", b"a\rb\r\n", b"a\0b\r\n", b"a\r\r\n")
def test_bare_controls_are_rejected_after_the_dot(stray: bytes) -> None:
    """A bare CR, a bare LF or a NUL is rejected once, and later input is not run."""
    house = House()
    talk = house.at_data()
    assert talk.say(stray) == b""
    assert talk.codes(b".\r\n" + MAIL + RCPT + b"DATA\r\nhi\r\n.\r\n") == ["550"]
    assert talk.is_closed
    assert house.receiver.refused[0].reason.startswith("550 5.6.0 ")
    assert house.messages == []


def test_a_mail_without_a_recipient_is_not_read(talk: Talk) -> None:
    """If all recipients were rejected, so is DATA, and the client may continue."""
    talk.say(MAIL, b"RCPT TO:<nobody@inbox.example>\r\n")
    assert talk.say(b"DATA\r\n").startswith(b"554 5.5.1 ")
    assert talk.codes(RCPT, b"DATA\r\n") == ["250", "354"]


def test_a_body_after_a_rejected_data_is_not_run(house: House, talk: Talk) -> None:
    """A client that did not wait for 354 is disconnected: its content must not become commands."""
    talk.say(MAIL, b"RCPT TO:<nobody@inbox.example>\r\n")
    smuggled = b"RSET\r\n" + MAIL + RCPT + b"DATA\r\nhi\r\n.\r\n"
    assert talk.codes(b"DATA\r\n" + smuggled) == ["554"]
    assert talk.is_closed
    assert not house.messages


def test_the_memory_limit_rejects_the_newest_message() -> None:
    """If the messages of a client use too much memory, the newest one gets a temporary error."""
    house = House(memory=100)
    first, second = house.at_data(), house.at_data()
    first.say(b"x" * 80)
    second.say(b"y" * 80)
    assert second.say(b"\r\n.\r\n").startswith(b"452 4.3.1 ")
    assert first.codes(b"\r\n.\r\n") == ["250"]
    assert house.messages == [b"x" * 80 + b"\r\n"]
    assert house.factory.memory.used == 0


@rows(b"", b"RSET\r\n", b"EHLO x\r\n", b"QUIT\r\n")
def test_an_abandoned_message_uses_no_memory(end: bytes) -> None:
    """Every end of a mail releases its memory."""
    house = House()
    talk = house.greeted()
    talk.say(MAIL, RCPT, b"BDAT 5\r\n12345")
    assert house.factory.memory.used == 5
    talk.say(end)
    if not end or end == b"QUIT\r\n":
        talk.leave()
    assert house.factory.memory.used == 0


def test_chunks_form_a_message(house: House, talk: Talk) -> None:
    """BDAT stores octets unchanged: dots, line endings and commands in it are content."""
    talk.say(MAIL, RCPT)
    assert talk.codes(b"BDAT 12\r\nSubject: x\r\n") == ["250"]
    assert talk.codes(b"BDAT 16\r\n\r\n.\r\nQUIT\r\n..\r\n.") == ["250"]
    said = talk.say(b"BDAT 2 LAST\r\n\r\n")
    assert said == b"250 2.0.0 OK, delivery delivery-1\r\n"
    assert house.messages == [b"Subject: x\r\n\r\n.\r\nQUIT\r\n..\r\n.\r\n"]


def test_chunks_may_be_pipelined_and_empty(house: House, talk: Talk) -> None:
    """Chunks may be pipelined; the last one, and the whole message, may be empty."""
    batch = MAIL + RCPT + b"BDAT 4\r\nhi\r\nBDAT 0\r\nBDAT 0 LAST\r\nNOOP\r\n"
    assert talk.codes(batch) == ["250"] * 6
    assert talk.codes(MAIL + RCPT + b"BDAT 0 LAST\r\n") == ["250"] * 3
    assert house.messages == [b"hi\r\n", b""]


def test_data_and_bdat_do_not_mix(talk: Talk) -> None:
    """After BDAT neither DATA nor another recipient is allowed (RFC 3030 2), until RSET."""
    talk.say(MAIL, RCPT, b"BDAT 4\r\nhi\r\n")
    assert talk.codes(b"DATA\r\n") == ["503"]
    assert talk.codes(b"RCPT TO:<dev-b@inbox.example>\r\n") == ["503"]
    assert talk.codes(b"RSET\r\n", MAIL, RCPT, b"DATA\r\n") == ["250", "250", "250", "354"]


def test_a_rejected_chunk_is_discarded(talk: Talk) -> None:
    """A rejected chunk is read and discarded, and not taken for commands."""
    assert talk.codes(b"BDAT 6\r\nQUIT\r\nNOOP\r\n") == ["503", "250"]
    talk.say(MAIL)
    assert talk.codes(b"BDAT 6 LAST\r\nQUIT\r\nNOOP\r\n") == ["554", "250"]


def test_chunks_that_are_too_large_fail_once() -> None:
    """The chunk that exceeds the limit gets 552, later ones 503, until RSET."""
    house = House(limits=SMALL)
    talk = house.greeted()
    talk.say(MAIL, RCPT)
    assert talk.codes(b"BDAT 60\r\n" + b"x" * 60) == ["250"]
    assert talk.say(b"BDAT 60\r\n" + b"x" * 60).startswith(b"552 5.3.4 ")
    assert talk.codes(b"BDAT 6\r\nQUIT\r\nBDAT 6 LAST\r\nQUIT\r\n") == ["503", "503"]
    assert len(house.receiver.refused) == 1
    assert talk.codes(b"RSET\r\n", MAIL, RCPT, b"BDAT 4 LAST\r\nhi\r\n") == ["250"] * 4
    assert house.messages == [b"hi\r\n"]


@rows(
    ([b"BDAT 2\r\na\r", b"BDAT 3 LAST\r\n\nb\r"], "550"),
    ([b"BDAT 2\r\na\r", b"BDAT 4 LAST\r\n\nb\r\n"], "250"),
    ([b"BDAT 4 LAST\r\na\nb\n"], "550"),
    ([b"BDAT 4 LAST\r\na\0\r\n"], "550"),
)
def test_bare_controls_in_chunks(chunks: list[bytes], code: str) -> None:
    """Chunks may split a CRLF, but a bare CR, LF or NUL is rejected as in DATA."""
    talk = House().greeted()
    talk.say(MAIL, RCPT)
    assert talk.codes(*chunks)[-1] == code
    assert talk.is_closed is (code == "550")


def test_a_chunk_of_unknown_size_ends_the_connection(house: House, talk: Talk) -> None:
    """The end of such a chunk is unknown, so later input is not run."""
    talk.say(MAIL, RCPT)
    assert talk.codes(b"BDAT x LAST\r\nQUIT\r\n") == ["501"]
    assert talk.is_closed


def test_after_the_last_chunk_the_mail_is_over(talk: Talk) -> None:
    """A BDAT after BDAT LAST is rejected."""
    talk.say(MAIL, RCPT, b"BDAT 4 LAST\r\nhi\r\n")
    assert talk.codes(b"BDAT 4 LAST\r\nhi\r\n") == ["503"]


@rows(
    b"hi\r\n.\r\n",
    b"stray\rhi\r\n.\r\n",
    b"x" * 100 + b"\r\n",
)
def test_each_mail_in_progress_ends(rest: bytes) -> None:
    """A mail that is complete, rejected or interrupted no longer counts as in progress."""
    house = House()
    talk = house.at_data()
    assert len(house.receiver.traffic.arriving) == 1
    talk.say(rest)
    talk.leave()
    assert house.receiver.traffic.arriving == []


def test_a_mail_in_chunks_begins_with_the_first(house: House, talk: Talk) -> None:
    """It counts as one mail with any number of chunks, and ends with the last one or RSET."""
    begin = b"MAIL FROM:<s@client.example>\r\nRCPT TO:<bob@inbox.example>\r\n"
    for end in (b"BDAT 0 LAST\r\n", b"RSET\r\n"):
        talk.say(begin, b"BDAT 4\r\nhi\r\n", b"BDAT 4\r\nyo\r\n")
        assert len(house.receiver.traffic.arriving) == 1
        talk.say(end)
        assert house.receiver.traffic.arriving == []
