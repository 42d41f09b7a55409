"""What a list says about a target."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mailcheck.checks.dnsbl.catalogue import Blocklist


class ListingStatus(Enum):
    """The outcome for one list."""

    LISTED = "listed"
    CLEAN = "clean"
    UNKNOWN = "unknown"
    UNSUPPORTED = "unsupported"
    """The list does not know this kind of target."""
    DISABLED = "disabled"
    """The operator has switched the list off."""


class UnknownReason(Enum):
    """Why a list's opinion is not known."""

    NO_ANSWER = "no-answer"
    """Time-out, SERVFAIL or REFUSED."""
    REFUSED_BY_LIST = "refused-by-list"
    """The list answers, but not to this resolver."""
    REWRITTEN = "rewritten"
    """The answer is no answer of a blocklist: a resolver rewrites, or the zone has expired."""
    STRANGE_CODE = "strange-code"
    """An answer that the list does not document."""
    SICK = "sick"
    """The list fails its self-test."""
    OVER_BUDGET = "over-budget"
    """The list has been asked as often today as its operator allows."""
    NO_TARGET = "no-target"
    """It could not be found out which addresses the domain has."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One row of a check: a list and what it says.

    ``codes`` are the answers, ``matched`` the targets that are listed,
    ``weight`` that of the worst code, ``meaning`` what the list calls it and
    ``reason`` its own text. ``is_shared`` tells that only shared addresses
    are listed. ``seconds`` is what its slowest answer took.
    """

    blocklist: Blocklist
    status: ListingStatus
    codes: tuple[str, ...] = ()
    matched: tuple[str, ...] = ()
    weight: int = 0
    meaning: str = ""
    reason: str = ""
    is_policy: bool = False
    is_shared: bool = False
    unknown_reason: UnknownReason | None = None
    seconds: float = 0.0

    @property
    def is_listed(self) -> bool:
        """Tell whether the list has a target."""
        return self.status is ListingStatus.LISTED


def unknown_listing(blocklist: Blocklist, reason: UnknownReason) -> Listing:
    """Make the row of a list that can't be asked, or was asked in vain."""
    return Listing(blocklist, ListingStatus.UNKNOWN, unknown_reason=reason)


def count(listings: Sequence[Listing], status: ListingStatus) -> int:
    """Count the rows of one status."""
    return sum(listing.status is status for listing in listings)


def has_no_answer_at_all(listings: Sequence[Listing]) -> bool:
    """Tell whether no list that was asked gave any answer: DNS itself is down."""
    asked = [
        listing
        for listing in listings
        if listing.status not in (ListingStatus.UNSUPPORTED, ListingStatus.DISABLED)
    ]
    return bool(asked) and all(
        listing.unknown_reason is UnknownReason.NO_ANSWER for listing in asked
    )
