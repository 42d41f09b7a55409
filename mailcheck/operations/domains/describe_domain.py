"""Everything that can be known of a domain's mail set-up, mechanism by mechanism."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dkim.evaluate import DkimVerdict, evaluate_dkim
from mailcheck.checks.dmarc.evaluate import DmarcVerdict, evaluate_dmarc
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.findings import Finding
from mailcheck.checks.hosts.dane import DaneVerdict, DnssecVerdict, evaluate_dane, evaluate_dnssec
from mailcheck.checks.hosts.mta_sts import (
    MtaStsRecord,
    MtaStsVerdict,
    evaluate_mta_sts_record,
    judge_mta_sts,
)
from mailcheck.checks.hosts.mx import MxVerdict, evaluate_mx
from mailcheck.checks.hosts.tls_rpt import TlsRptVerdict, evaluate_tls_rpt
from mailcheck.checks.lookups import Presence
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.instants import Instant
from mailcheck.core.instruments import Tally, outcome_of
from mailcheck.operations.ask import QuestionBudget, ask_until_known
from mailcheck.operations.dns_ports import Resolver
from mailcheck.operations.domains.known_selectors import KnownSelectors
from mailcheck.operations.domains.probe_hosts import PolicyFetcher
from mailcheck.operations.ports import Now
from mailcheck.operations.sharing_calls import SharedCalls


@dataclass(frozen=True, slots=True)
class DomainRecords:
    """What DNS says of a domain."""

    mx: MxVerdict
    spf: SpfVerdict
    dmarc: DmarcVerdict
    dkim: DkimVerdict
    mta_sts_record: MtaStsRecord
    tls_rpt: TlsRptVerdict
    dane: DaneVerdict
    dnssec: DnssecVerdict


@dataclass(frozen=True, slots=True)
class DomainReport:
    """What DNS says, and the MTA-STS policy behind it."""

    domain: str
    records: DomainRecords
    mta_sts: MtaStsVerdict
    checked_at: Instant

    @property
    def findings(self) -> Mapping[str, tuple[Finding, ...]]:
        """Give the findings of each mechanism."""
        records = self.records
        return {
            "mx": records.mx.findings,
            "spf": records.spf.findings,
            "dkim": records.dkim.findings,
            "dmarc": records.dmarc.findings,
            "mtaSts": self.mta_sts.findings,
            "tlsRpt": records.tls_rpt.findings,
            "dane": records.dane.findings,
            "dnssec": records.dnssec.findings,
        }


class DescribeDomain:
    """Looks everything up at once; the same domain once at a time."""

    def __init__(
        self,
        resolver: Resolver,
        fetcher: PolicyFetcher,
        known_selectors: KnownSelectors,
        clock: IReactorTime,
        now: Now,
        *,
        is_validating: bool,
        allow_private: bool,
    ) -> None:
        self._resolver = resolver
        self._fetcher = fetcher
        self._known_selectors = known_selectors
        self._clock = clock
        self._now = now
        self._is_validating = is_validating
        self._allow_private = allow_private
        self._running = SharedCalls(self._describe)
        self.outcomes = Tally()

    async def describe(self, domain: str, selectors: tuple[str, ...] = ()) -> DomainReport:
        """Describe a domain, given in A-labels.

        :param selectors: DKIM selectors that the caller knows of.
        """
        return await self._running.call((domain, selectors))

    async def _describe(self, asked: tuple[str, tuple[str, ...]]) -> DomainReport:
        domain, selectors = asked
        known = (*selectors, *self._known_selectors(domain))
        records = await ask_until_known(
            self._resolver,
            self._evaluate(domain, known),
            clock=self._clock,
            budget=QuestionBudget.starting_now(self._clock),
        )
        fetch = None
        if records.mta_sts_record.presence is Presence.FOUND:
            fetch = await self._fetcher.fetch_policy(domain)
        mta_sts = judge_mta_sts(records.mta_sts_record, fetch, records.mx)
        presences = (records.mx.presence, records.spf.presence, records.dmarc.presence)
        self.outcomes.add(outcome_of(is_determined=Presence.UNDETERMINED not in presences))
        return DomainReport(domain, records, mta_sts, self._now())

    def _evaluate(self, domain: str, known: tuple[str, ...]) -> Callable[[Answers], DomainRecords]:
        def evaluate(answers: Answers) -> DomainRecords:
            mx = evaluate_mx(domain, answers, allow_private=self._allow_private)
            spf = evaluate_spf(domain, answers)
            hints = (*(host.exchange for host in mx.hosts), *spf.hosts)
            return DomainRecords(
                mx=mx,
                spf=spf,
                dmarc=evaluate_dmarc(domain, answers),
                dkim=evaluate_dkim(domain, answers, known=known, hosts=hints),
                mta_sts_record=evaluate_mta_sts_record(domain, answers),
                tls_rpt=evaluate_tls_rpt(domain, answers),
                dane=evaluate_dane(mx, answers, is_validating=self._is_validating),
                dnssec=evaluate_dnssec(domain, answers, is_validating=self._is_validating),
            )

        return evaluate
