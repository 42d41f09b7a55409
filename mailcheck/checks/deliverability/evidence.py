"""Everything that is known of one mail: what its score is made of, and nothing else."""

from dataclasses import dataclass

from mailcheck.checks.arc.reading import ArcOfMail
from mailcheck.checks.charges import ChargedFinding
from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.checks.deliverability.content_filter import FilterOutcome
from mailcheck.checks.dnsbl.listings import Listing
from mailcheck.checks.hosts.helo import HeloVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.spf.tree import SpfVerdict


@dataclass(frozen=True, slots=True)
class MailEvidence:
    """What all checks found.

    ``spf_record`` is there where SPF found fault. ``reverse_dns`` and ``helo``
    are nothing for an address that can't be judged. ``quality`` is what the
    making of the mail costs, within its cap.
    """

    authentication: Authentication
    spf_record: SpfVerdict | None
    reverse_dns: ReverseDnsVerdict | None
    helo: HeloVerdict | None
    arc: ArcOfMail
    listings: tuple[Listing, ...]
    content_filter: FilterOutcome
    quality: tuple[ChargedFinding, ...]
