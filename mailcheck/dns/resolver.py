"""The resolver of the house: drives each `Resolution` over datagrams and streams."""

from collections import deque
from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.core.identifiers import RandomBytes
from mailcheck.dns.exchange import Exchange, Pending
from mailcheck.dns.reactor import DnsReactor
from mailcheck.dns.resolution import Resolution, ResolverSettings, Step, Try
from mailcheck.dns.servers import Server, ServerRota
from mailcheck.dns.stream import ask_by_stream
from mailcheck.dns.wire_format import ImpossibleName, pack_question


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
        self.rota = ServerRota(servers)
        self.exchange = Exchange(reactor, random_bytes)
        self._in_flight: set[_Lookup] = set()
        self._queue: deque[_Lookup] = deque()
        self._is_closed = False

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Answer as `mailcheck.operations.dns_ports.Resolver` promises."""
        try:
            packed = pack_question(question)
        except ImpossibleName:
            return succeed(DnsAnswer(question, DnsStatus.NXDOMAIN, (), question.name))
        if self._is_closed:
            return succeed(DnsAnswer(question, DnsStatus.TIMEOUT, (), question.name))
        lookup = _Lookup(self, question, packed)
        answer = lookup.answer
        if len(self._in_flight) < self.settings.max_in_flight:
            self._in_flight.add(lookup)
            lookup.begin()
        else:
            self._queue.append(lookup)
            lookup.wait()
        return answer

    def close(self) -> Deferred[None]:
        """End all lookups as timed out, answer further ones so; fires when all is closed."""
        self._is_closed = True
        for lookup in [*self._queue, *self._in_flight]:
            if not lookup.is_over:
                lookup.give_up()
        return self.exchange.close()

    def discard(self, lookup: "_Lookup") -> None:
        """Forget a lookup that is over, and let the next one begin."""
        self._in_flight.discard(lookup)
        while self._queue and len(self._in_flight) < self.settings.max_in_flight:
            following = self._queue.popleft()
            if following.has_time:
                self._in_flight.add(following)
                following.begin()


class _Lookup:
    """One lookup: a `Resolution`, what it waits for, and the timer of that."""

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

    def __init__(self, resolver: StubResolver, question: DnsQuestion, packed: bytes) -> None:
        now = resolver.reactor.seconds()
        servers = resolver.rota.order(now)
        self._resolver = resolver
        self._resolution = Resolution(question, packed, servers, resolver.settings.try_timeouts)
        self._deadline = now + resolver.settings.deadline
        self._pending: Pending | Deferred[bytes] | None = None
        self._timer: IDelayedCall | None = None
        self.answer: Deferred[DnsAnswer] = Deferred(self._cancel)
        self.is_over = False

    @property
    def has_time(self) -> bool:
        """Tell whether it is not over, nor about to be."""
        return not self.is_over and self._time_left() > 0

    def wait(self) -> None:
        """Wait for a place among those in flight, until the deadline."""
        self._arm(self._time_left(), self.give_up)

    def begin(self) -> None:
        """Make the first try."""
        self._do(self._resolution.start())

    def heard(self, message: bytes) -> None:
        """Take the reply to the question of this try."""
        self._resolver.rota.note_answer(self._try.server)
        self._do(self._resolution.heard(message))

    def unreachable(self) -> None:
        """Learn that this try can't have a reply."""
        now = self._resolver.reactor.seconds()
        self._resolver.rota.note_silence(self._try.server, now, is_unreachable=True)
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

    def _lose_stream(self, _: Failure, reply: Deferred[bytes]) -> None:
        if self._pending is reply:  # else it was cancelled
            self.unreachable()

    def _time_out(self) -> None:
        now = self._resolver.reactor.seconds()
        self._resolver.rota.note_silence(self._try.server, now, is_unreachable=False)
        if now < self._deadline:
            self._do(self._resolution.lost())
        else:
            self.give_up()

    def _time_left(self) -> float:
        return max(0.0, self._deadline - self._resolver.reactor.seconds())

    def _arm(self, delay: float, action: Callable[[], None]) -> None:
        self._timer = self._resolver.reactor.callLater(delay, self._fire, action)

    def _fire(self, action: Callable[[], None]) -> None:
        self._timer = None
        action()

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
        self._resolver.discard(self)

    def _end(self, answer: DnsAnswer) -> None:
        waiting = self.answer
        self._stop()
        waiting.callback(answer)
