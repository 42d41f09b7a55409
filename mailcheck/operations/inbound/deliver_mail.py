"""Delivering mails to applications as their providers do, as jobs with a lease.

At least one attempt is made, and after a crash the last one may be repeated with the same ids.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import partial

from msgspec import field
from msgspec.structs import replace
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from mailcheck.core.errors import ExpectedFailure, MailTooLarge, WorkerDied, WorkTooSlow
from mailcheck.core.identifiers import AccountId
from mailcheck.core.inbound import (
    SUCCESS,
    InboundAttempt,
    InboundDelivery,
    InboundDeliveryId,
    InboundFault,
    InboundMail,
    InboundMoment,
    InboundProvider,
    InboundProviders,
    InboundRequest,
    InboundRoute,
    InboundState,
    NextStep,
    Verdicts,
    first_delay,
    judge_attempt,
)
from mailcheck.core.instants import SECOND, Instant
from mailcheck.operations.concurrency import stop_timer
from mailcheck.operations.inbox.contents import ATTEMPTS, LARGE, MailBytes
from mailcheck.operations.queue_worker import QueueWorker
from mailcheck.operations.semaphores import FairSemaphore, NoPermit
from mailcheck.ports.cluster import Notifications
from mailcheck.ports.probes import InboundAnswer, InboundSender
from mailcheck.ports.workers import Lease
from mailcheck.store.inbound_store import (
    OF_ACCOUNT,
    InboundJob,
    InboundStore,
    StoredInboundMail,
)

AT_ONCE = 32
"""Maximum number of concurrent attempts. An unresponsive application uses one until its timeout."""

LARGE_AT_ONCE = 2
"""Maximum number of concurrent attempts with large mails. A request has up to three copies of its
mail in memory."""

LEASE = 60 * SECOND
"""Duration of a lease. It is renewed twelve times."""

INBOUND_RENEWAL = 5.0
"""Seconds between renewals, and between looks for mails whose hints were lost."""

PATIENCE = 60.0
"""Seconds that a large mail waits for its turn, before it is claimed again."""

SMALL = 8_192
"""Maximum octets of a mail whose request is written without a worker: a few milliseconds, and at
most some 25 for a hostile one."""

HIDDEN = "(not stored)"
"""What is stored in place of credentials."""

Judge = Callable[[StoredInboundMail], Awaitable[Verdicts]]
"""Determines the verdicts of a mail that came over SMTP."""


def turns_of_large_mails(clock: IReactorTime) -> FairSemaphore[AccountId]:
    """Return the permits for attempts with large mails: one of each account at a time."""
    return FairSemaphore(clock, per_owner=1, limit=LARGE_AT_ONCE, max_waiting=AT_ONCE)


class DeliverInbound(QueueWorker[InboundDeliveryId, InboundJob], eq=False):
    """Delivers mails to applications.

    :param finished: gets a notification with the account after each attempt.
    :param large: the permits of `turns_of_large_mails`.
    """

    jobs = "mails for applications"
    max_jobs = AT_ONCE
    lease = LEASE

    store: InboundStore
    sender: InboundSender
    providers: Callable[[], InboundProviders]
    judge: Judge
    mail_bytes: MailBytes
    finished: Notifications[AccountId]
    large: FairSemaphore[AccountId]
    _accounts: frozenset[AccountId] = frozenset()
    _owners: dict[InboundDeliveryId, AccountId] = field(default_factory=dict)
    _timer: IDelayedCall | None = None

    async def start(self) -> None:
        """Start, and take over the mails of an earlier run of this daemon."""
        await self._learn_accounts()
        await super().start()

    async def stop(self) -> None:
        """Stop, and release the mails under way. Their attempts may be repeated."""
        self._forget_timer()
        await super().stop()
        self._forget_timer()

    def on_mail(self, account_id: AccountId) -> None:
        """Handle the hint that a mail for an account has arrived."""
        if account_id in self._accounts:
            self.wake()

    def on_change(self, account_id: AccountId) -> None:
        """Handle the hint that routes of an account were changed, or that mails wait for them."""
        self._accounts |= {account_id}
        self.wake()

    async def renew(self) -> None:
        """Renew the leases of running attempts, cancel those that were lost, and look for more."""
        await self._learn_accounts()
        try:
            await self.renew_leases(self.store.renew)
            has_pending = await self.store.has_pending()
        except ExpectedFailure as failure:
            self._log.warn("leases of mails could not be renewed: {reason}", reason=failure)
            return
        if has_pending:
            self.wake()

    async def claim(self, limit: int) -> Sequence[InboundJob]:
        """Claim the deliveries that are due, and come back when the next one is."""
        claimed = await self.store.claim(self.new_lease(), self.clocks.now(), limit)
        self._forget_timer()
        if claimed.wait is not None and self._is_running:
            self._timer = self.clocks.clock.callLater(claimed.wait / SECOND, self.wake)
        return claimed.jobs

    async def release(self, *, is_attempt: bool) -> None:
        """Release the leases of this daemon."""
        await self.store.release(self.holder)

    def reserve(self, route: InboundRoute, deliveries: Sequence[InboundDelivery]) -> Lease | None:
        """Return the lease for new deliveries that this daemon makes at once (`take`).

        Return `None` if they have to wait, or if this daemon or the account is busy.
        """
        waits = not route.is_confirmed or any(
            first_delay(delivery.fault) for delivery in deliveries
        )
        is_busy = len(self._under_way) + len(deliveries) > self.max_jobs
        of_account = list(self._owners.values()).count(route.account_id)
        if waits or is_busy or not self._is_running or of_account + len(deliveries) > OF_ACCOUNT:
            return None
        return self.new_lease()

    def take(self, job: InboundJob, stored: StoredInboundMail) -> None:
        """Make the first attempt of a delivery with a lease of `reserve`, without reading it."""
        if self._is_running and job.id not in self._under_way:
            self.begin(job.id, self._process(job, stored))

    async def process(self, job: InboundJob) -> None:
        """Make one attempt, and record it."""
        await self._process(job, None)

    async def _process(self, job: InboundJob, stored: StoredInboundMail | None) -> None:
        self._owners[job.id] = job.route.account_id
        try:
            await self._attempt(job, stored)
        except CancelledError:
            return  # the daemon stops, or another daemon has the job now
        except NoPermit:
            await self._postpone(job, SECOND)
        finally:
            del self._owners[job.id]
            self.wake()  # more mails of the account may be due

    async def _learn_accounts(self) -> None:
        try:
            self._accounts = await self.store.accounts()
        except ExpectedFailure as failure:
            self._log.warn("inbound routes could not be read: {reason}", reason=failure)

    async def _attempt(self, job: InboundJob, stored: StoredInboundMail | None) -> None:
        provider = self.providers()[job.route.format]
        if job.delivery.mail_id is None:
            await self._open(job, provider)
            return
        is_large = job.size >= LARGE
        place = self.large.held(job.route.account_id, PATIENCE) if is_large else nullcontext()
        async with place:
            if stored is None:
                stored = await self.store.find_mail(job.route.account_id, job.delivery.mail_id)
            if stored is not None:  # otherwise it was deleted meanwhile
                await self._send(job, provider, stored)

    async def _open(self, job: InboundJob, provider: InboundProvider) -> None:
        """Make the request that the application has to confirm before the first mail."""
        if provider.open is None or job.route.is_confirmed:
            step = NextStep(InboundState.DELIVERED)
        else:
            # A key of SNS takes a third of a second to derive.
            write = partial(provider.open, job.route, self._moment(job))
            request = await self.mail_bytes.work(write, 0, job.route.account_id)
            answer = await self._post(job, provider, request)
            if answer.wait:
                await self._postpone(job, answer.wait)
                return
            step = judge_attempt(provider, job.delivery, job.route.speed, answer.status)
        await self._record(job, None, step, is_taken=step.state is InboundState.DELIVERED)

    async def _send(
        self, job: InboundJob, provider: InboundProvider, stored: StoredInboundMail
    ) -> None:
        mail, size = stored.mail, len(stored.mail.raw_message)
        if size > provider.most_octets:
            problem = (
                f"the provider accepts mails of at most {provider.most_octets:,} octets; "
                f"this one has {size:,}"
            )
            await self._give_up(job, problem)
            return
        if not stored.has_verdicts:
            mail = replace(mail, verdicts=await self.judge(stored))
            await self.store.set_verdicts(mail.id, mail.verdicts)
        mail = replace(mail, recipients=job.delivery.recipients)
        began, at = self.clocks.clock.seconds(), self.clocks.now()
        request: InboundRequest | None = None
        if provider.write is None:
            answer = await self.sender.mail_inbound(
                job.route, mail, provider.seconds, is_cut_off=_is_cut_off(job)
            )
        else:
            try:
                request = await self._write(provider, job, mail)
            except (WorkTooSlow, WorkerDied, MailTooLarge, MemoryError):
                await self._give_up(job, "the request takes too long to write")
                return
            except (ExpectedFailure, CancelledError):
                raise
            except Exception:
                # A bug in a format must not repeat the delivery for ever.
                self._log.failure("the request of {id} could not be written", id=job.id)
                await self._give_up(job, "the request could not be written")
                return
            began, at = self.clocks.clock.seconds(), self.clocks.now()
            answer = await self._post(job, provider, request)
        if answer.wait:
            await self._postpone(job, answer.wait)
            return
        step = judge_attempt(provider, job.delivery, job.route.speed, answer.status)
        is_taken = answer.status is not None and answer.status in SUCCESS
        attempt = InboundAttempt(
            delivery_id=job.delivery.id,
            route_id=job.route.id,
            mail_id=mail.id,
            number=job.delivery.attempts + 1,
            at=at,
            status=answer.status,
            milliseconds=int((self.clocks.clock.seconds() - began) * SECOND),
            problem="" if is_taken else answer.problem or f"it answered {answer.status}",
            request_headers=() if request is None else _shown(request),
            answer_headers=answer.headers,
            answer=answer.body,
        )
        await self._record(job, attempt, step, is_taken=is_taken)

    async def _write(
        self, provider: InboundProvider, job: InboundJob, mail: InboundMail
    ) -> InboundRequest:
        assert provider.write is not None
        write = partial(provider.write, mail, job.route, self._moment(job))
        size = len(mail.raw_message)
        if size <= SMALL and provider.open is None:
            return write()
        for _ in range(ATTEMPTS - 1):
            try:
                return await self.mail_bytes.work(write, size, job.route.account_id)
            except WorkTooSlow:
                raise
            except WorkerDied:
                continue  # mostly of the work for another mail
        return await self.mail_bytes.work(write, size, job.route.account_id)

    async def _post(
        self, job: InboundJob, provider: InboundProvider, request: InboundRequest
    ) -> InboundAnswer:
        send = partial(
            self.sender.post_inbound,
            job.route.account_name,
            seconds=provider.seconds,
            is_cut_off=_is_cut_off(job),
        )
        answer = await send(request)
        asks = any(name.lower() == "www-authenticate" for name, _ in answer.headers)
        if answer.status == 401 and asks and request.authorization_if_asked:
            headers = (*request.headers, ("Authorization", request.authorization_if_asked))
            answer = await send(replace(request, headers=headers))
        return answer

    def _moment(self, job: InboundJob) -> InboundMoment:
        delivery = job.delivery
        return InboundMoment(delivery.id, self.clocks.now(), delivery.attempts + 1, delivery.fault)

    async def _give_up(self, job: InboundJob, problem: str) -> None:
        """Record that a mail cannot be sent."""
        assert job.delivery.mail_id is not None
        attempt = InboundAttempt(
            delivery_id=job.delivery.id,
            route_id=job.route.id,
            mail_id=job.delivery.mail_id,
            number=job.delivery.attempts + 1,
            at=self.clocks.now(),
            status=None,
            milliseconds=0,
            problem=problem,
        )
        await self._record(job, attempt, NextStep(InboundState.FAILED), is_taken=False)

    async def _record(
        self, job: InboundJob, attempt: InboundAttempt | None, step: NextStep, *, is_taken: bool
    ) -> None:
        self.outcomes.add("taken" if is_taken else "failed")
        await self.store.record(
            job, self.holder, attempt, step, self.clocks.now(), is_taken=is_taken
        )
        self.finished.publish(job.route.account_id)

    async def _postpone(self, job: InboundJob, wait: int) -> None:
        due_at = Instant(self.clocks.now() + wait)
        await self.store.postpone(job.delivery.id, self.holder, due_at)

    def _forget_timer(self) -> None:
        stop_timer(self._timer)
        self._timer = None


def _is_cut_off(job: InboundJob) -> bool:
    return job.delivery.fault is InboundFault.CUT_OFF and job.delivery.attempts == 0


def _shown(request: InboundRequest) -> tuple[tuple[str, str], ...]:
    """Return the headers of a request as they are stored, without credentials."""
    return tuple(
        (name, HIDDEN if name.lower() == "authorization" else value)
        for name, value in request.headers
    )
