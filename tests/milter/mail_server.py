r"""A mail server that sends copies of its mail to a milter, in memory.

server = MailServer(factory)
server.send_mail(b"From: a@b.example\r\n\r\nHello\r\n")
"""

from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from mailcheck.core.memory.client_limits import ConnectionLimits
from mailcheck.core.messages import Session
from mailcheck.milter.connection import MilterFactory
from mailcheck.milter.packets import (
    ABORT,
    BODY,
    CONNECT,
    DATA,
    END_OF_HEADER,
    END_OF_MAIL,
    HEADER,
    HELO,
    MACROS,
    MAIL,
    NEGOTIATE,
    RECIPIENT,
    VERSION,
    WANTED,
    Negotiation,
    Packet,
    Steps,
    negotiate,
)
from mailcheck.operations.traffic.score_traffic import MailCopy

CLIENT = b"mx.sender.example\x004\x00\x19192.0.2.7\x00"


class Copies:
    """Stands for the scoring: keeps the copies, up to a number of octets."""

    def __init__(self, most: int = 1_000_000) -> None:
        self.most = most
        self.held = 0
        self.is_wanted = True
        self.queued: list[tuple[Session, str, bytes]] = []
        self.authenticated = 0

    def begin(self, session: Session, sender: str, *, is_authenticated: bool) -> MailCopy | None:
        """Return a new copy, unless the mail is authenticated or not wanted."""
        self.authenticated += is_authenticated
        traffic: Any = self
        wanted = self.is_wanted and not is_authenticated
        return MailCopy(traffic, session, sender) if wanted else None

    def reserve(self, copy: MailCopy, octets: int) -> bool:
        """Reserve memory."""
        if copy.octets > self.most:
            return False
        self.held += octets
        return True

    def release(self, copy: MailCopy) -> None:
        """Release memory."""
        self.held = 0

    def queue(self, copy: MailCopy) -> None:
        """Keep a complete copy."""
        self.queued.append((copy.session, copy.sender, copy.raw_message))
        copy.drop()


class Transport(StringTransport):
    """A connection that may be aborted."""

    def abortConnection(self) -> None:
        """Abort the connection."""
        super().abortConnection()
        self.disconnecting = True


def milter_factory(
    copies: Any, *allowed: Any, most: int = 100, clock: Clock | None = None
) -> MilterFactory:
    """Return the factory of an endpoint."""
    return MilterFactory(copies, allowed, ConnectionLimits(most, most), clock or Clock())


class MailServer:
    """A mail server with a connection to a milter."""

    def __init__(
        self,
        factory: MilterFactory,
        steps: Steps = WANTED,
        version: int = VERSION,
        address: str = "127.0.0.1",
    ) -> None:
        self.transport = Transport(peerAddress=IPv4Address("TCP", address, 40_000))
        self.protocol = factory.buildProtocol(None)
        self.protocol.makeConnection(self.transport)
        self.steps = steps
        self.sent: list[bytes] = []
        self.version = version

    @property
    def is_closed(self) -> bool:
        """Whether the milter has closed the connection."""
        return bool(self.transport.disconnecting)

    def say(self, command: bytes, data: bytes = b"") -> bytes:
        """Send a command; return the octets of the replies."""
        self.sent.append(Packet(command, data).encoded())
        self.protocol.dataReceived(self.sent[-1])
        return self.replies()

    def replies(self) -> bytes:
        """Return what the milter has sent since the last call."""
        said: bytes = self.transport.value()
        self.transport.clear()
        return said

    def negotiate(self) -> bytes:
        """Offer the steps; return the reply."""
        offer = negotiate(Negotiation(self.version, 0x1FF, self.steps)).data
        return self.say(NEGOTIATE, offer)

    def greet(self) -> bytes:
        """Send the beginning of an SMTP session; return the replies."""
        return self.say(CONNECT, CLIENT) + self.say(HELO, b"mx.sender.example\0")

    def send_mail(
        self, raw: bytes, sender: bytes = b"<ann@sender.example>", **macros: str
    ) -> bytes:
        """Send a mail as Postfix does; return the replies."""
        texts = b"".join(f"{{{name}}}\0{value}\0".encode() for name, value in macros.items())
        said = self.say(MACROS, MAIL + b"i\0A1B2\0" + texts)
        said += self.say(MAIL, sender + b"\0SIZE=9\0")
        if said.endswith(b"a"):
            return said
        if Steps.NO_RECIPIENTS not in self.steps:
            said += self.say(RECIPIENT, b"<bob@secret.example>\0")
        if Steps.NO_DATA not in self.steps:
            said += self.say(DATA)
        head, _, body = raw.partition(b"\r\n\r\n")
        for field in _fields(head):
            name, _, value = field.partition(b":")
            value = value.replace(b"\r\n", b"\n")
            if Steps.LEADING_SPACE not in self.steps:
                value = value.removeprefix(b" ")
            said += self.say(HEADER, name + b"\0" + value + b"\0")
        said += self.say(END_OF_HEADER)
        for start in range(0, len(body), 65_535):
            said += self.say(BODY, body[start : start + 65_535])
        return said + self.say(END_OF_MAIL)

    def abort_mail(self) -> bytes:
        """Abort a mail."""
        return self.say(ABORT)


def _fields(head: bytes) -> list[bytes]:
    fields: list[bytes] = []
    for line in head.split(b"\r\n"):
        if line[:1] in (b" ", b"\t") and fields:
            fields[-1] += b"\r\n" + line
        else:
            fields.append(line)
    return fields
