"""The routes of the API behind one gate."""

from collections.abc import Awaitable, Callable, Sequence
from typing import cast
from urllib.parse import unquote

from klein import Klein
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.server import Request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from mailcheck.core.accounts import Caller
from mailcheck.operations.ports import Now
from mailcheck.web.api.admission import Gate, Refused, usage_headers
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.api.description import DOCUMENT_PATH, ApiDescription
from mailcheck.web.site.answering import MoreHeaders, answer, reply_to_wrong_path
from mailcheck.web.site.errors import reply_to_failure
from mailcheck.web.site.replies import Reply, error_reply
from mailcheck.web.site.request_bodies import MAX_BODY, BoundedRequest
from mailcheck.web.site.request_headers import header_values
from mailcheck.web.site.request_urls import RequestUrls
from mailcheck.wire.parameters import parse_query
from mailcheck.wire.urls import API_PATH


class Api:
    """Admits every request, counts it, and hands it to its route."""

    def __init__(
        self,
        gate: Gate,
        routes: Sequence[Route],
        description: ApiDescription,
        urls: RequestUrls,
        now: Now,
    ) -> None:
        self._gate = gate
        self._description = description
        self._urls = urls
        self._now = now
        self._klein = Klein()
        self._fixed = _fixed_paths(routes)
        for route in routes:
            self._add(route)
        self._klein.route(DOCUMENT_PATH, methods=["GET"])(self._describe)
        self._klein.handle_errors(HTTPException)(self._refuse_path)

    def resource(self) -> IResource:
        """Give what is mounted at the base URL."""
        resource: IResource = self._klein.resource()
        return resource

    def _add(self, route: Route) -> None:
        def endpoint(request: Request, **path: str) -> Deferred[bytes]:
            if route.method not in self._fixed.get(_path_of(request), (route.method,)):
                return self._refuse_path(request, Failure(MethodNotAllowed()))
            # Before the gate takes its time: mail that comes meanwhile is after the request.
            asked_at = self._now()

            async def handle(caller: Caller) -> Reply:
                query = parse_query(request.uri.partition(b"?")[2])
                accept = ", ".join(header_values(request, b"Accept"))
                urls = self._urls.of(request)
                body = b"" if request.content is None else request.content.read()
                return await route.handle(Call(caller, asked_at, query, path, accept, urls, body))

            return self._serve(request, handle)

        name = f"{route.method} {route.path}"
        self._klein.route(route.path, methods=[route.method], endpoint=name)(endpoint)

    def _describe(self, request: Request) -> Deferred[bytes]:
        """Give the description of the API: to anyone, and counted for nobody."""

        async def describe(headers: MoreHeaders) -> Reply:
            headers.update(usage_headers(await self._gate.look_at_address(request)))
            return self._description.reply(request, self._urls.of(request))

        return Deferred.fromCoroutine(answer(request, describe))

    def _refuse_path(self, request: IRequest, failure: Failure) -> Deferred[bytes]:
        """Answer a path or method that no route has; it is counted like any request."""
        asked, problem = cast(Request, request), failure.value
        fixed = self._fixed.get(_path_of(asked))
        if isinstance(problem, MethodNotAllowed) and fixed is not None:
            problem = MethodNotAllowed(fixed)

        async def handle(caller: Caller) -> Reply:
            return reply_to_wrong_path(asked, problem)

        return self._serve(asked, handle)

    def _serve(
        self, request: Request, handle: Callable[[Caller], Awaitable[Reply]]
    ) -> Deferred[bytes]:
        async def admit(headers: MoreHeaders) -> Reply:
            admission = await self._gate.admit(request)
            headers.update(usage_headers(admission.usage))
            if isinstance(admission, Refused):
                return reply_to_failure(admission.failure)
            if isinstance(request, BoundedRequest) and request.is_too_large:
                return error_reply(413, f"a request body has at most {MAX_BODY} bytes")
            return await handle(admission.caller)

        return Deferred.fromCoroutine(answer(request, admit))


def _fixed_paths(routes: Sequence[Route]) -> dict[str, list[str]]:
    """Give the methods of each path without variables: one with variables may match it too."""
    found: dict[str, list[str]] = {}
    for route in routes:
        if "<" not in route.path:
            found.setdefault(route.path, []).append(route.method)
    return {path: _with_head(methods) for path, methods in found.items()}


def _with_head(methods: list[str]) -> list[str]:
    return [*methods, "HEAD"] if "GET" in methods else methods


def _path_of(request: Request) -> str:
    """Give the path below the base URL, decoded."""
    path: str = unquote(request.path.decode("ascii", "replace"))
    return path.removeprefix(API_PATH)
