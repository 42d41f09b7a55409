"""Evaluating due heartbeats, as jobs with a lease: a beat has come, or one has not."""

from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.dkim.mail import DkimOfMail
from mailcheck.checks.watching.heartbeats import (
    BeatsEvaluation,
    Reception,
    is_to_retry,
    read_beats_state,
    write_beats_state,
)
from mailcheck.checks.watching.transit import read_transit
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.domains.heartbeats import Beat, BeatFacts, HeartbeatSettings
from mailcheck.core.domains.watches import AlertId, Watch, WatchId, expected_of
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import AccountId, new_short_id
from mailcheck.core.instants import Instant
from mailcheck.operations.domains.watches.run_watches import LEASE, RETRY_AFTER
from mailcheck.operations.queue_worker import QueueWorker
from mailcheck.ports.cluster import Notifications
from mailcheck.store.domains.heartbeat_store import (
    SEEN_EVERY,
    HeartbeatRecord,
    HeartbeatStore,
)
from mailcheck.store.domains.watch_store import RunRecord
from mailcheck.store.mail_delivery import MOST_WAITING

AT_ONCE = 8
"""Maximum number of concurrent evaluations. Only one with a mail takes longer than its reads."""

DEADLINE = 60.0
"""Seconds for the analysis of a beat."""

LARGEST_HEADER = 65_536
"""Octets of a mail whose Received fields are read here."""

ScoreBeat = Callable[[ReceivedMail], Awaitable[DeliverabilityReport]]
"""Scores a mail (`ScoreMail.score`)."""


class RunHeartbeats(QueueWorker[WatchId, Watch], eq=False):
    """Evaluates due heartbeats. ``changed`` announces accounts with new results."""

    jobs = "heartbeats"
    max_jobs = AT_ONCE
    lease = LEASE

    store: HeartbeatStore
    score: ScoreBeat
    changed: Notifications[AccountId]
    _seen_at: Instant | None = None
    _reception: Reception = Reception()

    async def claim(self, limit: int) -> Sequence[Watch]:
        """Claim due heartbeats, after recording that the time is observed."""
        now = self.clocks.now()
        if self._seen_at is None or not 0 <= now - self._seen_at < SEEN_EVERY:
            self._reception = await self.store.observe(now)
            self._seen_at = now
        return await self.store.claim(self.holder, now, LEASE, limit)

    async def release(self, *, is_attempt: bool) -> None:
        """Release the heartbeats of this daemon. They are due as before."""
        await self.store.release(self.holder)

    async def process(self, job: Watch) -> None:
        """Evaluate a heartbeat: its oldest mails, of which one is analysed, and the time."""
        try:
            await self._evaluate(job)
        except CancelledError:
            return
        except ExpectedFailure:
            raise
        except Exception:
            self._log.failure("heartbeat {watch} could not be evaluated", watch=job.id)
            self.outcomes.add("failed")
            await self.store.postpone(self.holder, job.id, Instant(self.clocks.now() + RETRY_AFTER))

    async def _evaluate(self, watch: Watch) -> None:
        settings = expected_of(watch.settings)
        now = self.clocks.now()
        waiting = await self.store.waiting(watch.id, MOST_WAITING)
        evaluation = BeatsEvaluation(read_beats_state(watch.state), settings, self._reception, now)
        has_more = await self._take(evaluation, settings, waiting, now)
        next_run_at = evaluation.finish(has_more=has_more)
        state = evaluation.state
        run = RunRecord(
            watch=watch,
            at=now,
            next_run_at=next_run_at,
            state=write_beats_state(state),
            changes=tuple(evaluation.changes),
            events=tuple(
                (AlertId(new_short_id(self.clocks.random_bytes)), event)
                for event in evaluation.events
            ),
            problem_count=len(state.alerts),
        )
        recorded = HeartbeatRecord(run, tuple(evaluation.judged), tuple(evaluation.days))
        if await self.store.record_beats(self.holder, recorded):
            self.changed.publish(watch.account_id)
            self.outcomes.add("changed" if evaluation.events else "unchanged")
        if has_more:
            self.wake()

    async def _take(
        self,
        evaluation: BeatsEvaluation,
        settings: HeartbeatSettings,
        waiting: Sequence[Beat],
        now: Instant,
    ) -> bool:
        """Judge mails up to the first one that is analysed; return whether some are left."""
        for number, beat in enumerate(waiting, 1):
            if not is_to_retry(beat, now):
                evaluation.wait()
            elif evaluation.wants_facts(beat):
                evaluation.take(beat, await self._facts(beat, settings.signed_by))
                return number < len(waiting)
            else:
                evaluation.take(beat, None)
        return False

    async def _facts(self, beat: Beat, signer: str) -> BeatFacts | None:
        """Analyse a beat. What cannot be found out is undetermined; `None`: it was deleted.

        :param signer: the domain that must have signed it.
        """
        mail = await self.store.read_mail(beat)
        if mail is None:
            return None
        try:
            scoring = Deferred.fromCoroutine(_awaited(self.score(mail)))
            report = await scoring.addTimeout(DEADLINE, self.clocks.clock)
        except (ExpectedFailure, DeferredTimeout) as failure:
            self._log.warn("a heartbeat could not be analysed: {reason}", reason=failure)
            return replace(facts_of_mail(mail), unverified=(signer,))
        return facts_of_report(report)


async def _awaited(scoring: Awaitable[DeliverabilityReport]) -> DeliverabilityReport:
    return await scoring


def facts_of_mail(mail: ReceivedMail) -> BeatFacts:
    """Return what a mail itself says: whether it came over TLS, and its time in transit."""
    transit = read_transit(mail.raw_message[:LARGEST_HEADER], mail.received_at)
    return BeatFacts(
        tls=mail.session.tls is not None,
        seconds=None if transit is None else transit.seconds,
        slowest="" if transit is None else transit.slowest,
    )


def facts_of_report(report: DeliverabilityReport) -> BeatFacts:
    """Return what is compared of a report."""
    found = report.evidence.authentication
    return replace(
        facts_of_mail(report.mail),
        score=report.score.tenths,
        is_complete=not report.score.undetermined,
        spf=_passes(found.spf.mail_from.result),
        dkim=_is_signed(found.dkim),
        dmarc=_passes(found.dmarc.result),
        signed_by=tuple(
            dict.fromkeys(
                signature.header.signing_domain.lower() for signature in found.dkim.passing
            )
        ),
        signatures=tuple(
            sha256(signature.header.signature).hexdigest()[:16] for signature in found.dkim.passing
        ),
        unverified=tuple(
            signature.header.signing_domain.lower()
            for signature in found.dkim.signatures
            if not signature.result.is_determined
        ),
    )


def _passes(result: AuthResult) -> bool | None:
    return result is AuthResult.PASS if result.is_determined else None


def _is_signed(dkim: DkimOfMail) -> bool | None:
    if dkim.passing:
        return True
    return False if all(signature.result.is_determined for signature in dkim.signatures) else None
