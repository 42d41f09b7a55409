"""Findings as JSON: what is wrong, what it means, what to publish."""

from collections.abc import Iterable
from typing import Annotated, Any

from mailcheck.api.shapes import ABSENT, Absent, Shape, Texts, doc
from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.checks.findings_table import aliases_of
from mailcheck.checks.proofs import Proofs, ProvenFix, proof_of

_PROBLEMS = (Severity.ERROR, Severity.WARNING)


class DnsRecord(Shape):
    """a DNS record to publish, as it is typed into a zone editor"""

    name: Annotated[str, doc("absolute, without the last dot")]
    type: str
    value: str


ProvenRecord = Annotated[
    DnsRecord | Absent,
    doc("to be published: our own evaluation was run with it, and the finding was gone"),
]

Replaces = Annotated[
    Texts | Absent, doc("values of this name and type that the record takes the place of")
]

Beside = Annotated[
    tuple[DnsRecord, ...] | Absent,
    doc(
        "records without which this one is not enough: of other findings, or of others' zones, as"
        " fix says"
    ),
]


Aliases = Annotated[Texts | Absent, doc("earlier ids of the finding, if it has any")]


class LeftOutTerm(Shape):
    """a term of a published SPF record that the record to publish does not have"""

    term: str
    reason: Annotated[str, doc("why it lets no host pass")]


LeavesOut = Annotated[
    tuple[LeftOutTerm, ...] | Absent,
    doc("terms that are left out on purpose; all other senders are in the record"),
]


class DomainFinding(Shape):
    """something about a domain that is wrong, unknown or good to know"""

    id: Annotated[str, doc("stable, like spf.too-many-lookups")]
    severity: Severity
    meaning: Annotated[str, doc("what it means, one sentence")]
    fix: Annotated[str, doc("what to do")]
    aliases: Aliases = ABSENT
    record: ProvenRecord = ABSENT
    replaces: Replaces = ABSENT
    beside: Beside = ABSENT
    leaves_out: LeavesOut = ABSENT
    gain: Annotated[int | Absent, doc("points of the reputation that the record brings")] = ABSENT


def render_finding(finding: Finding, proofs: Proofs) -> DomainFinding:
    """Give a finding, with the record that is proven to mend it."""
    fix = proof_of(finding, proofs)
    return DomainFinding(
        finding.id,
        finding.severity,
        finding.meaning,
        finding.fix,
        aliases=aliases_of(finding.id) or ABSENT,
        **render_fix(fix),
        gain=ABSENT if fix is None else fix.gain,
    )


def render_fix(fix: ProvenFix | None) -> dict[str, Any]:
    """Give what is to be published; nothing that is not proven is ever shown."""
    if fix is None:
        return {}
    return {
        "record": render_record(fix.record),
        "replaces": fix.removed or ABSENT,
        "beside": tuple(map(render_record, fix.beside)) or ABSENT,
        "leaves_out": tuple(LeftOutTerm(one.term, one.reason) for one in fix.left_out) or ABSENT,
    }


def render_findings(findings: Iterable[Finding], proofs: Proofs) -> tuple[DomainFinding, ...]:
    """Give findings, the worst first."""
    ordered = sorted(findings, key=lambda one: one.severity.rank)
    return tuple(render_finding(one, proofs) for one in ordered)


def render_record(record: RecordToPublish) -> DnsRecord:
    """Give a record."""
    return DnsRecord(record.name, record.rdtype, record.value)


def problem_texts(findings: Iterable[Finding]) -> list[str]:
    """Give the sentences about what is wrong; notes and what is unknown are left out."""
    return [finding.meaning for finding in findings if finding.severity in _PROBLEMS]
