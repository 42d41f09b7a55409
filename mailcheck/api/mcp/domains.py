"""Results of domain checks, reports and watches for agents: shortened and defused REST shapes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec.structs import replace

from mailcheck.api.domains.blocklists import Weight, explain_unqueried, render_blocklist_check
from mailcheck.api.domains.findings import DomainFinding, render_findings, render_record
from mailcheck.api.domains.mx import MailHost, render_mx_check, render_mx_undetermined
from mailcheck.api.domains.receiver_reports import SplitOfMail, render_split
from mailcheck.api.domains.reputation import (
    UngradedReputation,
    render_reputation,
    render_ungradable,
)
from mailcheck.api.domains.watches import (
    Watch,
    WatchAlert,
    WatchChangeShape,
    WatchWithState,
    render_history,
    render_page,
    render_shown,
)
from mailcheck.api.mcp.untrusted import PUBLISHED_NOTICE, Untrusted, clean_line, defuse
from mailcheck.api.requests.checks import IP_ADDRESS, SELECTOR, Domain
from mailcheck.api.requests.fields import (
    FLAG,
    NAME,
    PageNumber,
)
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.api.shapes import ABSENT, Absent, Shape, Texts, as_json, doc, fields_of
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dnsbl.listings import ListingStatus
from mailcheck.checks.findings import PROBLEMS, RecordToPublish
from mailcheck.checks.receiver_reports.complaints import (
    FeedbackGroup,
    FeedbackSums,
    advise_feedback,
    explain_feedback,
)
from mailcheck.checks.receiver_reports.plan import PlanState, StepKind
from mailcheck.checks.receiver_reports.senders import Sender, advise, explain
from mailcheck.checks.receiver_reports.tls import explain_failure, is_known_result
from mailcheck.core.domains import watches
from mailcheck.core.domains.receiver_reports import (
    OTHER_SENDERS,
    Feedback,
    ReportKind,
    ReportPlaces,
)
from mailcheck.core.instants import Instant
from mailcheck.operations.domains import check_mx
from mailcheck.operations.domains.check_blocklists import BlocklistCheck
from mailcheck.operations.domains.compute_reputation import Reputation
from mailcheck.operations.domains.describe_domain import DomainReport
from mailcheck.operations.domains.watches.manage_watches import WatchDetails
from mailcheck.operations.reports.plan_policy import PolicyPlan, ShownStep, explain_step
from mailcheck.operations.reports.show_reports import TlsOverview, TlsSum
from mailcheck.operations.reports.summarize_senders import ShownOverview, ShownSender
from mailcheck.store.domains.report_store import ReportedDomain
from mailcheck.store.domains.watch_store import History, WatchPage

Hint = Annotated[str | None, doc("why there is no result and what to do; otherwise null")]


class CheckDomainArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``check_domain``."""

    domain: Annotated[Domain, Description(brief="of mail addresses, like example.com")]
    selector: Annotated[
        Annotated[str, SELECTOR] | None,
        Description(brief="a DKIM selector of the domain (s= in its signatures)"),
    ] = None
    ip: Annotated[
        Annotated[str, IP_ADDRESS] | None,
        Description(brief="an IP address that it sends mail from"),
    ] = None


class GetReportsArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``get_reports``."""

    domain: Annotated[Annotated[str, NAME] | None, Description(brief="omit to list domains")] = None
    plan: Annotated[bool, FLAG, Description(brief="")] = False
    page: Annotated[PageNumber, Description(brief="")] = 1


class GetWatchArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``get_watch``."""

    watch_id: Annotated[str, NAME, Description(brief="id from list_watches")]


class DomainResult(UngradedReputation):
    """The reputation of a domain. Score and grade are null if too little is known."""

    untrusted: Untrusted
    hint: Hint
    score: Annotated[int | None, doc("0 to 100; null: too much is undetermined, see hint")]
    grade: Annotated[str | None, doc("A+ A B C D F")]
    unscored: Annotated[tuple[DomainFinding, ...], doc("problems without points")]


class ShownListing(Shape):
    """A list with a listing or without a usable answer."""

    name: str
    zone: str
    status: ListingStatus
    weight: Weight
    codes: Texts
    matched: Annotated[Texts, doc("listed parts of the query")]
    meaning: str | None
    reason: Annotated[str | None, doc("TXT record of the listing")]
    delist_url: Annotated[str | None, doc("where to request removal")]


class BlocklistsResult(Shape):
    """The results of the blocklists, without the rows of clean lists."""

    untrusted: Untrusted
    hint: Hint
    query: str
    query_type: Annotated[str, doc("ip or domain")]
    total_checked: Annotated[int, doc("number of queried lists")]
    total_listed: int
    total_unknown: Annotated[int, doc("number of lists without a usable answer")]
    addresses: Annotated[Texts, doc("IP addresses that were checked for the domain")]
    listings: Annotated[tuple[ShownListing, ...], doc("listed and unknown; clean ones are counted")]


def render_domain_check(found: Reputation, report: DomainReport) -> DomainResult:
    """Render the reputation of a domain, without score and grade if too little is known.

    :param report: contributes the problems that have no points.
    """
    unscored = [finding for finding in report.unscored if finding.severity in PROBLEMS]
    shape: UngradedReputation
    if found.score.is_gradable:
        whole = render_reputation(found)
        shape, hint, score, grade = whole, None, whole.score, whole.grade
    else:
        failed = render_ungradable(found)
        shape, hint, score, grade = failed.partial, failed.error, None, None
    return defuse(
        DomainResult(
            **fields_of(shape, UngradedReputation),
            untrusted=PUBLISHED_NOTICE,
            hint=hint,
            score=score,
            grade=grade,
            unscored=render_findings(unscored, report.proofs),
        )
    )


def render_listings(check: BlocklistCheck) -> BlocklistsResult:
    """Render the results of the blocklists."""
    shape = render_blocklist_check(check)
    shown = (ListingStatus.LISTED, ListingStatus.UNKNOWN)
    hint = explain_unqueried(check) or None
    if check.has_no_answer:
        hint = "no list answered, so the result is unknown: call again in a minute"
    return defuse(
        BlocklistsResult(
            untrusted=PUBLISHED_NOTICE,
            hint=hint,
            query=shape.query,
            query_type=shape.query_type,
            total_checked=shape.total_checked,
            total_listed=shape.total_listed,
            total_unknown=shape.total_unknown,
            addresses=shape.addresses,
            listings=tuple(
                ShownListing(**fields_of(row, ShownListing))
                for row in shape.results
                if row.status in shown
            ),
        )
    )


class MxResult(Shape):
    """The mail hosts of a domain, with its SPF and DMARC records."""

    untrusted: Untrusted
    hint: Hint
    domain: str
    has_mx: bool | None
    has_spf: bool | None
    has_dmarc: bool | None
    records: Annotated[tuple[MailHost, ...] | None, doc("mail hosts; null: undetermined")]
    spf_record: str | None
    spf_problems: Texts
    spf_ignored: Annotated[Texts, doc("malformed SPF records that receivers ignore")]
    dmarc_record: str | None
    dmarc_domain: Annotated[str | None, doc("domain where the record was found")]
    dmarc_problems: Texts
    dmarc_ignored: Annotated[Texts, doc("malformed DMARC records that receivers ignore")]


def render_mx(check: check_mx.MxCheck) -> MxResult:
    """Render MX, SPF and DMARC. Undetermined results are null."""
    hint = None
    if check.undetermined:
        failed = render_mx_undetermined(check)
        hint, known = failed.error, failed.partial
    else:
        known = as_json(render_mx_check(check))
    hosts = known.get("records")
    return defuse(
        MxResult(
            untrusted=PUBLISHED_NOTICE,
            hint=hint,
            domain=check.domain,
            has_mx=known.get("hasMx"),
            has_spf=known.get("hasSpf"),
            has_dmarc=known.get("hasDmarc"),
            records=None if hosts is None else msgspec.convert(hosts, tuple[MailHost, ...]),
            spf_record=known.get("spfRecord"),
            spf_problems=tuple(known.get("spfProblems", ())),
            spf_ignored=tuple(known.get("spfIgnored", ())),
            dmarc_problems=tuple(known.get("dmarcProblems", ())),
            dmarc_ignored=tuple(known.get("dmarcIgnored", ())),
            dmarc_record=known.get("dmarcRecord"),
            dmarc_domain=known.get("dmarcDomain"),
        )
    )


NO_NAME = "(no valid name)"
"""Replaces a reporter's text that should be a name but is not a valid one."""

_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.:-]{0,251}[a-z0-9_])?", re.IGNORECASE | re.ASCII)
"""A domain, a selector or an IP address. It contains no spaces, so it cannot be a sentence."""

MOST_SENDERS, MOST_ADDRESSES, MOST_REPORTERS, MOST_CAMPAIGNS = 20, 5, 10, 10


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


class ReportsResult(Shape):
    """The contents of DMARC and TLS reports, and complaints, or a plan of the DMARC policy."""

    untrusted: Untrusted
    hint: Hint
    domains: Texts
    reported: tuple[ReportRow, ...]
    mail: Annotated[SplitOfMail | Absent, doc("whose the messages of DMARC reports are")] = ABSENT
    sources: tuple[ReportsFrom, ...] | Absent = ABSENT
    next_page: int | Absent = ABSENT
    plan: PlanOfPolicy | Absent = ABSENT


def render_policy_plan(plan: PolicyPlan, domains: Sequence[ReportedDomain]) -> ReportsResult:
    """Render the plan of a domain, with its missing steps as rows."""
    is_decided = all(step.step.kind is not StepKind.DECIDE for step in plan.steps)
    ways = f"mailcheck dmarc plan {plan.domain} --mine NAME (or --not-mine)"
    return ReportsResult(
        untrusted=PUBLISHED_NOTICE,
        hint=None if is_decided else f"a person decides on the page of the domain, or with: {ways}",
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
        untrusted=PUBLISHED_NOTICE,
        hint=hint,
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


NEWEST_CHANGES = 20
"""Maximum number of changes of a watch in a result, the newest."""


class WatchesResult(Shape):
    """The first watches of an account, and its open alerts."""

    untrusted: Untrusted
    total: int
    watches: tuple[Watch, ...]
    open_alerts: tuple[WatchAlert, ...]


class WatchResult(Shape):
    """A watch, its current state and its newest changes, oldest first."""

    untrusted: Untrusted
    watch: WatchWithState
    changes: tuple[WatchChangeShape, ...]


def render_watches(page: WatchPage, alerts: Sequence[watches.Alert]) -> WatchesResult:
    """Render the watches of an account."""
    shape = render_page(page, alerts)
    return defuse(WatchesResult(PUBLISHED_NOTICE, shape.total, shape.watches, shape.open_alerts))


def render_one(shown: WatchDetails, history: History, now: Instant) -> WatchResult:
    """Render one watch."""
    changes = render_history(shown.watch, history, None, now).changes[-NEWEST_CHANGES:]
    return defuse(WatchResult(PUBLISHED_NOTICE, render_shown(shown, now), changes))
