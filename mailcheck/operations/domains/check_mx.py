"""Check the MX, SPF and DMARC records of a domain (docs/reference/contract.md)."""

from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dkim.evaluate import DkimVerdict, evaluate_dkim
from mailcheck.checks.dmarc.evaluate import DmarcVerdict, evaluate_dmarc
from mailcheck.checks.dmarc.policy_advice import can_authenticate, postpone_stricter_policy
from mailcheck.checks.dns_answers import Answers, Presence
from mailcheck.checks.findings import Finding
from mailcheck.checks.hosts.mx import MxVerdict, evaluate_mx
from mailcheck.checks.proofs import CachedEvaluation, Outcome, Proofs
from mailcheck.checks.scoring.domain_outcome import outcome_of_records
from mailcheck.checks.scoring.no_mail import advise_no_mail
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.domains.receiver_reports import NOWHERE, ReportPlaces
from mailcheck.core.memory.instruments import Tally, outcome_of
from mailcheck.operations.dns_evaluation import DnsEvaluator
from mailcheck.operations.domains.compute_reputation import make_names_evaluator
from mailcheck.operations.domains.known_selectors import KnownSelectors, selectors_to_try
from mailcheck.operations.verify_fixes import verify_fixes
from mailcheck.ports.resolver import Resolver


class MxCheck(Struct, frozen=True):
    """The MX, SPF and DMARC verdicts of a domain, and the verified fixes."""

    domain: str
    mx: MxVerdict
    spf: SpfVerdict
    dmarc: DmarcVerdict
    proofs: Proofs = field(default_factory=dict)

    @property
    def undetermined(self) -> tuple[str, ...]:
        """The names among ``MX``, ``SPF`` and ``DMARC`` that could not be determined."""
        own = self.mx.implicit_host
        is_mx_unknown = self.mx.presence is Presence.UNDETERMINED or (
            own is not None and own.presence is Presence.UNDETERMINED
        )
        unknown = {
            "MX": is_mx_unknown,
            "SPF": self.spf.presence is Presence.UNDETERMINED,
            "DMARC": self.dmarc.presence is Presence.UNDETERMINED,
        }
        return tuple(name for name, is_unknown in unknown.items() if is_unknown)

    @property
    def exists(self) -> bool:
        """Whether the name may exist; false only if DNS denies it."""
        return self.mx.exists

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, grouped by mechanism."""
        if not self.mx.exists:
            return self.mx.findings
        return (*self.mx.findings, *self.spf.findings, *self.dmarc.findings)


class CheckMx(Struct, frozen=True, eq=False):
    """Looks up the MX, SPF and DMARC records of a domain concurrently."""

    resolver: Resolver
    known_selectors: KnownSelectors
    clock: IReactorTime
    allow_private: bool
    outcomes: Tally = field(default_factory=Tally)

    async def check(self, domain: str, offered: ReportPlaces = NOWHERE) -> MxCheck:
        """Check a domain, given in A-labels.

        :param offered: where advice directs reports to.
        """
        evaluator = DnsEvaluator.starting_now(self.resolver, self.clock)
        find_spf = CachedEvaluation(partial(evaluate_spf, domain))
        find_mx = CachedEvaluation(partial(evaluate_mx, domain, allow_private=self.allow_private))
        find_dmarc = CachedEvaluation(partial(evaluate_dmarc, domain, report_to=offered.dmarc))

        def find_both(answers: Answers) -> tuple[SpfVerdict, MxVerdict]:
            return find_spf(answers), find_mx(answers)

        spf, mx = await evaluator.evaluate(find_both)
        selectors: tuple[str, ...] = ()
        # Keys affect the advice if SPF does not work, and a domain without mail hosts needs none
        # once it declares that.
        if mx.exists and not (mx.hosts and can_authenticate(spf, None)):
            selectors = selectors_to_try(await self.known_selectors(domain), mx, spf)
        find_keys = CachedEvaluation(partial(evaluate_dkim, domain, selectors))
        find_names = await make_names_evaluator(domain, mx, evaluator)

        def evaluate(answers: Answers) -> tuple[MxCheck, DkimVerdict | None]:
            spf, mx = find_both(answers)
            keys = find_keys(answers) if selectors else None
            dmarc = postpone_stricter_policy(find_dmarc(answers), spf, keys)
            advised_mx, policy, _ = advise_no_mail(domain, answers, mx, spf, dmarc, dkim=keys)
            return MxCheck(domain, advised_mx, spf, policy), keys

        def judge(answers: Answers) -> Outcome:
            found, keys = evaluate(answers)
            # This check does not show the findings about keys.
            keys = None if keys is None else replace(keys, findings=())
            names = find_names(answers)
            return outcome_of_records(found.mx, found.spf, found.dmarc, keys, names=names)

        found, _ = await evaluator.evaluate(evaluate)
        self.outcomes.add(outcome_of(is_determined=not found.undetermined))
        proofs = await verify_fixes(await evaluator.evaluate(judge), judge, evaluator)
        return replace(found, proofs=proofs)
