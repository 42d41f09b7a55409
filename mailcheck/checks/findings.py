"""What is wrong, what it means and what to publish: one value for every mechanism.

A reader is no mail expert. ``meaning`` is one sentence about the consequence,
``fix`` one about what to do, ``record`` the exact DNS record where there is one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """How bad a finding is, worst first."""

    ERROR = "error"
    """Mail is refused or forged because of it."""
    WARNING = "warning"
    """It works, but not everywhere or not for long."""
    UNDETERMINED = "undetermined"
    """Could not be found out now; says nothing about the domain."""
    NOTE = "note"
    """Good to know; costs nothing."""

    @property
    def rank(self) -> int:
        """Order: 0 is the worst."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class RecordToPublish:
    """A DNS record as it is typed into a zone editor: absolute name without the last dot.

    ``value`` is the presentation form, for TXT without the quotes.
    """

    name: str
    rdtype: str
    value: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. ``id`` is stable, like ``spf.too-many-lookups``; texts may change."""

    id: str
    severity: Severity
    meaning: str
    fix: str
    record: RecordToPublish | None = None


ELSEWHERE = "Send the test from the server that sends your real mail."
"""What to do where a mail came from a host that can't be judged."""


def worst(findings: Iterable[Finding]) -> Finding | None:
    """Give the first of the most severe findings."""
    return min(findings, key=lambda finding: finding.severity.rank, default=None)


def undetermined(finding_id: str, names: Iterable[str]) -> Finding:
    """Say that questions about these names got no answer; never read as "there is none"."""
    listed = ", ".join(dict.fromkeys(names))
    return Finding(
        finding_id,
        Severity.UNDETERMINED,
        f"Could not be determined: the name servers gave no answer about {listed}.",
        "Try again in a minute; if it stays, the name servers of that domain"
        " or the resolver of this service don't answer.",
    )


def several_records(
    finding_id: str, severity: Severity, kind: str, domain: str, kept: RecordToPublish
) -> Finding:
    """Say that senders ignore all records of a kind, since there is more than one."""
    meaning = f"{domain} has more than one {kind} record, so senders ignore all of them."
    return Finding(finding_id, severity, meaning, "Keep one of them.", kept)
