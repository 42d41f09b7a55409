"""Everything that is known of one mail: what its score is made of, and nothing else."""

from msgspec import Struct

from mailcheck.checks.arc.reading import ArcOfMail
from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.checks.deliverability.content_filter import FilterOutcome
from mailcheck.checks.dnsbl.listings import Listing
from mailcheck.checks.findings import ChargedFinding
from mailcheck.checks.hosts.helo import HeloVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.spf.tree import SpfVerdict


class MailEvidence(Struct, frozen=True):
    """What all checks found.

    ``spf_record`` is there where SPF found fault. ``reverse_dns`` and ``helo``
    are nothing for an address that can't be judged. ``quality`` is what the
    making of the mail costs, within its cap. ``is_own_host`` tells that the sender's
    domain vouches for the client itself: a name of it leads to the address, or an MX.
    """

    authentication: Authentication
    spf_record: SpfVerdict | None
    reverse_dns: ReverseDnsVerdict | None
    helo: HeloVerdict | None
    arc: ArcOfMail
    listings: tuple[Listing, ...]
    content_filter: FilterOutcome
    quality: tuple[ChargedFinding, ...]
    is_own_host: bool = False
