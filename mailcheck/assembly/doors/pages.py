"""Builds the dashboard."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.deployment import mail_server, submission_server
from mailcheck.assembly.doors.access import WebParts
from mailcheck.assembly.doors.oauth import oauth_settings
from mailcheck.cluster.local import LocalCluster
from mailcheck.core.inbound import InboundFormat, InboundRoute
from mailcheck.core.network_addresses import parse_listen_address
from mailcheck.operations.cached_values import CachedValues
from mailcheck.operations.deliverability.manage_tests import MailOfTest
from mailcheck.operations.doctor import Doctor
from mailcheck.operations.domains.show_domains import DomainSummary, ShowDomains
from mailcheck.operations.inbox.send_sample import SendSample
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.operations.inbox.webhooks.event_signatures import verification_key
from mailcheck.ops.watch import DISK
from mailcheck.web.api.calls import Route
from mailcheck.web.api.description import ApiDescription
from mailcheck.web.dashboard.access_control import PageAccess
from mailcheck.web.dashboard.accounts.company_pages import CompanyPages
from mailcheck.web.dashboard.accounts.confirm_pages import ConfirmPages
from mailcheck.web.dashboard.accounts.consent_pages import ConsentPages
from mailcheck.web.dashboard.accounts.doctor_pages import DoctorPages
from mailcheck.web.dashboard.accounts.key_pages import KeyPages
from mailcheck.web.dashboard.accounts.pages import AccountPages
from mailcheck.web.dashboard.accounts.passkey_pages import PasskeyPages
from mailcheck.web.dashboard.accounts.people_pages import PeoplePages
from mailcheck.web.dashboard.accounts.project_pages import ProjectPages
from mailcheck.web.dashboard.accounts.sign_in_pages import SignInPages
from mailcheck.web.dashboard.accounts.webhook_pages import WebhookPages
from mailcheck.web.dashboard.api_reference.pages import AnswerPages, ApiPages, can_be_tried
from mailcheck.web.dashboard.deliverability.history import ComparisonPages
from mailcheck.web.dashboard.deliverability.live import DeliverabilityLivePages
from mailcheck.web.dashboard.deliverability.pages import DeliverabilityPages
from mailcheck.web.dashboard.deliverability.preflight import PreflightPages
from mailcheck.web.dashboard.deliverability.report_mail import ReportMail
from mailcheck.web.dashboard.deliverability.report_pages import ReportFiles, ReportPages
from mailcheck.web.dashboard.domains.blocklist_pages import BlocklistPages
from mailcheck.web.dashboard.domains.digest_pages import DigestPages
from mailcheck.web.dashboard.domains.frame import DomainFrame
from mailcheck.web.dashboard.domains.heartbeat_pages import HeartbeatPages
from mailcheck.web.dashboard.domains.history_pages import HistoryPages
from mailcheck.web.dashboard.domains.old_pages import OldDomainPages
from mailcheck.web.dashboard.domains.pages import CheckDomain, DomainPages
from mailcheck.web.dashboard.domains.reports_pages import ReportsPages
from mailcheck.web.dashboard.domains.traffic_pages import TrafficPages
from mailcheck.web.dashboard.domains.view import NameRules
from mailcheck.web.dashboard.door import Dashboard
from mailcheck.web.dashboard.inbound.reply_pages import ReplyPages
from mailcheck.web.dashboard.inbound.route_pages import InboundFormatText, RoutePages
from mailcheck.web.dashboard.inbox.checks_pages import CheckPages
from mailcheck.web.dashboard.inbox.live import LivePages
from mailcheck.web.dashboard.inbox.message_pages import MessagePages
from mailcheck.web.dashboard.inbox.pages import InboxFacts, InboxList, InboxPages
from mailcheck.web.dashboard.inbox.share_pages import SharePages
from mailcheck.web.dashboard.live import LivePartPages
from mailcheck.web.dashboard.overview.pages import OverviewPages, ServerNames
from mailcheck.web.dashboard.overview.welcome_pages import WelcomePages
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.static_files import StaticFiles
from mailcheck.web.dashboard.visits import Page


def build_dashboard(parts: WebParts) -> Dashboard:
    """Build the dashboard."""
    daemon = parts.daemon
    renderer, confirm, pages = build_pages(daemon, parts.routes, parts.description)
    admission = PageAccess(
        daemon.accounts.sessions,
        parts.urls,
        parts.addresses,
        daemon.runtime.clocks,
    )
    return Dashboard(admission, confirm.ask, renderer, pages, daemon.accounts.projects.holder_of)


def build_pages(
    daemon: Daemon, routes: Sequence[Route[Any]], description: ApiDescription
) -> tuple[Renderer, ConfirmPages, list[Page]]:
    """Return the renderer, the pages to confirm on, and all pages of the dashboard."""
    problems, static = daemon.runtime.conditions.problems, StaticFiles()
    renderer = Renderer(static, lambda: bool(problems.get(DISK)))
    tried = {route.operation.id: route for route in routes if can_be_tried(route)}
    answers = AnswerPages(
        tried,
        daemon.inbox.read,
        daemon.tests.operations.manage,
        daemon.accounts.checks,
        renderer,
    )
    confirm = ConfirmPages(daemon.accounts.confirmation, daemon.accounts.passkeys, renderer)
    pages = [
        *static.pages(),
        *LivePartPages(daemon.follow, daemon.runtime.reactor).pages(),
        *confirm.pages(),
        *_account_pages(daemon, confirm, renderer),
        *_mail_pages(daemon, renderer),
        *ApiPages(description, frozenset(tried), renderer).pages(),
        *answers.pages(),
    ]
    return renderer, confirm, pages


def _account_pages(daemon: Daemon, confirm: ConfirmPages, renderer: Renderer) -> list[Page]:
    accounts, config = daemon.accounts, daemon.runtime.config
    webhooks, options = daemon.inbox.webhooks, config.inbox
    budget, submission = accounts.checks, submission_server(config)
    servers = ServerNames(options.domain, mail_server(config), submission)
    sign_in, register = accounts.sign_in, accounts.register
    key_pages = KeyPages(accounts.own_keys, budget, renderer, submission, options.faults)
    company, passkeys = accounts.company, accounts.passkeys
    sign_in_pages = SignInPages(
        sign_in, register, accounts.sessions, renderer, company, _passkeys=passkeys
    )
    account_pages = AccountPages(
        sign_in,
        accounts.sessions,
        accounts.audit,
        register,
        accounts.invitations,
        _renderer=renderer,
        _company=company,
        _passkeys=passkeys,
        _confirmation=accounts.confirmation,
    )
    return [
        *sign_in_pages.pages(),
        *CompanyPages(company, sign_in_pages, renderer).pages(),
        *PasskeyPages(passkeys, sign_in_pages, account_pages).pages(),
        *account_pages.pages(),
        *OverviewPages(
            daemon.inbox.read,
            daemon.tests.operations.manage,
            _show_domains(daemon),
            daemon.watches.keep,
            daemon.watches.heartbeats,
            _servers=servers,
            _renderer=renderer,
        ).pages(),
        *ProjectPages(accounts.projects, accounts.keep, renderer).pages(),
        *PeoplePages(accounts.keep, accounts.audit, options.domain, renderer).pages(),
        *key_pages.pages(),
        *ConsentPages(
            oauth_settings(daemon),
            accounts.oauth_clients,
            accounts.grants,
            confirm,
            renderer,
            _outcomes=accounts.oauth_outcomes,
        ).pages(),
        *WebhookPages(webhooks, daemon.inbox.read, budget, renderer).pages(),
        *RoutePages(
            daemon.inbound.operations, _format_texts, _find_public_key, options.domain, renderer
        ).pages(),
        *ReplyPages(daemon.inbound.operations, daemon.inbox.read, renderer).pages(),
    ]


@cache
def _format_texts() -> Mapping[InboundFormat, InboundFormatText]:
    # Imported here, since most daemons have no routes.
    from mailcheck.web.providers.inbound.catalogue import format_rows

    return {
        name: InboundFormatText(row.title, row.authentication, row.provider.faults)
        for name, row in format_rows("").items()
    }


def _find_public_key(route: InboundRoute) -> str:
    if route.format not in (InboundFormat.SENDGRID, InboundFormat.SENDGRID_RAW):
        return ""
    return verification_key(route.secret)


def _mail_pages(daemon: Daemon, renderer: Renderer) -> list[Page]:
    """Return the pages of the tools and of the inbox, which both show mails.

    Pages of the tools precede the pages of shared messages (`ReportPages.pages`).
    """
    show = ShowMessage(daemon.mail.mail_bytes, daemon.runtime.workers.content)
    return [
        *_domain_pages(daemon, renderer),
        *_test_pages(daemon, show, renderer),
        *_inbox_pages(daemon, show, renderer),
    ]


def _show_domains(daemon: Daemon) -> ShowDomains:
    runtime = daemon.runtime
    recent: CachedValues[tuple[DomainSummary, ...]] = CachedValues(
        runtime.cluster.memory, "recent checks", tuple[DomainSummary, ...]
    )
    return ShowDomains(daemon.watches.store, daemon.reports.store, recent, runtime.now)


def _domain_pages(daemon: Daemon, renderer: Renderer) -> list[Page]:
    config, checks, reports = daemon.runtime.config, daemon.checks, daemon.reports.operations
    rules = NameRules(config.dns.allow_special_use, config.network.allow_private)
    budget, turns, watches = daemon.accounts.checks, checks.turns, daemon.watches.keep
    domains = _show_domains(daemon)
    frame = DomainFrame(domains, renderer, rules)
    strangers = daemon.accounts.stranger_checks
    check = CheckDomain(
        checks.reputation, checks.domain, reports.show.to_offer, budget, strangers, turns
    )
    return [
        *WelcomePages(daemon.accounts.register, check, strangers, rules, renderer).pages(),
        *DomainPages(
            check,
            checks.blocklists,
            budget,
            turns,
            daemon.slots,
            _domains=domains,
            _watches=watches,
            _frame=frame,
            _renderer=renderer,
        ).pages(),
        *BlocklistPages(checks.blocklists, budget, turns, daemon.slots, frame).pages(),
        *ReportsPages(
            reports, daemon.reports.fetching, budget, turns, frame, _renderer=renderer
        ).pages(),
        *DigestPages(daemon.digests.manage, renderer).pages(),
        *TrafficPages(daemon.traffic.show, renderer).pages(),
        *HeartbeatPages(daemon.watches.heartbeats, renderer).pages(),
        *HistoryPages(watches, budget, turns, frame, renderer).pages(),
        *OldDomainPages(watches, frame).pages(),
    ]


def _test_pages(daemon: Daemon, show: ShowMessage, renderer: Renderer) -> list[Page]:
    config, tests, progress = daemon.runtime.config, daemon.tests, daemon.scoring.progress
    operations, domain, budget = tests.operations, config.inbox.domain, daemon.accounts.checks
    mail = ReportMail(MailOfTest(tests.store, daemon.mail.loader.complete), show)
    return [
        *DeliverabilityPages(
            operations,
            progress,
            mail,
            budget,
            renderer,
            _domain=domain,
            _mail_server=mail_server(config),
        ).pages(),
        *PreflightPages(operations.manage, tests.preflight, budget, renderer).pages(),
        *ComparisonPages(operations.manage, renderer).pages(),
        *ReportFiles(operations.manage, mail, renderer, domain).pages(),
        *ReportPages(operations.manage, mail, daemon.inbox.check, renderer, domain).pages(),
        *DoctorPages(partial(_doctor, daemon), renderer).pages(),
        *CheckPages(daemon.inbox, operations.manage, renderer).pages(),
        *DeliverabilityLivePages(operations.wait, progress, daemon.runtime.reactor).pages(),
    ]


def _doctor(daemon: Daemon) -> Doctor:
    # Imported here, since the doctor is rarely used and not at startup.
    from mailcheck.assembly.doctor import DoctorParts
    from mailcheck.assembly.probes import Probes

    runtime, reactor = daemon.runtime, daemon.runtime.reactor
    # With its own cache, since it examines the current state.
    alone = LocalCluster(reactor)
    plain, clocks = runtime.resolvers.plain, runtime.clocks
    probes = Probes(runtime.config, reactor, clocks, plain, alone)
    find_mailboxes = daemon.reports.fetching.store.states
    return DoctorParts(runtime, reactor, daemon.checks, probes, find_mailboxes).build()


def _inbox_pages(daemon: Daemon, show: ShowMessage, renderer: Renderer) -> list[Page]:
    runtime, inbox = daemon.runtime, daemon.inbox
    domain = runtime.config.inbox.domain
    addresses = [parse_listen_address(text) for text in runtime.config.smtp.listen]
    port = next((address.port for address in addresses if address.port), None)
    listed = InboxList(inbox.read, InboxFacts(domain, port, runtime.retention))
    sample = SendSample(daemon.receiver, domain, runtime.clocks)
    read, share, authenticate = inbox.read, inbox.share, inbox.authenticate
    return [
        *InboxPages(listed, read, inbox.delete, sample, renderer).pages(),
        *LivePages(inbox.follow, inbox.read, renderer, runtime.clock).pages(),
        *MessagePages(
            read,
            listed,
            authenticate,
            show,
            share,
            _delete=inbox.delete,
            _release=inbox.release,
            _renderer=renderer,
        ).pages(),
        *SharePages(share, authenticate, show, renderer, runtime.turns).pages(),
    ]
