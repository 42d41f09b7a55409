"""What programs ask for without a key: health, readiness, the client libraries."""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import cast

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.server import Request

from mailcheck.web.site.answering import answer, reply_to_wrong_path
from mailcheck.web.site.errors import NOT_READY, NOWHERE
from mailcheck.web.site.replies import Reply, error_reply, json_reply
from mailcheck.web.site.routing import Path, route_to

CLIENT_LIBRARIES = {
    "mailcheck_client.py": "text/x-python; charset=utf-8",
    "mailcheck.mjs": "text/javascript; charset=utf-8",
}


class OpenPages:
    """The pages beside the API; they are not metered."""

    def __init__(self, is_ready: Callable[[], Awaitable[bool]]) -> None:
        self._is_ready = is_ready
        self._pages: dict[Path, Callable[..., Awaitable[Reply]]] = {
            Path("GET", "/healthz"): self._health,
            Path("GET", "/readyz"): self._readiness,
            Path("GET", "/clients/<name>"): self._client_library,
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
        """GET /readyz: mail can be stored and read now."""
        if await self._is_ready():
            return json_reply({"status": "ready"})
        return error_reply(NOT_READY, "the store does not answer", {"Retry-After": "1"})

    async def _client_library(self, _: Request, name: str) -> Reply:
        """GET /clients/<file>: the client libraries of this very version."""
        media_type = CLIENT_LIBRARIES.get(name)
        if media_type is None:
            return error_reply(NOWHERE, f"there are {' and '.join(CLIENT_LIBRARIES)}")
        source = files("mailcheck.clients").joinpath(name).read_bytes()
        return Reply(200, source, media_type)

    def refuse_path(self, request: IRequest, failure: Failure) -> Deferred[bytes]:
        """Answer a path or method that no page has."""

        async def refuse(_: object) -> Reply:
            return reply_to_wrong_path(cast(Request, request), failure.value)

        return Deferred.fromCoroutine(answer(cast(Request, request), refuse))
