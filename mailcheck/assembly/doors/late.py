"""The doors that are opened late: the first request for one imports and builds it.

The imports are in functions, so that import-linter sees them. An idle daemon opens nothing, since
that would delay other requests by a tenth of a second.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from twisted.web.resource import IResource, Resource
from twisted.web.server import Request

from mailcheck.assembly.doors.access import WebParts
from mailcheck.web.site.replies import log_crash, reply_to_failure, write_reply

if TYPE_CHECKING:
    from mailcheck.web.dashboard.door import Dashboard


def open_agents(parts: WebParts) -> IResource:
    """Open the MCP endpoint."""
    from mailcheck.assembly.doors.agents import build_agents

    return build_agents(parts)


def open_facades(parts: WebParts) -> IResource:
    """Open the APIs of other mail testers."""
    from mailcheck.assembly.doors.compatible import build_facades

    return build_facades(parts.daemon, parts.access, parts.addresses, parts.urls)


def open_oauth(parts: WebParts) -> IResource:
    """Open the authorization server."""
    from mailcheck.assembly.doors.oauth import build_oauth

    return build_oauth(parts.daemon, parts.addresses)


def open_providers(parts: WebParts) -> IResource:
    """Open the APIs of mail providers."""
    from mailcheck.assembly.doors.providers import build_providers

    return build_providers(parts.daemon, parts.access, parts.addresses)


def open_scim(parts: WebParts) -> IResource:
    """Open SCIM 2.0 for the directory of a company."""
    from mailcheck.assembly.doors.scim import build_scim

    return build_scim(parts)


def open_dashboard(parts: WebParts) -> "Dashboard":
    """Open the dashboard."""
    from mailcheck.assembly.doors.pages import build_dashboard

    return build_dashboard(parts)


DOORS: Mapping[str, Callable[[WebParts], IResource]] = {
    "mcp": open_agents,
    "mailosaur": open_facades,
    "mailslurp": open_facades,
    "providers": open_providers,
    "scim": open_scim,
    ".well-known": open_oauth,
    "token": open_oauth,
    "register": open_oauth,
    "revoke": open_oauth,
}
"""What opens the door to which the first segment of a path leads. Other paths are pages."""


class LateDoor(Resource):
    """A door that the first request for it opens."""

    isLeaf = True

    def __init__(self, build: Callable[[], IResource]) -> None:
        super().__init__()
        self._build = build
        self._opened: IResource | None = None

    def open(self) -> IResource:
        """Return the resource of the door, which is built once."""
        if self._opened is None:
            self._opened = self._build()
        return self._opened

    def render(self, request: Request) -> int | bytes:
        """Pass a request to the door. If it cannot be opened, the next request tries again."""
        try:
            opened = self.open()
        except Exception:
            return write_reply(request, reply_to_failure(log_crash(request)), {})
        rendered: int | bytes = opened.render(request)
        return rendered


def late_doors(parts: WebParts) -> dict[str, LateDoor]:
    """Return the doors by the first segment of their paths. None is open."""
    doors = {build: LateDoor(partial(build, parts)) for build in DOORS.values()}
    return {segment: doors[build] for segment, build in DOORS.items()}
