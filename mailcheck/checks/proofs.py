"""Advice that is proven: a record is shown only after our own evaluation has judged it.

The evaluation that found something is run once more over the answers that are
known, with the record in its place (`Overlay`). Its finding must be gone, no new
error may have come, neither score nor policy may fall, and no sender that the
published texts name may be lost without a reason. Only then a
`ProvenFix` can be made, and renderers show no other record.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from ipaddress import IPv4Network, IPv6Network
from operator import is_, le
from types import MappingProxyType
from typing import Generic, TypeVar, TypeVarTuple

from msgspec import Struct
from msgspec import field as msgspec_field

from mailcheck.checks.dns_answers import Answers, DnsAnswer, DnsStatus
from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.checks.overlay import NO_CHANGES, Change, Overlay, VisibleChanges, final_name_of

Given = TypeVarTuple("Given")
Verdict = TypeVar("Verdict")


class _Reading(Answers):
    """Notes what an evaluation reads."""

    def __init__(self, below: Answers, trial: Overlay | None) -> None:
        super().__init__(below.known, below.missing, below.given_up)
        self.trial = trial
        self.is_complete = True
        self._below = below
        self.read: list[DnsAnswer] = []

    def lookup(self, name: str, rdtype: str) -> DnsAnswer | None:
        """Give the answer, and note it."""
        answer = self._below.lookup(name, rdtype)
        if answer is None:
            self.is_complete = False
        else:
            self.read.append(answer)
        return answer


def _trial_of(answers: Answers) -> Overlay | None:
    """Give the trial that answers belong to; nothing for what is published."""
    if isinstance(answers, _Reading):
        return answers.trial
    return answers if isinstance(answers, Overlay) else None


class _Made(Generic[Verdict]):
    """A verdict, and what it depends on: name and type of what was read, behind aliases."""

    __slots__ = ("_absent", "_places", "_seen", "inputs", "read", "verdict")

    def __init__(self, inputs: tuple[object, ...], reading: _Reading, verdict: Verdict) -> None:
        self.inputs = inputs
        self.read = reading.read
        self.verdict = verdict
        places = [(final_name_of(one), one.question.rdtype, one.status) for one in reading.read]
        self._places = frozenset((name, rdtype) for name, rdtype, _ in places)
        self._absent = frozenset(name for name, _, status in places if status is DnsStatus.NXDOMAIN)
        self._seen = self._choose(reading.trial)

    def holds_in(self, trial: Overlay | None) -> bool:
        """Tell whether a trial changes the same of what was read for it."""
        return self._seen == self._choose(trial)

    def _choose(self, trial: Overlay | None) -> VisibleChanges:
        return NO_CHANGES if trial is None else trial.visible_changes(self._places, self._absent)


class CachedEvaluation(Generic[Verdict, *Given]):
    """An evaluation that is made once for the same inputs and the same answers.

    A verdict holds for each trial that changes nothing of what was read for it: a record
    of DMARC changes nothing about keys. One lives as long as a request, whose answers
    only become more.
    """

    def __init__(self, evaluate: Callable[[Answers, *Given], Verdict]) -> None:
        self._evaluate = evaluate
        self._made: list[_Made[Verdict]] = []

    def __call__(self, answers: Answers, *inputs: *Given) -> Verdict:
        """Give the verdict."""
        trial = _trial_of(answers)
        for one in self._made:
            if one.holds_in(trial) and one.inputs == inputs:
                if isinstance(answers, _Reading):
                    answers.read += one.read
                return one.verdict
        reading = _Reading(answers, trial)
        verdict = self._evaluate(reading, *inputs)
        if reading.is_complete:
            self._made.append(_Made(inputs, reading, verdict))
        return verdict


Result = TypeVar("Result")


class CachedConclusion(Generic[Result, *Given]):
    """A conclusion that is computed once for the same inputs, compared by identity."""

    def __init__(self, conclude: Callable[[*Given], Result]) -> None:
        self._conclude = conclude
        self._drawn: list[tuple[tuple[object, ...], Result]] = []

    def __call__(self, *inputs: *Given) -> Result:
        """Give it."""
        for given, result in self._drawn:
            if all(map(is_, given, inputs)):
                return result
        result = self._conclude(*inputs)
        self._drawn.append((inputs, result))
        return result


class NamedSender(Struct, frozen=True):
    """A sender that a text names in some reading.

    ``key`` is the same for each way to write mechanism and name, without the lengths of networks.
    ``reason`` says why it may be left out of a record that is proposed; empty where it may not.
    """

    term: str
    key: str
    lengths: tuple[int, int] = (32, 128)
    network: IPv4Network | IPv6Network | None = None
    reason: str = ""

    def covers(self, other: "NamedSender") -> bool:
        """Return whether this sender includes each host that the other one names."""
        if self.network is not None and other.network is not None:
            return _contains(self.network, other.network)
        is_same = self.key == other.key and self.network is other.network
        return is_same and all(map(le, self.lengths, other.lengths))


def _contains(network: IPv4Network | IPv6Network, other: IPv4Network | IPv6Network) -> bool:
    shift = network.max_prefixlen - network.prefixlen
    return (
        network.version == other.version
        and network.prefixlen <= other.prefixlen
        and int(network.network_address) >> shift == int(other.network_address) >> shift
    )


class Outcome(Struct, frozen=True):
    """What an evaluation came to: its findings in the order of their weight, and its score.

    ``policies`` tells how strict each policy is (SPF's end, DMARC's), in any unit;
    ``is_vouched_for`` whether SPF or DKIM vouch for the own mail, to which DMARC's applies else;
    ``named`` are the senders that any reading of the SPF texts names.
    """

    findings: tuple[Finding, ...]
    score: int
    policies: Mapping[str, int] = msgspec_field(default_factory=dict)
    is_vouched_for: bool = True
    named: tuple[NamedSender, ...] = ()

    def ids(self, severity: Severity) -> list[str]:
        """Give the ids of the findings of a severity, each as often as it was found."""
        return [one.id for one in self.findings if one.severity is severity]


class NotProven(Exception):
    """A change does not do what it is meant for; the text says why."""


@dataclass(frozen=True, slots=True)
class ProvenFix:
    """A change that was judged: making one is the proof.

    ``score_before`` and ``score_after`` are those of the evaluation, in its own unit.
    ``beside`` are records that have to be published as well for it to work, some of them by others.
    ``left_out`` are the senders that the published texts name and the record does not, each with
    the reason.

    :raises NotProven: it does not mend the finding, or makes something worse.
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
        """Give the record to publish."""
        return self.change.record

    @property
    def gain(self) -> int:
        """Give what it adds to the score."""
        return self.score_after - self.score_before


def find_objection(finding: Finding, before: Outcome, after: Outcome) -> str:
    """Say why a change is no fix; nothing where it is one."""
    if not is_resolved(finding, before, after):
        return f"{finding.id} is still there"
    for severity in (Severity.ERROR, Severity.UNDETERMINED):
        now, then = after.ids(severity), before.ids(severity)
        for name in now:
            if now.count(name) > then.count(name):
                return f"{name} came of it"
    if after.score < before.score:
        return "the score falls"
    lost = next((one for one in find_lost_senders(before, after) if not one.reason), None)
    if lost is not None:
        return f"{lost.term} would be lost"
    if not after.is_vouched_for and _rank_of_dmarc(after) > _rank_of_dmarc(before):
        return "the policy would be for the domain's own mail"
    weaker = [name for name, rank in before.policies.items() if after.policies.get(name, 0) < rank]
    return f"{weaker[0]} would be weaker" if weaker else ""


def find_lost_senders(before: Outcome, after: Outcome) -> Iterator[NamedSender]:
    """Return the senders that are named before a change and not after it."""
    kept = set(after.named)
    return (
        one
        for one in before.named
        if one not in kept and not any(other.covers(one) for other in after.named)
    )


def _rank_of_dmarc(outcome: Outcome) -> int:
    return outcome.policies.get("DMARC", 0)


def is_resolved(finding: Finding, before: Outcome, after: Outcome) -> bool:
    """Tell whether a finding is gone: it, and one of its kind."""
    left = [one for one in after.findings if one.id == finding.id]
    had = sum(one.id == finding.id for one in before.findings)
    return len(left) < had and all(one.meaning != finding.meaning for one in left)


Proofs = Mapping[tuple[str, str], ProvenFix]
"""By id and meaning of its finding, what was proven to mend it."""

NO_PROOFS: Proofs = MappingProxyType({})


def proof_of(finding: Finding, proofs: Proofs) -> ProvenFix | None:
    """Give the fix of a finding; nothing where none was proven."""
    return proofs.get((finding.id, finding.meaning))
