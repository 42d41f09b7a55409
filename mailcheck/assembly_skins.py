"""Builds what REST and MCP serve of the operations: the routes, and the tools for agents."""

from collections.abc import Sequence
from dataclasses import dataclass

from mailcheck.assembly_checks import ChecksAssembly
from mailcheck.assembly_deliverability import DeliverabilityAssembly
from mailcheck.assembly_lanes import Lanes
from mailcheck.assembly_scoring import ScoringAssembly
from mailcheck.config_options import Config
from mailcheck.core.identifiers import RandomBytes
from mailcheck.operations.ports import Now
from mailcheck.operations.preflight import Preflight
from mailcheck.web.api.calls import Route
from mailcheck.web.api.deliverability_routes import DeliverabilityRoutes
from mailcheck.web.api.inbox_routes import InboxOperations, InboxRoutes
from mailcheck.web.mcp.deliverability_tools import DeliverabilityTools
from mailcheck.web.mcp.inbox_tools import InboxTools
from mailcheck.web.mcp.message_views import MessageViews
from mailcheck.web.mcp.tools import Tool


@dataclass(frozen=True, slots=True)
class Rooms:
    """What was built before, and is served now."""

    inbox: InboxOperations
    checks: ChecksAssembly
    tests: DeliverabilityAssembly
    scoring: ScoringAssembly
    lanes: Lanes


class Skins:
    """REST and MCP over the same operations; ``retention`` is that of the inbox."""

    def __init__(
        self,
        config: Config,
        rooms: Rooms,
        retention: int,
        now: Now,
        random_bytes: RandomBytes,
    ) -> None:
        self._now = now
        self._domain = config.inbox.domain
        self._rooms = rooms
        self._retention = retention
        self._random_bytes = random_bytes

    def routes(self) -> Sequence[Route]:
        """List the routes of the REST API."""
        rooms = self._rooms
        inbox = InboxRoutes(rooms.inbox, self._domain, self._retention, self._random_bytes)
        preflight = Preflight(rooms.tests.operations.find, rooms.scoring.score)
        tests = DeliverabilityRoutes(rooms.tests.operations, preflight, self._domain)
        return [*inbox.routes(), *rooms.checks.routes(), *tests.routes()]

    def agent_tools(self) -> Sequence[Tool]:
        """List the tools of the MCP server, in the order in which they are shown."""
        rooms = self._rooms
        views = MessageViews(rooms.lanes.content)
        inbox = InboxTools(rooms.inbox, views, self._domain, self._now, self._random_bytes)
        tests = DeliverabilityTools(rooms.tests.operations, self._domain, self._now)
        return [*inbox.tools(), *rooms.checks.agent_tools(), *tests.tools()]
