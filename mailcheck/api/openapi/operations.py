"""An operation of the REST API as a value: the parts of OpenAPI 3.1, kept next to a route.

The document, the readable page and the tests are all made from these.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from mailcheck.api.schemas import Schema
from mailcheck.api.shapes import JsonValue, Shape

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


class Answer(Struct, frozen=True):
    """What a status means: bodies, header fields beside those of all answers, links by name."""

    description: str
    bodies: Sequence[Body] = ()
    headers: Mapping[str, Schema] = field(default_factory=dict)
    links: Mapping[str, Link] = field(default_factory=dict)


class Operation(Struct, frozen=True):
    """One method on one path. ``answers`` come beside those that every request may get.

    ``id`` is what generators of clients name the call; ``tag`` is its group.
    """

    id: str
    tag: str
    summary: str
    description: str
    answers: Mapping[int, Answer]
    parameters: Sequence[Parameter] = ()
    body: Body | None = None
    needs_key: bool = True

    @property
    def query_names(self) -> tuple[str, ...]:
        """Name the parameters of its query; a request with another one is refused."""
        return tuple(one.name for one in self.parameters if one.place == "query")


class Described(Struct, frozen=True):
    """Where an operation stands: method, and path below the base URL, variables in braces."""

    method: str
    path: str
    operation: Operation
