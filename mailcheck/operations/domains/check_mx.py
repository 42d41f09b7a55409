"""Check the MX, SPF and DMARC records of a domain (docs/reference/contract.md)."""

from msgspec import Struct, field
from msgspec.structs import replace
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dmarc.evaluate import DmarcVerdict, evaluate_dmarc
from mailcheck.checks.dmarc.policy_advice import postpone_stricter_policy
from mailcheck.checks.dns_answers import Answers, Presence
from mailcheck.checks.findings import Finding
from mailcheck.checks.hosts.mx import MxVerdict, evaluate_mx
from mailcheck.checks.proofs import Outcome, Proofs
from mailcheck.checks.scoring.domain_outcome import outcome_of_records
from mailcheck.checks.scoring.no_mail import advise_no_mail
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.instruments import Tally, outcome_of
from mailcheck.operations.dns_evaluation import DnsEvaluator
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
    def outcome(self) -> Outcome:
        """The outcome by which fixes are verified."""
        return outcome_of_records(self.mx, self.spf, self.dmarc)

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


class CheckMx:
    """Looks up the MX, SPF and DMARC records of a domain concurrently."""

    def __init__(self, resolver: Resolver, clock: IReactorTime, *, allow_private: bool) -> None:
        self._resolver = resolver
        self._clock = clock
        self._allow_private = allow_private
        self.outcomes = Tally()

    async def check(self, domain: str) -> MxCheck:
        """Check a domain, given in A-labels."""

        def evaluate(answers: Answers) -> MxCheck:
            spf = evaluate_spf(domain, answers)
            mx = evaluate_mx(domain, answers, allow_private=self._allow_private)
            dmarc = postpone_stricter_policy(evaluate_dmarc(domain, answers), spf, None)
            advised_mx, policy, _ = advise_no_mail(domain, answers, mx, spf, dmarc, None)
            return MxCheck(domain, advised_mx, spf, policy)

        def judge(answers: Answers) -> Outcome:
            return evaluate(answers).outcome

        evaluator = DnsEvaluator.starting_now(self._resolver, self._clock)
        found = await evaluator.evaluate(evaluate)
        self.outcomes.add(outcome_of(is_determined=not found.undetermined))
        proofs = await verify_fixes(found.outcome, judge, evaluator)
        return replace(found, proofs=proofs)
