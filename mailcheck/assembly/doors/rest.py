"""Builds the REST API."""

from collections.abc import Sequence
from typing import Any

from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.deployment import mail_server
from mailcheck.assembly.doors.access import WebParts
from mailcheck.core.memory.instruments import Metric
from mailcheck.operations.collect_metrics import CollectMetrics
from mailcheck.web.api.account_routes import AccountRoutes
from mailcheck.web.api.audit_routes import AuditRoutes
from mailcheck.web.api.calls import Route
from mailcheck.web.api.deliverability_routes import DeliverabilityRoutes
from mailcheck.web.api.digest_routes import DigestRoutes
from mailcheck.web.api.door import make_api
from mailcheck.web.api.event_routes import EventRoutes
from mailcheck.web.api.fault_routes import FaultRoutes
from mailcheck.web.api.heartbeat_routes import HeartbeatRoutes
from mailcheck.web.api.inbound_routes import InboundApiRoutes
from mailcheck.web.api.inbox_routes import InboxRoutes
from mailcheck.web.api.key_routes import KeyRoutes
from mailcheck.web.api.metric_routes import MetricRoutes
from mailcheck.web.api.project_routes import ProjectRoutes
from mailcheck.web.api.report_routes import ReportRoutes
from mailcheck.web.api.tool_routes import DomainTools, ToolRoutes
from mailcheck.web.api.traffic_routes import TrafficRoutes
from mailcheck.web.api.watch_routes import WatchRoutes
from mailcheck.web.api.webhook_routes import WebhookRoutes
from mailcheck.web.site.access_control import api_key_of
from mailcheck.web.site.application import OpenDoor, admit_with_key


def build_api(parts: WebParts) -> OpenDoor:
    """Build the door of the API."""
    return OpenDoor(
        make_api(parts.routes, parts.description),
        admit_with_key(parts.access, api_key_of, shows_limits=True),
        parts.urls.of,
    )


def build_routes(daemon: Daemon) -> Sequence[Route[Any]]:
    """Return the routes of the REST API."""
    runtime, inbox, tests = daemon.runtime, daemon.inbox, daemon.tests
    config, turns, check_turns = runtime.config, runtime.turns, daemon.checks.turns
    domain = config.inbox.domain
    return [
        *InboxRoutes(
            inbox,
            domain,
            runtime.retention,
            runtime.clocks.random_bytes,
            mail_server(config),
            turns=turns,
        ).routes(),
        *EventRoutes(inbox.follow, runtime.clock).routes(),
        *FaultRoutes(daemon.accounts.keep, is_on=config.inbox.faults).routes(),
        *WebhookRoutes(inbox.webhooks).routes(),
        *ProjectRoutes(daemon.accounts.administer, domain).routes(),
        *KeyRoutes(daemon.accounts.administer).routes(),
        *InboundApiRoutes(daemon.inbound.operations, turns).routes(),
        *AuditRoutes(daemon.accounts.administer, daemon.follow_audit).routes(),
        *AccountRoutes(
            daemon.accounts.administer, daemon.accounts.sign_in, daemon.accounts.company, domain
        ).routes(),
        *ToolRoutes(
            domain_tools(daemon),
            check_turns,
            allow_special_use=config.dns.allow_special_use,
            allow_private=config.network.allow_private,
        ).routes(),
        *WatchRoutes(daemon.watches.keep, check_turns).routes(),
        *DigestRoutes(daemon.digests.manage).routes(),
        *HeartbeatRoutes(daemon.watches.heartbeats).routes(),
        *MetricRoutes(
            CollectMetrics(
                daemon.watches.store,
                daemon.watches.keep,
                daemon.watches.heartbeats,
                daemon.reports.operations.show,
            ),
            write_metrics,
        ).routes(),
        *ReportRoutes(daemon.reports.operations, check_turns).routes(),
        *TrafficRoutes(daemon.traffic.show).routes(),
        *DeliverabilityRoutes(tests.operations, tests.preflight, domain, turns).routes(),
    ]


def write_metrics(metrics: Sequence[Metric]) -> bytes:
    """Write metrics as Prometheus text."""
    # Loaded at the first request, since few accounts are scraped.
    from mailcheck.ops import exposition

    return exposition.write_metrics(metrics)


def domain_tools(daemon: Daemon) -> DomainTools:
    """Return the checks of domains that REST and agents offer."""
    checks = daemon.checks
    return DomainTools(
        checks.mx,
        checks.blocklists,
        checks.reputation,
        checks.domain,
        checks.health,
        budgets=checks.budgets,
        offer=daemon.reports.operations.show.to_offer,
    )
