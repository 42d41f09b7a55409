"""The stub resolver: lookups, their queue, DNS over TCP, and the liveness of the servers."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.error import ConnectionAborted
from twisted.internet.interfaces import IDelayedCall, IReactorTime, ITCPTransport
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.core.identifiers import RandomBytes
from mailcheck.dns.exchange import DnsReactor, Exchange, Pending
from mailcheck.dns.resolution import Attempt, Resolution, ResolverSettings, Step
from mailcheck.dns.servers import Server, ServerRotation
from mailcheck.dns.wire_format import (
    MAX_OCTETS,
    ImpossibleName,
    is_cheap_to_parse,
    is_reply_to,
    pack_query,
    pack_question,
)
from mailcheck.operations.concurrency import PacedCall, PacedQueue, stop_timer

ROOT = pack_question(DnsQuestion("", "NS"))
"""A question that a working resolver always answers, also when other name servers are dead."""

PROBE_COUNT = 3
PROBE_INTERVAL = 0.4
"""Number of probes without a reply until the servers count as dead, and seconds between them."""

DEAD_PROBE_INTERVAL = 1.0
"""Seconds between two probes of dead servers."""


class Liveness:
    """Detects that no server answers, and when one does again.

    A lookup without an answer proves little, since the name servers of that name may be dead. The
    servers are therefore probed with a question that each can answer at once. If none of them sends
    any reply during the probes, they count as dead until one replies.

    :param on_death: called when the servers count as dead.
    """

    def __init__(
        self,
        clock: IReactorTime,
        exchange: Exchange,
        servers: Sequence[Server],
        on_death: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._exchange = exchange
        self._servers = tuple(servers)
        self._on_death = on_death
        self._timer: IDelayedCall | None = None
        self._asked: deque[Pending] = deque()
        self._sent = 0
        self.is_dead = False

    def note_failure(self) -> None:
        """Record a question without an answer, and start the probes."""
        if self._timer is None:
            self._ask()

    def note_answer(self) -> None:
        """Record a reply of any kind."""
        if self._timer is not None:
            self.stop()

    def reply_received(self, message: bytes) -> None:
        """Handle the reply to a probe."""
        self.stop()

    def server_unreachable(self) -> None:
        """Handle that a server cannot be reached now; continue the probes."""

    def stop(self) -> None:
        """Stop the probes; the servers count as alive."""
        stop_timer(self._timer)
        self._timer = None
        while self._asked:
            self._asked.pop().cancel()
        self._sent = 0
        self.is_dead = False

    def _ask(self) -> None:
        if self._sent >= PROBE_COUNT and not self.is_dead:
            self.is_dead = True
            self._on_death()
        while len(self._asked) > (PROBE_COUNT - 1) * len(self._servers):
            self._asked.popleft().cancel()
        self._sent += 1
        interval = DEAD_PROBE_INTERVAL if self.is_dead else PROBE_INTERVAL
        self._timer = self._clock.callLater(interval, self._ask)
        for server in self._servers:
            try:
                self._asked.append(self._exchange.ask(server, ROOT, True, self))
            except OSError:
                continue  # no route to this server now


_PREFIX = 2  # octets before each message that contain its length, RFC 1035 4.2.2


def query_over_tcp(
    reactor: DnsReactor, server: Server, ident: bytes, question: bytes, has_edns: bool
) -> Deferred[bytes]:
    """Connect, send a packed question, return the reply and disconnect.

    Cancelling disconnects, which is the only way to end a query to a server that stalls. Fails if
    the connection fails or ends without a reply.
    """
    endpoint_class = TCP6ClientEndpoint if server.is_ipv6 else TCP4ClientEndpoint
    endpoint = endpoint_class(reactor, server.host, server.port)
    protocol = TcpQuery(ident, question, has_edns)
    factory = Factory.forProtocol(lambda: protocol)
    factory.noisy = False
    connected: Deferred[Any] = endpoint.connect(factory)
    return connected.addCallback(lambda _: protocol.reply)


class ExcessiveReply(Exception):
    """The server announces a message larger than the limit."""


class TcpQuery(Protocol):
    """Sends one query over TCP; ``reply`` fires with the message that answers it."""

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
        """Read the first message; if it is not the reply, the connection is useless."""
        self._received += data
        end = _PREFIX + int.from_bytes(self._received[:_PREFIX], "big")
        if end > _PREFIX + MAX_OCTETS and not self._is_over and len(self._received) >= _PREFIX:
            self._abort()
            self.reply.errback(ExcessiveReply())
            return
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
        """Fail if no reply has arrived."""
        if not self._is_over:
            self._is_over = True
            self.reply.errback(reason)

    def _abort(self) -> None:
        self._is_over = True
        self.transport.abortConnection()


class Lookup:
    """A `Resolution`, its pending query and its timer; ``answer`` fires at the end."""

    __slots__ = (
        "_attempt",
        "_deadline",
        "_pending",
        "_resolution",
        "_resolver",
        "_timer",
        "answer",
        "is_over",
    )

    def __init__(
        self,
        resolver: "StubResolver",
        question: DnsQuestion,
        packed: bytes,
    ) -> None:
        """Store a question, also in packed form."""
        now = resolver.reactor.seconds()
        settings = resolver.settings
        servers = resolver.rotation.order(now)
        self._resolver = resolver
        self._resolution = Resolution(question, packed, servers, settings.try_timeouts)
        self._deadline = now + settings.deadline
        self._pending: Pending | Deferred[bytes] | PacedCall | None = None
        self._timer: IDelayedCall | None = None
        self.answer: Deferred[DnsAnswer] = Deferred(self._cancel)
        self.is_over = False

    @property
    def has_time(self) -> bool:
        """Whether the lookup is not over and its deadline has not passed."""
        return not self.is_over and self._time_left() > 0

    def wait(self) -> None:
        """Wait in the queue until the deadline."""
        self._arm(self._time_left(), self.give_up)

    def begin(self) -> None:
        """Start the first attempt."""
        self._do(self._resolution.start())

    def reply_received(self, message: bytes) -> None:
        """Handle the reply to the current attempt."""
        self._resolver.note_answer(self._attempt.server)
        if is_cheap_to_parse(message, self._attempt.question):
            self._do(self._resolution.reply_received(message))
            return
        self._disarm()
        self.wait()
        self._pending = self._resolver.turns.call(
            lambda: self._do(self._resolution.reply_received(message))
        )

    def server_unreachable(self) -> None:
        """Handle that the current attempt cannot have a reply."""
        self._resolver.note_failure(self._attempt.server, is_unreachable=True)
        self._do(self._resolution.attempt_failed())

    def give_up(self) -> None:
        """End now without an answer."""
        self._end(self._resolution.give_up())

    def _do(self, step: Step) -> None:
        if isinstance(step, DnsAnswer):
            self._end(step)
            return
        self._disarm()
        self._attempt = step
        self._arm(min(step.timeout, self._time_left()), self._time_out)
        if step.is_tcp:
            self._query_over_tcp(step)
            return
        try:
            self._pending = self._resolver.exchange.ask(
                step.server, step.question, step.has_edns, self
            )
        except OSError:
            self._disarm()
            self._arm(0, self.server_unreachable)

    def _query_over_tcp(self, step: Attempt) -> None:
        resolver = self._resolver
        ident = resolver.random_bytes(2)
        reply = query_over_tcp(resolver.reactor, step.server, ident, step.question, step.has_edns)
        self._pending = reply
        reply.addCallbacks(self.reply_received, self._tcp_failed, errbackArgs=(reply,))

    def _tcp_failed(self, failure: Failure, reply: Deferred[bytes]) -> None:
        if self._pending is not reply:
            return  # the query was cancelled
        if failure.check(ExcessiveReply):
            self._resolver.note_answer(self._attempt.server)
            self._do(self._resolution.reply_too_large())
        else:
            self.server_unreachable()

    def _time_out(self) -> None:
        self._resolver.note_failure(self._attempt.server, is_unreachable=False)
        if self._resolver.reactor.seconds() < self._deadline:
            self._do(self._resolution.attempt_failed())
        else:
            self.give_up()

    def _time_left(self) -> float:
        return max(0.0, self._deadline - self._resolver.reactor.seconds())

    def _arm(self, delay: float, action: Callable[[], None]) -> None:
        self._timer = self._resolver.reactor.callLater(delay, action)

    def _disarm(self) -> None:
        timer, self._timer = self._timer, None
        stop_timer(timer)
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.cancel()

    def _cancel(self, _: object) -> None:
        self._stop()

    def _stop(self) -> None:
        self._disarm()
        self.is_over = True
        del self.answer  # otherwise each lookup leaves a cycle for the garbage collector
        self._resolver.discard(self)

    def _end(self, answer: DnsAnswer) -> None:
        waiting = self.answer
        self._stop()
        waiting.callback(answer)


class StubResolver:
    """A `Resolver` that asks recursive resolvers without a cache (see `CachingResolver`).

    :raises ValueError: the list of servers is empty.
    """

    def __init__(
        self,
        reactor: DnsReactor,
        servers: Sequence[Server],
        settings: ResolverSettings,
        random_bytes: RandomBytes,
    ) -> None:
        self.reactor = reactor
        self.settings = settings
        self.random_bytes = random_bytes
        self.exchange = Exchange(reactor, random_bytes)
        self.rotation = ServerRotation(servers)
        self.liveness = Liveness(reactor, self.exchange, servers, self._give_up_all)
        self.turns = PacedQueue(reactor)
        self.servers = tuple(servers)
        self._running: set[Lookup] = set()
        self._recent: dict[Lookup, float] = {}  # start times, oldest first
        self._queue: deque[Lookup] = deque()
        self._queue_timer: IDelayedCall | None = None
        self._is_closed = False

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Look up a question as `mailcheck.ports.resolver.Resolver` specifies.

        While all servers are dead, the answer is a timeout at once.
        """
        try:
            packed = pack_question(question)
        except ImpossibleName:
            return succeed(DnsAnswer(question, DnsStatus.NXDOMAIN, (), question.name))
        if self._is_closed or self.liveness.is_dead:
            return succeed(DnsAnswer(question, DnsStatus.TIMEOUT, (), question.name))
        lookup = Lookup(self, question, packed)
        answer = lookup.answer
        if self._queue or not self._has_room():
            self._queue.append(lookup)
            lookup.wait()
            self._schedule_queue()
        else:
            self._begin(lookup)
        return answer

    def note_answer(self, server: Server) -> None:
        """Record a reply of any kind."""
        self.rotation.note_answer(server)
        self.liveness.note_answer()

    def note_failure(self, server: Server, *, is_unreachable: bool) -> None:
        """Record a question that could not be sent or had no answer in time."""
        self.rotation.note_failure(server, self.reactor.seconds(), is_unreachable)
        self.liveness.note_failure()

    @property
    def unresponsive_servers(self) -> tuple[Server, ...]:
        """The servers that are down."""
        return self.rotation.unresponsive

    def close(self) -> Deferred[None]:
        """End all lookups with a timeout, also later ones; fires when everything is closed."""
        self._is_closed = True
        self._give_up_all()
        self.liveness.stop()
        return self.exchange.close()

    def _give_up_all(self) -> None:
        for lookup in [*self._queue, *self._running]:
            if not lookup.is_over:
                lookup.give_up()

    def discard(self, lookup: Lookup) -> None:
        """Remove a lookup that is over, and start queued lookups."""
        self._running.discard(lookup)
        self._recent.pop(lookup, None)
        if self._queue:
            self._begin_waiting()

    def _begin(self, lookup: Lookup) -> None:
        self._running.add(lookup)
        self._recent[lookup] = self.reactor.seconds()
        lookup.begin()

    def _has_room(self) -> bool:
        if len(self._running) >= self.settings.max_in_flight:
            return False
        if len(self._recent) < self.settings.max_burst:
            return True
        oldest, began_at = next(iter(self._recent.items()))
        if self.reactor.seconds() - began_at < self.settings.burst_age:
            return False
        del self._recent[oldest]
        return True

    def _begin_waiting(self) -> None:
        while self._queue and self._has_room():
            following = self._queue.popleft()
            if following.has_time:
                self._begin(following)
        self._schedule_queue()

    def _schedule_queue(self) -> None:
        """Set the timer that starts queued lookups even if no reply arrives."""
        if self._queue and self._queue_timer is None:
            self._queue_timer = self.reactor.callLater(self.settings.burst_age, self._run_queue)
        elif not self._queue and self._queue_timer is not None:
            self._queue_timer.cancel()
            self._queue_timer = None

    def _run_queue(self) -> None:
        self._queue_timer = None
        self._begin_waiting()
