"""The words for what the lists say, and for why some say nothing."""

from collections.abc import Sequence

from mailcheck.checks.dnsbl.catalogue import Blocklist
from mailcheck.checks.dnsbl.listings import Listing, ListingStatus, UnknownReason
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.scoring.weights import STOPS_DELIVERY

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
        UnknownReason.NO_ANSWER: "did not answer in time",
        UnknownReason.SICK: "fail their self-test and are not believed until they recover",
        UnknownReason.OVER_BUDGET: "have been asked as often today as their operators allow",
        UnknownReason.STRANGE_CODE: "gave an answer that they do not document",
        UnknownReason.NO_TARGET: "could not be asked, for the addresses of the domain's mail"
        " servers could not be found out",
    }
    return [
        Finding(
            f"dnsbl.{reason.value}",
            Severity.UNDETERMINED,
            f"{names} {sentence}, so what they say is not known.",
            "Try again later.",
        )
        for reason, sentence in sentences.items()
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
