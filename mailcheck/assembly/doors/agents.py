"""Builds the MCP endpoint."""

from collections.abc import Sequence
from typing import Any

from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.doors.access import WebParts, build_access
from mailcheck.assembly.doors.oauth import oauth_settings
from mailcheck.assembly.doors.rest import domain_tools
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.web.mcp.app import AppTools
from mailcheck.web.mcp.deliverability_tools import DeliverabilityTools
from mailcheck.web.mcp.dispatch import Dispatcher
from mailcheck.web.mcp.domain_tools import AgentDomainTools, ReportTools, WatchTools
from mailcheck.web.mcp.endpoint import McpEndpoint
from mailcheck.web.mcp.inbound_tools import InboundTools
from mailcheck.web.mcp.inbox_tools import InboxTools, MessageViews
from mailcheck.web.mcp.tasks import Tasks
from mailcheck.web.mcp.tools import Tool


def build_agents(parts: WebParts) -> McpEndpoint:
    """Build the MCP endpoint."""
    daemon, oauth = parts.daemon, oauth_settings(parts.daemon)
    runtime, chance = daemon.runtime, daemon.runtime.clocks
    tokens = daemon.accounts.access_tokens if oauth.is_on else None
    return McpEndpoint(
        build_access(daemon, parts.addresses, tokens),
        Dispatcher(
            build_tools(daemon),
            Tasks(runtime.persistent_state.memory, chance.now, chance.random_bytes),
            chance.random_bytes,
            runtime.urls.public_url,
        ),
        parts.urls,
        oauth,
        daemon.accounts.ended_access,
        runtime.cluster.notifications("cancelled calls"),
        clock_and_randomness=chance,
    )


def build_tools(daemon: Daemon) -> Sequence[Tool[Any]]:
    """Return the tools of the MCP server, in the order of their list."""
    runtime, turns = daemon.runtime, daemon.checks.turns
    config, random_bytes = runtime.config, runtime.clocks.random_bytes
    domain, views = config.inbox.domain, MessageViews(runtime.workers.content)
    show = ShowMessage(daemon.mail.mail_bytes, runtime.workers.content)
    return [
        *InboxTools(daemon.inbox, views, domain, random_bytes).tools(),
        *AgentDomainTools(
            domain_tools(daemon),
            turns,
            allow_special_use=config.dns.allow_special_use,
            allow_private=config.network.allow_private,
        ).tools(),
        *ReportTools(daemon.reports.operations, turns).tools(),
        *DeliverabilityTools(daemon.tests.operations, domain).tools(),
        *WatchTools(daemon.watches.keep, daemon.watches.heartbeats).tools(),
        *InboundTools(daemon.inbound.operations).tools(),
        *AppTools(daemon.inbox.read, show, daemon.tests.operations, domain).tools(),
    ]
