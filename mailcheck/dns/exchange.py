"""DNS over UDP: sends questions from random ports and matches the replies (RFC 5452).

A reply must come from the queried address and port, to the port that sent the question. It must
have the random id of the question and repeat the question byte for byte. All other datagrams
(forged, late, malformed) are ignored.
"""

import socket
from typing import Protocol

from msgspec import Struct
from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IReactorTCP, IReactorTime, IReactorUDP
from twisted.internet.protocol import DatagramProtocol
from twisted.internet.udp import Port

from mailcheck.core.identifiers import RandomBytes
from mailcheck.dns.servers import Server
from mailcheck.dns.wire_format import is_reply_to, pack_query


class DnsReactor(IReactorTime, IReactorUDP, IReactorTCP):
    """Time, UDP and TCP; every reactor of Twisted provides them."""


# All replies that a socket waits for fit into its receive buffer, so that none is lost however late
# the reactor reads them. Linux accounts 2,304 octets for a datagram of 1,232, and its default
# buffer has 208 KiB.
MAX_WAITING = 64
RECEIVE_BUFFER = MAX_WAITING * 4096  # octets
MAX_DATAGRAM = 4096  # octets; some servers send more than was announced

OCTETS_PER_TURN = 512
"""Octets that are read from a socket in one iteration of the reactor, rounded up to a datagram. Up
to 64 truncated replies may wait there. Opening a TCP connection for each would block all other work
for 15 ms."""

# After this many questions or seconds a new random port is used, so that guessing starts again.
MAX_QUESTIONS = 512
MAX_AGE = 30.0  # seconds


class ReplyHandler(Protocol):
    """Receives the outcome of a question: at most one call, never before `ask` has returned."""

    def reply_received(self, message: bytes) -> None:
        """Handle the reply to the question."""

    def server_unreachable(self) -> None:
        """Handle that no reply can come: the host refused, or there is no route to it."""


class Pending(Struct, frozen=True, eq=False):
    """A question that waits for its reply."""

    waiting: dict[bytes, "Pending"]
    ident: bytes
    question: bytes
    handler: ReplyHandler

    def cancel(self) -> None:
        """Stop waiting; a later reply is ignored."""
        self.waiting.pop(self.ident, None)


class ConnectedSocket(DatagramProtocol):
    """One random port, connected to one server, with up to `MAX_WAITING` pending questions."""

    noisy = False
    transport: Port

    def __init__(self, reactor: DnsReactor, server: Server) -> None:
        self._reactor = reactor
        self._server = server
        self._asked = 0
        self._opened_at = reactor.seconds()
        self._waiting: dict[bytes, Pending] = {}
        self._is_broken = False
        self.is_open = False
        self.is_failing = False
        """Whether an error is about to be reported to the pending handlers."""

    @property
    def has_room(self) -> bool:
        """Whether another question may be sent now."""
        return len(self._waiting) < MAX_WAITING

    @property
    def is_idle(self) -> bool:
        """Whether no question is pending."""
        return not self._waiting

    @property
    def is_expired(self) -> bool:
        """Whether new questions should use another port."""
        age = self._reactor.seconds() - self._opened_at
        return self._is_broken or self._asked >= MAX_QUESTIONS or not 0 <= age < MAX_AGE

    def ask(self, ident: bytes, question: bytes, has_edns: bool, handler: ReplyHandler) -> Pending:
        """Send a question with an id that is not in use on this socket.

        :raises OSError: the question cannot be sent.
        """
        pending = Pending(self._waiting, ident, question, handler)
        self._waiting[ident] = pending
        if self.is_failing:
            return pending
        self._asked += 1
        try:
            self.transport.write(pack_query(ident, question, has_edns))
        except OSError:
            pending.cancel()
            raise
        return pending

    def uses(self, ident: bytes) -> bool:
        """Return whether a question with this id is pending."""
        return ident in self._waiting

    def startProtocol(self) -> None:
        """Connect to the server, so that the kernel drops datagrams of other hosts."""
        self.is_open = True
        self.transport.maxThroughput = OCTETS_PER_TURN
        handle: socket.socket = self.transport.getHandle()
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        try:
            self.transport.connect(*self._server)
        except OSError:  # no route to the server: sending fails, too
            self._is_broken = True

    def datagramReceived(self, datagram: bytes, addr: tuple[str, int]) -> None:
        """Pass a reply to its handler; ignore all other datagrams."""
        pending = self._waiting.get(datagram[:2])
        if pending is None or not is_reply_to(datagram, pending.question):
            return
        if addr != self._server:  # received before the socket was connected
            return
        pending.cancel()
        pending.handler.reply_received(datagram)

    def connectionRefused(self) -> None:
        """Handle an ICMP error: the host is unreachable, or no server listens there."""
        self._is_broken = True
        if self._waiting and not self.is_failing:
            self.is_failing = True
            self._reactor.callLater(0, self._fail_all)

    def stopProtocol(self) -> None:
        """Do the same for reactors that close the port after such an error (epoll)."""
        self.is_open = False
        self.connectionRefused()

    def _fail_all(self) -> None:
        self.is_failing = False
        while self._waiting:
            _, pending = self._waiting.popitem()
            pending.handler.server_unreachable()


class Exchange:
    """Sends questions to any server, and opens and closes the sockets for them."""

    def __init__(self, reactor: DnsReactor, random_bytes: RandomBytes) -> None:
        self._reactor = reactor
        self._random_bytes = random_bytes
        self._sockets: dict[Server, list[ConnectedSocket]] = {}
        self._closing: set[Deferred[None]] = set()

    def ask(
        self, server: Server, question: bytes, has_edns: bool, handler: ReplyHandler
    ) -> Pending:
        """Send a packed question to a server.

        :raises OSError: it cannot be sent: there is no route to the server, or no free socket.
        """
        chosen = self._choose_socket(server)
        ident = self._random_bytes(2)
        while chosen.uses(ident):
            ident = self._random_bytes(2)
        return chosen.ask(ident, question, has_edns, handler)

    def close(self) -> Deferred[None]:
        """Close all sockets without calling handlers; fires when they are closed."""
        for sockets in self._sockets.values():
            for each in sockets:
                self._close_socket(each)
        self._sockets.clear()
        return DeferredList(list(self._closing)).addCallback(lambda _: None)

    def _choose_socket(self, server: Server) -> ConnectedSocket:
        sockets = self._sockets.setdefault(server, [])
        for each in reversed(sockets):
            # The server has just refused: further questions of this turn would open a socket each.
            if each.is_failing or (each.has_room and not each.is_expired):
                return each
        for each in [each for each in sockets if each.is_expired and each.is_idle]:
            sockets.remove(each)
            self._close_socket(each)
        opened = ConnectedSocket(self._reactor, server)
        interface = "::" if server.is_ipv6 else ""
        try:
            self._reactor.listenUDP(0, opened, interface, MAX_DATAGRAM)  # the kernel's random port
        except CannotListenError as failure:
            raise failure.socketError from failure
        sockets.append(opened)
        return opened

    def _close_socket(self, each: ConnectedSocket) -> None:
        if not each.is_open:
            return
        closed = maybeDeferred(each.transport.stopListening)
        self._closing.add(closed)
        closed.addBoth(lambda _: self._closing.discard(closed))
