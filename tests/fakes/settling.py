"""Runs an evaluation with a `MemoryZone` until it has a verdict, without a reactor."""

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import Answers
from mailcheck.operations.dns_evaluation import QuestionBudget, evaluate_with_dns
from mailcheck.ports.resolver import Resolver

Verdict = TypeVar("Verdict")


def settle(
    resolver: Resolver,
    evaluate: Callable[[Answers], Verdict],
    *,
    budget: QuestionBudget | None = None,
) -> Verdict:
    """Return the verdict of an evaluation with a resolver that answers at once."""
    clock = Clock()
    verdicts: list[Verdict] = []
    failures: list[Failure] = []
    waiting = Deferred.fromCoroutine(
        evaluate_with_dns(
            resolver,
            evaluate,
            clock=clock,
            budget=budget or QuestionBudget.starting_now(clock),
        )
    )
    waiting.addCallbacks(verdicts.append, failures.append)
    assert not clock.getDelayedCalls(), "the resolver left a question open"
    if failures:
        failures[0].raiseException()
    return verdicts[0]
