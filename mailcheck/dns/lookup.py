"""One question under way: drives a `Resolution` over datagrams and streams, against the clock."""

from collections.abc import Callable
from dataclasses import dataclass

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint, connectProtocol
from twisted.internet.error import ConnectionAborted
from twisted.internet.interfaces import ITCPTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion
from mailcheck.core.identifiers import RandomBytes
from mailcheck.dns.alarms import Alarm, Alarms
from mailcheck.dns.exchange import Exchange, Pending
from mailcheck.dns.reactor import DnsReactor
from mailcheck.dns.resolution import Resolution, ResolverSettings, Step, Try
from mailcheck.dns.servers import Server, ServerRota
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


@dataclass(frozen=True, slots=True)
class Upstream:
    """What all lookups of a resolver share."""

    reactor: DnsReactor
    alarms: Alarms
    rota: ServerRota
    exchange: Exchange
    settings: ResolverSettings
    random_bytes: RandomBytes


class Lookup:
    """A `Resolution`, what it waits for, and the timer of that; ``answer`` fires at its end."""

    __slots__ = (
        "_deadline",
        "_discard",
        "_pending",
        "_resolution",
        "_timer",
        "_try",
        "_upstream",
        "answer",
        "is_over",
    )

    def __init__(
        self,
        upstream: Upstream,
        question: DnsQuestion,
        packed: bytes,
        discard: Callable[["Lookup"], None],
    ) -> None:
        """Take a question, also packed; ``discard`` is called when it is over."""
        now = upstream.reactor.seconds()
        settings = upstream.settings
        servers = upstream.rota.order(now)
        self._upstream = upstream
        self._resolution = Resolution(question, packed, servers, settings.try_timeouts)
        self._deadline = now + settings.deadline
        self._discard = discard
        self._pending: Pending | Deferred[bytes] | None = None
        self._timer: Alarm | None = None
        self.answer: Deferred[DnsAnswer] = Deferred(self._cancel)
        self.is_over = False

    @property
    def has_time(self) -> bool:
        """Tell whether it is not over, nor about to be."""
        return not self.is_over and self._time_left() > 0

    def wait(self) -> None:
        """Wait for the turn to begin, until the deadline."""
        self._arm(self._time_left(), self.give_up)

    def begin(self) -> None:
        """Make the first try."""
        self._do(self._resolution.start())

    def heard(self, message: bytes) -> None:
        """Take the reply to the question of this try."""
        self._upstream.rota.note_answer(self._try.server)
        self._do(self._resolution.heard(message))

    def unreachable(self) -> None:
        """Learn that this try can't have a reply."""
        now = self._upstream.reactor.seconds()
        self._upstream.rota.note_silence(self._try.server, now, is_unreachable=True)
        self._do(self._resolution.lost())

    def give_up(self) -> None:
        """End now, without an answer."""
        self._end(self._resolution.give_up())

    def _do(self, step: Step) -> None:
        if isinstance(step, DnsAnswer):
            self._end(step)
            return
        self._disarm()
        self._try = step
        self._arm(min(step.timeout, self._time_left()), self._time_out)
        if step.is_stream:
            self._ask_by_stream(step)
            return
        try:
            self._pending = self._upstream.exchange.ask(
                step.server, step.question, step.has_edns, self
            )
        except OSError:
            self._disarm()
            self._arm(0, self.unreachable)

    def _ask_by_stream(self, step: Try) -> None:
        upstream = self._upstream
        ident = upstream.random_bytes(2)
        reply = ask_by_stream(upstream.reactor, step.server, ident, step.question, step.has_edns)
        self._pending = reply
        reply.addCallbacks(self.heard, self._lose_stream, errbackArgs=(reply,))

    def _lose_stream(self, _: Failure, reply: Deferred[bytes]) -> None:
        if self._pending is reply:  # else it was cancelled
            self.unreachable()

    def _time_out(self) -> None:
        now = self._upstream.reactor.seconds()
        self._upstream.rota.note_silence(self._try.server, now, is_unreachable=False)
        if now < self._deadline:
            self._do(self._resolution.lost())
        else:
            self.give_up()

    def _time_left(self) -> float:
        return max(0.0, self._deadline - self._upstream.reactor.seconds())

    def _arm(self, delay: float, action: Callable[[], None]) -> None:
        self._timer = self._upstream.alarms.set(delay, action)

    def _disarm(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.cancel()

    def _cancel(self, _: object) -> None:
        self._stop()

    def _stop(self) -> None:
        self._disarm()
        self.is_over = True
        del self.answer  # else a cycle for the garbage collector, in each lookup
        self._discard(self)

    def _end(self, answer: DnsAnswer) -> None:
        waiting = self.answer
        self._stop()
        waiting.callback(answer)
