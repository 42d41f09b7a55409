"""JSON Schemas in words: the type of a value, and the fields of an object as rows."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape
from msgspec import Struct

_PREFIX = "#/components/schemas/"

_CODE = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")

BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
    "maxLength": "at most {} characters",
    "default": "default {}",
}


class Row(Struct, frozen=True):
    """A field of an object; of an object within it, ``name`` has dots."""

    name: str
    kind: Markup
    is_required: bool
    description: Markup


def code_words(text: str) -> Markup:
    """Show what stands between backticks as code, and between pairs of stars bold."""
    shown = str(escape(text))
    return Markup(_BOLD.sub(r"<b>\1</b>", _CODE.sub(r"<code>\1</code>", shown)))  # noqa: S704


def name_type(schema: Mapping[str, Any]) -> Markup:
    """Name the type of a value; a schema with a name is a link to it."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_PREFIX)
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    if "anyOf" in schema:
        return Markup(" or ").join(name_type(one) for one in schema["anyOf"])
    if "const" in schema:
        return _code(schema["const"])
    if "enum" in schema:
        return Markup(", ").join(_code(one) for one in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return Markup("array of {}").format(name_type(schema.get("items", {})))
    words = [kind] if isinstance(kind, str) else list(kind)
    if schema.get("format"):
        words[0] += f" ({schema['format']})"
    return Markup(" or ").join(words)


def name_bounds(schema: Mapping[str, Any]) -> str:
    """Say what a value is limited to, and what stands in for one that is not given."""
    said = [text.format(_plain(schema[name])) for name, text in BOUNDS.items() if name in schema]
    return ", ".join(said)


def list_fields(schema: Mapping[str, Any], prefix: str = "") -> Iterator[Row]:
    """List the fields of an object, and those of objects in it that have no name of their own."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        bounds = name_bounds(field)
        words = "; ".join(filter(None, (field.get("description", ""), bounds)))
        yield Row(prefix + name, name_type(field), name in required, code_words(words))
        inner, ending = _inner(field)
        yield from list_fields(inner, f"{prefix}{name}{ending}.")


def _inner(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    if schema.get("type") == "array":
        inner, ending = _inner(schema.get("items", {}))
        return inner, f"[]{ending}"
    for one in schema.get("anyOf", ()):
        if "properties" in one:
            return one, ""
    return schema, ""


def _code(value: Any) -> Markup:
    return Markup("<code>{}</code>").format("null" if value is None else _quoted(value))


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else f"{value:,}"


def shorten(value: Any, at_most: int = 2) -> Any:
    """Leave out the rest of long lists: an example is read, not counted."""
    if isinstance(value, Mapping):
        return {name: shorten(one, at_most) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        shown = [shorten(one, at_most) for one in value[:at_most]]
        left = len(value) - at_most
        return [*shown, f"... {left} more"] if left > 0 else shown
    return value
