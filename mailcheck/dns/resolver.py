"""The resolver of the house: who may ask now, and who waits for a turn."""

from collections import deque
from collections.abc import Sequence

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.core.identifiers import RandomBytes
from mailcheck.dns.alarms import Alarms
from mailcheck.dns.exchange import Exchange
from mailcheck.dns.lookup import Lookup, Upstream
from mailcheck.dns.reactor import DnsReactor
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.servers import Server, ServerRota
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
        self._upstream = Upstream(
            reactor=reactor,
            alarms=Alarms(reactor),
            rota=ServerRota(servers),
            exchange=Exchange(reactor, random_bytes),
            settings=settings,
            random_bytes=random_bytes,
        )
        self.servers = tuple(servers)
        self._reactor = reactor
        self._settings = settings
        self._running: set[Lookup] = set()
        self._young: dict[Lookup, float] = {}  # began when; oldest first
        self._queue: deque[Lookup] = deque()
        self._turn: IDelayedCall | None = None
        self._is_closed = False

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Answer as `mailcheck.operations.dns_ports.Resolver` promises."""
        try:
            packed = pack_question(question)
        except ImpossibleName:
            return succeed(DnsAnswer(question, DnsStatus.NXDOMAIN, (), question.name))
        if self._is_closed:
            return succeed(DnsAnswer(question, DnsStatus.TIMEOUT, (), question.name))
        lookup = Lookup(self._upstream, question, packed, self._discard)
        answer = lookup.answer
        if self._queue or not self._has_room():
            self._queue.append(lookup)
            lookup.wait()
            self._plan_turn()
        else:
            self._begin(lookup)
        return answer

    @property
    def silent_servers(self) -> tuple[Server, ...]:
        """Give the servers that are down."""
        return self._upstream.rota.silent

    def close(self) -> Deferred[None]:
        """End all lookups as timed out, answer further ones so; fires when all is closed."""
        self._is_closed = True
        for lookup in [*self._queue, *self._running]:
            if not lookup.is_over:
                lookup.give_up()
        return self._upstream.exchange.close()

    def _discard(self, lookup: Lookup) -> None:
        self._running.discard(lookup)
        self._young.pop(lookup, None)
        if self._queue:
            self._begin_waiting()

    def _begin(self, lookup: Lookup) -> None:
        self._running.add(lookup)
        self._young[lookup] = self._reactor.seconds()
        lookup.begin()

    def _has_room(self) -> bool:
        if len(self._running) >= self._settings.max_in_flight:
            return False
        if len(self._young) < self._settings.max_burst:
            return True
        oldest, began_at = next(iter(self._young.items()))
        if self._reactor.seconds() - began_at < self._settings.burst_age:
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
            self._turn = self._reactor.callLater(self._settings.burst_age, self._take_turn)
        elif not self._queue and self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def _take_turn(self) -> None:
        self._turn = None
        self._begin_waiting()
