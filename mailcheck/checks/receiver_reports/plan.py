"""The next DMARC policy of a domain, simulated on the mail in its reports.

A plan answers which mail a stricter policy would have stopped in the past, and what to do before
it is published. The simulation counts the failing messages of each sender. The policy for each
From domain comes from our own evaluation of the proposed record (RFC 9989 4.7), so that ``sp``,
``np``, ``t`` and records of subdomains have their effect.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from enum import Enum

from msgspec import Struct

from mailcheck.checks.dmarc.evaluate import DmarcVerdict, change_tags, evaluate_dmarc
from mailcheck.checks.dmarc.record import PREFIX, VERSION, Policy, PolicyRecord
from mailcheck.checks.dns_answers import Answers, Presence
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.overlay import Change, Overlay
from mailcheck.checks.receiver_reports.aggregate import PASS
from mailcheck.checks.receiver_reports.senders import (
    Cause,
    JudgedRow,
    Sender,
    group_by_sender,
    summarize_sender,
    unpack_rows,
)
from mailcheck.checks.tags.tag_lists import parse_tag_list
from mailcheck.core.domains.receiver_reports import (
    MIN_DAYS,
    OTHER_SENDERS,
    Coverage,
    SenderDecision,
)
from mailcheck.core.instants import DAY, Instant

MIN_MESSAGES = 100
"""Minimum number of messages for a safe policy. Fewer show too little of a domain's mail."""

MAX_SILENCE = 4 * DAY
"""Maximum age of the newest day with reports. Receivers report a day on the next one or two."""

SMALL = 10
"""Maximum number of failing messages of a sender that is decided about together with others."""

SMALL_SHARE = 1_000
"""A sender is also small with one failing message in this number of all messages."""

MAX_AUTHORS = 20
"""Maximum number of From domains whose policy is evaluated. The strictest one counts for more."""


MAX_ALONE = 5
"""Maximum number of unknown senders without any passing domain that are decided about one by
one."""

_LIKE_FORGED = (
    *(Cause.NOTHING, Cause.UNSIGNED, Cause.OWN_SPF, Cause.OWN_SPF_BROKEN, Cause.OWN_SPF_ABSENT),
    Cause.OWN_SIGNATURE,
)


class SenderMail(Struct, frozen=True):
    """The mail of a sender, counted for a simulation. The counts are by From domain.

    ``failing`` failed and were not forwarded. ``relayed`` were forwarded and failed, and their
    receivers did not say that they knew it. ``unanswered`` have no result, or failed because a
    receiver got no DNS answer, which is repeated when the mail is sent again. ``signed`` and
    ``unsigned`` count messages that passed with a DKIM signature, and by SPF alone.
    """

    sender: Sender
    failing: Mapping[str, int]
    relayed: Mapping[str, int]
    unanswered: int
    signed: int
    unsigned: int

    @property
    def lost(self) -> int:
        """Number of messages that a policy for all From domains would stop."""
        return sum(self.failing.values()) + sum(self.relayed.values())


def count_mail(packed: bytes, hosts: Mapping[str, str]) -> list[SenderMail]:
    """Count the mail of each sender, those with most failing messages first."""
    grouped = group_by_sender(unpack_rows(packed), hosts)
    counted = [_count(summarize_sender(who, some, hosts), some) for who, some in grouped.items()]
    return sorted(counted, key=lambda one: (-one.lost, -one.sender.messages, one.sender.key))


def _count(sender: Sender, judged: Sequence[JudgedRow]) -> SenderMail:
    failing: Counter[str] = Counter()
    relayed: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for row, found in judged:
        author = row.row.header_from
        if found.cause is Cause.PASSES:
            others["signed" if row.row.dkim == PASS else "unsigned"] += row.messages
        elif found.cause in (Cause.NO_ANSWER, Cause.NO_RESULT):
            others["unanswered"] += row.messages
        elif found.cause is not Cause.FORWARDED:
            failing[author] += row.messages
        elif not row.row.reasons:  # otherwise the receiver makes an exception
            relayed[author] += row.messages
    return SenderMail(
        sender,
        failing,
        relayed,
        others["unanswered"],
        others["signed"],
        unsigned=others["unsigned"],
    )


def find_authors(mail: Iterable[SenderMail]) -> list[str]:
    """Return the From domains of failing mail, by their number of messages."""
    counts: Counter[str] = Counter()
    for sender in mail:
        counts.update(sender.failing)
        counts.update(sender.relayed)
    return [author for author, _ in counts.most_common(MAX_AUTHORS)]


class Proposal(Struct, frozen=True):
    """A DMARC record to simulate, and the policies that it means for From domains.

    A policy is `None` if it could not be determined. ``policy`` is the one for the domain itself.
    """

    policy: Policy
    record: RecordToPublish
    policies: Mapping[str, Policy | None]

    def policy_for(self, author: str) -> Policy | None:
        """Return the policy for mail from a domain."""
        if author in self.policies:
            return self.policies[author]
        known = [policy for policy in self.policies.values() if policy is not None]
        return max((self.policy, *known), key=lambda one: one.strictness)


def effective_policy(verdict: DmarcVerdict) -> Policy:
    """Return the policy that receivers apply to mail from the domain, with ``t`` applied."""
    policy = verdict.policy or Policy.NONE
    is_testing = verdict.record is not None and verdict.record.is_testing
    return policy.one_step_weaker if is_testing else policy


def next_policy(verdict: DmarcVerdict) -> Policy | None:
    """Return the next stricter policy of a domain, or `None` if it has the strictest one.

    A record with ``pct`` below 100 is not the strictest: receivers that still follow RFC 7489 apply
    its policy to a part of the mail only.
    """
    policy = effective_policy(verdict)
    if policy is not Policy.REJECT:
        return list(Policy)[policy.strictness + 1]
    record = verdict.record
    if record is None or verdict.found_at != verdict.domain:
        return None
    is_partial = parse_tag_list(record.text).get("pct") not in (None, "100")
    return Policy.REJECT if is_partial or _weaker(record, Policy.REJECT) else None


def _weaker(record: PolicyRecord, policy: Policy) -> list[str]:
    """Return the tags for subdomains whose policy is weaker than this one."""
    given = {"sp": record.subdomain_policy, "np": record.nonexistent_policy}
    return [
        tag
        for tag, other in given.items()
        if other is not None and other.strictness < policy.strictness
    ]


def propose_record(verdict: DmarcVerdict, policy: Policy) -> RecordToPublish:
    """Return the domain's record with a policy for the domain and its subdomains.

    A record of the organization is not changed: the domain gets a record of its own.
    """
    record, place = verdict.record, verdict.domain
    if record is None:
        return RecordToPublish(PREFIX + place, "TXT", f"v={VERSION}; p={policy.value}")
    changes: dict[str, str | None] = {"p": policy.value, "t": None}
    is_own = verdict.found_at == place
    changes |= dict.fromkeys(_weaker(record, policy) if is_own else ("sp", "np", "psd"))
    step = verdict.walk.step_at(place)
    name = step.alias_of if is_own and step is not None and step.alias_of else PREFIX + place
    return RecordToPublish(name, "TXT", change_tags(record.text, **changes))


def simulate_record(
    record: RecordToPublish, domain: str, authors: Iterable[str], answers: Answers
) -> Proposal:
    """Return the policies that a record means, as if it were published."""
    after = Overlay(answers, (Change(record),))
    policies: dict[str, Policy | None] = {}
    for author in authors:
        verdict = evaluate_dmarc(author, after)
        known = verdict.presence is not Presence.UNDETERMINED
        policies[author] = effective_policy(verdict) if known else None
    return Proposal(effective_policy(evaluate_dmarc(domain, after)), record, policies)


class Loss(Struct, frozen=True):
    """The messages of a sender that a policy would have stopped."""

    key: str
    name: str
    decision: SenderDecision | None
    messages: int


class Simulation(Struct, frozen=True):
    """The effect of a policy on past mail. ``losses`` has the senders with stopped mail.

    The counts are messages of own senders, of undecided senders, and of
    others. ``forwarded`` is the part of all of them that was forwarded.
    """

    policy: Policy
    record: RecordToPublish
    mine: int
    undecided: int
    not_mine: int
    forwarded: int
    losses: tuple[Loss, ...]


Decisions = Mapping[str, SenderDecision]


def find_together(mail: Iterable[SenderMail], total: int) -> frozenset[str]:
    """Return the keys of the senders that are decided about together.

    These are unknown senders with little mail. If many unknown senders have mail for which no
    domain passes, it is forged by many addresses, and all of these senders are among them.
    """
    unknown = [sender for sender in mail if sender.lost and _is_unknown(sender.sender)]
    forging = [sender for sender in unknown if sender.sender.cause in _LIKE_FORGED]
    crowd = forging if len(forging) > MAX_ALONE else []
    small = [sender for sender in unknown if is_small(sender, total)]
    return frozenset(sender.sender.key for sender in (*small, *crowd))


def is_small(one: SenderMail, total: int) -> bool:
    """Return whether a sender is unknown and has little mail."""
    return _is_unknown(one.sender) and one.lost <= max(SMALL, total // SMALL_SHARE)


def _is_unknown(sender: Sender) -> bool:
    return not sender.is_known and sender.service is None


def decision_about(
    one: SenderMail, decisions: Decisions, together: Container[str]
) -> SenderDecision | None:
    """Return the decision about a sender, or the one about all that are decided about together.

    :param together: the keys that `find_together` returns.
    """
    own = decisions.get(one.sender.key)
    if own is None and one.sender.key in together:
        return decisions.get(OTHER_SENDERS)
    return own


def simulate_policy(
    proposal: Proposal, mail: Sequence[SenderMail], decisions: Decisions, total: int
) -> Simulation:
    """Return what a proposed record would have done to the mail of the reports.

    An undetermined policy counts as if it stopped mail.
    """
    losses, counts = [], Counter[SenderDecision | None]()
    together = find_together(mail, total)
    forwarded = 0
    for sender in mail:
        relayed = _stopped(sender.relayed, proposal)
        stopped = _stopped(sender.failing, proposal) + relayed
        if not stopped:
            continue
        decision = decision_about(sender, decisions, together)
        losses.append(Loss(sender.sender.key, sender.sender.name, decision, stopped))
        counts[decision] += stopped
        forwarded += relayed
    return Simulation(
        proposal.policy,
        proposal.record,
        counts[SenderDecision.MINE],
        counts[None],
        counts[SenderDecision.NOT_MINE],
        forwarded=forwarded,
        losses=tuple(sorted(losses, key=lambda one: -one.messages)),
    )


def _stopped(counts: Mapping[str, int], proposal: Proposal) -> int:
    return sum(
        number
        for author, number in counts.items()
        if proposal.policy_for(author) is not Policy.NONE
    )


class StepKind(Enum):
    """Kind of a missing step. The values are part of the API."""

    REQUEST_REPORTS = "request-reports"
    """The domain has no DMARC record that requests reports here."""
    REPAIR = "repair"
    """Receivers cannot use the DMARC record."""
    DECIDE = "decide"
    """A sender of failing mail is undecided."""
    SET_UP = "set-up"
    """Mail of an own sender fails."""
    SIGN = "sign"
    """Mail of a sender passes by SPF alone, which forwarding breaks."""


class PlanStep(Struct, frozen=True):
    """A missing step. ``sender`` is `None` if it is about the domain or about several senders.

    ``messages`` counts the mail that the next policy would have stopped. For `StepKind.SIGN`, it
    counts the mail that passes by SPF alone.
    """

    kind: StepKind
    messages: int
    sender: Sender | None = None
    others: tuple[str, ...] = ()


def find_steps(
    proposal: Proposal, mail: Sequence[SenderMail], decisions: Decisions, total: int
) -> Iterator[PlanStep]:
    """Yield the steps about senders that are missing before a record may be published.

    The order is the one in which they help: decisions first.
    """
    undecided, own, small = [], [], []
    together = find_together(mail, total)
    for sender in mail:
        stopped = _stopped(sender.failing, proposal) + _stopped(sender.relayed, proposal)
        decision = decision_about(sender, decisions, together)
        if not stopped or decision is SenderDecision.NOT_MINE:
            continue
        # A name of the domain itself passes, so the sender is the owner's.
        is_own = sender.sender.cause is Cause.STRICT_ALIGNMENT
        if is_own or decision is SenderDecision.MINE:
            own.append(PlanStep(StepKind.SET_UP, stopped, sender.sender))
        elif _only_forwards(sender):
            continue  # the service sends no mail for the owner
        elif sender.sender.key in together:
            small.append((sender.sender.name, stopped))
        else:
            undecided.append(PlanStep(StepKind.DECIDE, stopped, sender.sender))
    yield from undecided
    if small:
        messages = sum(stopped for _, stopped in small)
        yield PlanStep(StepKind.DECIDE, messages, None, tuple(name for name, _ in small))
    yield from own
    yield from _find_unsigned(mail, decisions, {step.sender for step in own})


def _only_forwards(one: SenderMail) -> bool:
    """Return whether a service forwarded all of its failing mail, which has no signature."""
    service = one.sender.service
    return not one.failing and service is not None and service.forwards_unsigned


def _find_unsigned(
    mail: Iterable[SenderMail], decisions: Decisions, set_up: Container[Sender | None]
) -> Iterator[PlanStep]:
    """Yield the senders that rely on SPF, which forwarding breaks (RFC 9989).

    :param set_up: senders that need a set-up, which includes a signature.
    """
    for sender in mail:
        is_own = decisions.get(sender.sender.key) is not SenderDecision.NOT_MINE
        if is_own and sender.unsigned and not sender.signed and sender.sender not in set_up:
            yield PlanStep(StepKind.SIGN, sender.unsigned, sender.sender)


def find_doubts(coverage: Coverage, total: int, days: int, now: Instant) -> Iterator[str]:
    """Yield why the reports do not show enough to call a policy safe."""
    if coverage.last_day is None:
        yield f"There are no reports about the last {days} days."
        return
    if coverage.days < MIN_DAYS:
        yield (
            f"There are reports about {coverage.days} of the last {days} days. At least"
            f" {MIN_DAYS} days with reports are needed."
        )
    silence = (now - coverage.last_day) // DAY
    if now - coverage.last_day > MAX_SILENCE + DAY:
        yield f"The newest reports are about a day {silence} days ago, so newer mail is unknown."
    if total < MIN_MESSAGES:
        yield (
            f"The reports count {total} messages. At least {MIN_MESSAGES} are needed: choose more"
            " days."
        )


class PlanState(Enum):
    """Result of a plan. The values are part of the API."""

    SAFE = "safe"
    """The next policy stops no own mail."""
    STEPS = "steps"
    """Steps are missing."""
    UNDETERMINED = "undetermined"
    """No step is known, and the reports do not show enough."""
    ENFORCED = "enforced"
    """The domain has the strictest policy, and no own mail is lost."""


def state_of(target: Policy | None, steps: Sequence[object], doubts: Sequence[str]) -> PlanState:
    """Return the state of a plan with these steps and doubts."""
    if steps:
        return PlanState.STEPS
    if doubts:
        return PlanState.UNDETERMINED
    return PlanState.ENFORCED if target is None else PlanState.SAFE
