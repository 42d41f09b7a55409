"""Builds the reports of receivers: their operations and their processing."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from msgspec import Struct
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool

from mailcheck.assembly.accounts import AccountParts
from mailcheck.assembly.checks import Checks
from mailcheck.assembly.cluster import share_work
from mailcheck.assembly.deployment import own_domains, public_url
from mailcheck.assembly.runtime import Runtime
from mailcheck.assembly.scoring import scoring_settings
from mailcheck.checks.receiver_reports.importing import ReportFile
from mailcheck.config.options import Config, InboxOptions
from mailcheck.config.rules import parse_relay
from mailcheck.core.domains.receiver_reports import ReportWay
from mailcheck.core.domains.report_mailboxes import ReportMailbox, Then, Tls, TokenGrant
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, MINUTE, SECOND
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.retention import ReportRetention, retention_service
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.inbox.open_inbox import find_owner
from mailcheck.operations.reports.all_operations import ReportOperations
from mailcheck.operations.reports.decide_senders import DecideSenders
from mailcheck.operations.reports.fetch_reports import LOOK_INTERVAL as MAILBOX_LOOK
from mailcheck.operations.reports.fetch_reports import (
    AccessTokens,
    FetchReports,
    ImportedMail,
)
from mailcheck.operations.reports.find_failing_senders import FindFailingSenders
from mailcheck.operations.reports.import_reports import ImportOutcome, ImportReports
from mailcheck.operations.reports.ingest_reports import IngestReports
from mailcheck.operations.reports.offer_records import OfferRecords
from mailcheck.operations.reports.plan_policy import PlanPolicy, ReportedMail
from mailcheck.operations.reports.receive_reports import PostReport, ReceiveReports, ReportAddresses
from mailcheck.operations.reports.show_reports import DeleteReports, ShowReports
from mailcheck.operations.reports.summarize_senders import SummarizeSenders
from mailcheck.ports.identity_provider import JsonObject
from mailcheck.ports.report_mailboxes import MailboxOpener
from mailcheck.ports.workers import Result
from mailcheck.probes.trust import FindTrust, find_trust_roots
from mailcheck.store.domains.report_mailbox_store import ReportMailboxStore
from mailcheck.store.domains.report_store import ReportStore
from mailcheck.store.domains.sender_store import SenderStore
from mailcheck.store.mail_store import MailStore

LOOK_INTERVAL = 30.0
"""Seconds between checks without a notification. Postponed reports wait ten minutes anyway."""

FORGETTING_INTERVAL = 600.0
"""Seconds between rounds of deletion. A retention of 400 days needs no precise time."""


MAILBOX_INTERVAL = DAY / SECOND
"""Seconds between deletions of the states of mailboxes that no daemon reads."""


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
    config, workers, clocks = runtime.config, runtime.workers, runtime.clocks
    plain, addresses = runtime.resolvers.plain, _addresses(config)
    store = ReportStore(runtime.engine)
    runner = IngestReports(
        store,
        addresses,
        plain,
        workers.large,
        workers.analysis,
        settings=scoring_settings(config),
        keeps_mail=config.reports.keep_mail,
        holder=runtime.holder,
        clocks=clocks,
    )
    look = share_work(runtime.cluster, "waiting reports", runner.wake)
    senders = SummarizeSenders(workers.analysis, plain, checks.blocklists, clocks)
    decide = DecideSenders(SenderStore(runtime.engine), runtime.now)
    show = ShowReports(store, inboxes, senders, addresses, decide, now=runtime.now)
    offer = OfferRecords(plain, runtime.clock)
    importing = ImportReports(store, workers.imports, clocks, keeps_mail=config.reports.keep_mail)
    reported = ReportedMail(store, senders, decide, workers.analysis)
    operations = ReportOperations(
        show,
        PostReport(inboxes, store, accounts.meter, look, clocks),
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
            clocks=clocks,
        ),
        importing=importing,
    )
    mail = ReceiveReports(inboxes, look, own_domains(config))
    failing = FindFailingSenders(reported, runtime.now)
    fetching = _build_fetching(runtime, accounts.keep, operations.importing)
    return ReportParts(store, runner, mail, fetching, failing, operations=operations)


def report_services(runtime: Runtime, reports: ReportParts) -> list[Service]:
    """Return the services that process reports, and that delete old ones."""
    clock, retention = runtime.clock, ReportRetention(reports.store, runtime.now)
    return [
        LeasedWorkService(reports.runner),
        *_fetching_services(runtime, reports.fetching),
        PeriodicService("looking for reports", LOOK_INTERVAL, reports.runner.poll, clock),
        retention_service("retention of reports", FORGETTING_INTERVAL, retention.sweep, clock),
    ]


def _addresses(config: Config) -> ReportAddresses:
    domains = (name.lower() for name in (config.inbox.domain, *config.inbox.aliases))
    # Only local programs can reach this daemon at the example domain.
    is_offered = config.inbox.domain != InboxOptions().domain
    return ReportAddresses(tuple(dict.fromkeys(domains)), public_url(config), is_offered)


def report_mailboxes(config: Config) -> tuple[ReportMailbox, ...]:
    """Return the mailboxes of a configuration, which is valid."""
    return tuple(
        ReportMailbox(
            account_name=options.account,
            host=host,
            port=port,
            tls=Tls(options.tls),
            user=options.user,
            password=options.password,
            grant=TokenGrant(
                options.token_url,
                options.client_id,
                options.client_secret,
                options.refresh_token,
                options.scope,
            )
            if options.token_url
            else None,
            folder=options.folder,
            maildir=options.maildir,
            then=Then(options.then),
            move_to=options.move_to,
            interval=options.every_minutes * MINUTE,
        )
        for options in config.reports.mailboxes
        for host, port in [parse_relay(options.imap) if options.imap else ("", 0)]
    )


def _build_fetching(
    runtime: Runtime, accounts: ManageAccounts, importing: ImportReports
) -> FetchReports:
    """Build the fetching of reports."""

    async def import_mails(account_id: AccountId, mails: Sequence[bytes]) -> Sequence[ImportedMail]:
        # The names of the reports in a mail begin with the name of the mail.
        files = [ReportFile(f"{number:04}", mail) for number, mail in enumerate(mails)]
        outcomes = [(False, 0)] * len(mails)
        for found in await importing.import_reports(account_id, files, ReportWay.FETCHED):
            if found.outcome is not ImportOutcome.REJECTED:
                number = int(found.name[:4])
                new = outcomes[number][1] + (found.outcome is ImportOutcome.NEW)
                outcomes[number] = (True, new)
        return [ImportedMail(*outcome) for outcome in outcomes]

    async def find_account(name: str) -> AccountId | None:
        account = await find_owner(accounts, name)
        return None if account is None else account.id

    store = ReportMailboxStore(runtime.engine)
    fetching = FetchReports(
        store=store,
        open_mailbox=_opener(runtime),
        tokens=AccessTokens(_TokenEndpoint(runtime), store, runtime.clock),
        import_mails=import_mails,
        find_account=find_account,
        holder=runtime.holder,
        clocks=runtime.clocks,
    )
    fetching.change(report_mailboxes(runtime.config))
    return fetching


def _fetching_services(runtime: Runtime, fetching: FetchReports) -> list[Service]:
    """Return the services that fetch reports."""
    store = ReportMailboxStore(runtime.engine)

    async def forget() -> None:
        await store.forget(runtime.now())

    return [
        LeasedWorkService(fetching),
        PeriodicService("looking for mailboxes", MAILBOX_LOOK, fetching.poll, runtime.clock),
        PeriodicService("forgetting mailboxes", MAILBOX_INTERVAL, forget, runtime.clock),
    ]


def _find_trust(runtime: Runtime) -> FindTrust:
    return lambda: find_trust_roots(runtime.config.probes.ca_file)


class _TokenEndpoint(Struct, frozen=True, eq=False):
    """Sends forms to token endpoints. It is built with the first form."""

    runtime: Runtime

    def post(self, url: str, form: Any, user: tuple[str, str] | None) -> Deferred[JsonObject]:
        """Send a form, as defined by `TokenEndpoint`."""
        from mailcheck.probes.identity_provider import HttpIdentityProvider

        runtime = self.runtime
        return HttpIdentityProvider(runtime.reactor, _find_trust(runtime)).post(url, form, user)


class _Threads(Struct, frozen=True, eq=False):
    """Runs what may block in the threads of the reactor."""

    reactor: Any

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call, as defined by `Worker`."""
        pool = self.reactor.getThreadPool()
        return cast("Deferred[Result]", deferToThreadPool(self.reactor, pool, call))

    def start(self) -> None:
        """There is nothing to start."""

    def stop(self) -> None:
        """There is nothing to stop."""


def _opener(runtime: Runtime) -> Callable[[ReportMailbox], MailboxOpener]:
    """Return what opens mailboxes. Their modules are imported with the first one."""

    def of(mailbox: ReportMailbox) -> MailboxOpener:
        if mailbox.maildir:
            from mailcheck.probes.maildir_mailbox import MaildirMailbox

            return MaildirMailbox(mailbox, _Threads(runtime.reactor))
        from mailcheck.probes.imap_mailbox import ImapMailbox, way_to

        find_way = partial(way_to, mailbox, runtime.reactor, _find_trust(runtime))
        return ImapMailbox(mailbox, find_way, runtime.clock, runtime.now)

    return of
