"""The DNS cache: entries, TTLs and limits."""

from dns.rdata import from_text
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.dns.caching_resolver import AnswerCache, CacheLimits

QUESTION = DnsQuestion("example.com", "A")
RECORD = from_text("IN", "A", "192.0.2.1")
LIMITS = CacheLimits(max_ttl=1000, max_negative_ttl=100, max_weight=20_000)


def found(ttl: int, question: DnsQuestion = QUESTION) -> DnsAnswer:
    """Return a positive answer."""
    return DnsAnswer(question, DnsStatus.FOUND, (RECORD,), question.name, ttl)


def test_cache_ttl() -> None:
    """An answer is cached for its TTL, and returned with its remaining TTL."""
    cache = AnswerCache(LIMITS)
    cache.put(found(60), now=1000.0)
    assert cache.get(QUESTION, 1000.0) == found(60)
    assert cache.get(QUESTION, 1059.5) == found(1)
    assert cache.get(QUESTION, 1060.0) is None
    assert len(cache) == 0


def test_cache_longest() -> None:
    """Even a very long TTL ends at the limit, which is lower for negative answers."""
    cache = AnswerCache(LIMITS)
    cache.put(found(100_000), now=0.0)
    missing = DnsAnswer(DnsQuestion("no.example", "A"), DnsStatus.NXDOMAIN, ttl=100_000)
    cache.put(missing, now=0.0)
    assert cache.get(QUESTION, 999.0) is not None
    assert cache.get(QUESTION, 1000.0) is None
    assert cache.get(missing.question, 99.0) is not None
    assert cache.get(missing.question, 100.0) is None


@given(st.sampled_from(DnsStatus), st.integers(0, 10))
def test_cache_no_failures(status: DnsStatus, ttl: int) -> None:
    """Failures and answers without a TTL are never cached."""
    cache = AnswerCache(LIMITS)
    cache.put(DnsAnswer(QUESTION, status, ttl=ttl), now=0.0)
    is_remembered = cache.get(QUESTION, 0.0) is not None
    assert is_remembered == (ttl > 0 and status in [*DnsStatus][:3])
    assert [*DnsStatus][:3] == [DnsStatus.FOUND, DnsStatus.NODATA, DnsStatus.NXDOMAIN]


def test_cache_types_and_names() -> None:
    """Answers are cached by name and type."""
    cache = AnswerCache(LIMITS)
    cache.put(found(60), now=0.0)
    assert cache.get(DnsQuestion("example.com", "MX"), 0.0) is None
    assert cache.get(DnsQuestion("example.org", "A"), 0.0) is None


def test_cache_newer_answer() -> None:
    """A newer answer replaces the older one and its weight."""
    cache = AnswerCache(LIMITS)
    for _ in range(100):
        cache.put(found(60), now=0.0)
    cache.put(DnsAnswer(QUESTION, DnsStatus.NODATA, ttl=60), now=1.0)
    answer = cache.get(QUESTION, 1.0)
    assert answer is not None
    assert answer.status is DnsStatus.NODATA


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 60)), max_size=80))
def test_cache_bound(puts: list[tuple[int, int]]) -> None:
    """Records of any size use at most the given memory."""
    cache = AnswerCache(LIMITS)
    text = from_text("IN", "TXT", '"' + "x" * 250 + '"')
    for number, records in puts:
        question = DnsQuestion(f"h{number}.example", "TXT")
        cache.put(DnsAnswer(question, DnsStatus.FOUND, (text,) * records, ttl=60), now=0.0)
    kept = [
        answer
        for number in range(51)
        if (answer := cache.get(DnsQuestion(f"h{number}.example", "TXT"), 0.0))
    ]
    assert sum(250 * len(answer.records) for answer in kept) < LIMITS.max_weight
    assert len(kept) == len(cache)
    if puts and puts[-1][1] < 20:
        assert cache.get(DnsQuestion(f"h{puts[-1][0]}.example", "TXT"), 0.0) is not None
