"""The problems of a domain, each once, in the order in which fixing them gains most."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from mailcheck.checks.dnsbl.listings import describe_listings
from mailcheck.checks.findings import PROBLEMS, Finding, Severity
from mailcheck.checks.proofs import Proofs, ProvenFix, proof_of
from mailcheck.checks.scoring.outcomes import FactorName
from mailcheck.checks.scoring.score import Factor
from mailcheck.operations.domains.compute_reputation import Reputation
from mailcheck.operations.domains.describe_domain import DomainReport


class Problem(Struct, frozen=True):
    """A problem: its topic, its sentence, and the points that fixing it adds.

    ``finding`` says how to fix it, and ``fix`` is a verified record. A factor that only time can
    improve has neither.
    """

    topic: str
    meaning: str
    gain: int
    finding: Finding | None = None
    fix: ProvenFix | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the problem, whichever check has found it."""
        return ("" if self.finding is None else self.finding.id, self.meaning)


def list_problems(reputation: Reputation, report: DomainReport) -> tuple[Problem, ...]:
    """List the problems of a domain, the largest gain first.

    The sum of all gains is what fixing everything adds to the score. What could not be
    determined is not a problem. The report adds the problems that take no points off.
    """
    found: dict[tuple[str, str], Problem] = {}
    for problem in (*_of_factors(reputation), *_without_points(reputation, report)):
        found.setdefault(problem.key, problem)
    return tuple(sorted(found.values(), key=_order))


def total_gain(problems: Sequence[Problem]) -> int:
    """Return the points that fixing all problems adds."""
    return sum(problem.gain for problem in problems)


def _order(problem: Problem) -> tuple[int, int, bool]:
    finding = problem.finding
    rank = Severity.NOTE.rank if finding is None else finding.severity.rank
    return -problem.gain, rank, problem.fix is None


def _of_factors(reputation: Reputation) -> Iterator[Problem]:
    """Yield the gravest problem of each factor."""
    for factor in reputation.score.factors:
        if not factor.is_determined:
            continue
        finding = factor.fix
        if finding is not None and finding.severity is Severity.UNDETERMINED:
            finding = None
        fix = None if finding is None else proof_of(finding, reputation.proofs)
        gain = fix.gain if fix is not None and fix.gain > 0 else factor.gain
        is_problem = finding is not None and finding.severity in PROBLEMS
        if gain or is_problem:
            meaning = factor.detail if finding is None else finding.meaning
            yield Problem(factor.name.value, meaning, gain, finding, fix)


def _without_points(reputation: Reputation, report: DomainReport) -> Iterator[Problem]:
    """Yield all problems as if they took no points off."""
    evidence, factors = reputation.evidence, reputation.score.factors
    names = evidence.reverse_dns
    of_hosts: Mapping[FactorName, Sequence[Finding]] = {
        FactorName.BLACKLISTS: describe_listings(evidence.listings),
        FactorName.STARTTLS: evidence.starttls.findings,
        FactorName.DOMAIN_AGE: evidence.registration.findings,
        FactorName.REVERSE_DNS: () if names is None else names.findings,
    }
    imperfect = {factor.name for factor in factors if _has_room(factor)}
    for name, findings in of_hosts.items():
        if name in imperfect and evidence.mx.exists:
            yield from _of_findings(name.value, findings, reputation.proofs)
    for topic, found in report.findings.items():
        yield from _of_findings(topic, found, report.proofs)


def _has_room(factor: Factor) -> bool:
    return factor.gain > 0 or factor.fix is not None


def _of_findings(topic: str, findings: Sequence[Finding], proofs: Proofs) -> Iterator[Problem]:
    for finding in findings:
        if finding.severity in PROBLEMS:
            yield Problem(topic, finding.meaning, 0, finding, proof_of(finding, proofs))
