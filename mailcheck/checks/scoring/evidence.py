"""Everything that a score is made from."""

from collections.abc import Sequence
from dataclasses import dataclass

from mailcheck.checks.dkim.evaluate import DkimVerdict
from mailcheck.checks.dmarc.evaluate import DmarcVerdict
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dnsbl.listings import Listing
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.hosts.starttls import StarttlsVerdict
from mailcheck.checks.spf.tree import SpfVerdict


@dataclass(frozen=True, slots=True)
class Evidence:
    """The verdicts about one domain; ``reverse_dns`` is nothing without an address to judge."""

    spf: SpfVerdict
    dkim: DkimVerdict
    dmarc: DmarcVerdict
    mx: MxVerdict
    listings: Sequence[Listing]
    starttls: StarttlsVerdict
    registration: RegistrationVerdict
    reverse_dns: ReverseDnsVerdict | None

    @property
    def is_parked(self) -> bool:
        """Tell whether the domain says in every way that it has nothing to do with mail.

        ``v=spf1 -all``, a null MX and ``p=reject``: a domain that is parked
        like this is set up perfectly, and needs neither keys nor hosts.
        """
        return (
            self.spf.sends_no_mail
            and self.mx.is_null_mx
            and self.dmarc.policy is Policy.REJECT
            and self.dmarc.record is not None
            and not self.dmarc.record.is_testing
        )
