"""JSON Schemas (2020-12) of the shapes this room renders, shared by every skin that publishes them.

Each schema is closed in what it requires and open to more fields: what is
added later breaks nobody.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

from mailcheck.wire.json_values import JsonObject, JsonValue

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


def timestamp(description: str = "") -> Schema:
    """Give the schema of a moment (DECISIONS.md section 1)."""
    return _described({"type": "string", "format": "date-time"}, description)


def choice(values: type[Enum] | Sequence[str], description: str = "") -> Schema:
    """Give the schema of a string that is one of a few; an enumeration stands for its values."""
    words = [one.value for one in values] if isinstance(values, type) else list(values)
    return _described({"type": "string", "enum": words}, description)


def always(value: JsonValue, description: str = "") -> Schema:
    """Give the schema of a value that is never another."""
    return _described({"const": value}, description)


def array_of(items: Schema, description: str = "", **bounds: int) -> Schema:
    """Give the schema of a list, with ``minItems`` or ``maxItems``."""
    return _described({"type": "array", "items": items, **bounds}, description)


def or_null(schema: Schema) -> Schema:
    """Let a schema be null too."""
    kind, words = schema.get("type"), schema.get("enum")
    if isinstance(words, Sequence):
        return {**schema, "type": [kind, "null"], "enum": [*words, None]}
    if isinstance(kind, str) and kind not in ("object", "array"):
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def record(
    fields: Mapping[str, Schema], description: str = "", optional: Sequence[str] = ()
) -> Schema:
    """Give the schema of an object with these fields."""
    required = [name for name in fields if name not in optional]
    return _described(
        {"type": "object", "properties": dict(fields), "required": required}, description
    )


def _described(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description} if description else schema
