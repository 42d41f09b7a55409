"""The milter endpoint: its replies, the copies, and its permitted clients."""

from ipaddress import ip_network

import pytest
from twisted.internet.task import Clock

from mailcheck.core.messages import Session
from mailcheck.milter.connection import IDLE_SECONDS, MAX_REPLIES
from mailcheck.milter.packets import (
    ACCEPT,
    BODY,
    CONNECT,
    CONTINUE,
    END_OF_MAIL,
    HEADER,
    MAIL,
    MAX_PACKET,
    QUIT,
    QUIT_BUT_KEEP,
    UNKNOWN,
    WANTED,
    Steps,
)
from tests.milter.mail_server import Copies, MailServer, milter_factory
from tests.table import rows

MAIL_TEXT = (
    b"Received: from a by b;\r\n\tThu, 26 Nov 2026 12:00:00 +0000\r\n"
    b"From:Ann  <ann@sender.example>\r\nSubject:  two spaces\r\n\r\n"
    b"Hello\r\n.\r\n"
)
OLD = Steps.NO_RECIPIENTS
"""The only wanted step that version 2 of the protocol has."""


def connected(copies: Copies, steps: Steps = WANTED, version: int = 6) -> MailServer:
    """Return a mail server that has negotiated and greeted."""
    server = MailServer(milter_factory(copies), steps, version)
    server.negotiate()
    server.greet()
    return server


@pytest.fixture
def copies() -> Copies:
    """Return a queue that is empty."""
    return Copies()


@pytest.fixture
def server(copies: Copies) -> MailServer:
    """Return a mail server that is connected."""
    return connected(copies)


def test_the_copy_is_the_mail(copies: Copies) -> None:
    """A copy has every octet of the mail, with the client and the sender of its session."""
    connected(copies).send_mail(MAIL_TEXT)
    ((session, sender, raw),) = copies.queued
    assert session == Session("192.0.2.7", "mx.sender.example", is_extended=True)
    assert (sender, raw) == ("ann@sender.example", MAIL_TEXT)
    assert copies.held == 0


def test_two_replies_for_a_mail(copies: Copies) -> None:
    """The mail server waits at MAIL and at the end of the mail only, and sends no recipients."""
    server = MailServer(milter_factory(copies))
    assert server.negotiate()[4:] == b"O" + (6).to_bytes(4) + bytes(4) + int(WANTED).to_bytes(4)
    assert server.greet() == b""
    assert server.send_mail(MAIL_TEXT) == 2 * CONTINUE


def test_an_old_mail_server(copies: Copies) -> None:
    """A mail server of version 2 gets a reply to each command; only its spaces are normalized."""
    server = MailServer(milter_factory(copies), OLD, 2)
    assert server.negotiate()[5:9] == (2).to_bytes(4)
    assert server.greet() == 2 * CONTINUE
    replies = server.send_mail(MAIL_TEXT)
    assert replies == (len(replies) // 5) * CONTINUE
    ((_, _, raw),) = copies.queued
    assert raw == MAIL_TEXT.replace(b"From:Ann", b"From: Ann")


def test_many_mails_of_a_session(copies: Copies, server: MailServer) -> None:
    """Each mail of a connection has a copy of its own, and an aborted one has none."""
    server.send_mail(b"A: 1\r\n\r\none\r\n")
    server.say(MAIL, b"<x@y.example>\0")
    server.say(HEADER, b"A\0 lost\0")
    assert server.abort_mail() == b""
    server.send_mail(b"A: 2\r\n\r\ntwo\r\n", b"<>")
    assert [raw for _, _, raw in copies.queued] == [b"A: 1\r\n\r\none\r\n", b"A: 2\r\n\r\ntwo\r\n"]
    assert copies.queued[1][1] == ""


def test_a_connection_for_several_sessions(copies: Copies, server: MailServer) -> None:
    """After QUIT_NC, the connection serves the next client."""
    server.say(QUIT_BUT_KEEP)
    server.say(CONNECT, b"[198.51.100.9]\x004\x00\x19198.51.100.9\x00")
    server.send_mail(MAIL_TEXT)
    assert copies.queued[0][0].client_ip == "198.51.100.9"
    assert copies.queued[0][0].helo_name == ""
    assert server.say(QUIT) == b""
    assert server.is_closed


@rows(
    (b"a\x004\x00\x19192.0.2.1\x00", "192.0.2.1"),
    (b"a\x006\x00\x19IPv6:2001:db8::1\x00", "2001:db8::1"),
    (b"a\x006\x00\x19::ffff:192.0.2.1\x00", "192.0.2.1"),
    (b"localhost\x00L\x00\x00/run/socket\x00", ""),
    (b"unknown\x00U", ""),
)
def test_clients(data: bytes, address: str) -> None:
    """The client of a copy is the one of the mail server, if it has an IP address."""
    copies = Copies()
    server = connected(copies)
    server.say(CONNECT, data)
    server.send_mail(MAIL_TEXT)
    assert copies.queued[0][0].client_ip == address


def test_a_mail_that_is_not_scored(copies: Copies) -> None:
    """If a mail is not scored, the mail server is told at MAIL not to send it."""
    copies.is_wanted = False
    server = connected(copies)
    assert server.send_mail(MAIL_TEXT) == ACCEPT
    copies.is_wanted = True
    assert server.send_mail(MAIL_TEXT) == 2 * CONTINUE


def test_own_users(copies: Copies, server: MailServer) -> None:
    """Mail of an authenticated client is not copied, but the next mail is."""
    assert server.send_mail(MAIL_TEXT, auth_authen="ann") == ACCEPT
    assert (copies.authenticated, copies.queued) == (1, [])
    assert server.send_mail(MAIL_TEXT, auth_authen="") == 2 * CONTINUE
    assert len(copies.queued) == 1


def test_a_large_mail() -> None:
    """A mail that is too large goes on like any other, and its memory is released."""
    copies = Copies(most=100_000)
    server = connected(copies)
    assert server.send_mail(b"A: b\r\n\r\n" + b"x" * 300_000) == 2 * CONTINUE
    assert (copies.queued, copies.held) == ([], 0)
    server.send_mail(MAIL_TEXT)
    assert len(copies.queued) == 1


@rows(
    b"\0\0\0\0",
    (MAX_PACKET + 1).to_bytes(4),
    b"\xff\xff\xff\xff",
    b"\0\0\0\x01Z",
    b"GET / HTTP/1.1\r\n",
    b"\0\0\0\x01M",
    b"\0\0\0\x02O\0",
    b"\0\0\0\x0dO" + (1).to_bytes(4) + bytes(8),
)
def test_another_protocol(octets: bytes) -> None:
    """A peer that does not speak the protocol is disconnected."""
    server = MailServer(milter_factory(Copies()))
    server.protocol.dataReceived(octets)
    assert server.is_closed
    assert server.replies() == b""


def test_a_peer_that_does_not_wait_for_replies() -> None:
    """A peer that sends many commands with replies at once is disconnected after a few replies."""
    server = MailServer(milter_factory(Copies()))
    negotiation = b"\0\0\0\x0dO" + (6).to_bytes(4) + bytes(8)
    server.protocol.dataReceived(negotiation * 1_000)
    assert server.is_closed
    assert len(server.replies()) <= MAX_REPLIES * len(negotiation)


@rows((HEADER, b"no end"), (HEADER, b"a\0b"), (CONNECT, b""), (CONNECT, b"a\0"))
def test_broken_data(command: bytes, data: bytes) -> None:
    """Data without the form of its command ends the connection, and the copy is dropped."""
    copies = Copies()
    server = connected(copies)
    server.say(MAIL, b"<a@b.example>\0")
    server.say(BODY, b"x" * 10)
    server.say(command, data)
    assert server.is_closed
    server.protocol.connectionLost()
    assert (copies.held, copies.queued) == (0, [])


def test_commands_out_of_order(copies: Copies, server: MailServer) -> None:
    """Data without a MAIL command is ignored."""
    assert (
        server.say(BODY, b"x") + server.say(HEADER, b"a\0b\0") + server.say(UNKNOWN, b"x\0") == b""
    )
    assert server.say(END_OF_MAIL) == CONTINUE
    assert copies.queued == []


def test_a_lost_connection(copies: Copies, server: MailServer) -> None:
    """If the mail server disappears, the copy is dropped."""
    server.say(MAIL, b"<a@b.example>\0")
    server.say(BODY, b"x" * 10)
    server.protocol.connectionLost()
    assert (copies.held, copies.queued) == (0, [])
    assert server.protocol.factory.connection_count == 0


@rows(
    ("127.0.0.1", [], True),
    ("10.1.2.3", [], True),
    ("192.0.2.1", [], False),
    ("8.8.8.8", [], False),
    ("8.8.8.8", ["8.8.8.0/24"], True),
    ("127.0.0.1", ["8.8.8.0/24"], False),
)
def test_who_may_use_it(address: str, networks: list[str], *, is_served: bool) -> None:
    """Only this machine and its network may use the endpoint, or those in allow_from."""
    factory = milter_factory(Copies(), *map(ip_network, networks))
    server = MailServer(factory, address=address)
    assert server.is_closed is not is_served


def test_too_many_connections() -> None:
    """A connection beyond the maximum is closed, so that its mail server goes on without it."""
    factory = milter_factory(Copies(), most=2)
    servers = [MailServer(factory) for _ in range(3)]
    assert [server.is_closed for server in servers] == [False, False, True]
    for server in servers:
        server.protocol.connectionLost()
    assert not MailServer(factory).is_closed


def test_an_idle_connection() -> None:
    """A silent connection is closed after a quarter of an hour."""
    clock = Clock()
    factory = milter_factory(Copies(), clock=clock)
    server = MailServer(factory)
    clock.advance(IDLE_SECONDS - 1)
    server.negotiate()
    clock.advance(IDLE_SECONDS - 1)
    assert not server.is_closed
    clock.advance(2)
    assert server.is_closed


def test_a_daemon_that_stops(copies: Copies) -> None:
    """An idle connection is closed at once, and another one after its mail."""
    factory = milter_factory(copies)
    idle, busy = MailServer(factory), MailServer(factory)
    busy.negotiate()
    busy.say(MAIL, b"<a@b.example>\0")
    factory.drain(20.0)
    assert (idle.is_closed, busy.is_closed) == (True, False)
    assert busy.say(END_OF_MAIL, b"x") == CONTINUE
    assert busy.is_closed
    assert len(copies.queued) == 1
