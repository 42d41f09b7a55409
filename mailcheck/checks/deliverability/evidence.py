"""Everything that is known of one mail: what its score is made of, and nothing else."""

from dataclasses import dataclass

from mailcheck.checks.deliverability.content_filter import FilterOutcome
from mailcheck.checks.deliverability.origin import Origin
from mailcheck.checks.deliverability.report import ChargedFinding
from mailcheck.checks.dkim.mail_verdicts import DkimOfMail
from mailcheck.checks.dmarc.mail_verdicts import DmarcOfMail
from mailcheck.checks.dnsbl.listings import Listing
from mailcheck.checks.findings import Finding
from mailcheck.checks.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.spf.mail_verdicts import SpfOfMail


@dataclass(frozen=True, slots=True)
class MailEvidence:
    """What all checks found.

    ``reverse_dns`` is nothing for an address that can't be judged; ``helo``
    are the findings about the name in HELO. ``quality`` is what the making of
    the mail costs, within its cap.
    """

    origin: Origin
    spf: SpfOfMail
    reverse_dns: ReverseDnsVerdict | None
    helo: tuple[Finding, ...]
    dkim: DkimOfMail
    dmarc: DmarcOfMail
    listings: tuple[Listing, ...]
    content_filter: FilterOutcome
    quality: tuple[ChargedFinding, ...]
