"""The table of findings. Every finding about a mail, a domain or this machine has one row.

A check names the row of a finding and its case, and gives the values of its places and the records
to publish.
"""

from collections.abc import Iterable

from mailcheck.checks import (
    findings_of_authentication,
    findings_of_domains,
    findings_of_logos,
    findings_of_machine,
    findings_of_mails,
)
from mailcheck.checks.finding_row import BadTable, Case, Row, by_name
from mailcheck.checks.findings import Finding, RecordToPublish, Severity

ROWS = (
    *findings_of_authentication.ROWS,
    *findings_of_mails.ROWS,
    *findings_of_domains.ROWS,
    *findings_of_logos.ROWS,
    *findings_of_machine.ROWS,
)

FINDINGS = by_name(ROWS)
"""The rows by id and by alias."""


NO_CASE = Case()


def canonical_id(name: str) -> str:
    """Return the current id of a finding for an id of any version; other texts unchanged."""
    row = FINDINGS.get(name)
    return name if row is None else row.id


def aliases_of(name: str) -> tuple[str, ...]:
    """Return the earlier ids of a finding."""
    row = FINDINGS.get(name)
    return () if row is None else tuple(row.aliases)


def make_finding(
    row_id: str,
    /,
    *,
    case: str = "",
    advice: str = "",
    proposed: RecordToPublish | None = None,
    replaced: tuple[str, ...] = (),
    severity: Severity | None = None,
    **places: object,
) -> Finding:
    """Return a finding of the row with this id.

    :param case: name of the case of the row whose sentences it has; empty for those of the row.
    :param advice: name of the case whose advice it has, if that is another one.
    :param severity: required if the row does not fix the severity, and not allowed otherwise.
    :param places: the values of the places in the meaning and the advice.
    :raises BadTable: the severity is given twice or not at all.
    """
    row = FINDINGS[row_id]
    known = row.severity if severity is None else severity
    if known is None or None not in (row.severity, severity):
        raise BadTable(f"the severity of {row_id} must be given once: {row.severity}, {severity}")
    meaning, fix = sentences_of(row, case, advice)
    said, advised = meaning.format_map(places), fix.format_map(places)
    return Finding(row.id, known, said, advised, proposed, replaced=replaced)


def sentences_of(row: Row, case: str, advice: str = "") -> tuple[str, str]:
    """Return the meaning and the advice of a case, with their places; see `make_finding`."""
    said = row.cases[case] if case else NO_CASE
    advised = row.cases[advice] if advice else said
    return said.meaning or row.meaning, advised.advice or row.advice


def undetermined(name: str, names: Iterable[str]) -> Finding:
    """Return a finding that queries for these DNS names got no usable answer."""
    return make_finding(name, case="silent", names=", ".join(dict.fromkeys(names)))
