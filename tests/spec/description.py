"""The OpenAPI document in tests. Every response in a test must match it.

Objects are closed here: a response with an undocumented field fails. So the document cannot become
outdated. Clients must expect additional fields.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from jsonschema import Draft202012Validator, FormatChecker

from tests.spec.matching import StrictSchema
from tests.spec.shapes import is_calendar_date, is_timestamp, is_uuid_shaped

FORMATS = FormatChecker(formats=())
FORMATS.checks("date-time")(is_timestamp)
FORMATS.checks("date")(is_calendar_date)
FORMATS.checks("uuid")(is_uuid_shaped)

_RESPONSES = "#/components/responses/"
_SCHEMAS = "#/components/schemas/"
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
    from tests.house import House, config_in_memory, result_of  # it judges its answers by this

    house = House(config_in_memory())
    pending = house.open("/api/v1/openapi.json")
    assert pending.is_answered
    body = house.stub.content(pending.answers[0])
    house.stub.flush()
    document: Described = json.loads(result_of(body))
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
        for error in _strict(content["schema"]).errors(value):
            yield f"not as described: {error.json_path}: {error.message[:300]}"


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
        for error in _header_validator(json.dumps(header["schema"])).iter_errors(value):
            yield f"{name} is not as described: {error.message}"


@cache
def _header_validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema))


_STRICT: dict[int, StrictSchema] = {}


def _strict(schema: Described) -> StrictSchema:
    """Compile a part of the document, once."""
    if id(schema) not in _STRICT:
        whole = {**closed(schema), "components": closed_components()}
        _STRICT[id(schema)] = StrictSchema(whole, FORMATS)
    return _STRICT[id(schema)]


@cache
def closed_components() -> Described:
    """Return the closed schemas of the document by name, for the remaining references."""
    schemas = load_document()["components"]["schemas"]
    return {"schemas": {name: closed(one, (_SCHEMAS + name,)) for name, one in schemas.items()}}


def closed(schema: Any, within: tuple[str, ...] = ()) -> Any:
    """Return a schema whose objects have no unlisted fields.

    References are replaced by their schemas, because the library resolves them for each value.
    Only a reference to an enclosing schema (``within``) remains.
    """
    if isinstance(schema, Mapping):
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in within:
            rest = {name: one for name, one in schema.items() if name != "$ref"}
            return closed({**_component(reference), **rest}, (*within, reference))
        inside = {name: closed(one, within) for name, one in schema.items()}
        if schema.get("type") == "object" and schema.get("properties"):
            inside.setdefault("additionalProperties", False)
        return inside
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return [closed(one, within) for one in schema]
    return schema


def _component(reference: str) -> Described:
    schema: Described = load_document()["components"]["schemas"][reference.removeprefix(_SCHEMAS)]
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
