"""What a list says about a target, and what is said about that."""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from mailcheck.checks.dnsbl.catalogue import Blocklist
from mailcheck.checks.findings import Finding, Severity

STOPS_DELIVERY = 8
"""Weight from which on one listing stops delivery at large receivers."""


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
    NOT_PUBLIC = "not-public"
    """A mail came from an address of a private network, which no list can know."""


class Listing(Struct, frozen=True):
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


def has_usable_answer(listings: Sequence[Listing]) -> bool:
    """Tell whether any list told something: the others are silent, sick, refusing or off."""
    return any(row.status in (ListingStatus.LISTED, ListingStatus.CLEAN) for row in listings)


MAX_NAMED = 5  # lists that are named in one sentence

_OWN_RESOLVER = (
    "Run a resolver of your own (not a public one such as 8.8.8.8 or 1.1.1.1) and name it in"
    " [blocklists] resolvers; Barracuda wants its address registered, Spamhaus and SpamRATS give"
    " keys for their lists."
)


def describe_listings(listings: Sequence[Listing]) -> tuple[Finding, ...]:
    """Give a finding for each list that has a target, worst first, and for those not known."""
    listed = sorted(
        (row for row in listings if row.is_listed), key=lambda row: row.weight, reverse=True
    )
    findings = [_listed(row) for row in listed]
    refusing = _names(listings, UnknownReason.REFUSED_BY_LIST)
    if refusing:
        findings.append(
            Finding(
                "dnsbl.refused",
                Severity.UNDETERMINED,
                f"{refusing} refuse to answer the resolver of this service, so what they say is"
                " not known.",
                _OWN_RESOLVER,
            )
        )
    rewritten = _names(listings, UnknownReason.REWRITTEN)
    if rewritten:
        findings.append(
            Finding(
                "dnsbl.rewritten",
                Severity.UNDETERMINED,
                f"The answers for {rewritten} are those of no blocklist: the list has expired, or"
                " the resolver of this service rewrites answers.",
                _OWN_RESOLVER,
            )
        )
    return (*findings, *_other_unknowns(listings))


def _other_unknowns(listings: Sequence[Listing]) -> list[Finding]:
    sentences = {
        UnknownReason.NO_ANSWER: ("dnsbl.no-answer", "did not answer in time"),
        UnknownReason.SICK: (
            "dnsbl.sick",
            "fail their self-test and are not believed until they recover",
        ),
        UnknownReason.OVER_BUDGET: (
            "dnsbl.over-budget",
            "have been asked as often today as their operators allow",
        ),
        UnknownReason.STRANGE_CODE: (
            "dnsbl.strange-code",
            "gave an answer that they do not document",
        ),
        UnknownReason.NO_TARGET: (
            "dnsbl.no-target",
            (
                "could not be asked, for the addresses of the domain's mail servers could not be"
                " found out"
            ),
        ),
    }
    return [
        Finding(
            finding_id,
            Severity.UNDETERMINED,
            f"{names} {sentence}, so what they say is not known.",
            "Try again later.",
        )
        for reason, (finding_id, sentence) in sentences.items()
        if (names := _names(listings, reason))
    ]


def _listed(row: Listing) -> Finding:
    severity = Severity.NOTE
    if row.weight >= STOPS_DELIVERY and not row.is_shared:
        severity = Severity.ERROR
    elif row.weight > 0:
        severity = Severity.WARNING
    what = f" as: {row.meaning}" if row.meaning else ""
    consequence = "Many receivers refuse mail because of it."
    if row.is_shared:
        consequence = "The address belongs to a mail provider and is shared with others."
    elif row.weight < STOPS_DELIVERY:
        consequence = "Some receivers count it against your mail."
    if row.weight == 0:
        consequence = "Hardly any receiver minds."
    return Finding(
        "dnsbl.listed",
        severity,
        f"{row.blocklist.name} lists {', '.join(row.matched)}{what}. {consequence}",
        _delisting(row.blocklist),
    )


def _delisting(blocklist: Blocklist) -> str:
    fix = "Find and end what caused the listing"
    if blocklist.delist_url:
        return f"{fix}, then ask for removal at {blocklist.delist_url}"
    return f"{fix}; the listing ends by itself."


def _names(listings: Sequence[Listing], reason: UnknownReason) -> str:
    names = [
        row.blocklist.name
        for row in listings
        if row.status is ListingStatus.UNKNOWN and row.unknown_reason is reason
    ]
    if len(names) > MAX_NAMED:
        names = [*names[:MAX_NAMED], f"{len(names) - MAX_NAMED} more lists"]
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
