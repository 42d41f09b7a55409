"""Builds the reports of receivers: their operations and their processing."""

from msgspec import Struct
from twisted.application.service import Service

from mailcheck.assembly.accounts import AccountParts
from mailcheck.assembly.checks import Checks
from mailcheck.assembly.cluster import share_work
from mailcheck.assembly.deployment import own_domains, public_url
from mailcheck.assembly.report_mailboxes import build_fetching, fetching_services
from mailcheck.assembly.runtime import Runtime
from mailcheck.assembly.scoring import scoring_settings
from mailcheck.config.options import Config, InboxOptions
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.retention import ReportRetention, retention_service
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.reports.all_operations import ReportOperations
from mailcheck.operations.reports.decide_senders import DecideSenders
from mailcheck.operations.reports.fetch_reports import FetchReports
from mailcheck.operations.reports.find_failing_senders import FindFailingSenders
from mailcheck.operations.reports.import_reports import ImportReports
from mailcheck.operations.reports.ingest_reports import IngestReports
from mailcheck.operations.reports.offer_records import OfferRecords
from mailcheck.operations.reports.plan_policy import PlanPolicy, ReportedMail
from mailcheck.operations.reports.receive_reports import PostReport, ReceiveReports, ReportAddresses
from mailcheck.operations.reports.show_reports import DeleteReports, ShowReports
from mailcheck.operations.reports.summarize_senders import SummarizeSenders
from mailcheck.store.domains.report_store import ReportStore
from mailcheck.store.domains.sender_store import SenderStore
from mailcheck.store.mail_store import MailStore

LOOK_INTERVAL = 30.0
"""Seconds between checks without a notification. Postponed reports wait ten minutes anyway."""

FORGETTING_INTERVAL = 600.0
"""Seconds between rounds of deletion. A retention of 400 days needs no precise time."""


class ReportParts(Struct, frozen=True):
    """The operations on reports. ``mail`` receives them, and watches use ``failing``."""

    store: ReportStore
    runner: IngestReports
    mail: ReceiveReports
    fetching: FetchReports
    failing: FindFailingSenders
    operations: ReportOperations


def build_reports(
    runtime: Runtime, inboxes: MailStore, accounts: AccountParts, checks: Checks
) -> ReportParts:
    """Build the operations on reports."""
    config, workers, clock_and_randomness = (
        runtime.config,
        runtime.workers,
        runtime.clock_and_randomness,
    )
    plain, addresses = runtime.resolvers.plain, _addresses(config)
    store = ReportStore(runtime.engine)
    runner = IngestReports(
        store,
        addresses,
        plain,
        workers.large,
        workers.analysis,
        settings=scoring_settings(config),
        holder=runtime.holder,
        clock_and_randomness=clock_and_randomness,
        keeps_mail=config.reports.keep_mail,
    )
    look = share_work(runtime.cluster, "waiting reports", runner.wake)
    senders = SummarizeSenders(workers.analysis, plain, checks.blocklists, clock_and_randomness)
    decide = DecideSenders(SenderStore(runtime.engine), runtime.now)
    show = ShowReports(store, inboxes, senders, addresses, decide, now=runtime.now)
    offer = OfferRecords(plain, runtime.clock)
    importing = ImportReports(
        store, workers.imports, clock_and_randomness, keeps_mail=config.reports.keep_mail
    )
    reported = ReportedMail(store, senders, decide, workers.analysis)
    operations = ReportOperations(
        show,
        PostReport(inboxes, store, accounts.meter, look, clock_and_randomness),
        offer,
        DeleteReports(store, runtime.now),
        decide,
        plan=PlanPolicy(
            store,
            show,
            senders,
            reported,
            offer,
            resolver=plain,
            clock_and_randomness=clock_and_randomness,
        ),
        importing=importing,
    )
    mail = ReceiveReports(inboxes, look, own_domains(config))
    failing = FindFailingSenders(reported, runtime.now)
    fetching = build_fetching(runtime, accounts.keep, operations.importing)
    return ReportParts(store, runner, mail, fetching, failing, operations=operations)


def report_services(runtime: Runtime, reports: ReportParts) -> list[Service]:
    """Return the services that process reports, and that delete old ones."""
    clock, retention = runtime.clock, ReportRetention(reports.store, runtime.now)
    return [
        LeasedWorkService(reports.runner),
        *fetching_services(runtime, reports.fetching),
        PeriodicService("looking for reports", LOOK_INTERVAL, reports.runner.poll, clock),
        retention_service("retention of reports", FORGETTING_INTERVAL, retention.sweep, clock),
    ]


def _addresses(config: Config) -> ReportAddresses:
    domains = (name.lower() for name in (config.inbox.domain, *config.inbox.aliases))
    # Only local programs can reach this daemon at the example domain.
    is_offered = config.inbox.domain != InboxOptions().domain
    return ReportAddresses(tuple(dict.fromkeys(domains)), public_url(config), is_offered)
