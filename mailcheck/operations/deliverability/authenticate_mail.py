"""SPF, DKIM and DMARC evaluation of a received mail.

Messages of an inbox, share links, reports of tests and the command line all use
`MailEvaluator.authenticate`. `AuthenticationCache` keeps the results by delivery.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, TypeVarTuple

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.deliverability.authentication import (
    Authentication,
    Origin,
    undetermined_dkim,
    undetermined_dmarc,
    undetermined_spf,
)
from mailcheck.checks.deliverability.identities import Identities
from mailcheck.checks.dkim.mail import DkimOfMail, SignatureKey, evaluate_keys
from mailcheck.checks.dkim.signature_headers import SignatureHeader
from mailcheck.checks.dkim.verify import verify_signatures
from mailcheck.checks.dmarc.evaluate import DmarcVerdict, evaluate_dmarc
from mailcheck.checks.dmarc.mail import DmarcOfMail, evaluate_dmarc_of_mail, prefetch_walks
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.hosts.helo import HeloVerdict, evaluate_helo
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict, evaluate_reverse_dns
from mailcheck.checks.mail_domains import is_local_name, read_mail_domain
from mailcheck.checks.overlay import ProposedZone
from mailcheck.checks.proofs import CachedEvaluation
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.mail import SpfOfMail, evaluate_spf_of_mail
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.memory.recent import LruCache
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.dns_evaluation import DnsEvaluator, QuestionBudget
from mailcheck.ports.resolver import Resolver
from mailcheck.ports.workers import Worker


class MailVerdicts:
    """The evaluations of one mail. Those that take an address evaluate the sending host by it.

    Each verdict is cached for the same answers. The report and the verification of its advice
    share the verdicts, so a trial only repeats the evaluations whose records it changes.
    """

    def __init__(self, origin: Origin, envelope_sender: str, receiver: str) -> None:
        """Create the evaluations of a mail.

        :param receiver: the name of the host that received the mail.
        """
        self._helo_name = origin.helo_name
        self._envelope_sender = envelope_sender
        self._receiver = receiver
        self.spf = CachedEvaluation(self._judge_spf)
        self.spf_record: CachedEvaluation[SpfVerdict, str] = CachedEvaluation(
            lambda answers, domain: evaluate_spf(domain, answers)
        )
        self.reverse_dns = CachedEvaluation(self._judge_reverse_dns)
        self.helo: CachedEvaluation[HeloVerdict, IpAddress] = CachedEvaluation(
            lambda answers, address: evaluate_helo(self._helo_name, address, answers)
        )
        self.keys: CachedEvaluation[tuple[SignatureKey, ...], tuple[SignatureHeader, ...]] = (
            CachedEvaluation(lambda answers, headers: evaluate_keys(headers, answers))
        )
        self.policy: CachedEvaluation[DmarcVerdict, str] = CachedEvaluation(
            lambda answers, author: evaluate_dmarc(author, answers)
        )
        self.dmarc = CachedEvaluation(self._judge_dmarc)

    def _judge_spf(self, answers: Answers, address: IpAddress) -> SpfOfMail:
        return evaluate_spf_of_mail(
            address, self._helo_name, self._envelope_sender, self._receiver, answers
        )

    def _judge_reverse_dns(self, answers: Answers, address: IpAddress) -> ReverseDnsVerdict:
        # The HELO name is proposed as the host's name if the sending address can have it.
        name = read_mail_domain(self._helo_name) or ""
        proposed = "" if is_local_name(name) else name
        return evaluate_reverse_dns(address, answers, host_name=proposed)

    def _judge_dmarc(
        self, answers: Answers, identities: Identities, spf: SpfOfMail | None, dkim: DkimOfMail
    ) -> DmarcOfMail:
        return evaluate_dmarc_of_mail(
            identities.author_domains,
            spf,
            dkim,
            answers,
            author_fields=identities.author_fields,
            judge_policy=lambda author, known: self.policy(known, author),
        )


LEAST_TIME = 0.1
"""Minimum seconds for work on a mail's bytes. A small mail needs a millisecond."""

RECENT = 500
"""Number of deliveries whose results are cached. Clients read a mail right after its arrival."""

BRIEFLY = 15 * SECOND
"""Lifetime of incomplete results. While a name server is down, only the first reader of a message
waits for it."""

Given = TypeVarTuple("Given")
Result = TypeVar("Result")


@dataclass(slots=True)
class MailEvaluator:
    """Evaluates one mail, with the DNS answers and the time limits of its request.

    ``budget`` limits the DNS lookups. Work on the mail's bytes ends at ``ends_at``, in seconds of
    the clock. Records of a proposed ``zone`` are evaluated as if they were published.
    """

    mail: ReceivedMail
    origin: Origin
    host_name: str
    resolver: Resolver
    worker: Worker
    clock: IReactorTime
    budget: QuestionBudget
    ends_at: float
    answers: Answers = field(default_factory=Answers)
    zone: ProposedZone = field(default_factory=dict)
    was_in_time: bool = True
    verdicts: MailVerdicts = field(init=False)

    def __post_init__(self) -> None:
        self.verdicts = MailVerdicts(self.origin, self.mail.envelope_sender, self.host_name)

    @property
    def sender_domain(self) -> str:
        """The domain of the envelope sender in A-labels; empty for the null reverse-path."""
        return read_mail_domain(self.mail.envelope_sender.rpartition("@")[2]) or ""

    @property
    def dns(self) -> DnsEvaluator:
        """The evaluator for DNS, which shares the answers of this mail."""
        return DnsEvaluator(self.resolver, self.clock, self.budget, self.answers, self.zone)

    @property
    def is_settled(self) -> bool:
        """Whether all answers were determined, so that another evaluation would be the same."""
        known = self.answers.known.values()
        return self.was_in_time and all(answer.status.is_determined for answer in known)

    async def authenticate(self, reading: Awaitable[Identities]) -> Authentication:
        """Evaluate SPF, DKIM and DMARC. Parts that are not known in time are undetermined.

        Authentication-Results fields in the mail are never trusted.

        :param reading: returns the identities that the mail claims.
        """
        spf, (identities, dkim) = await run_all(self._judge_spf(), self._judge_signatures(reading))
        if not identities.is_read:
            return Authentication(self.origin, spf, dkim, undetermined_dmarc())
        # If the sending host cannot be evaluated, SPF of the real host might have passed.
        judged = spf if self.origin.judged_address is not None else None
        dmarc = await self.evaluate(self.verdicts.dmarc, identities, judged, dkim)
        return Authentication(self.origin, spf, dkim, dmarc)

    async def evaluate(
        self, function: Callable[[Answers, *Given], Result], *inputs: *Given
    ) -> Result:
        """Run an evaluation until no answer is missing, or the budget is spent."""
        return await self.dns.evaluate(lambda answers: function(answers, *inputs))

    def run(self, call: Callable[[], Result]) -> Deferred[Result]:
        """Run a call in the worker when it is the account's turn."""
        return self.worker.run(call, self.mail.account_id)

    async def work(self, call: Callable[[], Result]) -> Result | None:
        """Run a call in the worker; return `None` if it does not end in time."""
        left = max(LEAST_TIME, self.ends_at - self.clock.seconds())
        try:
            return await self.run(call).addTimeout(left, self.clock)
        except DeferredTimeout:
            self.was_in_time = False
            return None

    async def _judge_spf(self) -> SpfOfMail:
        address = self.origin.judged_address
        if address is None:
            return undetermined_spf(self.origin, self.sender_domain)
        return await self.evaluate(self.verdicts.spf, address)

    async def _judge_signatures(
        self, reading: Awaitable[Identities]
    ) -> tuple[Identities, DkimOfMail]:
        identities = await reading
        if not identities.is_read:
            return identities, undetermined_dkim(identities.signatures)
        dkim, _ = await run_all(self._verify(identities), self._ask_about_author(identities))
        return identities, dkim

    async def _verify(self, identities: Identities) -> DkimOfMail:
        headers = identities.signatures
        if not headers:
            return DkimOfMail(())
        keys = await self.evaluate(self.verdicts.keys, headers)
        raw_message, received_at = self.mail.raw_message, self.mail.received_at
        verify = partial(verify_signatures, raw_message, headers, keys, received_at)
        return await self.work(verify) or undetermined_dkim(headers)

    async def _ask_about_author(self, identities: Identities) -> None:
        """Look up the records that DMARC may need, before the passing identifiers are known."""
        authors = identities.author_domains
        if len(authors) != 1:
            return
        (author,) = authors
        domains = [header.signing_domain for header in identities.signatures]
        domains.append(self.sender_domain or self.origin.helo_name)

        def evaluate(answers: Answers) -> None:
            self.verdicts.policy(answers, author)
            # Prefetch records only while another lookup is pending anyway.
            if answers.missing:
                prefetch_walks(author, filter(None, domains), answers)

        await self.evaluate(evaluate)


class AuthenticationCache:
    """Cache of authentication results by delivery, shared by all views of a mail.

    A determined result is only replaced by another determined one. Incomplete results expire after
    `BRIEFLY`; their determined parts are then combined with the next evaluation.
    """

    def __init__(self) -> None:
        self._kept: LruCache[DeliveryId, tuple[Authentication, Instant | None]] = LruCache(RECENT)

    def find(self, delivery_id: DeliveryId, now: Instant) -> Authentication | None:
        """Return the cached results of a delivery, or `None` if they must be determined again."""
        kept = self._kept.get(delivery_id)
        if kept is None:
            return None
        found, stale_at = kept
        # If the clock was set back, an incomplete result must not stay valid.
        if stale_at is not None and not 0 < stale_at - now <= BRIEFLY:
            return None
        return found

    def take(
        self, delivery_id: DeliveryId, found: Authentication, now: Instant, *, is_settled: bool
    ) -> Authentication:
        """Store results and return them, combined with determined results from earlier."""
        kept = self._kept.get(delivery_id)
        if kept is not None:
            found = found.with_earlier_results(kept[0])
        stale_at = None if is_settled else Instant(now + BRIEFLY)
        self._kept.put(delivery_id, (found, stale_at))
        return found
