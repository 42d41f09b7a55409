"""What is remembered of DNS, for how long, and one look-up for all who want to know the same.

Answers are kept as long as their TTL says, RFC 2308 5 for negative ones, but
no longer than the limits here. What could not be found out is never kept.
"""

from typing import NamedTuple

from msgspec import Struct
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.core.recent import RecentlyUsed
from mailcheck.operations.concurrency import SharedCalls
from mailcheck.ports.resolver import Resolver

RECORD_WEIGHT = 500  # octets of memory that a record takes beside its data, measured
ENTRY_WEIGHT = 1000  # likewise question, answer and entry


class CacheLimits(Struct, frozen=True):
    """TTLs in seconds, weight in octets of memory.

    People check a domain, publish what was missing and check again: that a
    name or record does not exist is believed for a few minutes only.
    """

    max_ttl: int = 3600
    max_negative_ttl: int = 300
    max_weight: int = 32 * 1024 * 1024


class _Entry(NamedTuple):
    answer: DnsAnswer
    expires_at: float


class AnswerCache:
    """Answers by question; those not used for longest make room for new ones."""

    def __init__(self, limits: CacheLimits) -> None:
        self._limits = limits
        self._entries: RecentlyUsed[DnsQuestion, _Entry] = RecentlyUsed(limits.max_weight, _weigh)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, question: DnsQuestion, now: float) -> DnsAnswer | None:
        """Give the remembered answer, its ``ttl`` being what is left of it."""
        entry = self._entries.get(question)
        if entry is None:
            return None
        left = entry.expires_at - now
        if not 0 < left <= self._limits.max_ttl:  # the second: the clock was set back
            self._entries.drop(question)
            return None
        return entry.answer._replace(ttl=-int(-left // 1))

    def put(self, answer: DnsAnswer, now: float) -> None:
        """Remember an answer, if it is one and may be remembered."""
        if answer.ttl <= 0 or not answer.status.is_determined:
            return
        is_found = answer.status is DnsStatus.FOUND
        limit = self._limits.max_ttl if is_found else self._limits.max_negative_ttl
        self._entries.put(answer.question, _Entry(answer, now + min(answer.ttl, limit)))


def _weigh(entry: _Entry) -> int:
    answer = entry.answer
    return ENTRY_WEIGHT + RECORD_WEIGHT * len(answer.records) + answer.octets


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
