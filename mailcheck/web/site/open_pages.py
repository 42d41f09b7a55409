"""What is asked for without a key: health, readiness, the client libraries, the documentation."""

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import cast

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.server import Request

from mailcheck.operations.reports.addresses import TLS_PATH
from mailcheck.operations.reports.post_report import PostReport
from mailcheck.web.site.documentation import Documentation, lead_to_first_page
from mailcheck.web.site.errors import NOT_READY, NOWHERE, TOO_LARGE
from mailcheck.web.site.replies import Reply, answer, error_reply, json_reply
from mailcheck.web.site.requests import MAX_BODY, BoundedRequest, ClientAddresses
from mailcheck.web.site.routing import Path, reply_to_wrong_path, route_to

State = tuple[bool, Mapping[str, str], Mapping[str, int]]
"""Whether the daemon can work, what is not well, and what would free how many bytes of the disk."""

CLIENT_LIBRARIES = {
    "mailcheck_client.py": "text/x-python; charset=utf-8",
    "mailcheck.mjs": "text/javascript; charset=utf-8",
    "mailcheck.d.mts": "text/x-typescript; charset=utf-8",
}


TAKEN = 202
"""A report is kept, and read later."""


class OpenPages:
    """The pages beside the API; only reports that are posted are metered."""

    def __init__(
        self,
        state: Callable[[], State],
        reports: PostReport,
        addresses: ClientAddresses,
        documentation: Documentation | None = None,
    ) -> None:
        """``state`` tells whether the daemon can work, without doing anything for it."""
        self._state = state
        self._reports = reports
        self._addresses = addresses
        self._documentation = documentation or Documentation()
        self._pages: dict[Path, Callable[..., Awaitable[Reply]]] = {
            Path("GET", "/healthz"): self._health,
            Path("GET", "/readyz"): self._readiness,
            Path("GET", "/clients/<name>"): self._client_library,
            Path("POST", f"{TLS_PATH}<token>"): self._take_report,
            Path("GET", "/docs"): self._lead_to_documentation,
            Path("GET", "/docs/"): self._read_documentation,
            Path("GET", "/docs/<path:name>"): self._read_documentation,
        }

    def resource(self) -> IResource:
        """Give what is mounted at the root."""
        return route_to(self, self._pages)

    def serve(self, request: Request, asked: Path, values: dict[str, str]) -> Deferred[bytes]:
        """Answer a request for one of the pages."""
        handle = self._pages[asked]
        return Deferred.fromCoroutine(answer(request, lambda _: handle(request, **values)))

    async def _health(self, _: Request) -> Reply:
        """GET /healthz: the process runs and answers."""
        return json_reply({"status": "ok"})

    async def _readiness(self, _: Request) -> Reply:
        """GET /readyz: the daemon can work; all that is not well is named."""
        is_ready, problems, frees = self._state()
        degraded: dict[str, object] = {"degraded": dict(problems)} if problems else {}
        if frees:
            degraded["frees"] = dict(frees)
        if is_ready:
            return json_reply({"status": "ready", **degraded})
        why = "; ".join(f"{what}: {problem}" for what, problem in problems.items())
        error = {"error": f"the daemon can't work now: {why}", **degraded}
        return json_reply(error, NOT_READY, {"Retry-After": "1"})

    async def _client_library(self, _: Request, name: str) -> Reply:
        """GET /clients/<file>: the client libraries of this very version."""
        media_type = CLIENT_LIBRARIES.get(name)
        if media_type is None:
            return error_reply(NOWHERE, f"there are {', '.join(CLIENT_LIBRARIES)}")
        source = files("mailcheck.clients").joinpath(name).read_bytes()
        return Reply(200, source, media_type)

    async def _take_report(self, request: Request, token: str) -> Reply:
        """POST /tls-reports/<token>: a TLS report over HTTPS (RFC 8460 3)."""
        if isinstance(request, BoundedRequest) and request.is_too_large:
            return error_reply(TOO_LARGE, f"a report has at most {MAX_BODY} bytes, packed")
        body = b"" if request.content is None else request.content.read()
        await self._reports.post(token, self._addresses.client_ip(request), body)
        return json_reply({"status": "taken"}, TAKEN)

    async def _lead_to_documentation(self, _: Request) -> Reply:
        """GET /docs: its first page."""
        return lead_to_first_page()

    async def _read_documentation(self, _: Request, name: str = "") -> Reply:
        """GET /docs/<name>: a file of the documentation."""
        return self._documentation.read(name)

    def refuse_path(self, request: IRequest, failure: Failure) -> Deferred[bytes]:
        """Answer a path or method that no page has."""

        async def refuse(_: object) -> Reply:
            return reply_to_wrong_path(cast(Request, request), failure.value)

        return Deferred.fromCoroutine(answer(cast(Request, request), refuse))
