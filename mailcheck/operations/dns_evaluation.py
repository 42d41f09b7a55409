"""Running evaluations against DNS: look up what they need, within a budget.

The evaluations of `mailcheck.checks` are functions of DNS answers, and they name the questions
whose answers are missing. This module looks up all missing questions of a round concurrently and
runs the evaluation again. The number of rounds is the length of the longest dependency chain.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from dns.rdata import Rdata
from msgspec import Struct, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import Answers, DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.checks.overlay import Overlay, ProposedZone, final_name_of
from mailcheck.operations.concurrency import stop_timer
from mailcheck.ports.resolver import Resolver

MAX_QUESTIONS = 250
"""Maximum number of questions per request. The most complex legitimate domain needs about 180;
the limit stops SPF trees that are built to cause thousands."""

MAX_RECORDS = 600
"""Maximum number of records in all answers of a request. The most complex legitimate domain has
about 300."""

MAX_OCTETS = 131_072
"""Maximum number of octets of all answers of a request. That domain has 60,000."""

MAX_ROUNDS = 24
"""Maximum number of rounds. Ten nested SPF includes and their dependent lookups need fourteen."""

DEADLINE = 10.0
"""Seconds for all rounds of a request."""

PATIENCE = 0.05
"""Seconds that the answers of a round wait for slower ones before they are evaluated. An
unresponsive name server must not delay lookups that depend on other servers."""

HEAVY = 0.01
"""Seconds of evaluation after which the request pauses. No legitimate domain takes that long."""

REST_SHARE, LONGEST_REST = 4.0, 0.25
"""Length of the pause: a multiple of the evaluation time, and its maximum in seconds. The reactor
serves other clients meanwhile."""

Verdict = TypeVar("Verdict")


class QuestionBudget(Struct):
    """The remaining DNS budget of a request, and when it ends (in seconds of the clock).

    Several evaluations of one request may share a budget.
    """

    ends_at: float
    questions_left: int = MAX_QUESTIONS
    rounds_left: int = MAX_ROUNDS
    records_left: int = MAX_RECORDS
    octets_left: int = MAX_OCTETS

    @classmethod
    def starting_now(cls, clock: IReactorTime, seconds: float = DEADLINE) -> "QuestionBudget":
        """Create the budget of a request that begins now."""
        return cls(clock.seconds() + seconds)

    @property
    def is_spent(self) -> bool:
        """Whether the answers have reached the maximum number of records or octets."""
        return self.records_left <= 0 or self.octets_left <= 0

    def note(self, answer: DnsAnswer) -> None:
        """Count an answer."""
        self.records_left -= len(answer.records)
        self.octets_left -= answer.octets

    def take(self, questions: Iterable[DnsQuestion], now: float) -> list[DnsQuestion]:
        """Return the questions that may be sent in one more round."""
        if self.rounds_left <= 0 or now >= self.ends_at or self.is_spent:
            return []
        granted = list(questions)[: self.questions_left]
        self.questions_left -= len(granted)
        self.rounds_left -= 1
        return granted


class DnsEvaluator(Struct):
    """Runs evaluations of one request. The answers of one evaluation are known to the next.

    Records of a proposed ``zone`` are evaluated as if they were published.
    """

    resolver: Resolver
    clock: IReactorTime
    budget: QuestionBudget
    answers: Answers = field(default_factory=Answers)
    zone: ProposedZone = field(default_factory=dict)

    @classmethod
    def starting_now(
        cls, resolver: Resolver, clock: IReactorTime, seconds: float = DEADLINE
    ) -> "DnsEvaluator":
        """Create the evaluator of a request that begins now."""
        return cls(resolver, clock, QuestionBudget.starting_now(clock, seconds))

    def shorten_deadline(self, seconds: float) -> None:
        """End all lookups within ``seconds`` at the latest."""
        self.budget.ends_at = min(self.budget.ends_at, self.clock.seconds() + seconds)

    async def evaluate(self, evaluate: Callable[[Answers], Verdict]) -> Verdict:
        """Run an evaluation until no answer is missing, or the budget is spent.

        Each run works on its own copy of the answers, since several may run concurrently.
        """
        answers = Answers(dict(self.answers.known), given_up=self.answers.given_up)
        try:
            return await evaluate_with_dns(
                self.resolver,
                lambda known: evaluate(self._seen(known)),
                clock=self.clock,
                budget=self.budget,
                answers=answers,
            )
        finally:
            self.answers.known.update(answers.known)

    async def evaluate_again(self, evaluate: Callable[[Answers], Verdict]) -> Verdict:
        """Run an evaluation as `evaluate` does, but without delay if no answer is missing."""
        self.answers.missing.clear()
        verdict = evaluate(self._seen(self.answers))
        return await self.evaluate(evaluate) if self.answers.missing else verdict

    def records_at(self, name: str, rdtype: str) -> tuple[Rdata, ...]:
        """Return the known records of a name, including records found through an alias."""
        seen = self._seen(self.answers)
        known = [question for question in self.answers.known if question.rdtype == rdtype]
        answers = (
            seen.lookup(question.name, rdtype) for question in (DnsQuestion(name, rdtype), *known)
        )
        found = (
            answer.records
            for answer in answers
            if answer is not None and final_name_of(answer) == name
        )
        return next(found, ())

    def _seen(self, answers: Answers) -> Answers:
        return Overlay(answers, zone=self.zone) if self.zone else answers


async def evaluate_with_dns(
    resolver: Resolver,
    evaluate: Callable[[Answers], Verdict],
    *,
    clock: IReactorTime,
    budget: QuestionBudget,
    answers: Answers | None = None,
) -> Verdict:
    """Run ``evaluate`` until no answer is missing, and return its last verdict.

    Questions over the budget are answered as excessive, and questions without an answer at its end
    as timed out. The verdict says "could not be determined" for them.

    :param answers: the answers that are known already; new ones are added.
    """
    answers = Answers() if answers is None else answers
    open_questions = _OpenQuestions(resolver, clock, answers, budget)
    try:
        while True:
            answers.missing.clear()
            began = clock.seconds()
            verdict = evaluate(answers)
            if not answers.missing:
                return verdict
            took = clock.seconds() - began
            new = [question for question in answers.missing if question not in open_questions]
            if new:
                granted = budget.take(new, clock.seconds())
                for question in granted:
                    open_questions.ask(question)
                is_late = clock.seconds() >= budget.ends_at
                left_out = DnsStatus.TIMEOUT if is_late else DnsStatus.EXCESSIVE
                for question in new[len(granted) :]:
                    answers.known[question] = DnsAnswer(question, left_out)
            await open_questions.wait_for_news(budget.ends_at)
            if took >= HEAVY:
                await deferLater(clock, min(REST_SHARE * took, LONGEST_REST))
    finally:
        answers.given_up.update(open_questions.give_up())


class _OpenQuestions:
    """The pending lookups. Their answers are added to ``answers.known``."""

    def __init__(
        self, resolver: Resolver, clock: IReactorTime, answers: Answers, budget: QuestionBudget
    ) -> None:
        self._resolver = resolver
        self._clock = clock
        self._answers = answers
        self._budget = budget
        self._lookups: dict[DnsQuestion, Deferred[DnsAnswer]] = {}
        self._has_news = False
        self._crash: Failure | None = None
        self._waiter: Deferred[None] | None = None
        self._patience: IDelayedCall | None = None

    def __contains__(self, question: DnsQuestion) -> bool:
        return question in self._lookups

    def ask(self, question: DnsQuestion) -> None:
        if self._budget.is_spent:  # by a previous question that was answered immediately
            self._answers.known[question] = DnsAnswer(question, DnsStatus.EXCESSIVE)
            return
        self._lookups[question] = lookup = self._resolver.lookup(question)
        lookup.addCallbacks(self._accept, self._note_crash, errbackArgs=(question,))

    async def wait_for_news(self, ends_at: float) -> None:
        """Wait until all lookups have answered, some have and the rest is slow, or time is up."""
        if self._lookups:
            self._waiter = Deferred()
            end = self._clock.callLater(max(0, ends_at - self._clock.seconds()), self._end)
            try:
                self._tell()
                await self._waiter
            finally:
                self._waiter = None
                for timer in (end, self._patience):
                    stop_timer(timer)
                self._patience = None
        self._has_news = False
        if self._crash is not None:
            self._crash.raiseException()

    def give_up(self) -> list[DnsQuestion]:
        """Cancel the pending lookups and return their questions."""
        lookups, self._lookups = self._lookups, {}
        for lookup in lookups.values():
            lookup.cancel()
        return list(lookups)

    def _accept(self, answer: DnsAnswer) -> None:
        if self._lookups.pop(answer.question, None) is not None:
            self._answers.known[answer.question] = answer
            self._has_news = True
            self._budget.note(answer)
            if self._budget.is_spent:
                self._end(DnsStatus.EXCESSIVE)
            else:
                self._tell()

    def _note_crash(self, failure: Failure, question: DnsQuestion) -> None:
        # Lookups that `give_up` has cancelled are no longer in the dictionary.
        if self._lookups.pop(question, None) is not None:
            self._crash = failure
            self._wake()

    def _tell(self) -> None:
        if not self._lookups:
            self._wake()
        elif self._has_news and self._waiter is not None and self._patience is None:
            self._patience = self._clock.callLater(PATIENCE, self._wake)

    def _end(self, status: DnsStatus = DnsStatus.TIMEOUT) -> None:
        for question in self.give_up():
            self._answers.known[question] = DnsAnswer(question, status)
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.callback(None)
