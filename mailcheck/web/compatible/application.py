"""The application of facades: keys, scopes, limits, parsing and errors."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar, cast
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.server import Request
from werkzeug.exceptions import MethodNotAllowed

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.ports.clocks import Now
from mailcheck.web.api.access_control import AccessControl, Denied
from mailcheck.web.compatible.facade import Call, Facade, NotOffered, Route, WriteError
from mailcheck.web.site.bodies import FORM, media_type_of
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.failures import METHOD_NOT_ALLOWED, NOT_FOUND, problem_of
from mailcheck.web.site.replies import Reply, reply_to_crash, respond
from mailcheck.web.site.requests import ClientAddresses, headers_of, read_mail
from mailcheck.web.site.routing import MAX_SHOWN, Path, route_to

MAX_FIELDS = 1_000
"""Maximum number of fields of a query or a form."""

Admit = Callable[[Request], Awaitable[Caller]]
"""Returns the caller of a request within its limits.

:raises ExpectedFailure: the client has no valid key, may not connect, or is over a limit.
"""

Base = Callable[[Request], str]
"""Returns the URL below which a client reaches a facade, without a slash at the end."""


def admit_with_key(access: AccessControl, facade: Facade) -> Admit:
    """Return the admission of a facade that needs an API key."""

    async def admit(request: Request) -> Caller:
        found = await access.check(request, lambda: facade.read_key(request))
        if isinstance(found, Denied):
            raise found.failure
        return found.caller

    return admit


class Served(Struct, frozen=True):
    """A facade with the instance whose methods handle its routes, and its admission."""

    facade: Facade
    operations: object
    admit: Admit
    base: Base


class Facades:
    """Answers requests as the products do."""

    def __init__(self, served: Sequence[Served], addresses: ClientAddresses, now: Now) -> None:
        self._served = served
        self._addresses = addresses
        self._now = now
        self._routes: dict[Path, tuple[Served, Route[Any] | NotOffered]] = {
            Path(route.method, one.facade.base + route.path): (one, route)
            for one in served
            for route in one.facade.routes
        }

    def resource(self) -> IResource:
        """Return the resource to mount at the root."""
        return route_to(self, self._routes)

    def serve(self, request: Request, path: Path, values: dict[str, str]) -> Deferred[bytes]:
        """Answer a request for one of the routes."""
        served, route = self._routes[path]
        received_at = self._now()
        own = route.write_error if isinstance(route, Route) else None
        write_error = own or served.facade.write_error

        async def handle(caller: Caller) -> Reply | Stream:
            if isinstance(route, NotOffered):
                return write_error(route.status, route.reason, None)
            caller.rights.require(route.scopes)
            body = read_mail(request)
            headers = headers_of(request)
            call = Call(
                caller,
                received_at,
                read_request(
                    route.request,
                    served.facade.reads,
                    read_fields(request.uri.partition(b"?")[2]),
                    headers,
                    body,
                ),
                values,
                headers,
                body,
                served.base(request),
                self._addresses.client_ip(request),
            )
            return await route.handle(served.operations, call)

        return self._answer(request, served.admit, write_error, handle)

    def reject_path(self, request: IRequest, failure: Failure) -> Deferred[bytes]:
        """Answer a request for an unknown path or method in the format of the product."""
        http_request = cast(Request, request)
        path = http_request.path.decode("ascii", "replace")[:MAX_SHOWN]
        bases = sorted(self._served, key=lambda one: -len(one.facade.base))
        served = next((one for one in bases if path.startswith(one.facade.base)), bases[0])
        write = served.facade.write_error

        async def handle(caller: Caller) -> Reply:
            if isinstance(failure.value, MethodNotAllowed):
                allowed = ", ".join(sorted(failure.value.valid_methods or ()))
                error = write(METHOD_NOT_ALLOWED, f"{path} supports {allowed} only", None)
                return _with_headers(error, {"Allow": allowed})
            title = served.facade.title
            return write(NOT_FOUND, f"{path} is not a path of {title} in mailcheck", None)

        return self._answer(http_request, served.admit, write, handle)

    def _answer(
        self,
        request: Request,
        admit: Admit,
        write_error: WriteError,
        handle: Callable[[Caller], Awaitable[Reply | Stream]],
    ) -> Deferred[bytes]:
        async def answer(_: object) -> Reply | Stream:
            try:
                return await handle(await admit(request))
            except CancelledError:
                raise
            except ExpectedFailure as failure:
                return _refuse(write_error, failure)
            except Exception:
                crash = reply_to_crash(request)
                return write_error(crash.status, crash.problem, None)

        return Deferred.fromCoroutine(respond(request, answer))


def _refuse(write_error: WriteError, failure: ExpectedFailure) -> Reply:
    problem = problem_of(failure, 'Basic realm="mailcheck"')
    reply = write_error(problem.status, problem.sentence, problem.failure)
    return _with_headers(reply, problem.headers)


def _with_headers(reply: Reply, headers: Mapping[str, str]) -> Reply:
    return msgspec.structs.replace(reply, headers={**headers, **reply.headers})


def read_fields(encoded: bytes) -> Mapping[str, str | list[str]]:
    """Return the fields of a query or a form. A repeated field has a list of values.

    :raises InvalidParameter: there are too many fields.
    """
    try:
        fields = parse_qs(encoded.decode("utf-8", "replace"), max_num_fields=MAX_FIELDS)
    except ValueError:
        raise InvalidParameter("query", f"send at most {MAX_FIELDS:,} fields") from None
    return {name: one[0] if len(one) == 1 else one for name, one in fields.items()}


R = TypeVar("R", bound=Struct)


def read_request(
    kind: type[R],
    reads: Sequence[str],
    query: Mapping[str, str | list[str]],
    headers: Mapping[str, str],
    body: bytes,
) -> R:
    """Return the parameters and the body of a request as one Struct.

    A repeated parameter becomes a list. Names are compared without case, and `None` is the same
    as a missing value. Unknown names are ignored, as the products do.

    :param reads: the media types of bodies.
    :raises InvalidParameter: the body is not a JSON object, or a value has the wrong type.
    :raises WrongMediaType: the body has another type.
    """
    names = {one.encode_name.lower(): one.encode_name for one in msgspec.structs.fields(kind)}
    if not names:
        return kind()
    media_type = media_type_of(reads, headers.get("content-type", ""), body)
    given = _read_form(names, body) if media_type == FORM else _read_object(body)
    known = {
        names[name.lower()]: value
        for name, value in (*query.items(), *given.items())
        if name.lower() in names and value is not None
    }
    try:
        return msgspec.convert(known, kind, strict=False)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        name = where.strip("`").removeprefix("$.") or "request"
        sent = f"; you sent {str(known[name])[:100]}" if name in known else ""
        raise InvalidParameter(name, f"{name}: {what}{sent}") from None


def _read_form(names: Collection[str], body: bytes) -> Mapping[str, Any]:
    fields = read_fields(body)
    if body and not any(name.lower() in names for name in fields):
        # Without its fields, the request could mean more than the client wanted.
        raise InvalidParameter("body", "the form has no field that this route reads")
    return fields


def _read_object(body: bytes) -> Mapping[str, Any]:
    if not body.strip():
        return {}
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidParameter("body", f"the body is not JSON: {error}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidParameter("body", f"the body must be a JSON object; got {type(value)}")
    return value
