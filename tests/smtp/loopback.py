"""A client on a real socket, for tests that a fake transport cannot support."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import ClientFactory, Protocol, connectionDone
from twisted.internet.ssl import CertificateOptions
from twisted.python.failure import Failure

from mailcheck.smtp.protocol import MailFactory

PATIENCE = 60  # seconds to wait for an answer on a busy machine


class LoopbackClient(Protocol):
    """Collects the replies of the server; `until` waits for them."""

    def __init__(self, reactor: Any) -> None:
        self.said = b""
        self.is_over = False
        self._reactor = reactor
        self._waiting: list[tuple[bytes, Deferred[bytes]]] = []

    def dataReceived(self, data: bytes) -> None:
        """Store data and fire the waiting Deferred."""
        self.said += data
        self._look()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Fire the waiting Deferred."""
        self.is_over = True
        self._look()

    def _look(self) -> None:
        for entry in tuple(self._waiting):
            words, deferred = entry
            if words in self.said or self.is_over:
                self._waiting.remove(entry)
                deferred.callback(self._take())

    def _take(self) -> bytes:
        said, self.said = self.said, b""
        return said

    def until(self, words: bytes) -> Deferred[bytes]:
        """Return everything received once it contains the words, or the connection has ended."""
        deferred: Deferred[bytes] = Deferred()
        deferred.addTimeout(PATIENCE, self._reactor)
        self._waiting.append((words, deferred))
        self._look()
        return deferred

    def until_over(self) -> Deferred[bytes]:
        """Return everything received until the end of the connection."""
        return self.until(b"\0 never said")

    def say(self, data: bytes) -> None:
        """Send bytes."""
        transport: Any = self.transport
        transport.write(data)

    def start_tls(self) -> None:
        """Start TLS without verifying the certificate."""
        transport: Any = self.transport
        transport.startTLS(CertificateOptions())

    def pause(self) -> None:
        """Stop reading."""
        transport: Any = self.transport
        transport.pauseProducing()

    def resume(self) -> None:
        """Start reading again."""
        transport: Any = self.transport
        transport.resumeProducing()

    def leave(self) -> None:
        """Abort the connection."""
        transport: Any = self.transport
        transport.abortConnection()


@asynccontextmanager
async def served(factory: MailFactory, reactor: Any) -> AsyncIterator["Port"]:
    """Serve the factory on a free port, and close everything afterwards."""
    listening = reactor.listenTCP(0, factory, interface="127.0.0.1", backlog=100)
    port = Port(reactor, listening.getHost().port)
    try:
        yield port
    finally:
        await listening.stopListening()
        for client in port.clients:
            if not client.is_over:
                client.leave()
                await client.until_over()
        await factory.drain(PATIENCE)


class Port:
    """A port that clients connect to."""

    def __init__(self, reactor: Any, number: int) -> None:
        self.clients: list[LoopbackClient] = []
        self._reactor = reactor
        self.number = number

    async def connect(self) -> LoopbackClient:
        """Open a connection and wait for its greeting."""
        client = LoopbackClient(self._reactor)
        self.clients.append(client)
        factory = ClientFactory()
        factory.noisy = False
        factory.buildProtocol = lambda addr: client  # type: ignore[method-assign]
        self._reactor.connectTCP("127.0.0.1", self.number, factory)
        await client.until(b"\r\n")
        return client
