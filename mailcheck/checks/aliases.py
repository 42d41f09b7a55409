"""Advice for a name that is an alias (CNAME)."""

from msgspec.structs import replace

from mailcheck.checks.dns_answers import DnsAnswer, DnsStatus
from mailcheck.checks.findings import Finding
from mailcheck.checks.mail_domains import registrable_domain


def alias_target(answer: DnsAnswer) -> str:
    """Return the target of the CNAME at the queried name, or an empty string without one."""
    end = answer.canonical_name
    return end if end != answer.question.name else ""


def is_dangling(answer: DnsAnswer) -> bool:
    """Return whether a CNAME leads to a name that has no record of the queried type."""
    is_empty = answer.status in (DnsStatus.NXDOMAIN, DnsStatus.NODATA)
    return is_empty and bool(alias_target(answer))


def publish_at_target(finding: Finding, name: str, target: str) -> Finding:
    """Return a finding that publishes the records for ``name`` at the target of its CNAME.

    No record can stand beside a CNAME (RFC 1034 3.6.2). If the target belongs to another
    organization, the advice is given in words only, without a record.
    """
    records = finding.candidate_records
    if not target or all(record.name != name for record in records):
        return finding
    where = f" {name} is an alias (CNAME) of {target}, and no other record can exist beside it:"
    if registrable_domain(target) != registrable_domain(name):
        words = (
            f"{where} ask the operator of {target} to change the record there, or replace the CNAME"
            " with a TXT record of your own."
        )
        return replace(finding, fix=finding.fix + words, proposed=None, alternatives=())
    words = f"{where} publish the record at {target}."
    moved = [replace(record, name=target) if record.name == name else record for record in records]
    return replace(
        finding, fix=finding.fix + words, proposed=moved[0], alternatives=tuple(moved[1:])
    )
