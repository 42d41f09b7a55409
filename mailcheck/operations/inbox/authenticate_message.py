"""What SPF, DKIM and DMARC say about a mail of an inbox: for information, asked for once.

A report of a deliverability test says more. This is what a receiver would
write into Authentication-Results, while somebody waits for the message.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailcheck.checks.deliverability.authentication import (
    Authentication,
    authenticate_in_vain,
    authenticate_nothing,
    dkim_in_vain,
    spf_in_vain,
    spf_of_private,
)
from mailcheck.checks.deliverability.identities import Identities, header_of, read_identities
from mailcheck.checks.deliverability.origin import Origin, judge_origin
from mailcheck.checks.dkim.mail_verdicts import DkimOfMail
from mailcheck.checks.dkim.signature_keys import evaluate_keys
from mailcheck.checks.dkim.verify import verify_signatures
from mailcheck.checks.dmarc.evaluate import evaluate_dmarc
from mailcheck.checks.dmarc.mail import evaluate_dmarc_of_mail
from mailcheck.checks.dmarc.mail_alignment import foresee_walks
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.checks.spf.mail import evaluate_spf_of_mail
from mailcheck.checks.spf.mail_verdicts import SpfOfMail
from mailcheck.core.errors import MessageNotFound
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.instants import SECOND, instant_of
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.ask import QuestionBudget, ask_until_known
from mailcheck.operations.deliverability.score_mail import ScoringSettings
from mailcheck.operations.dns_ports import Resolver
from mailcheck.operations.fan_out import run_all
from mailcheck.operations.places import NoPlace, Places
from mailcheck.operations.ports import ContentStore, Worker
from mailcheck.operations.recent import Recent
from mailcheck.operations.sharing_calls import SharedCalls

DEADLINE = 2.0
"""Seconds: somebody waits for the message, and these results are beside the point for him."""

LEAST_TIME = 0.1
"""Seconds that verifying gets in any case: a small mail needs a millisecond."""

RECENT = 500
"""Deliveries whose results are kept; a program looks at its mail right after it came."""

BRIEFLY = 15 * SECOND
"""What could not be found out is believed for so long: a name server that is down keeps the
first reader waiting, not each who looks at the message meanwhile."""

AT_ONCE = 8
"""Mails being authenticated at a time, as analyses of tests: each is held in memory."""

OF_ACCOUNT = 4
"""Of those one account may have so many."""

WAITING = 200
"""Mails that may wait for their turn, as long as it leaves them their least time."""

LARGE_HEADER = 65_536
"""Octets from which on a header is read away from the reactor."""

Result = TypeVar("Result")


@dataclass(slots=True)
class _Run:
    """One mail being authenticated; ``is_whole`` tells that all work was done in time."""

    message: StoredMessage
    raw_message: bytes
    origin: Origin
    budget: QuestionBudget
    is_whole: bool = True
    answers: Answers = field(default_factory=Answers)

    @property
    def is_settled(self) -> bool:
        """Tell whether it would come out the same if it were done again."""
        answers = self.answers.known.values()
        return self.is_whole and all(answer.status.is_determined for answer in answers)


class AuthenticateMessage:
    """Authenticates messages that are read; results are kept by delivery.

    Those that something was missing for are kept `BRIEFLY`, then it is tried again.

    :param resolver: gives the resolver; asked for each mail.
    """

    _log = Logger()

    def __init__(
        self,
        content_store: ContentStore,
        resolver: Callable[[], Resolver],
        worker: Worker,
        settings: ScoringSettings,
        clock: IReactorTime,
    ) -> None:
        self._content_store = content_store
        self._resolver = resolver
        self._worker = worker
        self._settings = settings
        self._clock = clock
        self._recent: OrderedDict[DeliveryId, Authentication] = OrderedDict()
        self._undetermined: Recent[DeliveryId, Authentication] = Recent(RECENT, BRIEFLY)
        self._places: Places[AccountId] = Places(
            clock, at_once=AT_ONCE, of_one=OF_ACCOUNT, waiting=WAITING
        )
        self._wanted: dict[DeliveryId, StoredMessage] = {}
        self._judging: SharedCalls[DeliveryId, Authentication] = SharedCalls(self._judge)

    async def of(self, message: StoredMessage) -> Authentication:
        """Give the results for a message, within two seconds.

        Where too many others are asked for, they are undetermined.
        Of a mail that came from a private address and has no signature nothing
        is asked.

        :raises MessageNotFound: it has been deleted meanwhile.
        """
        key = message.summary.delivery_id
        known = self._remembered(key)
        if known is not None:
            return known
        origin = self._origin(message)
        if origin.judged_address is None and not _count_signatures(message):
            return self._keep(key, authenticate_nothing(origin))
        self._wanted[key] = message
        judging = self._judging.call(key)
        self._wanted.pop(key, None)  # still there where somebody else had begun
        return await judging

    def _origin(self, message: StoredMessage) -> Origin:
        session, allow_private = message.session, self._settings.allow_private
        return judge_origin(session.client_ip, session.helo_name, allow_private=allow_private)

    def _remembered(self, key: DeliveryId) -> Authentication | None:
        known = self._recent.get(key)
        if known is not None:
            self._recent.move_to_end(key)
            return known
        return self._undetermined.get(key, instant_of(self._clock.seconds()))

    def _keep(self, key: DeliveryId, found: Authentication) -> Authentication:
        self._recent[key] = found
        if len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        return found

    async def _judge(self, key: DeliveryId) -> Authentication:
        message = self._wanted.pop(key)
        owner = message.summary.account_id
        budget = QuestionBudget.starting_now(self._clock, DEADLINE)
        try:
            await self._places.take(owner, DEADLINE - LEAST_TIME)
        except NoPlace:
            return self._in_vain(message)
        try:
            found, is_settled = await self._judge_within(message, budget)
        finally:
            self._places.give_back(owner)
        if is_settled:
            return self._keep(key, found)
        self._undetermined.put(key, found, instant_of(self._clock.seconds()))
        return found

    async def _judge_within(
        self, message: StoredMessage, budget: QuestionBudget
    ) -> tuple[Authentication, bool]:
        """Give the results, and whether they are settled."""
        key = message.summary.delivery_id
        raw_message = await self._content_store.raw_message(key)
        if raw_message is None:
            raise MessageNotFound
        run = _Run(message, raw_message, self._origin(message), budget)
        try:
            return await self._authenticate(run), run.is_settled
        except Exception:
            # A fault of ours here must not keep anybody from reading the message.
            self._log.failure("delivery {delivery} could not be authenticated", delivery=key)
            return self._in_vain(message), False

    def _in_vain(self, message: StoredMessage) -> Authentication:
        origin = self._origin(message)
        return authenticate_in_vain(origin, spf_in_vain(origin), _count_signatures(message))

    async def _authenticate(self, run: _Run) -> Authentication:
        spf, content = await run_all(self._judge_spf(run), self._judge_content(run))
        if content is None:
            return authenticate_in_vain(run.origin, spf, _count_signatures(run.message))
        authors, dkim = content
        judged = spf if run.origin.judged_address is not None else None
        dmarc = await self._ask(run, partial(evaluate_dmarc_of_mail, authors, judged, dkim))
        return Authentication(run.origin.client_ip, spf, dkim, dmarc)

    async def _judge_content(self, run: _Run) -> tuple[tuple[str, ...], DkimOfMail] | None:
        """Give the author domains and what the signatures are worth; nothing if it is too slow."""
        identities = await self._read(run)
        if identities is None:
            return None
        dkim, _ = await run_all(
            self._verify(run, identities), self._ask_about_author(run, identities)
        )
        return identities.author_domains, dkim

    async def _read(self, run: _Run) -> Identities | None:
        head = header_of(run.raw_message)
        if len(head) <= LARGE_HEADER:
            return read_identities(head)
        return await self._in_worker(run, partial(read_identities, head))

    async def _judge_spf(self, run: _Run) -> SpfOfMail:
        address = run.origin.judged_address
        if address is None:
            return spf_of_private(run.origin)
        sender, helo_name = run.message.envelope_sender, run.origin.helo_name
        host_name = self._settings.host_name
        return await self._ask(
            run, partial(evaluate_spf_of_mail, address, helo_name, sender, host_name)
        )

    async def _verify(self, run: _Run, identities: Identities) -> DkimOfMail:
        headers = identities.signatures
        if not headers:
            return DkimOfMail(())
        keys = await self._ask(run, partial(evaluate_keys, headers))
        received_at = run.message.summary.received_at
        call = partial(verify_signatures, run.raw_message, headers, keys, received_at)
        return await self._in_worker(run, call) or dkim_in_vain(headers)

    async def _ask_about_author(self, run: _Run, identities: Identities) -> None:
        """Ask what DMARC may need, before it is known which identifiers pass."""
        authors = identities.author_domains
        if len(authors) != 1:
            return
        (author,) = authors
        sender = read_mail_domain(run.message.envelope_sender.rpartition("@")[2])
        domains = [header.signing_domain for header in identities.signatures]
        domains.append(sender or run.origin.helo_name)

        def evaluate(answers: Answers) -> None:
            evaluate_dmarc(author, answers)
            # Foresight is free while something else is open; for its own sake nobody waits.
            if answers.missing:
                foresee_walks(author, filter(None, domains), answers)

        await self._ask(run, evaluate)

    async def _ask(self, run: _Run, evaluate: Callable[[Answers], Result]) -> Result:
        """Ask until an evaluation knows enough; each has answers of its own while it asks."""
        answers = Answers(dict(run.answers.known))
        try:
            return await ask_until_known(
                self._resolver(), evaluate, clock=self._clock, budget=run.budget, answers=answers
            )
        finally:
            run.answers.known.update(answers.known)

    async def _in_worker(self, run: _Run, call: Callable[[], Result]) -> Result | None:
        """Have work done away from the reactor; nothing when it takes too long."""
        left = max(LEAST_TIME, run.budget.ends_at - self._clock.seconds())
        try:
            return await self._worker.run(call).addTimeout(left, self._clock)
        except DeferredTimeout:
            run.is_whole = False
            return None


def _count_signatures(message: StoredMessage) -> int:
    return sum(name.lower() == "dkim-signature" for name, _ in message.content.header_list)
