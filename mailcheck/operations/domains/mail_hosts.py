"""Where a domain receives mail, and which addresses stand for it: what other checks begin with."""

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.checks.dns_answers import Answers, HostAddresses, Presence, look_up_addresses
from mailcheck.checks.dnsbl.evaluate import Target
from mailcheck.checks.dnsbl.mail_addresses import choose_listed_addresses
from mailcheck.checks.hosts.mx import HostProblem, MxVerdict, evaluate_mx
from mailcheck.checks.mail_domains import owner_of
from mailcheck.core.network_addresses import IpAddress


class MailHosts(Struct, frozen=True):
    """A domain's mail hosts and its own addresses."""

    mx: MxVerdict
    own: HostAddresses

    @property
    def organization(self) -> str:
        """Give the domain that was registered, by the Public Suffix List: a guess for lists."""
        return owner_of(self.mx.domain)

    @property
    def first_address(self) -> IpAddress | None:
        """Give the domain's own first address, else that of its best mail host."""
        best = self.mx.best
        found = (*self.own.addresses, *(best.addresses if best is not None else ()))
        return found[0] if found else None

    @property
    def is_address_unknown(self) -> bool:
        """Tell whether there may be addresses that could not be found out."""
        if self.mx.presence is Presence.UNDETERMINED:
            return True
        if not self.mx.hosts:
            return self.own.presence is Presence.UNDETERMINED
        return any(host.problem is HostProblem.UNDETERMINED for host in self.mx.hosts)

    def listed_addresses(
        self, given: Sequence[IpAddress], *, allow_private: bool
    ) -> tuple[Target, ...]:
        """Give the addresses that blocklists are asked about."""
        return choose_listed_addresses(
            given,
            self.mx,
            self.own,
            organization=self.organization,
            allow_private=allow_private,
        )


def evaluate_mail_hosts(domain: str, answers: Answers, *, allow_private: bool) -> MailHosts:
    """Find a domain's mail hosts."""
    return MailHosts(
        evaluate_mx(domain, answers, allow_private=allow_private),
        look_up_addresses(answers, domain),
    )
