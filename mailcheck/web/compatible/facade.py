"""The declarations of a facade: its routes, how near each is to the original, and its errors."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace
from twisted.web.server import Request

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.instants import Instant
from mailcheck.core.rights import Scope
from mailcheck.web.site.bodies import FORM, JSON
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.replies import Reply


class Like(Enum):
    """How near a route is to that of the product."""

    SAME = "same"
    CLOSE = "close"
    NOT_OFFERED = "not offered"


R = TypeVar("R", bound=Struct)


class NoParameters(Struct, frozen=True):
    """The request of a route that reads neither parameters nor a body."""


class Call(Struct, Generic[R], frozen=True):
    """One request within its limits, as a handler receives it.

    ``path`` has the values of the path variables. ``headers`` are by lower-case name. ``base`` is
    the URL of the facade for this client, without a slash at the end.
    """

    caller: Caller
    received_at: Instant
    request: R
    path: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    base: str = ""
    client_ip: str = ""


Handle = Callable[[Any, Call[R]], Awaitable[Reply | Stream]]
"""Handles a call: a method of the class that has the operations, which is the first argument."""


ReadKey = Callable[[Request], str]
"""Returns the API key of a request.

:raises InvalidCredentials: there is none.
"""


def read_no_key(_: Request) -> str:
    """Return no key: the listener of the facade admits its clients itself."""
    return ""


WriteError = Callable[[int, str, ExpectedFailure | None], Reply]
"""Returns an error as the clients parse it: its status, its message, and the failure behind it."""


class Route(Struct, Generic[R], frozen=True):
    """A method and a path below the base of the facade, with ``<name>`` for path variables.

    ``request`` is the class of its parameters and its JSON object together. A limited key
    needs the ``scopes``. The reference page shows ``note``, which lists the differences.
    ``write_error`` is for routes whose errors have another form than those of the facade.
    """

    method: str
    path: str
    handle: Handle[R]
    request: type[R]
    scopes: Sequence[Scope]
    like: Like = Like.SAME
    note: str = ""
    write_error: WriteError | None = None


class NotOffered(Struct, frozen=True):
    """A route that is answered with an error. ``reason`` is the message, and on the page."""

    method: str
    path: str
    reason: str
    status: int = 501

    @property
    def like(self) -> Like:
        """How near the route is to that of the product."""
        return Like.NOT_OFFERED

    @property
    def note(self) -> str:
        """The reason, for the reference page."""
        return self.reason


AnyRoute = Route[Any] | NotOffered


def with_notes(routes: Sequence[AnyRoute], notes: Mapping[str, str]) -> Sequence[AnyRoute]:
    """Return the routes; routes with a note are close to the routes of the product.

    :param notes: the notes, by method and path.
    """
    return [
        replace(one, like=Like.CLOSE, note=notes[f"{one.method} {one.path}"])
        if isinstance(one, Route) and f"{one.method} {one.path}" in notes
        else one
        for one in routes
    ]


class Facade(Struct, frozen=True):
    """The API of a product. ``name`` is the name of its guide and of its part of the reference.

    ``base`` is the path before its routes; it is empty on a listener of its own. ``reads`` are the
    media types of bodies (`media_type_of`).
    """

    name: str
    title: str
    base: str
    routes: Sequence[Route[Any] | NotOffered]
    read_key: ReadKey
    write_error: WriteError
    reads: Sequence[str] = (JSON, FORM)


SENDS_NOTHING = "mailcheck sends no captured mail to the outside"
"""Why no facade releases, forwards or replies to a message."""
