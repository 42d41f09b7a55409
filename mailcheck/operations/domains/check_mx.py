"""Where mail for a domain goes, and what it says about who may send for it (SPEC.md 2.1)."""

from dataclasses import dataclass

from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dmarc.evaluate import DmarcVerdict, evaluate_dmarc
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.findings import Finding
from mailcheck.checks.hosts.mx import MxVerdict, evaluate_mx
from mailcheck.checks.lookups import Presence
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.instruments import Tally, outcome_of
from mailcheck.operations.ask import QuestionBudget, ask_until_known
from mailcheck.operations.dns_ports import Resolver


@dataclass(frozen=True, slots=True)
class MxCheck:
    """The three verdicts about one domain."""

    domain: str
    mx: MxVerdict
    spf: SpfVerdict
    dmarc: DmarcVerdict

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Name what could not be found out, of ``MX``, ``SPF`` and ``DMARC``."""
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
    def findings(self) -> tuple[Finding, ...]:
        """Give all that was found, mechanism by mechanism."""
        return (*self.mx.findings, *self.spf.findings, *self.dmarc.findings)


class CheckMx:
    """Looks a domain's MX, SPF and DMARC up, all at once."""

    def __init__(self, resolver: Resolver, clock: IReactorTime, *, allow_private: bool) -> None:
        self._resolver = resolver
        self._clock = clock
        self._allow_private = allow_private
        self.outcomes = Tally()

    async def check(self, domain: str) -> MxCheck:
        """Check a domain, given in A-labels."""

        def evaluate(answers: Answers) -> MxCheck:
            return MxCheck(
                domain,
                evaluate_mx(domain, answers, allow_private=self._allow_private),
                evaluate_spf(domain, answers),
                evaluate_dmarc(domain, answers),
            )

        found = await ask_until_known(
            self._resolver,
            evaluate,
            clock=self._clock,
            budget=QuestionBudget.starting_now(self._clock),
        )
        self.outcomes.add(outcome_of(is_determined=not found.undetermined))
        return found
