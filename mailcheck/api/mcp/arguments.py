"""Arguments of a tool call to values; what does not fit is explained in a sentence.

JSON's types are checked by the tool's own input schema; ranges, tags, cursors
and dates are read by the same code as REST's query parameters.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mailcheck.api.parameters import Query
from mailcheck.api.request_bodies import is_whole_number
from mailcheck.api.schemas import Schema
from mailcheck.api.shapes import JsonObject
from mailcheck.core.errors import InvalidParameter

MAX_NAME = 80
"""Characters of an unknown name that an error repeats."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: dict[object, tuple[str, Callable[[object], bool]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "number": ("a number", _is_number),
    "integer": ("a whole number", is_whole_number),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "array": ("an array", lambda value: isinstance(value, list)),
}


def arguments_schema(properties: Mapping[str, Schema], required: Sequence[str] = ()) -> Schema:
    """Give the schema of a tool's arguments; others than these are refused."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def read_arguments(given: Mapping[str, object], input_schema: JsonObject) -> Query:
    """Check arguments against a tool's input schema; ``null`` is the same as not given.

    :raises InvalidParameter: an argument is unknown, missing or of another type.
    """
    properties, required = input_schema["properties"], input_schema.get("required", [])
    assert isinstance(properties, Mapping)
    assert isinstance(required, list)
    texts: dict[str, list[str]] = {}
    for name, value in given.items():
        schema = properties.get(name)
        if not isinstance(schema, Mapping):
            known = ", ".join(properties)
            raise InvalidParameter(
                name[:MAX_NAME], f"unknown argument {name[:MAX_NAME]!r}; there are: {known}"
            )
        if value is not None:
            texts[name] = _as_texts(name, value, schema)
    for name in required:
        if name not in texts:
            raise InvalidParameter(str(name), f"the argument {name} is missing")
    return Query(texts)


def _as_texts(name: str, value: object, schema: Mapping[str, Any]) -> list[str]:
    """Give a value as a query would have it; each of an array is a value of its own."""
    wanted, fits = _TYPES[schema["type"]]
    if not fits(value):
        raise InvalidParameter(name, f"{name} is {wanted}, not {_name_type(value)}")
    if isinstance(value, list):
        return [text for one in value for text in _as_texts(name, one, schema["items"])]
    return [_as_text(name, value)]


def _as_text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    text = str(value)
    if "\0" in text or not _is_unicode(text):
        raise InvalidParameter(name, f"{name} holds characters that no text has")
    return text


def _is_unicode(text: str) -> bool:
    """Tell whether there is no half of a surrogate pair, which JSON can write alone."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _name_type(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list):
        return "an array"
    return "an object" if isinstance(value, Mapping) else f"the number {value}"[:MAX_NAME]
