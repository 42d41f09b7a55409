"""JSON Schemas (2020-12) of parameters: what is read from a query, a path or a tool's arguments."""

from typing import Any

import msgspec

from mailcheck.api.shapes import JsonObject

Schema = JsonObject


def text(description: str = "") -> Schema:
    """Give the schema of a string."""
    return _described({"type": "string"}, description)


def whole_number(description: str = "", **bounds: int) -> Schema:
    """Give the schema of an integer, with ``minimum``, ``maximum`` or ``default``."""
    return _described({"type": "integer", **bounds}, description)


def number(description: str = "", **bounds: float) -> Schema:
    """Give the schema of a number, with ``minimum``, ``maximum`` or ``default``."""
    return _described({"type": "number", **bounds}, description)


def boolean(description: str = "") -> Schema:
    """Give the schema of true or false."""
    return _described({"type": "boolean"}, description)


def array_of(items: Schema, description: str = "", **bounds: int) -> Schema:
    """Give the schema of a list, with ``minItems`` or ``maxItems``."""
    return _described({"type": "array", "items": items, **bounds}, description)


def like(kind: Any) -> Schema:
    """Give the schema of a parameter that is what stands in a field of a shape."""
    found: Schema = msgspec.json.schema(kind)
    return found


def without_description(schema: Schema) -> Schema:
    """Give a schema without its words, for where they stand beside it already."""
    return {name: one for name, one in schema.items() if name != "description"}


def _described(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description} if description else schema
