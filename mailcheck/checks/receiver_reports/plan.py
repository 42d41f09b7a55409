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
from mailcheck.checks.receiver_reports.origins import (
    Decisions,
    MailSplit,
    SenderMail,
    count_stopped,
    decision_about,
    find_origins,
    find_together,
    split_stopped,
)
from mailcheck.checks.receiver_reports.senders import Cause, Sender
from mailcheck.checks.tags.tag_lists import parse_tag_list
from mailcheck.core.domains.receiver_reports import MIN_DAYS, Coverage, SenderDecision
from mailcheck.core.instants import DAY, Instant

MIN_MESSAGES = 100
"""Minimum number of messages for a safe policy. Fewer show too little of a domain's mail."""

MAX_SILENCE = 4 * DAY
"""Maximum age of the newest day with reports. Receivers report a day on the next one or two."""

MAX_AUTHORS = 20
"""Maximum number of From domains whose policy is evaluated. The strictest one counts for more."""


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

    def stops(self, author: str) -> bool:
        """Return whether failing mail from a domain is stopped."""
        return self.policy_for(author) is not Policy.NONE


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
    """The effect of a policy on past mail: the stopped messages, and the senders with most."""

    policy: Policy
    record: RecordToPublish
    stopped: MailSplit
    losses: tuple[Loss, ...]


def simulate_policy(
    proposal: Proposal, mail: Sequence[SenderMail], decisions: Decisions, total: int
) -> Simulation:
    """Return what a proposed record would have done to the mail of the reports.

    An undetermined policy counts as if it stopped mail.
    """
    together = find_together(mail, total)
    losses = [
        Loss(
            sender.sender.key,
            sender.sender.name,
            decision_about(sender, decisions, together),
            stopped,
        )
        for sender in mail
        if (stopped := _stopped(sender, proposal))
    ]
    return Simulation(
        proposal.policy,
        proposal.record,
        split_stopped(mail, find_origins(mail, decisions), proposal.stops),
        tuple(sorted(losses, key=lambda one: -one.messages)),
    )


def _stopped(sender: SenderMail, proposal: Proposal) -> int:
    counts = (sender.failing, sender.relayed)
    return sum(count_stopped(by_author, proposal.stops) for by_author in counts)


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
        stopped = _stopped(sender, proposal)
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
