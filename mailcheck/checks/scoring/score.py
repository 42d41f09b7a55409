"""The reputation score: grade, factors, and the points that each fix would add.

Pure arithmetic. ``sum(impact) == score`` always holds, worse evidence never raises a score, and a
score is from 0 to 100.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from mailcheck.checks.dkim.evaluate import DkimVerdict
from mailcheck.checks.dmarc.evaluate import DmarcVerdict
from mailcheck.checks.dnsbl.listings import Listing, describe_listings
from mailcheck.checks.findings import Finding, Severity, worst
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.starttls import StarttlsVerdict
from mailcheck.checks.scoring.awards import AWARDS, GRADES, MAX_UNDETERMINED, MAXIMA, Award
from mailcheck.checks.scoring.blacklists import judge_blacklists
from mailcheck.checks.scoring.evidence import Evidence, is_parked
from mailcheck.checks.scoring.hosts import (
    classify_age,
    classify_mx,
    classify_reverse_dns,
    classify_starttls,
)
from mailcheck.checks.scoring.no_mail import uses_no_mail
from mailcheck.checks.scoring.outcomes import FactorName, Mark, Outcome, Status, mark_of
from mailcheck.checks.scoring.spf_dkim_dmarc import classify_dkim, classify_dmarc, classify_spf
from mailcheck.checks.spf.tree import SpfVerdict

UNDETERMINED_PREFIX = "Could not be determined: "


class Judgement(Struct, frozen=True):
    """A factor before the total is computed: its points, the reason, and the advice."""

    name: FactorName
    award: Award
    detail: str
    fix: Finding | None

    @property
    def mark(self) -> Mark:
        """The mark in a table."""
        return mark_of(self.award.status, is_determined=self.award.is_determined)


class Factor(Struct, frozen=True):
    """One factor of a score.

    ``impact`` is the contribution of the factor to the score; ``gain`` is that of a fix.
    ``fix`` is the finding that says how, if there is something to fix.
    """

    name: FactorName
    status: Status
    detail: str
    impact: int
    is_determined: bool
    maximum: int
    gain: int
    fix: Finding | None

    @property
    def mark(self) -> Mark:
        """The mark in a table."""
        return mark_of(self.status, is_determined=self.is_determined)


class Score(Struct, frozen=True):
    """A score with its factors, in the order of `FactorName`.

    ``undetermined_points`` is the sum of the maxima of undetermined factors. Above 40,
    ``is_gradable`` is false and the score is meaningless.
    """

    score: int
    grade: str
    factors: tuple[Factor, ...]
    undetermined_points: int

    @property
    def is_gradable(self) -> bool:
        """Whether enough is known for a grade."""
        return self.undetermined_points <= MAX_UNDETERMINED

    @property
    def undetermined(self) -> tuple[FactorName, ...]:
        """Factors that could not be determined."""
        return tuple(factor.name for factor in self.factors if not factor.is_determined)


def compute_score(evidence: Evidence) -> Score:
    """Compute the score of a domain; a domain that does not exist gets 0."""
    judgements = judge(evidence) if evidence.mx.exists else _judge_nothing(evidence)
    return score_judgements(judgements, exists=evidence.mx.exists)


def _judge_nothing(evidence: Evidence) -> tuple[Judgement, ...]:
    """Judge a domain that does not exist: it has no points, and this is the only problem."""
    (finding,) = evidence.mx.findings
    award = Award(0, Status.FAIL)
    return tuple(
        Judgement(
            name, award, "The domain does not exist.", finding if name is FactorName.MX else None
        )
        for name in FactorName
    )


Judgements = Mapping[FactorName, Judgement]


def judge(evidence: Evidence) -> tuple[Judgement, ...]:
    """Judge each factor separately, in the order of `FactorName`."""
    judgements = {**judge_dns(evidence), **judge_rest(evidence)}
    return tuple(judgements[name] for name in FactorName)


def judge_dns(evidence: Evidence) -> Judgements:
    """Judge the factors that depend on DNS records."""
    is_parked, reverse_dns = evidence.is_parked, evidence.reverse_dns
    of_name = () if reverse_dns is None else reverse_dns.findings
    if evidence.uses_no_mail:
        of_name = _of_unused(evidence.mx, evidence.dmarc, is_parked=is_parked)
    classified = classify_reverse_dns(reverse_dns, evidence.mx, is_parked=is_parked)
    return {
        **judge_records(evidence.spf, evidence.dkim, evidence.dmarc, evidence.mx),
        **_judge(FactorName.REVERSE_DNS, classified, of_name),
    }


def judge_spf(spf: SpfVerdict) -> Judgements:
    """Judge the SPF record alone."""
    return _judge(FactorName.SPF, classify_spf(spf), spf.findings)


def judge_dmarc(dmarc: DmarcVerdict) -> Judgements:
    """Judge the DMARC record alone."""
    return _judge(FactorName.DMARC, classify_dmarc(dmarc), dmarc.findings)


def judge_mx(mx: MxVerdict) -> Judgements:
    """Judge the MX records alone, unless their result depends on the other records."""
    if mx.is_null_mx or not mx.exists:
        return {}
    return _judge(FactorName.MX, classify_mx(mx, is_parked=False), mx.findings)


def judge_records(
    spf: SpfVerdict, dkim: DkimVerdict, dmarc: DmarcVerdict, mx: MxVerdict
) -> Judgements:
    """Judge the records of the domain itself."""
    parked, of_keys = is_parked(spf, mx, dmarc), dkim.findings
    if uses_no_mail(spf, mx):
        of_keys = _of_unused(mx, dmarc, is_parked=parked)
    return {
        **judge_spf(spf),
        **_judge(FactorName.DKIM, classify_dkim(dkim, is_parked=parked), of_keys),
        **judge_dmarc(dmarc),
        **_judge(FactorName.MX, classify_mx(mx, is_parked=parked), mx.findings),
    }


def _of_unused(mx: MxVerdict, dmarc: DmarcVerdict, *, is_parked: bool) -> tuple[Finding, ...]:
    """Return the findings about keys and names of a domain that sends no mail.

    Neither is needed once all records declare that no mail is used.
    """
    return () if is_parked else (*mx.findings, *dmarc.findings)


def points_of_dns(evidence: Evidence, *, is_parked: bool) -> list[int]:
    """Return the points of each of these factors."""
    names, mx = evidence.reverse_dns, evidence.mx
    classified: list[tuple[Outcome, str]] = [
        classify_spf(evidence.spf),
        classify_dkim(evidence.dkim, is_parked=is_parked),
        classify_dmarc(evidence.dmarc),
        classify_mx(mx, is_parked=is_parked),
        classify_reverse_dns(names, mx, is_parked=is_parked),
    ]
    return [AWARDS[outcome].points for outcome, _ in classified]


def judge_rest(evidence: Evidence) -> Judgements:
    """Judge the factors that depend on hosts, registry and blocklists."""
    return {
        **judge_encryption(evidence.starttls),
        **judge_age(evidence.registration),
        **judge_listings(evidence.listings),
    }


def judge_encryption(starttls: StarttlsVerdict) -> Judgements:
    """Judge the encryption of mail to the domain."""
    return _judge(FactorName.STARTTLS, classify_starttls(starttls), starttls.findings)


def judge_age(registration: RegistrationVerdict) -> Judgements:
    """Judge the age of the registration."""
    return _judge(FactorName.DOMAIN_AGE, classify_age(registration), registration.findings)


def judge_listings(listings: Sequence[Listing]) -> Judgements:
    """Judge the results of the blocklists."""
    name, blacklists = FactorName.BLACKLISTS, judge_blacklists(listings)
    findings = describe_listings(listings)
    return {name: _make_judgement(name, blacklists.award, blacklists.detail, findings)}


def _judge(
    name: FactorName, classified: tuple[Outcome, str], findings: Sequence[Finding]
) -> Judgements:
    outcome, detail = classified
    return {name: _make_judgement(name, AWARDS[outcome], detail, findings)}


def add_up(points: Sequence[int]) -> int:
    """Return the score for these points."""
    return sum(_impacts(points))


def score_judgements(judgements: Sequence[Judgement], *, exists: bool = True) -> Score:
    """Add up the points; negative ones never take the score below 0.

    :param exists: whether the domain exists; otherwise no fix adds points.
    """
    impacts = _impacts([judgement.award.points for judgement in judgements])
    score = sum(impacts)
    factors = tuple(
        Factor(
            name=judgement.name,
            status=judgement.award.status,
            detail=judgement.detail,
            impact=impact,
            is_determined=judgement.award.is_determined,
            maximum=MAXIMA[judgement.name],
            gain=_score_with(judgements, judgement.name) - score if exists else 0,
            fix=judgement.fix,
        )
        for judgement, impact in zip(judgements, impacts, strict=True)
    )
    undetermined = sum(factor.maximum for factor in factors if not factor.is_determined)
    return Score(score, grade_of(score), factors, undetermined)


def grade_of(score: int) -> str:
    """Return the grade of a score."""
    return next(grade for reached, grade in GRADES if score >= reached)


def _impacts(points: Sequence[int]) -> list[int]:
    merits = sum(point for point in points if point > 0)
    return [max(point, -merits) for point in points]


def _score_with(judgements: Sequence[Judgement], fixed: FactorName) -> int:
    """Compute the score with one factor at its maximum."""
    return add_up([MAXIMA[fixed] if j.name is fixed else j.award.points for j in judgements])


def _make_judgement(
    name: FactorName, award: Award, detail: str, findings: Sequence[Finding]
) -> Judgement:
    if not award.is_determined:
        detail = UNDETERMINED_PREFIX + detail
    fix = worst(finding for finding in findings if finding.severity is not Severity.NOTE)
    needs_fix = award.points < MAXIMA[name] or (
        fix is not None and fix.severity is not Severity.UNDETERMINED
    )
    return Judgement(name, award, detail, fix if needs_fix else None)
