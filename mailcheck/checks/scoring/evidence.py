"""The verdicts that a reputation score is based on."""

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.checks.dkim.evaluate import DkimVerdict
from mailcheck.checks.dmarc.evaluate import DmarcVerdict
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dnsbl.listings import Listing
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.hosts.starttls import StarttlsVerdict
from mailcheck.checks.scoring.no_mail import uses_no_mail
from mailcheck.checks.spf.tree import SpfVerdict


class Evidence(Struct, frozen=True):
    """Verdicts about one domain; ``reverse_dns`` is `None` without an address to check."""

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
        """Whether all records declare that the domain does not use mail.

        These are ``v=spf1 -all``, a null MX and ``p=reject``. Such a parked domain is configured
        perfectly, and needs neither keys nor hosts.
        """
        return is_parked(self.spf, self.mx, self.dmarc)

    @property
    def uses_no_mail(self) -> bool:
        """Whether the domain sends no mail, so that it needs neither keys nor reverse DNS."""
        return uses_no_mail(self.spf, self.mx)


def is_parked(spf: SpfVerdict, mx: MxVerdict, dmarc: DmarcVerdict) -> bool:
    """Return whether a domain is parked, see `Evidence.is_parked`."""
    return (
        spf.sends_no_mail
        and mx.is_null_mx
        and dmarc.policy is Policy.REJECT
        and dmarc.record is not None
        and not dmarc.record.is_testing
    )
