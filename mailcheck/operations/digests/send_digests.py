"""Sending digests: gathering what changed, and the steps that come next.

One daemon at a time sends them. A digest goes to the inbox of the account first. A receiver that
cannot be reached gets it half an hour later, until the next digest is due.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct, field
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.logger import Logger

from mailcheck.checks.findings import Severity
from mailcheck.checks.receiver_reports.plan import PlanState
from mailcheck.checks.scoring.awards import GOOD_FROM
from mailcheck.checks.watching.changes import read_state
from mailcheck.core.domains.digests import (
    DIGEST_TAG,
    RETRY,
    Digest,
    DigestInterval,
    next_digest,
)
from mailcheck.core.domains.heartbeats import HeartbeatState
from mailcheck.core.domains.receiver_reports import ReportKind
from mailcheck.core.domains.watches import Alert, Watch, WatchId, WatchScore
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import AccountId, new_short_id
from mailcheck.core.instants import Instant
from mailcheck.core.memory.instruments import Tally
from mailcheck.core.memory.keys import key_of
from mailcheck.core.webhooks import Attempt
from mailcheck.operations.digests.digest_mail import (
    BAD,
    GOOD,
    DigestLine,
    DigestPage,
    make_part,
    write_digest,
)
from mailcheck.operations.domains.watches.manage_heartbeats import Heartbeat, ManageHeartbeats
from mailcheck.operations.domains.watches.send_alerts import MailHead, SendToInbox
from mailcheck.operations.reports.all_operations import ReportOperations
from mailcheck.operations.reports.plan_policy import PolicyPlan
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Memory
from mailcheck.store.domains.digest_store import DigestStore
from mailcheck.store.domains.watch_store import WatchStore

LOOK_INTERVAL = 60.0
"""Seconds between looks for digests that are due."""

AT_ONCE = 50
"""Maximum number of digests of one look."""

CLAIM = 10 * 60_000
"""Milliseconds for which one of all daemons has the lock for sending."""

ROUND = 60.0
"""Seconds after which a look sends no further digest. A single one takes less than the rest of the
lock."""

WORK = key_of("digests")

SENDER = "digest"
"""Local part of the sender address."""

MOST_READ = 200
"""Maximum number of watches and alerts that are read for a digest."""

PLANNED_DOMAINS, PLANNED_DAYS, PLAN_SECONDS = 5, 30, 30.0
"""Maximum number of domains whose reports are planned, days of the reports, and seconds for a
domain. A plan asks name servers."""


class SendMail(Protocol):
    """Sends a mail to an address that the operator allows the account."""

    def __call__(self, account_name: str, address: str, mail: bytes) -> Deferred[Attempt]:
        """Send it. Failures are part of the result."""


class Pages(Protocol):
    """The addresses of pages."""

    def page_url(self, account_id: AccountId, path: str) -> str:
        """Return the URL of a page of an account."""


class SendDigests(Struct, eq=False, frozen=True):
    """Sends the digests that are due; only one daemon at a time does so.

    :param sender: the address from which mail is sent to others.
    """

    _log = Logger()

    store: DigestStore
    watches: WatchStore
    heartbeats: ManageHeartbeats
    reports: ReportOperations
    send_to_inbox: SendToInbox
    send_mail: SendMail
    sender: str
    pages: Pages
    memory: Memory
    clocks: ClockAndRandomness
    outcomes: Tally = field(default_factory=Tally)

    async def send_due(self) -> None:
        """Send all digests that are due. Called every `LOOK_INTERVAL` seconds."""
        now = self.clocks.now()
        if not await self.store.due(now, 1) or not await self.memory.acquire(WORK, CLAIM):
            return
        until = self.clocks.clock.seconds() + ROUND
        try:
            for digest in await self.store.due(now, AT_ONCE):
                if self.clocks.clock.seconds() > until:
                    break  # the lock must not end during a digest
                quiet = digest.settings.quiet
                if quiet is None or not quiet.holds(now):
                    await self._send_one(digest, now)
        finally:
            await self.memory.release(WORK)

    async def _send_one(self, digest: Digest, now: Instant) -> None:
        try:
            await self._send(digest, now)
        except ExpectedFailure as failure:
            self.outcomes.add("put off")
            self._log.warn("a digest is delayed: {reason}", reason=failure)
            await self.store.put_off(digest.account_id, Instant(now + RETRY), digest.left)

    async def _send(self, digest: Digest, now: Instant) -> None:
        """Send a digest to the inbox and to other receivers, or to the receivers that are left."""
        every = digest.settings.every or DigestInterval.WEEK
        page = await self.gather(digest, now)
        write = partial(self._write, page, now)
        if not digest.left:
            await self.send_to_inbox(digest.mailbox_name, DIGEST_TAG, SENDER, write)
        left = []
        for address in digest.left or digest.settings.to:
            mail = write(address, self.sender)
            attempt = await self.send_mail(digest.account_name, address, mail)
            if not attempt.is_taken:
                name, why = digest.account_name, attempt.problem
                self._log.warn("the digest of {name} was not sent: {why}", name=name, why=why)
                left += [address] * (not attempt.is_permanent)
        next_at, retry_at = next_digest(every, now), Instant(now + RETRY)
        if left and retry_at < next_at:
            await self.store.put_off(digest.account_id, retry_at, left)
            self.outcomes.add("put off")
        else:
            await self.store.note_sent(digest.account_id, now, next_at)
            self.outcomes.add("told")

    def _write(self, page: DigestPage, now: Instant, address: str, sender: str) -> bytes:
        head = MailHead(sender, address, new_short_id(self.clocks.random_bytes), now)
        why = (
            f"You get this digest every {page.every.value}, since {page.account_name} has chosen "
            f"it for this address. Change or end it: {page.settings_page}"
        )
        return write_digest(head, page, why)

    async def gather(self, digest: Digest, now: Instant) -> DigestPage:
        """Return what a digest says now."""
        account_id, since = digest.account_id, digest.begins_at
        watched = await self.watches.worst_first(account_id, GOOD_FROM, since, MOST_READ, 0)
        alerts = await self.store.alerts_since(account_id, since, MOST_READ)
        heartbeats = await self.heartbeats.all(account_id)
        plans = await self._plan(account_id)
        todo = [*_open(alerts), *_steps(plans)]
        changes = [
            *_ended(alerts, since),
            *(line for watch in watched.watches for line in _change(watch, watched.scores)),
        ]
        begun = [alert for alert in alerts if alert.opened_at >= since and not alert.ended_at]
        changes = [*map(_begun, begun), *changes]
        parts = [
            make_part("What to do next", todo, empty="Nothing: no problem is open."),
            make_part("What changed", changes, empty="Nothing."),
            make_part(
                "Watched domains and addresses",
                [_watch(watch) for watch in watched.watches],
                watched.total,
            ),
            make_part("Heartbeats", list(map(_heartbeat, heartbeats))),
            make_part(f"Reports of the last {PLANNED_DAYS} days", list(map(_report, plans))),
        ]
        return DigestPage(
            account_name=digest.account_name,
            every=digest.settings.every or DigestInterval.WEEK,
            begins_at=since,
            ends_at=now,
            parts=tuple(parts),
            page=self.pages.page_url(account_id, "/domains"),
            settings_page=self.pages.page_url(account_id, "/digest"),
        )

    async def _plan(self, account_id: AccountId) -> list[PolicyPlan]:
        """Return the plans of the domains with the most mail in reports."""
        found = await self.reports.show.domains(account_id)
        reported = [known for known in found if known.kind is ReportKind.DMARC]
        reported.sort(key=lambda one: -one.messages)
        plans = []
        for known in reported[:PLANNED_DOMAINS]:
            planning = self.reports.plan.plan(account_id, known.domain, PLANNED_DAYS)
            planned = Deferred.fromCoroutine(planning).addTimeout(PLAN_SECONDS, self.clocks.clock)
            try:
                plans.append(await planned)
            except (ExpectedFailure, DeferredTimeout) as failure:
                self._log.info(
                    "a digest has no plan of {domain}: {why}", domain=known.domain, why=failure
                )
        return plans


def _open(alerts: Sequence[Alert]) -> Iterator[DigestLine]:
    """Yield the open problems, errors first."""
    is_open = [alert for alert in alerts if alert.ended_at is None]
    for alert in sorted(is_open, key=lambda alert: Severity(alert.severity).rank):
        value = "known" if alert.acknowledged_at is not None else alert.severity
        yield DigestLine(alert.target, alert.sentence, value, BAD)


def _steps(plans: Sequence[PolicyPlan]) -> Iterator[DigestLine]:
    """Yield the first step of each plan, or the record that is safe to publish."""
    for plan in plans:
        if plan.record is not None:
            sentence = f"Publish at {plan.record.name}: {plan.record.value}"
            yield DigestLine(plan.domain, sentence, "safe", GOOD)
        elif plan.steps:
            yield DigestLine(plan.domain, plan.steps[0].fix or plan.steps[0].meaning)


def _begun(alert: Alert) -> DigestLine:
    return DigestLine(alert.target, alert.sentence, "new", BAD)


def _ended(alerts: Sequence[Alert], since: Instant) -> Iterator[DigestLine]:
    for alert in alerts:
        if alert.ended_at is not None and alert.ended_at >= since:
            yield DigestLine(alert.target, alert.ending, "solved", GOOD)


def _change(watch: Watch, scores: dict[WatchId, list[WatchScore]]) -> Iterator[DigestLine]:
    """Yield the change of a score in the period."""
    found = scores.get(watch.id, [])
    if len(found) > 1 and found[0].score != found[-1].score:
        before, after = found[0].score, found[-1].score
        level = GOOD if after > before else BAD
        yield DigestLine(watch.target, f"Score {before} to {after}.", f"{after - before:+}", level)


def _watch(watch: Watch) -> DigestLine:
    state, count = read_state(watch.state), watch.problem_count
    if count is None:
        return DigestLine(watch.target, "Not checked yet.")
    problems = "No problem." if not count else f"{count} problem{'s' if count > 1 else ''}."
    level = BAD if count else GOOD
    has_score = state is not None and bool(state.points)
    value = f"{state.score} of 100" if state is not None and has_score else ""
    return DigestLine(watch.target, problems, value, level)


_STATES = {
    HeartbeatState.NEW: ("No mail yet.", ""),
    HeartbeatState.ON_TIME: ("Mail comes on time.", GOOD),
    HeartbeatState.LATE: ("Mail is late.", BAD),
    HeartbeatState.MISSING: ("Mail is missing.", BAD),
    HeartbeatState.PAUSED: ("Paused.", ""),
}


def _heartbeat(heartbeat: Heartbeat) -> DigestLine:
    sentence, level = _STATES[heartbeat.state]
    days = heartbeat.days[-PLANNED_DAYS:]
    missed = sum(day.missing for day in days)
    if missed:
        sentence += f" {missed} missed in the last {PLANNED_DAYS} days with mail."
    return DigestLine(heartbeat.name, sentence, heartbeat.state.value, level)


_PLANS = {
    PlanState.SAFE: "A stricter policy is safe.",
    PlanState.STEPS: "Steps are missing before a stricter policy.",
    PlanState.UNDETERMINED: "The reports do not show enough for a stricter policy.",
    PlanState.ENFORCED: "The strictest policy is in use.",
}


def _report(plan: PolicyPlan) -> DigestLine:
    policy = "no policy" if plan.policy is None else f"p={plan.policy.value}"
    passing = plan.messages - plan.failing
    value = f"{100 * passing // plan.messages} % pass" if plan.messages else "no mail"
    sentence = f"{plan.messages:,} messages, {policy}. {_PLANS[plan.state]}"
    is_good = plan.state in (PlanState.SAFE, PlanState.ENFORCED)
    return DigestLine(plan.domain, sentence, value, GOOD if is_good else "")
