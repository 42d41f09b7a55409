"""One application for all doors: routes, admission, scopes, bodies, requests and failures.

A door declares what differs between APIs: where its key is, how its requests are read, and the form
of its errors. The application does everything else, once. To add a door, see "A door" in
CONTRIBUTING.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote

from msgspec import Struct, field
from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import Map, Rule

from mailcheck.api.urls import PublicUrls
from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.errors import ConnectionDropped, ExpectedFailure, InvalidParameter, Overloaded
from mailcheck.core.identifiers import AccountId, KeyId
from mailcheck.core.instants import Instant
from mailcheck.core.rights import Scope
from mailcheck.ports.clocks import Now
from mailcheck.web.site.access_control import (
    AccessControl,
    Denied,
    api_key_of,
    rate_limit_headers,
)
from mailcheck.web.site.bodies import JSON, NOTHING_DELETED, media_type_of
from mailcheck.web.site.costs import FREE, Cost
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.failures import (
    BodyTooLarge,
    PathUnknown,
    Problem,
    WrongMethod,
    problem_of,
)
from mailcheck.web.site.likeness import Like
from mailcheck.web.site.replies import MoreHeaders, Reply, log_crash, respond
from mailcheck.web.site.requests import (
    BoundedRequest,
    ClientAddresses,
    PacedRequest,
    headers_of,
    read_body,
)
from mailcheck.web.site.similar_paths import nearest_path

MAX_SHOWN = 200
"""Maximum number of characters of an unknown path or method in an error."""

UNKNOWN_METHOD = "?"
"""A method that no route has."""

R = TypeVar("R")


class Sent(Struct, frozen=True):
    """What a request consists of before it is read. ``media_type`` is one that the route reads."""

    query: bytes
    headers: Mapping[str, str]
    body: bytes
    media_type: str


class Call(Struct, Generic[R], frozen=True):
    """One request within its limits, as a handler receives it.

    ``path`` has the values of the path variables. ``headers`` are by lower-case name. ``urls`` are
    the URLs by which this client reaches the service. ``base`` is the URL of the door for this
    client, without a slash at the end. ``http`` is the request as Twisted received it.
    """

    caller: Caller
    received_at: Instant
    request: R
    path: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    urls: PublicUrls = PublicUrls("")
    base: str = ""
    client_ip: str = ""
    http: Any = None

    @property
    def accept(self) -> str:
        """The media types that the client accepts."""
        return self.headers.get("accept", "")


WriteError = Callable[[Problem], Reply]
"""Returns a problem as the clients of a door parse it."""

Read = Callable[["Route[R]", Sent], R]
"""Returns the request of a route as its Struct.

:raises InvalidParameter: it is not valid.
"""

ReadKey = Callable[[Request], str]
"""Returns the API key of a request.

:raises InvalidCredentials: there is none.
"""

Admit = Callable[[Request, "Route[Any]", MoreHeaders], Awaitable[Caller]]
"""Returns the caller of a request within its limits. It adds headers even if it raises.

:raises ExpectedFailure: the client has no valid key, may not connect, or is over a limit.
"""


Finish = Callable[[Request, Reply], Awaitable[Reply]]
"""Returns a reply or an error as it is sent to the client of a request."""


class Route(Struct, Generic[R], frozen=True):
    """A method and a path below the base of a door, with ``<name>`` for path variables.

    ``request`` is the class of the parameters and the body together. ``cost`` is the maximum cost
    of one call. A limited key needs the ``scopes``. ``note`` is what differs from the route of the
    product. ``reads`` are the media types of bodies, if they are not those of the door. An open
    route needs no key, is not counted, and reads no body. ``write_error`` is for routes whose
    errors have another form than those of the door.
    """

    method: str
    path: str
    handle: Callable[..., Awaitable[Reply | Stream]]
    request: type[R]
    cost: Cost
    scopes: Sequence[Scope] = ()
    like: Like = Like.SAME
    note: str = ""
    reads: Sequence[str] | None = None
    is_open: bool = False
    write_error: WriteError | None = None

    @property
    def is_destructive(self) -> bool:
        """Whether the route deletes. Its requests are read strictly, so that they delete no more
        than they name (`require_known`).
        """
        return self.method == "DELETE"


class Door(Struct, frozen=True):
    """The API of a protocol or a product, as it is declared.

    ``name`` is also the name of its guide, and ``base`` the path before its routes, which is empty
    on a listener of its own. ``reads`` are the media types of bodies (`media_type_of`), and
    ``challenge`` is the value of WWW-Authenticate of a 401. With ``is_exact``, a path without
    variables has its own methods only, even if a path with variables matches it too. With
    ``allows_slash``, a path may end with a slash, except those of routes that delete: the variable
    at its end may be empty, and the path without it means all.
    """

    name: str
    title: str
    base: str
    routes: Sequence[Route[Any]]
    read: Read[Any]
    write_error: WriteError
    read_key: ReadKey = api_key_of
    reads: Sequence[str] = (JSON,)
    challenge: str = "Bearer"
    is_exact: bool = False
    allows_slash: bool = False


def read_nothing(*_: object) -> None:
    """Return no request: the handler reads the body itself."""


def no_urls(_: Request) -> PublicUrls:
    """Return no URLs, for doors whose answers contain none."""
    return PublicUrls("")


def no_base(_: Request) -> str:
    """Return no URL, for doors whose answers do not contain theirs."""
    return ""


class OpenDoor(Struct, frozen=True):
    """A door with what the daemon gives it.

    ``operations`` is the first argument of its handlers, which are methods of its class. `None`
    means that they are bound already. ``finish`` changes each reply before it is sent.
    """

    door: Door
    admit: Admit
    urls: Callable[[Request], PublicUrls] = no_urls
    base: Callable[[Request], str] = no_base
    operations: object = None
    finish: Finish | None = None


NOBODY = Caller(AccountId(""), KeyId(""), RequestLimits(0, 0))
"""The caller of a request that needs no key."""


async def admit_anyone(*_: object) -> Caller:
    """Return `NOBODY`."""
    return NOBODY


def admit_with_key(
    access: AccessControl, read_key: ReadKey, *, shows_limits: bool = False
) -> Admit:
    """Return the admission with an API key.

    :param shows_limits: every response has the headers of limits.
    """

    async def admit(request: Request, route: Route[Any], headers: MoreHeaders) -> Caller:
        if route.is_open:
            if shows_limits:
                headers.update(rate_limit_headers(await access.anonymous_usage(request)))
            return NOBODY
        found = await access.check(request, partial(read_key, request))
        if shows_limits:
            headers.update(rate_limit_headers(found.usage))
        if isinstance(found, Denied):
            raise found.failure
        return found.caller

    return admit


async def _find_nothing(*_: object) -> Reply:
    raise PathUnknown("there is no route")


NOWHERE = Route("", "", _find_nothing, type(None), FREE)
"""The route of a request without a route, which is admitted and counted like any other."""


class Path(NamedTuple):
    """A method and a path pattern, like ``/inbox/messages/<id>``. GET includes HEAD."""

    method: str
    path: str


class _Found(NamedTuple):
    """The door and the route of a request, with the values of path variables."""

    opened: OpenDoor
    route: Route[Any]
    values: Mapping[str, str]
    problem: ExpectedFailure | None = None


class Application(Resource):
    """Answers the requests to all doors of a listener.

    An unknown path is answered by the door with the longest base that the path begins with. Of
    several doors with the same base, the first one answers.
    """

    isLeaf = True

    def __init__(
        self,
        doors: Sequence[OpenDoor],
        addresses: ClientAddresses,
        now: Now,
        beside: Sequence[Path] = (),
    ) -> None:
        """Create the application.

        :param beside: paths of other applications, which an unknown path may have meant.
        """
        super().__init__()
        self._beside = beside
        self._by_base = sorted(doors, key=lambda one: -len(one.door.base))
        self.routes = [(door, route) for door in doors for route in door.door.routes]
        """Each route with its door."""
        self._addresses = addresses
        self._now = now
        self.paths = tuple(
            Path(route.method, door.door.base + route.path) for door, route in self.routes
        )
        """The method and the path of each route."""
        self._methods: dict[str, list[str]] = {}
        for (opened, _), (method, path) in zip(self.routes, self.paths, strict=True):
            if opened.door.is_exact and "<" not in path:
                methods = [method, "HEAD"] if method == "GET" else [method]
                self._methods.setdefault(path, []).extend(methods)

    def render(self, request: Request) -> int:
        """Start to answer a request. The work is cancelled if the client disconnects."""
        answering = Deferred.fromCoroutine(self._answer(request))
        request.notifyFinish().addErrback(lambda _: answering.cancel())
        return NOT_DONE_YET

    async def _answer(self, request: Request) -> None:
        is_over = False

        def end(_: object) -> None:
            nonlocal is_over
            is_over = True

        request.notifyFinish().addBoth(end)
        # Relative times in a request count from its arrival, not from the end of authentication.
        body = await respond(request, partial(self._handle, request, self._now()))
        if not is_over:
            request.write(body)
            request.finish()

    @cached_property
    def _map(self) -> Map:
        return _map_of(self.paths)

    def _find(self, request: Request) -> _Found:
        path = unquote(request.path.decode("ascii", "replace"))
        method = request.method.decode("ascii", "replace")
        own = self._methods.get(path, ())
        # A method is case-sensitive (RFC 9110 9.1), but werkzeug compares it in upper case.
        wanted = method if method == method.upper() else UNKNOWN_METHOD
        try:
            number, values = self._map.bind("").match(path, wanted)
        except MethodNotAllowed as problem:
            return self._find_none(request, path, own or problem.valid_methods or ())
        except HTTPException:
            return self._find_with_slash(path, wanted) or self._find_none(request, path)
        if own and method not in own:
            return self._find_none(request, path, own)
        opened, route = self.routes[number]
        return _Found(opened, route, values)

    def _find_with_slash(self, path: str, method: str) -> _Found | None:
        """Return the route of a path with a slash at its end, if its door allows one."""
        try:
            number, values = self._map.bind("").match(path.removesuffix("/"), method)
        except HTTPException:
            return None
        opened, route = self.routes[number]
        is_allowed = opened.door.allows_slash and not route.is_destructive
        return _Found(opened, route, values) if is_allowed else None

    def _find_none(self, request: Request, path: str, methods: Iterable[str] = ()) -> _Found:
        opened = next(
            (door for door in self._by_base if f"{path}/".startswith(f"{door.door.base}/")),
            self._by_base[-1],
        )
        shown, title = _shown_path(request), opened.door.title
        similar = None if methods else self._nearest(path)
        meant = f"; did you mean {similar}?" if similar else ""
        problem: ExpectedFailure
        if methods:
            problem = wrong_method(request, methods)
        elif title:
            problem = PathUnknown(f"{shown} is not a path of {title} in mailcheck{meant}")
        else:
            problem = PathUnknown(f"the path {shown} does not exist{meant}")
        return _Found(opened, NOWHERE, {}, problem)

    def _nearest(self, path: str) -> str | None:
        known = {path_row.path for path_row in (*self.paths, *self._beside)}
        similar = nearest_path(path, known)
        return similar if similar is None or similar.isprintable() else None

    async def _handle(
        self, request: Request, received_at: Instant, headers: MoreHeaders
    ) -> Reply | Stream:
        found = self._find(request)
        if isinstance(request, BoundedRequest) and found.problem is None:
            request.route_name = f"{found.route.method} {found.opened.door.base}{found.route.path}"
        reply = await self._reply(request, found, received_at, headers)
        if isinstance(reply, Stream) or found.opened.finish is None:
            return reply
        return await found.opened.finish(request, reply)

    async def _reply(
        self, request: Request, found: _Found, received_at: Instant, headers: MoreHeaders
    ) -> Reply | Stream:
        opened, route = found.opened, found.route
        try:
            caller = await opened.admit(request, route, headers)
            if found.problem is not None:
                raise found.problem
            caller.rights.require(route.scopes)
            call = self._read(request, found, received_at, caller)
            if opened.operations is None:
                return await route.handle(call)
            return await route.handle(opened.operations, call)
        except CancelledError:
            raise
        except ConnectionDropped:
            await _drop_connection(request)
            raise CancelledError from None
        except ExpectedFailure as failure:
            problem = problem_of(failure, opened.door.challenge)
        except Exception:
            problem = problem_of(log_crash(request))
        reply = (route.write_error or opened.door.write_error)(problem)
        # A product with statuses of its own adds the headers itself.
        more = problem.headers if reply.status == problem.status else {}
        headers = {**more, **reply.headers}
        return replace(reply, headers=headers, reference=problem.reference)

    def _read(
        self, request: Request, found: _Found, received_at: Instant, caller: Caller
    ) -> Call[Any]:
        door, route = found.opened.door, found.route
        headers = headers_of(request)
        body = b"" if route.is_open else _read_bounded(request)
        has_fields = bool(getattr(route.request, "__struct_fields__", ()))
        reads = door.reads if route.reads is None and has_fields else route.reads or ()
        if route.is_destructive and not reads and body.strip() not in (b"", b"{}"):
            raise InvalidParameter("body", f"this route reads no body; {NOTHING_DELETED}")
        media_type = media_type_of(reads, headers.get("content-type", ""), body)
        sent = Sent(request.uri.partition(b"?")[2], headers, body, media_type)
        return Call(
            caller=caller,
            received_at=received_at,
            request=door.read(route, sent),
            path=found.values,
            headers=headers,
            body=body,
            urls=found.opened.urls(request),
            base=found.opened.base(request),
            client_ip=self._addresses.client_ip(request),
            http=request,
        )


@cache
def _map_of(paths: tuple[Path, ...]) -> Map:
    """Return the compiled paths. Each set of paths is compiled once per process.

    A path with an empty segment is another path, whatever its method is.
    """
    rules = [
        Rule(path, methods=[method], endpoint=number) for number, (method, path) in enumerate(paths)
    ]
    return Map(rules, merge_slashes=False)


def wrong_method(request: Request, methods: Iterable[str]) -> WrongMethod:
    """Return the failure of a request to a path that has only these methods."""
    allowed = ", ".join(sorted(methods))
    sent = request.method.decode("ascii", "replace")[:MAX_SHOWN]
    return WrongMethod(f"{_shown_path(request)} supports {allowed}, not {sent}", allowed)


def _shown_path(request: Request) -> str:
    path = request.path.decode("ascii", "replace")
    return path if len(path) <= MAX_SHOWN else path[:MAX_SHOWN] + "..."


def _read_bounded(request: Request) -> bytes:
    """Return the body within the limit of its path.

    :raises Overloaded: too many large requests are being received.
    :raises BodyTooLarge: the body is larger than the maximum.
    """
    if isinstance(request, PacedRequest) and request.has_no_room:
        raise Overloaded("too many large requests are being received; try again later")
    if isinstance(request, BoundedRequest) and request.is_too_large:
        raise BodyTooLarge(f"the request body must have at most {request.max_body:,} bytes")
    return read_body(request)


async def _drop_connection(request: Request) -> None:
    """Close the connection without an answer. The request ends when it is closed."""
    ended: Deferred[None] = Deferred()

    def end(_: Failure | None) -> None:
        if not ended.called:
            ended.callback(None)

    request.notifyFinish().addBoth(end)
    request.channel.forceAbortClient()
    await ended
