"""DMARC and TLS reports and complaints for agents, and the plan of a DMARC policy."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from msgspec.structs import replace

from mailcheck.api.domains.findings import render_record
from mailcheck.api.domains.report_overviews import SplitOfMail, render_split
from mailcheck.api.mcp.untrusted import PUBLISHED_NOTICE, Summarized, clean_line, defuse
from mailcheck.api.requests.fields import FLAG, NAME, PageNumber
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.api.shapes import ABSENT, Absent, Shape, Texts, doc
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.receiver_reports.complaints import (
    FeedbackGroup,
    FeedbackSums,
    advise_feedback,
    explain_feedback,
)
from mailcheck.checks.receiver_reports.plan import PlanState, StepKind
from mailcheck.checks.receiver_reports.sender_texts import advise, explain
from mailcheck.checks.receiver_reports.senders import Sender
from mailcheck.checks.receiver_reports.tls import explain_failure, is_known_result
from mailcheck.core.domains.receiver_reports import (
    OTHER_SENDERS,
    Feedback,
    ReportKind,
    ReportPlaces,
)
from mailcheck.operations.reports.plan_policy import PolicyPlan, ShownStep, explain_step
from mailcheck.operations.reports.show_reports import TlsOverview, TlsSum
from mailcheck.operations.reports.summarize_senders import ShownOverview, ShownSender
from mailcheck.store.domains.report_sums import ReportedDomain

NO_NAME = "(no valid name)"
"""Replaces a reporter's text that should be a name but is not a valid one."""

_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.:-]{0,251}[a-z0-9_])?", re.IGNORECASE | re.ASCII)
"""A domain, a selector or an IP address. It contains no spaces, so it cannot be a sentence."""

MOST_SENDERS, MOST_ADDRESSES, MOST_REPORTERS, MOST_CAMPAIGNS = 20, 5, 10, 10


class GetReportsArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``get_reports``."""

    domain: Annotated[Annotated[str, NAME] | None, Description(brief="omit to list domains")] = None
    plan: Annotated[bool, FLAG, Description(brief="")] = False
    page: Annotated[PageNumber, Description(brief="")] = 1


class ReportRow(Shape):
    """A sender in DMARC reports, or a mail host in TLS reports with sessions as messages."""

    kind: str
    name: str
    messages: int
    failing: int
    meaning: str
    fix: str
    reporters_wrote: Annotated[str, doc("text of the reporters")]


class ReportsFrom(Shape):
    """A reporter, with the number of messages in its reports."""

    name: str
    messages: int


class PlanOfPolicy(Shape):
    """Whether the next DMARC policy is safe. The missing steps are the rows of the result."""

    state: PlanState
    policy: Annotated[Policy | None, doc("policy now; null: undetermined")]
    next_policy: Policy | None
    publish: Annotated[str | None, doc("the safe record; null: not safe yet")]
    doubts: Texts


class ReportsResult(Summarized):
    """The contents of DMARC and TLS reports, and complaints, or a plan of the DMARC policy."""

    domains: Texts
    reported: tuple[ReportRow, ...]
    hint: Annotated[str | Absent, doc("why there is no result and what to do")] = ABSENT
    mail: Annotated[SplitOfMail | Absent, doc("whose the messages of DMARC reports are")] = ABSENT
    sources: tuple[ReportsFrom, ...] | Absent = ABSENT
    next_page: int | Absent = ABSENT
    plan: PlanOfPolicy | Absent = ABSENT


def render_policy_plan(plan: PolicyPlan, domains: Sequence[ReportedDomain]) -> ReportsResult:
    """Render the plan of a domain, with its missing steps as rows."""
    is_decided = all(step.step.kind is not StepKind.DECIDE for step in plan.steps)
    ways = f"mailcheck dmarc plan {plan.domain} --mine NAME (or --not-mine)"
    return ReportsResult(
        PUBLISHED_NOTICE,
        f"Plan of the DMARC policy: {plan.state.value}",
        hint=ABSENT if is_decided else f"a person decides on the page, or with: {ways}",
        domains=_known(domains),
        reported=tuple(map(_missing_step, plan.steps[:MOST_SENDERS])),
        mail=render_split(plan.mail) if plan.messages else ABSENT,
        plan=PlanOfPolicy(
            plan.state,
            plan.policy,
            plan.target,
            None if plan.record is None else _published(plan.record),
            plan.doubts,
        ),
    )


def _known(domains: Sequence[ReportedDomain]) -> Texts:
    return tuple(dict.fromkeys(domain.domain for domain in domains))


def _published(record: RecordToPublish) -> str:
    shown = defuse(render_record(record))
    return f"{shown.name} ({shown.type}): {shown.value}"


def _missing_step(shown: ShownStep) -> ReportRow:
    """Render a step. Its name is the key for a decision."""
    names, step = _Names(), shown.step
    name = OTHER_SENDERS if step.others else ""
    if step.sender is not None:
        name = names.name(step.sender.key)
        shown = explain_step(replace(step, sender=names.only_names(step.sender)), shown.set_up)
    elif step.others:
        others = tuple(map(names.name, step.others))
        shown = explain_step(replace(step, others=others), shown.set_up)
    records = (*shown.set_up.records, *shown.set_up.patterns)
    return ReportRow(
        kind=step.kind.value,
        name=name,
        messages=step.messages,
        failing=0 if step.kind is StepKind.SIGN else step.messages,
        meaning=shown.meaning,
        fix=" ".join((shown.fix, *(f"Publish at {_published(record)}" for record in records))),
        reporters_wrote=_joined(names.others),
    )


def render_reports(
    own: ReportPlaces,
    domains: Sequence[ReportedDomain],
    shown: ShownOverview | None,
    tls: TlsOverview | None,
    page: int,
) -> ReportsResult:
    """Render the reports about a domain, or the list of domains if no domain was requested."""
    known = _known(domains)
    hint = None
    if not known:
        hint = (
            f"there are no reports yet: publish rua=mailto:{own.dmarc} in the DMARC record and"
            f" rua=mailto:{own.tls} in the TLS-RPT record"
        )
    elif not (
        (shown is not None and (shown.overview.messages or shown.feedback.types))
        or (tls and tls.results)
    ):
        hint = f"call again with one of these domains: {', '.join(known[:10])}"
    senders = () if shown is None else shown.senders
    results = () if tls is None else tls.results
    campaigns = () if shown is None or page > 1 else shown.feedback.campaigns[:MOST_CAMPAIGNS]
    total = max(shown.total if shown else 0, tls.total if tls else 0)
    return ReportsResult(
        PUBLISHED_NOTICE,
        _summary_of_reports(known, shown),
        hint=hint or ABSENT,
        domains=known,
        reported=(
            *(_sender(sender, shown.feedback) for sender in senders if shown is not None),
            *(_failure(result) for result in results if result.sessions.result),
            *(_campaign(campaign) for campaign in campaigns if campaign.complaints),
        ),
        mail=render_split(shown.overview.mail) if shown and shown.overview.messages else ABSENT,
        sources=tuple(_sources(shown, tls)) or ABSENT,
        next_page=page + 1 if page * MOST_SENDERS < total else ABSENT,
    )


def _summary_of_reports(domains: Texts, shown: ShownOverview | None) -> str:
    if shown is None or not shown.overview.messages:
        return f"reports about {len(domains)} domain{'' if len(domains) == 1 else 's'}"
    failing = sum(sender.sender.failing for sender in shown.senders)
    return f"{shown.overview.messages} reported messages, {failing} of these senders fail DMARC"


def _sources(shown: ShownOverview | None, tls: TlsOverview | None) -> Iterator[ReportsFrom]:
    """Return the largest reporters of DMARC and TLS reports, with their totals."""
    names = _Names()
    dmarc_totals = [] if shown is None else list(shown.overview.reporters.items())
    tls_totals = [] if tls is None else [(o.reporter, o.successful + o.failed) for o in tls.sources]
    for name, count in (*dmarc_totals[:MOST_REPORTERS], *tls_totals[:MOST_REPORTERS]):
        yield ReportsFrom(names.name(name), count)


def _campaign(group: FeedbackGroup) -> ReportRow:
    """Render the complaints about a campaign. Its name is a text of the mails."""
    names = _Names()
    most = next(kind for kind in group.types if kind.is_complaint)
    reporters = ", ".join(map(names.name, group.reporters))
    return ReportRow(
        kind=ReportKind.COMPLAINT.value,
        name=names.name(group.name),
        messages=group.complaints,
        failing=group.failures,
        meaning=f"{explain_feedback(Feedback(most))} Reported by {reporters}.",
        fix=advise_feedback(most),
        reporters_wrote=_joined(names.others),
    )


def _sender(shown: ShownSender, feedback: FeedbackSums) -> ReportRow:
    names = _Names()
    failures, complaints = feedback.about(source.address for source in shown.sender.sources)
    sender = names.only_names(shown.sender)
    fix, record = advise(sender), shown.record
    if record is not None:
        fix = f"{fix} Publish at {_published(record)}"
    listed = f" It is listed by {', '.join(shown.listed)}." if shown.listed else ""
    reported = f" Complaints: {complaints}, failure reports: {failures}."
    reported = reported if complaints or failures else ""
    return ReportRow(
        kind=ReportKind.DMARC.value,
        name=sender.name,
        messages=sender.messages,
        failing=sender.failing,
        meaning=f"{explain(sender)} From {_addresses(sender)}.{listed}{reported}",
        fix=fix,
        reporters_wrote=_joined((*names.others, *sender.reasons)),
    )


def _failure(found: TlsSum) -> ReportRow:
    names, sessions = _Names(), found.sessions
    meaning, fix = explain_failure(sessions.result)
    others = [sessions.reason]
    if is_known_result(sessions.result):
        meaning = f"{sessions.result}: {meaning}"
    else:
        others.insert(0, sessions.result)
    name = names.name(sessions.host or sessions.policy)
    return ReportRow(
        kind=ReportKind.TLS.value,
        name=name,
        messages=found.amount,
        failing=found.amount,
        meaning=meaning,
        fix=fix,
        reporters_wrote=_joined((*names.others, *others)),
    )


class _Names:
    """Separates names from other text of reporters, which it collects in ``others``."""

    def __init__(self) -> None:
        self.others: list[str] = []

    def name(self, text: str) -> str:
        """Return a valid name unchanged, and `NO_NAME` for any other text."""
        if _NAME.fullmatch(text):
            return text
        self.others.append(text)
        return NO_NAME

    def only_names(self, sender: Sender) -> Sender:
        """Return a sender without texts that are not valid names."""
        return replace(
            sender,
            name=self.name(sender.name),
            domain=self.name(sender.domain),
            vouched_for=self._all(sender.vouched_for),
            envelope_domains=self._all(sender.envelope_domains),
            selectors=tuple(
                (self.name(selector), self.name(own)) for selector, own in sender.selectors
            ),
        )

    def _all(self, texts: Iterable[str]) -> Texts:
        return tuple(map(self.name, texts))


def _joined(texts: Iterable[str]) -> str:
    lines = [clean_line(text) for text in dict.fromkeys(texts)]
    return "\n".join(filter(None, lines))


def _addresses(sender: Sender) -> str:
    sources = sender.sources[:MOST_ADDRESSES]
    shown = (f"{source.address} {defuse(source.host)}".strip() for source in sources)
    rest = sender.source_count - MOST_ADDRESSES
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")
