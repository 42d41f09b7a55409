"""Asking blocklists: within their budgets, only those that are well, each with its time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.dnsbl.catalogue import Blocklist
from mailcheck.checks.dnsbl.evaluate import evaluate_listing
from mailcheck.checks.dnsbl.listings import Listing, UnknownReason, unknown_listing
from mailcheck.checks.dnsbl.targets import Target, query_name
from mailcheck.core.instruments import Tally
from mailcheck.operations.ask import QuestionBudget, ask_until_known
from mailcheck.operations.dns_ports import Resolver
from mailcheck.operations.domains.list_budgets import ListBudgets
from mailcheck.operations.domains.zone_health import ZoneHealthCheck
from mailcheck.operations.timed_lookups import TimedLookups


@dataclass(frozen=True, slots=True)
class TimedListing:
    """What one list says, and how many seconds its slowest answer took."""

    listing: Listing
    seconds: float


Hear = Callable[[TimedListing], None]
"""Told what a list says, once for each list, as soon as nothing can change it any more."""


def hear_nothing(_: TimedListing) -> None:
    """Wait for the end."""


class AskBlocklists:
    """What it takes to ask lists.

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

    async def ask(
        self,
        blocklists: Sequence[Blocklist],
        targets: Sequence[Target],
        hear: Hear = hear_nothing,
    ) -> list[TimedListing]:
        """Ask lists about targets, all at once; one that is silent is unknown in the end.

        :param hear: is told each row before all of them are given, in the order of answers.
        """
        await self._health.when_known()
        lookups = TimedLookups(self._resolver, self._clock)
        told: dict[str, TimedListing] = {}

        def tell(listing: Listing) -> None:
            names = _names(listing.blocklist, targets)
            row = TimedListing(listing, max(map(lookups.seconds, names), default=0.0))
            told[listing.blocklist.zone] = row
            self.answers.add(listing.status.value)
            hear(row)

        affordable = [one for one in blocklists if self._can_afford(one, targets)]
        for one in blocklists:
            if one not in affordable:
                tell(unknown_listing(one, UnknownReason.OVER_BUDGET))
        await ask_until_known(
            lookups,
            partial(self._tell_new, affordable, targets, told, tell),
            clock=self._clock,
            budget=QuestionBudget.starting_now(self._clock, self.deadline),
        )
        return [told[one.zone] for one in blocklists]

    def _tell_new(
        self,
        blocklists: Sequence[Blocklist],
        targets: Sequence[Target],
        told: Mapping[str, TimedListing],
        tell: Callable[[Listing], None],
        answers: Answers,
    ) -> None:
        """Judge those lists that were not told yet, and tell those that miss no answer."""
        for one in blocklists:
            if one.zone in told:
                continue
            own = Answers(answers.known)
            sick_kinds = self._health.sick_kinds(one)
            listing = evaluate_listing(one, targets, own, sick_kinds=sick_kinds)
            answers.missing.update(own.missing)
            if not own.missing:
                tell(listing)

    def _can_afford(self, blocklist: Blocklist, targets: Sequence[Target]) -> bool:
        questions = len(_names(blocklist, targets))
        return not blocklist.is_enabled or self._budgets.take(blocklist, questions)


def _names(blocklist: Blocklist, targets: Sequence[Target]) -> list[str]:
    return [query_name(blocklist, one) for one in targets if blocklist.knows(one.kind)]
