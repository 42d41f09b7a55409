"""The results of the doctor as JSON."""

from collections.abc import Iterable
from typing import Annotated

from mailcheck.api.domains.findings import DomainFinding, render_findings
from mailcheck.api.shapes import Shape, doc, shape_from
from mailcheck.operations import doctor


class Examination(Shape):
    """One topic of the set-up."""

    topic: str
    health: doctor.Health
    findings: tuple[DomainFinding, ...]


class Diagnosis(Shape):
    """All examined topics."""

    health: Annotated[doctor.Health, doc("the worst health of all topics")]
    examinations: tuple[Examination, ...]


def render_diagnosis(examinations: Iterable[doctor.Examination]) -> Diagnosis:
    """Render each topic with its findings, the most severe first."""
    shown = tuple(
        shape_from(
            Examination,
            examination,
            findings=render_findings(examination.findings, examination.proofs),
        )
        for examination in examinations
    )
    return Diagnosis(worst_health(examination.health for examination in shown), shown)


def worst_health(found: Iterable[doctor.Health]) -> doctor.Health:
    """Return the worst health: a problem is worse than an unknown state."""
    order = (doctor.Health.PROBLEM, doctor.Health.UNKNOWN, doctor.Health.FINE)
    return min(found, key=order.index, default=doctor.Health.FINE)
