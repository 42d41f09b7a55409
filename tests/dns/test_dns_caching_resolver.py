"""Remembering and merging, in front of any resolver."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.dns.caching_resolver import AnswerCache, CacheLimits, CachingResolver
from tests.dns.scripted_network import collect
from tests.fakes.memory_zone import MemoryZone

QUESTION = DnsQuestion("example.com", "TXT")
ZONE = {"example.com": {"TXT": ["v=spf1 -all"]}}


class SlowResolver:
    """A resolver whose answers come when the test says so."""

    def __init__(self) -> None:
        self.lookups: list[Deferred[DnsAnswer]] = []
        self.cancelled = 0

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Wait."""
        self.lookups.append(Deferred(self._cancel))
        return self.lookups[-1]

    def _cancel(self, _: object) -> None:
        self.cancelled += 1


@pytest.fixture
def clock() -> Clock:
    """Give a clock that the test turns."""
    return Clock()


@pytest.fixture
def slow() -> SlowResolver:
    """Give a resolver that waits for the test."""
    return SlowResolver()


@pytest.fixture
def merging(slow: SlowResolver, clock: Clock) -> CachingResolver:
    """Give the resolver under test, in front of the slow one."""
    return CachingResolver(slow, AnswerCache(CacheLimits()), clock)


def test_caching_remembers(clock: Clock) -> None:
    """The same question is asked again only when its answer is too old."""
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
    """After a failure the next one asks again, and gets the answer."""
    zone = MemoryZone(ZONE, failing={"example.com": DnsStatus.SERVFAIL})
    caching = CachingResolver(zone, AnswerCache(CacheLimits()), clock)
    assert collect(caching.lookup(QUESTION))[0].status is DnsStatus.SERVFAIL
    zone.failing.clear()
    assert collect(caching.lookup(QUESTION))[0].status is DnsStatus.FOUND


def test_caching_merges(slow: SlowResolver, merging: CachingResolver) -> None:
    """All who ask the same at the same time share one question, and its answer."""
    answers = [collect(merging.lookup(QUESTION)) for _ in range(100)]
    others = collect(merging.lookup(DnsQuestion("example.com", "MX")))
    assert len(slow.lookups) == 2
    answer = DnsAnswer(QUESTION, DnsStatus.TIMEOUT)
    slow.lookups[0].callback(answer)
    assert answers == [[answer]] * 100
    assert others == []
    collect(merging.lookup(QUESTION))
    assert len(slow.lookups) == 3


def test_caching_one_gives_up(slow: SlowResolver, merging: CachingResolver) -> None:
    """One who gives up does not take the others along."""
    first, second = merging.lookup(QUESTION), merging.lookup(QUESTION)
    gave_up, answered = collect(first), collect(second)
    first.cancel()
    assert isinstance(gave_up[0], Failure)
    assert isinstance(gave_up[0].value, CancelledError)
    assert (slow.cancelled, answered) == (0, [])
    slow.lookups[0].callback(DnsAnswer(QUESTION, DnsStatus.NODATA))
    assert answered[0].status is DnsStatus.NODATA


def test_caching_all_give_up(slow: SlowResolver, merging: CachingResolver) -> None:
    """When nobody waits any more the question is given up, and the next one asks anew."""
    lookups = [merging.lookup(QUESTION) for _ in range(3)]
    results = [collect(lookup) for lookup in lookups]
    for lookup in lookups:
        lookup.cancel()
    assert slow.cancelled == 1
    assert all(isinstance(result.value, CancelledError) for (result,) in results)
    answered = collect(merging.lookup(QUESTION))
    assert len(slow.lookups) == 2
    slow.lookups[1].callback(DnsAnswer(QUESTION, DnsStatus.NODATA))
    assert answered[0].status is DnsStatus.NODATA


def test_caching_cancel_while_answering(slow: SlowResolver, merging: CachingResolver) -> None:
    """One whose answer makes another give up does not confuse the rest."""
    lookups = [merging.lookup(QUESTION) for _ in range(3)]

    def cancel_second(answer: DnsAnswer) -> DnsAnswer:
        lookups[1].cancel()
        return answer

    lookups[0].addCallback(cancel_second)
    results = [collect(lookup) for lookup in lookups]
    slow.lookups[0].callback(DnsAnswer(QUESTION, DnsStatus.NODATA))
    assert [type(result) for (result,) in results] == [DnsAnswer, Failure, DnsAnswer]


def test_caching_mistake(clock: Clock) -> None:
    """A mistake of the caller is told at once, each time."""
    caching = CachingResolver(MemoryZone(ZONE), AnswerCache(CacheLimits()), clock)
    for _ in range(2):
        with pytest.raises(ValueError, match="NOTHING"):
            caching.lookup(DnsQuestion("example.com", "NOTHING"))
