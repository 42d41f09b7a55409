"""The OpenAPI document in tests. Every response in a test must match it.

Objects are closed here: a response with an undocumented field fails. So the document cannot become
outdated. Clients must expect additional fields.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from jsonschema_rs import Registry

from tests.spec.matching import Formats, StrictSchema, strict
from tests.spec.shapes import is_calendar_date, is_timestamp, is_uuid_shaped

FORMATS: Formats = {
    "date-time": is_timestamp,
    "date": is_calendar_date,
    "uuid": is_uuid_shaped,
}
DOCUMENT = "urn:openapi"
"""The name of the document in references of its closed schemas."""

_RESPONSES = "#/components/responses/"
_HEADERS = "#/components/headers/"

Described = Mapping[str, Any]


class Answered(Protocol):
    """The parts of a response that are checked. Header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


@cache
def load_document() -> Described:
    """Return the OpenAPI document as a client receives it."""
    from tests.house import House, config_in_memory  # it judges its answers by this

    house = House(config_in_memory())
    document: Described = house.open("/api/v1/openapi.json").so_far.json
    house.close()
    return document


def description_problems(
    method: str, path: str | None, answer: Answered, value: Any
) -> Iterator[str]:
    """Return how a response differs from its description.

    :param path: the path in the document, below the base URL; `None` for an unknown path.
    :param value: the body if it is JSON.
    """
    document = load_document()
    response = _find_response(document, method, path, str(answer.status))
    if response is None:
        yield f"the description has no {answer.status} of {method} {path}"
        return
    yield from _header_problems(document, response, answer.headers)
    contents = response.get("content", {})
    if not contents:
        return
    media_type = answer.headers.get("content-type", "").partition(";")[0]
    content = contents.get(media_type, contents.get("*/*"))
    if content is None:
        yield f"{media_type} is not described"
    elif "schema" in content and content["schema"].get("format") != "binary" and method != "HEAD":
        for problem in described_schema(content["schema"]).problems(value):
            yield f"not as described: {problem}"


def _find_response(
    document: Described, method: str, path: str | None, status: str
) -> Described | None:
    shared = document["components"]["responses"]
    methods = document["paths"].get(path, {})
    operation = methods.get("get" if method == "HEAD" else method.lower())
    if operation is None:
        wrong = {"405": "MethodNotAllowed"} if methods else {"404": "NotFound"}
        found: Described | None = shared.get({**_refusals(), **wrong}.get(status, ""))
        return found
    response: Described | None = operation["responses"].get(status)
    if response is not None and "$ref" in response:
        response = shared[response["$ref"].removeprefix(_RESPONSES)]
    return response


@cache
def _refusals() -> dict[str, str]:
    """Return the names of the common error responses by status."""
    return {
        status: response["$ref"].removeprefix(_RESPONSES)
        for methods in load_document()["paths"].values()
        for operation in methods.values()
        for status, response in operation["responses"].items()
        if "$ref" in response
    }


def _header_problems(
    document: Described, response: Described, headers: Mapping[str, str]
) -> Iterator[str]:
    for name, header in response.get("headers", {}).items():
        if "$ref" in header:
            header = document["components"]["headers"][header["$ref"].removeprefix(_HEADERS)]
        sent = headers.get(name.lower())
        if sent is None:
            yield f"{name} is described and not sent"
            continue
        value = int(sent) if header["schema"]["type"] == "integer" else sent
        for problem in described_schema(header["schema"]).problems(value):
            yield f"{name} is not as described: {problem}"


_COMPILED: dict[int, StrictSchema] = {}


def described_schema(schema: Described) -> StrictSchema:
    """Compile a part of the document, once. Its objects have no unlisted fields."""
    if id(schema) not in _COMPILED:
        _COMPILED[id(schema)] = StrictSchema(closed(schema), FORMATS, _components())
    return _COMPILED[id(schema)]


@cache
def _components() -> Registry:
    schemas = closed(load_document()["components"]["schemas"])
    return Registry([(DOCUMENT, {"components": {"schemas": strict(schemas)}})])


def closed(schema: Any) -> Any:
    """Return a schema whose objects have no unlisted fields."""
    if isinstance(schema, Mapping):
        inside = {name: closed(one) for name, one in schema.items()}
        if isinstance(schema.get("$ref"), str):
            inside["$ref"] = DOCUMENT + schema["$ref"]
        if schema.get("type") == "object" and schema.get("properties"):
            inside.setdefault("additionalProperties", False)
        return inside
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return [closed(one) for one in schema]
    return schema


@cache
def described_path(path: str) -> str | None:
    """Return the path in the document that matches a decoded path below the base URL."""
    document = load_document()
    if path in document["paths"]:
        return path
    for described in document["paths"]:
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(described))
        if re.fullmatch(pattern, path):
            found: str = described
            return found
    return None
