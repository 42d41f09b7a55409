"""What the page about the API shows: the document of OpenAPI taken apart into groups and rows."""

import json
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup
from msgspec import Struct

from mailcheck.web.dashboard.api_reference.types import (
    Row,
    code_words,
    list_fields,
    name_bounds,
    name_type,
    shorten,
)
from mailcheck.web.site.errors import NOWHERE, WRONG_METHOD

_RESPONSES = "#/components/responses/"


class ParameterRow(Struct, frozen=True):
    """A parameter of a call."""

    name: str
    place: str
    kind: Markup
    is_required: bool
    description: Markup


class AnswerRow(Struct, frozen=True):
    """A status that a call may give; ``example`` is JSON, or empty."""

    status: str
    description: Markup
    kinds: list[tuple[str, Markup]]
    headers: list[str]
    example: str


class CallView(Struct, frozen=True):
    """One operation; ``refusals`` are statuses that it shares with all others."""

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


class GroupView(Struct, frozen=True):
    """Operations that belong together."""

    name: str
    anchor: str
    description: str
    calls: list[CallView]


class SchemaView(Struct, frozen=True):
    """A type with a name."""

    name: str
    description: Markup
    rows: list[Row]


def view_groups(document: Mapping[str, Any]) -> list[GroupView]:
    """List the operations by group, in the order of the document."""
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
    """List the paragraphs about the API as a whole."""
    lines = document["info"]["description"].splitlines()
    return [code_words(line.removeprefix("* ")) for line in lines if line]


def list_limits(document: Mapping[str, Any]) -> list[str]:
    """List the header fields of every answer."""
    return list(document["components"]["headers"])


def view_responses(document: Mapping[str, Any]) -> list[tuple[str, AnswerRow]]:
    """List the answers that operations share, with their names, by status."""
    found = document["components"]["responses"]
    rows = [(name, _view_answer(name, answer)) for name, answer in found.items()]
    statuses = _statuses(document)
    return sorted(((statuses[name], row) for name, row in rows), key=lambda one: one[0])


def view_schemas(document: Mapping[str, Any]) -> list[SchemaView]:
    """List the named types, by name."""
    return [
        SchemaView(name, code_words(schema.get("description", "")), list(list_fields(schema)))
        for name, schema in sorted(document["components"]["schemas"].items())
    ]


def _statuses(document: Mapping[str, Any]) -> dict[str, str]:
    """Find out under which status the shared answers are used; two are used by none."""
    found = {"NotFound": str(NOWHERE), "MethodNotAllowed": str(WRONG_METHOD)}
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                if "$ref" in answer:
                    found[answer["$ref"].removeprefix(_RESPONSES)] = status
    return found


def _view_call(method: str, path: str, operation: Mapping[str, Any], base_url: str) -> CallView:
    responses = operation["responses"]
    return CallView(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        description=code_words(operation["description"]),
        parameters=[_view_parameter(one) for one in operation.get("parameters", ())],
        body=_kinds(operation.get("requestBody", {})),
        answers=[
            _view_answer(status, answer)
            for status, answer in responses.items()
            if "$ref" not in answer
        ],
        refusals=[status for status, answer in responses.items() if "$ref" in answer],
        command=write_command(method, base_url + path, operation),
    )


def _view_parameter(parameter: Mapping[str, Any]) -> ParameterRow:
    schema = parameter["schema"]
    bounds = name_bounds(schema)
    words = " ".join(filter(None, (parameter["description"], f"({bounds})" if bounds else "")))
    return ParameterRow(
        parameter["name"],
        parameter["in"],
        name_type(schema),
        parameter["required"],
        code_words(words),
    )


def _view_answer(status: str, answer: Mapping[str, Any]) -> AnswerRow:
    contents = answer.get("content", {}).values()
    example = next((one["example"] for one in contents if "example" in one), None)
    return AnswerRow(
        status,
        code_words(answer["description"]),
        _kinds(answer),
        [name for name, header in answer["headers"].items() if "$ref" not in header],
        "" if example is None else _indented(shorten(example)),
    )


def _kinds(described: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """List media types, each with the type of its value."""
    return [
        (media_type, name_type(content["schema"]) if "schema" in content else Markup("bytes"))
        for media_type, content in described.get("content", {}).items()
    ]


def write_command(method: str, url: str, operation: Mapping[str, Any]) -> str:
    """Write the call for a shell, with the examples of its parameters; the key is in ``$KEY``."""
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


def _indented(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
