"""The HTTP site: the API below its versioned path, the endpoint for agents, the dashboard."""

from twisted.internet.interfaces import IReactorTime
from twisted.web.http import Request as HttpRequest
from twisted.web.resource import IResource, Resource
from twisted.web.server import Request, Site

from mailcheck.web.request_bodies import BoundedRequest
from mailcheck.wire.urls import API_PATH, MCP_PATH

IDLE_TIMEOUT = 75
"""Seconds until a connection that sends nothing is closed; a parked wait is not idle."""

OPEN_PAGES = (b"healthz", b"readyz", b"clients")
"""First segments of what programs ask for without a key."""


class _Root(Resource):
    """Sends what lies below the API's path there, agents to theirs, all else to the dashboard."""

    def __init__(
        self, api: IResource, mcp: IResource, pages: IResource, dashboard: IResource
    ) -> None:
        super().__init__()
        self._api = api
        self._mcp = mcp
        self._pages = pages
        self._dashboard = dashboard
        self._api_segments = [segment.encode() for segment in API_PATH.strip("/").split("/")]
        name = MCP_PATH.strip("/").encode()
        self._mcp_segments = ([name], [name, b""])

    def getChild(self, path: bytes, request: Request) -> IResource:
        """Find what answers; called with the first segment taken off the path."""
        segments = [_as_utf8(segment) for segment in (path, *(request.postpath or []))]
        depth = len(self._api_segments)
        if segments[:depth] == self._api_segments:
            request.prepath, request.postpath = segments[:depth], segments[depth:]
            return self._api
        if segments in self._mcp_segments:
            return self._mcp
        request.prepath, request.postpath = [], segments
        return self._pages if segments[0] in OPEN_PAGES else self._dashboard


def _as_utf8(segment: bytes) -> bytes:
    # Klein answers a path that is not UTF-8 by itself, past the gate and in plain text.
    return segment.decode("utf-8", "replace").encode("utf-8")


class _QuietSite(Site):
    """A site without an access log: its lines would hold share tokens."""

    def log(self, request: HttpRequest) -> None:
        """Write nothing."""


def build_site(
    api: IResource,
    mcp: IResource,
    pages: IResource,
    dashboard: IResource,
    clock: IReactorTime,
) -> Site:
    """Build the factory for HTTP connections."""
    site = _QuietSite(
        _Root(api, mcp, pages, dashboard),
        requestFactory=BoundedRequest,
        # No form is read here; a broken one would be answered past the gate.
        parsePOSTFormSubmission=False,
        timeout=IDLE_TIMEOUT,
        reactor=clock,
    )
    site.displayTracebacks = False
    return site
