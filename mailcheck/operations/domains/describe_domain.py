"""The domain report: everything known about a domain's mail setup, by mechanism."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from mailcheck.checks.bimi.evaluate import (
    BimiFiles,
    BimiVerdict,
    FileFetch,
    evaluate_bimi,
    read_evidence,
    read_logo,
)
from mailcheck.checks.bimi.record import DEFAULT_SELECTOR, BimiRecord, evaluate_bimi_record
from mailcheck.checks.dkim.evaluate import DkimVerdict
from mailcheck.checks.dmarc.evaluate import DmarcVerdict
from mailcheck.checks.dns_answers import Answers, Presence
from mailcheck.checks.findings import Finding
from mailcheck.checks.hosts.caa import CaaVerdict, evaluate_caa
from mailcheck.checks.hosts.dane import DaneVerdict, DnssecVerdict, evaluate_dane, evaluate_dnssec
from mailcheck.checks.hosts.mta_sts import (
    MtaStsRecord,
    MtaStsVerdict,
    PolicyFetch,
    evaluate_mta_sts,
    evaluate_mta_sts_record,
)
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.hosts.tls_rpt import TlsRptVerdict, evaluate_tls_rpt
from mailcheck.checks.proofs import CachedConclusion, CachedEvaluation, Outcome, Proofs
from mailcheck.checks.scoring.domain_outcome import outcome_of_records
from mailcheck.checks.scoring.evidence import is_parked
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.domains.receiver_reports import NOWHERE, ReportPlaces
from mailcheck.core.instants import Instant
from mailcheck.core.memory.instruments import Tally, outcome_of
from mailcheck.operations.concurrency import SingleFlight, run_all
from mailcheck.operations.dns_evaluation import DnsEvaluator
from mailcheck.operations.domains.compute_reputation import (
    make_authentication_evaluator,
    make_names_evaluator,
)
from mailcheck.operations.domains.known_selectors import KnownSelectors
from mailcheck.operations.verify_fixes import verify_fixes
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.probes import DomainFiles
from mailcheck.ports.resolver import Resolver


class DomainRecords(Struct, frozen=True):
    """The verdicts about a domain's DNS records."""

    mx: MxVerdict
    spf: SpfVerdict
    dmarc: DmarcVerdict
    dkim: DkimVerdict
    mta_sts_record: MtaStsRecord
    tls_rpt: TlsRptVerdict
    dane: DaneVerdict
    dnssec: DnssecVerdict
    caa: CaaVerdict
    bimi_record: BimiRecord

    @property
    def is_parked(self) -> bool:
        """Whether the domain declares that it uses no mail, so that it needs no keys."""
        return is_parked(self.spf, self.mx, self.dmarc)


class Asked(Struct, frozen=True):
    """The parameters of a report; see `DescribeDomain.describe`."""

    domain: str
    selectors: tuple[str, ...]
    offered: ReportPlaces
    logo_selector: str


_ASIDE = ("mtaSts", "tlsRpt", "dane", "dnssec", "caa", "bimi")
"""Topics that are not part of a score."""


class DomainReport(Struct, frozen=True):
    """The DNS verdicts, the MTA-STS policy, the logo and the verified fixes of a domain.

    ``names`` is explained at `make_names_evaluator`.
    """

    domain: str
    records: DomainRecords
    mta_sts: MtaStsVerdict
    bimi: BimiVerdict
    checked_at: Instant
    proofs: Proofs = field(default_factory=dict)
    names: Sequence[ReverseDnsVerdict | None] = ()

    @property
    def outcome(self) -> Outcome:
        """The outcome by which fixes are verified."""
        records, more = self.records, self.unscored
        return outcome_of_records(
            records.mx, records.spf, records.dmarc, records.dkim, more, names=self.names
        )

    @property
    def unscored(self) -> tuple[Finding, ...]:
        """The findings of the mechanisms that are not part of a score."""
        findings = self.findings
        return tuple(finding for topic in _ASIDE for finding in findings[topic])

    @property
    def findings(self) -> Mapping[str, tuple[Finding, ...]]:
        """The findings of each mechanism. If the name does not exist, that is the only one."""
        records = self.records
        if not records.mx.exists:
            nothing = dict.fromkeys(("spf", "dkim", "dmarc", *_ASIDE), ())
            return {"mx": records.mx.findings, **nothing}
        return {
            "mx": records.mx.findings,
            "spf": records.spf.findings,
            "dkim": records.dkim.findings,
            "dmarc": records.dmarc.findings,
            "mtaSts": self.mta_sts.findings,
            "tlsRpt": records.tls_rpt.findings,
            "dane": records.dane.findings,
            "dnssec": records.dnssec.findings,
            "caa": records.caa.findings,
            "bimi": self.bimi.findings,
        }


class DescribeDomain:
    """Looks everything up concurrently. Concurrent identical requests share one report."""

    def __init__(
        self,
        resolver: Resolver,
        fetcher: DomainFiles,
        known_selectors: KnownSelectors,
        clocks: ClockAndRandomness,
        *,
        is_validating: bool,
        allow_private: bool,
        verifies_fixes: bool = True,
    ) -> None:
        """``verifies_fixes``: also return verified fixes, which doubles the time."""
        self._is_proving = verifies_fixes
        self._resolver = resolver
        self._fetcher = fetcher
        self._known_selectors = known_selectors
        self._clock = clocks.clock
        self._now = clocks.now
        self._is_validating = is_validating
        self._allow_private = allow_private
        self._running = SingleFlight(self._describe)
        self.outcomes = Tally()

    async def describe(
        self,
        domain: str,
        selectors: tuple[str, ...] = (),
        offered: ReportPlaces = NOWHERE,
        logo_selector: str = DEFAULT_SELECTOR,
    ) -> DomainReport:
        """Describe a domain, given in A-labels.

        :param selectors: DKIM selectors that the caller knows.
        :param offered: where advice directs reports to.
        :param logo_selector: the selector of the BIMI record.
        """
        return await self._running.call(Asked(domain, selectors, offered, logo_selector))

    async def _describe(self, asked: Asked) -> DomainReport:
        domain = asked.domain
        known = (*asked.selectors, *await self._known_selectors(domain))
        evaluate = self._evaluate(asked, known)
        evaluator = DnsEvaluator.starting_now(self._resolver, self._clock)
        records = await evaluator.evaluate(evaluate)
        fetch, files = await run_all(
            self._fetch_policy(records.mta_sts_record), self._fetch_logo(records.bimi_record)
        )
        now = self._now()

        judge_policy = CachedConclusion(evaluate_mta_sts)
        judge_logo = CachedConclusion(partial(evaluate_bimi, files, now))

        def report_on(records: DomainRecords) -> DomainReport:
            mta_sts = judge_policy(records.mta_sts_record, fetch, records.mx)
            bimi = judge_logo(records.bimi_record, records.dmarc, records.caa)
            return DomainReport(domain, records, mta_sts, bimi, now)

        def judge(answers: Answers) -> Outcome:
            return replace(report_on(evaluate(answers)), names=find_names(answers)).outcome

        report = report_on(records)
        presences = (records.mx.presence, records.spf.presence, records.dmarc.presence)
        self.outcomes.add(outcome_of(is_determined=Presence.UNDETERMINED not in presences))
        if not self._is_proving:
            return report
        find_names = await make_names_evaluator(domain, records.mx, evaluator)
        report = replace(report, names=await evaluator.evaluate(find_names))
        proofs = await verify_fixes(report.outcome, judge, evaluator)
        return replace(report, proofs=proofs)

    async def _fetch_policy(self, record: MtaStsRecord) -> PolicyFetch | None:
        # Fetched for a record that senders ignore, too: its fix is verified with the policy.
        return await self._fetcher.fetch_policy(record.domain) if record.text else None

    async def _fetch_logo(self, record: BimiRecord) -> BimiFiles:
        location, evidence = record.wanted_urls
        logo, certificate = await run_all(
            _fetch(self._fetcher.fetch_logo, location),
            _fetch(self._fetcher.fetch_certificate, evidence),
        )
        return BimiFiles(
            location,
            None if logo is None else read_logo(location, logo),
            evidence,
            None if certificate is None else read_evidence(certificate),
        )

    def _evaluate(self, asked: Asked, known: tuple[str, ...]) -> Callable[[Answers], DomainRecords]:
        domain, offered = asked.domain, asked.offered
        authenticate = make_authentication_evaluator(
            domain, known, offered, allow_private=self._allow_private
        )
        evaluate_mta_sts = CachedEvaluation(partial(evaluate_mta_sts_record, domain))
        judge_tls_rpt = CachedEvaluation(partial(evaluate_tls_rpt, domain, report_to=offered.tls))
        is_validating = self._is_validating
        judge_dane = CachedEvaluation(
            lambda answers, mx: evaluate_dane(mx, answers, is_validating=is_validating)
        )
        judge_dnssec = CachedEvaluation(
            partial(evaluate_dnssec, domain, is_validating=is_validating)
        )
        judge_caa = CachedEvaluation(partial(evaluate_caa, domain))
        judge_bimi = CachedEvaluation(
            lambda answers, above: evaluate_bimi_record(domain, asked.logo_selector, above, answers)
        )

        def evaluate(answers: Answers) -> DomainRecords:
            spf, dkim, dmarc, mx = authenticate(answers)
            return DomainRecords(
                mx=mx,
                spf=spf,
                dmarc=dmarc,
                dkim=dkim,
                mta_sts_record=evaluate_mta_sts(answers),
                tls_rpt=judge_tls_rpt(answers),
                dane=judge_dane(answers, mx),
                dnssec=judge_dnssec(answers),
                caa=judge_caa(answers),
                bimi_record=judge_bimi(answers, dmarc.organizational_domain),
            )

        return evaluate


async def _fetch(fetch: Callable[[str], Awaitable[FileFetch]], url: str) -> FileFetch | None:
    return await fetch(url) if url else None
