"""Is a mail on a blocklist: the address it came from, and the domains that it names."""

from collections.abc import Iterable

from mailcheck.checks.dnsbl.catalogue import Blocklist, Catalogue, TargetKind
from mailcheck.checks.dnsbl.listings import (
    Listing,
    ListingStatus,
    UnknownReason,
    target_address,
    target_domain,
    unknown_listing,
)
from mailcheck.checks.mail_domains import owner_of
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.domains.check_blocklists import AskBlocklists

MAX_NAMES = 10
"""Domains of one mail that lists are asked about: each costs twelve questions."""


class BlocklistsOfMail:
    """Asks about a mail: one row for each list of the address profile, and each that knows names.

    The two halves are asked apart, since the address is known before the mail
    has been read.
    """

    def __init__(self, catalogue: Catalogue, lists: AskBlocklists) -> None:
        self._lists = lists
        self._address_lists = catalogue.address_profile
        self._name_lists = tuple(
            one for one in catalogue.domain_profile if one.knows(TargetKind.DOMAIN)
        )

    async def ask_about_address(self, address: IpAddress | None) -> tuple[Listing, ...]:
        """Ask about the sending address; nothing is an address that no list can know."""
        if address is None:
            return tuple(_unasked(one) for one in self._address_lists)
        return tuple(await self._lists.ask(self._address_lists, [target_address(address)]))

    async def ask_about_names(self, names: Iterable[str]) -> tuple[Listing, ...]:
        """Ask about domains, the most important first; those beyond the limit are left out."""
        targets = [target_domain(name) for name in list(dict.fromkeys(names))[:MAX_NAMES]]
        return tuple(await self._lists.ask(self._name_lists, targets))


def names_to_ask(
    author_domains: Iterable[str], envelope_domain: str, link_hosts: Iterable[str]
) -> tuple[str, ...]:
    """Give the domains of a mail, each with the one that was registered; A-labels all of them.

    Of links only the registered domain: lists hold those, and a link's host
    is often made for one mail.
    """
    own = [*author_domains, envelope_domain]
    named = [name for domain in own if domain for name in (domain, owner_of(domain))]
    return tuple(dict.fromkeys((*named, *(owner_of(host) for host in link_hosts))))


def _unasked(blocklist: Blocklist) -> Listing:
    if not blocklist.is_enabled:
        return Listing(blocklist, ListingStatus.DISABLED)
    return unknown_listing(blocklist, UnknownReason.NOT_PUBLIC)
