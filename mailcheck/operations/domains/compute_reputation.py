"""A domain's reputation: every check that bears on whether its mail is believed, as one score."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dkim.evaluate import DkimVerdict, evaluate_dkim
from mailcheck.checks.dmarc.evaluate import DmarcVerdict, evaluate_dmarc
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.dnsbl.mail_addresses import choose_sending_host
from mailcheck.checks.hosts.mx import evaluate_mx
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict, evaluate_reverse_dns
from mailcheck.checks.hosts.starttls import StarttlsVerdict
from mailcheck.checks.scoring.evidence import Evidence
from mailcheck.checks.scoring.score import Score, compute_score
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.instants import HOUR, MINUTE, Instant
from mailcheck.core.instruments import Tally, outcome_of
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.ask import DEADLINE, QuestionBudget, Verdict, ask_until_known
from mailcheck.operations.dns_ports import Resolver
from mailcheck.operations.domains.check_blocklists import BlocklistCheck, CheckBlocklists
from mailcheck.operations.domains.known_selectors import KnownSelectors
from mailcheck.operations.domains.mail_hosts import MailHosts
from mailcheck.operations.domains.probe_hosts import RegistrationFinder, StarttlsProber, probe_hosts
from mailcheck.operations.fan_out import run_all
from mailcheck.operations.ports import Now
from mailcheck.operations.recent import RecentlyUsed
from mailcheck.operations.sharing_calls import SharedCalls

REMEMBERED = HOUR
REMEMBERED_UNDETERMINED = MINUTE
"""A result of which something could not be determined is soon tried again."""

MAX_REMEMBERED = 2_000
"""Results, each some ten kilobytes."""


@dataclass(frozen=True, slots=True)
class ReputationQuery:
    """What is asked: a domain in A-labels, and what the caller knows of it."""

    domain: str
    selectors: tuple[str, ...] = ()
    addresses: tuple[IpAddress, ...] = ()


@dataclass(frozen=True, slots=True)
class Reputation:
    """A score, and everything it was made from."""

    domain: str
    hosts: MailHosts
    evidence: Evidence
    blocklists: BlocklistCheck
    score: Score
    checked_at: Instant
    is_cached: bool = False


@dataclass(frozen=True, slots=True)
class ReputationSources:
    """Whom the check asks."""

    resolver: Resolver
    blocklists: CheckBlocklists
    prober: StarttlsProber
    registrations: RegistrationFinder
    known_selectors: KnownSelectors


class ComputeReputation:
    """Computes reputations, remembers them for a while, and runs the same check once at a time."""

    def __init__(
        self, sources: ReputationSources, clock: IReactorTime, now: Now, *, allow_private: bool
    ) -> None:
        self._sources = sources
        self._clock = clock
        self._now = now
        self._allow_private = allow_private
        self._remembered: RecentlyUsed[ReputationQuery, Reputation] = RecentlyUsed(MAX_REMEMBERED)
        self._running = SharedCalls(self._compute)
        self.outcomes = Tally()

    async def compute(self, query: ReputationQuery, *, is_refresh: bool = False) -> Reputation:
        """Give the reputation; one that is remembered unless the caller wants a new one."""
        remembered = None if is_refresh else self._recall(query)
        if remembered is not None:
            return replace(remembered, is_cached=True)
        return await self._running.call(query)

    def _recall(self, query: ReputationQuery) -> Reputation | None:
        found = self._remembered.get(query)
        if found is None:
            return None
        lifetime = REMEMBERED_UNDETERMINED if found.score.undetermined else REMEMBERED
        if not 0 <= self._now() - found.checked_at < lifetime:
            self._remembered.drop(query)
            return None
        return found

    async def _compute(self, query: ReputationQuery) -> Reputation:
        sources = self._sources
        authentication, by_hosts, registration = await run_all(
            self._authentication(query),
            self._by_hosts(query),
            _find_registration(sources.registrations, query.domain),
        )
        spf, dkim, dmarc = authentication
        hosts, blocklists, starttls, reverse_dns = by_hosts
        evidence = Evidence(
            spf=spf,
            dkim=dkim,
            dmarc=dmarc,
            mx=hosts.mx,
            listings=blocklists.listings,
            starttls=starttls,
            registration=registration,
            reverse_dns=reverse_dns,
        )
        score = compute_score(evidence)
        found = Reputation(query.domain, hosts, evidence, blocklists, score, self._now())
        self.outcomes.add(outcome_of(is_determined=not score.undetermined))
        if score.is_gradable:
            self._remembered.put(query, found)
        return found

    async def _authentication(
        self, query: ReputationQuery
    ) -> tuple[SpfVerdict, DkimVerdict, DmarcVerdict]:
        known = (*query.selectors, *self._sources.known_selectors(query.domain))

        def evaluate(answers: Answers) -> tuple[SpfVerdict, DkimVerdict, DmarcVerdict]:
            mx = evaluate_mx(query.domain, answers, allow_private=self._allow_private)
            spf = evaluate_spf(query.domain, answers)
            hints = (*(host.exchange for host in mx.hosts), *spf.hosts)
            dkim = evaluate_dkim(query.domain, answers, known=known, hosts=hints)
            return spf, dkim, evaluate_dmarc(query.domain, answers)

        return await self._ask(evaluate)

    async def _by_hosts(
        self, query: ReputationQuery
    ) -> tuple[MailHosts, BlocklistCheck, StarttlsVerdict, ReverseDnsVerdict | None]:
        ends_at = self._clock.seconds() + DEADLINE
        hosts = await self._sources.blocklists.find_hosts(query.domain)
        left = max(0.0, ends_at - self._clock.seconds())
        blocklists, starttls, reverse_dns = await run_all(
            self._sources.blocklists.check_domain(query.domain, hosts, query.addresses),
            probe_hosts(hosts.mx, self._sources.prober, self._clock, left),
            self._reverse_dns(query, hosts, left),
        )
        return hosts, blocklists, starttls, reverse_dns

    async def _reverse_dns(
        self, query: ReputationQuery, hosts: MailHosts, seconds: float
    ) -> ReverseDnsVerdict | None:
        host = choose_sending_host(query.addresses, hosts.mx, hosts.own)
        if host is None:
            return None
        return await self._ask(
            lambda answers: evaluate_reverse_dns(host.address, answers, host_name=host.host_name),
            seconds,
        )

    async def _ask(
        self, evaluate: Callable[[Answers], Verdict], seconds: float = DEADLINE
    ) -> Verdict:
        return await ask_until_known(
            self._sources.resolver,
            evaluate,
            clock=self._clock,
            budget=QuestionBudget.starting_now(self._clock, seconds),
        )


async def _find_registration(finder: RegistrationFinder, domain: str) -> RegistrationVerdict:
    return await finder.find_registration(domain)
