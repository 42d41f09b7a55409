"""The plan for the next DMARC policy as JSON: simulations, missing steps and the record."""

from typing import Annotated

from mailcheck.api.domains.findings import DnsRecord, render_record
from mailcheck.api.domains.report_overviews import MailByWay, SplitOfMail, render_ways
from mailcheck.api.shapes import ABSENT, Absent, Count, Date, Shape, Texts, doc, shape_from
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.receiver_reports import plan as facts
from mailcheck.checks.receiver_reports.plan import PlanState, StepKind
from mailcheck.core.domains.receiver_reports import OTHER_SENDERS, SenderDecision
from mailcheck.operations.reports.plan_policy import PolicyPlan, ShownStep

MOST_STEPS, MOST_LOSSES = 100, 100
"""Maximum number of steps, and of senders of a simulation, in a response."""


class StoppedSender(Shape):
    """The mail of a sender that a policy would have stopped."""

    sender: Annotated[str, doc("key of the sender")]
    name: str
    decision: Annotated[SenderDecision | None, doc("null: undecided")]
    messages: Count


class SimulatedPolicy(Shape):
    """What a policy would have done to the mail in the reports."""

    policy: Policy
    record: Annotated[DnsRecord, doc("the simulated record; see `record` of the plan")]
    stopped: Annotated[SplitOfMail, doc("whose the stopped messages are")]
    senders: Annotated[tuple[StoppedSender, ...], doc("most messages first, at most 100")]


class PlannedStep(Shape):
    """A step that is missing before the next policy is safe."""

    kind: StepKind
    sender: Annotated[
        str | None,
        doc("key of the sender, or `others` for unknown senders; null: about the domain"),
    ]
    name: Annotated[str | None, doc("name of the sender")]
    messages: Annotated[int, doc("messages that the step is about", ge=0)]
    meaning: Annotated[str, doc("the reason in one sentence")]
    fix: Annotated[str, doc("what to do")]
    records: Annotated[
        tuple[DnsRecord, ...],
        doc("records to publish; mailcheck verified that mail or a key passes with them"),
    ]
    patterns: Annotated[
        tuple[DnsRecord, ...],
        doc("form of the records that the service shows; parts in <> differ by account"),
    ]
    last_day: Annotated[Date | Absent, doc("day of the last report about the sender")] = ABSENT
    guide: Annotated[str | Absent, doc("page of the service about its DNS records")] = ABSENT


class DmarcPlan(Shape):
    """The way from the present DMARC policy of a domain to the next one."""

    domain: str
    state: Annotated[
        PlanState,
        doc("safe: publish `record`; steps: do `steps` first; enforced: nothing is left to do"),
    ]
    days: Annotated[int, doc("requested number of days", ge=0)]
    days_with_reports: Count
    first_day: Date | None
    last_day: Date | None
    messages: Count
    failing: Count
    mail: Annotated[SplitOfMail, doc("whose all messages are, as in the overview")]
    ways: Annotated[MailByWay, doc("how the reports came")]
    proven: Annotated[bool, doc("the domain has requested reports to this account in DNS")]
    policy: Annotated[Policy | None, doc("policy that receivers apply now; null: undetermined")]
    next_policy: Annotated[Policy | None, doc("null: undetermined, or no stricter one exists")]
    record: Annotated[DnsRecord | None, doc("record to publish now; null: it is not safe yet")]
    steps: Annotated[tuple[PlannedStep, ...], doc("in order, at most 100")]
    doubts: Annotated[Texts, doc("why the reports do not show enough")]
    simulations: Annotated[
        tuple[SimulatedPolicy, ...],
        doc("of the next policy, and of quarantine or reject; empty if `policy` is null"),
    ]


def render_plan(plan: PolicyPlan) -> DmarcPlan:
    """Render a plan."""
    coverage = plan.coverage
    return shape_from(
        DmarcPlan,
        plan,
        days_with_reports=coverage.days,
        first_day=coverage.first_day,
        last_day=coverage.last_day,
        ways=render_ways(plan.ways),
        proven=plan.ways.is_proven,
        next_policy=plan.target,
        record=None if plan.record is None else render_record(plan.record),
        steps=tuple(map(_step, plan.steps[:MOST_STEPS])),
        simulations=tuple(map(_simulation, plan.simulations)),
    )


def _step(shown: ShownStep) -> PlannedStep:
    step, sender = shown.step, shown.step.sender
    service = None if sender is None else sender.service
    return shape_from(
        PlannedStep,
        step,
        sender=(OTHER_SENDERS if step.others else None) if sender is None else sender.key,
        name=None if sender is None else sender.name,
        meaning=shown.meaning,
        fix=shown.fix,
        records=tuple(map(render_record, shown.set_up.records)),
        patterns=tuple(map(render_record, shown.set_up.patterns)),
        last_day=None if sender is None else sender.last_day,
        guide=None if service is None else service.guide or None,
    )


def _simulation(one: facts.Simulation) -> SimulatedPolicy:
    losses = one.losses[:MOST_LOSSES]
    return shape_from(
        SimulatedPolicy,
        one,
        record=render_record(one.record),
        senders=tuple(shape_from(StoppedSender, loss, sender=loss.key) for loss in losses),
    )
