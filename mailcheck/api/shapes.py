"""Shapes: the classes that define the JSON objects of the API.

A shape is a struct that is serialized with camelCase names. It also provides the JSON Schema
(2020-12) and the descriptions of OpenAPI: its docstring describes the object, and `doc` a field.
A field that may be absent includes `Absent` in its type and defaults to `ABSENT`.
The schemas list the required fields and allow additional ones, so that a later version can add
fields without breaking clients.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from io import BytesIO
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import msgspec

from mailcheck.core.instants import Instant, format_instant

CHUNK = 1_000_000
"""Maximum number of characters that are encoded at once. That takes a few milliseconds."""

JsonValue = str | int | float | bool | None | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
JsonObject = Mapping[str, JsonValue]

Schema = JsonObject

S = TypeVar("S", bound="Shape")


def dump_json(value: object) -> bytes:
    """Encode shapes and plain values as JSON in UTF-8 (RFC 8259 8.1).

    A lone surrogate, which UTF-8 cannot encode, becomes a question mark.
    """
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value)
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


async def dump_json_in_chunks(
    value: object, pause: Callable[[], Awaitable[None]], chunk: int = CHUNK
) -> bytes:
    """Return the same bytes as `dump_json`. Await ``pause`` before each chunk of a long string."""
    # `BytesIO.getvalue` makes no copy. Joining the chunks of 20 MB blocked the reactor for 17 ms.
    written = BytesIO()
    await _dump_into(written.write, value, pause, chunk)
    return written.getvalue()


async def _dump_into(
    write: Callable[[bytes], object],
    value: object,
    pause: Callable[[], Awaitable[None]],
    chunk: int,
) -> None:
    if isinstance(value, str) and len(value) > chunk:
        write(b'"')
        for start in range(0, len(value), chunk):
            await pause()
            write(dump_json(value[start : start + chunk])[1:-1])
        write(b'"')
    elif isinstance(value, msgspec.Struct | dict):
        present = _fields_of(value)
        for number, (name, field) in enumerate(present.items()):
            write((b"," if number else b"{") + dump_json(str(name)) + b":")
            await _dump_into(write, field, pause, chunk)
        write(b"}" if present else b"{}")
    elif isinstance(value, list | tuple) and value and isinstance(value[0], msgspec.Struct | dict):
        for number, one in enumerate(value):
            write(b"," if number else b"[")
            await _dump_into(write, one, pause, chunk)
        write(b"]")
    else:
        write(dump_json(value))


def _fields_of(value: msgspec.Struct | dict[Any, Any]) -> Mapping[str, Any]:
    """Return the fields of a JSON object by their names in JSON."""
    if isinstance(value, dict):
        return value
    names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
    fields = {json_name: getattr(value, name) for name, json_name in names}
    return {name: field for name, field in fields.items() if field is not msgspec.UNSET}


Absent: TypeAlias = msgspec.UnsetType
ABSENT: Final = msgspec.UNSET

COMPONENT = "#/components/schemas/{name}"
"""Reference to the schema of a shape in the OpenAPI document."""

DEFINITION = "#/$defs/{name}"
"""Reference to the schema of a shape in a self-contained schema."""


class Shape(msgspec.Struct, rename="camel"):
    """Base class of all shapes. A field named like a Python keyword ends in ``_``: ``from_``.

    ``component_name`` is the name in OpenAPI, and so in generated clients, if it is not the name
    of the class.
    """

    component_name: ClassVar[str] = ""


def doc(description: str, **bounds: Any) -> msgspec.Meta:
    """Describe a field, optionally with bounds such as ``ge=0``, ``le=10`` or ``max_length=5``."""
    return msgspec.Meta(description=description, **bounds)


def schema_keywords(**keywords: JsonValue) -> msgspec.Meta:
    """Add keywords to the JSON Schema of a field that its Python type cannot express."""
    return msgspec.Meta(extra_json_schema=dict(keywords))


_MOMENT = schema_keywords(format="date-time")

Timestamp = Annotated[str, _MOMENT]
"""An instant: ISO 8601 in UTC with milliseconds."""

_DATE = msgspec.Meta(extra={"is": "the date of an instant"})

Date = Annotated[str, _DATE]
"""The date of an instant (UTC), like 2026-11-30."""

Count = Annotated[int, msgspec.Meta(ge=0)]

Texts = tuple[str, ...]

Always = Annotated[bool, doc("always true")]
"""True. Generators of clients do not all accept the keyword ``const`` for it."""


def as_json(shape: object) -> Any:
    """Return a shape, or a list of shapes, as the plain values that a client decodes from JSON."""
    return msgspec.json.decode(dump_json(shape))


def shape_from(kind: type[S], source: object, /, **others: object) -> S:
    """Return a shape with the attributes of a value that have the names of its fields.

    The field ``valid`` may be the attribute ``is_valid``. An instant becomes a timestamp or a
    date, an empty text null where the field can be null, and `None` absent where it can only be
    absent. Values inside are rendered by the names of their attributes.

    :param others: the fields that differ from the attributes.
    :raises msgspec.ValidationError: a required field is missing, or a field has another type.
    """
    values = {}
    for name, json_name, kinds in _kinds_of_fields(kind):
        if name in others:
            value = others[name]
        else:
            value = getattr(source, name, getattr(source, f"is_{name}", ABSENT))
        if isinstance(value, int) and _MOMENT in kinds:
            value = format_instant(Instant(value))
        if isinstance(value, int) and _DATE in kinds:
            value = format_instant(Instant(value))[:10]
        if value == "" and {str, NoneType} <= kinds:
            value = None
        if value is not ABSENT and (value is not None or NoneType in kinds):
            values[json_name] = value
    return msgspec.convert(values, kind, from_attributes=True)


@cache
def _kinds_of_fields(shape: type[Shape]) -> tuple[tuple[str, str, frozenset[object]], ...]:
    """Return the name, the JSON name, and the alternative types with their notes of each field."""
    return tuple(
        (field.name, field.encode_name, frozenset(_alternatives(field.type)))
        for field in msgspec.structs.fields(shape)
    )


def _alternatives(kind: object) -> Iterator[object]:
    if get_origin(kind) not in (Annotated, Union, UnionType):
        yield kind
        return
    for part in get_args(kind):
        yield from _alternatives(part)


def timestamp(instant: Instant | None) -> str | None:
    """Return an instant as a timestamp, and `None` as `None`."""
    return None if instant is None else format_instant(instant)


def with_wire_names(shape: type[Shape], known: Mapping[str, object]) -> dict[str, object]:
    """Return some fields of a shape by their JSON names."""
    names = dict(zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True))
    return {names[name]: value for name, value in known.items() if value is not ABSENT}


def combine_shapes(
    name: str, description: str, base: type[Shape], *, optional: type[Shape]
) -> type[Shape]:
    """Create a shape with the fields of ``base`` and, as optional fields, those of ``optional``."""
    fields = [
        (field.name, Union[field.type, Absent], ABSENT)  # noqa: UP007 - of values, not names
        for field in msgspec.structs.fields(optional)
    ]
    shape = msgspec.defstruct(name, fields, bases=(base,), namespace={"__doc__": description})
    return cast(type[Shape], shape)


def component_schemas(shapes: Iterable[type[Shape]]) -> dict[str, Any]:
    """Return the schemas of shapes, and of all shapes in them, which refer to each other."""
    _, found = msgspec.json.schema_components(shapes, ref_template=COMPONENT)
    names = {kind.__name__: component_name(kind) for kind in _kinds_of(Shape)}
    return _concise(found, COMPONENT, names)


def _kinds_of(shape: type[Shape]) -> Iterator[type[Shape]]:
    for kind in shape.__subclasses__():
        yield kind
        yield from _kinds_of(kind)


def component_name(shape: type[Shape]) -> str:
    """Return the name of a shape in the OpenAPI document."""
    return shape.component_name or shape.__name__


def reference_to(shape: type[Shape]) -> Mapping[str, JsonValue]:
    """Return a reference to the schema of a shape."""
    return {"$ref": COMPONENT.format(name=component_name(shape))}


def partial_schema(shape: type[Shape], *required: str) -> msgspec.Meta:
    """Describe a field that contains part of a shape: only ``required`` fields are required."""
    schema = component_schemas([shape])[shape.__name__]
    return schema_keywords(properties=schema["properties"], required=list(required))


def schema_of(shape: type[Shape]) -> dict[str, Any]:
    """Return the self-contained schema of one shape."""
    (_,), found = msgspec.json.schema_components([shape], ref_template=DEFINITION)
    definitions = _concise(found, DEFINITION)
    top: dict[str, Any] = definitions.pop(shape.__name__)
    return {**top, "$defs": definitions} if definitions else top


@cache
def outline_of(shape: type[Shape]) -> Mapping[str, JsonValue]:
    """Return a short schema of one shape: the names of its own fields.

    It is used in the list of MCP tools, which takes up the context of a model in every session.
    """
    return {"type": "object", "properties": {name: {} for name in schema_of(shape)["properties"]}}


def _concise(
    found: Mapping[str, Any], template: str, names: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Inline enumerations, write null as a type, and drop titles, which repeat the names."""
    references = {
        template.format(name=name): template.format(name=new) for name, new in names.items()
    }
    enums = {
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
        if reference in enums:
            del inside["$ref"]
            inside = {**enums[reference], **inside}
        elif reference in references:
            inside["$ref"] = references[reference]
        return _with_null(inside)

    return {
        names.get(name, name): {**rewrite(schema), **_properties(schema, rewrite)}
        for name, schema in found.items()
        if "enum" not in schema
    }


def _properties(schema: Mapping[str, Any], rewrite: Callable[[Any], Any]) -> dict[str, Any]:
    """Rewrite the schemas of properties, and keep a property that is named ``title``."""
    fields = schema.get("properties")
    return {"properties": {name: rewrite(one) for name, one in fields.items()}} if fields else {}


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Write the union of a simple type and null as one schema with two types."""
    choices = schema.get("anyOf", ())
    if len(choices) != 2 or choices[1] != {"type": "null"}:
        return schema
    kind = choices[0].get("type")
    if kind in (None, "object", "array"):
        return schema
    shown = {name: one for name, one in schema.items() if name != "anyOf"}
    enum = {"enum": [*choices[0]["enum"], None]} if "enum" in choices[0] else {}
    return {**choices[0], "type": [kind, "null"], **enum, **shown}


def string_schema(description: str = "") -> Schema:
    """Return the schema of a string."""
    return {"type": "string", **({"description": description} if description else {})}


def integer_schema(description: str, minimum: int) -> Schema:
    """Return the schema of an integer."""
    return {"type": "integer", "minimum": minimum, "description": description}


def schema_of_type(kind: Any) -> Schema:
    """Return the schema of a parameter that has the same type as a field of a shape."""
    found: Schema = msgspec.json.schema(kind)
    return found
