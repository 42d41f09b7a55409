"""Findings: a problem, its meaning, advice, and a record to publish.

Readers are not mail experts. ``meaning`` is one sentence about the consequence, and ``fix`` is
one sentence about what to do. A record that may help is only a proposal; it is shown once
`mailcheck.checks.proofs` has verified it.

In a deliverability report each finding has a price. Points are counted in tenths, so that sums
are exact: the score is 100 tenths minus all deductions, and not below 0.
"""

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct


class Severity(Enum):
    """Severity of a finding, worst first."""

    ERROR = "error"
    """Mail is rejected, or can be forged."""
    WARNING = "warning"
    """Mail works, but not everywhere or not for long."""
    UNDETERMINED = "undetermined"
    """The result could not be determined now; it is not a statement about the domain."""
    NOTE = "note"
    """For information; costs no points."""

    @property
    def rank(self) -> int:
        """Position in the order of severities; 0 is the worst."""
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}

PROBLEMS = (Severity.ERROR, Severity.WARNING)
"""Severities of findings that need a fix."""


class RecordToPublish(Struct, frozen=True):
    """A DNS record as it is entered in a zone editor: absolute name without the final dot.

    ``value`` is the presentation form, without the quotes for TXT.
    """

    name: str
    rdtype: str
    value: str


class Finding(Struct, frozen=True):
    """One finding. ``id`` is stable, like ``spf.too-many-lookups``; texts may change.

    ``fix`` says what to do and who can do it, with or without a record. ``proposed`` is a record
    that may fix the problem but is not verified yet. It replaces the records at its name that
    have the same purpose, and the values in ``replaced``. ``alternatives`` are tried if
    ``proposed`` fails. ``beside`` are records in a zone of another owner that all of these
    records need. ``may_cost``: the record says what was intended, even if its score is lower.
    """

    id: str
    severity: Severity
    meaning: str
    fix: str
    proposed: RecordToPublish | None = None
    replaced: tuple[str, ...] = ()
    alternatives: tuple[RecordToPublish, ...] = ()
    beside: tuple[RecordToPublish, ...] = ()
    may_cost: bool = False

    @property
    def candidate_records(self) -> tuple[RecordToPublish, ...]:
        """Records to try, the best first."""
        first = () if self.proposed is None else (self.proposed,)
        return (*first, *self.alternatives)


def worst(findings: Iterable[Finding]) -> Finding | None:
    """Return the first of the most severe findings."""
    return min(findings, key=lambda finding: finding.severity.rank, default=None)


PERFECT = 100
"""Score in tenths of a mail without deductions: 10.0."""


class Area(Enum):
    """Area of a finding; the first five are the ``checks`` of a test in the API."""

    SPF = "spf"
    DKIM = "dkim"
    DMARC = "dmarc"
    BLACKLIST = "blacklist"
    SPAMASSASSIN = "spamassassin"
    RDNS = "rdns"
    """Reverse DNS name of the sending address; part of the check `spf`."""
    HELO = "helo"
    """HELO name; part of the check `spf`."""
    AUTHENTICATION = "authentication"
    """Neither SPF nor DKIM passes."""
    SENDER = "sender"
    """Whether bounces and replies can be delivered."""
    TRANSPORT = "transport"
    HEADERS = "headers"
    CONTENT = "content"
    """MIME structure and HTML."""
    LINKS = "links"
    UNSUBSCRIBE = "unsubscribe"
    ARC = "arc"
    DKIM2 = "dkim2"
    RSPAMD = "rspamd"
    """A second content filter, if the operator has one."""


class CheckStatus(Enum):
    """Status of a check. An undetermined result is ``warn`` and costs no points."""

    PASS = "pass"  # noqa: S105
    WARN = "warn"
    FAIL = "fail"


class ChargedFinding(Struct, frozen=True):
    """A finding and its price in tenths of a point; 0 for information only."""

    area: Area
    finding: Finding
    tenths: int = 0


def sorted_by_cost(findings: Iterable[ChargedFinding]) -> list[ChargedFinding]:
    """Return findings in the order they are shown: by price, then by severity."""
    return sorted(findings, key=lambda one: (-one.tenths, one.finding.severity.rank))
