"""What is found in a mail with its price: SPF, DKIM, DMARC, blocklists, the content filter."""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.content_filter import (
    FilterOutcome,
    FilterProblem,
    FilterRule,
    FilterUnavailable,
    FilterVerdict,
)
from mailcheck.checks.dkim.mail import (
    DkimOfMail,
    describe_invalid,
    describe_signature,
    describe_signatures,
    describe_unaligned,
    describe_undetermined,
    find_telling,
)
from mailcheck.checks.dmarc.mail import DmarcOfMail, describe_dmarc_of_mail
from mailcheck.checks.dmarc.stricter import STRICTER
from mailcheck.checks.dnsbl.listings import Listing, ListingStatus, UnknownReason, describe_listings
from mailcheck.checks.finding_row import severity_at
from mailcheck.checks.findings import (
    SEND_FROM_REAL_SERVER,
    ChargedFinding,
    Finding,
    Severity,
)
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.hosts.helo import HeloVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.spf.mail import SpfOfMail, describe_spf_of_helo, describe_spf_of_mail
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.checks.weights import (
    MAX_LISTINGS,
    charge,
    cost_of_listing,
    cost_of_points,
    price_finding,
    uncharged,
)


def total(charged: Iterable[ChargedFinding]) -> int:
    """Add up the tenths."""
    return sum(one.tenths for one in charged)


def cap(charged: Iterable[ChargedFinding], most: int) -> tuple[ChargedFinding, ...]:
    """Charge no more than ``most`` tenths for all together; what comes last is charged less."""
    left = most
    capped = []
    for one in charged:
        tenths = min(one.tenths, left)
        left -= tenths
        capped.append(replace(one, tenths=tenths))
    return tuple(capped)


WEAK_RECORD_IDS = ("spf.open", "spf.wide")
"""Findings about a record that make its pass worth little."""


def charge_spf(
    spf: SpfOfMail, record: SpfVerdict | None, *, is_own_host: bool = False
) -> tuple[ChargedFinding, ...]:
    """Charge the result of the MAIL FROM identity (RFC 7208 2.4); that of HELO costs nothing.

    :param record: what is known of the domain's record, where that was looked at.
    :param is_own_host: the client is known to be a host of the domain.
    """
    identity = spf.mail_from
    if identity.result is AuthResult.TEMPERROR and not identity.silent_names:
        # DNS is not to blame: nobody could tell.
        meaning = f"SPF could not be determined. {identity.explanation}"
        return (charge("spf.undetermined", meaning, SEND_FROM_REAL_SERVER),)
    of_sender = describe_spf_of_mail(spf, record, is_own_host=is_own_host)
    of_helo = describe_spf_of_helo(spf, is_own_host=is_own_host)
    is_pass, known = identity.result is AuthResult.PASS, () if record is None else record.findings
    of_pass = (one for one in known if is_pass and one.id in WEAK_RECORD_IDS)
    return (
        *(() if of_sender is None else (price_finding(of_sender),)),
        *(price_finding(one) for one in of_pass),
        *(() if of_helo is None else (uncharged(of_helo),)),
    )


def charge_host(
    reverse_dns: ReverseDnsVerdict | None,
    helo: HeloVerdict | None,
    *,
    is_own_host: bool = False,
) -> tuple[ChargedFinding, ...]:
    """Charge the name of the sending address and the name in HELO.

    An address gets a name of the domain only where it is known to be its own.
    """
    of_address = () if reverse_dns is None else reverse_dns.findings
    of_name = () if helo is None else helo.findings
    if not is_own_host:
        of_name = tuple(replace(finding, proposed=None) for finding in of_name)
    return (
        *(price_finding(finding) for finding in of_address),
        *(price_finding(finding) for finding in of_name),
    )


WEAK = "dkim.weak-key"


def charge_dkim(dkim: DkimOfMail, dmarc: DmarcOfMail) -> tuple[ChargedFinding, ...]:
    """Charge the best of what the signatures have to offer: one good one is enough.

    What else there is to say about them follows, at no cost.
    """
    charged = tuple(_find(dkim, dmarc))
    ids = {finding.id for finding in charged}
    told = _findings_of_telling(dkim, dmarc) if "dkim.invalid" in ids else ()
    rest = (
        finding
        for finding in describe_signatures(dkim)
        if finding.id not in ids
        and finding not in told
        and finding.severity is not Severity.UNDETERMINED
    )
    return (
        *(price_finding(finding) for finding in charged),
        *(uncharged(finding) for finding in rest),
    )


def _find(dkim: DkimOfMail, dmarc: DmarcOfMail) -> Iterator[Finding]:
    if dkim.passing:
        yield from _find_of_passing(dkim, dmarc)
    elif not dkim.is_determined:
        yield describe_undetermined(dkim, dmarc.author_domain)
    elif dkim.signatures:
        yield describe_invalid(dkim, dmarc.author_domain)
    else:
        yield from describe_signatures(dkim)


def _find_of_passing(dkim: DkimOfMail, dmarc: DmarcOfMail) -> Iterator[Finding]:
    """Judge signatures that verify: whose they are, and how strong their keys."""
    best, author = dkim.passing, dmarc.author_domain
    # Without an author there is nobody whose signature it could be, which DMARC charges.
    if author is not None and dmarc.is_dkim_aligned is None:
        yield describe_undetermined(dkim, author)
    elif author is not None and dmarc.is_dkim_aligned:
        best = tuple(s for s in best if s.header.index in dmarc.aligned_signatures) or best
    elif author is not None:
        yield describe_unaligned(dkim, author)
    if all(one.is_weak for one in best):
        found = describe_signature(best[0], has_passing=True)
        yield from (finding for finding in found if finding.id == WEAK)


def _findings_of_telling(dkim: DkimOfMail, dmarc: DmarcOfMail) -> tuple[Finding, ...]:
    """Give what `describe_invalid` has said already."""
    telling = find_telling(dkim, dmarc.author_domain)
    return () if telling is None else tuple(describe_signature(telling, has_passing=False))


def charge_dmarc(
    dmarc: DmarcOfMail, spf: SpfOfMail, dkim: DkimOfMail
) -> tuple[ChargedFinding, ...]:
    """Charge the result for the author domain (RFC 9989).

    What there is to say about a record that applies follows, at no cost; while
    own mail fails, nobody is told to ask for more.
    """
    finding = describe_dmarc_of_mail(dmarc, spf, dkim)
    charged = () if finding is None else (price_finding(finding),)
    if dmarc.verdict is None or dmarc.result not in (AuthResult.PASS, AuthResult.FAIL):
        return charged
    left_out = STRICTER if dmarc.result is AuthResult.FAIL else ()
    known = (f for f in dmarc.verdict.findings if f.severity is not Severity.UNDETERMINED)
    return (*charged, *(uncharged(one) for one in known if one.id not in left_out))


def charge_authentication(spf: SpfOfMail, dkim: DkimOfMail) -> tuple[ChargedFinding, ...]:
    """Charge a mail for which neither passes, where both are known."""
    is_known = spf.mail_from.result.is_determined and dkim.is_determined
    if not is_known or spf.has_pass or dkim.passing:
        return ()
    return (
        charge(
            "authentication.nothing-passes",
            "Neither SPF nor DKIM passes, so nothing shows that the mail comes from where it says;"
            " Gmail refuses such mail.",
        ),
    )


_ANSWERED = (ListingStatus.LISTED, ListingStatus.CLEAN)


def charge_blocklists(listings: Sequence[Listing]) -> tuple[ChargedFinding, ...]:
    """Charge every listing, the worst first, up to the cap; lists that are silent cost nothing."""
    asked = [row for row in listings if row.unknown_reason is not UnknownReason.NOT_PUBLIC]
    listed = sorted((r for r in asked if r.is_listed), key=lambda row: row.weight, reverse=True)
    findings = describe_listings(asked)
    costs = [cost_of_listing(row.weight) for row in listed]
    costs += [0] * (len(findings) - len(listed))
    charged = cap(
        (price_finding(finding, cost) for finding, cost in zip(findings, costs, strict=True)),
        MAX_LISTINGS,
    )
    if len(asked) < len(listings):
        return (*charged, _without_address())
    return charged if are_listings_known(listings) else (*charged, _too_few_answers())


def _without_address() -> ChargedFinding:
    return charge(
        "blacklist.no-address",
        "The mail came from an address that is not reachable from the Internet, so no blocklist"
        " was asked about it.",
        SEND_FROM_REAL_SERVER,
    )


def _too_few_answers() -> ChargedFinding:
    return charge(
        "blacklist.undetermined",
        "Too few blocklists gave an answer to say that the mail is on none.",
    )


def are_listings_known(listings: Sequence[Listing]) -> bool:
    """Tell whether the lists that answered hold at least half of the weight of all."""
    asked = [row for row in listings if row.status in (*_ANSWERED, ListingStatus.UNKNOWN)]
    known = [row for row in asked if row.status in _ANSWERED]
    weight = sum(row.blocklist.weight for row in known)
    return bool(known) and 2 * weight >= sum(row.blocklist.weight for row in asked)


MAX_NAMED = 5
"""Rules that are named in a sentence."""

MAX_DESCRIBED = 3
"""Rules whose descriptions are repeated."""

_KIND = re.compile(r"\A(?:[A-Z]{3,8}: )+", re.ASCII)

_IDS = {
    FilterProblem.OFF: "spamassassin.off",
    FilterProblem.NOT_INSTALLED: "spamassassin.not-installed",
    FilterProblem.UNREACHABLE: "spamassassin.unreachable",
    FilterProblem.TIMEOUT: "spamassassin.timeout",
    FilterProblem.BUSY: "spamassassin.busy",
    FilterProblem.TOO_LARGE: "spamassassin.too-large",
    FilterProblem.BROKEN_ANSWER: "spamassassin.broken-answer",
}


def charge_content_filter(outcome: FilterOutcome) -> tuple[ChargedFinding, ...]:
    """Charge the points that no check of ours has charged already."""
    if isinstance(outcome, FilterUnavailable):
        return (charge(_IDS[outcome.problem], outcome.reason, outcome.fix),)
    tenths = cost_of_points(outcome.counted_points)
    if not tenths:
        return ()
    finding = make_finding(
        "spamassassin.points",
        f"{outcome.engine} gives the content {outcome.counted_points:.1f} points (mail is spam at"
        f" {outcome.threshold:.1f}): {_rules(outcome)}.",
        f"Change what they found: {_descriptions(outcome)}.",
        severity=severity_at(tenths),
    )
    return (price_finding(finding, tenths),)


def _against(verdict: FilterVerdict) -> list[FilterRule]:
    found = (rule for rule in verdict.rules if rule.counts and rule.points > 0)
    return sorted(found, key=lambda rule: -rule.points)


def _descriptions(verdict: FilterVerdict) -> str:
    """Give what the heaviest rules say of themselves, without the kind of text they look at."""
    texts = [_KIND.sub("", rule.description) or rule.name for rule in _against(verdict)]
    return "; ".join(text.rstrip(".") for text in texts[:MAX_DESCRIBED])


def _rules(verdict: FilterVerdict) -> str:
    names = [f"{rule.name} ({rule.points:.1f})" for rule in _against(verdict)]
    if len(names) > MAX_NAMED:
        names = [*names[:MAX_NAMED], f"and {len(names) - MAX_NAMED} more"]
    return ", ".join(names)
