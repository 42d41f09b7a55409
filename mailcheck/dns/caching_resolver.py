"""Remembers answers, and asks once for all who want to know the same at the same time."""

from dataclasses import dataclass, field

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion
from mailcheck.dns.cache import AnswerCache
from mailcheck.operations.dns_ports import Resolver


@dataclass(slots=True)
class _SharedLookup:
    """A lookup under way, and all who wait for it."""

    lookup: Deferred[DnsAnswer]
    waiting: list[Deferred[DnsAnswer]] = field(default_factory=list)


class CachingResolver:
    """A `Resolver` in front of another one."""

    def __init__(self, resolver: Resolver, cache: AnswerCache, clock: IReactorTime) -> None:
        self._resolver = resolver
        self._cache = cache
        self._clock = clock
        self._shared: dict[DnsQuestion, _SharedLookup] = {}

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Answer as `mailcheck.operations.dns_ports.Resolver` promises.

        From the cache, else with the answer that is on its way, else by a new
        lookup, which goes on until nobody waits for it any more.
        """
        remembered = self._cache.get(question, self._clock.seconds())
        if remembered is not None:
            return succeed(remembered)
        shared = self._shared.get(question)
        if shared is not None:
            return self._join(shared)
        shared = _SharedLookup(self._resolver.lookup(question))
        self._shared[question] = shared
        answer = self._join(shared)
        shared.lookup.addBoth(self._finish, question, shared)
        return answer

    def _join(self, shared: _SharedLookup) -> Deferred[DnsAnswer]:
        def leave(answer: Deferred[DnsAnswer]) -> None:
            shared.waiting.remove(answer)
            if not shared.waiting:
                shared.lookup.cancel()

        answer: Deferred[DnsAnswer] = Deferred(leave)
        shared.waiting.append(answer)
        return answer

    def _finish(
        self, result: DnsAnswer | Failure, question: DnsQuestion, shared: _SharedLookup
    ) -> None:
        del self._shared[question]
        if isinstance(result, DnsAnswer):
            self._cache.put(result, self._clock.seconds())
        while shared.waiting:
            shared.waiting.pop(0).callback(result)
