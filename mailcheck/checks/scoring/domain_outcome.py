"""Evaluation results of a domain, for verifying advice."""

from collections.abc import Iterable, Mapping, Sequence

from mailcheck.checks.dkim.evaluate import DkimVerdict
from mailcheck.checks.dmarc.evaluate import DmarcVerdict
from mailcheck.checks.dmarc.policy_advice import can_authenticate
from mailcheck.checks.findings import Finding
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.proofs import Outcome
from mailcheck.checks.scoring.awards import AWARDS
from mailcheck.checks.scoring.evidence import Evidence, is_parked
from mailcheck.checks.scoring.hosts import classify_mx, classify_reverse_dns
from mailcheck.checks.scoring.outcomes import Outcome as Classified
from mailcheck.checks.scoring.score import Judgements, add_up, points_of_dns
from mailcheck.checks.scoring.spf_dkim_dmarc import classify_dkim, classify_dmarc, classify_spf
from mailcheck.checks.spf.record import (
    Qualifier,
)
from mailcheck.checks.spf.tree import SpfNode, SpfVerdict

_STRICTNESS = {None: 0, Qualifier.PASS: 0, Qualifier.NEUTRAL: 1, Qualifier.SOFTFAIL: 2}
_STRICTEST = 3


def outcome_of_records(
    mx: MxVerdict,
    spf: SpfVerdict,
    dmarc: DmarcVerdict,
    dkim: DkimVerdict | None = None,
    more: Iterable[Finding] = (),
    names: Sequence[ReverseDnsVerdict | None] = (),
) -> Outcome:
    """Evaluate DNS records. A change of them gains as many points as it gains in a reputation.

    :param dkim: `None` if keys were not looked up, since no change affects whether they are needed.
    :param more: findings that take no points off.
    :param names: the reverse DNS of a domain that needs none once it is parked, or empty.
    """
    parked = is_parked(spf, mx, dmarc)
    outcomes: list[Classified] = [
        classify_spf(spf)[0],
        classify_dmarc(dmarc)[0],
        classify_mx(mx, is_parked=parked)[0],
        *(classify_reverse_dns(name, mx, is_parked=parked)[0] for name in names),
    ]
    if dkim is not None:
        outcomes.append(classify_dkim(dkim, is_parked=parked)[0])
    points = sum(AWARDS[outcome].points for outcome in outcomes)
    of_keys = () if dkim is None else dkim.findings
    findings = (*spf.findings, *of_keys, *dmarc.findings, *mx.findings, *more)
    return _outcome(mx, spf, dmarc, dkim, findings, score=points)


def outcome_of_evidence(evidence: Evidence, rest: Judgements) -> Outcome:
    """Evaluate a domain by its reputation.

    :param rest: judgements about factors that do not depend on DNS records.
    """
    mx, spf, dmarc, names = evidence.mx, evidence.spf, evidence.dmarc, evidence.reverse_dns
    parked, silent = evidence.is_parked, evidence.uses_no_mail
    of_name = () if names is None or silent else names.findings
    of_keys = () if silent else evidence.dkim.findings
    findings = (*spf.findings, *of_keys, *dmarc.findings, *mx.findings, *of_name)
    points = [*points_of_dns(evidence, is_parked=parked), *(j.award.points for j in rest.values())]
    score = add_up(points) if mx.exists else 0
    return _outcome(mx, spf, dmarc, evidence.dkim, findings, score=score)


def _outcome(
    mx: MxVerdict,
    spf: SpfVerdict,
    dmarc: DmarcVerdict,
    dkim: DkimVerdict | None,
    findings: Sequence[Finding],
    score: int,
) -> Outcome:
    """Return an outcome. That a domain does not exist is its only finding."""
    return Outcome(
        sorted_by_severity(findings if mx.exists else mx.findings),
        score,
        policies_of(spf, dmarc),
        can_authenticate(spf, dkim),
        spf.named,
        spf=trees_of(spf),
        passing=_find_passing(dmarc, dkim),
    )


def trees_of(*verdicts: SpfVerdict | None) -> Mapping[str, SpfNode]:
    """Return the trees of the SPF records that were found, by domain."""
    return {
        verdict.domain: verdict.tree
        for verdict in verdicts
        if verdict is not None and verdict.tree is not None
    }


def _find_passing(dmarc: DmarcVerdict, dkim: DkimVerdict | None) -> frozenset[str]:
    """Name the keys with which signatures pass, and what DMARC accepts besides the domain."""
    keys = () if dkim is None else dkim.usable_keys
    passing = {f"DKIM with the key at {key.record_name}" for key in keys}
    if dmarc.record is not None and not dmarc.record.has_strict_dkim:
        passing.add("DKIM of a subdomain")
    if dmarc.record is not None and not dmarc.record.has_strict_spf:
        passing.add("SPF of a subdomain")
    return frozenset(passing)


def sorted_by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in the order of pages, the worst first."""
    return tuple(sorted(findings, key=lambda one: one.severity.rank))


def policies_of(spf: SpfVerdict | None, dmarc: DmarcVerdict | None) -> Mapping[str, int]:
    """Return the strictness of the policies; advice never weakens one."""
    strictness = {}
    if spf is not None and spf.records:
        end = spf.all_qualifier
        strictness["SPF"] = _STRICTEST if end is Qualifier.FAIL else _STRICTNESS[end]
    if dmarc is not None and dmarc.policy is not None:
        strictness["DMARC"] = dmarc.policy.strictness
    if dmarc is not None and dmarc.record is not None:
        strictness["DKIM alignment"] = int(dmarc.record.has_strict_dkim)
        strictness["SPF alignment"] = int(dmarc.record.has_strict_spf)
    return strictness
