"""Greeting, extensions, order of commands, and commands without a mail."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tests.smtp.talk import HOST_NAME, MAIL, RCPT, House, Talk
from tests.table import rows


def test_ehlo_lists_extensions() -> None:
    """The extensions are listed; TLS and AUTH only where they are available."""
    talk = House().connected()
    lines = talk.say(b"EHLO client.example\r\n").decode().split("\r\n")
    assert lines[0] == f"250-{HOST_NAME}"
    assert {line[4:] for line in lines[1:-1]} == {
        "SIZE 26214400",
        "8BITMIME",
        "SMTPUTF8",
        "PIPELINING",
        "CHUNKING",
        "ENHANCEDSTATUSCODES",
        "HELP",
    }
    assert lines[-2].startswith("250 ")


def test_helo_lists_no_extensions(house: House) -> None:
    """HELO gets one line, and the session records that EHLO was not used."""
    talk = house.connected()
    assert talk.say(b"HELO client.example\r\n") == f"250 {HOST_NAME}\r\n".encode()
    talk.say(MAIL + RCPT + b"DATA\r\n", b"hi\r\n.\r\n")
    assert not house.receiver.delivered[0].session.is_extended


def test_a_name_is_required() -> None:
    """A greeting with a missing or invalid name is rejected and changes nothing."""
    talk = House().connected()
    assert talk.say(b"EHLO\r\n").startswith(b"501 ")
    assert talk.say(b"HELO <x>\r\n").startswith(b"501 ")
    assert talk.codes(MAIL) == ["503"]


@rows(
    *product(
        [b"EHLO ", b"HELO "],
        [
            b"[2001:7c0:2041:8::19]",
            "Дмитрий-ПК".encode(),
            "büro-pc".encode("latin-1"),
            b"John's MacBook (2)",
            b"*",
        ],
        [False, True],
    )
)
def test_names_of_real_machines_are_accepted(verb: bytes, name: bytes, is_submission: bool) -> None:
    """A name that RFC 5321 does not allow is accepted on both ports, and kept for the report."""
    talk = House(is_submission=is_submission).connected()
    assert talk.codes(verb + name + b"\r\n")[-1] == "250"


@rows(b"ehlo x\r\n", b"EhLo x  \r\n", b"EHLO \t x\r\n")
def test_case_and_spaces_are_ignored(case: bytes) -> None:
    """Verbs may be in any case, and trailing spaces are allowed (RFC 5321 2.4 and 4.1.1)."""
    talk = House().connected()
    assert talk.codes(case) == ["250"]


@rows(
    (b"", MAIL, b"503 5.5.1 "),
    (b"", RCPT, b"503 5.5.1 "),
    (b"", b"DATA\r\n", b"503 5.5.1 "),
    (b"EHLO x\r\n", RCPT, b"503 5.5.1 "),
    (b"EHLO x\r\n", b"DATA\r\n", b"503 5.5.1 "),
    (b"EHLO x\r\n" + MAIL, MAIL, b"503 5.5.1 "),
    (b"EHLO x\r\n" + MAIL, b"DATA\r\n", b"554 5.5.1 "),
    (b"EHLO x\r\n" + MAIL + RCPT, b"DATA now\r\n", b"501 5.5.4 "),
    (b"EHLO x\r\n" + MAIL + b"RSET\r\n", RCPT, b"503 5.5.1 "),
    (b"EHLO x\r\n" + MAIL + b"EHLO x\r\n", RCPT, b"503 5.5.1 "),
    (b"EHLO x\r\n" + MAIL + b"HELO x\r\n", RCPT, b"503 5.5.1 "),
    (b"", b"RSET\r\n", b"250 2.0.0 "),
    (b"", b"RSET now\r\n", b"501 5.5.4 "),
    (b"", b"NOOP\r\n", b"250 2.0.0 "),
    (b"", b"NOOP anything at all\r\n", b"250 2.0.0 "),
    (b"", b"VRFY\r\n", b"501 5.5.4 "),
    (b"", b"VRFY dev-a\r\n", b"252 2.5.0 "),
    (b"", b"HELP\r\n", b"214-2.0.0 "),
    (b"", b"HELP MAIL\r\n", b"214-2.0.0 "),
    (b"", b"QUIT now\r\n", b"501 5.5.4 "),
    (b"", b"EXPN list\r\n", b"502 5.5.1 "),
    (b"", b"TURN\r\n", b"502 5.5.1 "),
    (b"EHLO x\r\n", b"STARTTLS\r\n", b"502 5.5.1 "),
    (b"EHLO x\r\n", b"AUTH PLAIN\r\n", b"502 5.5.1 "),
    (b"", b"HELLO x\r\n", b"500 5.5.1 "),
    (b"", b"\r\n", b"500 5.5.1 "),
    (b"", b" EHLO x\r\n", b"500 5.5.1 "),
    (b"", b"\xff\xfe zz\r\n", b"500 5.5.1 "),
)
def test_each_command_in_each_state_has_its_reply(
    before: bytes, command: bytes, reply: bytes
) -> None:
    """Wrong order, arguments and verbs have different codes, and the connection stays open."""
    talk = House().connect()
    talk.say(before)
    assert talk.say(command).startswith(reply)
    assert talk.codes(b"NOOP\r\n") == ["250"]


def test_replies_have_enhanced_codes() -> None:
    """Each 2xx, 4xx and 5xx reply has an enhanced code, except the greeting, EHLO and 354.

    See RFC 2034 4.
    """
    talk = House().connected()
    talk.say(b"EHLO x\r\n")
    said = talk.say(
        MAIL + RCPT + b"RCPT TO:<nobody@inbox.example>\r\nVRFY a\r\nFOO\r\nHELP\r\nDATA\r\n",
        b"hi\r\n.\r\n",
        b"QUIT\r\n",
    )
    for line in said.decode().split("\r\n")[:-1]:
        if not line.startswith("354"):
            assert line[4:8] in {f"{line[0]}.{subject}." for subject in range(8)}


def test_a_second_mail_on_the_same_connection(house: House, talk: Talk) -> None:
    """A connection may be reused; each mail has its own envelope."""
    for name in (b"a", b"b"):
        talk.say(MAIL + b"RCPT TO:<dev-" + name + b"@inbox.example>\r\nDATA\r\n")
        assert talk.codes(name + b"\r\n.\r\n") == ["250"]
    assert house.messages == [b"a\r\n", b"b\r\n"]
    assert [len(mail.envelope.recipients) for mail in house.receiver.delivered] == [1, 1]


def test_everything_may_be_pipelined(house: House) -> None:
    """Commands in one packet run in order, and their replies are written together."""
    talk = house.connected()
    batch = b"EHLO x\r\n" + (MAIL + RCPT + b"DATA\r\nhi\r\n.\r\n") * 2 + b"QUIT\r\n"
    assert talk.codes(batch) == ["250", *["250", "250", "354", "250"] * 2, "221"]
    assert house.messages == [b"hi\r\n", b"hi\r\n"]


@rows(b"GET", b"POST", b"CONNECT", b"OPTIONS")
def test_a_browser_is_disconnected(verb: bytes) -> None:
    """An HTTP request is rejected at its first line."""
    house = House()
    talk = house.connected()
    request = verb + b" / HTTP/1.1\r\n\r\nEHLO x\r\n" + MAIL + RCPT + b"DATA\r\nhi\r\n.\r\n"
    assert talk.codes(request) == ["421"]
    assert talk.is_closed
    assert not house.messages


@rows(b"EHLO x\n", b"EHLO\rx\r\n", b"EHLO x\0\r\n", b"NOOP\nNOOP\r\n")
def test_bare_line_ends_close_the_connection(line: bytes) -> None:
    """A command line with a bare CR, LF or NUL gets a reply and closes the connection."""
    talk = House().connected()
    assert talk.say(line + b"NOOP\r\n").startswith(b"500 5.5.2 ")
    assert talk.is_closed


PARTS = (
    b"EHLO y\r\n",
    b"NOOP\r\n",
    b"FOO \xff\r\n",
    b"RSET\r\n",
    MAIL,
    RCPT,
    b"RCPT TO:<nobody@inbox.example>\r\n",
    b"NOOP " + b"x" * 3000 + b"\r\n",
    b"RSET\r\n" + MAIL + RCPT + b"DATA\r\na\r\n..\r\n..b\r\n.\r\n",
    b"RSET\r\n" + MAIL + RCPT + b"BDAT 5\r\na\r\n\r\nBDAT 4 LAST\r\n.\r\n\n",
    b"RSET\r\n" + MAIL + RCPT + b"BDAT 6\r\nQUIT\r\nBDAT 0 LAST\r\n",
    b"BDAT 6 LAST\r\nQUIT\r\n",
)


@given(
    st.lists(st.sampled_from(PARTS), max_size=12),
    st.lists(st.integers(1, 4000), min_size=1, max_size=20),
)
def test_a_conversation_does_not_depend_on_the_cut(parts: list[bytes], steps: list[int]) -> None:
    """Replies and mails do not depend on how the input is split into packets."""
    stream = b"EHLO x\r\n" + b"".join(parts)
    whole, cut = House(), House()
    expected = whole.connect().say(stream)
    talk = cut.connect()
    said = talk.heard()
    position = number = 0
    while position < len(stream):
        step = steps[number % len(steps)]
        said += talk.say(stream[position : position + step])
        position += step
        number += 1
    assert said == expected
    assert cut.receiver.delivered == whole.receiver.delivered
