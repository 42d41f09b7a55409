"""The checks of a stored mail on request: its HTML, its accessibility, its links and its sender.

A child process computes the results. The most recent ones are cached, and none are stored.
"""

from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import urlsplit

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailcheck.checks.deliverability.authentication import (
    Authentication,
    Origin,
    judge_origin,
    undetermined_authentication,
)
from mailcheck.checks.deliverability.identities import (
    Identities,
    header_of,
    read_identities,
    unreadable_identities,
)
from mailcheck.checks.link_checks import LinkAnswer, LinkCheck, LinkProblem, judge_link
from mailcheck.checks.mail_checks import MailChecks
from mailcheck.checks.press_unsubscribe import PressAnswer, Pressed, judge_press, not_offered
from mailcheck.checks.quality.unsubscribe import OneClickOffer
from mailcheck.core.accounts import RequestLimits
from mailcheck.core.content import LINKS_AT_ONCE
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.errors import InvalidParameter, MessageNotFound
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.instants import Instant, instant_of
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.core.memory.recent import LruCache
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.accounts.authenticate import RequestMeter
from mailcheck.operations.concurrency import SingleFlight, run_all
from mailcheck.operations.deliverability.authenticate_mail import (
    LEAST_TIME,
    AuthenticationCache,
    MailEvaluator,
)
from mailcheck.operations.deliverability.score_mail import ScoringSettings
from mailcheck.operations.dns_evaluation import QuestionBudget
from mailcheck.operations.inbox.contents import MailBytes
from mailcheck.operations.semaphores import FairSemaphore, NoPermit
from mailcheck.operations.worker_calls import check_html, check_raw_mail
from mailcheck.ports.probes import LinkProber
from mailcheck.ports.resolver import Resolver
from mailcheck.ports.workers import Worker
from mailcheck.store.content_store import ContentStore

RECENT_CHECKS = 32
"""Number of cached checks. A page, its reload and its link check follow each other closely."""

_Work = tuple[Callable[[], MailChecks], int, AccountId]


class CheckMail:
    """Checks mails in a worker. Concurrent requests for the same mail share the work."""

    def __init__(self, mail_bytes: MailBytes) -> None:
        self._mail_bytes = mail_bytes
        self._recent: LruCache[Key, MailChecks] = LruCache(RECENT_CHECKS)
        self._checking: SingleFlight[Key, MailChecks, _Work] = SingleFlight(self._check)

    async def of_message(self, message: StoredMessage) -> MailChecks:
        """Check a message of an inbox."""
        content = message.content
        texts = content.html, content.text
        header_list, media_types = content.header_list, content.media_types
        call = partial(check_html, *texts, content.best_link, header_list, media_types)
        size = len(content.html) + len(content.text)
        work = call, size, message.summary.account_id
        return await self._of(key_of("message", message.summary.delivery_id), work)

    async def of_test(self, test_id: str, mail: ReceivedMail) -> MailChecks:
        """Check the mail of a deliverability test."""
        raw = mail.raw_message
        work = partial(check_raw_mail, raw), len(raw), mail.account_id
        return await self._of(key_of("test", test_id), work)

    async def _of(self, key: Key, work: _Work) -> MailChecks:
        found = self._recent.get(key)
        return await self._checking.call(key, work) if found is None else found

    async def _check(self, key: Key, work: _Work) -> MailChecks:
        found = await self._mail_bytes.work(*work)
        self._recent.put(key, found)
        return found


DEADLINE = 25.0
"""Seconds for all links of a request. Clients time out after thirty."""

OF_ACCOUNT = 6
"""Maximum number of concurrent link checks per account."""

OF_HOST = 2
"""Maximum number of concurrent link checks per host, for all accounts together."""

WAITING = 1_000
"""Maximum number of links that wait for their turn."""

BUDGET = RequestLimits(per_minute=200, per_day=5_000)
"""Number of links that an account may check. A long newsletter has about 150."""


PRESS_BUDGET = RequestLimits(per_minute=10, per_day=200)
"""Number of unsubscribe requests that an account may send. A person presses each."""


class CheckLinks:
    """Checks links, with limits that are fair to accounts and hosts.

    Only links of the mail are requested, so mailcheck cannot be used as a scanner. Links that a
    request might use up (`MailLink.is_harmless`) are only requested if they are named. Each
    account has a budget.
    """

    def __init__(self, prober: LinkProber, meter: RequestMeter, clock: IReactorTime) -> None:
        self._prober = prober
        self._meter = meter
        self._clock = clock
        self._accounts: FairSemaphore[AccountId] = FairSemaphore(
            clock, per_owner=OF_ACCOUNT, max_waiting=WAITING
        )
        self._hosts: FairSemaphore[str] = FairSemaphore(
            clock, per_owner=OF_HOST, max_waiting=WAITING
        )

    async def check(
        self, account_id: AccountId, checks: MailChecks, urls: Sequence[str] | None, method: str
    ) -> list[LinkCheck]:
        """Check the named links of a mail, or all harmless ones.

        :raises InvalidParameter: a URL is not a link of the mail, there are too many, or there
            are several for GET.
        """
        chosen = choose_links(checks, urls, method)
        ends_at = self._clock.seconds() + DEADLINE
        found: list[LinkCheck] = await run_all(
            *(self._check_one(account_id, url, method, ends_at) for url in chosen)
        )
        return found

    async def _check_one(
        self, account_id: AccountId, url: str, method: str, ends_at: float
    ) -> LinkCheck:
        busy = LinkAnswer(url, method, problem=LinkProblem.BUSY)
        try:
            async with (
                self._accounts.held(account_id, self._left(ends_at)),
                self._hosts.held(_host_of(url), self._left(ends_at)),
            ):
                usage = await self._meter.count(key_of("links of account", account_id), BUDGET)
                if usage.exhausted is not None:
                    return judge_link(LinkAnswer(url, method, problem=LinkProblem.BUDGET))
                looking = self._prober.probe_link(url, method)
                seconds = max(0.0, self._left(ends_at))
                looking.addTimeout(seconds, self._clock, lambda _, __: busy)
                return judge_link(await looking)
        except NoPermit:
            return judge_link(busy)

    async def press_unsubscribe(self, account_id: AccountId, offer: OneClickOffer) -> Pressed:
        """Send the one-click unsubscribe request of a mail, as a mailbox provider does.

        A person must have asked for it: the request unsubscribes.
        """
        if not offer.url:
            return not_offered(offer)
        ends_at = self._clock.seconds() + DEADLINE
        try:
            async with (
                self._accounts.held(account_id, self._left(ends_at)),
                self._hosts.held(_host_of(offer.url), self._left(ends_at)),
            ):
                subject = key_of("unsubscribe requests of account", account_id)
                usage = await self._meter.count(subject, PRESS_BUDGET)
                if usage.exhausted is not None:
                    return judge_press(PressAnswer(offer.url, problem=LinkProblem.BUDGET))
                return judge_press(await self._prober.press_unsubscribe(offer.url))
        except NoPermit:
            return judge_press(PressAnswer(offer.url, problem=LinkProblem.BUSY))

    def _left(self, ends_at: float) -> float:
        return ends_at - self._clock.seconds()


def choose_links(checks: MailChecks, urls: Sequence[str] | None, method: str) -> Sequence[str]:
    """Return the links to check; raise as `CheckLinks.check` does."""
    if urls is None:
        if method != "HEAD":
            raise InvalidParameter("urls", "urls is missing; method GET needs exactly one URL")
        return [link.url for link in checks.links if link.is_harmless][:LINKS_AT_ONCE]
    chosen = list(dict.fromkeys(urls))
    if len(chosen) > LINKS_AT_ONCE:
        raise InvalidParameter(
            "urls", f"urls has {len(chosen)} links; {LINKS_AT_ONCE} are allowed per request"
        )
    if method == "GET" and len(chosen) != 1:
        raise InvalidParameter("urls", f"method GET needs exactly one URL; urls has {len(chosen)}")
    known = {link.url for link in checks.links}
    for url in chosen:
        if url not in known:
            raise InvalidParameter("urls", f"{url[:100]!r} is not a link of this mail")
    return chosen


def _host_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


AUTHENTICATION_DEADLINE = 2.0
"""Seconds for authentication. A reader waits for the message, and these results are secondary."""

AUTHENTICATED_AT_ONCE = 8
"""Maximum number of mails authenticated concurrently, as for analyses: each is kept in memory."""

AUTHENTICATED_OF_ACCOUNT = 4
"""Maximum number of concurrent authentications per account."""

WAITING_FOR_AUTHENTICATION = 200
"""Maximum number of waiting mails. A mail stops waiting when less than its minimum time is left."""

LARGE_HEADER = 65_536
"""Size in octets from which a header is parsed in the worker."""


class AuthenticateMessage:
    """Authenticates messages that are read, as a receiver does for Authentication-Results.

    The report of a deliverability test has more details. Results are cached by delivery.

    :param known: the cache of results, shared with reports.
    """

    _log = Logger()

    def __init__(
        self,
        known: AuthenticationCache,
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
        self._semaphore: FairSemaphore[AccountId] = FairSemaphore(
            clock,
            limit=AUTHENTICATED_AT_ONCE,
            per_owner=AUTHENTICATED_OF_ACCOUNT,
            max_waiting=WAITING_FOR_AUTHENTICATION,
        )
        self._judging: SingleFlight[DeliveryId, Authentication, StoredMessage] = SingleFlight(
            self._judge
        )

    async def of(self, message: StoredMessage) -> Authentication:
        """Return the results for a message within two seconds.

        Under heavy load they are undetermined.

        :raises MessageNotFound: the message was deleted meanwhile.
        """
        key = message.summary.delivery_id
        known = self._known.find(key, self._now())
        return await self._judging.call(key, message) if known is None else known

    async def _judge(self, key: DeliveryId, message: StoredMessage) -> Authentication:
        owner = message.summary.account_id
        budget = QuestionBudget.starting_now(self._clock, AUTHENTICATION_DEADLINE)
        try:
            await self._semaphore.acquire(owner, AUTHENTICATION_DEADLINE - LEAST_TIME)
        except NoPermit:
            return self._undetermined(message)
        try:
            found, is_settled = await self._judge_within(message, budget)
        finally:
            self._semaphore.release(owner)
        return self._known.take(key, found, self._now(), is_settled=is_settled)

    async def _judge_within(
        self, message: StoredMessage, budget: QuestionBudget
    ) -> tuple[Authentication, bool]:
        """Return the results, and whether all of them are determined."""
        summary = message.summary
        raw_message = await self._content_store.raw_message(summary.delivery_id)
        if raw_message is None:
            raise MessageNotFound
        evaluator = MailEvaluator(
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
            clock=self._clock,
            budget=budget,
            ends_at=budget.ends_at,
        )
        try:
            found = await evaluator.authenticate(self._read(message, evaluator))
        except Exception:
            # A bug in authentication must not prevent reading the message.
            key = summary.delivery_id
            self._log.failure("delivery {delivery} could not be authenticated", delivery=key)
            return self._undetermined(message), False
        return found, evaluator.is_settled

    async def _read(self, message: StoredMessage, evaluator: MailEvaluator) -> Identities:
        head = header_of(evaluator.mail.raw_message)
        if len(head) <= LARGE_HEADER:
            return read_identities(head)
        read = await evaluator.work(partial(read_identities, head))
        return read or _unread(message)

    def _undetermined(self, message: StoredMessage) -> Authentication:
        sender_domain = message.envelope_sender.rpartition("@")[2]
        headers = _unread(message).signatures
        return undetermined_authentication(self._origin(message), sender_domain, headers)

    def _origin(self, message: StoredMessage) -> Origin:
        session, allow_private = message.session, self._settings.allow_private
        return judge_origin(session.client_ip, session.helo_name, allow_private=allow_private)

    def _now(self) -> Instant:
        return instant_of(self._clock.seconds())


def _unread(message: StoredMessage) -> Identities:
    names = (name.lower() for name, _ in message.content.header_list)
    return unreadable_identities(sum(name == "dkim-signature" for name in names))
