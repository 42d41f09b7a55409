"""Caching and merging of lookups, in front of any resolver."""

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.dns.caching_resolver import AnswerCache, CacheLimits, CachingResolver
from tests.dns.scripted_network import collect
from tests.fakes.memory_zone import MemoryZone

QUESTION = DnsQuestion("example.com", "TXT")
ZONE = {"example.com": {"TXT": ["v=spf1 -all"]}}


class SlowResolver:
    """A resolver whose answers the test triggers."""

    def __init__(self) -> None:
        self.lookups: list[Deferred[DnsAnswer]] = []
        self.cancelled = 0

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Wait for the test."""
        self.lookups.append(Deferred(self._cancel))
        return self.lookups[-1]

    def _cancel(self, _: object) -> None:
        self.cancelled += 1


@pytest.fixture
def clock() -> Clock:
    """A clock that the test controls."""
    return Clock()


@pytest.fixture
def slow() -> SlowResolver:
    """A resolver that waits for the test."""
    return SlowResolver()


@pytest.fixture
def merging(slow: SlowResolver, clock: Clock) -> CachingResolver:
    """The resolver under test, in front of the slow one."""
    return CachingResolver(slow, AnswerCache(CacheLimits()), clock)


def test_caching_remembers(clock: Clock) -> None:
    """An equal question is asked again after its answer has expired."""
    zone = MemoryZone(ZONE)
    caching = CachingResolver(zone, AnswerCache(CacheLimits(max_ttl=60)), clock)
    first = collect(caching.lookup(QUESTION))
    clock.advance(59)
    second = collect(caching.lookup(QUESTION))
    assert (first[0].records, first[0].status) == (second[0].records, DnsStatus.FOUND)
    assert len(zone.asked) == 1
    clock.advance(1)
    collect(caching.lookup(QUESTION))
    assert len(zone.asked) == 2


def test_caching_no_failures(clock: Clock) -> None:
    """After a failure the next lookup asks again and gets the answer."""
    zone = MemoryZone(ZONE, failing={"example.com": DnsStatus.SERVFAIL})
    caching = CachingResolver(zone, AnswerCache(CacheLimits()), clock)
    assert collect(caching.lookup(QUESTION))[0].status is DnsStatus.SERVFAIL
    zone.failing.clear()
    assert collect(caching.lookup(QUESTION))[0].status is DnsStatus.FOUND


def test_caching_merges(slow: SlowResolver, merging: CachingResolver) -> None:
    """Equal questions at the same time share one lookup and its answer."""
    answers = [collect(merging.lookup(QUESTION)) for _ in range(100)]
    others = collect(merging.lookup(DnsQuestion("example.com", "MX")))
    assert len(slow.lookups) == 2
    answer = DnsAnswer(QUESTION, DnsStatus.TIMEOUT)
    slow.lookups[0].callback(answer)
    assert answers == [[answer]] * 100
    assert others == []
    collect(merging.lookup(QUESTION))
    assert len(slow.lookups) == 3


def test_caching_mistake(clock: Clock) -> None:
    """An invalid question raises an exception at once, each time."""
    caching = CachingResolver(MemoryZone(ZONE), AnswerCache(CacheLimits()), clock)
    for _ in range(2):
        with pytest.raises(ValueError, match="NOTHING"):
            caching.lookup(DnsQuestion("example.com", "NOTHING"))
