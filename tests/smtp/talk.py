"""A client without a network: real bytes into the real factory, under a clock that stands still."""

from typing import Any

from msgspec.structs import replace
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from mailcheck.ops.journal import MailJournal, Pace
from mailcheck.smtp.protocol import MailFactory, MailProtocol
from mailcheck.smtp.settings import Limits, SmtpSettings
from mailcheck.smtp.verbs import VERBS
from tests.fakes.mail_receiver import FakeMailReceiver

HOST_NAME = "mx.inbox.example"
PUBLIC_IP = "93.184.216.34"


class Talk:
    """One connection; `say` sends bytes and gives what came back meanwhile."""

    def __init__(self, factory: MailFactory, client_ip: str) -> None:
        kind: Any = IPv6Address if ":" in client_ip else IPv4Address
        self.transport = StringTransport(peerAddress=kind("TCP", client_ip, 40000))
        self.protocol: MailProtocol = factory.buildProtocol(None)
        self.protocol.makeConnection(self.transport)

    def heard(self) -> bytes:
        """Give what the server has said since the last time."""
        said: bytes = self.transport.value()
        self.transport.clear()
        return said

    def say(self, *pieces: bytes) -> bytes:
        """Send the pieces, each in a packet of its own."""
        for piece in pieces:
            if not self.is_closed:
                self.protocol.dataReceived(piece)
        return self.heard()

    def codes(self, *pieces: bytes) -> list[str]:
        """Send the pieces and give the code of every reply, one for a reply of many lines."""
        lines = self.say(*pieces).decode("ascii").split("\r\n")[:-1]
        return [line[:3] for line in lines if line[3:4] == " "]

    @property
    def is_closed(self) -> bool:
        """Tell whether the server has hung up."""
        return bool(self.transport.disconnecting or self.transport.disconnected)

    def leave(self) -> None:
        """Go away without a word."""
        self.protocol.connectionLost(Failure(ConnectionDone()))


class House:
    """A factory, the receiver behind it and the clock, for one test."""

    def __init__(self, receiver: FakeMailReceiver | None = None, **settings: Any) -> None:
        self.clock = Clock()
        self.journal = MailJournal("mail", Pace())
        self.receiver = receiver or FakeMailReceiver()
        limits = Limits(**settings.pop("limits", {}))
        self.settings = replace(SmtpSettings(HOST_NAME), limits=limits, **settings)
        self.factory = MailFactory(VERBS, self.receiver, self.settings, self.clock, self.journal)

    def connect(self, client_ip: str = PUBLIC_IP) -> Talk:
        """Open a connection; the greeting is there to be heard."""
        return Talk(self.factory, client_ip)

    def greeted(self, client_ip: str = PUBLIC_IP) -> Talk:
        """Open a connection and say EHLO."""
        talk = self.connect(client_ip)
        talk.say(b"EHLO client.example\r\n")
        return talk

    def at_data(self, client_ip: str = PUBLIC_IP) -> Talk:
        """Open a connection and go on to where the message is expected."""
        talk = self.greeted(client_ip)
        talk.say(b"MAIL FROM:<sender@client.example>\r\n")
        talk.say(b"RCPT TO:<dev-a@inbox.example>\r\n")
        talk.say(b"DATA\r\n")
        return talk

    @property
    def messages(self) -> list[bytes]:
        """The bytes of all delivered mails."""
        return [mail.raw_message for mail in self.receiver.delivered]
