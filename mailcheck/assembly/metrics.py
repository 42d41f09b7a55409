"""All metrics: names, descriptions and sources. The names are part of the public contract."""

import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version

from mailcheck.assembly.checks import Checks
from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.workers import Workers
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.instants import SECOND
from mailcheck.core.memory.instruments import (
    Conditions,
    Distribution,
    Kind,
    Labels,
    Metric,
    RedisFigures,
    Tally,
)
from mailcheck.core.version import installed_version
from mailcheck.daemon.backups import Backups
from mailcheck.engines.database import DatabaseEngine
from mailcheck.operations.deliverability.run_test_checks import RunTestChecks
from mailcheck.operations.deliverability.wait_for_test import DeliverabilityFeeds
from mailcheck.operations.digests.send_digests import SendDigests
from mailcheck.operations.domains.watches.run_watches import RunWatches
from mailcheck.operations.domains.watches.send_alerts import SendAlerts
from mailcheck.operations.inbox.feeds import InboxFeeds
from mailcheck.operations.inbox.wait_for_message import WaitForMessage
from mailcheck.operations.inbox.webhooks.deliver_webhooks import DeliverWebhooks
from mailcheck.operations.reports.fetch_reports import FetchReports
from mailcheck.operations.traffic.score_traffic import ScoreTraffic
from mailcheck.ops.journal import LoginJournal, MailJournal
from mailcheck.ops.log import LogWriter
from mailcheck.ops.store_figures import StoreLook
from mailcheck.store.figures import StoreFigures
from mailcheck.web.site.server import BoundedSite

PREFIX = "mailcheck_"

Values = Mapping[Labels, float | Distribution]
Read = Callable[[], Values]

ALONE: Labels = ()
"""The labels of a metric without labels."""


def counter(name: str, text: str, labels: Labels, source: Tally | Read) -> Metric:
    """Return a counter."""
    read = (lambda: {**source.counts}) if isinstance(source, Tally) else source
    return Metric(PREFIX + name, text, Kind.COUNTER, labels, read)


def gauge(name: str, text: str, labels: Labels, read: Read) -> Metric:
    """Return a gauge."""
    return Metric(PREFIX + name, text, Kind.GAUGE, labels, read)


def distribution(name: str, text: str, labels: Labels, read: Read) -> Metric:
    """Return a histogram."""
    return Metric(PREFIX + name, text, Kind.DISTRIBUTION, labels, read)


def list_metrics(
    daemon: Daemon,
    site: BoundedSite,
    connections: Read,
    certificate_expiry: Callable[[], float | None],
    log: LogWriter | None,
) -> list[Metric]:
    """Return all metrics of a daemon. Other daemons on the same store have their own."""
    runtime = daemon.runtime
    return [
        *mail_metrics(daemon.journals, connections),
        *login_metrics(daemon.logins),
        *wait_metrics(daemon.inbox.wait, daemon.mail.feeds, daemon.tests.feeds),
        *webhook_metrics(daemon.webhooks.deliver),
        *watch_metrics(daemon.watches.runner, daemon.watches.send_alerts),
        *mail_of_reports_metrics(daemon.reports.fetching, daemon.digests.send),
        *check_metrics(daemon.checks, daemon.tests.runner),
        *filter_metrics(runtime.filters.outcomes),
        *traffic_metrics(daemon.traffic.score),
        *store_metrics(runtime.engine, runtime.workers),
        *figure_metrics(daemon.figures),
        *redis_metrics(runtime.redis_figures),
        *web_metrics(site, runtime.clients.failed_access),
        counter(
            "oauth_requests",
            "Requests to the authorization server: done, or refused with the error of OAuth. A "
            "request to authorize is counted when the person has decided.",
            ("endpoint", "outcome"),
            daemon.accounts.oauth_outcomes,
        ),
        *backup_metrics(daemon.backups),
        *state_metrics(runtime.conditions, certificate_expiry, log),
    ]


def by_name(tallies: Mapping[str, Tally]) -> Values:
    """Return the counts of several tallies, with the name of the tally as the first label."""
    return {
        (name, *labels): count
        for name, tally in tallies.items()
        for labels, count in tally.counts.items()
    }


def mail_metrics(journals: Mapping[str, MailJournal], connections: Read) -> list[Metric]:
    """Return the metrics of received mail. ``journals`` are keyed by the names of ports."""
    return [
        counter(
            "mail_replies",
            "Accepted mails (command DATA, reply 250) and all 4xx and 5xx replies. The reason is "
            "the enhanced status code of the reply (RFC 3463).",
            ("port", "command", "reply", "reason"),
            lambda: by_name({port: journal.replies for port, journal in journals.items()}),
        ),
        gauge("connections", "Open connections, by port.", ("port",), connections),
    ]


def login_metrics(journals: Mapping[str, LoginJournal]) -> list[Metric]:
    """Return the metrics of mail programs. ``journals`` are keyed by the names of ports."""
    return [
        counter(
            "logins",
            "Logins of mail programs over IMAP and POP3: succeeded or failed.",
            ("port", "outcome"),
            lambda: by_name({port: journal.logins for port, journal in journals.items()}),
        ),
        counter(
            "messages_fetched",
            "Whole messages that mail programs have fetched over IMAP and POP3.",
            ("port",),
            lambda: {(port,): journal.fetched for port, journal in journals.items()},
        ),
    ]


def wait_metrics(
    wait: WaitForMessage, inboxes: InboxFeeds, tests: DeliverabilityFeeds
) -> list[Metric]:
    """Return the metrics of waits."""
    return [
        gauge(
            "waits_parked",
            "Waits in progress, for mail to an inbox or for the result of a test.",
            ("kind",),
            lambda: {("inbox",): inboxes.count(), ("test",): tests.count()},
        ),
        counter(
            "waits",
            "Waits for mail that have ended: mail was found at once, a new mail ended the wait "
            "(woken), a mail was rejected (refused), or the wait timed out.",
            ("outcome",),
            wait.outcomes,
        ),
        distribution(
            "wake_up_seconds",
            "Seconds from the last octet of a mail until a wait returns it, including the "
            "extraction of codes and links.",
            ALONE,
            lambda: {ALONE: wait.wake_up_seconds},
        ),
    ]


def webhook_metrics(deliver: DeliverWebhooks) -> list[Metric]:
    """Return the metrics of webhooks. Only one of several daemons makes deliveries."""

    def by_state() -> Values:
        found: dict[tuple[str, ...], float] = {}
        for state in deliver.states():
            found[state.value,] = found.get((state.value,), 0) + 1
        return found

    return [
        counter(
            "webhook_deliveries",
            "Delivery attempts of webhooks: succeeded (told) or failed.",
            ("outcome",),
            deliver.outcomes,
        ),
        gauge(
            "webhooks",
            "Webhooks for which this daemon makes deliveries, by state.",
            ("state",),
            by_state,
        ),
    ]


def watch_metrics(runner: RunWatches, send_alerts: SendAlerts) -> list[Metric]:
    """Return the metrics of watches that this daemon has run."""
    return [
        counter(
            "watch_runs",
            "Runs of watches: changed, unchanged, or failed with an internal error.",
            ("outcome",),
            runner.outcomes,
        ),
        gauge(
            "watch_runs_under_way", "Runs of watches in progress.", (), lambda: {(): runner.count()}
        ),
        counter(
            "watch_alert_mails",
            "Alert mails to inboxes: delivered (told) or postponed (put off), for example because "
            "the inbox is full.",
            ("outcome",),
            send_alerts.outcomes,
        ),
    ]


def mail_of_reports_metrics(fetching: FetchReports, digests: SendDigests) -> list[Metric]:
    """Return the metrics of mailboxes that this daemon has read, and of digests."""
    return [
        counter(
            "report_mailbox_reads",
            "Attempts to read a mailbox with reports: read, or failed.",
            ("outcome",),
            fetching.outcomes,
        ),
        counter(
            "digests",
            "Digests by mail: sent (told), or postponed for a receiver (put off).",
            ("outcome",),
            digests.outcomes,
        ),
    ]


def check_metrics(checks: Checks, runner: RunTestChecks) -> list[Metric]:
    """Return the metrics of checks."""

    def health() -> Values:
        return {
            (blocklist.zone, health.kind.value, health.status.value): 1
            for blocklist in checks.catalogue.blocklists
            for health in checks.health.of(blocklist)
        }

    outcomes = {
        "mx": checks.mx.outcomes,
        "reputation": checks.reputation.outcomes,
        "domain": checks.domain.outcomes,
    }
    return [
        counter(
            "checks",
            "Completed domain checks, and whether they were fully determined.",
            ("check", "outcome"),
            lambda: by_name(outcomes),
        ),
        counter(
            "blocklist_answers",
            "Answers of blocklists. A list that did not answer or is not trusted is unknown.",
            ("status",),
            checks.lists.answers,
        ),
        gauge(
            "blocklist_health",
            "1 for the result of the last self-test of a blocklist, by kind of target.",
            ("zone", "kind", "status"),
            health,
        ),
        counter(
            "analyses",
            "Analyses of deliverability test mails: completed or failed.",
            ("outcome",),
            runner.outcomes,
        ),
    ]


def filter_metrics(outcomes: Mapping[str, Tally]) -> list[Metric]:
    """Return the metrics of content filters. ``outcomes`` are keyed by the names of engines."""
    return [
        counter(
            "content_filter",
            "Mails for a content filter: judged, or the reason why there was no verdict.",
            ("filter", "outcome"),
            lambda: by_name(outcomes),
        )
    ]


def traffic_metrics(traffic: ScoreTraffic) -> list[Metric]:
    """Return the metrics of the milter endpoint."""
    return [
        counter(
            "milter_mails",
            "Mails at the milter endpoint: scored, or why they passed without (authenticated, "
            "not-sampled, full, too-large, stopped, failed). All of them are delivered.",
            ("outcome",),
            traffic.outcomes,
        ),
        gauge(
            "milter_queue",
            "Copies of mails that wait to be scored.",
            ALONE,
            lambda: {ALONE: traffic.waiting},
        ),
    ]


def store_metrics(engine: DatabaseEngine, workers: Workers) -> list[Metric]:
    """Return the metrics of the store, and of the daemon's processes and threads."""

    def free_bytes() -> Values:
        try:
            free = engine.free_bytes()
        except StoreUnavailable:
            return {}
        return {} if free is None else {ALONE: free}

    measured = workers.measured
    return [
        distribution(
            "commit_group_size",
            "Number of writes in a commit.",
            ALONE,
            lambda: {ALONE: engine.group_sizes},
        ),
        gauge("storage_free_bytes", "Free bytes on the disk of the store.", ALONE, free_bytes),
        distribution(
            "worker_seconds",
            "Seconds from a call to a worker process or thread until its result. A call to the "
            "writer is a commit.",
            ("worker",),
            lambda: {(name,): worker.seconds for name, worker in measured.items()},
        ),
        gauge(
            "worker_queue",
            "Calls to a worker process or thread that have no result yet.",
            ("worker",),
            lambda: {(name,): worker.under_way for name, worker in measured.items()},
        ),
    ]


def figure_metrics(look: StoreLook) -> list[Metric]:
    """Return the metrics of the store's content, which are read once a minute."""

    def of(read: Callable[[StoreFigures], float | None]) -> Read:
        def values() -> Values:
            found = None if look.figures is None else read(look.figures)
            return {} if found is None else {ALONE: found}

        return values

    return [
        gauge(
            "storage_bytes",
            "Bytes of the database on its disk.",
            ALONE,
            lambda: {} if look.size is None else {ALONE: look.size},
        ),
        gauge("messages", "Messages in all inboxes.", ALONE, of(lambda one: one.messages)),
        gauge(
            "message_bytes", "Bytes of raw mail in all inboxes.", ALONE, of(lambda one: one.octets)
        ),
        gauge("inboxes", "Inboxes.", ALONE, of(lambda one: one.inboxes)),
        gauge(
            "oldest_message_timestamp_seconds",
            "Time at which the oldest stored message was received, in seconds since 1970.",
            ALONE,
            of(lambda one: None if one.oldest is None else one.oldest / SECOND),
        ),
        gauge(
            "fullest_inbox_ratio",
            "Part of its quota that the fullest inbox uses, of messages or bytes: 1 is full.",
            ALONE,
            of(lambda one: one.fullest),
        ),
    ]


def redis_metrics(figures: RedisFigures) -> list[Metric]:
    """Return the metrics of the shared Redis."""
    return [
        distribution(
            "redis_seconds",
            "Seconds from a command to the answer of Redis. A request with an API key needs one.",
            ALONE,
            lambda: {ALONE: figures.answers},
        ),
        counter(
            "redis_messages",
            "Notifications and heartbeats of daemons through Redis: sent by this daemon (told), or "
            "received, including its own (heard).",
            ("direction",),
            figures.messages,
        ),
    ]


def web_metrics(site: BoundedSite, failed_access: Tally) -> list[Metric]:
    """Return the metrics of HTTP and of failed authentication."""
    return [
        counter(
            "http_answers",
            "Answered HTTP requests, by route and status. Paths without a route are none.",
            ("route", "status"),
            site.answers,
        ),
        distribution(
            "http_seconds",
            "Seconds from a complete HTTP request to the end of its answer, by route. Waits and "
            "streams take as long as their clients want.",
            ("route",),
            lambda: {**site.seconds},
        ),
        counter(
            "failed_access",
            "Requests with a missing or wrong API key or OAuth secret, failed sign-ins, and failed "
            "logins of mail programs.",
            ("kind",),
            failed_access,
        ),
    ]


def _build() -> Values:
    return {(installed_version(), platform.python_version(), version("twisted")): 1}


def backup_metrics(backups: Backups) -> list[Metric]:
    """Return the metrics of scheduled backups, which are absent without a schedule."""

    def newest() -> Values:
        found = backups.newest
        return {} if found is None else {ALONE: found.made_at}

    return [
        gauge(
            "backup_timestamp_seconds",
            "Time at which the newest backup in [backup] folder began, in seconds since 1970.",
            ALONE,
            newest,
        ),
        gauge(
            "backup_interval_seconds",
            "Seconds between backups, from [backup] every.",
            ALONE,
            lambda: {ALONE: backups.every} if backups.every else {},
        ),
        counter(
            "backups",
            "Backups of this daemon: made (and checked) or failed.",
            ("outcome",),
            backups.outcomes,
        ),
    ]


def state_metrics(
    conditions: Conditions, certificate_expiry: Callable[[], float | None], log: LogWriter | None
) -> list[Metric]:
    """Return the metrics of the whole daemon."""

    def well() -> Values:
        found = conditions.problems.items()
        return {(subject,): float(not problem) for subject, problem in found}

    def expiry() -> Values:
        seconds = certificate_expiry()
        return {} if seconds is None else {ALONE: seconds}

    return [
        gauge(
            "well",
            "1 if a dependency of the daemon works, otherwise 0. The log has the cause.",
            ("subject",),
            well,
        ),
        counter(
            "log_problems",
            "Log lines with the level warn, error or critical.",
            ("level",),
            Tally() if log is None else log.problems,
        ),
        gauge(
            "certificate_expiry_timestamp_seconds",
            "Expiry time of the configured STARTTLS certificate, in seconds since 1970.",
            (),
            expiry,
        ),
        gauge(
            "build_info",
            "Always 1. The labels are the versions of mailcheck, Python and Twisted.",
            ("version", "python", "twisted"),
            _build,
        ),
    ]
