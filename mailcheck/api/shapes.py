"""JSON as it is written, and what every shape of it is made of.

A shape is one class that renders it, describes it and gives its schema: a struct whose fields
are spelled in camelCase on the wire. Its docstring and what is `doc` of its fields are its
description. A field that may be left out has `Absent` among its types and is `ABSENT` unless it
is given.
Schemas are JSON Schema 2020-12: they name what is required and are open to more
fields, since what is added later breaks nobody.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from io import BytesIO
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, TypeAlias, Union, cast

import msgspec

CHUNK = 1_000_000
"""Characters of a text that are written at once: that takes some milliseconds."""

JsonValue = str | int | float | bool | None | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
JsonObject = Mapping[str, JsonValue]

Schema = JsonObject


def dump_json(value: object) -> bytes:
    """Write shapes and plain values as JSON in UTF-8 (RFC 8259 8.1).

    Half of a surrogate pair, which no UTF-8 has, becomes a question mark.
    """
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value)
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


async def dump_json_in_chunks(
    value: object, rest: Callable[[], Awaitable[None]], chunk: int = CHUNK
) -> bytes:
    """Write the same bytes as `dump_json`, and rest before each piece of a text that is long."""
    # Gives what it holds without a copy: to join the pieces of 20 MB took 17 ms at once.
    written = BytesIO()
    await _dump_into(written.write, value, rest, chunk)
    return written.getvalue()


async def _dump_into(
    write: Callable[[bytes], object], value: object, rest: Callable[[], Awaitable[None]], chunk: int
) -> None:
    if isinstance(value, str) and len(value) > chunk:
        write(b'"')
        for start in range(0, len(value), chunk):
            await rest()
            write(dump_json(value[start : start + chunk])[1:-1])
        write(b'"')
    elif isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        known = {schema_keywords: getattr(value, name) for name, schema_keywords in names}
        given = [(name, field) for name, field in known.items() if field is not msgspec.UNSET]
        for number, (name, field) in enumerate(given):
            write((b"," if number else b"{") + dump_json(name) + b":")
            await _dump_into(write, field, rest, chunk)
        write(b"}" if given else b"{}")
    elif isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
        for number, one in enumerate(value):
            write(b"," if number else b"[")
            await _dump_into(write, one, rest, chunk)
        write(b"]")
    else:
        write(dump_json(value))


Absent: TypeAlias = msgspec.UnsetType
ABSENT: Final = msgspec.UNSET

COMPONENT = "#/components/schemas/{name}"
"""Where a shape stands in the description of the API (OpenAPI)."""

DEFINITION = "#/$defs/{name}"
"""Where a shape stands in a schema that is complete in itself."""


class Shape(msgspec.Struct, rename="camel"):
    """The base of all shapes. A name that is a word of Python ends in ``_``: ``from_``.

    ``component_name`` is what generators of clients call it where that is not its own name.
    """

    component_name: ClassVar[str] = ""


def doc(description: str, **bounds: Any) -> msgspec.Meta:
    """Describe a field, with bounds like ``ge=0``, ``le=10``, ``min_length``, ``max_length``."""
    return msgspec.Meta(description=description, **bounds)


def schema_keywords(**keywords: JsonValue) -> msgspec.Meta:
    """Say of a field what JSON Schema has a keyword for and Python has no type."""
    return msgspec.Meta(extra_json_schema=dict(keywords))


Timestamp = Annotated[str, schema_keywords(format="date-time")]
"""A moment (docs/reference/contract.md)."""

Count = Annotated[int, msgspec.Meta(ge=0)]

Texts = tuple[str, ...]

Always = Annotated[bool, schema_keywords(const=True)]
"""True, and never anything else."""


def as_json(shape: object) -> Any:
    """Give a shape, or a list of them, as a client sees it that reads the JSON."""
    return msgspec.json.decode(dump_json(shape))


def fields_of(shape: Shape, kind: type[Shape]) -> dict[str, Any]:
    """Give those fields of a shape that another kind of shape has."""
    return {name: getattr(shape, name) for name in kind.__struct_fields__}


def with_wire_names(shape: type[Shape], known: Mapping[str, object]) -> dict[str, object]:
    """Give some fields of a shape under the names that they have on the wire."""
    names = dict(zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True))
    return {names[name]: value for name, value in known.items() if value is not ABSENT}


def combine_shapes(
    name: str, description: str, base: type[Shape], *, optional: type[Shape]
) -> type[Shape]:
    """Make a shape of the fields of one and those of another, which may be absent."""
    fields = [
        (field.name, Union[field.type, Absent], ABSENT)  # noqa: UP007 - of values, not names
        for field in msgspec.structs.fields(optional)
    ]
    made = msgspec.defstruct(name, fields, bases=(base,), namespace={"__doc__": description})
    return cast(type[Shape], made)


def component_schemas(shapes: Iterable[type[Shape]]) -> dict[str, Any]:
    """Write the schemas of shapes and of all that they hold, with references to each other."""
    _, found = msgspec.json.schema_components(shapes, ref_template=COMPONENT)
    names = {kind.__name__: component_name(kind) for kind in _kinds_of(Shape)}
    return _concise(found, COMPONENT, names)


def _kinds_of(shape: type[Shape]) -> Iterator[type[Shape]]:
    for kind in shape.__subclasses__():
        yield kind
        yield from _kinds_of(kind)


def component_name(shape: type[Shape]) -> str:
    """Give the name of a shape in the description of the API."""
    return shape.component_name or shape.__name__


def reference_to(shape: type[Shape]) -> Mapping[str, JsonValue]:
    """Refer to the schema of a shape."""
    return {"$ref": COMPONENT.format(name=component_name(shape))}


def partial_schema(shape: type[Shape], *required: str) -> msgspec.Meta:
    """Say of a field that it is what is known of a shape: only these of its fields are required."""
    schema = component_schemas([shape])[shape.__name__]
    return schema_keywords(properties=schema["properties"], required=list(required))


def schema_of(shape: type[Shape]) -> dict[str, Any]:
    """Write the schema of one shape, complete in itself."""
    (_,), found = msgspec.json.schema_components([shape], ref_template=DEFINITION)
    definitions = _concise(found, DEFINITION)
    top: dict[str, Any] = definitions.pop(shape.__name__)
    return {**top, "$defs": definitions} if definitions else top


@cache
def outline_of(shape: type[Shape]) -> Mapping[str, JsonValue]:
    """Write the schema of one shape in short: names and types of its own fields.

    A list of many such is read by who has little room for it, whether it is used or not.
    """
    schema = schema_of(shape)
    fields = {name: {"type": _type_in(one)} for name, one in schema["properties"].items()}
    return {"type": "object", "properties": fields, "required": schema["required"]}


def _type_in(schema: Mapping[str, Any]) -> Any:
    if "anyOf" in schema:
        return [_type_in(one) for one in schema["anyOf"]]
    return schema.get("type", "object")


def _concise(
    found: Mapping[str, Any], template: str, names: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Write enumerations where they are used, and null as a type; names are titles enough."""
    references = {
        template.format(name=name): template.format(name=new) for name, new in names.items()
    }
    words = {
        template.format(name=name): {"type": "string", "enum": schema["enum"]}
        for name, schema in found.items()
        if "enum" in schema
    }

    def rewrite(value: Any) -> Any:
        if isinstance(value, list):
            return [rewrite(one) for one in value]
        if not isinstance(value, dict):
            return value
        inside = {name: rewrite(one) for name, one in value.items() if name != "title"}
        reference = inside.get("$ref")
        if reference in words:
            del inside["$ref"]
            inside = {**words[reference], **inside}
        elif reference in references:
            inside["$ref"] = references[reference]
        return _with_null(inside)

    return {
        names.get(name, name): {**rewrite(schema), **_properties(schema, rewrite)}
        for name, schema in found.items()
        if "enum" not in schema
    }


def _properties(schema: Mapping[str, Any], rewrite: Callable[[Any], Any]) -> dict[str, Any]:
    """Rewrite properties by their own names: ``title`` may be one."""
    fields = schema.get("properties")
    return {"properties": {name: rewrite(one) for name, one in fields.items()}} if fields else {}


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Write "a text or null" as one type with two names."""
    choices = schema.get("anyOf", ())
    if len(choices) != 2 or choices[1] != {"type": "null"}:
        return schema
    kind = choices[0].get("type")
    if kind in (None, "object", "array"):
        return schema
    shown = {name: one for name, one in schema.items() if name != "anyOf"}
    words = {"enum": [*choices[0]["enum"], None]} if "enum" in choices[0] else {}
    return {**choices[0], "type": [kind, "null"], **words, **shown}


def string_schema(description: str = "") -> Schema:
    """Return the schema of a string."""
    return {"type": "string", **({"description": description} if description else {})}


def integer_schema(description: str, minimum: int) -> Schema:
    """Return the schema of an integer."""
    return {"type": "integer", "minimum": minimum, "description": description}


def schema_of_type(kind: Any) -> Schema:
    """Return the schema of a parameter that is the same as the field of a shape."""
    found: Schema = msgspec.json.schema(kind)
    return found
