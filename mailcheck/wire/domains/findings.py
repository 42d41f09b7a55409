"""Findings as JSON: what is wrong, what it means, what to publish."""

from collections.abc import Iterable

from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.wire.json_values import JsonObject

_PROBLEMS = (Severity.ERROR, Severity.WARNING)


def render_finding(finding: Finding) -> JsonObject:
    """Give a finding; ``record`` is there where an exact record can be named."""
    shown: dict[str, JsonObject | str] = {
        "id": finding.id,
        "severity": finding.severity.value,
        "meaning": finding.meaning,
        "fix": finding.fix,
    }
    if finding.record is not None:
        shown["record"] = render_record(finding.record)
    return shown


def render_findings(findings: Iterable[Finding]) -> list[JsonObject]:
    """Give findings, the worst first."""
    return [render_finding(one) for one in sorted(findings, key=lambda one: one.severity.rank)]


def render_record(record: RecordToPublish) -> JsonObject:
    """Give a record as it is typed into a zone editor."""
    return {"name": record.name, "type": record.rdtype, "value": record.value}


def problem_texts(findings: Iterable[Finding]) -> list[str]:
    """Give the sentences about what is wrong; notes and what is unknown are left out."""
    return [finding.meaning for finding in findings if finding.severity in _PROBLEMS]
