"""What the signatures cost."""

from collections.abc import Iterator

from mailcheck.checks.charges import Area, ChargedFinding
from mailcheck.checks.deliverability.charging import charge_known, remark
from mailcheck.checks.dkim.mail_findings import (
    describe_invalid,
    describe_signature,
    describe_signatures,
    describe_unaligned,
    describe_undetermined,
    find_telling,
)
from mailcheck.checks.dkim.mail_verdicts import DkimOfMail
from mailcheck.checks.dmarc.mail import DmarcOfMail
from mailcheck.checks.findings import Finding, Severity

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
        *(charge_known(Area.DKIM, finding) for finding in charged),
        *(remark(Area.DKIM, finding) for finding in rest),
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
