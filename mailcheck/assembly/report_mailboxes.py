"""Builds the fetching of reports from the mailboxes of the configuration."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool

from mailcheck.assembly.runtime import Runtime
from mailcheck.checks.receiver_reports.importing import ReportFile
from mailcheck.config.options import Config
from mailcheck.config.rules import parse_relay
from mailcheck.core.domains.receiver_reports import ReportWay
from mailcheck.core.domains.report_mailboxes import ReportMailbox, Then, Tls, TokenGrant
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, MINUTE, SECOND
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.inbox.open_inbox import find_owner
from mailcheck.operations.reports.fetch_reports import (
    LOOK_INTERVAL,
    AccessTokens,
    FetchReports,
    ImportedMail,
)
from mailcheck.operations.reports.import_reports import ImportOutcome, ImportReports
from mailcheck.ports.identity_provider import JsonObject
from mailcheck.ports.report_mailboxes import MailboxOpener
from mailcheck.ports.workers import Result
from mailcheck.probes.trust import FindTrust, find_trust_roots
from mailcheck.store.domains.report_mailbox_store import ReportMailboxStore

FORGETTING_INTERVAL = DAY / SECOND
"""Seconds between deletions of the states of mailboxes that no daemon reads."""


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


def build_fetching(
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
    return FetchReports(
        store,
        report_mailboxes(runtime.config),
        _opener(runtime),
        AccessTokens(_TokenEndpoint(runtime), store, runtime.clock),
        import_mails,
        find_account,
        holder=runtime.holder,
        clock_and_randomness=runtime.clock_and_randomness,
    )


def fetching_services(runtime: Runtime, fetching: FetchReports) -> list[Service]:
    """Return the services that fetch reports."""
    store = ReportMailboxStore(runtime.engine)

    async def forget() -> None:
        await store.forget(runtime.now())

    return [
        LeasedWorkService(fetching),
        PeriodicService("looking for mailboxes", LOOK_INTERVAL, fetching.poll, runtime.clock),
        PeriodicService("forgetting mailboxes", FORGETTING_INTERVAL, forget, runtime.clock),
    ]


def _find_trust(runtime: Runtime) -> FindTrust:
    return lambda: find_trust_roots(runtime.config.probes.ca_file)


class _TokenEndpoint:
    """Sends forms to token endpoints. It is built with the first form."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def post(self, url: str, form: Any, user: tuple[str, str] | None) -> Deferred[JsonObject]:
        """Send a form, as defined by `TokenEndpoint`."""
        from mailcheck.probes.identity_provider import HttpIdentityProvider

        runtime = self._runtime
        return HttpIdentityProvider(runtime.reactor, _find_trust(runtime)).post(url, form, user)


class _Threads:
    """Runs what may block in the threads of the reactor."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call, as defined by `Worker`."""
        pool = self._reactor.getThreadPool()
        return cast("Deferred[Result]", deferToThreadPool(self._reactor, pool, call))

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
