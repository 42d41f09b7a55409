"""The points that the making of a mail costs. Nothing else decides what these findings cost.

In tenths of a point of ten, each with its reason. What is not in the table
costs nothing: it is a note or a warning. The content filter judges many of
these things too, with weights learned from real mail, and charges for them;
here only what receivers' own rules name is charged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from mailcheck.checks.charges import Area, ChargedFinding
from mailcheck.checks.findings import Finding

TENTHS: Mapping[str, int] = MappingProxyType(
    {
        # RFC 5322 3.6: a mail must have a Date; Google asks for that format, and filters mark
        # mail without one.
        "headers.date-missing": 3,
        # RFC 5322 3.6.4: should be there; Google asks for RFC 5322 format, and filters take a
        # mail without one for the work of a script.
        "headers.message-id-missing": 3,
        # Readers without HTML and many filters expect a text part beside it (RFC 2046 5.1.4).
        "content.html-only": 3,
        # Google asks every sender for TLS (sender guidelines, since 2024-02).
        "transport.no-tls": 3,
        # Google and Yahoo ask bulk senders for one-click unsubscribe (RFC 8058), since 2024-06.
        "unsubscribe.no-one-click": 5,
    }
)

MAX_TENTHS = 15
"""All of these together: the making of a mail does not weigh as much as who sent it."""


def charge(area: Area, finding: Finding) -> ChargedFinding:
    """Say what a finding costs by the table."""
    return ChargedFinding(area, finding, TENTHS.get(finding.id, 0))


def cap_format(findings: Iterable[ChargedFinding]) -> tuple[ChargedFinding, ...]:
    """Lower the charges of the last findings, so that those of the table cost 15 tenths at most.

    Order and number stay, and what was charged is still the sum of what is
    shown. Findings that are not in the table are left as they are.
    """
    left = MAX_TENTHS
    capped = []
    for finding in findings:
        if finding.finding.id in TENTHS:
            finding = replace(finding, tenths=min(finding.tenths, left))
            left -= finding.tenths
        capped.append(finding)
    return tuple(capped)
