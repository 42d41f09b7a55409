"""Pages that need no API key: health, readiness, client libraries and the documentation."""

import pathlib
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import cast
from zipfile import ZipFile

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.server import Request

from mailcheck.operations.reports.receive_reports import TLS_PATH, PostReport
from mailcheck.web.site.client_libraries import CLIENT_LIBRARIES
from mailcheck.web.site.failures import CONTENT_TOO_LARGE, NOT_FOUND, NOT_READY
from mailcheck.web.site.replies import Reply, error_reply, json_reply, respond
from mailcheck.web.site.requests import MAX_BODY, BoundedRequest, ClientAddresses, read_body
from mailcheck.web.site.routing import Path, reply_to_wrong_path, route_to

ARCHIVE = "docs.zip"
FIRST_PAGE = "index.html"

POLICY = (
    # The theme of the documentation contains inline styles. Scripts are loaded from files.
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)

MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
}
OTHER = "text/plain; charset=utf-8"
"""The media type of configuration files and programs, so that browsers display them."""

MOVED = 302


class Documentation:
    """Reads files from the archive. Its index is cached until the archive changes."""

    def __init__(self, archive: pathlib.Path | None = None) -> None:
        """``archive`` defaults to the installed archive."""
        self._path = archive or pathlib.Path(str(files("mailcheck.web.site").joinpath(ARCHIVE)))
        self._archive: ZipFile | None = None
        self._version = (0, 0, 0)

    def read(self, name: str) -> Reply:
        """Return a file of the archive."""
        archive = self._open()
        if archive is None:
            missing = "the documentation is not installed: run `make docs` in the sources"
            return error_reply(NOT_FOUND, missing)
        name = f"{name}{FIRST_PAGE}" if name.endswith("/") or not name else name
        if name not in archive.NameToInfo:
            return error_reply(NOT_FOUND, f"the documentation has no page {name[:100]}: see /docs/")
        body = archive.read(name)
        media_type = MEDIA_TYPES.get(name.rpartition(".")[2], OTHER)
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
        return Reply(200, body, media_type, headers)

    def _open(self) -> ZipFile | None:
        """Return the current archive, or `None` if there is none."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        version = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._archive is None or version != self._version:
            if self._archive is not None:
                self._archive.close()
            self._archive, self._version = ZipFile(self._path), version
        return self._archive


def redirect_to_first_page() -> Reply:
    """Redirect ``/docs`` to ``/docs/``, because the pages contain relative links."""
    return Reply(MOVED, b"", OTHER, {"Location": "docs/"})


State = tuple[bool, Mapping[str, str], Mapping[str, int]]
"""Whether the daemon is ready, its problems by name, and the bytes that each measure would free."""

ACCEPTED = 202
"""The report is stored and is parsed later."""


class PublicPages:
    """The pages beside the API. Only posted reports are rate-limited."""

    def __init__(
        self,
        state: Callable[[], State],
        reports: PostReport,
        addresses: ClientAddresses,
        as_page: Callable[[Request, Reply], Awaitable[Reply]],
        documentation: Documentation | None = None,
    ) -> None:
        """``state`` returns the state of the daemon without side effects.

        :param as_page: renders an error as a page, if the client is a browser.
        """
        self._as_page = as_page
        self._state = state
        self._reports = reports
        self._addresses = addresses
        self._documentation = documentation or Documentation()
        self._pages: dict[Path, Callable[..., Awaitable[Reply]]] = {
            Path("GET", "/healthz"): self._health,
            Path("GET", "/readyz"): self._readiness,
            Path("GET", "/clients/<name>"): self._client_library,
            Path("POST", f"{TLS_PATH}<token>"): self._take_report,
            Path("GET", "/docs"): self._redirect_to_documentation,
            Path("GET", "/docs/"): self._read_documentation,
            Path("GET", "/docs/<path:name>"): self._read_documentation,
        }

    def resource(self) -> IResource:
        """Return the resource to mount at the root."""
        return route_to(self, self._pages)

    def serve(self, request: Request, path: Path, values: dict[str, str]) -> Deferred[bytes]:
        """Respond to a request for one of the pages."""
        handle = self._pages[path]
        return Deferred.fromCoroutine(respond(request, lambda _: handle(request, **values)))

    async def _health(self, _: Request) -> Reply:
        """GET /healthz: the process responds."""
        return json_reply({"status": "ok"})

    async def _readiness(self, _: Request) -> Reply:
        """GET /readyz: whether the daemon is ready, with all problems."""
        is_ready, problems, frees = self._state()
        degraded: dict[str, object] = {"degraded": dict(problems)} if problems else {}
        if frees:
            degraded["frees"] = dict(frees)
        if is_ready:
            return json_reply({"status": "ready", **degraded})
        why = "; ".join(f"{what}: {problem}" for what, problem in problems.items())
        error = {"error": f"the daemon is not ready: {why}", **degraded}
        return json_reply(error, NOT_READY, {"Retry-After": "1"})

    async def _client_library(self, _: Request, name: str) -> Reply:
        """GET /clients/<file>: the client libraries of this version."""
        library = CLIENT_LIBRARIES.get(name)
        if library is None:
            known = ", ".join(CLIENT_LIBRARIES)
            return error_reply(NOT_FOUND, f"there is no such client library; there are {known}")
        return Reply(200, library.read(), library.media_type)

    async def _take_report(self, request: Request, token: str) -> Reply:
        """POST /tls-reports/<token>: a TLS report over HTTPS (RFC 8460 3)."""
        if isinstance(request, BoundedRequest) and request.is_too_large:
            return error_reply(
                CONTENT_TOO_LARGE, f"a report must have at most {MAX_BODY} compressed bytes"
            )
        body = read_body(request)
        await self._reports.post(token, self._addresses.client_ip(request), body)
        return json_reply({"status": "taken"}, ACCEPTED)

    async def _redirect_to_documentation(self, _: Request) -> Reply:
        """GET /docs: redirect to the first page."""
        return redirect_to_first_page()

    async def _read_documentation(self, request: Request, name: str = "") -> Reply:
        """GET /docs/<name>: a file of the documentation."""
        reply = self._documentation.read(name)
        return await self._as_page(request, reply) if reply.status == NOT_FOUND else reply

    def reject_path(self, request: IRequest, failure: Failure) -> Deferred[bytes]:
        """Respond to an unknown path or method."""

        async def refuse(_: object) -> Reply:
            return reply_to_wrong_path(cast(Request, request), failure.value)

        return Deferred.fromCoroutine(respond(cast(Request, request), refuse))
