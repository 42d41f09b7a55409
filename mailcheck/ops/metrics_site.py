"""``/metrics`` on a listener of its own: what Prometheus asks is nobody else's."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twisted.web.http import HTTPChannel
from twisted.web.http import Request as HttpRequest
from twisted.web.http_headers import Headers
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from mailcheck.core.instruments import Metric

if TYPE_CHECKING:
    from mailcheck.ops.exposition import Exposition


class MetricsSite(Site):
    """The factory for its connections; it writes no access log."""

    noisy = False
    displayTracebacks = False  # noqa: N815

    def protocol(self) -> Any:
        """Make a connection that names no version."""
        return _Connection()

    def __init__(self, metrics: Sequence[Metric]) -> None:
        root = Resource()
        root.putChild(b"metrics", _MetricsPage(metrics))
        super().__init__(root)

    def log(self, request: HttpRequest) -> None:
        """Write nothing."""


class _Connection(HTTPChannel):
    def writeHeaders(  # noqa: N802
        self, version: bytes, code: bytes, reason: bytes, headers: Headers
    ) -> None:
        """Leave out what Twisted says of itself."""
        headers.removeHeader(b"Server")
        super().writeHeaders(version, code, reason, headers)


class _MetricsPage(Resource):
    isLeaf = True

    def __init__(self, metrics: Sequence[Metric]) -> None:
        super().__init__()
        self._metrics = metrics
        self._exposition: Exposition | None = None

    def render_GET(self, request: Request) -> bytes:
        """Read and write all of them; they are many small numbers, no work to speak of."""
        if self._exposition is None:
            # Imported here: most daemons are never asked, and none while it starts.
            from mailcheck.ops.exposition import Exposition

            self._exposition = Exposition(self._metrics)
        media_type, text = self._exposition.write(request.getHeader("Accept") or "")
        request.setHeader("Content-Type", media_type)
        return text
