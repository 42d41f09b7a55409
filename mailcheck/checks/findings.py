"""What is wrong, what it means and what to publish: one value for every mechanism.

A reader is no mail expert. ``meaning`` is one sentence about the consequence,
``fix`` one about what to do. A record that would help is proposed only: it is shown
once `mailcheck.checks.proofs` has judged it.

In a deliverability report each has what it costs. Points are counted in tenths, so that a
sum is exact: the score is 100 tenths less all deductions, not below 0.
"""

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct


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
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class RecordToPublish(Struct, frozen=True):
    """A DNS record as it is typed into a zone editor: absolute name without the last dot.

    ``value`` is the presentation form, for TXT without the quotes.
    """

    name: str
    rdtype: str
    value: str


class Finding(Struct, frozen=True):
    """One finding. ``id`` is stable, like ``spf.too-many-lookups``; texts may change.

    ``fix`` tells in words what to do and who can do it, whether or not a record is
    shown. ``proposed`` is a record that may mend it, not proven yet; what stands at
    its name for the same purpose goes, and so does ``replaced``, the values of its type
    that it takes the place of. ``alternatives`` are tried where ``proposed`` fails.
    ``beside`` are records of somebody else's zone without which none of them does anything.
    """

    id: str
    severity: Severity
    meaning: str
    fix: str
    proposed: RecordToPublish | None = None
    replaced: tuple[str, ...] = ()
    alternatives: tuple[RecordToPublish, ...] = ()
    beside: tuple[RecordToPublish, ...] = ()

    @property
    def candidate_records(self) -> tuple[RecordToPublish, ...]:
        """Give the records to be tried, the best first."""
        first = () if self.proposed is None else (self.proposed,)
        return (*first, *self.alternatives)


SEND_FROM_REAL_SERVER = "Send the test from the server that sends your real mail."
"""What to do where a mail came from a host that can't be judged."""


def worst(findings: Iterable[Finding]) -> Finding | None:
    """Give the first of the most severe findings."""
    return min(findings, key=lambda finding: finding.severity.rank, default=None)


PERFECT = 100
"""Tenths of a mail nobody finds fault with: 10.0."""


class Area(Enum):
    """Area of a finding; the first five are the ``checks`` of a test in the API."""

    SPF = "spf"
    DKIM = "dkim"
    DMARC = "dmarc"
    BLACKLIST = "blacklist"
    SPAMASSASSIN = "spamassassin"
    RDNS = "rdns"
    """The name of the sending address; part of the check `spf`."""
    HELO = "helo"
    """The name in HELO; part of the check `spf`."""
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


class CheckStatus(Enum):
    """How a check ended; what could not be determined is ``warn`` and costs nothing."""

    PASS = "pass"  # noqa: S105
    WARN = "warn"
    FAIL = "fail"


class ChargedFinding(Struct, frozen=True):
    """A finding and the tenths of a point it takes off (0: good to know only)."""

    area: Area
    finding: Finding
    tenths: int = 0


def sorted_by_cost(findings: Iterable[ChargedFinding]) -> list[ChargedFinding]:
    """Give findings as they are read: what costs most first, then the gravest."""
    return sorted(findings, key=lambda one: (-one.tenths, one.finding.severity.rank))
