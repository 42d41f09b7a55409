"""What SPF, DKIM and DMARC say about a mail of an inbox: for information, asked for once.

A report of a deliverability test says more. This is what a receiver would
write into Authentication-Results, while somebody waits for the message.
"""

from functools import partial

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailcheck.checks.deliverability.authentication import (
    Authentication,
    Origin,
    authenticate_in_vain,
    judge_origin,
)
from mailcheck.checks.deliverability.identities import (
    Identities,
    header_of,
    read_identities,
    unread_identities,
)
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.errors import MessageNotFound
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.instants import Instant, instant_of
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.ask import QuestionBudget
from mailcheck.operations.concurrency import SharedCalls
from mailcheck.operations.deliverability.authenticate_mail import (
    LEAST_TIME,
    KnownResults,
    MailInquiry,
)
from mailcheck.operations.deliverability.score_mail import ScoringSettings
from mailcheck.operations.places import NoPlace, Places
from mailcheck.ports.resolver import Resolver
from mailcheck.ports.workers import Worker
from mailcheck.store.content_store import ContentStore

DEADLINE = 2.0
"""Seconds: somebody waits for the message, and these results are beside the point for him."""

AT_ONCE = 8
"""Mails being authenticated at a time, as analyses of tests: each is held in memory."""

OF_ACCOUNT = 4
"""Of those one account may have so many."""

WAITING = 200
"""Mails that may wait for their turn, as long as it leaves them their least time."""

LARGE_HEADER = 65_536
"""Octets from which on a header is read away from the reactor."""


class AuthenticateMessage:
    """Authenticates messages that are read; results are kept by delivery.

    :param known: the results that are known, those of reports too.
    """

    _log = Logger()

    def __init__(
        self,
        known: KnownResults,
        content_store: ContentStore,
        resolver: Resolver,
        worker: Worker,
        settings: ScoringSettings,
        clock: IReactorTime,
    ) -> None:
        self._known = known
        self._content_store = content_store
        self._resolver = resolver
        self._worker = worker
        self._settings = settings
        self._clock = clock
        self._places: Places[AccountId] = Places(
            clock, at_once=AT_ONCE, of_one=OF_ACCOUNT, waiting=WAITING
        )
        self._wanted: dict[DeliveryId, StoredMessage] = {}
        self._judging: SharedCalls[DeliveryId, Authentication] = SharedCalls(self._judge)

    async def of(self, message: StoredMessage) -> Authentication:
        """Give the results for a message, within two seconds.

        Where too many others are asked for, they are undetermined.

        :raises MessageNotFound: it has been deleted meanwhile.
        """
        key = message.summary.delivery_id
        known = self._known.find(key, self._now())
        if known is not None:
            return known
        self._wanted[key] = message
        judging = self._judging.call(key)
        self._wanted.pop(key, None)  # still there where somebody else had begun
        return await judging

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
        return self._known.take(key, found, self._now(), is_settled=is_settled)

    async def _judge_within(
        self, message: StoredMessage, budget: QuestionBudget
    ) -> tuple[Authentication, bool]:
        """Give the results, and whether they are settled."""
        summary = message.summary
        raw_message = await self._content_store.raw_message(summary.delivery_id)
        if raw_message is None:
            raise MessageNotFound
        inquiry = MailInquiry(
            ReceivedMail(
                message.session,
                message.envelope_sender,
                summary.received_at,
                raw_message,
                account_id=summary.account_id,
            ),
            self._origin(message),
            self._settings.host_name,
            self._resolver,
            self._worker,
            self._clock,
            budget,
            budget.ends_at,
        )
        try:
            found = await inquiry.authenticate(self._read(message, inquiry))
        except Exception:
            # A fault of ours here must not keep anybody from reading the message.
            key = summary.delivery_id
            self._log.failure("delivery {delivery} could not be authenticated", delivery=key)
            return self._in_vain(message), False
        return found, inquiry.is_settled

    async def _read(self, message: StoredMessage, inquiry: MailInquiry) -> Identities:
        head = header_of(inquiry.mail.raw_message)
        if len(head) <= LARGE_HEADER:
            return read_identities(head)
        read = await inquiry.work(partial(read_identities, head))
        return read or _unread(message)

    def _in_vain(self, message: StoredMessage) -> Authentication:
        sender_domain = message.envelope_sender.rpartition("@")[2]
        headers = _unread(message).signatures
        return authenticate_in_vain(self._origin(message), sender_domain, headers)

    def _origin(self, message: StoredMessage) -> Origin:
        session, allow_private = message.session, self._settings.allow_private
        return judge_origin(session.client_ip, session.helo_name, allow_private=allow_private)

    def _now(self) -> Instant:
        return instant_of(self._clock.seconds())


def _unread(message: StoredMessage) -> Identities:
    names = (name.lower() for name, _ in message.content.header_list)
    return unread_identities(sum(name == "dkim-signature" for name in names))
