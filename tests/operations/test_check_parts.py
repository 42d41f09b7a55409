"""Building blocks of checks: concurrent calls, and DKIM selectors learned from mail."""

from collections.abc import Sequence

import pytest
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.task import Clock

from mailcheck.cluster.local import LocalSelectors
from mailcheck.core.instants import HOUR, Instant
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.domains.known_selectors import LearnedSelectors
from mailcheck.ports.cluster import KNOWN_DOMAINS, KNOWN_SELECTORS
from tests.fakes.clock_and_randomness import clock_and_randomness_of
from tests.house import run
from tests.table import rows


async def until(deferred: "Deferred[str]") -> str:
    """Wait for the result."""
    return await deferred


def test_results_come_in_order() -> None:
    """All calls run concurrently. The results are in the order of the calls."""
    first: Deferred[str] = Deferred()
    second: Deferred[str] = Deferred()
    both = Deferred.fromCoroutine(run_all(until(first), until(second)))
    second.callback("second")
    assert not both.called
    first.callback("first")
    assert run(until_all(both)) == ["first", "second"]


async def until_all(both: "Deferred[list[str]]") -> list[str]:
    """Wait for both results."""
    return await both


def test_a_failure_ends_the_others() -> None:
    """If one call fails, the others are cancelled and its failure is raised."""
    cancelled: list[Deferred[str]] = []
    first: Deferred[str] = Deferred(cancelled.append)
    second: Deferred[str] = Deferred()
    both = Deferred.fromCoroutine(run_all(until(first), until(second)))
    second.errback(ValueError("broken"))
    assert cancelled == [first]
    with pytest.raises(ValueError, match="broken"):
        run(until_all(both))


def test_cancelling_ends_all() -> None:
    """Cancelling the caller cancels all calls."""
    cancelled: list[Deferred[str]] = []
    deferreds: list[Deferred[str]] = [Deferred(cancelled.append) for _ in range(3)]
    both = Deferred.fromCoroutine(run_all(*map(until, deferreds)))
    both.cancel()
    assert cancelled == deferreds
    with pytest.raises(CancelledError):
        run(until_all(both))


def signature(domain: str, selector: str) -> tuple[tuple[str, str], ...]:
    """Return the header of a signed mail."""
    return (("DKIM-Signature", f"v=1; a=rsa-sha256; d={domain}; s={selector}; b=AA=="),)


def test_selectors_are_learned_newest_first() -> None:
    """The newest selectors of a domain come first, and their number is limited."""
    learned = LearnedSelectors(LocalSelectors(), lambda: Instant(0))
    for number in range(KNOWN_SELECTORS + 2):
        learned.learn(signature("Example.COM", f"s{number}"))
    found = run(learned.of("example.com"))
    assert found[0] == f"s{KNOWN_SELECTORS + 1}"
    assert len(found) == KNOWN_SELECTORS
    assert run(learned.of("other.example")) == ()


@rows("", "d=example.com", "s=a", "d=ex ample; s=a", "d=example.com; s=a b", "d=;s=;" * 99)
def test_broken_signatures_teach_nothing(value: str) -> None:
    """Signatures without a domain or selector are ignored."""
    learned = LearnedSelectors(LocalSelectors(), lambda: Instant(0))
    learned.learn((("dkim-signature", value), ("Subject", "d=example.com; s=a")))
    assert run(learned.of("example.com")) == ()


def test_learning_is_bounded() -> None:
    """Memory stays bounded for any number of domains. The oldest domains are removed."""
    learned = LearnedSelectors(LocalSelectors(), lambda: Instant(0))
    for number in range(KNOWN_DOMAINS + 1):
        learned.learn(signature(f"d{number}.example", "s"))
    run(learned.save())
    assert run(learned.of("d0.example")) == ()
    assert run(learned.of("d1.example")) == ("s",)


class CountedSelectors(LocalSelectors):
    """A store that counts the selectors it receives, and can be unavailable."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[tuple[str, str]] = []
        self.is_away = False

    def note_selectors(self, pairs: Sequence[tuple[str, str]]) -> "Deferred[bool]":
        """Store the pairs, unless the store is unavailable."""
        if self.is_away:
            return succeed(False)
        self.noted += pairs
        return super().note_selectors(pairs)


def test_selectors_are_kept() -> None:
    """Each selector is written once an hour. None is lost while the store is unavailable."""
    store, clock = CountedSelectors(), Clock()
    learned = LearnedSelectors(store, clock_and_randomness_of(clock).now)
    store.is_away = True
    for _ in range(3):
        learned.learn(signature("example.com", "a"))
        learned.learn(signature("example.com", "b"))
        run(learned.save())
    assert run(learned.of("example.com")) == ("b", "a")
    store.is_away = False
    run(learned.save())
    run(learned.save())
    assert store.noted == [("example.com", "a"), ("example.com", "b")]
    assert run(learned.of("example.com")) == ("b", "a")
    clock.advance(HOUR / 1000)
    learned.learn(signature("example.com", "a"))
    assert run(learned.of("example.com")) == ("a", "b")
    run(learned.save())
    assert store.noted[2:] == [("example.com", "a")]
