"""Asking blocklists: within their budgets, only those that are well, each with its time."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import Answers, DnsAnswer, DnsQuestion
from mailcheck.checks.dnsbl.catalogue import Blocklist
from mailcheck.checks.dnsbl.evaluate import Target, evaluate_listing, query_name
from mailcheck.checks.dnsbl.listings import Listing, UnknownReason, unknown_listing
from mailcheck.core.instruments import Tally
from mailcheck.operations.ask import QuestionBudget, ask_until_known
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.dns_ports import Resolver
from mailcheck.operations.domains.zone_health import ListBudgets, ZoneHealthCheck

Hear = Callable[[Listing], None]
"""Told what a list says, once for each list, as soon as nothing can change it any more."""


def hear_nothing(_: Listing) -> None:
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
    ) -> list[Listing]:
        """Ask lists about targets, all at once; one that is silent is unknown in the end.

        :param hear: is told each row before all of them are given, in the order of answers.
        """
        affordable = await self._affordable(blocklists, targets)
        ends_at = self._clock.seconds() + self.deadline

        async def ask_and_tell(blocklist: Blocklist) -> Listing:
            if blocklist in affordable:
                listing = await self._ask_one(blocklist, targets, ends_at)
            else:
                listing = unknown_listing(blocklist, UnknownReason.OVER_BUDGET)
            self.answers.add(listing.status.value)
            hear(listing)
            return listing

        return await run_all(*map(ask_and_tell, blocklists))

    async def _ask_one(
        self, blocklist: Blocklist, targets: Sequence[Target], ends_at: float
    ) -> Listing:
        def judge(known: Answers) -> Listing:
            sick_kinds = self._health.sick_kinds(blocklist)
            return evaluate_listing(blocklist, targets, known, sick_kinds=sick_kinds)

        lookups, answers = _TimedLookups(self._resolver, self._clock), Answers()
        budget = QuestionBudget(ends_at)
        await ask_until_known(lookups, judge, clock=self._clock, budget=budget, answers=answers)
        # Asked beside the daemon's first self-test, judged behind it.
        await self._health.when_known()
        return replace(judge(answers), seconds=lookups.slowest)

    async def _affordable(
        self, blocklists: Sequence[Blocklist], targets: Sequence[Target]
    ) -> list[Blocklist]:
        """Count the questions to all lists at once; those that are switched off get none."""
        enabled = [one for one in blocklists if one.is_enabled]
        taken = await self._budgets.take([(one, len(_names(one, targets))) for one in enabled])
        refused = [one for one, is_taken in zip(enabled, taken, strict=True) if not is_taken]
        return [one for one in blocklists if one not in refused]


def _names(blocklist: Blocklist, targets: Sequence[Target]) -> list[str]:
    return [query_name(blocklist, one) for one in targets if blocklist.knows(one.kind)]


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
