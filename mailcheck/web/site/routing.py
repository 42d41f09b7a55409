"""Routing of paths to endpoints. Each set of paths is compiled once per process."""

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

from mailcheck.web.site.failures import METHOD_NOT_ALLOWED, NOT_FOUND
from mailcheck.web.site.replies import Reply, error_reply

MAX_SHOWN = 200
"""Maximum number of characters of an unknown path in an error."""


class Path(NamedTuple):
    """A method and a path pattern, like ``/inbox/messages/<id>``. GET includes HEAD."""

    method: str
    path: str


class Server(Protocol):
    """Responds to requests below one base URL."""

    def serve(self, request: Request, path: Path, values: dict[str, str]) -> Deferred[bytes]:
        """Respond to a request; ``values`` are the values of the path variables."""

    def reject_path(self, request: IRequest, failure: Failure) -> Deferred[bytes]:
        """Respond to an unknown path or method; the failure is an exception of Werkzeug."""


def route_to(server: Server, paths: Iterable[Path]) -> IResource:
    """Return a resource that passes requests for these paths to the server."""
    application = _compile(tuple(paths)).__get__(server, type(server))
    resource: IResource = application.resource()
    return resource


@cache
def _compile(paths: tuple[Path, ...]) -> Klein:
    """Create the Klein application of a class. It is bound to an instance when it is used."""
    application = Klein()
    for path in paths:
        _add(application, path)
    # Klein's types do not describe handlers with the instance as first argument.
    application.handle_errors(HTTPException)(cast(Any, _reject))
    return application


def _add(application: Klein, path: Path) -> None:
    def endpoint(server: Server, request: Request, **values: Any) -> Deferred[bytes]:
        return server.serve(request, path, values)

    name = f"{path.method} {path.path}"
    application.route(path.path, methods=[path.method], endpoint=name)(endpoint)


def _reject(server: Server, request: IRequest, failure: Failure) -> Deferred[bytes]:
    return server.reject_path(request, failure)


def reply_to_wrong_path(request: Request, problem: BaseException | None) -> Reply:
    """Respond to an unknown path, or to a method that the path does not support."""
    path = request.path.decode("ascii", "replace")
    path = path if len(path) <= MAX_SHOWN else path[:MAX_SHOWN] + "..."
    if isinstance(problem, MethodNotAllowed):
        allowed = ", ".join(sorted(problem.valid_methods or ()))
        method = request.method.decode("ascii", "replace")
        return error_reply(
            METHOD_NOT_ALLOWED, f"{path} supports {allowed}, not {method}", {"Allow": allowed}
        )
    return error_reply(NOT_FOUND, f"the path {path} does not exist")
