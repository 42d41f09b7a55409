"""Pages that need no API key: health, readiness, client libraries and the documentation."""

import pathlib
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from zipfile import ZipFile

from twisted.web.server import Request

from mailcheck.operations.reports.receive_reports import TLS_PATH, PostReport
from mailcheck.web.site import costs
from mailcheck.web.site.application import (
    Call,
    Door,
    OpenDoor,
    Route,
    admit_anyone,
    read_nothing,
)
from mailcheck.web.site.client_libraries import CLIENT_LIBRARIES
from mailcheck.web.site.failures import NOT_FOUND, NOT_READY
from mailcheck.web.site.replies import Reply, error_reply, json_reply, write_error

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


def has_documentation() -> bool:
    """Return whether the documentation was built."""
    return files("mailcheck.web.site").joinpath(ARCHIVE).is_file()


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
        as_page: Callable[[Request, Reply], Awaitable[Reply]],
        documentation: Documentation | None = None,
    ) -> None:
        """``state`` returns the state of the daemon without side effects.

        :param as_page: renders an error as a page, if the client is a browser.
        """
        self._as_page = as_page
        self._state = state
        self._reports = reports
        self._documentation = documentation or Documentation()

    def door(self) -> OpenDoor:
        """Return the door, which needs no key."""
        pages = {
            "/healthz": self._health,
            "/readyz": self._readiness,
            "/clients/<name>": self._client_library,
            "/docs": self._redirect_to_documentation,
            "/docs/": self._read_documentation,
            "/docs/<path:name>": self._read_documentation,
        }
        routes = [
            Route("GET", path, handle, type(None), costs.FREE, is_open=True)
            for path, handle in pages.items()
        ]
        report = Route("POST", f"{TLS_PATH}<token>", self._take_report, type(None), costs.REPORT)
        door = Door("pages", "", "", [*routes, report], read_nothing, write_error=write_error)
        return OpenDoor(door, admit_anyone)

    async def _health(self, _: Call[None]) -> Reply:
        """GET /healthz: the process responds."""
        return json_reply({"status": "ok"})

    async def _readiness(self, _: Call[None]) -> Reply:
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

    async def _client_library(self, call: Call[None]) -> Reply:
        """GET /clients/<file>: the client libraries of this version."""
        library = CLIENT_LIBRARIES.get(call.path["name"])
        if library is None:
            known = ", ".join(CLIENT_LIBRARIES)
            return error_reply(NOT_FOUND, f"there is no such client library; there are {known}")
        return Reply(200, library.read(), library.media_type)

    async def _take_report(self, call: Call[None]) -> Reply:
        """POST /tls-reports/<token>: a TLS report over HTTPS (RFC 8460 3)."""
        await self._reports.post(call.path["token"], call.client_ip, call.body)
        return json_reply({"status": "taken"}, ACCEPTED)

    async def _redirect_to_documentation(self, _: Call[None]) -> Reply:
        """GET /docs: redirect to the first page."""
        return redirect_to_first_page()

    async def _read_documentation(self, call: Call[None]) -> Reply:
        """GET /docs/<name>: a file of the documentation."""
        reply = self._documentation.read(call.path.get("name", ""))
        return await self._as_page(call.http, reply) if reply.status == NOT_FOUND else reply
