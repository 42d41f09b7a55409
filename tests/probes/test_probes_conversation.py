"""The SMTP dialogue with a mail host up to encryption, and the outcomes of its replies."""

from typing import Any

import pytest
from OpenSSL import SSL
from twisted.internet.error import ConnectionLost
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailcheck.checks.hosts.starttls import ProbeOutcome
from mailcheck.probes.mail_host_prober import (
    CLOSING_GRACE,
    ObservedTls,
    StarttlsConversation,
    make_observing_context,
)
from mailcheck.probes.trust import TrustRoots
from tests.probes.scripted_hosts import Transport, collect
from tests.table import rows

GREETING = b"220 mx.example ESMTP\r\n"
EXTENSIONS = b"250-mx.example\r\n250-SIZE 1000\r\n250-STARTTLS\r\n250 HELP\r\n"


class EncryptingTransport(Transport):
    """A transport that records that encryption began."""

    tls: Any = None

    def startTLS(self, tls: Any) -> None:
        """Record the start of encryption."""
        self.tls = tls


class Talk:
    """A dialogue with a host that the test scripts."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.tls = ObservedTls(make_observing_context(TrustRoots(())), "mx.example")
        self.conversation = StarttlsConversation(self.clock, "check.example", self.tls)
        self.outcomes = collect(self.conversation.outcome)
        self.transport = EncryptingTransport("192.0.2.1", 25)
        self.conversation.makeConnection(self.transport)

    def hear(self, data: bytes) -> bytes:
        """Send data from the host, and return the reply to it."""
        self.transport.clear()
        self.conversation.dataReceived(data)
        answer: bytes = self.transport.value()
        return answer

    def lose(self) -> None:
        """Close the connection from the host's side."""
        self.conversation.connectionLost(Failure(ConnectionLost()))

    @property
    def outcome(self) -> ProbeOutcome | None:
        """The outcome, or ``None`` while it is pending."""
        return self.outcomes[0] if self.outcomes else None


@pytest.fixture
def talk() -> Talk:
    """A dialogue that has just begun."""
    return Talk()


def test_encryption_begins_and_nothing_else(talk: Talk) -> None:
    """Only EHLO and STARTTLS are sent in plaintext; then the handshake, then QUIT."""
    assert talk.transport.value() == b""
    assert talk.hear(GREETING) == b"EHLO check.example\r\n"
    assert talk.hear(EXTENSIONS) == b"STARTTLS\r\n"
    assert talk.hear(b"220 go ahead\r\n") == b""
    assert talk.transport.tls is talk.tls
    assert talk.outcome is None
    talk.conversation.handshakeCompleted()
    assert talk.outcome is ProbeOutcome.ENCRYPTED
    assert talk.transport.value() == b"QUIT\r\n"
    assert talk.transport.disconnecting
    talk.lose()
    assert talk.clock.getDelayedCalls() == []


def test_the_handshake_names_the_host(talk: Talk) -> None:
    """A server with many certificates gets the host name (SNI)."""
    protocol: Any = None
    connection = talk.tls.clientConnectionForTLS(protocol)
    connection.set_connect_state()
    with pytest.raises(SSL.WantReadError):
        connection.do_handshake()
    assert b"mx.example" in connection.bio_read(65_536)


def test_replies_may_come_in_any_pieces() -> None:
    """Replies may arrive in any pieces and without CR."""
    for line_end in (b"\r\n", b"\n"):
        talk = Talk()
        said = b""
        for reply in (b"220-mx.example\r\n" + GREETING, EXTENSIONS.replace(b"START", b"start")):
            for octet in reply.replace(b"\r\n", line_end):
                said += talk.hear(bytes((octet,)))
        assert said == b"EHLO check.example\r\nSTARTTLS\r\n"


@rows(
    ([b"554 5.7.1 go away\r\n"], ProbeOutcome.REJECTED),
    ([b"421 too busy\r\n"], ProbeOutcome.REJECTED),
    ([b"220-hold the line\r\n450 no\r\n"], ProbeOutcome.REJECTED),
    ([b"250 hello\r\n"], ProbeOutcome.NO_SMTP),
    ([b"SSH-2.0-OpenSSH_9.2\r\n"], ProbeOutcome.NO_SMTP),
    ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], ProbeOutcome.NO_SMTP),
    ([b"\r\n"], ProbeOutcome.NO_SMTP),
    ([b"220\x00 mx\r220 x\r\n"], ProbeOutcome.NO_SMTP),
    ([b"199 mx\r\n"], ProbeOutcome.NO_SMTP),
    ([b"2200 mx\r\n"], ProbeOutcome.NO_SMTP),
    ([b"\xff\xfe\xfd\n"], ProbeOutcome.NO_SMTP),
    ([GREETING, b"250 mx.example\r\n"], ProbeOutcome.NOT_OFFERED),
    ([GREETING, b"250 STARTTLS\r\n"], ProbeOutcome.NOT_OFFERED),
    ([GREETING, b"250-mx\r\n250-XSTARTTLS\r\n250 STARTTLS2\r\n"], ProbeOutcome.NOT_OFFERED),
    ([GREETING, b"502 what?\r\n"], ProbeOutcome.NOT_OFFERED),
    ([GREETING, b"500 what?\r\n"], ProbeOutcome.NOT_OFFERED),
    ([GREETING, b"550 bad name\r\n"], ProbeOutcome.REJECTED),
    ([GREETING, b"421 later\r\n"], ProbeOutcome.REJECTED),
    ([GREETING, b"354 go on\r\n"], ProbeOutcome.NO_SMTP),
    ([GREETING, EXTENSIONS, b"454 TLS not available\r\n"], ProbeOutcome.HANDSHAKE_FAILED),
    ([GREETING, EXTENSIONS, b"502 what?\r\n"], ProbeOutcome.HANDSHAKE_FAILED),
    ([GREETING, EXTENSIONS, b"421 shutting down\r\n"], ProbeOutcome.REJECTED),
    ([GREETING, EXTENSIONS, b"250 ok\r\n"], ProbeOutcome.NO_SMTP),
)
def test_what_a_host_says_is_a_clear_outcome(replies: list[bytes], outcome: ProbeOutcome) -> None:
    """Every unexpected reply ends the probe with its outcome."""
    talk = Talk()
    for reply in replies:
        assert talk.outcome is None
        talk.hear(reply)
    assert talk.outcome is outcome
    assert talk.transport.disconnecting
    assert talk.transport.aborted == (outcome is ProbeOutcome.NO_SMTP)
    assert b"MAIL" not in talk.transport.value()
    talk.lose()
    assert len(talk.outcomes) == 1
    assert talk.clock.getDelayedCalls() == []


@pytest.mark.parametrize("behind", [b"250 injected\r\n", b"x", b"\x16\x03\x01"])
@pytest.mark.parametrize("replies", [[GREETING], [GREETING, EXTENSIONS]])
def test_what_is_said_out_of_turn_ends_it(talk: Talk, replies: list[bytes], behind: bytes) -> None:
    """Data after a reply is never used as the answer to the next command."""
    for reply in replies:
        talk.hear(reply)
    talk.hear((b"220 ready\r\n" if len(replies) == 2 else EXTENSIONS) + behind)
    assert talk.outcome is ProbeOutcome.NO_SMTP
    assert talk.transport.aborted
    assert talk.transport.tls is None


@rows(
    ([], ProbeOutcome.NO_SMTP),
    ([b"220 mx"], ProbeOutcome.NO_SMTP),
    ([GREETING], ProbeOutcome.NO_SMTP),
    ([GREETING, EXTENSIONS], ProbeOutcome.NO_SMTP),
    ([GREETING, EXTENSIONS, b"220 go\r\n"], ProbeOutcome.HANDSHAKE_FAILED),
)
def test_a_host_that_hangs_up(replies: list[bytes], outcome: ProbeOutcome) -> None:
    """A connection that ends before encryption is undetermined; during the handshake it fails."""
    talk = Talk()
    for reply in replies:
        talk.hear(reply)
    talk.lose()
    assert talk.outcomes == [outcome]


def test_a_host_that_does_not_hang_up(talk: Talk) -> None:
    """A host that ignores QUIT is disconnected."""
    talk.hear(GREETING)
    talk.hear(b"250 mx.example\r\n")
    assert not talk.transport.aborted
    talk.hear(b"221 never mind\r\n" * 10)
    talk.clock.advance(CLOSING_GRACE)
    assert talk.transport.aborted
    assert talk.outcomes == [ProbeOutcome.NOT_OFFERED]


def test_giving_up_hangs_up(talk: Talk) -> None:
    """Cancelling the outcome aborts the connection."""
    talk.hear(GREETING)
    talk.conversation.outcome.cancel()
    assert talk.transport.aborted
    talk.hear(EXTENSIONS)
    talk.lose()
    assert talk.transport.value() == b""
    assert len(talk.outcomes) == 1


@rows(b"220-more\r\n", b"220 no end", b"\0")
def test_a_host_that_talks_for_ever(talk: Talk, flood: bytes) -> None:
    """Data after 64 KiB is not read."""
    talk.hear(b"220-")
    for _ in range(70_000 // len(flood)):
        talk.hear(flood)
        if talk.outcome is not None:
            break
    assert talk.outcome is ProbeOutcome.NO_SMTP
    assert talk.transport.aborted
    assert len(talk.conversation._unread) <= 65_536
