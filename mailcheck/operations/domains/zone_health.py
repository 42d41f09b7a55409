"""Testing the blocklists themselves: a list that lists everything, or nothing, isn't believed."""

from collections.abc import Sequence
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.dnsbl.catalogue import Blocklist, TargetKind
from mailcheck.checks.dnsbl.health import HealthStatus, ZoneHealth, evaluate_health
from mailcheck.core.identifiers import RandomBytes
from mailcheck.core.instants import Instant
from mailcheck.operations.ask import QuestionBudget, ask_until_known
from mailcheck.operations.dns_ports import Resolver
from mailcheck.operations.domains.list_budgets import ListBudgets
from mailcheck.operations.ports import Now

INTERVAL = 30 * 60.0  # seconds between self-tests, DECISIONS.md section 2
NONCE_OCTETS = 3
FIRST_TEST_PATIENCE = 2.0  # seconds that checks wait for what the daemon's first self-test says
QUESTIONS_PER_KIND = 3  # two test points and a random target


class ZoneHealthCheck:
    """Remembers what the last self-test of each list found.

    :param resolver: one that remembers nothing: an old answer says nothing about now.
    """

    def __init__(
        self,
        blocklists: Sequence[Blocklist],
        resolver: Resolver,
        budgets: ListBudgets,
        clock: IReactorTime,
        now: Now,
        random_bytes: RandomBytes,
    ) -> None:
        self._blocklists = blocklists
        self._resolver = resolver
        self._budgets = budgets
        self._clock = clock
        self._now = now
        self._random_bytes = random_bytes
        self._found: dict[str, tuple[ZoneHealth, ...]] = {}
        self.tested_at: Instant | None = None
        self._is_first_test = False
        self._waiting: list[Deferred[None]] = []

    async def test_all(self) -> None:
        """Test all lists that are switched on, within the budget of their day."""
        self._is_first_test = self.tested_at is None
        try:
            await self._test_all()
        finally:
            self._is_first_test = False
            waiting, self._waiting = self._waiting, []
            for waiter in waiting:
                waiter.callback(None)

    async def when_known(self) -> None:
        """Wait a moment if the first test is under way: a sick list would be believed.

        The same mail would be judged in another way before and after a restart.
        """
        if not self._is_first_test:
            return
        waiter: Deferred[None] = Deferred()
        self._waiting.append(waiter)
        try:
            await waiter.addTimeout(FIRST_TEST_PATIENCE, self._clock)
        except DeferredTimeout:
            pass
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    async def _test_all(self) -> None:
        enabled = [one for one in self._blocklists if one.is_enabled]
        taken = await self._budgets.take(
            [(one, QUESTIONS_PER_KIND * len(one.query_zones)) for one in enabled]
        )
        tested = [one for one, is_taken in zip(enabled, taken, strict=True) if is_taken]
        nonce = int.from_bytes(self._random_bytes(NONCE_OCTETS), "big")
        budget = QuestionBudget.starting_now(self._clock)
        budget.questions_left = QUESTIONS_PER_KIND * len(TargetKind) * len(tested)
        found = await ask_until_known(
            self._resolver, partial(_judge_all, tested, nonce), clock=self._clock, budget=budget
        )
        for blocklist, health in zip(tested, found, strict=True):
            self._found[blocklist.zone] = _carry_over(self.of(blocklist), health)
        self.tested_at = self._now()

    def of(self, blocklist: Blocklist) -> tuple[ZoneHealth, ...]:
        """Give what is known of a list, kind by kind; nothing before its first test."""
        return self._found.get(blocklist.zone, ())

    def sick_kinds(self, blocklist: Blocklist) -> frozenset[TargetKind]:
        """Give the kinds of targets about which a list is not believed."""
        return frozenset(
            health.kind for health in self.of(blocklist) if health.status is HealthStatus.SICK
        )


def _judge_all(
    blocklists: Sequence[Blocklist], nonce: int, answers: Answers
) -> list[tuple[ZoneHealth, ...]]:
    return [evaluate_health(blocklist, answers, nonce) for blocklist in blocklists]


def _carry_over(
    before: tuple[ZoneHealth, ...], after: tuple[ZoneHealth, ...]
) -> tuple[ZoneHealth, ...]:
    """Keep a list sick that has given no answer this time: only an answer shows recovery."""
    sick = {health.kind: health for health in before if health.status is HealthStatus.SICK}
    return tuple(
        sick.get(health.kind, health) if health.status is HealthStatus.UNREACHABLE else health
        for health in after
    )
