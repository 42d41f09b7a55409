"""The REST API: access control in front of all routes."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast
from urllib.parse import unquote

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.server import Request
from werkzeug.exceptions import MethodNotAllowed

from mailcheck.api.urls import API_PATH
from mailcheck.core.accounts import Caller
from mailcheck.ports.clocks import Now
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.api.description import DOCUMENT_PATH, ApiDescription
from mailcheck.web.site.access_control import AccessControl, Denied, rate_limit_headers
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.failures import CONTENT_TOO_LARGE
from mailcheck.web.site.replies import MoreHeaders, Reply, error_reply, reply_to_failure, respond
from mailcheck.web.site.requests import (
    MAX_BODY,
    BoundedRequest,
    RequestUrls,
    header_values,
    read_body,
)
from mailcheck.web.site.routing import Path, reply_to_wrong_path, route_to

_DOCUMENT = Path("GET", DOCUMENT_PATH)


class Api:
    """Checks every request, counts it, and passes it to its route."""

    def __init__(
        self,
        access: AccessControl,
        routes: Sequence[Route[Any]],
        description: ApiDescription,
        urls: RequestUrls,
        now: Now,
    ) -> None:
        self._access = access
        self._description = description
        self._urls = urls
        self._now = now
        self._fixed = _fixed_paths(routes)
        self._routes = {Path(route.method, route.path): route for route in routes}

    def resource(self) -> IResource:
        """Return the resource to mount at the base URL."""
        return route_to(self, [*self._routes, _DOCUMENT])

    def serve(self, request: Request, path: Path, values: dict[str, str]) -> Deferred[bytes]:
        """Respond to a request for one of the paths."""
        if path == _DOCUMENT:
            return self._describe(request)
        if path.method not in self._fixed.get(_path_of(request), (path.method,)):
            return self.reject_path(request, Failure(MethodNotAllowed()))
        # Relative times in a request count from its arrival, not from the end of authentication.
        received_at = self._now()

        async def handle(caller: Caller) -> Reply | Stream:
            route = self._routes[path]
            caller.rights.require(route.operation.scopes)
            accept = ", ".join(header_values(request, b"Accept"))
            urls = self._urls.of(request)
            body = read_body(request)
            parsed = route.operation.read(request.uri.partition(b"?")[2], body)
            last_event_id = "".join(header_values(request, b"Last-Event-ID"))
            call = Call(caller, received_at, parsed, values, accept, urls, body, last_event_id)
            return await route.handle(call)

        return self._serve(request, handle)

    def _describe(self, request: Request) -> Deferred[bytes]:
        """Respond with the OpenAPI document. The request needs no key, and is not counted."""

        async def describe(headers: MoreHeaders) -> Reply:
            headers.update(rate_limit_headers(await self._access.anonymous_usage(request)))
            return self._description.reply(request, self._urls.of(request))

        return Deferred.fromCoroutine(respond(request, describe))

    def reject_path(self, request: IRequest, failure: Failure) -> Deferred[bytes]:
        """Respond to an unknown path or method. Such a request is counted like any other."""
        http_request, problem = cast(Request, request), failure.value
        fixed = self._fixed.get(_path_of(http_request))
        if isinstance(problem, MethodNotAllowed) and fixed is not None:
            problem = MethodNotAllowed(fixed)

        async def handle(caller: Caller) -> Reply:
            return reply_to_wrong_path(http_request, problem)

        return self._serve(http_request, handle)

    def _serve(
        self, request: Request, handle: Callable[[Caller], Awaitable[Reply | Stream]]
    ) -> Deferred[bytes]:
        async def admit(headers: MoreHeaders) -> Reply | Stream:
            access = await self._access.check(request)
            headers.update(rate_limit_headers(access.usage))
            if isinstance(access, Denied):
                return reply_to_failure(access.failure)
            if isinstance(request, BoundedRequest) and request.is_too_large:
                return error_reply(
                    CONTENT_TOO_LARGE, f"the request body must have at most {MAX_BODY} bytes"
                )
            return await handle(access.caller)

        return Deferred.fromCoroutine(respond(request, admit))


def _fixed_paths(routes: Sequence[Route[Any]]) -> dict[str, list[str]]:
    """Return the methods of each path without variables. A path with variables may match it too."""
    found: dict[str, list[str]] = {}
    for route in routes:
        if "<" not in route.path:
            found.setdefault(route.path, []).append(route.method)
    return {path: _with_head(methods) for path, methods in found.items()}


def _with_head(methods: list[str]) -> list[str]:
    return [*methods, "HEAD"] if "GET" in methods else methods


def _path_of(request: Request) -> str:
    """Return the decoded path below the base URL."""
    path: str = unquote(request.path.decode("ascii", "replace"))
    return path.removeprefix(API_PATH)
