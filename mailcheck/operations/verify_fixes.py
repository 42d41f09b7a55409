"""Proving advice before it is shown: the one place where records are tried.

Each finding's record is judged alone, by the evaluation that found it, over the answers
that it had. What fails alone is tried beside the records that were proven before it:
faults that belong together are mended together. A name has one record in the end, so
that whoever publishes all of them from top to bottom undoes nothing.
"""

from collections.abc import Callable, Iterable
from itertools import chain

from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.overlay import Change, Overlay, format_rdata
from mailcheck.checks.proofs import NotProven, Outcome, Proofs, ProvenFix, is_resolved
from mailcheck.operations.dns_evaluation import DnsEvaluator

MAX_TRIALS = 16
"""Evaluations for all advice of one check; the worst honest domain needs nine."""

TURNS = 2
"""What is not enough alone is tried again beside what was proven after it."""

Judge = Callable[[Answers], Outcome]
"""Judges by the answers that are known, and names what is missing."""

Attempt = tuple[Change, ...]
"""A record to publish, and behind it those of others' zones without which it does nothing."""

PATIENCE = 2.0
"""Seconds for what has to be asked for proofs, within the budget of the request."""


async def verify_fixes(before: Outcome, judge: Judge, evaluator: DnsEvaluator) -> Proofs:
    """Try the records that the findings propose, in their order, and give those that hold.

    :param before: what ``judge`` says without any of them.
    :param inquiry: has what is published; nothing that it knows is asked again.
    """
    evaluator.shorten_deadline(PATIENCE)
    proving = _Proving(before, judge, evaluator)
    proofs: dict[tuple[str, str], ProvenFix] = {}
    mendable = [
        one
        for one in before.findings
        if one.candidate_records and one.severity is not Severity.UNDETERMINED
    ]
    for _ in range(TURNS):
        for finding in mendable:
            key = finding.id, finding.meaning
            fix = None if key in proofs else await proving.find_fix(finding)
            if fix is not None:
                proofs[key] = fix
    return proofs


class _Proving:
    """The trials of one check, each made once."""

    def __init__(self, before: Outcome, judge: Judge, evaluator: DnsEvaluator) -> None:
        self._before = before
        self._judge = judge
        self._evaluator = evaluator
        self._outcomes: dict[tuple[Change, ...], Outcome] = {(): before}
        self._accepted: dict[tuple[str, str], Attempt] = {}

    async def find_fix(self, finding: Finding) -> ProvenFix | None:
        """Give the record that mends a finding: one that is shown already, else its own."""
        for attempt in self._accepted.values():
            alone = self._outcomes.get(attempt)
            if alone is not None and is_resolved(finding, self._before, alone):
                return self._make(finding, attempt, self._before, alone)
        beside = tuple(map(Change, finding.beside))
        for record in finding.candidate_records:
            attempt = (Change(record, finding.replaced), *beside)
            fix = await self._prove(finding, attempt)
            if fix is not None:
                self._accepted[fix.change.rrset_key] = attempt
                return fix
        return None

    async def _prove(self, finding: Finding, attempt: Attempt) -> ProvenFix | None:
        alone = await self._try(attempt)
        fix = None if alone is None else self._make(finding, attempt, self._before, alone)
        rival = self._accepted.get(attempt[0].rrset_key)
        if alone is not None and fix is not None:
            # Where it takes the place of a record that is shown, nothing may be undone.
            state = None if rival is None else await self._try(rival)
            return None if state is not None and _undoes(state, alone) else fix
        shown = _together(self._accepted.values())
        others = _together(one for one in self._accepted.values() if one is not rival)
        if not others:
            return None
        state, both = await self._try(shown), await self._try(_together((others, attempt)))
        if state is None or both is None or (rival is not None and _undoes(state, both)):
            return None
        return self._make(finding, attempt, state, both, others)

    async def _try(self, changes: Attempt) -> Outcome | None:
        """Judge with some changes; nothing once there were too many trials."""
        if changes not in self._outcomes:
            if len(self._outcomes) > MAX_TRIALS:
                return None
            self._outcomes[changes] = await self._evaluator.evaluate_again(
                lambda answers: self._judge(Overlay(answers, changes))
            )
        return self._outcomes[changes]

    def _make(
        self,
        finding: Finding,
        attempt: Attempt,
        before: Outcome,
        after: Outcome,
        others: Attempt = (),
    ) -> ProvenFix | None:
        change = attempt[0]
        published = self._evaluator.records_at(*change.rrset_key)
        # The values that go, as they are typed into a zone editor.
        removed = tuple(format_rdata(one) for one in published if change.replaces(one))
        beside = tuple(one.record for one in _together((attempt[1:], others)))
        try:
            return ProvenFix(finding, change, removed, before, after, beside)
        except NotProven:
            return None


def _together(attempts: Iterable[Attempt]) -> Attempt:
    """Put attempts into one; two may need the same record of others."""
    return tuple(dict.fromkeys(chain.from_iterable(attempts)))


def _undoes(before: Outcome, after: Outcome) -> bool:
    """Tell whether a fault is there again that was mended."""
    faults = (Severity.ERROR, Severity.WARNING)
    had = {one.id for one in before.findings if one.severity in faults}
    return any(one.id not in had for one in after.findings if one.severity in faults)
