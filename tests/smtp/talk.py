"""A client without a network: sends bytes to a real factory that uses a fake clock."""

from typing import Any

from msgspec.structs import replace
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from mailcheck.core.memory.client_limits import AMPLE
from mailcheck.ops.journal import MailJournal, Pace
from mailcheck.smtp.protocol import MailFactory, MailProtocol
from mailcheck.smtp.settings import Limits, SmtpSettings
from mailcheck.smtp.transaction import MemoryBudget
from mailcheck.smtp.verbs import VERBS
from tests.fakes.mail_receiver import FakeMailReceiver

HOST_NAME = "mx.inbox.example"
MAIL = b"MAIL FROM:<s@client.example>\r\n"
RCPT = b"RCPT TO:<dev-a@inbox.example>\r\n"
PUBLIC_IP = "93.184.216.34"


class Talk:
    """One connection; `say` sends bytes and returns the replies."""

    def __init__(self, factory: MailFactory, client_ip: str) -> None:
        kind: Any = IPv6Address if ":" in client_ip else IPv4Address
        self.transport = StringTransport(peerAddress=kind("TCP", client_ip, 40000))
        self.protocol: MailProtocol = factory.buildProtocol(None)
        self.protocol.makeConnection(self.transport)

    def heard(self) -> bytes:
        """Return the output of the server since the last call."""
        said: bytes = self.transport.value()
        self.transport.clear()
        return said

    def say(self, *pieces: bytes) -> bytes:
        """Send each piece in a separate packet; return the replies."""
        for piece in pieces:
            if not self.is_closed:
                self.protocol.dataReceived(piece)
        return self.heard()

    def codes(self, *pieces: bytes) -> list[str]:
        """Send the pieces and return the code of each reply."""
        lines = self.say(*pieces).decode("ascii").split("\r\n")[:-1]
        return [line[:3] for line in lines if line[3:4] == " "]

    @property
    def is_closed(self) -> bool:
        """Whether the server has closed the connection."""
        return bool(self.transport.disconnecting or self.transport.disconnected)

    def leave(self) -> None:
        """Disconnect without QUIT."""
        self.protocol.connectionLost(Failure(ConnectionDone()))


class House:
    """A factory with its receiver and its clock, for one test."""

    def __init__(self, receiver: FakeMailReceiver | None = None, **settings: Any) -> None:
        self.clock = Clock()
        self.journal = MailJournal("mail", Pace())
        self.receiver = receiver or FakeMailReceiver()
        memory = MemoryBudget(settings.pop("memory", AMPLE.incoming))
        limits = Limits(**settings.pop("limits", {}))
        self.settings = replace(SmtpSettings(HOST_NAME), limits=limits, **settings)
        self.factory = MailFactory(
            VERBS, self.receiver, self.settings, self.clock, self.journal, memory
        )

    def connect(self, client_ip: str = PUBLIC_IP) -> Talk:
        """Open a connection without reading its greeting."""
        return Talk(self.factory, client_ip)

    def connected(self) -> Talk:
        """Open a connection and read its greeting."""
        talk = self.connect()
        talk.heard()
        return talk

    def greeted(self, client_ip: str = PUBLIC_IP) -> Talk:
        """Open a connection and send EHLO."""
        talk = self.connect(client_ip)
        talk.say(b"EHLO client.example\r\n")
        return talk

    def at_data(self, client_ip: str = PUBLIC_IP) -> Talk:
        """Open a connection and send all commands up to DATA."""
        talk = self.greeted(client_ip)
        talk.say(b"MAIL FROM:<sender@client.example>\r\n")
        talk.say(b"RCPT TO:<dev-a@inbox.example>\r\n")
        talk.say(b"DATA\r\n")
        return talk

    @property
    def messages(self) -> list[bytes]:
        """The bytes of all delivered mails."""
        return [mail.raw_message for mail in self.receiver.delivered]
