"""Builds all parts of a daemon process from a runtime, without starting anything."""

from collections.abc import Mapping

from msgspec import Struct

from mailcheck.assembly.accounts import AccountParts, build_accounts
from mailcheck.assembly.checks import Checks, build_checks
from mailcheck.assembly.deliverability import DeliverabilityParts, build_tests
from mailcheck.assembly.deployment import backup_plan
from mailcheck.assembly.inbox import (
    MailParts,
    build_inbox,
    build_mail,
    build_mailboxes,
    build_receiver,
    default_quota,
)
from mailcheck.assembly.reports import ReportParts, build_reports
from mailcheck.assembly.runtime import Runtime
from mailcheck.assembly.scoring import Scoring, build_scoring, scoring_settings
from mailcheck.assembly.traffic import TrafficParts, build_traffic
from mailcheck.assembly.watches import DigestParts, WatchParts, build_digests, build_watches
from mailcheck.assembly.webhooks import InboundParts, WebhookParts, build_inbound, build_webhooks
from mailcheck.core.instants import SECOND
from mailcheck.daemon.backups import Backups
from mailcheck.operations.deliverability.run_test_checks import Analyse
from mailcheck.operations.follow_account import FollowAccount
from mailcheck.operations.follow_audit import FollowAudit
from mailcheck.operations.inbox.all_operations import InboxOperations
from mailcheck.operations.inbox.mailboxes import Mailboxes
from mailcheck.operations.inbox.receive_mail import ReceiveMail
from mailcheck.operations.parked_waits import PAGES_OF_PERSON, WaitSlots
from mailcheck.ops.heartbeat import Heartbeat
from mailcheck.ops.journal import LoginJournal, MailJournal
from mailcheck.ops.store_figures import StoreLook
from mailcheck.smtp.transaction import MemoryBudget
from mailcheck.store.figures import FigureStore
from mailcheck.web.site.response_buffers import ResponseBuffers


class Daemon(Struct, frozen=True):
    """The parts of a daemon.

    ``journals`` of received mail and ``logins`` of mail programs are keyed by the names of ports.
    ``responses`` has what waits unread for clients of all HTTP doors together, and ``incoming``
    the mails that are being received on all ports.
    """

    runtime: Runtime
    checks: Checks
    accounts: AccountParts
    mail: MailParts
    scoring: Scoring
    tests: DeliverabilityParts
    webhooks: WebhookParts
    inbox: InboxOperations
    inbound: InboundParts
    reports: ReportParts
    traffic: TrafficParts
    receiver: ReceiveMail
    watches: WatchParts
    digests: DigestParts
    follow: FollowAccount
    slots: WaitSlots
    follow_audit: FollowAudit
    heartbeat: Heartbeat
    journals: Mapping[str, MailJournal]
    mailboxes: Mailboxes
    logins: Mapping[str, LoginJournal]
    responses: ResponseBuffers
    incoming: MemoryBudget
    figures: StoreLook
    backups: Backups


def build_daemon(runtime: Runtime, analyse: Analyse | None = None) -> Daemon:
    """Build the parts of a daemon.

    :param analyse: used instead of the normal analysis of mails sent to deliverability tests.
    """
    workers, per_key = runtime.workers, runtime.config.limits.waits_per_key
    checks = build_checks(runtime)
    accounts = build_accounts(runtime)
    mail = build_mail(runtime, checks.selectors.learn)
    scoring = build_scoring(
        runtime,
        checks,
        workers.analysis,
        runtime.filters,
        scoring_settings(runtime.config),
    )
    slots = WaitSlots(
        runtime.cluster.semaphore("waits", per_key),
        runtime.cluster.semaphore("live pages", PAGES_OF_PERSON),
        accounts.ended_access,
        runtime.clock,
    )
    tests = build_tests(runtime, scoring, slots, analyse or scoring.analyse)
    webhooks = build_webhooks(runtime, mail, accounts.audit)
    inbox = build_inbox(runtime, mail, accounts, slots, scoring.known, webhooks=webhooks.keep)
    inbound = build_inbound(runtime, mail, inbox.authenticate, slots, accounts.audit)
    reports = build_reports(runtime, mail.store, accounts, checks)
    receiver = build_receiver(runtime, mail, accounts.log_in, tests, reports)
    watches = build_watches(
        runtime,
        checks,
        receiver,
        webhooks.receivers,
        reports.failing.topics,
        scoring.score,
        mail.store,
    )
    heartbeat = Heartbeat(
        runtime.conditions, runtime.engine, workers.needed, runtime.reactor, workers.patient
    )
    journals = {name: MailJournal(name, runtime.pace) for name in ("mail", "submission", "open")}
    return Daemon(
        runtime=runtime,
        checks=checks,
        accounts=accounts,
        mail=mail,
        scoring=scoring,
        tests=tests,
        webhooks=webhooks,
        inbox=inbox,
        inbound=inbound,
        reports=reports,
        traffic=build_traffic(runtime, accounts.keep),
        receiver=receiver,
        watches=watches,
        digests=build_digests(runtime, watches, reports, receiver),
        follow=build_follow(runtime, mail, tests, watches, inbound, slots=slots),
        slots=slots,
        follow_audit=FollowAudit(
            accounts.audit_store, accounts.audit_changes, slots, runtime.clock
        ),
        heartbeat=heartbeat,
        journals=journals,
        mailboxes=build_mailboxes(runtime, mail, receiver),
        logins={name: LoginJournal(name, runtime.clients) for name in ("IMAP", "POP3")},
        responses=ResponseBuffers(runtime.memory.responses, runtime.memory.responses_of_client),
        incoming=MemoryBudget(runtime.memory.incoming),
        figures=StoreLook(
            FigureStore(runtime.engine),
            runtime.engine.store_bytes,
            lambda: default_quota(runtime.config),
        ),
        backups=Backups(
            lambda: backup_plan(runtime.config),
            runtime.conditions,
            lambda: runtime.now() / SECOND,
            runtime.reactor,
        ),
    )


def build_follow(
    runtime: Runtime,
    mail: MailParts,
    tests: DeliverabilityParts,
    watches: WatchParts,
    inbound: InboundParts,
    slots: WaitSlots,
) -> FollowAccount:
    """Build the hints for open pages."""
    follow = FollowAccount(tests.operations.manage.owner, slots, runtime.clock)
    mail.notifications.listen(follow.on_change)
    mail.removals.listen(follow.on_change)
    tests.notifications.listen(follow.on_test)
    watches.changed.listen(follow.on_change)
    inbound.attempted.listen(follow.on_change)
    runtime.cluster.when_hints_are_lost(follow.check_all)
    return follow
