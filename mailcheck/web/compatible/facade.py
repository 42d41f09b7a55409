"""Declarations of the doors of other products, and lenient reading of their requests."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct, inspect
from msgspec.structs import fields, replace
from twisted.web.server import Request

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.rights import Scope
from mailcheck.operations.inbox.release_mail import ReleaseMail
from mailcheck.web.site.application import Door, ReadKey, Route, Sent, WriteError
from mailcheck.web.site.bodies import FORM, JSON, decode_json, require_known
from mailcheck.web.site.costs import FREE, Cost
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.failures import NOT_IMPLEMENTED, RefusedAsProduct
from mailcheck.web.site.likeness import Like
from mailcheck.web.site.replies import Reply

SENDS_NOTHING = "mailcheck sends no captured mail to the outside"
"""Why no facade forwards or replies to a message, or releases it without `[release]`."""

MAX_FIELDS = 1_000
"""Maximum number of fields of a query or a form."""

R = TypeVar("R", bound=Struct)

Row = tuple[str, str, Callable[..., Awaitable[Reply | Stream]], type[Struct]]
"""The method and the path of a route, its handler, and the class of its requests."""


_NESTED = (inspect.StructType, inspect.CollectionType)


class NoParameters(Struct, frozen=True):
    """The request of a route that reads neither parameters nor a body."""


def read_no_key(_: Request) -> str:
    """Return no key: the listener of the facade admits its clients itself."""
    return ""


def make_facade(
    name: str,
    title: str,
    base: str,
    routes: Sequence[Route[Any]],
    read_key: ReadKey,
    write_error: WriteError,
    reads: Sequence[str] = (JSON, FORM),
) -> Door:
    """Return the door of a product, whose requests are read leniently."""
    return Door(
        name,
        title,
        base,
        routes,
        read_lenient,
        write_error=write_error,
        read_key=read_key,
        reads=reads,
        challenge='Basic realm="mailcheck"',
        allows_slash=True,
    )


def declare(scopes: Sequence[Scope], cost: Cost, *rows: Row) -> Sequence[Route[Any]]:
    """Return the routes that have the same maximum cost and need the same scopes."""
    return [Route(*row, cost, scopes=scopes) for row in rows]


def not_offered(
    method: str, path: str, reason: str, status: int = NOT_IMPLEMENTED
) -> Route[NoParameters]:
    """Return a route that is answered with an error.

    :param reason: the message, which is also on the reference page.
    """

    async def refuse(*_: object) -> Reply:
        raise RefusedAsProduct(reason, status)

    return Route(method, path, refuse, NoParameters, FREE, like=Like.NOT_OFFERED, note=reason)


def require_release(release: ReleaseMail, status: int) -> None:
    """Refuse to send a mail, as `not_offered` does, if the operator does not allow its release.

    :raises RefusedAsProduct: the operator does not allow it.
    """
    if not release.is_on:
        raise RefusedAsProduct(SENDS_NOTHING, status)


def release_note(status: int, more: str = "") -> str:
    """Return the note of a route that releases a mail."""
    return f"only if the operator sets `[release]`, and {status} otherwise{more}"


def with_notes(routes: Sequence[Route[Any]], notes: Mapping[str, str]) -> Sequence[Route[Any]]:
    """Return the routes; routes with a note are close to the routes of the product.

    :param notes: the notes, by method and path.
    """
    return [
        replace(route, like=Like.CLOSE, note=note)
        if (note := notes.get(f"{route.method} {route.path}"))
        else route
        for route in routes
    ]


def read_fields(encoded: bytes, *, keeps_empty: bool = False) -> Mapping[str, str | list[str]]:
    """Return the fields of a query or a form. A repeated field has a list of values.

    :raises InvalidParameter: there are too many fields.
    """
    text = encoded.decode("utf-8", "replace")
    try:
        found = parse_qs(text, keep_blank_values=keeps_empty, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise InvalidParameter("query", f"send at most {MAX_FIELDS:,} fields") from None
    return {name: value[0] if len(value) == 1 else value for name, value in found.items()}


def read_lenient(route: Route[R], sent: Sent) -> R:
    """Return the parameters and the body of a request as one Struct.

    A repeated parameter becomes a list. Names are compared without case, and `None` is the same
    as a missing value, also in the values of a body. Unknown names are ignored, as the products do,
    except by routes that delete.

    :raises InvalidParameter: the body is not a JSON object, or a value has the wrong type.
    """
    kind = route.request
    names = {field.encode_name.lower(): field.encode_name for field in fields(kind)}
    if route.like is Like.NOT_OFFERED or (not names and not route.is_destructive):
        return kind()
    read_form = partial(read_fields, keeps_empty=route.is_destructive)
    body = read_form(sent.body) if sent.media_type == FORM else _read_object(sent.body)
    given = {name.lower(): value for name, value in (*read_form(sent.query).items(), *body.items())}
    if route.is_destructive:
        require_known(given, names)
    elif sent.media_type == FORM and sent.body and not any(name.lower() in names for name in body):
        # Without its fields, the request could mean more than the client wanted.
        raise InvalidParameter("body", "the form has no field that this route reads")
    known = _named(_shape_of(kind), given)
    try:
        return msgspec.convert(known, kind, strict=False)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        name = where.strip("`").removeprefix("$.") or "request"
        got = f"; you sent {str(known[name])[:100]}" if name in known else ""
        raise InvalidParameter(name, f"{name}: {what}{got}") from None


@cache
def _shape_of(kind: type[Struct]) -> inspect.Type:
    return inspect.type_info(kind)


def _named(shape: inspect.Type, value: Any) -> Any:
    """Return a value with the names that its class has, without fields that are `None`.

    The keys of a mapping stay as they are: they are no names of fields.
    """
    if isinstance(shape, inspect.UnionType):
        shape = next((kind for kind in shape.types if isinstance(kind, _NESTED)), shape)
    if isinstance(shape, inspect.StructType) and isinstance(value, dict):
        known = {field.encode_name.lower(): field for field in shape.fields}
        return {
            known[name.lower()].encode_name: _named(known[name.lower()].type, item)
            for name, item in value.items()
            if name.lower() in known and item is not None
        }
    if isinstance(shape, inspect.CollectionType) and isinstance(value, list):
        return [_named(shape.item_type, item) for item in value]
    return value


def _read_object(body: bytes) -> Mapping[str, Any]:
    if not body.strip():
        return {}
    try:
        value = decode_json(body)
    except ValueError as error:
        raise InvalidParameter("body", f"the body is not JSON: {error}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidParameter("body", f"the body must be a JSON object; got {type(value)}")
    return value
