"""Datagrams: questions out of random ports, and the replies that belong to them (RFC 5452).

A reply counts only if it comes from the address and port that was asked to the
port that asked, with the random id of the question and the question itself,
byte for byte. Everything else (forged, late, garbage) is dropped in silence.
"""

import socket
from typing import Protocol

from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IReactorTCP, IReactorTime, IReactorUDP
from twisted.internet.protocol import DatagramProtocol
from twisted.internet.udp import Port

from mailcheck.core.identifiers import RandomBytes
from mailcheck.dns.servers import Server
from mailcheck.dns.wire_format import is_reply_to, pack_query


class DnsReactor(IReactorTime, IReactorUDP, IReactorTCP):
    """Time, datagrams and streams; every reactor of Twisted has them."""


# All replies that a socket may be waiting for fit into its receive buffer,
# where Linux accounts 2,304 octets for a datagram of 1,232 (and has 208 KiB by
# default): none is lost, however late the reactor reads them.
MAX_WAITING = 64
RECEIVE_BUFFER = MAX_WAITING * 4096  # octets
MAX_DATAGRAM = 4096  # octets; some servers send more than was announced

OCTETS_A_TURN = 512
"""Octets, and the rest of a datagram, that a socket gives in a turn of the reactor. All that waits
there may be 64 truncated replies, each of which opens a stream: 15 ms in which nobody else is
served."""

# A port is used for so long, then a new random one: guessing starts again.
MAX_QUESTIONS = 512
MAX_AGE = 30.0  # seconds


class Asker(Protocol):
    """Who asked; is told at most one of these, once, and never before `ask` has returned."""

    def heard(self, message: bytes) -> None:
        """Take the reply to the question."""

    def unreachable(self) -> None:
        """Learn that there can't be one: the server's host refused, or there is no way to it."""


class Pending:
    """A question that waits for its reply."""

    __slots__ = ("_ident", "_waiting", "asker", "question")

    def __init__(
        self, waiting: dict[bytes, "Pending"], ident: bytes, question: bytes, asker: Asker
    ) -> None:
        self._waiting = waiting
        self._ident = ident
        self.question = question
        self.asker = asker

    def cancel(self) -> None:
        """Wait no longer: a reply that comes now is late."""
        self._waiting.pop(self._ident, None)


class ConnectedSocket(DatagramProtocol):
    """One random port, open to one server; holds up to `MAX_WAITING` questions."""

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

    @property
    def has_room(self) -> bool:
        """Tell whether another question may be sent now."""
        return len(self._waiting) < MAX_WAITING

    @property
    def is_idle(self) -> bool:
        """Tell whether nobody waits for a reply."""
        return not self._waiting

    @property
    def is_worn(self) -> bool:
        """Tell whether another port should take the next questions."""
        age = self._reactor.seconds() - self._opened_at
        return self._is_broken or self._asked >= MAX_QUESTIONS or not 0 <= age < MAX_AGE

    def ask(self, ident: bytes, question: bytes, has_edns: bool, asker: Asker) -> Pending:
        """Send a question under an id that is not in use here.

        :raises OSError: it can't be sent.
        """
        pending = Pending(self._waiting, ident, question, asker)
        self._waiting[ident] = pending
        self._asked += 1
        try:
            self.transport.write(pack_query(ident, question, has_edns))
        except OSError:
            pending.cancel()
            raise
        return pending

    def uses(self, ident: bytes) -> bool:
        """Tell whether a question with this id is waiting."""
        return ident in self._waiting

    def startProtocol(self) -> None:
        """Take replies from this one server only: the kernel drops those of others."""
        self.is_open = True
        self.transport.maxThroughput = OCTETS_A_TURN
        handle: socket.socket = self.transport.getHandle()
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        try:
            self.transport.connect(*self._server)
        except OSError:  # no way to the server: writing fails, too
            self._is_broken = True

    def datagramReceived(self, datagram: bytes, addr: tuple[str, int]) -> None:
        """Give a reply to the one who asked; drop what is none."""
        pending = self._waiting.get(datagram[:2])
        if pending is None or not is_reply_to(datagram, pending.question):
            return
        if addr != self._server:  # it came in before the socket was connected
            return
        pending.cancel()
        pending.asker.heard(datagram)

    def connectionRefused(self) -> None:
        """Learn that the host can't be reached or has no server there (ICMP)."""
        self._is_broken = True
        if self._waiting:
            self._reactor.callLater(0, self._fail_all)

    def stopProtocol(self) -> None:
        """Learn the same from a reactor that closes the port after such an error (epoll does)."""
        self.is_open = False
        self.connectionRefused()

    def _fail_all(self) -> None:
        while self._waiting:
            _, pending = self._waiting.popitem()
            pending.asker.unreachable()


class Exchange:
    """Asks any server; opens and closes the sockets for that."""

    def __init__(self, reactor: DnsReactor, random_bytes: RandomBytes) -> None:
        self._reactor = reactor
        self._random_bytes = random_bytes
        self._sockets: dict[Server, list[ConnectedSocket]] = {}
        self._closing: set[Deferred[None]] = set()

    def ask(self, server: Server, question: bytes, has_edns: bool, asker: Asker) -> Pending:
        """Send a packed question to a server.

        :raises OSError: it can't be sent: there is no way to the server, or no socket to be had.
        """
        chosen = self._choose_socket(server)
        ident = self._random_bytes(2)
        while chosen.uses(ident):
            ident = self._random_bytes(2)
        return chosen.ask(ident, question, has_edns, asker)

    def close(self) -> Deferred[None]:
        """Close all sockets; fires when they are closed. Nobody is told."""
        for sockets in self._sockets.values():
            for each in sockets:
                self._close_socket(each)
        self._sockets.clear()
        return DeferredList(list(self._closing)).addCallback(lambda _: None)

    def _choose_socket(self, server: Server) -> ConnectedSocket:
        sockets = self._sockets.setdefault(server, [])
        for each in reversed(sockets):
            if each.has_room and not each.is_worn:
                return each
        for each in [each for each in sockets if each.is_worn and each.is_idle]:
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
