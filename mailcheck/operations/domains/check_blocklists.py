"""Check an address or a domain on 32 blocklists at once (docs/reference/contract.md)."""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import Answers, DnsAnswer, DnsQuestion
from mailcheck.checks.dnsbl.catalogue import Blocklist, Catalogue
from mailcheck.checks.dnsbl.listings import (
    Listing,
    ListingStatus,
    Target,
    UnknownReason,
    evaluate_listing,
    has_usable_answer,
    target_address,
    target_domain,
    unknown_listing,
)
from mailcheck.checks.dnsbl.mail_hosts import MailHosts, evaluate_mail_hosts
from mailcheck.core.instruments import Tally
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.dns_evaluation import QuestionBudget, evaluate_with_dns
from mailcheck.operations.domains.zone_health import ListBudgets, ZoneHealthCheck
from mailcheck.ports.resolver import Resolver

OnListing = Callable[[Listing], None]
"""Told what a list says, once for each list, as soon as nothing can change it any more."""


def ignore_listing(_: Listing) -> None:
    """Hear of no row before all of them are there."""


class QueryBlocklists:
    """Asks lists: within their budgets, only those that are well, each with the time it took.

    :param deadline: seconds after which a list that has not answered is unknown.
    """

    def __init__(
        self,
        resolver: Resolver,
        budgets: ListBudgets,
        health: ZoneHealthCheck,
        clock: IReactorTime,
        deadline: float,
    ) -> None:
        self._resolver = resolver
        self._budgets = budgets
        self._health = health
        self._clock = clock
        self.deadline = deadline
        self.answers = Tally()

    async def query(
        self,
        blocklists: Sequence[Blocklist],
        targets: Sequence[Target],
        on_listing: OnListing = ignore_listing,
    ) -> list[Listing]:
        """Ask lists about targets, all at once; one that is silent is unknown in the end.

        :param on_listing: is told each row before all of them are given, in the order of answers.
        """
        affordable = await self._affordable(blocklists, targets)
        ends_at = self._clock.seconds() + self.deadline

        async def ask_and_tell(blocklist: Blocklist) -> Listing:
            if blocklist in affordable:
                listing = await self._ask_one(blocklist, targets, ends_at)
            else:
                listing = unknown_listing(blocklist, UnknownReason.OVER_BUDGET)
            self.answers.add(listing.status.value)
            on_listing(listing)
            return listing

        return await run_all(*map(ask_and_tell, blocklists))

    async def _ask_one(
        self, blocklist: Blocklist, targets: Sequence[Target], ends_at: float
    ) -> Listing:
        def judge(known: Answers) -> Listing:
            unhealthy_kinds = self._health.unhealthy_kinds(blocklist)
            return evaluate_listing(blocklist, targets, known, unhealthy_kinds=unhealthy_kinds)

        lookups, answers = _TimedLookups(self._resolver, self._clock), Answers()
        budget = QuestionBudget(ends_at)
        await evaluate_with_dns(lookups, judge, clock=self._clock, budget=budget, answers=answers)
        # Asked beside the daemon's first self-test, judged behind it.
        await self._health.wait_for_first_test()
        return replace(judge(answers), seconds=lookups.slowest)

    async def _affordable(
        self, blocklists: Sequence[Blocklist], targets: Sequence[Target]
    ) -> list[Blocklist]:
        """Count the questions to all lists at once; those that are switched off get none."""
        enabled = [one for one in blocklists if one.is_enabled]
        taken = await self._budgets.take(
            [(one, sum(one.supports(target.kind) for target in targets)) for one in enabled]
        )
        refused = [one for one, is_taken in zip(enabled, taken, strict=True) if not is_taken]
        return [one for one in blocklists if one not in refused]


class _TimedLookups:
    """Asks for one list, and notes how long the slowest address answer took."""

    def __init__(self, resolver: Resolver, clock: IReactorTime) -> None:
        self._resolver = resolver
        self._clock = clock
        self.slowest = 0.0

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Answer as `Resolver` promises; a question that is given up took until then."""
        asked_at = self._clock.seconds()

        def note(result: DnsAnswer | Failure) -> DnsAnswer | Failure:
            self.slowest = max(self.slowest, self._clock.seconds() - asked_at)
            return result

        answer = self._resolver.lookup(question)
        # The text of a listing is asked for afterwards, and is not what was waited for.
        return answer.addBoth(note) if question.rdtype == "A" else answer


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
        lists: QueryBlocklists,
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

    async def check(
        self, query: IpAddress | str, on_listing: OnListing = ignore_listing
    ) -> BlocklistCheck:
        """Ask about an address or a domain name.

        :param on_listing: is told each row as soon as it is known.
        """
        if not isinstance(query, str):
            rows = await self._lists.query(
                self.lists_for(query), [target_address(query)], on_listing
            )
            return BlocklistCheck(str(query), True, (), tuple(rows))
        return await self.check_domain(query, await self.find_hosts(query), on_listing=on_listing)

    async def find_hosts(self, domain: str) -> MailHosts:
        """Find the mail hosts of a domain, in the time that lists have as well."""
        evaluate: Callable[[Answers], MailHosts] = partial(
            evaluate_mail_hosts, domain, allow_private=self._allow_private
        )
        budget = QuestionBudget.starting_now(self._clock, self._lists.deadline)
        return await evaluate_with_dns(self._resolver, evaluate, clock=self._clock, budget=budget)

    async def check_domain(
        self,
        domain: str,
        hosts: MailHosts,
        given: Sequence[IpAddress] = (),
        on_listing: OnListing = ignore_listing,
    ) -> BlocklistCheck:
        """Ask about a domain, its organization's domain, and its mail addresses.

        :param given: addresses that it sends from, in place of those of its mail hosts.
        :param on_listing: is told each row as soon as it is known.
        """
        addresses = hosts.blocklist_targets(given, allow_private=self._allow_private)
        names = [target_domain(name) for name in dict.fromkeys((domain, hosts.organization))]
        has_target = bool(addresses) or not hosts.has_unknown_addresses

        def final(row: Listing) -> Listing:
            if has_target or row.status is not ListingStatus.UNSUPPORTED:
                return row
            # What the list should have been asked about is not known.
            unknown = unknown_listing(row.blocklist, UnknownReason.NO_TARGET)
            return replace(unknown, seconds=row.seconds)

        rows = await self._lists.query(
            self.lists_for(domain), [*names, *addresses], lambda row: on_listing(final(row))
        )
        values = tuple(target.value for target in addresses)
        return BlocklistCheck(domain, False, values, tuple(map(final, rows)))
