"""One question over TCP, for replies that are too large for a datagram (RFC 7766)."""

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint, connectProtocol
from twisted.internet.error import ConnectionAborted
from twisted.internet.interfaces import ITCPTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from mailcheck.dns.reactor import DnsReactor
from mailcheck.dns.servers import Server
from mailcheck.dns.wire_format import is_reply_to, pack_query

_PREFIX = 2  # octets in front of each message that tell its length, RFC 1035 4.2.2


def ask_by_stream(
    reactor: DnsReactor, server: Server, ident: bytes, question: bytes, has_edns: bool
) -> Deferred[bytes]:
    """Connect, send a packed question, give the reply to it and hang up.

    Cancelling hangs up; there is no other end to a server that stalls. Fails
    when there is no connection, or it ends without the reply.
    """
    endpoint_class = TCP6ClientEndpoint if server.is_ipv6 else TCP4ClientEndpoint
    endpoint = endpoint_class(reactor, server.host, server.port)
    protocol = StreamProtocol(ident, question, has_edns)
    connected: Deferred[StreamProtocol] = connectProtocol(endpoint, protocol)
    return connected.addCallback(lambda _: protocol.reply)


class StreamProtocol(Protocol):
    """Sends one query; ``reply`` fires with the whole message that answers it."""

    transport: ITCPTransport

    def __init__(self, ident: bytes, question: bytes, has_edns: bool) -> None:
        self._ident = ident
        self._question = question
        self._query = pack_query(ident, question, has_edns)
        self._received = bytearray()
        self._is_over = False
        self.reply: Deferred[bytes] = Deferred(lambda _: self._abort())

    def connectionMade(self) -> None:
        """Send the query."""
        self.transport.write(len(self._query).to_bytes(_PREFIX, "big") + self._query)

    def dataReceived(self, data: bytes) -> None:
        """Take the first whole message; if it is not the reply, the stream is of no use."""
        self._received += data
        end = _PREFIX + int.from_bytes(self._received[:_PREFIX], "big")
        if self._is_over or len(self._received) < max(end, _PREFIX):
            return
        message = bytes(self._received[_PREFIX:end])
        if message.startswith(self._ident) and is_reply_to(message, self._question):
            self._is_over = True
            self.transport.loseConnection()
            self.reply.callback(message)
        else:
            self._abort()
            self.reply.errback(ConnectionAborted("not a reply to the question"))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Fail when no reply came."""
        if not self._is_over:
            self._is_over = True
            self.reply.errback(reason)

    def _abort(self) -> None:
        self._is_over = True
        self.transport.abortConnection()
