"""Results of domain checks, reports and watches for agents: shortened and defused REST shapes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from mailcheck.api.domains.blocklists import (
    BlacklistCheck,
    Weight,
    explain_unqueried,
    render_blocklist_check,
)
from mailcheck.api.domains.findings import (
    Beside,
    DomainFinding,
    LeavesOut,
    ProvenRecord,
    Replaces,
    render_findings,
    render_record,
)
from mailcheck.api.domains.mx import MailHost, render_mx_check, render_mx_undetermined
from mailcheck.api.domains.receiver_reports import SplitOfMail, render_split
from mailcheck.api.domains.reputation import (
    Factor,
    UngradedReputation,
    render_reputation,
    render_ungradable,
)
from mailcheck.api.domains.watches import (
    WatchAlert,
    WatchProblem,
    render_history,
    render_page,
    render_shown,
)
from mailcheck.api.mcp.untrusted import PUBLISHED_NOTICE, Summarized, clean_line, defuse
from mailcheck.api.requests.checks import IP_ADDRESS, SELECTOR, Domain
from mailcheck.api.requests.fields import (
    FLAG,
    NAME,
    PageNumber,
)
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.api.shapes import ABSENT, Absent, Shape, Texts, Timestamp, as_json, doc, fields_of
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dnsbl.listings import ListingStatus
from mailcheck.checks.findings import PROBLEMS, RecordToPublish, Severity
from mailcheck.checks.receiver_reports.complaints import (
    FeedbackGroup,
    FeedbackSums,
    advise_feedback,
    explain_feedback,
)
from mailcheck.checks.receiver_reports.plan import PlanState, StepKind
from mailcheck.checks.receiver_reports.senders import Sender, advise, explain
from mailcheck.checks.receiver_reports.tls import explain_failure, is_known_result
from mailcheck.checks.scoring.outcomes import Status
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

Hint = Annotated[str | Absent, doc("why there is no result and what to do")]


FEW_ZONES = 3
"""Maximum number of names of lists that have the same result."""


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


class DomainProblem(Shape):
    """A factor that is not as it should be, or a problem without points."""

    about: Annotated[str, doc("factor, several with the same result, or id of the problem")]
    status: Annotated[str, doc("fail, warn, error, warning, or undetermined, which is not no")]
    meaning: str
    fix: str | Absent = ABSENT
    record: ProvenRecord = ABSENT
    replaces: Replaces = ABSENT
    beside: Beside = ABSENT
    leaves_out: LeavesOut = ABSENT
    gain: Annotated[int | Absent, doc("points that the fix adds")] = ABSENT


class DomainResult(Summarized):
    """The reputation of a domain, with its problems and undetermined factors."""

    domain: str
    score: Annotated[int | None, doc("0 to 100; null: too much is undetermined")]
    grade: Annotated[str | None, doc("A+ A B C D F")]
    problems: tuple[DomainProblem, ...]


class ShownListing(Shape):
    """A list that contains the address or domain."""

    name: str
    zone: str
    weight: Weight
    codes: Texts
    matched: Annotated[Texts, doc("listed parts of the query")]
    meaning: str | None
    reason: Annotated[str | None, doc("TXT record of the listing")]
    delist_url: Annotated[str | None, doc("where to request removal")]


class UnknownLists(Shape):
    """Lists without a usable answer for the same reason."""

    meaning: str
    count: int
    zones: Annotated[Texts, doc("the first zones")]


class BlocklistsResult(Summarized):
    """The results of the blocklists, without the clean ones."""

    query: str
    total_checked: Annotated[int, doc("number of queried lists")]
    total_listed: int
    total_unknown: Annotated[int, doc("number of lists without a usable answer")]
    listings: tuple[ShownListing, ...] | Absent = ABSENT
    unknown: tuple[UnknownLists, ...] | Absent = ABSENT
    addresses: Annotated[Texts | Absent, doc("addresses that were checked for the domain")] = ABSENT


def render_domain_check(found: Reputation, report: DomainReport) -> DomainResult:
    """Render the reputation of a domain, without score and grade if too little is known.

    :param report: contributes the problems that have no points.
    """
    unscored = [finding for finding in report.unscored if finding.severity in PROBLEMS]
    shape: UngradedReputation
    score = grade = None
    if found.score.is_gradable:
        whole = render_reputation(found)
        shape, score, grade = whole, whole.score, whole.grade
        good = sum(factor.status is Status.PASS for factor in whole.factors)
        summary = f"{shape.domain} has the score {score} of 100, grade {grade}: {good} of "
        summary += f"{len(whole.factors)} factors are as they should be"
        if whole.undetermined:
            summary += f", {len(whole.undetermined)} undetermined"
    else:
        failed = render_ungradable(found)
        shape, summary = failed.partial, f"undetermined: {failed.error}"
    if not shape.exists:
        summary = f"{shape.domain} does not exist"
    wrong = [factor for factor in shape.factors if factor.status is not Status.PASS]
    problems = [
        *(_factor(factor) for factor in wrong),
        *map(_unscored, render_findings(unscored, report.proofs)),
    ]
    return defuse(
        DomainResult(PUBLISHED_NOTICE, summary, shape.domain, score, grade, _merged(problems))
    )


def _factor(factor: Factor) -> DomainProblem:
    name, status = factor.name.value, factor.status.value
    if not factor.determined:
        return DomainProblem(name, "undetermined", factor.detail)
    if factor.fix is None:
        return DomainProblem(name, status, factor.detail)
    return replace(_unscored(factor.fix), about=name, status=status, gain=factor.gain or ABSENT)


def _unscored(finding: DomainFinding) -> DomainProblem:
    shared = set(DomainProblem.__struct_fields__) & set(DomainFinding.__struct_fields__)
    fields = {name: getattr(finding, name) for name in shared}
    return DomainProblem(about=finding.id, status=finding.severity.value, **fields)


def _merged(problems: Iterable[DomainProblem]) -> tuple[DomainProblem, ...]:
    """Return the problems. Several with the same text become one."""
    seen: list[DomainProblem] = []
    for problem in problems:
        plain = replace(problem, about="")
        same = next((one for one in seen if replace(one, about="") == plain), None)
        if same is None:
            seen.append(problem)
        else:
            same.about += f", {problem.about}"
    return tuple(seen)


def render_listings(check: BlocklistCheck) -> BlocklistsResult:
    """Render the results of the blocklists."""
    shape = render_blocklist_check(check)
    rows = shape.results
    listed = [row for row in rows if row.status is ListingStatus.LISTED]
    unknown: dict[str, list[str]] = {}
    for row in rows:
        if row.status is ListingStatus.UNKNOWN:
            unknown.setdefault(row.meaning or "no usable answer", []).append(row.zone)
    return defuse(
        BlocklistsResult(
            untrusted=PUBLISHED_NOTICE,
            summary=_summary_of_lists(shape, explain_unqueried(check)),
            query=shape.query,
            total_checked=shape.total_checked,
            total_listed=shape.total_listed,
            total_unknown=shape.total_unknown,
            listings=tuple(ShownListing(**fields_of(row, ShownListing)) for row in listed)
            or ABSENT,
            unknown=tuple(
                UnknownLists(meaning, len(zones), tuple(zones[:FEW_ZONES]))
                for meaning, zones in unknown.items()
            )
            or ABSENT,
            addresses=tuple(shape.addresses) or ABSENT,
        )
    )


def _summary_of_lists(shape: BlacklistCheck, unqueried: str) -> str:
    answered = shape.total_checked - shape.total_unknown
    if not answered:
        told = f"undetermined: none of {shape.total_checked} lists answered; repeat it in a minute"
    elif shape.total_listed:
        told = f"listed by {shape.total_listed} of {answered} lists that answered"
    else:
        told = f"on none of the {answered} lists that answered"
    if answered and shape.total_unknown:
        told += f"; {shape.total_unknown} of {shape.total_checked} did not answer"
    return "; ".join(filter(None, (told, unqueried)))


class MxResult(Summarized):
    """The mail hosts of a domain, with its SPF and DMARC records."""

    domain: str
    has_mx: bool | None
    has_spf: bool | None
    has_dmarc: bool | None
    records: Annotated[tuple[MailHost, ...] | None, doc("mail hosts; null: undetermined")]
    spf_record: str | Absent = ABSENT
    spf_problems: Texts | Absent = ABSENT
    spf_ignored: Annotated[Texts | Absent, doc("malformed SPF records that receivers ignore")] = (
        ABSENT
    )
    dmarc_record: str | Absent = ABSENT
    dmarc_domain: Annotated[
        str | Absent, doc("domain where the record was found, if another one")
    ] = ABSENT
    dmarc_problems: Texts | Absent = ABSENT
    dmarc_ignored: Annotated[
        Texts | Absent, doc("malformed DMARC records that receivers ignore")
    ] = ABSENT


def render_mx(check: check_mx.MxCheck) -> MxResult:
    """Render MX, SPF and DMARC. Undetermined results are null."""
    undetermined = ""
    if check.undetermined:
        failed = render_mx_undetermined(check)
        undetermined, known = f"undetermined: {failed.error}", failed.partial
    else:
        known = as_json(render_mx_check(check))
    hosts = known.get("records")
    where = known.get("dmarcDomain")
    return defuse(
        MxResult(
            untrusted=PUBLISHED_NOTICE,
            summary=undetermined or _summary_of_mx(check.domain, known),
            domain=check.domain,
            has_mx=known.get("hasMx"),
            has_spf=known.get("hasSpf"),
            has_dmarc=known.get("hasDmarc"),
            records=None if hosts is None else msgspec.convert(hosts, tuple[MailHost, ...]),
            spf_record=known.get("spfRecord") or ABSENT,
            spf_problems=tuple(known.get("spfProblems", ())) or ABSENT,
            spf_ignored=tuple(known.get("spfIgnored", ())) or ABSENT,
            dmarc_record=known.get("dmarcRecord") or ABSENT,
            dmarc_domain=ABSENT if where in (None, check.domain) else where,
            dmarc_problems=tuple(known.get("dmarcProblems", ())) or ABSENT,
            dmarc_ignored=tuple(known.get("dmarcIgnored", ())) or ABSENT,
        )
    )


def _summary_of_mx(domain: str, known: Mapping[str, Any]) -> str:
    hosts = len(known["records"])
    mail = f"{hosts} mail host{'' if hosts == 1 else 's'}" if known["hasMx"] else "no MX record"
    records = [f"{'an' if known['hasSpf'] else 'no'} SPF record"]
    records.append(f"{'a' if known['hasDmarc'] else 'no'} DMARC record")
    return f"{domain} has {mail}, {' and '.join(records)}"


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


class ReportsResult(Summarized):
    """The contents of DMARC and TLS reports, and complaints, or a plan of the DMARC policy."""

    domains: Texts
    reported: tuple[ReportRow, ...]
    hint: Hint = ABSENT
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


NEWEST_CHANGES = 20
"""Maximum number of changes of a watch in a result, the newest."""


class ListedWatch(Shape):
    """A watch in a list."""

    id: str
    target: str
    problem_count: Annotated[int | None, doc("current problems; null before the first check")]
    paused: bool | Absent = ABSENT


class OpenAlert(Shape):
    """A problem that lasts."""

    target: str
    severity: Severity
    sentence: str
    opened_at: Timestamp


class WatchesResult(Summarized):
    """The first watches of an account, and its open alerts."""

    total: int
    watches: tuple[ListedWatch, ...]
    open_alerts: tuple[OpenAlert, ...] | Absent = ABSENT


class WatchChange(Shape):
    """A difference between two consecutive checks."""

    component_name = "WatchChangeForAgents"

    at: Timestamp
    before: str | None
    after: str | None
    sentence: str


class WatchResult(Summarized):
    """The problems of a watched target, and its newest changes, oldest first."""

    id: str
    target: str
    score: Annotated[int | None, doc("0 to 100; null for an address or before the first check")]
    problems: tuple[WatchProblem, ...] | Absent = ABSENT
    undetermined: Texts | Absent = ABSENT
    open_alerts: tuple[OpenAlert, ...] | Absent = ABSENT
    changes: tuple[WatchChange, ...] | Absent = ABSENT


def render_watches(page: WatchPage, alerts: Sequence[watches.Alert]) -> WatchesResult:
    """Render the watches of an account."""
    shape = render_page(page, alerts)
    bad = sum(bool(watch.problem_count) for watch in shape.watches)
    return defuse(
        WatchesResult(
            PUBLISHED_NOTICE,
            f"{shape.total} watches, {bad} with problems, {len(shape.open_alerts)} open alerts",
            shape.total,
            tuple(
                ListedWatch(watch.id, watch.target, watch.problem_count, watch.paused or ABSENT)
                for watch in shape.watches
            ),
            tuple(map(_alert, shape.open_alerts)) or ABSENT,
        )
    )


def _alert(alert: WatchAlert) -> OpenAlert:
    return OpenAlert(**fields_of(alert, OpenAlert))


def render_one(shown: WatchDetails, history: History, now: Instant) -> WatchResult:
    """Render one watch."""
    changes = render_history(shown.watch, history, None, now).changes[-NEWEST_CHANGES:]
    watch = render_shown(shown, now)
    alerts = [alert for alert in watch.alerts if alert.ended_at is None]
    checked = "not checked yet" if watch.last_run_at is None else f"{watch.problem_count} problems"
    return defuse(
        WatchResult(
            PUBLISHED_NOTICE,
            f"watch {watch.id}: {checked}, {len(alerts)} open alerts",
            watch.id,
            watch.target,
            watch.score,
            problems=watch.problems or ABSENT,
            undetermined=watch.undetermined or ABSENT,
            open_alerts=tuple(map(_alert, alerts)) or ABSENT,
            changes=tuple(WatchChange(**fields_of(one, WatchChange)) for one in changes) or ABSENT,
        )
    )
