"""DNS lookups for an evaluation, in rounds, until it has all the answers it needs."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import Answers, DnsQuestion, DnsStatus
from mailcheck.operations.dns_evaluation import HEAVY, REST_SHARE, QuestionBudget, evaluate_with_dns
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.house import result_of

ZONE = {
    "a.example": {"TXT": ["b.example", "c.example"]},
    "b.example": {"TXT": ["d.example"]},
    "c.example": {"TXT": ["e.example"]},
    "d.example": {"TXT": ["end"]},
    "e.example": {"TXT": ["end"]},
}


def follow(answers: Answers, name: str = "a.example") -> dict[str, DnsStatus]:
    """Follow the names in TXT records, depth first, and return the status of each."""
    answer = answers.lookup(name, "TXT")
    if answer is None:
        return {}
    found = {name: answer.status}
    for record in answer.records:
        target = record.to_text().strip('"')
        if target != "end":
            found.update(follow(answers, target))
    return found


def test_rounds_are_as_many_as_the_longest_chain() -> None:
    """All missing questions are sent in one round, and none is sent twice."""
    zone = MemoryZone(ZONE)
    rounds: list[int] = []

    def evaluate(answers: Answers) -> dict[str, DnsStatus]:
        rounds.append(len(zone.asked))
        return follow(answers)

    verdict = settle(zone, evaluate)
    assert set(verdict) == set(ZONE)
    assert rounds == [0, 1, 3, 5]


def test_questions_over_the_budget_are_not_sent() -> None:
    """Questions beyond the budget are not sent, and the result says that they are missing."""
    zone = MemoryZone(ZONE)
    verdict = settle(zone, follow, budget=QuestionBudget(ends_at=10, questions_left=2))
    assert len(zone.asked) == 2
    assert verdict == {
        "a.example": DnsStatus.FOUND,
        "b.example": DnsStatus.FOUND,
        "c.example": DnsStatus.EXCESSIVE,
        "d.example": DnsStatus.EXCESSIVE,
    }


def test_rounds_are_bounded() -> None:
    """An endless chain of names ends, and the rest is undetermined."""

    def endless(answers: Answers) -> int:
        number = 0
        while (answer := answers.lookup(f"n{number}.example", "A")) is not None:
            number += 1
            if not answer.status.is_determined:
                break
        return number

    zone = MemoryZone({})
    verdict = settle(zone, endless, budget=QuestionBudget(ends_at=10, rounds_left=5))
    assert (verdict, len(zone.asked)) == (6, 5)


def test_known_answers_are_not_looked_up_again() -> None:
    """Evaluations of one request share their answers."""
    zone = MemoryZone(ZONE)
    answers = Answers()
    for _ in range(2):
        done = Deferred.fromCoroutine(
            evaluate_with_dns(
                zone, follow, clock=Clock(), budget=QuestionBudget(10), answers=answers
            )
        )
        assert done.called
    assert len(zone.asked) == len(ZONE)


def wait_in_silence() -> tuple[Clock, MemoryZone, list[object]]:
    """Start an evaluation that meets a silent name. Its result is added to the list."""
    clock = Clock()
    zone = MemoryZone(ZONE, silent=["b.example"])
    results: list[object] = []
    budget = QuestionBudget.starting_now(clock, seconds=3)
    waiting = Deferred.fromCoroutine(evaluate_with_dns(zone, follow, clock=clock, budget=budget))
    waiting.addBoth(results.append)
    results.append(waiting)
    return clock, zone, results


def test_the_deadline_ends_silence() -> None:
    """Answers lead to further questions. At the deadline, the result uses the known answers."""
    clock, zone, results = wait_in_silence()
    clock.advance(0.1)
    assert DnsQuestion("e.example", "TXT") in zone.asked
    clock.advance(2.8)
    assert len(results) == 1
    clock.advance(0.1)
    assert results[1] == {
        "a.example": DnsStatus.FOUND,
        "b.example": DnsStatus.TIMEOUT,
        "c.example": DnsStatus.FOUND,
        "e.example": DnsStatus.FOUND,
    }
    assert zone.unanswered == []
    assert clock.getDelayedCalls() == []


def test_cancelling_gives_up_every_question() -> None:
    """When the client disconnects, its questions and the deadline are cancelled."""
    clock, zone, results = wait_in_silence()
    waiting = results[0]
    assert isinstance(waiting, Deferred)
    waiting.cancel()
    assert isinstance(results[1], Failure)
    assert isinstance(results[1].value, CancelledError)
    assert zone.unanswered == []
    assert clock.getDelayedCalls() == []


def test_a_heavy_evaluation_rests() -> None:
    """A slow evaluation yields to the reactor before it runs again."""
    clock, runs = Clock(), []

    def evaluate(answers: Answers) -> int:
        clock.rightNow += HEAVY
        runs.append(answers.lookup("a.example", "MX"))
        return len(runs)

    budget = QuestionBudget.starting_now(clock)
    asking = evaluate_with_dns(MemoryZone(ZONE), evaluate, clock=clock, budget=budget)
    verdict = Deferred.fromCoroutine(asking)
    clock.advance(REST_SHARE * HEAVY - 0.001)
    assert len(runs) == 1
    clock.advance(0.002)
    assert result_of(verdict) == 2
    assert not clock.getDelayedCalls()


def test_a_resolver_that_breaks_is_our_own_crash() -> None:
    """An exception that resolvers never raise is raised, and not taken for an answer."""

    class Broken:
        def lookup(self, question: DnsQuestion) -> "Deferred[object]":
            raise RuntimeError("bug")

    with pytest.raises(RuntimeError, match="bug"):
        settle(Broken(), follow)  # type: ignore[arg-type]
