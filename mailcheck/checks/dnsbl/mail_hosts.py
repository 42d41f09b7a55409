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


def choose_blocklist_targets(
    given: Sequence[IpAddress],
    mx: MxVerdict,
    own: HostAddresses,
    *,
    organization: str,
    allow_private: bool = False,
) -> tuple[Target, ...]:
    """Return the addresses to check: the given ones, else those of mail hosts, else the domain's.

    The first address of every mail host comes before the second of any. Addresses of hosts outside
    the organization are marked as shared.
    """
    chosen: dict[IpAddress, bool] = {}
    for address, is_shared in _candidates(given, mx, own, organization):
        if allow_private or _is_known_to_lists(address):
            chosen.setdefault(address, is_shared)
    targets = [target_address(address, is_shared=shared) for address, shared in chosen.items()]
    return tuple(targets[:MAX_ADDRESSES])


def _candidates(
    given: Sequence[IpAddress], mx: MxVerdict, own: HostAddresses, organization: str
) -> Iterator[tuple[IpAddress, bool]]:
    if given or not mx.hosts:
        yield from ((address, False) for address in given or own.addresses)
        return
    for turn in zip_longest(*(host.addresses for host in mx.hosts)):
        for host, address in zip(mx.hosts, turn, strict=True):
            if address is not None:
                yield address, not is_within(host.exchange, organization)


def _is_known_to_lists(address: IpAddress) -> bool:
    """Return whether a list may have the address; documentation addresses count, for examples."""
    return why_not_public(address) in (None, DOCUMENTATION)


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
        """Return the addresses that are checked on blocklists."""
        return choose_blocklist_targets(
            given,
            self.mx,
            self.own,
            organization=self.organization,
            allow_private=allow_private,
        )


def evaluate_mail_hosts(domain: str, answers: Answers, *, allow_private: bool) -> MailHosts:
    """Look up the mail hosts of a domain."""
    return MailHosts(
        evaluate_mx(domain, answers, allow_private=allow_private),
        look_up_addresses(answers, domain),
    )
