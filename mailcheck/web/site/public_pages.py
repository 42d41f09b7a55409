"""What is asked for without a key: health, readiness, the client libraries, the documentation."""

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
from mailcheck.web.site.errors import CONTENT_TOO_LARGE, NOT_FOUND, NOT_READY
from mailcheck.web.site.replies import Reply, error_reply, json_reply, respond
from mailcheck.web.site.requests import MAX_BODY, BoundedRequest, ClientAddresses
from mailcheck.web.site.routing import Path, reply_to_wrong_path, route_to

ARCHIVE = "docs.zip"
FIRST_PAGE = "index.html"

POLICY = (
    # The theme writes styles into its pages. No script stands in them, and nobody else's words do.
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
"""What is offered for reading: configuration and programs."""

MOVED = 302


class Documentation:
    """Reads files of the archive, whose index is read once: until it is made anew, as it may be."""

    def __init__(self, archive: pathlib.Path | None = None) -> None:
        """``archive`` is the installed one unless another is named."""
        self._path = archive or pathlib.Path(str(files("mailcheck.web.site").joinpath(ARCHIVE)))
        self._archive: ZipFile | None = None
        self._version = (0, 0, 0)

    def read(self, name: str) -> Reply:
        """Give the file of this name; nothing outside of the archive has one."""
        archive = self._open()
        if archive is None:
            missing = "the documentation was not built here: `make docs` in the sources does it"
            return error_reply(NOT_FOUND, missing)
        name = f"{name}{FIRST_PAGE}" if name.endswith("/") or not name else name
        if name not in archive.NameToInfo:
            return error_reply(NOT_FOUND, f"the documentation has no {name[:100]}: see /docs/")
        body = archive.read(name)
        media_type = MEDIA_TYPES.get(name.rpartition(".")[2], OTHER)
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
        return Reply(200, body, media_type, headers)

    def _open(self) -> ZipFile | None:
        """Give the archive as it is now; nothing where there is none."""
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
    """Send a reader from ``/docs`` to ``/docs/``: links in the pages are relative."""
    return Reply(MOVED, b"", OTHER, {"Location": "docs/"})


State = tuple[bool, Mapping[str, str], Mapping[str, int]]
"""Whether the daemon can work, what is not well, and what would free how many bytes of the disk."""

CLIENT_LIBRARIES = {
    "mailcheck_client.py": "text/x-python; charset=utf-8",
    "mailcheck.mjs": "text/javascript; charset=utf-8",
    "mailcheck.d.mts": "text/x-typescript; charset=utf-8",
}


ACCEPTED = 202
"""A report is kept, and read later."""


class PublicPages:
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

    def serve(self, request: Request, path: Path, values: dict[str, str]) -> Deferred[bytes]:
        """Answer a request for one of the pages."""
        handle = self._pages[path]
        return Deferred.fromCoroutine(respond(request, lambda _: handle(request, **values)))

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
            return error_reply(NOT_FOUND, f"there are {', '.join(CLIENT_LIBRARIES)}")
        source = files("mailcheck.clients").joinpath(name).read_bytes()
        return Reply(200, source, media_type)

    async def _take_report(self, request: Request, token: str) -> Reply:
        """POST /tls-reports/<token>: a TLS report over HTTPS (RFC 8460 3)."""
        if isinstance(request, BoundedRequest) and request.is_too_large:
            return error_reply(CONTENT_TOO_LARGE, f"a report has at most {MAX_BODY} bytes, packed")
        body = b"" if request.content is None else request.content.read()
        await self._reports.post(token, self._addresses.client_ip(request), body)
        return json_reply({"status": "taken"}, ACCEPTED)

    async def _lead_to_documentation(self, _: Request) -> Reply:
        """GET /docs: its first page."""
        return redirect_to_first_page()

    async def _read_documentation(self, _: Request, name: str = "") -> Reply:
        """GET /docs/<name>: a file of the documentation."""
        return self._documentation.read(name)

    def reject_path(self, request: IRequest, failure: Failure) -> Deferred[bytes]:
        """Answer a path or method that no page has."""

        async def refuse(_: object) -> Reply:
            return reply_to_wrong_path(cast(Request, request), failure.value)

        return Deferred.fromCoroutine(respond(cast(Request, request), refuse))
