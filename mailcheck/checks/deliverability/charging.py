"""Prices of the findings of SPF, DKIM, DMARC, blocklists and the content filter."""

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
    choose_signature_to_fix,
    describe_invalid,
    describe_signature,
    describe_signatures,
    describe_unaligned,
    describe_undetermined,
)
from mailcheck.checks.dmarc.mail import DmarcOfMail, describe_dmarc_of_mail
from mailcheck.checks.dmarc.policy_advice import STRICTER_POLICY_FINDINGS
from mailcheck.checks.dnsbl.listings import (
    Listing,
    UnknownReason,
    are_listings_known,
    describe_listings,
)
from mailcheck.checks.finding_row import severity_at
from mailcheck.checks.findings import ChargedFinding, Finding, Severity
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.hosts.helo import HeloVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.spf.mail import SpfOfMail, describe_spf_of_helo, describe_spf_of_mail
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.checks.weights import (
    FILTER_MAX_POINTS,
    MAX_LISTINGS,
    charge,
    cost_of_listing,
    cost_of_points,
    price_finding,
    uncharged,
)


def total(charged: Iterable[ChargedFinding]) -> int:
    """Return the sum of the tenths."""
    return sum(finding.tenths for finding in charged)


def cap(charged: Iterable[ChargedFinding], most: int) -> tuple[ChargedFinding, ...]:
    """Limit the sum of all prices to ``most`` tenths, reducing the last ones first."""
    left = most
    capped = []
    for finding in charged:
        tenths = min(finding.tenths, left)
        left -= tenths
        capped.append(replace(finding, tenths=tenths))
    return tuple(capped)


WEAK_RECORD_IDS = ("spf.open", "spf.wide")
"""Findings about a record whose pass proves little."""


def charge_spf(
    spf: SpfOfMail, record: SpfVerdict | None, *, is_own_host: bool = False
) -> tuple[ChargedFinding, ...]:
    """Price the result of the MAIL FROM identity (RFC 7208 2.4); that of HELO costs nothing.

    :param record: the verdict about the domain's record, if it was evaluated.
    :param is_own_host: whether the client is known to be a host of the domain.
    """
    identity = spf.mail_from
    if identity.result is AuthResult.TEMPERROR and not identity.unanswered_names:
        # Not a DNS failure: the address cannot be checked.
        return (charge("spf.undetermined", case="private", explanation=identity.explanation),)
    of_sender = describe_spf_of_mail(spf, record, is_own_host=is_own_host)
    of_helo = describe_spf_of_helo(spf, is_own_host=is_own_host)
    is_pass, known = identity.result is AuthResult.PASS, () if record is None else record.findings
    of_pass = (finding for finding in known if is_pass and finding.id in WEAK_RECORD_IDS)
    return (
        *(() if of_sender is None else (price_finding(of_sender),)),
        *(price_finding(finding) for finding in of_pass),
        *(() if of_helo is None else (uncharged(of_helo),)),
    )


def charge_host(
    reverse_dns: ReverseDnsVerdict | None,
    helo: HeloVerdict | None,
    *,
    is_own_host: bool = False,
) -> tuple[ChargedFinding, ...]:
    """Price the reverse DNS name of the sending address and the HELO name.

    A record for the HELO name is proposed only if the host is known to be the sender's own.
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
    """Price the best signature; one good signature is enough.

    Further findings about the signatures follow without a price.
    """
    charged = tuple(_find(dkim, dmarc))
    ids = {finding.id for finding in charged}
    described = _findings_of_telling(dkim, dmarc) if "dkim.invalid" in ids else ()
    rest = (
        finding
        for finding in describe_signatures(dkim)
        if finding.id not in ids
        and finding not in described
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
    """Judge the valid signatures: their domains, and the strength of their keys."""
    best, author = dkim.passing, dmarc.author_domain
    # Without an author no signature can be aligned; DMARC charges that.
    if author is not None and dmarc.is_dkim_aligned is None:
        yield describe_undetermined(dkim, author)
    elif author is not None and dmarc.is_dkim_aligned:
        best = tuple(s for s in best if s.header.index in dmarc.aligned_signatures) or best
    elif author is not None:
        yield describe_unaligned(dkim, author)
    if all(signature.is_weak for signature in best):
        found = describe_signature(best[0], has_passing=True)
        yield from (finding for finding in found if finding.id == WEAK)


def _findings_of_telling(dkim: DkimOfMail, dmarc: DmarcOfMail) -> tuple[Finding, ...]:
    """Return the findings that `describe_invalid` has already included."""
    telling = choose_signature_to_fix(dkim, dmarc.author_domain)
    return () if telling is None else tuple(describe_signature(telling, has_passing=False))


def charge_dmarc(
    dmarc: DmarcOfMail, spf: SpfOfMail, dkim: DkimOfMail
) -> tuple[ChargedFinding, ...]:
    """Price the result for the author domain (RFC 9989).

    Findings about the record follow without a price. While the domain's own mail fails, no
    stricter policy is advised.
    """
    finding = describe_dmarc_of_mail(dmarc, spf, dkim)
    charged = () if finding is None else (price_finding(finding),)
    if dmarc.verdict is None or dmarc.result not in (AuthResult.PASS, AuthResult.FAIL):
        return charged
    left_out = STRICTER_POLICY_FINDINGS if dmarc.result is AuthResult.FAIL else ()
    known = (f for f in dmarc.verdict.findings if f.severity is not Severity.UNDETERMINED)
    return (
        *charged,
        *(uncharged(known_finding) for known_finding in known if known_finding.id not in left_out),
    )


def charge_authentication(spf: SpfOfMail, dkim: DkimOfMail) -> tuple[ChargedFinding, ...]:
    """Charge a mail for which neither SPF nor DKIM passes, if both results are known."""
    is_known = spf.mail_from.result.is_determined and dkim.is_determined
    if not is_known or spf.has_pass or dkim.passing:
        return ()
    return (charge("authentication.nothing-passes"),)


def charge_blocklists(listings: Sequence[Listing]) -> tuple[ChargedFinding, ...]:
    """Price every listing, the worst first, up to the cap; lists without an answer are free."""
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
        return (*charged, charge("blacklist.no-address"))
    if not are_listings_known(listings):
        return (*charged, charge("blacklist.undetermined"))
    return charged


MAX_NAMED = 5
"""Maximum number of rules named in a sentence."""

MAX_DESCRIBED = 3
"""Maximum number of rules whose descriptions are quoted."""

_KIND = re.compile(r"\A(?:[A-Z]{3,8}: )+", re.ASCII)

_IDS = {
    FilterProblem.OFF: "spamassassin.off",
    FilterProblem.NOT_INSTALLED: "spamassassin.not-installed",
    FilterProblem.NO_MEMORY: "spamassassin.no-memory",
    FilterProblem.UNREACHABLE: "spamassassin.unreachable",
    FilterProblem.TIMEOUT: "spamassassin.timeout",
    FilterProblem.BUSY: "spamassassin.busy",
    FilterProblem.TOO_LARGE: "spamassassin.too-large",
    FilterProblem.BROKEN_ANSWER: "spamassassin.broken-answer",
    FilterProblem.SKIPPED: "spamassassin.skipped",
}


def _unavailable(finding_id: str, outcome: FilterUnavailable) -> ChargedFinding:
    return charge(finding_id, case="explained", explanation=outcome.reason, fix=outcome.fix)


def charge_content_filter(outcome: FilterOutcome) -> tuple[ChargedFinding, ...]:
    """Price the points of rules that no other check covers."""
    if isinstance(outcome, FilterUnavailable):
        return (_unavailable(_IDS[outcome.problem], outcome),)
    tenths = cost_of_points(outcome.counted_points)
    if not tenths:
        return ()
    finding = make_finding(
        "spamassassin.points",
        severity=severity_at(tenths),
        engine=outcome.engine,
        counted_points=outcome.counted_points,
        threshold=outcome.threshold,
        outcome=_rules(outcome),
        descriptions=_descriptions(outcome),
    )
    return (price_finding(finding, tenths),)


def charge_rspamd(outcome: FilterOutcome | None, *, counts: bool) -> tuple[ChargedFinding, ...]:
    """Price the points of rspamd, so that its threshold costs as much as SpamAssassin's.

    :param counts: whether the score uses them (`counted_outcome`). Otherwise they cost nothing.
    """
    if outcome is None:
        return ()
    if isinstance(outcome, FilterUnavailable):
        return (_unavailable("rspamd.undetermined", outcome),)
    tenths = cost_of_points(FILTER_MAX_POINTS * outcome.counted_points / outcome.threshold)
    if not tenths:
        return ()
    rest = "" if counts else " It costs no points beside SpamAssassin."
    finding = make_finding(
        "rspamd.points",
        severity=severity_at(tenths if counts else 0),
        engine=outcome.engine,
        counted_points=outcome.counted_points,
        threshold=outcome.threshold,
        outcome=_rules(outcome),
        rest=rest,
        descriptions=_descriptions(outcome),
    )
    return (price_finding(finding, tenths) if counts else uncharged(finding),)


def _against(verdict: FilterVerdict) -> list[FilterRule]:
    found = (rule for rule in verdict.rules if rule.counts and rule.points > 0)
    return sorted(found, key=lambda rule: -rule.points)


def _descriptions(verdict: FilterVerdict) -> str:
    """Return the descriptions of the rules with most points, without their ``BODY:`` prefixes."""
    texts = [_KIND.sub("", rule.description) or rule.name for rule in _against(verdict)]
    return "; ".join(text.rstrip(".") for text in texts[:MAX_DESCRIBED])


def _rules(verdict: FilterVerdict) -> str:
    names = [f"{rule.name} ({rule.points:.1f})" for rule in _against(verdict)]
    if len(names) > MAX_NAMED:
        names = [*names[:MAX_NAMED], f"and {len(names) - MAX_NAMED} more"]
    return ", ".join(names)
