"""``/metrics`` on a listener of its own, so that only Prometheus can reach it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twisted.web.http import HTTPChannel
from twisted.web.http import Request as HttpRequest
from twisted.web.http_headers import Headers
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from mailcheck.core.memory.instruments import Metric

if TYPE_CHECKING:
    from mailcheck.ops.exposition import Exposition


class MetricsSite(Site):
    """The factory of its connections; it writes no access log."""

    noisy = False
    displayTracebacks = False  # noqa: N815

    def protocol(self) -> Any:
        """Return a connection that does not name the version of the server."""
        return _Connection()

    def __init__(self, metrics: Sequence[Metric]) -> None:
        root = Resource()
        root.putChild(b"metrics", _MetricsPage(metrics))
        super().__init__(root)

    def log(self, request: HttpRequest) -> None:
        """Write no log."""


class _Connection(HTTPChannel):
    def writeHeaders(  # noqa: N802
        self, version: bytes, code: bytes, reason: bytes, headers: Headers
    ) -> None:
        """Remove Twisted's Server header field."""
        headers.removeHeader(b"Server")
        super().writeHeaders(version, code, reason, headers)


class _MetricsPage(Resource):
    isLeaf = True

    def __init__(self, metrics: Sequence[Metric]) -> None:
        super().__init__()
        self._metrics = metrics
        self._exposition: Exposition | None = None

    def render_GET(self, request: Request) -> bytes:
        """Return the values of all metrics, which is fast enough for the reactor."""
        if self._exposition is None:
            # Imported here, because most daemons get no such request, and none at its start.
            from mailcheck.ops.exposition import Exposition

            self._exposition = Exposition(self._metrics)
        media_type, text = self._exposition.write(request.getHeader("Accept") or "")
        request.setHeader("Content-Type", media_type)
        return text
