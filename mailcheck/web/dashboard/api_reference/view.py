"""Operations and types of the OpenAPI document, prepared for the templates."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup
from msgspec import Struct

from mailcheck.web.dashboard.rendering import format_number, render_code
from mailcheck.web.site.failures import METHOD_NOT_ALLOWED, NOT_FOUND

_PREFIX = "#/components/schemas/"

BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minItems": "{} or more entries",
    "maxItems": "at most {} entries",
    "maxLength": "at most {} characters",
    "default": "default {}",
}


class Row(Struct, frozen=True):
    """A field of an object. The name of a nested field contains dots."""

    name: str
    kind: Markup
    is_required: bool
    description: Markup


def describe_type(schema: Mapping[str, Any]) -> Markup:
    """Describe the type of a schema. A named schema is a link to its description."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_PREFIX)
        return Markup('<a href="types#schema-{0}">{0}</a>').format(name)
    if "anyOf" in schema:
        return Markup(" or ").join(describe_type(member) for member in schema["anyOf"])
    if "const" in schema:
        return _code(schema["const"])
    if "enum" in schema:
        return Markup(", ").join(_code(value) for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return Markup("array of {}").format(describe_type(schema.get("items", {})))
    words = [kind] if isinstance(kind, str) else list(kind)
    if schema.get("format"):
        words[0] += f" ({schema['format']})"
    return Markup(" or ").join(words)


def describe_bounds(schema: Mapping[str, Any]) -> str:
    """Describe the limits and the default of a value."""
    bounds = [text.format(_plain(schema[name])) for name, text in BOUNDS.items() if name in schema]
    return ", ".join(bounds)


def list_fields(schema: Mapping[str, Any], prefix: str = "") -> Iterator[Row]:
    """Yield the fields of an object, with the fields of nested objects without a name."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        bounds = describe_bounds(field)
        words = "; ".join(filter(None, (field.get("description", ""), bounds)))
        yield Row(prefix + name, describe_type(field), name in required, render_code(words))
        inner, ending = _inner(field)
        yield from list_fields(inner, f"{prefix}{name}{ending}.")


def _inner(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    if schema.get("type") == "array":
        inner, ending = _inner(schema.get("items", {}))
        return inner, f"[]{ending}"
    for member in schema.get("anyOf", ()):
        if "properties" in member:
            return member, ""
    return schema, ""


def _code(value: Any) -> Markup:
    words = "null" if value is None else _plain(value)
    return Markup("<code>{}</code>").format(f'"{words}"' if isinstance(value, str) else words)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    return format_number(int(value) if value == int(value) else value)


def shorten(value: Any, at_most: int = 2) -> Any:
    """Shorten the lists of an example, and append the number of entries left out."""
    if isinstance(value, Mapping):
        return {name: shorten(item, at_most) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        shown = [shorten(item, at_most) for item in value[:at_most]]
        left = len(value) - at_most
        return [*shown, f"... {left} more"] if left > 0 else shown
    return value


_RESPONSES = "#/components/responses/"


class ParameterRow(Row, frozen=True):
    """A parameter of a call, with an example for the form that tries the call."""

    place: str
    example: str


class AnswerRow(Struct, frozen=True):
    """A response status of a call. ``example`` is JSON or empty."""

    status: str
    description: Markup
    kinds: list[tuple[str, Markup]]
    headers: list[str]
    example: str


class CallView(Struct, frozen=True):
    """One operation. ``refusals`` are the error statuses that all operations share.

    ``example`` is an example of its JSON body, or empty.
    """

    id: str
    method: str
    path: str
    summary: str
    description: Markup
    parameters: list[ParameterRow]
    body: list[tuple[str, Markup]]
    answers: list[AnswerRow]
    refusals: list[str]
    command: str
    example: str


class GroupView(Struct, frozen=True):
    """A group of operations."""

    name: str
    anchor: str
    description: str
    calls: list[CallView]


class SchemaView(Struct, frozen=True):
    """A named type."""

    name: str
    description: Markup
    rows: list[Row]


def view_groups(document: Mapping[str, Any]) -> list[GroupView]:
    """Return the operations by group, in the order of the document."""
    base_url = document["servers"][0]["url"]
    calls: dict[str, list[CallView]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            view = _view_call(method.upper(), path, operation, base_url)
            calls[operation["tags"][0]].append(view)
    return [
        GroupView(
            tag["name"],
            tag["name"].lower().replace(" ", "-"),
            tag["description"],
            calls[tag["name"]],
        )
        for tag in document["tags"]
    ]


def view_prose(document: Mapping[str, Any]) -> list[Markup]:
    """Return the paragraphs about the API as a whole."""
    lines = document["info"]["description"].splitlines()
    return [render_code(line.removeprefix("* ")) for line in lines if line]


def list_limits(document: Mapping[str, Any]) -> list[str]:
    """Return the names of the header fields that every response has."""
    return list(document["components"]["headers"])


def view_responses(document: Mapping[str, Any]) -> list[tuple[str, AnswerRow]]:
    """Return the responses that operations share, with their statuses, sorted by status."""
    # No operation refers to these two responses.
    statuses = {"NotFound": str(NOT_FOUND), "MethodNotAllowed": str(METHOD_NOT_ALLOWED)}
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                if "$ref" in answer:
                    statuses[answer["$ref"].removeprefix(_RESPONSES)] = status
    found = document["components"]["responses"]
    rows = ((statuses[name], _view_answer(name, answer)) for name, answer in found.items())
    return sorted(rows, key=lambda one: one[0])


def view_schemas(document: Mapping[str, Any]) -> list[SchemaView]:
    """Return the named types, sorted by name."""
    return [
        SchemaView(name, render_code(schema.get("description", "")), list(list_fields(schema)))
        for name, schema in sorted(document["components"]["schemas"].items())
    ]


def _view_call(method: str, path: str, operation: Mapping[str, Any], base_url: str) -> CallView:
    responses = operation["responses"]
    return CallView(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        description=render_code(operation["description"]),
        parameters=[_view_parameter(parameter) for parameter in operation.get("parameters", ())],
        body=_kinds(operation.get("requestBody", {})),
        answers=[
            _view_answer(status, answer)
            for status, answer in responses.items()
            if "$ref" not in answer
        ],
        refusals=[status for status, answer in responses.items() if "$ref" in answer],
        command=write_command(method, base_url + path, operation),
        example=_example_of(operation),
    )


def _example_of(operation: Mapping[str, Any]) -> str:
    """Return an example of the JSON body, or an empty text."""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return "" if body is None else json.dumps(body["example"], ensure_ascii=False, indent=2)


def _view_parameter(parameter: Mapping[str, Any]) -> ParameterRow:
    schema = parameter["schema"]
    bounds = describe_bounds(schema)
    words = " ".join(filter(None, (parameter["description"], f"({bounds})" if bounds else "")))
    kind, is_required = describe_type(schema), parameter["required"]
    return ParameterRow(
        parameter["name"],
        kind,
        is_required,
        render_code(words),
        place=parameter["in"],
        example=str(parameter.get("example", "")),
    )


def _view_answer(status: str, answer: Mapping[str, Any]) -> AnswerRow:
    contents = answer.get("content", {}).values()
    example = next((content["example"] for content in contents if "example" in content), None)
    return AnswerRow(
        status,
        render_code(answer["description"]),
        _kinds(answer),
        [name for name, header in answer["headers"].items() if "$ref" not in header],
        "" if example is None else json.dumps(shorten(example), ensure_ascii=False, indent=2),
    )


def _kinds(described: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """Return the media types, each with the type of its value."""
    return [
        (media_type, describe_type(content["schema"]) if "schema" in content else Markup("bytes"))
        for media_type, content in described.get("content", {}).items()
    ]


def write_command(method: str, url: str, operation: Mapping[str, Any]) -> str:
    """Return a curl command of the call with example parameters. The key is in ``$KEY``."""
    query = {}
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            value = quote(str(parameter["example"]), safe="")
            url = url.replace(f"{{{parameter['name']}}}", value)
        elif "example" in parameter:
            query[parameter["name"]] = parameter["example"]
    if query:
        url += f"?{urlencode(query)}"
    words = ["curl -s"]
    if method != "GET":
        words.append(f"-X {method}")
    if operation.get("security") != []:
        words.append('-H "X-API-Key: $KEY"')
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None:
        text = json.dumps(body["example"], ensure_ascii=False)
        words += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(text)}"]
    return " ".join([*words, shlex.quote(url)])
