"""Builds watches: their owners' operations, and the services that run them."""

from msgspec import Struct
from twisted.application.service import Service
from twisted.internet.defer import Deferred

from mailcheck.assembly.checks import Checks
from mailcheck.assembly.cluster import share_work
from mailcheck.assembly.deployment import alerts_from
from mailcheck.assembly.reports import ReportParts
from mailcheck.assembly.runtime import Runtime
from mailcheck.core.identifiers import AccountId
from mailcheck.core.webhooks import MAILTO, Attempt
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.retention import WATCHES_INTERVAL, WatchRetention, retention_service
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.digests.manage_digest import ManageDigest
from mailcheck.operations.digests.send_digests import LOOK_INTERVAL as DIGEST_INTERVAL
from mailcheck.operations.digests.send_digests import SendDigests
from mailcheck.operations.domains.watches.manage_heartbeats import ManageHeartbeats
from mailcheck.operations.domains.watches.manage_watches import AlertReceivers, ManageWatches
from mailcheck.operations.domains.watches.run_heartbeats import RunHeartbeats, ScoreBeat
from mailcheck.operations.domains.watches.run_watches import (
    LOOK_INTERVAL,
    ReportedTopics,
    RunWatches,
)
from mailcheck.operations.domains.watches.send_alerts import TELL_INTERVAL, SendAlerts
from mailcheck.operations.inbox.receive_mail import ReceiveMail
from mailcheck.operations.inbox.send_sample import SendInternalMail
from mailcheck.ports.cluster import Notifications
from mailcheck.ports.probes import Post
from mailcheck.store.accounts.webhook_store import WebhookStore
from mailcheck.store.domains.digest_store import DigestStore
from mailcheck.store.domains.heartbeat_store import HeartbeatStore
from mailcheck.store.domains.watch_store import WatchStore
from mailcheck.store.mail_store import MailStore


class WatchParts(Struct, frozen=True):
    """The operations on watches. ``changed`` announces accounts whose watches were checked.

    ``beats`` evaluates heartbeats, and ``heartbeats`` are the operations of their owners.
    """

    store: WatchStore
    runner: RunWatches
    keep: ManageWatches
    send_alerts: SendAlerts
    changed: Notifications[AccountId]
    beats: RunHeartbeats
    heartbeats: ManageHeartbeats


class DigestParts(Struct, frozen=True):
    """The digests: sending them, and their settings."""

    send: SendDigests
    manage: ManageDigest


def build_watches(
    runtime: Runtime,
    checks: Checks,
    receiver: ReceiveMail,
    alerted: AlertReceivers,
    reported: ReportedTopics,
    score: ScoreBeat,
    inboxes: MailStore,
) -> WatchParts:
    """Build the operations on watches.

    :param receiver: receives mails with alerts to inboxes.
    :param alerted: knows the receivers of alerts.
    :param reported: returns the topics from reports.
    :param score: scores the mail of heartbeats.
    """
    config, clocks = runtime.config, runtime.clocks
    store = WatchStore(runtime.engine)
    changed: Notifications[AccountId] = runtime.cluster.notifications("watches")
    runner = RunWatches(
        store,
        checks.watched,
        reported,
        changed,
        holder=runtime.holder,
        clocks=clocks,
    )
    keep = ManageWatches(
        store,
        runner,
        alerted,
        share_work(runtime.cluster, "due watches", runner.wake),
        clocks,
        allow_special_use=config.dns.allow_special_use,
        allow_private=config.network.allow_private,
    )
    send = SendInternalMail(receiver, config.inbox.domain).send
    send_alerts = SendAlerts(store, send, runtime.persistent_state.memory, clocks)
    beat_store = HeartbeatStore(runtime.engine)
    beats = RunHeartbeats(beat_store, score, changed, holder=runtime.holder, clocks=clocks)
    heartbeats = ManageHeartbeats(
        beat_store,
        alerted,
        inboxes.find_account_inbox,
        config.inbox.domain,
        clocks,
        allow_special_use=config.dns.allow_special_use,
    )
    return WatchParts(store, runner, keep, send_alerts, changed, beats, heartbeats)


def build_digests(
    runtime: Runtime, watches: WatchParts, reports: ReportParts, receiver: ReceiveMail
) -> DigestParts:
    """Build the digests of accounts.

    :param receiver: receives digests to inboxes.
    """
    clocks, config = runtime.clocks, runtime.config
    store = DigestStore(runtime.engine)

    def send_mail(account_name: str, address: str, mail: bytes) -> Deferred[Attempt]:
        post = Post(f"{MAILTO}{address}", (), "", clocks.now(), mail)
        return runtime.receivers.line(account_name).post(post)

    send = SendDigests(
        store=store,
        watches=watches.store,
        heartbeats=watches.heartbeats,
        reports=reports.operations,
        send_to_inbox=SendInternalMail(receiver, config.inbox.domain).send,
        send_mail=send_mail,
        sender=alerts_from(config),
        pages=runtime.urls,
        memory=runtime.persistent_state.memory,
        clocks=clocks,
    )
    names = WebhookStore(runtime.engine).account_name
    return DigestParts(send, ManageDigest(store, runtime.receivers, names, runtime.now))


def digest_services(runtime: Runtime, digests: DigestParts) -> list[Service]:
    """Return the service that sends digests."""
    send = digests.send.send_due
    return [PeriodicService("sending digests", DIGEST_INTERVAL, send, runtime.clock)]


def watch_services(runtime: Runtime, watches: WatchParts) -> list[Service]:
    """Return the services that run watches, send alerts, and delete old histories."""
    clock, retention = runtime.clock, WatchRetention(watches.store, runtime.now)
    return [
        LeasedWorkService(watches.runner),
        # Stopped first, since a running round would start new runs.
        PeriodicService("looking for due watches", LOOK_INTERVAL, watches.runner.poll, clock),
        LeasedWorkService(watches.beats),
        PeriodicService("looking for due heartbeats", LOOK_INTERVAL, watches.beats.poll, clock),
        PeriodicService("telling alerts", TELL_INTERVAL, watches.send_alerts.send_pending, clock),
        retention_service("retention of watches", WATCHES_INTERVAL, retention.sweep, clock),
    ]
