"""Asking DNS for an evaluation until it knows enough, within a budget.

The evaluations of `mailcheck.checks` name the questions they need. Here they
are asked, all that are known at one time together, and the evaluation is run
again: as many rounds as its longest chain of dependent answers has links.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from dns.rdata import Rdata
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import Answers, DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.checks.overlay import Overlay, ProposedZone, final_name_of
from mailcheck.ports.resolver import Resolver

MAX_QUESTIONS = 250
"""Questions of one request: the fullest honest domain needs about 180, and an SPF tree
made to amplify must not make thousands."""

MAX_RECORDS = 600
"""Records that one request may be answered with: the fullest honest domain has some 300."""

MAX_OCTETS = 131_072
"""Octets of all its answers: of that domain they are 60,000."""

MAX_ROUNDS = 24
"""Links in a chain of answers: ten nested SPF includes and what hangs on them need fourteen."""

DEADLINE = 10.0
"""Seconds for all rounds of one request."""

PATIENCE = 0.05
"""Seconds that answers wait for the slower ones of their round before they are used: a dead
name server must not hold up what hangs on the others."""

HEAVY = 0.01
"""Seconds of an evaluation after which the next one waits: no honest domain's takes so long."""

REST_SHARE, LONGEST_REST = 4.0, 0.25
"""How long it waits, of the time that it took, and at most (seconds): the reactor has others."""

Verdict = TypeVar("Verdict")


@dataclass(slots=True)
class QuestionBudget:
    """What a request may still ask and be told, and until when (in the clock's seconds).

    One budget may be shared by several evaluations of one request.
    """

    ends_at: float
    questions_left: int = MAX_QUESTIONS
    rounds_left: int = MAX_ROUNDS
    records_left: int = MAX_RECORDS
    octets_left: int = MAX_OCTETS

    @classmethod
    def starting_now(cls, clock: IReactorTime, seconds: float = DEADLINE) -> "QuestionBudget":
        """Make the budget of a request that begins now."""
        return cls(clock.seconds() + seconds)

    @property
    def is_spent(self) -> bool:
        """Tell whether the answers were as many or as large as is read for one request."""
        return self.records_left <= 0 or self.octets_left <= 0

    def note(self, answer: DnsAnswer) -> None:
        """Count an answer."""
        self.records_left -= len(answer.records)
        self.octets_left -= answer.octets

    def take(self, questions: Iterable[DnsQuestion], now: float) -> list[DnsQuestion]:
        """Give those of the questions that may be asked in one more round."""
        if self.rounds_left <= 0 or now >= self.ends_at or self.is_spent:
            return []
        granted = list(questions)[: self.questions_left]
        self.questions_left -= len(granted)
        self.rounds_left -= 1
        return granted


@dataclass(slots=True)
class DnsEvaluator:
    """The questions of one request: what one evaluation has learned is known to the next.

    Records of a proposed ``zone`` are judged as if they were published.
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
        """Make the inquiry of a request that begins now."""
        return cls(resolver, clock, QuestionBudget.starting_now(clock, seconds))

    def shorten_deadline(self, seconds: float) -> None:
        """Wait no longer than this for whatever is still to be asked."""
        self.budget.ends_at = min(self.budget.ends_at, self.clock.seconds() + seconds)

    async def evaluate(self, evaluate: Callable[[Answers], Verdict]) -> Verdict:
        """Ask until an evaluation knows enough, within the budget.

        Each has answers of its own while it asks: several may be under way.
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
        """Ask as `ask` does; at once where nothing is missing, as for most trials."""
        self.answers.missing.clear()
        verdict = evaluate(self._seen(self.answers))
        return await self.evaluate(evaluate) if self.answers.missing else verdict

    def records_at(self, name: str, rdtype: str) -> tuple[Rdata, ...]:
        """Return the records that are known at a place, also where only an alias was asked for."""
        seen = self._seen(self.answers)
        asked = [one for one in self.answers.known if one.rdtype == rdtype]
        answers = (seen.lookup(one.name, rdtype) for one in (DnsQuestion(name, rdtype), *asked))
        found = (one.records for one in answers if one is not None and final_name_of(one) == name)
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
    """Run ``evaluate`` until every question it names is answered; give its last verdict.

    What the budget doesn't cover counts as excessive, and what isn't answered when it ends
    as a time-out: the verdict says "could not be determined" there.

    :param answers: answers that are known already; new ones are added to it.
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
    """Questions under way; their answers go to ``answers.known``."""

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
        if self._budget.is_spent:  # by one that was answered at once
            self._answers.known[question] = DnsAnswer(question, DnsStatus.EXCESSIVE)
            return
        self._lookups[question] = lookup = self._resolver.lookup(question)
        lookup.addCallbacks(self._accept, self._note_crash, errbackArgs=(question,))

    async def wait_for_news(self, ends_at: float) -> None:
        """Return when all have answered, when some have and the rest is slow, or at the end."""
        if self._lookups:
            self._waiter = Deferred()
            end = self._clock.callLater(max(0, ends_at - self._clock.seconds()), self._end)
            try:
                self._tell()
                await self._waiter
            finally:
                self._waiter = None
                for timer in (end, self._patience):
                    if timer is not None and timer.active():
                        timer.cancel()
                self._patience = None
        self._has_news = False
        if self._crash is not None:
            self._crash.raiseException()

    def give_up(self) -> list[DnsQuestion]:
        """Cancel and give what is still open."""
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
        # What we have given up ourselves is no longer among the lookups.
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
