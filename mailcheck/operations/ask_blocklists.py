"""Asking blocklists: within their budgets, only those that are well, each with its time."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.dnsbl.catalogue import Blocklist
from mailcheck.checks.dnsbl.evaluate import evaluate_listing
from mailcheck.checks.dnsbl.listings import Listing, UnknownReason, unknown_listing
from mailcheck.checks.dnsbl.targets import Target, query_name
from mailcheck.operations.ask import QuestionBudget, ask_until_known
from mailcheck.operations.dns_ports import Resolver
from mailcheck.operations.list_budgets import ListBudgets
from mailcheck.operations.timed_lookups import TimedLookups
from mailcheck.operations.zone_health import ZoneHealthCheck


@dataclass(frozen=True, slots=True)
class TimedListing:
    """What one list says, and how many seconds its slowest answer took."""

    listing: Listing
    seconds: float


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

    async def ask(
        self, blocklists: Sequence[Blocklist], targets: Sequence[Target]
    ) -> list[TimedListing]:
        """Ask lists about targets, all at once; one that is silent is unknown in the end."""
        affordable = [one for one in blocklists if self._can_afford(one, targets)]
        lookups = TimedLookups(self._resolver, self._clock)
        listings = await ask_until_known(
            lookups,
            partial(self._judge, affordable, targets),
            clock=self._clock,
            budget=QuestionBudget.starting_now(self._clock, self.deadline),
        )
        judged = dict(zip((one.zone for one in affordable), listings, strict=True))
        return [
            TimedListing(
                judged.get(one.zone) or unknown_listing(one, UnknownReason.OVER_BUDGET),
                max((lookups.seconds(name) for name in _names(one, targets)), default=0.0),
            )
            for one in blocklists
        ]

    def _judge(
        self, blocklists: Sequence[Blocklist], targets: Sequence[Target], answers: Answers
    ) -> list[Listing]:
        return [
            evaluate_listing(one, targets, answers, sick_kinds=self._health.sick_kinds(one))
            for one in blocklists
        ]

    def _can_afford(self, blocklist: Blocklist, targets: Sequence[Target]) -> bool:
        questions = len(_names(blocklist, targets))
        return not blocklist.is_enabled or self._budgets.take(blocklist, questions)


def _names(blocklist: Blocklist, targets: Sequence[Target]) -> list[str]:
    return [query_name(blocklist, one) for one in targets if blocklist.knows(one.kind)]
