"""What the parts of one analysis share."""

from collections.abc import Callable
from dataclasses import dataclass

from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.deliverability.origin import Origin
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.operations.ask import QuestionBudget, Verdict, ask_until_known
from mailcheck.operations.deliverability.blocklists_of_mail import BlocklistsOfMail
from mailcheck.operations.deliverability.filter_ports import ContentFilter
from mailcheck.operations.dns_ports import Resolver
from mailcheck.operations.ports import Worker


@dataclass(frozen=True, slots=True)
class ScoringRun:
    """One analysis of one mail; ``budget`` holds for all its questions but those to lists."""

    mail: ReceivedMail
    origin: Origin
    host_name: str
    allow_private: bool
    resolver: Resolver
    blocklists: BlocklistsOfMail
    content_filter: ContentFilter
    worker: Worker
    clock: IReactorTime
    budget: QuestionBudget

    @property
    def sender_domain(self) -> str:
        """Give the envelope sender's domain in A-labels; empty for the null reverse-path."""
        return read_mail_domain(self.mail.envelope_sender.rpartition("@")[2]) or ""

    async def ask(
        self, evaluate: Callable[[Answers], Verdict], answers: Answers | None = None
    ) -> Verdict:
        """Ask until an evaluation knows enough, within the budget."""
        return await ask_until_known(
            self.resolver, evaluate, clock=self.clock, budget=self.budget, answers=answers
        )
