"""The reputation of a domain as JSON (docs/reference/contract.md)."""

from typing import Annotated, Any, Literal

from mailcheck.api.domains.findings import DomainFinding, render_finding
from mailcheck.api.shapes import (
    ABSENT,
    Absent,
    Count,
    Shape,
    Texts,
    Timestamp,
    doc,
    schema_keywords,
    shape_from,
)
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.dnsbl.listings import ListingStatus, count
from mailcheck.checks.findings import Severity
from mailcheck.checks.hosts.starttls import StarttlsGrade
from mailcheck.checks.proofs import Proofs, proof_of
from mailcheck.checks.quality.topics import topic_of
from mailcheck.checks.scoring import score as scoring
from mailcheck.checks.scoring.awards import GRADES, MAXIMA, SCORING_VERSION
from mailcheck.checks.scoring.evidence import Evidence
from mailcheck.checks.scoring.outcomes import FactorName, Status
from mailcheck.core.instants import format_instant
from mailcheck.operations.domains import compute_reputation

FACTORS = len(FactorName)

Determined = Annotated[bool, doc("false: could not be determined, which does not mean no")]


class Factor(Shape):
    """One factor of a reputation."""

    name: FactorName
    status: Annotated[Status, doc("treat an unknown value as failing")]
    detail: Annotated[str, doc("explanation for people")]
    impact: Annotated[int, doc("points that it contributes; the sum is the score")]
    determined: Determined
    maximum: Annotated[int, doc("maximum number of points", ge=0, le=max(MAXIMA.values()))]
    gain: Annotated[int, doc("points that the proven record adds, or all missing points", ge=0)]
    fix: DomainFinding | None


class MxDetails(Shape):
    """The mail hosts."""

    valid: bool
    count: Count
    primary: Annotated[str, doc("host name; empty if there is none")]
    determined: Determined


class SpfDetails(Shape):
    """The SPF record."""

    valid: bool
    record: Annotated[str, doc("empty if there is none")]
    determined: Determined


class DkimDetails(Shape):
    """The published DKIM keys."""

    valid: bool
    selectors: Texts
    determined: Determined


class DmarcDetails(Shape):
    """The DMARC policy."""

    valid: bool
    policy: Literal["none", "quarantine", "reject", ""]
    rua: Texts
    determined: Determined


class BlacklistDetails(Shape):
    """The results of the blocklists."""

    checked: Annotated[int, doc("lists that answered", ge=0)]
    listed: Count
    clean: bool


class TlsDetails(Shape):
    """Encryption of incoming mail."""

    valid: bool
    starttls: Annotated[bool, doc("whether a mail host offers it")]
    determined: Determined


class AgeDetails(Shape):
    """The age of the domain."""

    valid: bool
    determined: Determined
    years: Annotated[float, doc("years since registration", ge=0)] | Absent = ABSENT
    registration_date: Annotated[str | Absent, schema_keywords(format="date")] = ABSENT


class ReverseDnsDetails(Shape):
    """The reverse DNS of the sending address."""

    valid: bool
    hostname: Annotated[str, doc("empty if there is none")]
    ip: Annotated[str | Absent, doc("the checked address")] = ABSENT
    determined: Determined | Absent = ABSENT


class ReputationDetails(Shape):
    """The results of each check."""

    mx: MxDetails
    spf: SpfDetails
    dkim: DkimDetails
    dmarc: DmarcDetails
    blacklists: BlacklistDetails
    tls: TlsDetails
    domain_age: AgeDetails
    rdns: ReverseDnsDetails


class UngradedReputation(Shape):
    """The known results of a domain that cannot be graded."""

    domain: str
    ip: Annotated[str, doc("of the domain, or of its first mail host; empty if there is none")]
    factors: Annotated[
        tuple[Factor, ...], doc("the same eight every time", min_length=FACTORS, max_length=FACTORS)
    ]
    details: ReputationDetails
    exists: Annotated[bool, doc("false: the domain does not exist (NXDOMAIN)")]
    checked_at: Timestamp
    cached: Annotated[bool, doc("whether the result comes from the cache; see checkedAt")]
    scoring_version: Annotated[str, doc("changes when the points of factors change")]
    undetermined: Annotated[tuple[FactorName, ...], doc("factors that could not be determined")]


GRADE_WORDS = schema_keywords(
    **{
        "enum": [grade for _, grade in GRADES],
        "x-enum-varnames": [grade.replace("+", "_PLUS") for _, grade in GRADES],
    }
)
"""The grades. Generators of clients need names for them, since ``A+`` and ``A`` become the same."""


class Reputation(UngradedReputation):
    """The score and grade of a domain, with their factors."""

    score: Annotated[int, doc("the sum of all impacts", ge=0, le=100)]
    grade: Annotated[str, GRADE_WORDS]


class ReputationUndetermined(Shape):
    """Too much is undetermined to give a grade. `partial` contains the known results."""

    error: str
    partial: UngradedReputation


def render_reputation(found: compute_reputation.Reputation) -> Reputation:
    """Render the score and grade with their factors and details."""
    return Reputation(**_fields(found), score=found.score.score, grade=found.score.grade)


def render_ungradable(found: compute_reputation.Reputation) -> ReputationUndetermined:
    """Render the error for a check with too many undetermined results to give a grade."""
    names = ", ".join(topic_of(name.value).title for name in found.score.undetermined)
    return ReputationUndetermined(
        f"too many factors of {found.domain} could not be determined to give a grade"
        f" ({names}); try again in a minute",
        UngradedReputation(**_fields(found)),
    )


def _fields(found: compute_reputation.Reputation) -> dict[str, Any]:
    first = found.hosts.first_address
    return {
        "domain": found.domain,
        "ip": "" if first is None else str(first),
        "factors": tuple(_factor(factor, found.proofs) for factor in found.score.factors),
        "details": _details(found.evidence),
        "exists": found.evidence.mx.exists,
        "checked_at": format_instant(found.checked_at),
        "cached": found.is_cached,
        "scoring_version": SCORING_VERSION,
        "undetermined": tuple(found.score.undetermined),
    }


def _factor(factor: scoring.Factor, proofs: Proofs) -> Factor:
    """Render a factor. Its gain is that of the proven record, or all missing points."""
    proven = None if factor.fix is None else proof_of(factor.fix, proofs)
    return shape_from(
        Factor,
        factor,
        gain=factor.gain if proven is None else max(0, proven.gain),
        fix=None if factor.fix is None else render_finding(factor.fix, proofs),
    )


def _details(evidence: Evidence) -> ReputationDetails:
    """Render the results. ``determined`` distinguishes "no" from "undetermined"."""
    spf, dkim = evidence.spf, evidence.dkim
    return ReputationDetails(
        mx=_mx(evidence),
        spf=SpfDetails(
            spf.record is not None and not spf.is_broken, spf.record or "", spf.is_complete
        ),
        dkim=DkimDetails(
            bool(dkim.usable_keys),
            tuple(key.selector for key in dkim.keys),
            dkim.presence is not Presence.UNDETERMINED,
        ),
        dmarc=_dmarc(evidence),
        blacklists=_blacklists(evidence),
        tls=TlsDetails(
            evidence.starttls.grade is StarttlsGrade.VERIFIED,
            evidence.starttls.is_offered,
            evidence.starttls.grade is not StarttlsGrade.UNDETERMINED,
        ),
        domain_age=_age(evidence),
        rdns=_reverse_dns(evidence),
    )


def _mx(evidence: Evidence) -> MxDetails:
    mx = evidence.mx
    return MxDetails(
        valid=any(host.is_usable for host in mx.hosts),
        count=len(mx.hosts),
        primary=mx.hosts[0].exchange if mx.hosts else "",
        determined=mx.presence is not Presence.UNDETERMINED,
    )


def _dmarc(evidence: Evidence) -> DmarcDetails:
    dmarc = evidence.dmarc
    return DmarcDetails(
        valid=dmarc.presence is Presence.FOUND,
        policy="" if dmarc.policy is None else dmarc.policy.value,
        rua=() if dmarc.record is None else tuple(uri.text for uri in dmarc.record.rua),
        determined=dmarc.presence is not Presence.UNDETERMINED,
    )


def _blacklists(evidence: Evidence) -> BlacklistDetails:
    listed = count(evidence.listings, ListingStatus.LISTED)
    clean = count(evidence.listings, ListingStatus.CLEAN)
    return BlacklistDetails(listed + clean, listed, clean > 0 and listed == 0)


def _age(evidence: Evidence) -> AgeDetails:
    registration = evidence.registration
    date, is_known = registration.registration_date, registration.registered_at is not None
    determined = registration.presence is not Presence.UNDETERMINED
    if date is None or registration.years is None:
        return AgeDetails(is_known, determined)
    return AgeDetails(is_known, determined, registration.years, date.isoformat())


def _reverse_dns(evidence: Evidence) -> ReverseDnsDetails:
    found = evidence.reverse_dns
    if found is None:
        return ReverseDnsDetails(valid=False, hostname="")
    return ReverseDnsDetails(
        valid=found.is_confirmed is True,
        hostname=found.host_name or "",
        ip=str(found.address),
        determined=all(finding.severity is not Severity.UNDETERMINED for finding in found.findings),
    )
