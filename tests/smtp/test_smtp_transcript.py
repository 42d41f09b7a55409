"""The transcript of a session: the lines of one mail, for its recipients, without secrets."""

import base64
import re
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.internet.defer import Deferred

from mailcheck.core.addresses import Mailbox
from mailcheck.core.deliverability_tests import parse_local_part
from mailcheck.core.identifiers import AccountId
from mailcheck.core.messages import Recipient, Session
from mailcheck.smtp.transaction import MAX_SIZE, Transcript
from tests.fakes.mail_receiver import FakeMailReceiver
from tests.smtp.talk import House, Talk
from tests.table import rows

TEST = "test-abcdefghijklm@inbox.example"
OTHER_TEST = "test-bbbbbbbbbbbbb@inbox.example"
TRUSTED = "127.0.0.1"

MAIL = b"MAIL FROM:<sender@client.example>\r\n"
BODY = b"Subject: x\r\n\r\nText.\r\n.\r\n"


class Receiver(FakeMailReceiver):
    """A receiver with test addresses."""

    def accept_recipient(
        self, session: Session, envelope_sender: str, mailbox: Mailbox
    ) -> "Deferred[Recipient]":
        """Accept a recipient; the form of its address makes it a test address."""
        found = super().accept_recipient(session, envelope_sender, mailbox)
        test_id = parse_local_part(mailbox.local_part)
        return found.addCallback(lambda one: replace(one, test_id=test_id))


def to(*addresses: str) -> bytes:
    """Return a mail's commands, pipelined."""
    recipients = b"".join(f"RCPT TO:<{address}>\r\n".encode() for address in addresses)
    return MAIL + recipients + b"DATA\r\n"


def transcripts(house: House) -> list[tuple[str, ...]]:
    """Return the transcripts of all mails."""
    return [mail.envelope.transcript for mail in house.receiver.delivered]


@pytest.fixture
def house() -> House:
    """Return a house that keeps transcripts."""
    return House(Receiver())


def test_the_conversation(house: House, talk: Talk) -> None:
    """The transcript of a test has all lines of both sides up to its message, in order."""
    talk.say(to(TEST))
    talk.say(BODY)
    (lines,) = transcripts(house)
    assert lines[0] == "S: 220 mx.inbox.example ESMTP mailcheck"
    assert lines[1] == "C: EHLO client.example"
    assert lines[2] == "S: 250-mx.inbox.example"
    assert all(line.startswith("S: 250") for line in lines[3:-6])
    assert lines[-6:] == (
        "C: MAIL FROM:<sender@client.example>",
        "S: 250 2.1.0 Sender OK",
        f"C: RCPT TO:<{TEST}>",
        "S: 250 2.1.5 Recipient OK",
        "C: DATA",
        "S: 354 End data with <CR><LF>.<CR><LF>",
    )


def test_inbox_mail_has_none(house: House, talk: Talk) -> None:
    """A mail without a test recipient has no transcript."""
    talk.say(to("dev-a@inbox.example"))
    talk.say(BODY)
    assert transcripts(house) == [()]


def test_other_recipients_are_left_out(house: House, talk: Talk) -> None:
    """Other recipients, accepted or rejected, are in no transcript."""
    others = ["dev-a@inbox.example", "nobody@inbox.example", f"dev-a+{TEST}"]
    talk.say(to(*others, TEST.upper(), OTHER_TEST))
    talk.say(BODY)
    (lines,) = transcripts(house)
    text = "\n".join(lines)
    assert "dev-a" not in text
    assert "nobody" not in text
    assert f"C: RCPT TO:<{TEST.upper()}>" in lines
    assert text.count("Recipient OK") == 2


def test_earlier_mails_are_left_out(house: House, talk: Talk) -> None:
    """Of a connection with earlier mails, only the greeting and the current mail are included."""
    for _ in range(3):
        talk.say(to("dev-a@inbox.example"))
        talk.say(BODY)
    talk.say(MAIL, b"RSET\r\n", b"NOOP\r\n")
    talk.say(to(TEST))
    talk.say(BODY)
    alone = House(Receiver())
    talk = alone.greeted()
    talk.say(to(TEST))
    talk.say(BODY)
    assert transcripts(house)[-1] == transcripts(alone)[0]


def test_a_second_greeting(house: House, talk: Talk) -> None:
    """An EHLO between two mails belongs to the transcript of the second."""
    talk.say(to(TEST))
    talk.say(BODY)
    talk.say(b"HELO again.example\r\n")
    talk.say(to(OTHER_TEST))
    talk.say(BODY)
    lines = transcripts(house)[1]
    commands = [line for line in lines if line.startswith("C: ")]
    assert commands[:3] == [
        "C: EHLO client.example",
        "C: HELO again.example",
        "C: MAIL FROM:<sender@client.example>",
    ]
    assert TEST not in "\n".join(lines)


def test_chunks(house: House, talk: Talk) -> None:
    """A mail in chunks has its commands in the transcript, without its bytes."""
    talk.say(MAIL, f"RCPT TO:<{TEST}>\r\n".encode())
    talk.say(b"BDAT 5\r\nabcde", b"BDAT 2 LAST\r\n\r\n")
    (lines,) = transcripts(house)
    assert lines[-3:] == ("C: BDAT 5", "S: 250 2.0.0 OK", "C: BDAT 2 LAST")


@rows(
    [b"AUTH PLAIN %s\r\n"],
    [b"auth plain\r\n", b"%s\r\n"],
    [b"AUTH LOGIN\r\n", b"dXNlcg==\r\n", b"%s\r\n"],
    # Input of a client that did not understand that AUTH was rejected.
    [b"AUTH CRAM-MD5\r\n", b"%s\r\n", b"AUTH\t%s\r\n", b"AUTH  %s\r\n"],
)
def test_credentials(exchange: list[bytes]) -> None:
    """No line of an authentication is kept, whether accepted, rejected or invalid."""
    receiver = Receiver(keys={"s3cret-key": AccountId("ann")})
    house = House(receiver, is_submission=True)
    talk = house.greeted(TRUSTED)
    plain, login = b"\0user\0s3cret-key", b"s3cret-key"
    for line in exchange:
        secret = login if b"LOGIN" in exchange[0] else plain
        encoded = base64.b64encode(secret)
        talk.say(line % encoded if b"%s" in line else line)
    if house.receiver.secrets != ["s3cret-key"]:
        talk.say(b"AUTH PLAIN " + base64.b64encode(plain) + b"\r\n")
    talk.say(to(TEST))
    talk.say(BODY)
    (lines,) = transcripts(house)
    text = "\n".join(lines)
    assert "C: AUTH ..." in lines
    assert "s3cret" not in text
    assert base64.b64encode(plain).decode() not in text
    assert base64.b64encode(login).decode() not in text
    assert "dXNlcg" not in text
    # It is not kept in memory either.
    assert b"czNjcmV0" not in b"".join(talk.protocol.transcript.kept)


def test_unknown_commands(house: House, talk: Talk) -> None:
    """An unknown command, which may be a password, is mentioned without its text."""
    talk.say(MAIL, b"czNjcmV0\r\n", b"AUTH\tPLAIN czNjcmV0\r\n")
    assert b"czNjcmV0" not in b"".join(talk.protocol.transcript.kept)
    talk.say(f"RCPT TO:<{TEST}>\r\nDATA\r\n".encode())
    talk.say(BODY)
    (lines,) = transcripts(house)
    assert "czNjcmV0" not in "".join(lines)
    assert lines.count("C: (an unknown command)") == 2
    assert lines.count("S: 500 5.5.1 Command not recognized") == 2


def test_a_proxy_that_names_clients() -> None:
    """Commands of a proxy and of earlier clients are in no transcript."""
    house = House(Receiver(), xclient_from=(ip_network(TRUSTED),))
    talk = house.greeted(TRUSTED)
    talk.say(b"XCLIENT ADDR=192.0.2.7 LOGIN=secret\r\n")
    talk.say(b"EHLO first.example\r\n")
    talk.say(to(TEST))
    talk.say(BODY)
    talk.say(b"XCLIENT ADDR=192.0.2.8\r\n", b"EHLO second.example\r\n")
    talk.say(to(OTHER_TEST))
    talk.say(BODY)
    first, second = transcripts(house)
    commands = [next(line for line in lines if line[0] == "C") for lines in (first, second)]
    assert commands == ["C: EHLO first.example", "C: EHLO second.example"]
    assert [lines[0][:6] for lines in (first, second)] == ["S: 220"] * 2
    for lines in (first, second):
        assert not re.search("secret|192.0.2|client.example\\b(?!>)", "\n".join(lines))


def test_the_transcript_is_bounded() -> None:
    """A client that sends many commands uses bounded memory, and its mail has a transcript."""
    house = House(Receiver(), limits={"commands": 100_000})
    talk = house.greeted()
    for _ in range(200):
        talk.say(b"NOOP " + b"x" * 2_000 + b"\r\n" + b"EHLO client.example\r\n" * 5)
    transcript = talk.protocol.transcript
    assert sum(map(len, transcript.kept)) <= MAX_SIZE
    talk.say(to(TEST))
    talk.say(BODY)
    (lines,) = transcripts(house)
    assert lines[-4] == f"C: RCPT TO:<{TEST}>"
    assert "C: EHLO client.example" in lines


def test_a_mail_that_is_too_long(house: House, talk: Talk) -> None:
    """A transcript that is not complete says so."""
    talk.say(MAIL, b"NOOP " + b"x" * 1_000 + b"\r\n" * 1)
    for _ in range(20):
        talk.say(b"NOOP " + b"x" * 1_000 + b"\r\n")
    talk.say(f"RCPT TO:<{TEST}>\r\nDATA\r\n".encode())
    talk.say(BODY)
    (lines,) = transcripts(house)
    assert lines[-1] == "(the rest was not kept)"


def test_text_that_is_not_utf8() -> None:
    """Octets that are not UTF-8 are replaced, without an error."""
    transcript = Transcript()
    transcript.record_command(b"HELP", b"HELP \xff\xfe")
    assert transcript.lines([]) == ("C: HELP \ufffd\ufffd",)


COMMANDS = st.sampled_from(
    [b"EHLO a.example", b"HELO b", b"MAIL FROM:<>", b"RCPT TO:<x@y>", b"NOOP", b"DATA"]
)


@given(st.lists(st.tuples(COMMANDS, st.booleans()), max_size=80))
def test_any_conversation(said: list[tuple[bytes, bool]]) -> None:
    """For any input a mail's transcript begins with the greeting and ends with the mail."""
    transcript = Transcript()
    transcript.record_reply(b"220 ready\r\n")
    began = False
    for command, is_obeyed in said:
        transcript.record_command(command.partition(b" ")[0], command)
        if command.startswith(b"MAIL") and is_obeyed:
            transcript.begin_mail()
            began = True
        transcript.record_reply(b"250 OK\r\n" if is_obeyed else b"503 No\r\n")
    lines = transcript.lines([b"<x@y>"])
    assert lines[0] == "S: 220 ready"
    if began:
        commands = [command.decode() for command, _ in said]
        last = max(n for n, (c, ok) in enumerate(said) if c.startswith(b"MAIL") and ok)
        since = [f"C: {command}" for command in commands[last:]]
        assert [line for line in lines if line[0] == "C"][-len(since) :] == since
        assert [line for line in lines if line.startswith("C: MAIL")] == [
            line for line in since if line.startswith("C: MAIL")
        ]
