"""What the doctor found, as JSON."""

from collections.abc import Iterable
from typing import Annotated

from mailcheck.api.domains.findings import DomainFinding, render_findings
from mailcheck.api.shapes import Shape, doc
from mailcheck.operations import doctor


class Examination(Shape):
    """One part of the set-up."""

    topic: str
    health: doctor.Health
    findings: tuple[DomainFinding, ...]


class Diagnosis(Shape):
    """Everything that was examined."""

    health: Annotated[doctor.Health, doc("of the part that is worst")]
    examinations: tuple[Examination, ...]


def render_diagnosis(examinations: Iterable[doctor.Examination]) -> Diagnosis:
    """Give each part with its findings, the worst first."""
    shown = tuple(
        Examination(one.topic, one.health, render_findings(one.findings, one.proofs))
        for one in examinations
    )
    return Diagnosis(worst_health(one.health for one in shown), shown)


def worst_health(found: Iterable[doctor.Health]) -> doctor.Health:
    """Give the worst: a problem before what is not known."""
    order = (doctor.Health.PROBLEM, doctor.Health.UNKNOWN, doctor.Health.FINE)
    return min(found, key=order.index, default=doctor.Health.FINE)
