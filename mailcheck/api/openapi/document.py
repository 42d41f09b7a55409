"""The OpenAPI 3.1 document, generated from the operations of the routes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

from mailcheck.api.openapi.operations import (
    BYTES,
    JSON,
    Body,
    DescribedOperation,
    Link,
    Parameter,
    Response,
)
from mailcheck.api.requests.parsing import Request, body_schemas
from mailcheck.api.shapes import (
    COMPONENT,
    JsonObject,
    JsonValue,
    Schema,
    Shape,
    component_schemas,
    reference_to,
)
from mailcheck.core.rights import Scope

OPENAPI_VERSION = "3.1.1"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

SECURITY_SCHEMES: JsonObject = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "`Authorization: Bearer <key>`; create keys on the page Keys",
    },
    "apiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "the same key in another header; send only one of the two",
    },
}

SECURITY: JsonValue = [{"bearer": []}, {"apiKey": []}]


class OpenApiDocument(Shape):
    """A document as the OpenAPI Specification 3.1 defines it."""

    openapi: str
    info: dict[str, Any]
    json_schema_dialect: str
    servers: tuple[dict[str, Any], ...]
    external_docs: dict[str, Any]
    security: tuple[dict[str, Any], ...]
    tags: tuple[dict[str, Any], ...]
    paths: dict[str, Any]
    components: dict[str, Any]


class DocumentMetadata(Struct, frozen=True):
    """The parts of the document that do not belong to one operation."""

    title: str
    version: str
    description: str
    tags: Mapping[str, str]
    common_errors: Mapping[int, Response]
    unrouted_errors: Mapping[int, Response]
    headers: Mapping[str, Schema]
    examples: Mapping[str, JsonValue]


class DocumentWriter(Struct, frozen=True, eq=False):
    """Generates the document. Parts that operations share become components."""

    frame: DocumentMetadata

    def write_head(self, base_url: str, page: str) -> JsonObject:
        """Return the part that depends on the URL of the service; ``page`` documents the API."""
        frame = self.frame
        return {
            "openapi": OPENAPI_VERSION,
            "info": {
                "title": frame.title,
                "version": frame.version,
                "description": frame.description,
            },
            "jsonSchemaDialect": DIALECT,
            "servers": [{"url": base_url}],
            "externalDocs": {"url": page, "description": "the same for people"},
        }

    def write_rest(self, operations: Iterable[DescribedOperation]) -> JsonObject:
        """Return the part that is the same for every URL of the service."""
        frame = self.frame
        described = list(operations)
        responses = {**frame.common_errors, **frame.unrouted_errors}
        paths: dict[str, dict[str, JsonValue]] = {}
        for operation in described:
            paths.setdefault(operation.path, {})[operation.method.lower()] = self._operation(
                operation
            )
        return {
            "security": SECURITY,
            "tags": [{"name": name, "description": text} for name, text in frame.tags.items()],
            "paths": paths,
            "components": {
                "securitySchemes": SECURITY_SCHEMES,
                "headers": {name: _header(schema) for name, schema in frame.headers.items()},
                "responses": {
                    _response_name(status): self._answer(answer)
                    for status, answer in responses.items()
                },
                "schemas": {
                    **component_schemas(_shapes_of(responses, described)),
                    **_schemas_of_bodies(described),
                },
            },
        }

    def _operation(self, described: DescribedOperation) -> JsonObject:
        operation = described.operation
        common_errors = self.frame.common_errors if operation.needs_key else {}
        responses: dict[int, JsonValue] = {
            status: {"$ref": f"#/components/responses/{_response_name(status)}"}
            for status in common_errors
        }
        responses |= {
            status: self._answer(answer) for status, answer in described.responses.items()
        }
        shown: dict[str, JsonValue] = {
            "operationId": operation.id,
            "tags": [operation.tag],
            "summary": operation.summary,
            "description": operation.description + _needed_scopes(operation.scopes),
        }
        if described.parameters:
            shown["parameters"] = [_parameter(parameter) for parameter in described.parameters]
        if operation.reads_body:
            shown["requestBody"] = {
                "required": True,
                "content": {JSON: _example_of(operation.request)},
            }
        elif operation.body is not None:
            shown["requestBody"] = {"required": True, "content": self._content([operation.body])}
        if not operation.needs_key:
            shown["security"] = []
        return {
            **shown,
            "responses": {str(status): responses[status] for status in sorted(responses)},
        }

    def _answer(self, answer: Response) -> JsonObject:
        common = {name: {"$ref": f"#/components/headers/{name}"} for name in self.frame.headers}
        own = {name: _header(schema) for name, schema in answer.headers.items()}
        shown: dict[str, JsonValue] = {
            "description": answer.description,
            "headers": {**common, **own},
        }
        if answer.bodies:
            shown["content"] = self._content(answer.bodies)
        if answer.links:
            shown["links"] = {name: _link(link) for name, link in answer.links.items()}
        return shown

    def _content(self, bodies: Iterable[Body]) -> JsonObject:
        return {body.media_type: self._media_type(body) for body in bodies}

    def _media_type(self, body: Body) -> JsonObject:
        if not body.shapes:
            is_bytes = body.media_type == BYTES
            return {"schema": {"type": "string", "format": "binary"}} if is_bytes else {}
        references = [reference_to(shape) for shape in body.shapes]
        shown: dict[str, JsonValue] = {
            "schema": references[0] if len(references) == 1 else {"anyOf": references}
        }
        if body.example in self.frame.examples:
            shown["example"] = self.frame.examples[body.example]
        return shown


def _needed_scopes(scopes: Sequence[Scope]) -> str:
    if not scopes:
        return ""
    named = " and ".join(f"`{scope}`" for scope in scopes)
    return f" A limited key needs the scope {named}."


def _shapes_of(
    shared: Mapping[int, Response], described: Iterable[DescribedOperation]
) -> Iterable[type[Shape]]:
    """Return the shapes of all bodies, without duplicates."""
    responses = [*shared.values()]
    bodies = []
    for operation in described:
        responses += operation.responses.values()
        bodies += [] if operation.operation.body is None else [operation.operation.body]
    bodies += [body for answer in responses for body in answer.bodies]
    return dict.fromkeys(shape for body in bodies for shape in body.shapes)


def _schemas_of_bodies(described: Iterable[DescribedOperation]) -> dict[str, Any]:
    schemas: dict[str, Any] = {}
    for operation in described:
        if operation.operation.reads_body:
            schemas |= body_schemas(operation.operation.request)
    return schemas


def _example_of(request: type[Request]) -> JsonObject:
    reference = COMPONENT.format(name=request.__name__)
    return {"schema": {"$ref": reference}, "example": json.loads(request.example)}


def _parameter(parameter: Parameter) -> JsonObject:
    shown: dict[str, JsonValue] = {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "required": parameter.is_required,
        "schema": parameter.schema,
    }
    if parameter.example is not None:
        shown["example"] = parameter.example
    return shown


def _header(schema: Schema) -> JsonObject:
    description = schema.get("description", "")
    bare = {name: value for name, value in schema.items() if name != "description"}
    return {"description": description, "required": True, "schema": bare}


def _link(link: Link) -> JsonObject:
    return {
        "operationId": link.operation,
        "parameters": link.parameters,
        "description": link.description,
    }


_RESPONSE_NAMES = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    413: "ContentTooLarge",
    415: "UnsupportedMediaType",
    429: "TooManyRequests",
    500: "InternalServerError",
    503: "ServiceUnavailable",
}


def _response_name(status: int) -> str:
    return _RESPONSE_NAMES[status]


@cache
def load_examples() -> Mapping[str, JsonValue]:
    """Load the examples by name. They are recorded responses of the service."""
    text = files("mailcheck.api.openapi").joinpath("examples.json").read_text("utf-8")
    found: Mapping[str, JsonValue] = json.loads(text)
    return found
