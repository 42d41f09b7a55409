"""An operation of the REST API as a value: the parts of OpenAPI 3.1, kept next to a route.

The document, the readable page and the tests are all made from these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mailcheck.wire.json_values import JsonValue
from mailcheck.wire.schemas import Schema
from mailcheck.wire.shapes import Shape

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Parameter:
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


@dataclass(frozen=True, slots=True)
class Body:
    """A body in one media type; ``example`` is a name in the file of examples.

    It is of one of the shapes; without any it is bytes of which nothing more is promised.
    """

    shapes: Sequence[type[Shape]] = ()
    example: str = ""
    media_type: str = JSON


def json_body(example: str, *shapes: type[Shape]) -> Body:
    """Give a body that is JSON of one of some shapes."""
    return Body(shapes, example)


@dataclass(frozen=True, slots=True)
class Link:
    """What can be asked next, with values of this answer (runtime expressions of OpenAPI)."""

    operation: str
    parameters: Mapping[str, str]
    description: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a status means: bodies, header fields beside those of all answers, links by name."""

    description: str
    bodies: Sequence[Body] = ()
    headers: Mapping[str, Schema] = field(default_factory=dict)
    links: Mapping[str, Link] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operation:
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


@dataclass(frozen=True, slots=True)
class Described:
    """Where an operation stands: method, and path below the base URL, variables in braces."""

    method: str
    path: str
    operation: Operation
