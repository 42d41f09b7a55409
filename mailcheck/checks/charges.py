"""What a deliverability report says: findings with what each costs.

Points are counted in tenths, so that a sum is exact: the score is 100 tenths
less all deductions, not below 0.
"""

from dataclasses import dataclass
from enum import Enum

from mailcheck.checks.findings import Finding

PERFECT = 100
"""Tenths of a mail nobody finds fault with: 10.0."""


class Area(Enum):
    """What a finding is about; the first five are the ``checks`` of SPEC.md 2.5."""

    SPF = "spf"
    """Also reverse DNS and HELO."""
    DKIM = "dkim"
    DMARC = "dmarc"
    BLACKLIST = "blacklist"
    SPAMASSASSIN = "spamassassin"
    AUTHENTICATION = "authentication"
    """Neither SPF nor DKIM passes."""
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


@dataclass(frozen=True, slots=True)
class ChargedFinding:
    """A finding and the tenths of a point it takes off (0: good to know only)."""

    area: Area
    finding: Finding
    tenths: int = 0
