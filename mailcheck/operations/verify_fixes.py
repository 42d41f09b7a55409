"""Verifying fixes before they are shown, by evaluating again with the proposed records.

Each record is first tried alone, by the evaluation that made the finding and with its answers. If
that is not enough, it is tried together with the fixes that were verified before it, since some
errors can only be fixed together. Fixes never contradict each other: a user who publishes all of
them from top to bottom undoes none. Each is also tried together with every other one, since two
records can do harm only together: what passes with one of them must pass with both.
"""

from collections.abc import Callable, Iterable
from itertools import chain

from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.overlay import Change, Overlay, format_rdata
from mailcheck.checks.proofs import (
    NotProven,
    Outcome,
    Proofs,
    ProvenFix,
    find_failing,
    find_harm,
    is_resolved,
)
from mailcheck.operations.dns_evaluation import DnsEvaluator

MAX_TRIALS = 64
"""Maximum number of evaluations per check. The worst legitimate domain needs nine for its records,
and one for each pair. The evaluation of a pair repeats only the parts that both records change."""

TURNS = 2
"""Number of rounds. In the second one, records are also tried with fixes that come after them."""

Judge = Callable[[Answers], Outcome]
"""Evaluates the known answers, and names the missing ones."""

Attempt = tuple[Change, ...]
"""A record to publish, and records of other zones that it depends on."""

PATIENCE = 2.0
"""Seconds for additional DNS lookups, within the budget of the request."""


async def verify_fixes(before: Outcome, judge: Judge, evaluator: DnsEvaluator) -> Proofs:
    """Try the records that findings propose, in their order, and return the verified fixes.

    :param before: the outcome of ``judge`` without any of them.
    :param evaluator: has the published records as answers, which are not looked up again.
    """
    evaluator.shorten_deadline(PATIENCE)
    proving = _Proving(before, judge, evaluator)
    proofs: dict[tuple[str, str], ProvenFix] = {}
    mendable = [
        found
        for found in before.findings
        if found.candidate_records and found.severity is not Severity.UNDETERMINED
    ]
    for _ in range(TURNS):
        for finding in mendable:
            key = finding.id, finding.meaning
            fix = None if key in proofs else await proving.find_fix(finding)
            if fix is not None:
                proofs[key] = fix
    return proofs


async def is_harmless(changes: Attempt, judge: Judge, evaluator: DnsEvaluator) -> bool:
    """Return whether records without a finding do no harm; see `find_harm`."""
    before = await evaluator.evaluate(judge)
    after = await evaluator.evaluate(lambda answers: judge(Overlay(answers, changes)))
    return not find_harm(before, after)


class _Proving:
    """The trials of one check. Each combination of changes is evaluated once."""

    def __init__(self, before: Outcome, judge: Judge, evaluator: DnsEvaluator) -> None:
        self._before = before
        self._judge = judge
        self._evaluator = evaluator
        self._outcomes: dict[tuple[Change, ...], Outcome] = {(): before}
        self._accepted: dict[tuple[str, str], Attempt] = {}

    async def find_fix(self, finding: Finding) -> ProvenFix | None:
        """Return a fix for a finding: one that was verified already, or its own record."""
        for attempt in self._accepted.values():
            alone = self._outcomes.get(attempt)
            if alone is not None and is_resolved(finding, self._before, alone):
                return self._make(finding, attempt, self._before, alone)
        beside = tuple(map(Change, finding.beside))
        for record in finding.candidate_records:
            attempt = (Change(record, finding.replaced), *beside)
            fix = await self._prove(finding, attempt)
            if fix is not None and await self._suits_all_others(attempt):
                self._accepted[fix.change.rrset_key] = attempt
                return fix
        return None

    async def _prove(self, finding: Finding, attempt: Attempt) -> ProvenFix | None:
        alone = await self._try(attempt)
        fix = None if alone is None else self._make(finding, attempt, self._before, alone)
        rival = self._accepted.get(attempt[0].rrset_key)
        if alone is not None and fix is not None:
            # A record that replaces another fix must not undo it.
            state = None if rival is None else await self._try(rival)
            return None if state is not None and _undoes(state, alone) else fix
        shown = _together(self._accepted.values())
        others = _together(changes for changes in self._accepted.values() if changes is not rival)
        if not others:
            return None
        state, both = await self._try(shown), await self._try(_together((others, attempt)))
        if state is None or both is None or (rival is not None and _undoes(state, both)):
            return None
        return self._make(finding, attempt, state, both, others)

    async def _suits_all_others(self, attempt: Attempt) -> bool:
        """Return whether all that passes with either of two fixes passes with both."""
        alone = await self._try(attempt)
        for other in self._accepted.values():
            # A record that replaces another one of the same name is published after it.
            is_rival = other[0].rrset_key == attempt[0].rrset_key
            both = alone if is_rival else await self._try(_together((other, attempt)))
            state = await self._try(other)
            if alone is None or both is None or state is None:
                return False
            if any(find_failing(outcome, both) for outcome in (self._before, state, alone)):
                return False
        return True

    async def _try(self, changes: Attempt) -> Outcome | None:
        """Evaluate with changes; return `None` after too many trials."""
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
        # The replaced values, as they are shown in a zone editor.
        removed = tuple(format_rdata(record) for record in published if change.replaces(record))
        beside = tuple(part.record for part in _together((attempt[1:], others)))
        try:
            return ProvenFix(finding, change, removed, before, after, beside=beside)
        except NotProven:
            return None


def _together(attempts: Iterable[Attempt]) -> Attempt:
    """Merge attempts. Two of them may need the same record of another zone."""
    return tuple(dict.fromkeys(chain.from_iterable(attempts)))


def _undoes(before: Outcome, after: Outcome) -> bool:
    """Return whether an error that was fixed is back."""
    faults = (Severity.ERROR, Severity.WARNING)
    had = {finding.id for finding in before.findings if finding.severity in faults}
    return any(finding.id not in had for finding in after.findings if finding.severity in faults)
