"""What tests of all checks read in a verdict."""

from collections.abc import Sequence
from typing import Protocol

from mailcheck.checks.findings import Finding


class Verdict(Protocol):
    """The verdict of a check."""

    @property
    def findings(self) -> Sequence[Finding]:
        """What the check has found."""


def ids(verdict: Verdict) -> list[str]:
    """Return the ids of the findings."""
    return [finding.id for finding in verdict.findings]
