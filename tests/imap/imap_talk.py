"""An IMAP client in memory, and the connection of an application that it talks to."""

import re
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from mailcheck.assembly.mail_programs import imap_factory
from mailcheck.connections.policies import TlsPolicy, offer_no_tls
from mailcheck.imap.connection import ImapFactory
from tests.house import House

NEAR, FAR = "127.0.0.1", "203.0.113.9"


def make_factory(house: House, tls_for: TlsPolicy = offer_no_tls) -> ImapFactory:
    """Return the factory of the connections of an application."""
    return imap_factory(house.assembly, tls_for, is_tls=False)


class Talk:
    """A conversation. A reply to a command is everything that was sent since the command.

    ``number`` is that of the last tag.
    """

    def __init__(
        self,
        house: House,
        client_ip: str = NEAR,
        factory: ImapFactory | None = None,
        transport: type[StringTransport] = StringTransport,
    ) -> None:
        self.transport = transport(peerAddress=IPv4Address("TCP", client_ip, 40_000))
        self.protocol: Any = (factory or make_factory(house)).buildProtocol(None)
        self.protocol.makeConnection(self.transport)
        self.greeting = self.take()
        self.number = 0

    def take(self) -> bytes:
        """Return what was sent since the last call."""
        sent: bytes = self.transport.value()
        self.transport.clear()
        return sent

    def send(self, *pieces: bytes) -> bytes:
        """Send bytes in packets, and return the replies."""
        for piece in pieces:
            self.protocol.dataReceived(piece)
        return self.take()

    def do(self, command: bytes) -> bytes:
        """Send a command with a new tag; return the responses, with the tag as ``x``."""
        self.number += 1
        tag = b"t%d" % self.number
        sent = self.send(tag + b" " + command + b"\r\n")
        return re.sub(rb"(?m)^%s " % tag, b"x ", sent)

    def log_in(self, secret: str) -> bytes:
        """Log in with an API key."""
        return self.do(b"LOGIN any " + secret.encode())

    def lose(self) -> None:
        """Lose the connection."""
        self.protocol.connectionLost(Failure(ConnectionDone()))

    @property
    def is_closing(self) -> bool:
        """Whether the server has closed the connection."""
        return bool(self.transport.disconnecting or self.transport.disconnected)


def opened(house: House, *mails: bytes, mailbox: bytes = b"INBOX") -> Talk:
    """Receive mails, log in and select a mailbox."""
    for raw in mails:
        house.receive(raw=raw)
    talk = Talk(house)
    assert b"x OK" in talk.log_in(house.key)
    assert b"x OK" in talk.do(b"SELECT " + mailbox)
    return talk
