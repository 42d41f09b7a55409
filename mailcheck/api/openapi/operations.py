"""Operations of the REST API: the parts of OpenAPI 3.1 that are declared next to each route.

The OpenAPI document, the API page and the tests are generated from them.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, cast

from msgspec import Struct, field
from typing_extensions import TypeVar

from mailcheck.api.errors import Error
from mailcheck.api.requests.parsing import (
    NoParameters,
    Request,
    read_body,
    read_query,
    request_fields,
)
from mailcheck.api.shapes import JsonValue, Schema, Shape
from mailcheck.core.rights import Scope

R = TypeVar("R", bound=Request, default=NoParameters)

JSON = "application/json"


class Parameter(Struct, frozen=True):
    """A parameter in the query (``query``), path (``path``) or header (``header``).

    The schema contains the default. A request with the ``example`` of a query or path parameter
    is answered with 200 if the named object exists.
    """

    name: str
    place: str
    description: str
    schema: Schema
    example: JsonValue = None
    is_required: bool = False


BYTES = "application/octet-stream"
"""The media type for which generated clients return bytes, whatever the type of a file is."""


class Body(Struct, frozen=True):
    """A body in one media type. ``example`` is a name in ``examples.json``.

    A body has one of the shapes. Without shapes, it is an arbitrary sequence of bytes.
    """

    shapes: Sequence[type[Shape]] = ()
    example: str = ""
    media_type: str = JSON


def json_body(example: str, *shapes: type[Shape]) -> Body:
    """Create a JSON body with one of the shapes."""
    return Body(shapes, example)


class Link(Struct, frozen=True):
    """A possible next request, with values from this response (OpenAPI runtime expressions)."""

    operation: str
    parameters: Mapping[str, str]
    description: str


class Response(Struct, frozen=True):
    """A response: its bodies, links by name, and headers in addition to the common ones."""

    description: str
    bodies: Sequence[Body] = ()
    headers: Mapping[str, Schema] = field(default_factory=dict)
    links: Mapping[str, Link] = field(default_factory=dict)


def json_response(
    description: str,
    example: str,
    *shapes: type[Shape],
    headers: Mapping[str, Schema] = MappingProxyType({}),
    links: Mapping[str, Link] = MappingProxyType({}),
) -> Response:
    """Create a response with a JSON body of one of the shapes, like `json_body`."""
    return Response(description, [json_body(example, *shapes)], headers, links)


def error_response(
    description: str, example: str, headers: Mapping[str, Schema] = MappingProxyType({})
) -> Response:
    """Create the response of a failure, with one sentence as its body."""
    return json_response(description, example, Error, headers=headers)


class Operation(Struct, Generic[R], frozen=True):
    """One method on one path, with its ``answer``, which is the response with status 200.

    ``id`` names the call in generated clients; ``tag`` is its group. A key needs all ``scopes``.
    ``errors`` are the responses with other statuses, except those that all operations and all
    paths with the same variable have. ``body`` describes a body that the handler parses itself,
    ``headers`` the header fields that it reads.
    """

    id: str
    scopes: Sequence[Scope]
    tag: str
    summary: str
    description: str
    answer: Response
    errors: Mapping[int, Response] = field(default_factory=dict)
    request: type[R] = cast(Any, NoParameters)
    body: Body | None = None
    headers: Sequence[Parameter] = ()
    needs_key: bool = True

    @property
    def reads_body(self) -> bool:
        """Whether the request is parsed from the body: such a request has an example of it."""
        return bool(self.request.example)

    @property
    def query(self) -> type[Request]:
        """The type of the request that is parsed from the query."""
        return NoParameters if self.reads_body else self.request

    def read(self, query: bytes, body: bytes) -> R:
        """Parse a request.

        :raises InvalidParameter: a parameter is unknown, missing or invalid.
        """
        if not self.reads_body:
            return read_query(self.request, query)
        read_query(NoParameters, query)
        return read_body(self.request, body)

    @property
    def query_names(self) -> tuple[str, ...]:
        """The names of the query parameters."""
        return tuple(request_fields(self.query))


class PathVariable(Parameter, frozen=True, kw_only=True):
    """A parameter in the path, with the response if the object that it names does not exist."""

    not_found: Response


class DescribedOperation(Struct, frozen=True):
    """An operation with its method and its path below the base URL, with variables in braces."""

    method: str
    path: str
    operation: Operation[Any]
    path_parameters: Sequence[PathVariable] = ()

    @property
    def responses(self) -> Mapping[int, Response]:
        """The responses by status, in addition to the common errors.

        A path with variables has the 404 of the last one, which names the object.
        """
        missing = {404: self.path_parameters[-1].not_found} if self.path_parameters else {}
        return {200: self.operation.answer, **missing, **self.operation.errors}

    @property
    def parameters(self) -> Sequence[Parameter]:
        """All parameters, in the path, the query and the header."""
        query = [
            Parameter(
                name,
                "query",
                parameter.info.description or "",
                parameter.schema,
                parameter.info.example or None,
                is_required=parameter.is_required,
            )
            for name, parameter in request_fields(self.operation.query).items()
        ]
        return (*self.path_parameters, *query, *self.operation.headers)
