"""Where a domain receives mail, and which addresses stand for it: for lists, and for its name.

DNS tells where a domain's mail arrives, not where it leaves. Who knows better
names the sending hosts; otherwise the mail hosts stand in for them.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec import Struct

from mailcheck.checks.dns_answers import Answers, HostAddresses, Presence, look_up_addresses
from mailcheck.checks.dnsbl.listings import Target, target_address
from mailcheck.checks.hosts.mx import MxVerdict, evaluate_mx
from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.core.domain_names import MAX_ADDRESSES, is_within
from mailcheck.core.network_addresses import DOCUMENTATION, IpAddress, why_not_public


class SendingHost(Struct, frozen=True):
    """The address whose reverse name is judged, and what the host is called, if known."""

    address: IpAddress
    host_name: str


def choose_sending_host(
    given: Sequence[IpAddress], mx: MxVerdict, own: HostAddresses
) -> SendingHost | None:
    """Give the first given address, else the best mail host's, else the domain's own.

    The web server's name says nothing about mail, so it comes last, and not where there may be
    mail hosts that could not be found out.
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
    """Give the addresses to ask blocklists about: given ones, else the mail hosts', else own.

    Of several mail hosts each gives its first address before any gives its
    second. Addresses of hosts outside the organization are marked as shared.
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
    """Tell whether a list may know it: the ones for documentation too, so that examples work."""
    return why_not_public(address) in (None, DOCUMENTATION)


class MailHosts(Struct, frozen=True):
    """A domain's mail hosts and its own addresses."""

    mx: MxVerdict
    own: HostAddresses

    @property
    def organization(self) -> str:
        """Give the domain that was registered, by the Public Suffix List: a guess for lists."""
        return registrable_domain(self.mx.domain)

    @property
    def first_address(self) -> IpAddress | None:
        """Give the domain's own first address, else that of its best mail host."""
        best = self.mx.best
        found = (*self.own.addresses, *(best.addresses if best is not None else ()))
        return found[0] if found else None

    @property
    def has_unknown_addresses(self) -> bool:
        """Tell whether there may be addresses that could not be found out."""
        is_own_unknown = not self.mx.hosts and self.own.presence is Presence.UNDETERMINED
        return self.mx.has_unknown_hosts or is_own_unknown

    def blocklist_targets(
        self, given: Sequence[IpAddress], *, allow_private: bool
    ) -> tuple[Target, ...]:
        """Give the addresses that blocklists are asked about."""
        return choose_blocklist_targets(
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
