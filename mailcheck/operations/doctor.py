"""The doctor: examines the configuration and environment of this daemon, topic by topic."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailcheck.checks.dns_answers import Answers, DnsAnswer
from mailcheck.checks.dnsbl.health import HealthStatus, ZoneHealth
from mailcheck.checks.findings import Finding, Severity, worst
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.hosts.own_zone import OwnZone, evaluate_own_zone
from mailcheck.checks.proofs import Outcome, Proofs
from mailcheck.core.domains.report_mailboxes import MailboxState, ReportMailbox
from mailcheck.operations.backups import HOUR, Backup, is_overdue
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.dns_evaluation import DnsEvaluator
from mailcheck.operations.verify_fixes import verify_fixes
from mailcheck.ports.probes import OutboundPort

DEADLINE = 20.0
"""Seconds for one examination. The self-test of all blocklists takes some of them."""


class Advice(Struct, frozen=True):
    """Findings with the records that are verified to fix them."""

    findings: tuple[Finding, ...]
    proofs: Proofs


Examine = Callable[[], Awaitable[Iterable[Finding] | Advice]]


class Health(Enum):
    """The health of a topic."""

    FINE = "fine"
    PROBLEM = "problem"
    UNKNOWN = "unknown"
    """Could not be determined."""


class Examination(Struct, frozen=True):
    """The findings about one topic, such as ``disk``. No findings mean that all is well."""

    topic: str
    findings: tuple[Finding, ...]
    proofs: Proofs = field(default_factory=dict)

    @property
    def health(self) -> Health:
        """The health according to the most severe finding."""
        gravest = worst(self.findings)
        if gravest is None or gravest.severity is Severity.NOTE:
            return Health.FINE
        is_unknown = gravest.severity is Severity.UNDETERMINED
        return Health.UNKNOWN if is_unknown else Health.PROBLEM


class Doctor(Struct, frozen=True, eq=False):
    """Examines all topics concurrently, each within `DEADLINE`.

    A failing examination is reported as undetermined.

    :param examiners: by topic, in the order of the output.
    """

    examiners: Mapping[str, Examine]
    clock: IReactorTime

    _log = Logger()

    async def examine(self) -> tuple[Examination, ...]:
        """Examine all topics."""
        return tuple(
            await run_all(
                *(self._examine(topic, examine) for topic, examine in self.examiners.items())
            )
        )

    async def _examine(self, topic: str, examiner: Examine) -> Examination:
        async def examine() -> Iterable[Finding] | Advice:
            return await examiner()

        running = Deferred.fromCoroutine(examine())
        try:
            found = await running.addTimeout(DEADLINE, self.clock)
            if isinstance(found, Advice):
                return Examination(topic, found.findings, found.proofs)
            return Examination(topic, tuple(found))
        except DeferredTimeout:
            why = undetermined_finding(topic, "timeout", seconds=DEADLINE)
        except Exception:
            self._log.failure("the examination of {topic} failed", topic=topic)
            why = undetermined_finding(topic, "failed")
        return Examination(topic, (why,))


def undetermined_finding(topic: str, case: str, **places: Any) -> Finding:
    """Return the finding that a topic could not be examined, and why."""
    return make_finding(f"doctor.{topic}.undetermined", case=case, **places)


def judge_root(root: DnsAnswer) -> list[Finding]:
    """Judge what the resolver answers about the name servers of the root zone."""
    if not root.status.is_determined:
        return [undetermined_finding("resolver", "silent")]
    return [] if root.records else [make_finding("doctor.resolver.closed")]


async def examine_own_zone(zone: OwnZone, evaluator: DnsEvaluator) -> Advice:
    """Compare the own DNS records with the expected ones, and verify the advice."""

    def judge(answers: Answers) -> Outcome:
        return Outcome(evaluate_own_zone(zone, answers), 0)

    found = await evaluator.evaluate(judge)
    return Advice(found.findings, await verify_fixes(found, judge, evaluator))


def judge_silent_spamd(option: str, *, is_installed: bool, has_rspamd: bool) -> list[Finding]:
    """Judge that no spamd answers, or none is asked (``off``). rspamd is enough without one."""
    if option not in ("auto", "off"):
        return [make_finding("doctor.spamd.silent", option=option)]
    if has_rspamd or (option == "auto" and is_installed):
        return []
    return [make_finding("doctor.spamd.off" if option == "off" else "doctor.spamd.missing")]


def judge_outbound_port(found: OutboundPort) -> list[Finding]:
    """Judge whether connections to port 25 leave this network."""
    if found is OutboundPort.OPEN:
        return []
    if found is OutboundPort.UNKNOWN:
        return [undetermined_finding("port-out", "unknown")]
    return [make_finding("doctor.port-out.blocked")]


def judge_blocklists(asked: Mapping[str, Sequence[ZoneHealth]]) -> list[Finding]:
    """Judge the self-tests of blocklists, by their names."""

    def with_status(status: HealthStatus) -> list[str]:
        return [name for name, found in asked.items() if any(h.status is status for h in found)]

    if asked and len(with_status(HealthStatus.UNREACHABLE)) == len(asked):
        return [undetermined_finding("blocklists", "silent")]
    sick = with_status(HealthStatus.UNHEALTHY)
    if len(sick) > len(asked) // 4:
        names = ", ".join(sorted(sick)[:5])
        return [
            make_finding(
                "doctor.blocklists.refused", count=len(sick), asked=len(asked), names=names
            )
        ]
    return []


def judge_mailboxes(
    mailboxes: Sequence[ReportMailbox], states: Mapping[str, MailboxState]
) -> list[Finding]:
    """Judge what daemons have recorded about the mailboxes that reports are fetched from."""
    found = []
    for mailbox in mailboxes:
        state = states.get(mailbox.id)
        if state is not None and state.problem:
            problem = state.problem
            found.append(
                make_finding("doctor.mailboxes.failing", mailbox=mailbox.name, problem=problem)
            )
        elif state is None or state.succeeded_at is None:
            found.append(make_finding("doctor.mailboxes.new", mailbox=mailbox.name))
    return found


def judge_backup(newest: Backup | None, folder: Path, every: float, now: float) -> list[Finding]:
    """Judge the newest backup in a folder; there should be one ``every`` hours."""
    if newest is None:
        return [make_finding("doctor.backup.missing", every=every, folder=folder)]
    if is_overdue(newest, every, now):
        hours = (now - newest.made_at) / HOUR
        return [make_finding("doctor.backup.old", path=newest.path, hours=hours, every=every)]
    return []
