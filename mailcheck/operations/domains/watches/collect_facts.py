"""One run of a watch: collecting facts with the same checks that clients use."""

from functools import partial

from msgspec import Struct
from twisted.internet.defer import Deferred, succeed

from mailcheck.checks.dnsbl.catalogue import Blocklist
from mailcheck.checks.hosts.reverse_dns import evaluate_reverse_dns
from mailcheck.checks.hosts.starttls import ProbeOutcome
from mailcheck.checks.watching.facts import (
    Facts,
    UnscoredVerdicts,
    facts_of_address,
    facts_of_domain,
)
from mailcheck.core.domains.watches import Watch, WatchKind
from mailcheck.core.network_addresses import IpAddress, parse_ip_address
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.dns_evaluation import DnsEvaluator
from mailcheck.operations.domains.check_blocklists import CheckBlocklists
from mailcheck.operations.domains.compute_reputation import ComputeReputation, ReputationQuery
from mailcheck.operations.domains.describe_domain import DescribeDomain
from mailcheck.operations.domains.zone_health import ListBudgets
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.probes import OutboundPort, StarttlsProber
from mailcheck.ports.resolver import Resolver

SHARE_OF_BUDGETS = 0.5
"""Share of a blocklist's daily budget that watches may use, so that clients get the rest."""


class WatchBudgets(ListBudgets):
    """The shared budgets of blocklists, of which watches may only use a part."""

    async def take(self, wanted: list[tuple[Blocklist, int]]) -> list[bool]:  # type: ignore[override]
        """Count questions. Return false for each blocklist whose share is used up today."""
        asked = await self.asked_today([blocklist for blocklist, _ in wanted])

        def is_left(one: Blocklist, questions: int) -> bool:
            limit = self.limit_of(one)
            return limit is None or asked[one.zone] + questions <= SHARE_OF_BUDGETS * limit

        left = [is_left(*pair) for pair in wanted]
        counted = [
            (blocklist, questions if may else 0)
            for (blocklist, questions), may in zip(wanted, left, strict=True)
        ]
        taken = await super().take(counted)
        return [may and is_taken for may, is_taken in zip(left, taken, strict=True)]


class NullCache:
    """A cache that stores nothing, since a watch needs current results."""

    def recall(self, _: str) -> Deferred[str | None]:
        """Return `None`."""
        return succeed(None)

    def keep(self, _: str, __: str, ___: int) -> Deferred[bool]:
        """Store nothing."""
        return succeed(False)

    def acquire(self, _: str, __: int) -> Deferred[bool]:
        """Acquire the lock, which is always free."""
        return succeed(True)

    def release(self, _: str) -> Deferred[None]:
        """Do nothing."""
        return succeed(None)


class CollectFacts(Struct, frozen=True, eq=False):
    """Runs all checks of a domain or an address, and returns their facts.

    :param reputation: a reputation check without a cache.
    """

    reputation: ComputeReputation
    domain: DescribeDomain
    blocklists: CheckBlocklists
    resolver: Resolver
    prober: StarttlsProber
    clocks: ClockAndRandomness

    async def collect(self, watch: Watch) -> Facts:
        """Check the target once. The facts include what could not be determined."""
        if watch.kind is WatchKind.ADDRESS:
            return await self._collect_of_address(_address(watch.target))
        settings = watch.settings
        query = ReputationQuery(
            watch.target, settings.selectors, tuple(map(_address, settings.addresses))
        )
        found, report = await run_all(
            self.reputation.compute(query, is_refresh=True),
            self.domain.describe(watch.target, settings.selectors),
        )
        probes = found.evidence.starttls.probes
        is_port_open = False
        if any(probe.outcome is ProbeOutcome.UNREACHABLE for probe in probes):
            # If another host of the domain was reached, the port is open as well.
            is_port_open = any(probe.outcome.is_determined for probe in probes) or (
                await self.prober.outbound_port() is OutboundPort.OPEN
            )
        return facts_of_domain(
            found.evidence,
            found.score,
            UnscoredVerdicts(
                report.mta_sts, report.records.tls_rpt, report.records.caa, report.bimi
            ),
            settings.selectors,
            is_port_open=is_port_open,
            now=self.clocks.now(),
        )

    async def _collect_of_address(self, address: IpAddress) -> Facts:
        evaluator = DnsEvaluator.starting_now(self.resolver, self.clocks.clock)
        check, names = await run_all(
            self.blocklists.check(address),
            evaluator.evaluate(partial(evaluate_reverse_dns, address)),
        )
        return facts_of_address(check.listings, names)


def _address(text: str) -> IpAddress:
    address = parse_ip_address(text)
    assert address is not None, "targets are validated when the watch is created"
    return address
