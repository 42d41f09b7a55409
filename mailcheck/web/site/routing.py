"""Which endpoint a path leads to: compiled once in a process, whoever serves it."""

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple, Protocol, cast

from klein import Klein
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.server import Request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from mailcheck.web.site.errors import METHOD_NOT_ALLOWED, NOT_FOUND
from mailcheck.web.site.replies import Reply, error_reply

MAX_SHOWN = 200
"""Characters of a wrong path that an error repeats."""


class Path(NamedTuple):
    """What an endpoint answers: ``/inbox/messages/<id>`` with one method; GET takes HEAD too."""

    method: str
    path: str


class Server(Protocol):
    """Answers what was asked below one base URL."""

    def serve(self, request: Request, path: Path, values: dict[str, str]) -> Deferred[bytes]:
        """Answer a request; ``values`` are those of the path's variables."""

    def reject_path(self, request: IRequest, failure: Failure) -> Deferred[bytes]:
        """Answer a path or method that no endpoint has; the failure is one of Werkzeug's."""


def route_to(server: Server, paths: Iterable[Path]) -> IResource:
    """Give the resource that hands requests for these paths to the server."""
    application = _compile(tuple(paths)).__get__(server, type(server))
    resource: IResource = application.resource()
    return resource


@cache
def _compile(paths: tuple[Path, ...]) -> Klein:
    """Make the application of a class, as Klein has it: it is bound to an instance when used."""
    application = Klein()
    for path in paths:
        _add(application, path)
    application.handle_errors(HTTPException)(cast(Any, _refuse))  # Klein can't name the instance
    return application


def _add(application: Klein, path: Path) -> None:
    def endpoint(server: Server, request: Request, **values: Any) -> Deferred[bytes]:
        return server.serve(request, path, values)

    name = f"{path.method} {path.path}"
    application.route(path.path, methods=[path.method], endpoint=name)(endpoint)


def _refuse(server: Server, request: IRequest, failure: Failure) -> Deferred[bytes]:
    return server.reject_path(request, failure)


def reply_to_wrong_path(request: Request, problem: BaseException | None) -> Reply:
    """Answer a path that leads nowhere, or a method that it does not take."""
    path = request.path.decode("ascii", "replace")
    path = path if len(path) <= MAX_SHOWN else path[:MAX_SHOWN] + "..."
    if isinstance(problem, MethodNotAllowed):
        allowed = ", ".join(sorted(problem.valid_methods or ()))
        method = request.method.decode("ascii", "replace")
        return error_reply(
            METHOD_NOT_ALLOWED, f"{path} takes {allowed}, not {method}", {"Allow": allowed}
        )
    return error_reply(NOT_FOUND, f"there is nothing at {path}")
