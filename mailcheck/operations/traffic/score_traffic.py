"""Scoring of copies of mail, from a bounded queue. Only counts are stored."""

from collections import Counter, deque
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import Struct, field
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.logger import Logger

from mailcheck.checks.deliverability.authentication import Authentication, judge_origin
from mailcheck.checks.deliverability.content_filter import FilterOutcome, FilterVerdict
from mailcheck.checks.deliverability.identities import (
    header_of,
    read_identities,
    unreadable_identities,
)
from mailcheck.checks.deliverability.score import result_of_dkim
from mailcheck.checks.deliverability.trace_fields import TraceFacts, with_trace_fields
from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.memory.instruments import Tally
from mailcheck.core.messages import Session
from mailcheck.core.network_addresses import counting_key
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.deliverability.authenticate_mail import MailEvaluator
from mailcheck.operations.dns_evaluation import QuestionBudget
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.resolver import Resolver
from mailcheck.ports.workers import Worker
from mailcheck.store.domains.traffic_store import TrafficCount, TrafficKey, TrafficStore

AUTHENTICATION_DEADLINE = 10.0
"""Seconds for SPF, DKIM and DMARC of a mail."""

RECIPIENT = "copy"
"""Local part of the recipient in the added trace fields. The recipients of a mail are not known."""

MAX_SENDERS = 500
"""Maximum number of different senders that are counted until the next write to the store."""

JudgeContent = Callable[[bytes], Awaitable[FilterOutcome]]


class TrafficLimits(Struct, frozen=True):
    """Limits of the copies: octets of one mail and of all of them, waiting and concurrent mails.

    ``sample`` is the share of mails that are copied, from 0 to 1.
    """

    mail_octets: int
    all_octets: int = 64 * 1024 * 1024
    waiting: int = 200
    at_a_time: int = 4
    sample: float = 1.0


class MailCopy(Struct, eq=False):
    """The copy of a mail that is being received."""

    traffic: "ScoreTraffic"
    session: Session
    sender: str
    octets: int = 0
    _parts: list[bytes] = field(default_factory=list)

    def add(self, octets: bytes) -> bool:
        """Add octets. If the copy becomes too large, drop it and return false."""
        self.octets += len(octets)
        if self.traffic.reserve(self, len(octets)):
            self._parts.append(octets)
            return True
        self.drop()
        return False

    def finish(self) -> None:
        """Queue the copy for its evaluation."""
        self.traffic.queue(self)

    def drop(self) -> None:
        """Discard the copy."""
        self._parts.clear()
        self.traffic.release(self)

    @property
    def raw_message(self) -> bytes:
        """The mail."""
        return b"".join(self._parts)


class ScoreTraffic(Struct, eq=False):
    """Evaluates copies of mail, and counts the results by sender and day.

    ``outcomes`` counts the mails: scored, or why they were not.

    :param find_account: returns the account that the statistics belong to, or `None`.
    :param judge_content: the content filter; `None` if it is not used.
    :param host_name: the name of this server.
    """

    _log = Logger()

    store: TrafficStore
    find_account: Callable[[], Awaitable[AccountId | None]]
    judge_content: JudgeContent | None
    resolver: Resolver
    worker: Worker
    host_name: str
    limits: TrafficLimits
    clocks: ClockAndRandomness
    allow_private: bool
    outcomes: Tally = field(default_factory=Tally)
    _reserved: Counter[MailCopy] = field(default_factory=Counter)
    _octets: int = 0
    _waiting: deque[MailCopy] = field(default_factory=deque)
    _running: set["Deferred[None]"] = field(default_factory=set)
    _counts: dict[TrafficKey, TrafficCount] = field(default_factory=dict)
    _is_closed: bool = False

    @property
    def waiting(self) -> int:
        """Number of copies that wait for their evaluation."""
        return len(self._waiting)

    # The milter calls these while it receives a mail. None of them waits.

    def begin(self, session: Session, sender: str, *, is_authenticated: bool) -> MailCopy | None:
        """Return a new copy, or `None` if the mail is not scored."""
        if is_authenticated:
            self.outcomes.add("authenticated")
        elif not self._is_sampled():
            self.outcomes.add("not-sampled")
        elif self._is_closed or self._is_full:
            self.outcomes.add("full")
        else:
            return MailCopy(self, session, sender)
        return None

    def reserve(self, copy: MailCopy, octets: int) -> bool:
        """Reserve memory for octets of a copy, or return false."""
        if copy.octets > self.limits.mail_octets:
            self.outcomes.add("too-large")
            return False
        if self._octets + octets > self.limits.all_octets:
            self.outcomes.add("full")
            return False
        self._octets += octets
        self._reserved[copy] += octets
        return True

    def release(self, copy: MailCopy) -> None:
        """Release the memory of a copy."""
        self._octets -= self._reserved.pop(copy, 0)

    def queue(self, copy: MailCopy) -> None:
        """Evaluate a complete copy when it is its turn."""
        if self._is_closed or self._is_full:
            self.outcomes.add("full")
            copy.drop()
            return
        self._waiting.append(copy)
        # The evaluation begins in a later turn of the reactor, after the reply of the milter.
        self.clocks.clock.callLater(0, self._start)

    async def flush(self) -> None:
        """Write the counts to the store. If that fails, the next round writes them."""
        counts, self._counts = self._counts, {}
        if not counts:
            return
        is_written = False
        try:
            account_id = await self.find_account()
            if account_id is not None:
                await self.store.add(account_id, tuple(counts.items()))
                is_written = True
        finally:
            for key, count in () if is_written else counts.items():
                self._count(key, count)

    def close(self) -> Deferred[None]:
        """Discard the waiting copies, and cancel the evaluations."""
        self._is_closed = True
        while self._waiting:
            self._waiting.popleft().drop()
            self.outcomes.add("stopped")
        for running in tuple(self._running):
            running.cancel()
        return succeed(None)

    @property
    def _is_full(self) -> bool:
        return len(self._waiting) >= self.limits.waiting

    def _is_sampled(self) -> bool:
        share = self.limits.sample
        return share >= 1 or int.from_bytes(self.clocks.random_bytes(4)) < share * 2**32

    def _start(self) -> None:
        while self._waiting and len(self._running) < self.limits.at_a_time:
            running = Deferred.fromCoroutine(self._score(self._waiting.popleft()))
            if not running.called:
                self._running.add(running)
                running.addBoth(self._ended, running)

    def _ended(self, _: object, running: Deferred[None]) -> None:
        self._running.discard(running)
        self._start()

    async def _score(self, copy: MailCopy) -> None:
        try:
            key, count = await self._evaluate(copy)
            self._count(key, count)
            self.outcomes.add("scored")
        except CancelledError:
            self.outcomes.add("stopped")
        except Exception:
            # A bug must not stop the statistics of other mails.
            self._log.failure("A copy of a mail could not be scored")
            self.outcomes.add("failed")
        finally:
            copy.drop()

    async def _evaluate(self, copy: MailCopy) -> tuple[TrafficKey, TrafficCount]:
        session, now, raw_message = copy.session, self.clocks.now(), copy.raw_message
        origin = judge_origin(
            session.client_ip, session.helo_name, allow_private=self.allow_private
        )
        budget = QuestionBudget.starting_now(self.clocks.clock, AUTHENTICATION_DEADLINE)
        evaluator = MailEvaluator(
            ReceivedMail(session, copy.sender, now, raw_message),
            origin,
            self.host_name,
            self.resolver,
            self.worker,
            clock=self.clocks.clock,
            budget=budget,
            ends_at=budget.ends_at,
        )
        read = await evaluator.work(partial(read_identities, header_of(raw_message)))
        identities = read or unreadable_identities(0)
        found, outcome = await run_all(
            evaluator.authenticate(succeed(identities)), self._filter(copy, raw_message, now)
        )
        return _key_of(found, evaluator.sender_domain, now), _count_of(outcome)

    async def _filter(
        self, copy: MailCopy, raw_message: bytes, now: Instant
    ) -> FilterOutcome | None:
        if self.judge_content is None:
            return None
        facts = TraceFacts(
            envelope_sender=copy.sender,
            recipient=f"{RECIPIENT}@{self.host_name}",
            helo_name=copy.session.helo_name,
            client_ip=copy.session.client_ip,
            client_name="",
            receiving_host=self.host_name,
            protocol="ESMTP",
            mail_id=RECIPIENT,
            received_at=now,
        )
        return await self.judge_content(with_trace_fields(raw_message, facts))

    def _count(self, key: TrafficKey, count: TrafficCount) -> None:
        if key not in self._counts and len(self._counts) >= MAX_SENDERS:
            key = key.without_sender()
        self._counts[key] = self._counts.get(key, TrafficCount()).plus(count)


def _key_of(found: Authentication, envelope_domain: str, now: Instant) -> TrafficKey:
    """Return what a mail is counted under: its domains, the client and the verdicts."""
    dmarc, signatures = found.dmarc, found.dkim.passing or found.dkim.signatures
    aligned = [found.dkim.signatures[index] for index in dmarc.aligned_signatures]
    signer = next(iter((*aligned, *signatures)), None)
    return TrafficKey(
        day=Instant(now - now % DAY),
        author_domain=read_mail_domain(dmarc.author_domain or "") or "",
        envelope_domain=envelope_domain,
        source=counting_key(str(found.origin.address or "")),
        dkim_domain="" if signer is None else read_mail_domain(signer.header.signing_domain) or "",
        spf=found.spf.mail_from.result.value,
        dkim=result_of_dkim(found.dkim, dmarc.author_domain),
        dmarc=dmarc.result.value,
    )


def _count_of(outcome: FilterOutcome | None) -> TrafficCount:
    if not isinstance(outcome, FilterVerdict):
        return TrafficCount(mails=1)
    return TrafficCount(
        mails=1, filtered=1, spam=int(outcome.is_spam), tenths=round(outcome.points * 10)
    )
