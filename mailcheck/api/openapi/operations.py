"""An operation of the REST API as a value: the parts of OpenAPI 3.1, kept next to a route.

The document, the readable page and the tests are all made from these.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from mailcheck.api.requests.parsing import (
    NoParameters,
    Request,
    read_body,
    read_query,
    request_fields,
)
from mailcheck.api.shapes import JsonValue, Schema, Shape

R = TypeVar("R", bound=Request)

JSON = "application/json"


class Parameter(Struct, frozen=True):
    """A parameter of a query (``query``), a path (``path``) or a header field (``header``).

    ``default`` is said in its schema. An ``example`` of a query or path
    parameter leads to an answer of 200 where what it names exists.
    """

    name: str
    place: str
    description: str
    schema: Schema
    example: JsonValue = None
    is_required: bool = False


class Body(Struct, frozen=True):
    """A body in one media type; ``example`` is a name in the file of examples.

    It is of one of the shapes; without any it is bytes of which nothing more is promised.
    """

    shapes: Sequence[type[Shape]] = ()
    example: str = ""
    media_type: str = JSON


def json_body(example: str, *shapes: type[Shape]) -> Body:
    """Give a body that is JSON of one of some shapes."""
    return Body(shapes, example)


class Link(Struct, frozen=True):
    """What can be asked next, with values of this answer (runtime expressions of OpenAPI)."""

    operation: str
    parameters: Mapping[str, str]
    description: str


class Response(Struct, frozen=True):
    """What a status means: bodies, header fields beside those of all answers, links by name."""

    description: str
    bodies: Sequence[Body] = ()
    headers: Mapping[str, Schema] = field(default_factory=dict)
    links: Mapping[str, Link] = field(default_factory=dict)


class Operation(Struct, Generic[R], frozen=True):
    """One method on one path. ``responses`` come beside those that every request may get.

    ``id`` is what generators of clients name the call; ``tag`` is its group. ``request`` is read
    from the query, or with ``reads_body`` from the body. ``body`` describes one that the operation
    reads by itself, ``headers`` the header fields that it reads.
    """

    id: str
    tag: str
    summary: str
    description: str
    responses: Mapping[int, Response]
    request: type[R]
    body: Body | None = None
    reads_body: bool = False
    headers: Sequence[Parameter] = ()
    needs_key: bool = True

    @property
    def query(self) -> type[Request]:
        """The request that the query is."""
        return NoParameters if self.reads_body else self.request

    def read(self, query: bytes, body: bytes) -> R:
        """Return what is asked.

        :raises InvalidParameter: something in it is unknown, missing or wrong.
        """
        if not self.reads_body:
            return read_query(self.request, query)
        read_query(NoParameters, query)
        return read_body(self.request, body)

    @property
    def query_names(self) -> tuple[str, ...]:
        """The parameters of its query."""
        return tuple(request_fields(self.query))


class DescribedOperation(Struct, frozen=True):
    """Where an operation stands: method, and path below the base URL, variables in braces."""

    method: str
    path: str
    operation: Operation[Any]
    path_parameters: Sequence[Parameter] = ()

    @property
    def parameters(self) -> Sequence[Parameter]:
        """All parameters: of the path, the query and the header."""
        asked = [
            Parameter(
                name,
                "query",
                one.info.description or "",
                one.schema,
                one.info.example or None,
                one.is_required,
            )
            for name, one in request_fields(self.operation.query).items()
        ]
        return (*self.path_parameters, *asked, *self.operation.headers)
