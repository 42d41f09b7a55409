"""The DNS cache, and one shared lookup for equal questions at the same time.

Answers are cached for their TTL (RFC 2308 5 for negative answers), up to the limits here. Failed
lookups are never cached.
"""

from typing import NamedTuple

from msgspec import Struct
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.core.memory.recent import LruCache
from mailcheck.operations.concurrency import SingleFlight
from mailcheck.ports.resolver import Resolver

RECORD_WEIGHT = 500  # octets of memory for a record in addition to its data, measured
ENTRY_WEIGHT = 1000  # octets of memory for a question, its answer and the entry, measured


class CacheLimits(Struct, frozen=True):
    """Limits of the cache: TTLs in seconds, weight in octets of memory.

    Users check a domain, publish what was missing and check again. A negative answer is therefore
    cached for a few minutes only.
    """

    max_ttl: int = 3600
    max_negative_ttl: int = 300
    max_weight: int = 32 * 1024 * 1024


class _Entry(NamedTuple):
    answer: DnsAnswer
    expires_at: float


class AnswerCache:
    """An LRU cache of answers by question."""

    def __init__(self, limits: CacheLimits) -> None:
        self._limits = limits
        self._entries: LruCache[DnsQuestion, _Entry] = LruCache(limits.max_weight, _weigh)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, question: DnsQuestion, now: float) -> DnsAnswer | None:
        """Return the cached answer with its remaining ``ttl``, or `None`."""
        entry = self._entries.get(question)
        if entry is None:
            return None
        left = entry.expires_at - now
        if not 0 < left <= self._limits.max_ttl:  # it is larger if the clock was set back
            self._entries.drop(question)
            return None
        return entry.answer._replace(ttl=-int(-left // 1))

    def put(self, answer: DnsAnswer, now: float) -> None:
        """Cache an answer, unless it is undetermined or its TTL is 0."""
        if answer.ttl <= 0 or not answer.status.is_determined:
            return
        is_found = answer.status is DnsStatus.FOUND
        limit = self._limits.max_ttl if is_found else self._limits.max_negative_ttl
        self._entries.put(answer.question, _Entry(answer, now + min(answer.ttl, limit)))


def _weigh(entry: _Entry) -> int:
    answer = entry.answer
    return ENTRY_WEIGHT + RECORD_WEIGHT * len(answer.records) + answer.octets


class CachingResolver:
    """A `Resolver` that caches the answers of another one."""

    def __init__(self, resolver: Resolver, cache: AnswerCache, clock: IReactorTime) -> None:
        self._resolver = resolver
        self._cache = cache
        self._clock = clock
        self._lookups = SingleFlight(self._ask, cancels_unwanted=True)

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Look up a question as `mailcheck.ports.resolver.Resolver` specifies.

        The answer comes from the cache, from a running lookup of the same question, or from a new
        lookup. A lookup is cancelled when no caller waits for it.
        """
        cached = self._cache.get(question, self._clock.seconds())
        if cached is not None:
            return succeed(cached)
        return self._lookups.call(question)

    def _ask(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        return self._resolver.lookup(question).addCallback(self._cache_answer)

    def _cache_answer(self, answer: DnsAnswer) -> DnsAnswer:
        self._cache.put(answer, self._clock.seconds())
        return answer
