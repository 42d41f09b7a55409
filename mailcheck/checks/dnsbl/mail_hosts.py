"""The addresses that stand for a domain in blocklist and reverse DNS checks.

DNS says which hosts receive mail for a domain, but not which hosts send it. The caller may name
the sending hosts; otherwise the receiving hosts are used.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec import Struct

from mailcheck.checks.dns_answers import Answers, HostAddresses, Presence, look_up_addresses
from mailcheck.checks.dnsbl.listings import Target, target_address
from mailcheck.checks.hosts.mx import MxVerdict, evaluate_mx
from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.core.domains.domain_names import MAX_ADDRESSES, is_within
from mailcheck.core.network_addresses import DOCUMENTATION, IpAddress, why_not_public


class SendingHost(Struct, frozen=True):
    """The address whose reverse name is checked, and the name of the host if known."""

    address: IpAddress
    host_name: str


def choose_sending_host(
    given: Sequence[IpAddress], mx: MxVerdict, own: HostAddresses
) -> SendingHost | None:
    """Return the first given address, else that of the best mail host, else the domain's own.

    The address of the domain is usually a web server, so it comes last. It is not used if there
    may be mail hosts that could not be determined.
    """
    best = mx.best
    if given:
        return SendingHost(given[0], "")
    if best is not None and best.addresses:
        return SendingHost(best.addresses[0], best.exchange)
    if mx.has_unknown_hosts:
        return None
    return SendingHost(own.addresses[0], own.name) if own.addresses else None


class MailHosts(Struct, frozen=True):
    """The mail hosts and the own addresses of a domain."""

    mx: MxVerdict
    own: HostAddresses

    @property
    def organization(self) -> str:
        """The registered domain by the Public Suffix List, which is an estimate."""
        return registrable_domain(self.mx.domain)

    @property
    def first_address(self) -> IpAddress | None:
        """The first address of the domain itself, else of its best mail host."""
        best = self.mx.best
        found = (*self.own.addresses, *(best.addresses if best is not None else ()))
        return found[0] if found else None

    @property
    def has_unknown_addresses(self) -> bool:
        """Whether there may be addresses that could not be determined."""
        is_own_unknown = not self.mx.hosts and self.own.presence is Presence.UNDETERMINED
        return self.mx.has_unknown_hosts or is_own_unknown

    def blocklist_targets(
        self, given: Sequence[IpAddress], *, allow_private: bool
    ) -> tuple[Target, ...]:
        """Return the addresses to check: those given, else of the mail hosts, else of the domain.

        The first address of every mail host comes before the second of any. Addresses of hosts
        outside the organization are marked as shared.
        """
        chosen: dict[IpAddress, bool] = {}
        for address, is_shared in self._candidates(given):
            # Documentation addresses count, for examples.
            if allow_private or why_not_public(address) in (None, DOCUMENTATION):
                chosen.setdefault(address, is_shared)
        targets = [target_address(address, is_shared=shared) for address, shared in chosen.items()]
        return tuple(targets[:MAX_ADDRESSES])

    def _candidates(self, given: Sequence[IpAddress]) -> Iterator[tuple[IpAddress, bool]]:
        hosts = self.mx.hosts
        if given or not hosts:
            yield from ((address, False) for address in given or self.own.addresses)
            return
        for turn in zip_longest(*(host.addresses for host in hosts)):
            for host, address in zip(hosts, turn, strict=True):
                if address is not None:
                    yield address, not is_within(host.exchange, self.organization)


def evaluate_mail_hosts(domain: str, answers: Answers, *, allow_private: bool) -> MailHosts:
    """Look up the mail hosts of a domain."""
    return MailHosts(
        evaluate_mx(domain, answers, allow_private=allow_private),
        look_up_addresses(answers, domain),
    )
