"""A POP3 client in memory, and the connection of an application that it talks to."""

from base64 import b64encode
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.testing import StringTransport

from mailcheck.assembly.mail_programs import pop3_factory
from mailcheck.connections.policies import TlsPolicy, offer_no_tls
from tests.house import House

NEAR, FAR = "127.0.0.1", "203.0.113.9"


class FullTransport(StringTransport):
    """A transport whose buffer is always full, since the client reads nothing."""

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Pause the producer at once."""
        super().registerProducer(producer, streaming)
        producer.pauseProducing()


class Talk:
    """A conversation. A reply to a command is everything that was sent since the command."""

    def __init__(
        self,
        house: House,
        client_ip: str = NEAR,
        tls_for: TlsPolicy = offer_no_tls,
        transport: type[StringTransport] = StringTransport,
    ) -> None:
        self.factory = pop3_factory(house.assembly, tls_for, is_tls=False)
        self.transport = transport(peerAddress=IPv4Address("TCP", client_ip, 40_000))
        self.protocol: Any = self.factory.buildProtocol(None)
        self.protocol.makeConnection(self.transport)
        self.greeting = self.take()

    def take(self) -> bytes:
        """Return what was sent since the last call."""
        sent: bytes = self.transport.value()
        self.transport.clear()
        return sent

    def send(self, data: bytes) -> bytes:
        """Send bytes, and return the replies."""
        self.protocol.dataReceived(data)
        return self.take()

    def say(self, *lines: bytes) -> bytes:
        """Send commands at once, and return the replies."""
        return self.send(b"".join(line + b"\r\n" for line in lines))

    def log_in(self, secret: str) -> bytes:
        """Log in with SASL PLAIN."""
        return self.say(b"AUTH PLAIN " + b64encode(f"\0any\0{secret}".encode()))

    @property
    def is_closing(self) -> bool:
        """Whether the server has closed the connection."""
        return bool(self.transport.disconnecting)
