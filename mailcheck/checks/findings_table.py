"""The table of findings. Every finding about a mail, a domain or this machine has one row.

A check names the row of a finding, and gives the values of its places and the records to publish.
"""

from collections.abc import Iterable

from mailcheck.checks import (
    findings_of_domains,
    findings_of_logos,
    findings_of_machine,
    findings_of_mails,
)
from mailcheck.checks.finding_row import BadTable, by_name
from mailcheck.checks.findings import Finding, RecordToPublish, Severity

ROWS = (
    *findings_of_mails.ROWS,
    *findings_of_domains.ROWS,
    *findings_of_logos.ROWS,
    *findings_of_machine.ROWS,
)

FINDINGS = by_name(ROWS)
"""The rows by id and by alias."""


def canonical_id(name: str) -> str:
    """Return the current id of a finding for an id of any version; other texts unchanged."""
    row = FINDINGS.get(name)
    return name if row is None else row.id


def aliases_of(name: str) -> tuple[str, ...]:
    """Return the earlier ids of a finding."""
    row = FINDINGS.get(name)
    return () if row is None else tuple(row.aliases)


def advice_of(name: str) -> str:
    """Return the advice of a row, for a finding of another row that has the same fix."""
    return FINDINGS[name].advice


def make_finding(
    row_id: str,
    /,
    meaning: str | None = None,
    fix: str | None = None,
    proposed: RecordToPublish | None = None,
    replaced: tuple[str, ...] = (),
    *,
    severity: Severity | None = None,
    **places: object,
) -> Finding:
    """Return a finding of the row with this id.

    :param meaning: the consequence in this case; `None` for the meaning of the row.
    :param fix: what to do in this case; `None` for the advice of the row.
    :param severity: required if the row does not fix the severity, and not allowed otherwise.
    :param places: the values of the places in the meaning and the advice of the row.
    :raises BadTable: the severity is given twice or not at all.
    """
    row = FINDINGS[row_id]
    known = row.severity if severity is None else severity
    if known is None or None not in (row.severity, severity):
        raise BadTable(f"the severity of {row_id} must be given once: {row.severity}, {severity}")
    said = row.meaning.format_map(places) if meaning is None else meaning
    advice = row.advice.format_map(places) if fix is None else fix
    return Finding(row.id, known, said, advice, proposed, replaced=replaced)


def undetermined(name: str, names: Iterable[str]) -> Finding:
    """Return a finding that queries for these DNS names got no usable answer."""
    listed = ", ".join(dict.fromkeys(names))
    return make_finding(name, f"Could not be determined: DNS gave no usable answer about {listed}.")


def several_records(name: str, kind: str, domain: str, kept: RecordToPublish) -> Finding:
    """Return a finding that a domain has several records of a kind, so senders ignore them."""
    meaning = f"{domain} has more than one {kind} record, so senders ignore all of them."
    return make_finding(name, meaning, proposed=kept)
