"""Findings as JSON: what is wrong, what it means, what to publish."""

from collections.abc import Iterable
from typing import Annotated

from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.wire.shapes import ABSENT, Absent, Shape, said

_PROBLEMS = (Severity.ERROR, Severity.WARNING)


class DnsRecord(Shape):
    """a DNS record to publish, as it is typed into a zone editor"""

    name: Annotated[str, said("absolute, without the last dot")]
    type: str
    value: str


class DomainFinding(Shape):
    """something about a domain that is wrong, unknown or good to know"""

    id: Annotated[str, said("stable, like spf.too-many-lookups")]
    severity: Severity
    meaning: Annotated[str, said("what it means, one sentence")]
    fix: Annotated[str, said("what to do")]
    record: Annotated[DnsRecord | Absent, said("where an exact record can be named")] = ABSENT


def render_finding(finding: Finding) -> DomainFinding:
    """Give a finding."""
    record = finding.record
    return DomainFinding(
        finding.id,
        finding.severity,
        finding.meaning,
        finding.fix,
        ABSENT if record is None else render_record(record),
    )


def render_findings(findings: Iterable[Finding]) -> tuple[DomainFinding, ...]:
    """Give findings, the worst first."""
    return tuple(map(render_finding, sorted(findings, key=lambda one: one.severity.rank)))


def render_record(record: RecordToPublish) -> DnsRecord:
    """Give a record."""
    return DnsRecord(record.name, record.rdtype, record.value)


def problem_texts(findings: Iterable[Finding]) -> list[str]:
    """Give the sentences about what is wrong; notes and what is unknown are left out."""
    return [finding.meaning for finding in findings if finding.severity in _PROBLEMS]
