"""Builds what REST and MCP serve of the operations: the routes, and the tools for agents."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from mailcheck.assembly.checks import ChecksAssembly
from mailcheck.assembly.deliverability import DeliverabilityAssembly
from mailcheck.assembly.deployment import mail_server
from mailcheck.assembly.scoring import ScoringAssembly
from mailcheck.assembly.watches import WatchAssembly
from mailcheck.assembly.workers import Workers
from mailcheck.config.options import Config
from mailcheck.operations.accounts.keep_accounts import KeepAccounts
from mailcheck.operations.concurrency import Turns
from mailcheck.operations.deliverability.preflight import Preflight
from mailcheck.operations.inbox.offered import InboxOperations
from mailcheck.operations.reports.offered import ReportOperations
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.web.api.admission import Gate
from mailcheck.web.api.application import Api
from mailcheck.web.api.calls import Route
from mailcheck.web.api.deliverability_routes import DeliverabilityRoutes
from mailcheck.web.api.description import ApiDescription
from mailcheck.web.api.event_routes import EventRoutes
from mailcheck.web.api.fault_routes import FaultRoutes
from mailcheck.web.api.inbox_routes import InboxRoutes
from mailcheck.web.api.report_routes import ReportRoutes
from mailcheck.web.api.tool_routes import DomainTools, ToolRoutes
from mailcheck.web.api.webhook_routes import WebhookRoutes
from mailcheck.web.dashboard.api_reference.pages import AnswerPages, ApiPages
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page
from mailcheck.web.mcp.deliverability_tools import DeliverabilityTools
from mailcheck.web.mcp.domain_tools import AgentDomainTools, ReportTools
from mailcheck.web.mcp.inbox_tools import InboxTools, MessageViews
from mailcheck.web.mcp.tools import Tool
from mailcheck.web.site.requests import RequestUrls


class BuiltOperations(Struct, frozen=True, dict=True):
    """What was built before, and is served now."""

    accounts: KeepAccounts
    inbox: InboxOperations
    checks: ChecksAssembly
    tests: DeliverabilityAssembly
    watches: WatchAssembly
    scoring: ScoringAssembly
    workers: Workers
    time_and_chance: TimeAndChance
    turns: Turns
    reports: ReportOperations

    @cached_property
    def preflight(self) -> Preflight:
        """Give the same one to all: it counts what is under way."""
        return Preflight(
            self.tests.operations.manage, self.scoring.score, self.time_and_chance.clock
        )


class RestAndMcp:
    """REST and MCP over the same operations; ``retention`` is that of the inbox.

    ``routes`` are those of the REST API.
    """

    def __init__(
        self,
        config: Config,
        built: BuiltOperations,
        retention: int,
    ) -> None:
        self._domain = config.inbox.domain
        self._built = built
        self._retention = retention
        self._has_faults = config.inbox.faults
        self._takes_special_use = config.dns.allow_special_use
        self._takes_private = config.network.allow_private
        self._mail_server = mail_server(config)
        self.routes = self._routes()
        self._description = ApiDescription(self.routes)

    def api(self, gate: Gate, urls: RequestUrls) -> Api:
        """Build the REST API."""
        return Api(gate, self.routes, self._description, urls, self._built.time_and_chance.now)

    def pages(self, renderer: Renderer) -> Sequence[Page]:
        """List the pages that describe the REST API to people."""
        tests = self._built.tests.operations.manage
        answers = AnswerPages(self.routes, self._built.inbox.read, tests)
        return [
            *ApiPages(self._description, answers.shown, renderer).pages(),
            *answers.pages(),
        ]

    def _routes(self) -> Sequence[Route[Any]]:
        built = self._built
        inbox = InboxRoutes(
            built.inbox,
            self._domain,
            self._retention,
            built.time_and_chance.random_bytes,
            self._mail_server,
            built.turns,
        )
        tests = DeliverabilityRoutes(
            built.tests.operations, built.preflight, self._domain, built.turns
        )
        checks = ToolRoutes(
            self._domain_tools(),
            built.checks.turns,
            allow_special_use=self._takes_special_use,
            allow_private=self._takes_private,
        )
        faults = FaultRoutes(built.accounts, is_on=self._has_faults)
        events = EventRoutes(built.inbox.follow, built.time_and_chance.clock)
        return [
            *inbox.routes(),
            *events.routes(),
            *faults.routes(),
            *WebhookRoutes(built.inbox.webhooks).routes(),
            *checks.routes(),
            *built.watches.routes(),
            *ReportRoutes(built.reports, built.checks.turns).routes(),
            *tests.routes(),
        ]

    def agent_tools(self) -> Sequence[Tool[Any]]:
        """List the tools of the MCP server, in the order in which they are shown."""
        built = self._built
        views = MessageViews(built.workers.content)
        inbox = InboxTools(built.inbox, views, self._domain, built.time_and_chance)
        tests = DeliverabilityTools(built.tests.operations, self._domain, built.time_and_chance.now)
        checks = AgentDomainTools(
            self._domain_tools(),
            built.checks.turns,
            allow_special_use=self._takes_special_use,
            allow_private=self._takes_private,
        )
        reports = ReportTools(built.reports.show, built.checks.turns)
        return [
            *inbox.tools(),
            *checks.tools(),
            *reports.tools(),
            *tests.tools(),
            *built.watches.agent_tools(),
        ]

    def _domain_tools(self) -> DomainTools:
        checks = self._built.checks
        return DomainTools(
            checks.mx,
            checks.blocklists,
            checks.reputation,
            checks.domain,
            checks.health,
            checks.budgets,
            self._built.reports.show.to_offer,
        )
