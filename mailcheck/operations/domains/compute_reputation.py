"""The reputation of a domain: all checks that affect whether receivers accept its mail."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dkim.evaluate import DkimVerdict, evaluate_dkim
from mailcheck.checks.dmarc.evaluate import DmarcVerdict, evaluate_dmarc
from mailcheck.checks.dmarc.policy_advice import postpone_stricter_policy
from mailcheck.checks.dns_answers import Answers, Presence, look_up_addresses
from mailcheck.checks.dnsbl.mail_hosts import MailHosts, choose_sending_host
from mailcheck.checks.hosts.mx import MxVerdict, evaluate_mx
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict, evaluate_reverse_dns
from mailcheck.checks.hosts.starttls import (
    ProbeOutcome,
    StarttlsProbe,
    StarttlsVerdict,
    evaluate_starttls,
)
from mailcheck.checks.proofs import CachedConclusion, CachedEvaluation, Outcome, Proofs
from mailcheck.checks.scoring.domain_outcome import outcome_of_evidence, outcome_of_records
from mailcheck.checks.scoring.evidence import Evidence
from mailcheck.checks.scoring.no_mail import advise_no_mail
from mailcheck.checks.scoring.score import (
    Judgements,
    Score,
    compute_score,
    judge_age,
    judge_dmarc,
    judge_dns,
    judge_encryption,
    judge_listings,
    judge_mx,
    judge_records,
    judge_rest,
    judge_spf,
)
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.domains.receiver_reports import NOWHERE, ReportPlaces
from mailcheck.core.instants import HOUR, MINUTE, Instant
from mailcheck.core.memory.instruments import Tally, outcome_of
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.cached_values import CachedValues
from mailcheck.operations.concurrency import SingleFlight, run_all
from mailcheck.operations.dns_evaluation import DEADLINE, DnsEvaluator, QuestionBudget
from mailcheck.operations.domains.check_blocklists import BlocklistCheck, CheckBlocklists
from mailcheck.operations.domains.known_selectors import KnownSelectors, selectors_to_try
from mailcheck.operations.verify_fixes import Judge, verify_fixes
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.probes import RegistrationFinder, StarttlsProber
from mailcheck.ports.resolver import Resolver

REMEMBERED = HOUR
REMEMBERED_UNDETERMINED = MINUTE
"""Cache lifetimes. Results with undetermined parts are repeated sooner."""


class ReputationQuery(Struct, frozen=True):
    """A domain in A-labels, with the selectors and addresses that the caller knows."""

    domain: str
    selectors: tuple[str, ...] = ()
    addresses: tuple[IpAddress, ...] = ()

    @property
    def key(self) -> Key:
        """The cache key of this query."""
        addresses = key_of("addresses", *map(str, self.addresses))
        return key_of(self.domain, addresses, *self.selectors)


class Reputation(Struct, frozen=True):
    """A reputation score with all the evidence behind it."""

    domain: str
    hosts: MailHosts
    evidence: Evidence
    blocklists: BlocklistCheck
    score: Score
    checked_at: Instant
    is_cached: bool = False
    proofs: Proofs = field(default_factory=dict)


class ReputationSources(Struct, frozen=True):
    """The sources of a reputation check."""

    resolver: Resolver
    blocklists: CheckBlocklists
    prober: StarttlsProber
    registrations: RegistrationFinder
    known_selectors: KnownSelectors


Authenticate = Callable[[Answers], tuple[SpfVerdict, DkimVerdict, DmarcVerdict, MxVerdict]]
"""Evaluates the records with which a domain authenticates its mail."""


OnFactors = Callable[[Judgements], None]
"""Called with the factors that have just been determined. They are not final for the total."""


def make_authentication_evaluator(
    domain: str,
    selectors: Sequence[str],
    offered: ReportPlaces,
    *,
    allow_private: bool,
    on_factors: OnFactors = lambda _: None,
) -> Authenticate:
    """Return the evaluation of the records with which a domain authenticates its mail.

    :param selectors: known DKIM selectors.
    :param offered: where advice directs reports to.
    :param on_factors: called when SPF, DMARC or MX is determined.
    """
    find_mx = CachedEvaluation(
        partial(evaluate_mx, domain, allow_private=allow_private),
        lambda mx: on_factors(judge_mx(mx)),
    )
    find_spf = CachedEvaluation(
        partial(evaluate_spf, domain), lambda spf: on_factors(judge_spf(spf))
    )
    find_dmarc = CachedEvaluation(
        partial(evaluate_dmarc, domain, report_to=offered.dmarc),
        lambda dmarc: on_factors(judge_dmarc(dmarc)),
    )
    find_keys = CachedEvaluation(
        lambda answers, selectors: evaluate_dkim(domain, selectors, answers)
    )
    choose = CachedConclusion(partial(selectors_to_try, tuple(selectors)))
    advise = CachedConclusion(postpone_stricter_policy)
    advise_on_silence = CachedEvaluation(partial(advise_no_mail, domain))

    def evaluate(answers: Answers) -> tuple[SpfVerdict, DkimVerdict, DmarcVerdict, MxVerdict]:
        mx, spf = find_mx(answers), find_spf(answers)
        keys = find_keys(answers, choose(mx, spf))
        policy = advise(find_dmarc(answers), spf, keys)
        advised_mx, dmarc, dkim = advise_on_silence(answers, mx, spf, policy, keys)
        assert dkim is not None, "advise_no_mail returns a verdict for a verdict"
        return spf, dkim, dmarc, advised_mx

    return evaluate


FindNames = Callable[[Answers], Sequence[ReverseDnsVerdict | None]]


async def make_names_evaluator(domain: str, mx: MxVerdict, evaluator: DnsEvaluator) -> FindNames:
    """Return the evaluation of the reverse DNS of a domain without mail hosts.

    Such a domain needs none once all records declare that it uses no mail. For another domain, the
    result is empty.
    """
    if mx.hosts or mx.has_unknown_hosts:
        return lambda _: ()
    own = await evaluator.evaluate(lambda answers: look_up_addresses(answers, domain))
    host = choose_sending_host((), mx, own)
    if host is None:
        return lambda _: (None,)
    judge = CachedEvaluation(partial(evaluate_reverse_dns, host.address, host_name=host.host_name))
    return lambda answers: (judge(answers),)


def make_records_judge(domain: str) -> Judge:
    """Return the evaluation of these records, for records that no finding proposes."""
    authenticate = make_authentication_evaluator(domain, (), NOWHERE, allow_private=True)

    def judge(answers: Answers) -> Outcome:
        spf, dkim, dmarc, mx = authenticate(answers)
        return outcome_of_records(mx, spf, dmarc, dkim)

    return judge


class ComputeReputation:
    """Computes reputations and caches them. Concurrent identical queries share one check."""

    def __init__(
        self,
        sources: ReputationSources,
        cache: CachedValues[Reputation],
        clocks: ClockAndRandomness,
        *,
        allow_private: bool,
        verifies_fixes: bool = True,
    ) -> None:
        """``verifies_fixes``: also return verified fixes, which doubles the time."""
        self._is_proving = verifies_fixes
        self._sources = sources
        self._clock = clocks.clock
        self._now = clocks.now
        self._allow_private = allow_private
        self._cache = cache
        self._running = SingleFlight(self._compute)
        self._listeners: dict[Key, list[OnFactors]] = {}
        self.outcomes = Tally()

    async def compute(
        self,
        query: ReputationQuery,
        offered: ReportPlaces = NOWHERE,
        *,
        is_refresh: bool = False,
        on_factors: OnFactors | None = None,
    ) -> Reputation:
        """Return the reputation, from the cache unless ``is_refresh`` is set.

        :param offered: where advice directs reports to. Cached results are shared by all
            accounts and direct them nowhere.
        :param on_factors: called during a check, and not for a cached result.
        """
        remembered = None if is_refresh else await self._cache.get(query.key)
        if remembered is not None:
            found = replace(remembered, is_cached=True)
        else:
            with self._told(query.key, on_factors):
                found = await self._running.call(query)
        dmarc = found.evidence.dmarc
        is_silent = dmarc.presence is not Presence.UNDETERMINED and (
            dmarc.record is None or not dmarc.record.requests_reports
        )
        if not (offered.dmarc and is_silent and found.score.is_gradable and self._is_proving):
            return found
        return await self._offer(query, found, offered)

    async def has_cached(self, query: ReputationQuery) -> bool:
        """Return whether the result is in the cache."""
        return await self._cache.get(query.key) is not None

    @contextmanager
    def _told(self, key: Key, on_factors: OnFactors | None) -> Iterator[None]:
        """Tell the caller about the factors of a running check while the block runs."""
        if on_factors is None:
            yield
            return
        listeners = self._listeners.setdefault(key, [])
        listeners.append(on_factors)
        try:
            yield
        finally:
            listeners.remove(on_factors)
            if not listeners:
                self._listeners.pop(key, None)

    def _tell(self, query: ReputationQuery, judgements: Judgements) -> None:
        for on_factors in tuple(self._listeners.get(query.key, ())):
            on_factors(judgements)

    async def _offer(
        self, query: ReputationQuery, found: Reputation, offered: ReportPlaces
    ) -> Reputation:
        """Repeat the advice with an address for reports, if DNS has not changed."""
        known = (*query.selectors, *await self._sources.known_selectors(query.domain))
        evaluator = DnsEvaluator.starting_now(self._sources.resolver, self._clock)
        evaluate = make_authentication_evaluator(
            query.domain, known, offered, allow_private=self._allow_private
        )
        _, _, dmarc, _ = await evaluator.evaluate(evaluate)
        evidence = found.evidence
        if replace(dmarc, findings=evidence.dmarc.findings) != evidence.dmarc:
            return found
        evidence = replace(evidence, dmarc=dmarc)
        found = replace(found, evidence=evidence, score=compute_score(evidence))
        return replace(found, proofs=await self._prove(evaluate, query, found, evaluator))

    async def _compute(self, query: ReputationQuery) -> Reputation:
        sources = self._sources
        known = (*query.selectors, *await sources.known_selectors(query.domain))
        evaluator = DnsEvaluator.starting_now(sources.resolver, self._clock)
        authenticate = make_authentication_evaluator(
            query.domain,
            known,
            NOWHERE,
            allow_private=self._allow_private,
            on_factors=partial(self._tell, query),
        )
        authentication, by_hosts, registration = await run_all(
            self._authenticate(query, authenticate, evaluator),
            self._by_hosts(query, evaluator.answers),
            self._find_registration(query),
        )
        spf, dkim, dmarc, _ = authentication
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
        if hosts.mx.exists:
            self._tell(query, judge_dns(evidence))
        found = Reputation(query.domain, hosts, evidence, blocklists, score, checked_at=self._now())
        self.outcomes.add(outcome_of(is_determined=not score.undetermined))
        if score.is_gradable and self._is_proving:
            found = replace(found, proofs=await self._prove(authenticate, query, found, evaluator))
        if score.is_gradable:
            lifetime = REMEMBERED_UNDETERMINED if score.undetermined else REMEMBERED
            await self._cache.put(query.key, found, lifetime)
        return found

    async def _authenticate(
        self, query: ReputationQuery, authenticate: Authenticate, evaluator: DnsEvaluator
    ) -> tuple[SpfVerdict, DkimVerdict, DmarcVerdict, MxVerdict]:
        found = await evaluator.evaluate(authenticate)
        spf, dkim, dmarc, mx = found
        if mx.exists:
            self._tell(query, judge_records(spf, dkim, dmarc, mx))
        return found

    async def _find_registration(self, query: ReputationQuery) -> RegistrationVerdict:
        found = await self._sources.registrations.find_registration(query.domain)
        self._tell(query, judge_age(found))
        return found

    async def _prove(
        self,
        authentication: Authenticate,
        query: ReputationQuery,
        found: Reputation,
        evaluator: DnsEvaluator,
    ) -> Proofs:
        """Verify the fixes. Blocklists, mail hosts and registration are not checked again."""
        evidence = found.evidence
        host = choose_sending_host(query.addresses, evidence.mx, found.hosts.own)
        rest = judge_rest(evidence)
        judge_name = (
            None
            if host is None
            else CachedEvaluation(
                partial(evaluate_reverse_dns, host.address, host_name=host.host_name)
            )
        )

        def judge(answers: Answers) -> Outcome:
            spf, dkim, dmarc, mx = authentication(answers)
            changed = replace(evidence, spf=spf, dkim=dkim, dmarc=dmarc, mx=mx)
            if judge_name is not None:
                changed = replace(changed, reverse_dns=judge_name(answers))
            return outcome_of_evidence(changed, rest)

        before = await evaluator.evaluate(judge)
        return await verify_fixes(before, judge, evaluator)

    async def _by_hosts(
        self, query: ReputationQuery, answers: Answers
    ) -> tuple[MailHosts, BlocklistCheck, StarttlsVerdict, ReverseDnsVerdict | None]:
        ends_at = self._clock.seconds() + DEADLINE
        hosts = await self._sources.blocklists.find_hosts(query.domain)
        left = max(0.0, ends_at - self._clock.seconds())
        blocklists, starttls, reverse_dns = await run_all(
            self._check_blocklists(query, hosts),
            self._probe_hosts(query, hosts, left),
            self._reverse_dns(query, hosts, left, answers),
        )
        return hosts, blocklists, starttls, reverse_dns

    async def _check_blocklists(self, query: ReputationQuery, hosts: MailHosts) -> BlocklistCheck:
        check = await self._sources.blocklists.check_domain(query.domain, hosts, query.addresses)
        self._tell(query, judge_listings(check.listings))
        return check

    async def _probe_hosts(
        self, query: ReputationQuery, hosts: MailHosts, seconds: float
    ) -> StarttlsVerdict:
        found = await probe_hosts(hosts.mx, self._sources.prober, self._clock, seconds)
        self._tell(query, judge_encryption(found))
        return found

    async def _reverse_dns(
        self, query: ReputationQuery, hosts: MailHosts, seconds: float, answers: Answers
    ) -> ReverseDnsVerdict | None:
        host = choose_sending_host(query.addresses, hosts.mx, hosts.own)
        if host is None:
            return None
        budget = QuestionBudget.starting_now(self._clock, seconds)
        evaluator = DnsEvaluator(self._sources.resolver, self._clock, budget, answers)
        return await evaluator.evaluate(
            partial(evaluate_reverse_dns, host.address, host_name=host.host_name)
        )


MAX_PROBED_HOSTS = 4
"""Maximum number of mail hosts of a domain that are probed, best first
(docs/reference/contract.md)."""


async def probe_hosts(
    mx: MxVerdict, prober: StarttlsProber, clock: IReactorTime, seconds: float
) -> StarttlsVerdict:
    """Probe the mail hosts of a domain concurrently.

    :param seconds: time after which an unfinished probe is unknown.
    """

    async def probe(exchange: str) -> StarttlsProbe:
        unknown = StarttlsProbe(exchange, ProbeOutcome.NOT_PROBED)
        probing = prober.probe(exchange)
        return await probing.addTimeout(seconds, clock, lambda _, __: unknown)

    return evaluate_starttls(mx, await run_all(*map(probe, _exchanges(mx))))


def _exchanges(mx: MxVerdict) -> list[str]:
    if mx.is_null_mx:
        return []
    if mx.is_implicit_mx:
        return [mx.domain]
    return [host.exchange for host in mx.hosts if host.is_usable][:MAX_PROBED_HOSTS]
