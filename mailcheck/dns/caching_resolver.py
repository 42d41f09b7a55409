"""Remembers answers, and asks once for all who want to know the same at the same time."""

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion
from mailcheck.dns.cache import AnswerCache
from mailcheck.operations.dns_ports import Resolver
from mailcheck.operations.sharing_calls import SharedCalls


class CachingResolver:
    """A `Resolver` in front of another one."""

    def __init__(self, resolver: Resolver, cache: AnswerCache, clock: IReactorTime) -> None:
        self._resolver = resolver
        self._cache = cache
        self._clock = clock
        self._lookups = SharedCalls(self._ask, ends_unwanted=True)

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Answer as `mailcheck.operations.dns_ports.Resolver` promises.

        From the cache, else with the answer that is on its way, else by a new
        lookup, which goes on until nobody waits for it any more.
        """
        remembered = self._cache.get(question, self._clock.seconds())
        if remembered is not None:
            return succeed(remembered)
        return self._lookups.call(question)

    def _ask(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        return self._resolver.lookup(question).addCallback(self._remember)

    def _remember(self, answer: DnsAnswer) -> DnsAnswer:
        self._cache.put(answer, self._clock.seconds())
        return answer
