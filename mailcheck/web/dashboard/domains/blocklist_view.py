"""A blocklist check as its page shows it: what one row says, and what all of them come to."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from mailcheck.api.domains.blocklists import explain_silence, render_blocklist_check
from mailcheck.api.shapes import as_json
from mailcheck.checks.dnsbl.catalogue import Blocklist
from mailcheck.operations.domains.check_blocklists import BlocklistCheck

ORDER = ("listed", "unknown", "clean", "unsupported", "disabled")
"""What matters most comes first; within that, the order of the catalogue."""

PENDING = "pending"

LABELS = MappingProxyType(
    {
        "listed": ("bad", "listed"),
        "clean": ("good", "not listed"),
        "unknown": ("unknown", "unknown"),
        "unsupported": ("", "not asked"),
        "disabled": ("", "switched off"),
        PENDING: ("", "asking"),
    }
)
"""Status -> level and words. Unknown is neither good nor bad."""

EXPLANATIONS = MappingProxyType(
    {
        "unsupported": "It does not know this kind of address.",
        "disabled": "The operator of this service has switched it off.",
    }
)


class Totals(Struct, frozen=True):
    """What the rows come to: ``asked`` lists, of which some are listing, some unknown.

    ``silence`` says why no list told anything, where that is so.
    """

    asked: int
    listed: int
    unknown: int
    silence: str

    @property
    def level(self) -> str:
        """Say how it is to be read."""
        if self.listed:
            return "bad"
        return "unknown" if self.silence else "good"


def pending_rows(blocklists: Sequence[Blocklist]) -> list[dict[str, Any]]:
    """Make the rows of lists that have not answered yet."""
    return [{"name": one.name, "zone": one.zone, "status": PENDING} for one in blocklists]


def finished_rows(check: BlocklistCheck) -> list[dict[str, Any]]:
    """Make the rows of a check, those that matter most first."""
    rows = as_json(render_blocklist_check(check).results)
    return sorted(rows, key=lambda row: ORDER.index(row["status"]))


def total_up(check: BlocklistCheck) -> Totals:
    """Count the rows."""
    shown = render_blocklist_check(check)
    silence = explain_silence(check) if check.has_no_answer else ""
    return Totals(shown.total_checked, shown.total_listed, shown.total_unknown, silence)
