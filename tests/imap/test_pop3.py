"""POP3 sessions: login, lists, retrieval, deletion and limits."""

import pytest
from twisted.internet.ssl import CertificateOptions

from mailcheck.config.options import AccountsOptions
from mailcheck.connections.policies import offer_to_all
from mailcheck.core.rights import make_rights
from tests.house import CHEAP_HASH, House, config_in_memory, mail, run
from tests.imap.pop3_talk import FAR, NEAR, FullTransport, Talk
from tests.table import rows

PASSWORD = "correct horse battery"
MAIL = b"From: a@x.example\r\nSubject: one\r\n\r\n.dots\r\n..more\r\nlast"
SIZE = len(MAIL + b"\r\n")


def session(house: House, *mails: bytes) -> Talk:
    """Receive mails, and log in."""
    for raw in mails:
        house.receive(raw=raw)
    talk = Talk(house)
    assert talk.log_in(house.key).startswith(b"+OK logged in, ")
    return talk


def listed(house: House) -> int:
    """Return the number of messages in the inbox."""
    return len(house.get("/inbox/messages").json["messages"])


def test_greeting_and_capabilities(house: House) -> None:
    """The greeting names the server, and CAPA lists what works at this moment (RFC 2449)."""
    talk = Talk(house)
    assert talk.greeting == b"+OK mailcheck.example POP3 mailcheck\r\n"
    lines = talk.say(b"capa").split(b"\r\n")
    assert lines[0].startswith(b"+OK")
    assert lines[-2:] == [b".", b""]
    assert {b"TOP", b"UIDL", b"USER", b"SASL PLAIN", b"PIPELINING"} <= set(lines)
    assert b"STLS" not in lines
    assert b"STLS" in Talk(house, tls_for=offer_to_all(CertificateOptions())).say(b"CAPA")


def test_a_far_client_needs_tls(house: House) -> None:
    """Without TLS, no password is accepted from a public address, and no login is offered."""
    talk = Talk(house, FAR, offer_to_all(CertificateOptions()))
    capabilities = talk.say(b"CAPA")
    assert b"USER" not in capabilities
    assert b"SASL" not in capabilities
    for line in (b"USER x", b"PASS y", b"AUTH PLAIN AHgAeQ=="):
        assert talk.say(line).startswith(b"-ERR log in without TLS is not allowed")


@pytest.mark.parametrize(
    "lines",
    [
        (b"USER anybody", b"PASS %s"),
        (b"user anybody", b"pass %s"),
    ],
)
def test_a_key_is_the_password(house: House, lines: tuple[bytes, bytes]) -> None:
    """An API key opens the inbox for any name, and commands are not case-sensitive."""
    house.receive()
    talk = Talk(house)
    talk.say(lines[0])
    assert talk.say(lines[1] % house.key.encode()) == b"+OK logged in, 1 messages\r\n"


def test_name_and_password_of_an_account() -> None:
    """The password of an account works with its name; it may contain spaces."""
    house = House(config_in_memory(accounts=AccountsOptions(password_cost=CHEAP_HASH)))
    run(house.assembly.accounts.sign_in.set_password(house.account, PASSWORD))
    talk = Talk(house)
    talk.say(b"USER first")
    assert talk.say(b"PASS " + PASSWORD.encode()).startswith(b"+OK")


def test_plain_without_an_initial_response(house: House) -> None:
    """AUTH PLAIN asks for the response, which may be cancelled (RFC 5034 4)."""
    talk = Talk(house)
    assert talk.say(b"AUTH PLAIN") == b"+ \r\n"
    assert talk.say(b"*").startswith(b"-ERR")
    assert talk.say(b"AUTH PLAIN") == b"+ \r\n"
    assert talk.say(b"!").startswith(b"-ERR")
    assert talk.say(b"AUTH CRAM-MD5").startswith(b"-ERR")
    assert talk.log_in(house.key).startswith(b"+OK")


def test_wrong_passwords_end_the_connection(house: House) -> None:
    """A wrong password gets [AUTH] (RFC 3206); the third one closes the connection."""
    talk = Talk(house)
    for _ in range(3):
        assert not talk.is_closing
        assert talk.log_in("mck_wrong").startswith(b"-ERR [AUTH] ")
    assert talk.is_closing
    assert b'failed_access_total{kind="login"} 3' in metrics(house)


def metrics(house: House) -> bytes:
    """Return the metric of failed access."""
    counts = house.assembly.runtime.clients.failed_access.counts
    return b"".join(
        f'failed_access_total{{kind="{kind}"}} {count}'.encode()
        for (kind,), count in counts.items()
    )


def test_lists(house: House) -> None:
    """STAT, LIST and UIDL agree with each other and with the API."""
    talk = session(house, mail("one"), mail("the second"))
    sizes = [len(mail("one")), len(mail("the second"))]
    ids = [one["id"] for one in reversed(house.get("/inbox/messages").json["messages"])]
    assert talk.say(b"STAT") == f"+OK 2 {sum(sizes)}\r\n".encode()
    assert talk.say(b"LIST") == f"+OK\r\n1 {sizes[0]}\r\n2 {sizes[1]}\r\n.\r\n".encode()
    assert talk.say(b"LIST 2") == f"+OK 2 {sizes[1]}\r\n".encode()
    assert talk.say(b"UIDL").endswith(f"1 {ids[0]}\r\n2 {ids[1]}\r\n.\r\n".encode())
    assert talk.say(b"UIDL 1") == f"+OK 1 {ids[0]}\r\n".encode()


LINE_ENDS = (
    b"Subject: s\r\n\r\none\r\n.two\r\n",
    b"Subject: s\n\none\n.two\n",
    b"Subject: s\r\n\r\none\n.two\r\n",
    b"Subject: s\n\none\r.two",
    b"Subject: s\n\none\r",
    b"Subject: s\r\n\r\n",
)


def test_sizes_count_the_octets_that_are_sent(house: House) -> None:
    """A line end counts as two octets (RFC 1939 11), and stuffed dots do not count."""
    talk = session(house, *LINE_ENDS)
    total = 0
    for number in range(1, len(LINE_ENDS) + 1):
        line, _, rest = talk.say(b"RETR %d" % number).partition(b"\r\n")
        size = len(rest.removesuffix(b".\r\n").replace(b"\r\n..", b"\r\n."))
        assert line == b"+OK %d octets" % size
        assert talk.say(b"LIST %d" % number) == b"+OK %d %d\r\n" % (number, size)
        total += size
    assert talk.say(b"STAT") == b"+OK %d %d\r\n" % (len(LINE_ENDS), total)


def test_an_empty_inbox(house: House) -> None:
    """Lists of an empty inbox have no lines."""
    talk = session(house)
    assert talk.say(b"STAT", b"LIST", b"UIDL") == (
        b"+OK 0 0\r\n+OK\r\n.\r\n+OK unique ids\r\n.\r\n"
    )


def test_a_mail_is_sent_with_stuffed_dots(house: House) -> None:
    """RETR sends the exact mail, with a dot before each dot at the start of a line."""
    talk = session(house, MAIL)
    head, _ = MAIL.split(b"\r\n\r\n")
    stuffed = head + b"\r\n\r\n..dots\r\n...more\r\nlast\r\n.\r\n"
    assert talk.say(b"RETR 1") == f"+OK {SIZE} octets\r\n".encode() + stuffed


@rows(
    (0, b""),
    (1, b"..dots\r\n"),
    (2, b"..dots\r\n...more\r\n"),
    (9, b"..dots\r\n...more\r\nlast\r\n"),
)
def test_the_top_of_a_mail(house: House, lines: int, rest: bytes) -> None:
    """TOP sends the header, an empty line, and so many lines of the body."""
    talk = session(house, MAIL)
    head = MAIL.split(b"\r\n\r\n")[0]
    reply = talk.say(b"TOP 1 %d" % lines)
    assert reply == f"+OK {SIZE} octets\r\n".encode() + head + b"\r\n\r\n" + rest + b".\r\n"


def test_a_large_mail_is_exact(house: House) -> None:
    """A mail that is read in several pieces arrives exactly, also when the client reads slowly."""
    raw = b"Subject: large\r\n\r\n" + b"".join(b".%07d\r\n" % n for n in range(100_000))
    talk = session(house, raw)
    talk.protocol.dataReceived(b"RETR 1\r\nNOOP\r\n")
    received = b""
    for _ in range(20):
        received += talk.take()
        if talk.transport.producer is not None:
            talk.transport.producer.resumeProducing()
    lines = received.split(b"\r\n")
    assert lines[0] == f"+OK {len(raw)} octets".encode()
    assert lines[-4:] == [b"..0099999", b".", b"+OK still here", b""]
    assert b"\r\n".join(one.removeprefix(b".") for one in lines[1:-3]) + b"\r\n" == raw


def test_output_waits_for_a_slow_client(house: House) -> None:
    """While the client reads nothing, nothing more is read from the store; then it is closed."""
    house.receive(raw=b"Subject: large\r\n\r\n" + b"x" * 2_000_000 + b"\r\n")
    talk = Talk(house, transport=FullTransport)
    talk.log_in(house.key)
    sent = len(talk.say(b"RETR 1"))
    assert sent < 300_000
    house.pass_time(599)
    assert not talk.is_closing
    house.pass_time(2)
    assert talk.is_closing


def test_messages_are_deleted_at_quit(house: House) -> None:
    """DELE hides a message from the session; QUIT deletes it, RSET and a lost connection do not."""
    talk = session(house, mail("one"), mail("two"), mail("three"))
    assert talk.say(b"DELE 1").startswith(b"+OK")
    assert talk.say(b"DELE 3").startswith(b"+OK")
    assert talk.say(b"STAT").startswith(b"+OK 1 ")
    for line in (b"RETR 1", b"LIST 1", b"UIDL 1", b"TOP 1 0", b"DELE 1"):
        assert talk.say(line) == b"-ERR the message is marked as deleted\r\n"
    talk.protocol.connectionLost()
    assert listed(house) == 3
    talk = session(house)
    talk.say(b"DELE 1", b"RSET", b"DELE 2")
    assert talk.say(b"QUIT") == b"+OK 1 messages deleted\r\n"
    assert talk.is_closing
    subjects = [one["subject"] for one in house.get("/inbox/messages").json["messages"]]
    assert subjects == ["three", "one"]


def test_a_session_sees_a_snapshot(house: House) -> None:
    """Mail that arrives during a session is not part of it; mail that is deleted has gone."""
    talk = session(house, mail("one"))
    house.receive(raw=mail("two"))
    assert talk.say(b"STAT").startswith(b"+OK 1 ")
    house.ask("DELETE", "/inbox/messages").answer()
    assert talk.say(b"RETR 1").startswith(b"-ERR the message has been deleted")
    assert talk.say(b"STAT").startswith(b"+OK 1 ")


def test_invalid_numbers(house: House) -> None:
    """A number that is no message gets an error."""
    talk = session(house, MAIL)
    for line in (b"RETR", b"RETR 0", b"RETR 2", b"RETR x", b"RETR -1", b"TOP 1", b"TOP 1 x"):
        assert talk.say(line).startswith(b"-ERR "), line
    assert talk.say(b"DELE 99999999999").startswith(b"-ERR ")


@rows(b"STAT", b"LIST", b"UIDL", b"RETR 1", b"DELE 1", b"TOP 1 1", b"RSET", b"NOOP")
def test_commands_need_a_login(house: House, line: bytes) -> None:
    """Nothing of an inbox is shown before the login."""
    assert Talk(house).say(line) == b"-ERR log in first\r\n"


def test_a_limited_key(house: House) -> None:
    """A key sees the messages of its tags only, and deletes only with the scope for it."""
    house.receive(house.address("a"), raw=mail("one"))
    house.receive(house.address("b"), raw=mail("two"))
    issued = house.assembly.accounts.keep.issue_key(
        house.account, "", rights=make_rights(["inbox:read"], ["b"])
    )
    talk = Talk(house)
    assert talk.log_in(run(issued).secret) == b"+OK logged in, 1 messages\r\n"
    assert b"Subject: two" in talk.say(b"RETR 1")
    assert talk.say(b"DELE 1").startswith(b"-ERR [SYS/PERM] ")


def test_a_key_that_may_not_read(house: House) -> None:
    """A key without the scope for reading cannot log in."""
    issued = house.assembly.accounts.keep.issue_key(
        house.account, "", rights=make_rights(["inbox:write"])
    )
    assert Talk(house).log_in(run(issued).secret).startswith(b"-ERR [SYS/PERM] ")


def test_a_revoked_key_ends_the_session(house: House) -> None:
    """A session ends when its key is revoked."""
    talk = session(house, MAIL)
    accounts = house.assembly.accounts
    caller = run(accounts.authenticator.identify(house.key))
    run(accounts.keep.revoke_key(caller.key_id))
    run(accounts.ended_access.check())
    assert talk.take().startswith(b"-ERR [AUTH] ")
    assert talk.is_closing


def test_pipelined_commands_are_answered_in_order(house: House) -> None:
    """Commands that arrive together are answered one after the other."""
    talk = session(house, MAIL, MAIL)
    replies = talk.say(b"STAT", b"UIDL 2", b"TOP 1 0", b"NOOP", b"RETR 2", b"QUIT")
    starts = [one.split(b" ")[0] for one in replies.split(b"\r\n") if one.startswith((b"+", b"-"))]
    assert len(starts) == 6
    assert replies.endswith(b"+OK goodbye\r\n")


def test_input_after_stls_is_not_run(house: House) -> None:
    """A command that was sent together with STLS is not processed (CVE-2011-0411)."""
    talk = Talk(house, tls_for=offer_to_all(CertificateOptions()))
    assert talk.say(b"STLS", b"USER x").startswith(b"-ERR input after STLS")
    assert b"send PASS" not in talk.say(b"NOOP")


@rows(
    (b"FOO\r\n", b"-ERR unknown command\r\n"),
    (b"NOOP\n", b"-ERR lines must end with CR LF\r\n"),
    (b"USER " + b"x" * 5_000 + b"\r\n", b"-ERR the line is too long\r\n"),
    (b"GET / HTTP/1.1\r\nUSER x\r\n", b"-ERR this is a POP3 server\r\n"),
)
def test_invalid_lines(house: House, data: bytes, reply: bytes) -> None:
    """Lines that are not commands get an error, and a browser is disconnected."""
    assert Talk(house).send(data) == reply


def test_errors_and_silence_end_the_connection(house: House) -> None:
    """After many errors, and after some seconds without a command, the connection is closed."""
    talk = Talk(house)
    for _ in range(20):
        assert not talk.is_closing
        talk.say(b"FOO")
    assert talk.is_closing
    silent = Talk(house)
    house.pass_time(31)
    assert silent.take().startswith(b"-ERR timed out")
    talk = session(house)
    house.pass_time(599)
    assert talk.say(b"NOOP").startswith(b"+OK")
    house.pass_time(601)
    assert talk.take().startswith(b"-ERR timed out")


def test_draining(house: House) -> None:
    """When the daemon stops, sessions are closed without deleting anything."""
    talk = session(house, MAIL)
    talk.say(b"DELE 1")
    talk.factory.drain(1.0)
    assert talk.take() == b"-ERR [SYS/TEMP] the server is shutting down\r\n"
    talk.protocol.connectionLost()
    assert listed(house) == 1
    assert Talk(house, NEAR).greeting.startswith(b"+OK")
