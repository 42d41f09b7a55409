"""Check an address or a domain on 32 blocklists at once (docs/reference/contract.md)."""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct, field
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
from mailcheck.core.memory.instruments import Tally
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.dns_evaluation import QuestionBudget, evaluate_with_dns
from mailcheck.operations.domains.zone_health import ListBudgets, ZoneHealthCheck
from mailcheck.ports.resolver import Resolver

OnListing = Callable[[Listing], None]
"""Called with the result of each blocklist, once, as soon as it is final."""


def ignore_listing(_: Listing) -> None:
    """Ignore single results; the caller waits for all of them."""


class QueryBlocklists(Struct, eq=False):
    """Queries blocklists: within their budgets, only healthy ones, and measuring each.

    A reload of the configuration changes ``budgets`` and ``deadline``.

    :param deadline: seconds after which a blocklist without an answer is unknown.
    """

    resolver: Resolver
    budgets: ListBudgets
    health: ZoneHealthCheck
    clock: IReactorTime
    deadline: float
    answers: Tally = field(default_factory=Tally)

    async def query(
        self,
        blocklists: Sequence[Blocklist],
        targets: Sequence[Target],
        on_listing: OnListing = ignore_listing,
    ) -> list[Listing]:
        """Query blocklists about targets, all concurrently.

        A blocklist that does not answer is unknown in the end.

        :param on_listing: called with each result as soon as it is final.
        """
        affordable = await self._affordable(blocklists, targets)
        ends_at = self.clock.seconds() + self.deadline

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
            unhealthy_kinds = self.health.unhealthy_kinds(blocklist)
            return evaluate_listing(blocklist, targets, known, unhealthy_kinds=unhealthy_kinds)

        lookups, answers = _TimedLookups(self.resolver, self.clock), Answers()
        budget = QuestionBudget(ends_at)
        await evaluate_with_dns(lookups, judge, clock=self.clock, budget=budget, answers=answers)
        # The lookups run beside the first self-test, but they are judged with its results.
        await self.health.wait_for_first_test()
        return replace(judge(answers), seconds=lookups.slowest)

    async def _affordable(
        self, blocklists: Sequence[Blocklist], targets: Sequence[Target]
    ) -> list[Blocklist]:
        """Count the questions in the budgets and return the blocklists that may be asked."""
        enabled = [blocklist for blocklist in blocklists if blocklist.is_enabled]
        taken = await self.budgets.take(
            [
                (blocklist, sum(blocklist.supports(target.kind) for target in targets))
                for blocklist in enabled
            ]
        )
        refused = [
            blocklist for blocklist, is_taken in zip(enabled, taken, strict=True) if not is_taken
        ]
        return [blocklist for blocklist in blocklists if blocklist not in refused]


class _TimedLookups:
    """Looks names up for one blocklist and measures the slowest address lookup."""

    def __init__(self, resolver: Resolver, clock: IReactorTime) -> None:
        self._resolver = resolver
        self._clock = clock
        self.slowest = 0.0

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Look a question up as `Resolver` does. A cancelled lookup counts until then."""
        asked_at = self._clock.seconds()

        def note(result: DnsAnswer | Failure) -> DnsAnswer | Failure:
            self.slowest = max(self.slowest, self._clock.seconds() - asked_at)
            return result

        answer = self._resolver.lookup(question)
        # The text of a listing is looked up afterwards, and its time does not count.
        return answer.addBoth(note) if question.rdtype == "A" else answer


class BlocklistCheck(Struct, frozen=True):
    """The results of all blocklists of a profile, in the order of the catalogue.

    ``addresses`` are the mail host addresses that were checked for a domain.
    """

    query: str
    is_address: bool
    addresses: tuple[str, ...]
    listings: tuple[Listing, ...]

    @property
    def has_no_answer(self) -> bool:
        """Whether not a single blocklist gave a usable answer."""
        return not has_usable_answer(self.listings)


class CheckBlocklists(Struct, frozen=True, eq=False):
    """Checks an IP address, or a domain with its mail hosts, on all blocklists."""

    catalogue: Catalogue
    resolver: Resolver
    lists: QueryBlocklists
    clock: IReactorTime
    allow_private: bool

    def lists_for(self, query: IpAddress | str) -> Sequence[Blocklist]:
        """Return the blocklists for an address or a domain name, in their order."""
        is_name = isinstance(query, str)
        return self.catalogue.domain_profile if is_name else self.catalogue.address_profile

    async def check(
        self, query: IpAddress | str, on_listing: OnListing = ignore_listing
    ) -> BlocklistCheck:
        """Check an address or a domain name.

        :param on_listing: called with each result as soon as it is final.
        """
        if not isinstance(query, str):
            rows = await self.lists.query(
                self.lists_for(query), [target_address(query)], on_listing
            )
            return BlocklistCheck(str(query), True, (), tuple(rows))
        return await self.check_domain(query, await self.find_hosts(query), on_listing=on_listing)

    async def find_hosts(self, domain: str) -> MailHosts:
        """Find the mail hosts of a domain, within the deadline of the blocklists."""
        evaluate: Callable[[Answers], MailHosts] = partial(
            evaluate_mail_hosts, domain, allow_private=self.allow_private
        )
        budget = QuestionBudget.starting_now(self.clock, self.lists.deadline)
        return await evaluate_with_dns(self.resolver, evaluate, clock=self.clock, budget=budget)

    async def check_domain(
        self,
        domain: str,
        hosts: MailHosts,
        given: Sequence[IpAddress] = (),
        on_listing: OnListing = ignore_listing,
    ) -> BlocklistCheck:
        """Check a domain, its organizational domain and its mail host addresses.

        :param given: sending addresses to check instead of the mail hosts.
        :param on_listing: called with each result as soon as it is final.
        """
        addresses = hosts.blocklist_targets(given, allow_private=self.allow_private)
        names = [target_domain(name) for name in dict.fromkeys((domain, hosts.organization))]
        has_target = bool(addresses) or not hosts.has_unknown_addresses

        def final(row: Listing) -> Listing:
            if has_target or row.status is not ListingStatus.UNSUPPORTED:
                return row
            # The addresses that this list should have been asked about are not known.
            unknown = unknown_listing(row.blocklist, UnknownReason.NO_TARGET)
            return replace(unknown, seconds=row.seconds)

        rows = await self.lists.query(
            self.lists_for(domain), [*names, *addresses], lambda row: on_listing(final(row))
        )
        values = tuple(target.value for target in addresses)
        return BlocklistCheck(domain, False, values, tuple(map(final, rows)))
