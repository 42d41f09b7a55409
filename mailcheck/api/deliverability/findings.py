"""Findings about a mail as JSON, with the points that each deducts."""

from collections.abc import Iterable
from typing import Annotated, Any

from mailcheck.api.domains.findings import AdvisedFinding, render_fix
from mailcheck.api.shapes import ABSENT, Absent, S, doc, shape_from
from mailcheck.checks.findings import Area, ChargedFinding, Finding, Severity, sorted_by_cost
from mailcheck.checks.findings_table import aliases_of
from mailcheck.checks.proofs import Proofs, proof_of

TENTHS = 10
"""Tenths of a point in a point. Scores are counted in tenths and shown in points."""


Gain = Annotated[float, doc("points that publishing the record adds", ge=0)]

ScoreAfter = Annotated[float, doc("score after publishing the record", ge=0, le=10)]


class PricedFinding(AdvisedFinding, kw_only=True):
    """The fields of all findings about a mail."""

    points: Annotated[float, doc("points deducted; 0.0 for notes", ge=0)]
    gain: Gain | Absent = ABSENT
    score_after: ScoreAfter | Absent = ABSENT


class MailFinding(PricedFinding, kw_only=True):
    """A problem of a mail, an undetermined result or a note."""

    area: Area
    severity: Severity


class Deduction(PricedFinding, kw_only=True):
    """A finding that deducts points from the score."""

    check: Area


MailFindings = Annotated[tuple[MailFinding, ...], doc("largest deductions first")]


def points(tenths: int) -> float:
    """Convert tenths to points, with one decimal."""
    return tenths / TENTHS


def render_charged(one: ChargedFinding, proofs: Proofs) -> MailFinding:
    """Render a finding, with the record that is proven to fix it."""
    return _render(MailFinding, one, proofs, area=one.area)


def render_area(
    findings: Iterable[ChargedFinding], area: Area, proofs: Proofs
) -> tuple[MailFinding, ...]:
    """Render the findings of one area, the most severe first."""
    return render_all((finding for finding in findings if finding.area is area), proofs)


def render_all(findings: Iterable[ChargedFinding], proofs: Proofs) -> tuple[MailFinding, ...]:
    """Render findings, sorted by deduction and then by severity."""
    return tuple(render_charged(finding, proofs) for finding in sorted_by_cost(findings))


def render_deduction(one: ChargedFinding, proofs: Proofs) -> Deduction:
    """Render a deduction."""
    return _render(Deduction, one, proofs, check=one.area)


def _render(kind: type[S], one: ChargedFinding, proofs: Proofs, **given: Any) -> S:
    finding = one.finding
    return shape_from(
        kind,
        finding,
        **given,
        points=points(one.tenths),
        aliases=aliases_of(finding.id) or ABSENT,
        **_render_fix(finding, proofs),
    )


def _render_fix(finding: Finding, proofs: Proofs) -> dict[str, Any]:
    fix = proof_of(finding, proofs)
    if fix is None:
        return render_fix(fix)
    after = points(max(0, fix.score_after))
    return render_fix(fix) | {"gain": points(fix.gain), "score_after": after}
