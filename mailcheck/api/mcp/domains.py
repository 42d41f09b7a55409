"""Results of domain checks for agents: shortened and defused REST shapes."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import convert
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
)
from mailcheck.api.domains.mx import MailHost, render_mx_check, render_mx_undetermined
from mailcheck.api.domains.reputation import (
    Factor,
    UngradedReputation,
    render_reputation,
    render_ungradable,
)
from mailcheck.api.mcp.untrusted import PUBLISHED_NOTICE, Summarized, defuse
from mailcheck.api.requests.checks import IP_ADDRESS, SELECTOR, Domain
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.api.shapes import ABSENT, Absent, Shape, Texts, as_json, doc, shape_from
from mailcheck.checks.dnsbl.listings import ListingStatus
from mailcheck.checks.findings import PROBLEMS
from mailcheck.checks.scoring.outcomes import Status
from mailcheck.operations.domains import check_mx
from mailcheck.operations.domains.check_blocklists import BlocklistCheck
from mailcheck.operations.domains.compute_reputation import Reputation
from mailcheck.operations.domains.describe_domain import DomainReport

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
    status = finding.severity.value
    return shape_from(DomainProblem, finding, about=finding.id, status=status, gain=ABSENT)


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
            listings=convert(listed, tuple[ShownListing, ...], from_attributes=True) or ABSENT,
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
            records=None if hosts is None else convert(hosts, tuple[MailHost, ...]),
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
