"""Is an address or a domain on a blocklist (SPEC.md 2.2): 32 lists, asked all at once."""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.dnsbl.catalogue import Blocklist, Catalogue
from mailcheck.checks.dnsbl.evaluate import target_address, target_domain
from mailcheck.checks.dnsbl.listings import (
    Listing,
    ListingStatus,
    UnknownReason,
    has_usable_answer,
    unknown_listing,
)
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.ask import QuestionBudget, ask_until_known
from mailcheck.operations.dns_ports import Resolver
from mailcheck.operations.domains.ask_blocklists import (
    AskBlocklists,
    Hear,
    hear_nothing,
)
from mailcheck.operations.domains.mail_hosts import MailHosts, evaluate_mail_hosts


class BlocklistCheck(Struct, frozen=True):
    """What all lists of a profile say, in the order of the catalogue.

    ``addresses`` are those that stood in for a domain.
    """

    query: str
    is_address: bool
    addresses: tuple[str, ...]
    listings: tuple[Listing, ...]

    @property
    def has_no_answer(self) -> bool:
        """Tell whether not one list gave a usable answer, so that nothing is known."""
        return not has_usable_answer(self.listings)


class CheckBlocklists:
    """Asks the lists about an address, or about a domain and its mail addresses."""

    def __init__(
        self,
        catalogue: Catalogue,
        resolver: Resolver,
        lists: AskBlocklists,
        clock: IReactorTime,
        *,
        allow_private: bool,
    ) -> None:
        self.catalogue = catalogue
        self._resolver = resolver
        self._lists = lists
        self._clock = clock
        self._allow_private = allow_private

    def lists_for(self, query: IpAddress | str) -> Sequence[Blocklist]:
        """Give the lists that are asked about an address or a domain name, in their order."""
        is_name = isinstance(query, str)
        return self.catalogue.domain_profile if is_name else self.catalogue.address_profile

    async def check(self, query: IpAddress | str, hear: Hear = hear_nothing) -> BlocklistCheck:
        """Ask about an address or a domain name.

        :param hear: is told each row as soon as it is known.
        """
        if not isinstance(query, str):
            rows = await self._lists.ask(self.lists_for(query), [target_address(query)], hear)
            return BlocklistCheck(str(query), True, (), tuple(rows))
        return await self.check_domain(query, await self.find_hosts(query), hear=hear)

    async def find_hosts(self, domain: str) -> MailHosts:
        """Find the mail hosts of a domain, in the time that lists have as well."""
        evaluate: Callable[[Answers], MailHosts] = partial(
            evaluate_mail_hosts, domain, allow_private=self._allow_private
        )
        budget = QuestionBudget.starting_now(self._clock, self._lists.deadline)
        return await ask_until_known(self._resolver, evaluate, clock=self._clock, budget=budget)

    async def check_domain(
        self,
        domain: str,
        hosts: MailHosts,
        given: Sequence[IpAddress] = (),
        hear: Hear = hear_nothing,
    ) -> BlocklistCheck:
        """Ask about a domain, its organization's domain, and its mail addresses.

        :param given: addresses that it sends from, in place of those of its mail hosts.
        :param hear: is told each row as soon as it is known.
        """
        addresses = hosts.listed_addresses(given, allow_private=self._allow_private)
        names = [target_domain(name) for name in dict.fromkeys((domain, hosts.organization))]
        has_target = bool(addresses) or not hosts.is_address_unknown

        def final(row: Listing) -> Listing:
            return row if has_target else _without_target(row)

        rows = await self._lists.ask(
            self.lists_for(domain), [*names, *addresses], lambda row: hear(final(row))
        )
        values = tuple(target.value for target in addresses)
        return BlocklistCheck(domain, False, values, tuple(map(final, rows)))


def _without_target(row: Listing) -> Listing:
    """Say that it is not known what the list should have been asked about."""
    if row.status is not ListingStatus.UNSUPPORTED:
        return row
    return replace(unknown_listing(row.blocklist, UnknownReason.NO_TARGET), seconds=row.seconds)
