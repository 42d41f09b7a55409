"""Verification of advice: a record is shown only after our own evaluation has confirmed it.

The evaluation that produced a finding runs again with the record in place (`Overlay`). The
finding must be gone. There must be no new error. The score and the policies must not be lower.
No sender that the published records name may be lost without a reason. Whatever passes must still
pass: an address for each term of the SPF record, the keys, and SPF, DKIM and DMARC of the mail in
question. Only then can a `ProvenFix` be created, and renderers show no other records.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from operator import is_
from types import MappingProxyType
from typing import Generic, TypeVar, TypeVarTuple

from msgspec import Struct
from msgspec import field as msgspec_field

from mailcheck.checks.dns_answers import Answers, DnsAnswer, DnsStatus
from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.checks.overlay import NO_CHANGES, Change, Overlay, VisibleChanges, final_name_of
from mailcheck.checks.spf.passing import find_passing, sample_senders
from mailcheck.checks.spf.record import NamedSender
from mailcheck.checks.spf.tree import SpfNode

Inputs = TypeVarTuple("Inputs")
Verdict = TypeVar("Verdict")


class _RecordingAnswers(Answers):
    """Records the answers that an evaluation reads."""

    def __init__(self, below: Answers, trial: Overlay | None) -> None:
        super().__init__(below.known, below.missing, below.given_up)
        self.trial = trial
        self.is_complete = True
        self._below = below
        self.read: list[DnsAnswer] = []

    def lookup(self, name: str, rdtype: str) -> DnsAnswer | None:
        """Return the answer, and record it."""
        answer = self._below.lookup(name, rdtype)
        if answer is None:
            self.is_complete = False
        else:
            self.read.append(answer)
        return answer


def _trial_of(answers: Answers) -> Overlay | None:
    """Return the trial that answers belong to, or `None` for the published records."""
    if isinstance(answers, _RecordingAnswers):
        return answers.trial
    return answers if isinstance(answers, Overlay) else None


class _CachedVerdict(Generic[Verdict]):
    """A verdict and the RRsets that it depends on, after following CNAMEs."""

    __slots__ = ("_absent", "_keys", "_visible", "inputs", "read", "verdict")

    def __init__(
        self, inputs: tuple[object, ...], reading: _RecordingAnswers, verdict: Verdict
    ) -> None:
        self.inputs = inputs
        self.read = reading.read
        self.verdict = verdict
        names = [
            (final_name_of(answer), answer.question.rdtype, answer.status)
            for answer in reading.read
        ]
        self._keys = frozenset((name, rdtype) for name, rdtype, _ in names)
        self._absent = frozenset(name for name, _, status in names if status is DnsStatus.NXDOMAIN)
        self._visible = self._visible_in(reading.trial)

    def holds_in(self, trial: Overlay | None) -> bool:
        """Return whether a trial changes the verdict's inputs in the same way."""
        return self._visible == self._visible_in(trial)

    def _visible_in(self, trial: Overlay | None) -> VisibleChanges:
        return NO_CHANGES if trial is None else trial.visible_changes(self._keys, self._absent)


class CachedEvaluation(Generic[Verdict, *Inputs]):
    """An evaluation that runs once for the same inputs and the same answers.

    A verdict is reused in each trial that does not change an answer it depends on: a DMARC record
    does not affect the verdict about DKIM keys. An instance lives as long as a request, in which
    answers are only added.
    """

    def __init__(
        self,
        evaluate: Callable[[Answers, *Inputs], Verdict],
        on_verdict: Callable[[Verdict], None] = lambda _: None,
    ) -> None:
        """Create an evaluation.

        :param on_verdict: called with each verdict about published records that misses no answer.
        """
        self._evaluate = evaluate
        self._on_verdict = on_verdict
        self._cached: list[_CachedVerdict[Verdict]] = []

    def __call__(self, answers: Answers, *inputs: *Inputs) -> Verdict:
        """Return the verdict, from the cache if possible."""
        trial = _trial_of(answers)
        for cached in self._cached:
            if cached.holds_in(trial) and cached.inputs == inputs:
                if isinstance(answers, _RecordingAnswers):
                    answers.read += cached.read
                return cached.verdict
        reading = _RecordingAnswers(answers, trial)
        verdict = self._evaluate(reading, *inputs)
        if reading.is_complete:
            self._cached.append(_CachedVerdict(inputs, reading, verdict))
            if trial is None:
                self._on_verdict(verdict)
        return verdict


Result = TypeVar("Result")


class CachedConclusion(Generic[Result, *Inputs]):
    """A function whose result is cached by the identity of its arguments.

    The arguments are verdicts, such as those of `CachedEvaluation`.
    """

    def __init__(self, conclude: Callable[[*Inputs], Result]) -> None:
        self._conclude = conclude
        self._cached: list[tuple[tuple[object, ...], Result]] = []

    def __call__(self, *inputs: *Inputs) -> Result:
        """Return the result, from the cache if possible."""
        for known, result in self._cached:
            if all(map(is_, known, inputs)):
                return result
        result = self._conclude(*inputs)
        self._cached.append((inputs, result))
        return result


class Outcome(Struct, frozen=True):
    """Result of an evaluation: its findings in the order of their weight, and its score.

    ``policies`` is the strictness of each policy (SPF's ``all``, DMARC's), in any unit.
    ``can_authenticate`` is whether SPF or DKIM authenticates the domain's own mail; otherwise
    DMARC's policy applies to it. ``named`` are the senders in any reading of the SPF texts.
    ``spf`` are the trees of SPF records by domain. ``passing`` names the other checks that pass.
    """

    findings: tuple[Finding, ...]
    score: int
    policies: Mapping[str, int] = msgspec_field(default_factory=dict)
    can_authenticate: bool = True
    named: tuple[NamedSender, ...] = ()
    spf: Mapping[str, SpfNode] = msgspec_field(default_factory=dict)
    passing: frozenset[str] = frozenset()

    def ids(self, severity: Severity) -> list[str]:
        """Return the ids of the findings of a severity, one for each occurrence."""
        return [finding.id for finding in self.findings if finding.severity is severity]


class NotProven(Exception):
    """A change does not have the intended effect; the message says why."""


@dataclass(frozen=True, slots=True)
class ProvenFix:
    """A verified change; it can be created only if it passes the verification.

    ``score_before`` and ``score_after`` are in the unit of the evaluation. ``beside`` are records
    that must be published as well, some of them by other owners. ``left_out`` are the senders
    that the published texts name and the new record does not, each with the reason.

    :raises NotProven: the change does not resolve the finding, or makes something worse.
    """

    finding: Finding
    change: Change
    removed: tuple[str, ...]
    before: InitVar[Outcome]
    after: InitVar[Outcome]
    beside: tuple[RecordToPublish, ...] = ()
    left_out: tuple[NamedSender, ...] = field(init=False)
    score_before: int = field(init=False)
    score_after: int = field(init=False)

    def __post_init__(self, before: Outcome, after: Outcome) -> None:
        objection = find_objection(self.finding, before, after)
        if objection:
            raise NotProven(objection)
        object.__setattr__(self, "left_out", tuple(find_lost_senders(before, after)))
        object.__setattr__(self, "score_before", before.score)
        object.__setattr__(self, "score_after", after.score)

    @property
    def record(self) -> RecordToPublish:
        """The record to publish."""
        return self.change.record

    @property
    def gain(self) -> int:
        """Points that the change adds to the score."""
        return self.score_after - self.score_before


def find_objection(finding: Finding, before: Outcome, after: Outcome) -> str:
    """Return why a change is not a fix, or an empty string if it is one."""
    if not is_resolved(finding, before, after):
        return f"{finding.id} is still there"
    if after.score < before.score and not finding.may_cost:
        return "the score falls"
    return find_harm(before, after)


def find_harm(before: Outcome, after: Outcome) -> str:
    """Return what a change makes worse, or an empty string if it makes nothing worse.

    Every record that is offered goes through this function, whether a finding proposes it or not.
    """
    for severity in (Severity.ERROR, Severity.UNDETERMINED):
        now, then = after.ids(severity), before.ids(severity)
        for name in now:
            if now.count(name) > then.count(name):
                return f"the change causes {name}"
    lost = next((sender for sender in find_lost_senders(before, after) if not sender.reason), None)
    if lost is not None:
        return f"{lost.term} would be lost"
    failing = find_failing(before, after)
    if failing:
        return f"{failing} would no longer pass"
    if not after.can_authenticate and _rank_of_dmarc(after) > _rank_of_dmarc(before):
        return "the policy would be for the domain's own mail"
    weaker = [name for name, rank in before.policies.items() if after.policies.get(name, 0) < rank]
    return f"{weaker[0]} would be weaker" if weaker else ""


def find_lost_senders(before: Outcome, after: Outcome) -> Iterator[NamedSender]:
    """Return the senders that are named before a change and not after it."""
    kept = set(after.named)
    return (
        sender
        for sender in before.named
        if sender not in kept and not any(other.covers(sender) for other in after.named)
    )


def find_failing(before: Outcome, after: Outcome) -> str:
    """Return what passes before a change and not after it, or an empty string."""
    labels = sorted(before.passing - after.passing)
    if labels:
        return labels[0]
    for domain, tree in before.spf.items():
        changed = after.spf.get(domain)
        if changed is tree:
            continue
        senders = sample_senders(tree)
        passing = frozenset() if changed is None else find_passing(changed, senders)
        lost = next((sender for sender in senders if sender not in passing), None)
        if lost is not None:
            return f"SPF of {domain} for {lost}"
    return ""


def _rank_of_dmarc(outcome: Outcome) -> int:
    return outcome.policies.get("DMARC", 0)


def is_resolved(finding: Finding, before: Outcome, after: Outcome) -> bool:
    """Return whether a finding is gone, and the number of findings with its id is lower."""
    left = [found for found in after.findings if found.id == finding.id]
    had = sum(found.id == finding.id for found in before.findings)
    return len(left) < had and all(found.meaning != finding.meaning for found in left)


Proofs = Mapping[tuple[str, str], ProvenFix]
"""The verified fix of each finding, by id and meaning of the finding."""

NO_PROOFS: Proofs = MappingProxyType({})


def proof_of(finding: Finding, proofs: Proofs) -> ProvenFix | None:
    """Return the verified fix of a finding, or `None` without one."""
    return proofs.get((finding.id, finding.meaning))
