"""Findings about a domain as JSON: what is wrong, what it means, and what to publish."""

from collections.abc import Iterable
from typing import Annotated, Any

from mailcheck.api.shapes import ABSENT, Absent, Shape, Texts, doc, shape_from
from mailcheck.checks.findings import PROBLEMS, Finding, RecordToPublish, Severity
from mailcheck.checks.findings_table import aliases_of
from mailcheck.checks.proofs import Proofs, ProvenFix, proof_of


class DnsRecord(Shape):
    """A DNS record to publish, in the form that zone editors expect."""

    name: Annotated[str, doc("absolute, without the trailing dot")]
    type: str
    value: str


ProvenRecord = Annotated[
    DnsRecord | Absent,
    doc("record to publish; mailcheck verified that the finding disappears with it"),
]

Replaces = Annotated[Texts | Absent, doc("values of this name and type that the record replaces")]

Beside = Annotated[
    tuple[DnsRecord, ...] | Absent,
    doc("further records that are required, of other findings or in other zones; see `fix`"),
]


class LeftOutTerm(Shape):
    """A term of the published SPF record that the new record omits."""

    term: str
    reason: Annotated[str, doc("why the term authorizes no host")]


LeavesOut = Annotated[
    tuple[LeftOutTerm, ...] | Absent,
    doc("deliberately omitted terms; the record still authorizes all other senders"),
]


class AdvisedFinding(Shape, kw_only=True):
    """The fields of all findings: what is wrong, what to do, and the record that fixes it."""

    id: Annotated[str, doc("stable identifier, like spf.too-many-lookups")]
    meaning: Annotated[str, doc("explanation in one sentence")]
    fix: Annotated[str, doc("what to do")]
    aliases: Annotated[Texts | Absent, doc("former ids of the finding, if any")] = ABSENT
    record: ProvenRecord = ABSENT
    replaces: Replaces = ABSENT
    beside: Beside = ABSENT
    leaves_out: LeavesOut = ABSENT


class DomainFinding(AdvisedFinding, kw_only=True):
    """A problem of a domain, an undetermined result or a note."""

    severity: Severity
    gain: Annotated[int | Absent, doc("reputation points that publishing the record adds")] = ABSENT


def render_finding(finding: Finding, proofs: Proofs) -> DomainFinding:
    """Render a finding, with the record that is proven to fix it."""
    fix = proof_of(finding, proofs)
    return shape_from(
        DomainFinding,
        finding,
        aliases=aliases_of(finding.id) or ABSENT,
        **render_fix(fix),
        gain=None if fix is None else fix.gain,
    )


def render_fix(fix: ProvenFix | None) -> dict[str, Any]:
    """Return the fields of a proven fix. A record without proof is never shown."""
    if fix is None:
        return {"beside": ABSENT}  # those of the finding are not proven
    return {
        "record": render_record(fix.record),
        "replaces": fix.removed or ABSENT,
        "beside": tuple(map(render_record, fix.beside)) or ABSENT,
        "leaves_out": tuple(shape_from(LeftOutTerm, sender) for sender in fix.left_out) or ABSENT,
    }


def render_findings(findings: Iterable[Finding], proofs: Proofs) -> tuple[DomainFinding, ...]:
    """Render findings, the most severe first."""
    ordered = sorted(findings, key=lambda one: one.severity.rank)
    return tuple(render_finding(finding, proofs) for finding in ordered)


def render_record(record: RecordToPublish) -> DnsRecord:
    """Render a DNS record."""
    return shape_from(DnsRecord, record, type=record.rdtype)


def problem_texts(findings: Iterable[Finding]) -> list[str]:
    """Return the sentences about problems, without notes and undetermined results."""
    return [finding.meaning for finding in findings if finding.severity in PROBLEMS]
