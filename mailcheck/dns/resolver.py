"""The resolver of the house: one lookup, who may ask now, and who waits for a turn."""

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
from mailcheck.dns.resolution import Resolution, ResolverSettings, Step, Try
from mailcheck.dns.servers import Server, ServerRotation
from mailcheck.dns.wire_format import (
    MAX_OCTETS,
    ImpossibleName,
    is_quickly_read,
    is_reply_to,
    pack_query,
    pack_question,
)
from mailcheck.operations.concurrency import Turn, Turns

ROOT = pack_question(DnsQuestion("", "NS"))
"""What every resolver knows, whatever became of the name servers of others."""

SENDINGS = 3
INTERVAL = 0.4
"""Times that the question is sent, and seconds between them, until who says nothing is dead."""

WHILE_DEAD = 1.0
"""Seconds between two questions to the dead."""


class Liveness:
    """Learns that nobody answers, and when somebody does again.

    A lookup without an answer proves little: the name servers of that name may be dead. So
    the servers are asked what each knows at once. When none of them says anything to anybody for
    as long as that takes, they are dead until one does.

    :param on_death: is called when they have died.
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
        """Note that a question had no answer: find out whether any would have."""
        if self._timer is None:
            self._ask()

    def note_answer(self) -> None:
        """Note that a server said something, whatever it was."""
        if self._timer is not None:
            self.stop()

    def heard(self, message: bytes) -> None:
        """Take the answer to our own question."""
        self.stop()

    def unreachable(self) -> None:
        """Learn that there is no way to one of them now; go on asking."""

    def stop(self) -> None:
        """Ask no more; who was dead is not."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None
        while self._asked:
            self._asked.pop().cancel()
        self._sent = 0
        self.is_dead = False

    def _ask(self) -> None:
        if self._sent >= SENDINGS and not self.is_dead:
            self.is_dead = True
            self._on_death()
        while len(self._asked) > (SENDINGS - 1) * len(self._servers):
            self._asked.popleft().cancel()
        self._sent += 1
        self._timer = self._clock.callLater(WHILE_DEAD if self.is_dead else INTERVAL, self._ask)
        for server in self._servers:
            try:
                self._asked.append(self._exchange.ask(server, ROOT, True, self))
            except OSError:
                continue  # no way to it now


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
    factory = Factory.forProtocol(lambda: protocol)
    factory.noisy = False
    connected: Deferred[Any] = endpoint.connect(factory)
    return connected.addCallback(lambda _: protocol.reply)


class ExcessiveReply(Exception):
    """The server announces a message of more octets than are read."""


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
        """Fail when no reply came."""
        if not self._is_over:
            self._is_over = True
            self.reply.errback(reason)

    def _abort(self) -> None:
        self._is_over = True
        self.transport.abortConnection()


class Lookup:
    """A `Resolution`, what it waits for, and the timer of that; ``answer`` fires at its end."""

    __slots__ = (
        "_deadline",
        "_pending",
        "_resolution",
        "_resolver",
        "_timer",
        "_try",
        "answer",
        "is_over",
    )

    def __init__(
        self,
        resolver: "StubResolver",
        question: DnsQuestion,
        packed: bytes,
    ) -> None:
        """Take a question, also packed."""
        now = resolver.reactor.seconds()
        settings = resolver.settings
        servers = resolver.rota.order(now)
        self._resolver = resolver
        self._resolution = Resolution(question, packed, servers, settings.try_timeouts)
        self._deadline = now + settings.deadline
        self._pending: Pending | Deferred[bytes] | Turn | None = None
        self._timer: IDelayedCall | None = None
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
        self._resolver.note_answer(self._try.server)
        if is_quickly_read(message, self._try.question):
            self._do(self._resolution.heard(message))
            return
        self._disarm()
        self.wait()
        self._pending = self._resolver.turns.call(lambda: self._do(self._resolution.heard(message)))

    def unreachable(self) -> None:
        """Learn that this try can't have a reply."""
        self._resolver.note_failure(self._try.server, is_unreachable=True)
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
            self._pending = self._resolver.exchange.ask(
                step.server, step.question, step.has_edns, self
            )
        except OSError:
            self._disarm()
            self._arm(0, self.unreachable)

    def _ask_by_stream(self, step: Try) -> None:
        resolver = self._resolver
        ident = resolver.random_bytes(2)
        reply = ask_by_stream(resolver.reactor, step.server, ident, step.question, step.has_edns)
        self._pending = reply
        reply.addCallbacks(self.heard, self._lose_stream, errbackArgs=(reply,))

    def _lose_stream(self, failure: Failure, reply: Deferred[bytes]) -> None:
        if self._pending is not reply:
            return  # it was cancelled
        if failure.check(ExcessiveReply):
            self._resolver.note_answer(self._try.server)
            self._do(self._resolution.exceeded())
        else:
            self.unreachable()

    def _time_out(self) -> None:
        self._resolver.note_failure(self._try.server, is_unreachable=False)
        if self._resolver.reactor.seconds() < self._deadline:
            self._do(self._resolution.lost())
        else:
            self.give_up()

    def _time_left(self) -> float:
        return max(0.0, self._deadline - self._resolver.reactor.seconds())

    def _arm(self, delay: float, action: Callable[[], None]) -> None:
        self._timer = self._resolver.reactor.callLater(delay, action)

    def _disarm(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
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
        self._resolver.discard(self)

    def _end(self, answer: DnsAnswer) -> None:
        waiting = self.answer
        self._stop()
        waiting.callback(answer)


class StubResolver:
    """A `Resolver` that asks recursive resolvers and remembers nothing (see `CachingResolver`).

    :raises ValueError: no server is given.
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
        self.rota = ServerRotation(servers)
        self.liveness = Liveness(reactor, self.exchange, servers, self._give_up_all)
        self.turns = Turns(reactor)
        self.servers = tuple(servers)
        self._running: set[Lookup] = set()
        self._young: dict[Lookup, float] = {}  # began when; oldest first
        self._queue: deque[Lookup] = deque()
        self._turn: IDelayedCall | None = None
        self._is_closed = False

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Answer as `mailcheck.operations.dns_ports.Resolver` promises.

        While no server answers anything, as is known then, it has timed out at once.
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
            self._plan_turn()
        else:
            self._begin(lookup)
        return answer

    def note_answer(self, server: Server) -> None:
        """Note that a server answered, whatever it said."""
        self.rota.note_answer(server)
        self.liveness.note_answer()

    def note_failure(self, server: Server, *, is_unreachable: bool) -> None:
        """Note that a question got no answer in time, or could not be sent."""
        self.rota.note_failure(server, self.reactor.seconds(), is_unreachable)
        self.liveness.note_failure()

    @property
    def unresponsive_servers(self) -> tuple[Server, ...]:
        """Give the servers that are down."""
        return self.rota.silent

    def close(self) -> Deferred[None]:
        """End all lookups as timed out, answer further ones so; fires when all is closed."""
        self._is_closed = True
        self._give_up_all()
        self.liveness.stop()
        return self.exchange.close()

    def _give_up_all(self) -> None:
        for lookup in [*self._queue, *self._running]:
            if not lookup.is_over:
                lookup.give_up()

    def discard(self, lookup: Lookup) -> None:
        """Forget a lookup that is over, and begin waiting ones."""
        self._running.discard(lookup)
        self._young.pop(lookup, None)
        if self._queue:
            self._begin_waiting()

    def _begin(self, lookup: Lookup) -> None:
        self._running.add(lookup)
        self._young[lookup] = self.reactor.seconds()
        lookup.begin()

    def _has_room(self) -> bool:
        if len(self._running) >= self.settings.max_in_flight:
            return False
        if len(self._young) < self.settings.max_burst:
            return True
        oldest, began_at = next(iter(self._young.items()))
        if self.reactor.seconds() - began_at < self.settings.burst_age:
            return False
        del self._young[oldest]
        return True

    def _begin_waiting(self) -> None:
        while self._queue and self._has_room():
            following = self._queue.popleft()
            if following.has_time:
                self._begin(following)
        self._plan_turn()

    def _plan_turn(self) -> None:
        """See to it that those who wait may begin even if no reply comes."""
        if self._queue and self._turn is None:
            self._turn = self.reactor.callLater(self.settings.burst_age, self._take_turn)
        elif not self._queue and self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def _take_turn(self) -> None:
        self._turn = None
        self._begin_waiting()
