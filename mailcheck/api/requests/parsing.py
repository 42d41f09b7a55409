"""Parsing of requests: query strings, JSON bodies and arguments of tools.

Each request is a subclass of `Request`. Its fields are annotated with a `FieldType` (how a value is
parsed, and its JSON Schema) and a `Description` (text, range, example). The parser, the parameters
in OpenAPI and the schemas of bodies and tools all use these annotations.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, NoReturn, TypeVar, Union, get_args, get_origin
from urllib.parse import unquote_to_bytes

from msgspec import NODEFAULT, UNSET, Struct
from msgspec.structs import fields

from mailcheck.core.errors import InvalidParameter, nearest_word

MAX_SHOWN = 80
"""Maximum number of characters of an invalid value in an error."""

MAX_TEXT = 500
"""Maximum number of characters of a text."""

_REPEATED = "{name} was sent {count} times; send it once"

_SURROGATE = re.compile("[\ud800-\udfff]")

_BRIEF_KEYWORDS = ("type", "enum", "maximum", "default")

Schema = Mapping[str, Any]

R = TypeVar("R", bound="Request")


class Request(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base class of all requests.

    ``example`` is a valid body for error messages. In a body, the fields in ``may_be_null`` may be
    null.
    """

    example: ClassVar[str] = ""
    may_be_null: ClassVar[Sequence[str]] = ()

    def chosen(self, *names: str) -> dict[str, Any]:
        """Return those of the named fields that were sent: the default of others is `UNSET`."""
        return {name: value for name in names if (value := getattr(self, name)) is not UNSET}


class NoParameters(Request, frozen=True, kw_only=True):
    """A request without parameters."""


class FieldType(Struct, frozen=True, eq=False):
    """The type of a field.

    ``read`` converts a text to a value, or raises `ValueError`. ``rule`` is the error message. It
    may contain ``{name}``, ``{sent}``, ``{error}`` and the range as ``{low}`` and ``{high}``.
    ``write`` is the inverse of ``read``. ``nested`` is the class of objects in a field.
    """

    schema: Schema
    read: Callable[[str], Any] = str
    rule: str = ""
    hint_above: str = ""
    longest: int | None = MAX_TEXT
    write: Callable[[Any], Any] = lambda value: value
    nested: "type[Request] | None" = None

    @property
    def json_type(self) -> str:
        """The JSON type of the values."""
        return str(self.schema.get("type", "string"))

    def parse(
        self, name: str, text: str, low: float | None = None, high: float | None = None
    ) -> Any:
        """Parse a text.

        :raises InvalidParameter: the text is too long, invalid or out of range.
        """
        if self.longest is not None:
            _require_length(name, text, self.longest)
        hint = error = ""
        try:
            value = self.read(text)
            if (low is None or value >= low) and (high is None or value <= high):
                return value
            if high is not None and high < value <= high * 1000:
                hint = self.hint_above
        except ValueError as failure:
            error = str(failure)
        sent = shorten(text) or "an empty text"
        problem = self.rule.format(name=name, sent=sent, error=error, low=low, high=high)
        raise InvalidParameter(name, problem + hint)


class Description(Struct, frozen=True):
    """The description and range of a field. If a field has several, later values override.

    ``brief`` is the description for agents, and ``at_most`` the maximum length of a list.
    ``default`` is the default in the schema of a field whose default is computed.
    """

    description: str | None = None
    brief: str | None = None
    example: str | None = None
    low: float | None = None
    high: float | None = None
    at_most: int | None = None
    default: float | None = None


class Field(Struct, frozen=True):
    """A field of a request. ``name`` is its name in JSON and in queries."""

    attribute: str
    name: str
    kind: FieldType
    info: Description
    is_list: bool
    default: Any

    @property
    def is_required(self) -> bool:
        """Whether the field has no default."""
        return self.default is NODEFAULT

    @property
    def description(self) -> str:
        """The description in OpenAPI."""
        return self.info.description or ""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the value, without its description."""
        schema = dict(self.kind.schema)
        bounds = {"minimum": self.info.low, "maximum": self.info.high}
        schema |= {keyword: bound for keyword, bound in bounds.items() if bound is not None}
        if self.is_list:
            schema = {"type": "array", "items": schema}
            if self.info.at_most is not None:
                schema["maxItems"] = self.info.at_most
        if self.default not in (NODEFAULT, UNSET, None, (), ""):
            schema["default"] = self.default
        elif self.info.default is not None:
            schema["default"] = self.info.default
        return schema

    @property
    def brief_schema(self) -> dict[str, Any]:
        """A short JSON Schema for the list of tools. An error names the limits of a value."""
        whole = self.kind.schema if self.is_list else self.schema
        schema = {name: value for name, value in whole.items() if name in _BRIEF_KEYWORDS}
        if schema.get("default") is False:
            del schema["default"]
        schema = {"type": self.kind.json_type, **schema}
        return {"type": "array", "items": schema} if self.is_list else schema

    def write(self, value: Any) -> Any:
        """Convert a value to JSON types."""
        if self.is_list:
            return tuple(map(self.kind.write, value))
        return value if value is None else self.kind.write(value)

    def parse(self, texts: Sequence[str], wording: "Wording") -> Any:
        """Parse the texts that were sent for the field.

        :raises InvalidParameter: there are too many texts, or one of them is invalid.
        """
        at_most = self.info.at_most if self.is_list else 1
        if at_most is not None and len(texts) > at_most:
            template = wording.many if self.is_list else _REPEATED
            problem = template.format(name=self.name, count=len(texts), at_most=at_most)
            raise InvalidParameter(self.name, problem)
        low, high = self.info.low, self.info.high
        values = tuple(self.kind.parse(self.name, text, low, high) for text in texts)
        return values if self.is_list else values[0]


@cache
def request_fields(request: type[Request]) -> Mapping[str, Field]:
    """Return the fields of a request by their JSON names."""
    found = {}
    for field in fields(request):
        notes, is_list = _metadata_of(field.type)
        types = [note for note in notes if isinstance(note, FieldType)]
        if not types:
            raise TypeError(f"{request.__name__}.{field.name} has no field type")
        merged: dict[str, Any] = {}
        for note in notes:
            if isinstance(note, Description):
                merged |= {
                    name: value
                    for name in Description.__struct_fields__
                    if (value := getattr(note, name)) is not None
                }
        name, info = field.encode_name, Description(**merged)
        found[name] = Field(field.name, name, types[-1], info, is_list, default=field.default)
    return found


def _metadata_of(annotation: Any) -> tuple[list[Any], bool]:
    """Return the metadata of an annotation, innermost first, and whether it is a list."""
    notes: list[Any] = []
    is_list = False
    while (origin := get_origin(annotation)) in (Annotated, Union, UnionType, tuple):
        if origin is Annotated:
            notes = [*annotation.__metadata__, *notes]
            annotation = annotation.__origin__
            continue
        if origin is tuple:
            if any(isinstance(note, FieldType) for note in notes):
                break  # the value itself is a pair
            is_list = True
        annotation = next(member for member in get_args(annotation) if member is not NoneType)
    return notes, is_list


def arguments_schema(request: type[Request]) -> dict[str, Any]:
    """Return the JSON Schema of the arguments of a tool."""
    properties = {}
    for name, field in request_fields(request).items():
        properties[name] = field.brief_schema
        if field.info.brief:
            properties[name]["description"] = field.info.brief
    required = [name for name, field in request_fields(request).items() if field.is_required]
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def body_schemas(request: type[Request]) -> dict[str, Any]:
    """Return the JSON Schemas of a body and its nested objects by class name."""
    properties: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    for name, field in request_fields(request).items():
        schema = field.schema
        if name in request.may_be_null:
            schema["type"] = [schema["type"], "null"]
        if field.description:
            schema["description"] = field.description
        if field.is_required and schema["type"] == "array":
            schema["minItems"] = 1
        if field.kind.nested is not None:
            schema["minItems"] = 1
            nested |= body_schemas(field.kind.nested)
        properties[name] = schema
    required = [name for name, known in request_fields(request).items() if known.is_required]
    described = {
        "description": request.__doc__,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return {**nested, request.__name__: described}


class Wording(Struct, frozen=True):
    """The error messages for one way of sending a request."""

    unknown: str
    missing: str
    about: str = "{sent}"
    list: str = "an array"
    many: str = "{name} was sent {count} times; send it at most {at_most} times"


PARAMETERS = Wording(
    "{sent!r} is not a parameter of this route{meant} {parameters}",
    "{name} is missing: send {name}=...",
)
ARGUMENTS = Wording(
    "unknown argument {sent!r}{meant} The arguments are {known}",
    "the argument {name} is missing",
    many="{name} has {count} entries; send at most {at_most}",
)
BODY = Wording(
    "{sent!r} is not a field of the body, which may contain only {known}: send {example}",
    "{name} is missing: send {example}",
    "body",
    "a list",
    "{name} has {count} entries; send at most {at_most}",
)


def read_texts(
    request: type[R], texts: Mapping[str, Sequence[str]], wording: Wording = PARAMETERS
) -> R:
    """Parse a request from texts by name.

    :raises InvalidParameter: a name is unknown, a required one missing, or a value invalid.
    """
    known = request_fields(request)
    for name in texts:
        if name not in known:
            raise _unknown(request, name, wording)
    return request(**_parsed(request, texts, wording, {}))


def _parsed(
    request: type[Request],
    texts: Mapping[str, Sequence[str]],
    wording: Wording,
    known: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the values of all fields that were sent, and the already ``known`` values."""
    values = dict(known)
    for name, field in request_fields(request).items():
        sent = texts.get(name)
        if field.is_required and field.attribute not in known and not any(sent or ()):
            raise _missing(request, name, wording)
        if sent is not None:
            values[field.attribute] = field.parse(sent, wording)
    return values


class Query(Struct, frozen=True, eq=False):
    """The parameters of a page or a form. Unknown parameters are ignored."""

    parameters: Mapping[str, Sequence[str]]

    def pairs(self) -> list[tuple[str, str]]:
        """Return all names and values as they were sent."""
        return [(name, value) for name, values in self.parameters.items() for value in values]

    def text(self, name: str) -> str | None:
        """Return a parameter, or `None` if it is absent.

        :raises InvalidParameter: it was sent twice, or is too long.
        """
        values = self.parameters.get(name, ())
        if len(values) > 1:
            raise InvalidParameter(name, _REPEATED.format(name=name, count=len(values)))
        if not values:
            return None
        _require_length(name, values[0], MAX_TEXT)
        return values[0]

    def value(
        self,
        name: str,
        kind: FieldType,
        default: Any = None,
        low: float | None = None,
        high: float | None = None,
    ) -> Any:
        """Parse a parameter.

        :raises InvalidParameter: it was sent twice, or is invalid or out of range.
        """
        text = self.text(name)
        return default if text is None else kind.parse(name, text, low, high)

    def required(self, name: str) -> str:
        """Return a required parameter. An empty one counts as missing."""
        text = self.text(name)
        if not text:
            raise _missing(NoParameters, name, PARAMETERS)
        return text

    def texts(self, name: str, at_most: int, longest: int = MAX_TEXT) -> tuple[str, ...]:
        """Return all values of a parameter that may be repeated.

        :raises InvalidParameter: there are too many values, or one is too long.
        """
        values = self.parameters.get(name, ())
        if len(values) > at_most:
            problem = PARAMETERS.many.format(name=name, count=len(values), at_most=at_most)
            raise InvalidParameter(name, problem)
        for value in values:
            _require_length(name, value, longest)
        return tuple(values)


def read_query(request: type[R], query: bytes) -> R:
    """Parse a request from a query string.

    :raises InvalidParameter: a parameter is unknown, missing or invalid.
    """
    return read_texts(request, split_query(query))


def split_query(query: bytes) -> dict[str, list[str]]:
    """Return the values of a query string by name, decoded as UTF-8.

    Both ``+`` and ``%20`` are spaces.

    :raises InvalidParameter: a value is not UTF-8 or contains a NUL.
    """
    parameters: dict[str, list[str]] = {}
    for pair in query.split(b"&"):
        if not pair:
            continue
        name, _, value = pair.partition(b"=")
        parameters.setdefault(_decoded(name, b"name"), []).append(_decoded(value, name))
    return parameters


def _decoded(text: bytes, name: bytes) -> str:
    try:
        decoded = unquote_to_bytes(text.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        decoded = "\0"
    if "\0" in decoded:
        parameter = name.decode("ascii", "replace")[:MAX_SHOWN]
        raise InvalidParameter(parameter, f"{parameter} is not percent-encoded UTF-8 text")
    return decoded


def read_arguments(request: type[R], sent: Mapping[str, object]) -> R:
    """Parse the arguments of a tool. ``null`` is the same as an absent argument.

    :raises InvalidParameter: an argument is unknown, missing, of another type or invalid.
    """
    known = request_fields(request)
    texts = {}
    for name, value in sent.items():
        if name not in known:
            raise _unknown(request, name, ARGUMENTS)
        if value is not None:
            texts[name] = _as_texts(known[name], value, ARGUMENTS)
    return read_texts(request, texts, ARGUMENTS)


def read_body(request: type[R], body: bytes) -> R:
    """Parse a request from a body.

    :raises InvalidParameter: a field is unknown, missing, of another type or invalid.
    """
    return read_object(request, _parse_object(body, request.example))


def _parse_object(body: bytes, example: str) -> Mapping[str, Any]:
    """Parse a JSON object in UTF-8. ``example`` is a valid body for the error message.

    :raises InvalidParameter: the body is not a JSON object in UTF-8.
    """
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise InvalidParameter("body", f"the body is not JSON in UTF-8: send {example}") from None
    if not isinstance(value, dict):
        raise InvalidParameter("body", f"the body is not a JSON object: send {example}")
    return value


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def read_object(request: type[R], sent: Mapping[str, Any]) -> R:
    """Parse a request from a JSON object; see `read_body`."""
    known = request_fields(request)
    texts: dict[str, list[str]] = {}
    values: dict[str, Any] = {}
    for name, value in sent.items():
        if name not in known:
            raise _unknown(request, name, BODY)
        field = known[name]
        if value is None and name in request.may_be_null:
            values[field.attribute] = None
        elif value is None:
            raise _missing(request, name, BODY)
        elif field.kind.nested is not None:
            values[field.attribute] = _read_objects(field, field.kind.nested, value, request)
        else:
            texts[name] = _as_texts(field, value, BODY)
    return request(**_parsed(request, texts, BODY, values))


def _read_objects(
    field: Field, nested: type[Request], value: object, request: type[Request]
) -> tuple[Request, ...]:
    name, example = field.name, request.example
    if not isinstance(value, list) or not 1 <= len(value) <= (field.info.at_most or 1):
        problem = f"{name} must be a list of 1 to {field.info.at_most} objects: send {example}"
        raise InvalidParameter(name, problem)
    found = []
    for index, item in enumerate(value):
        entry = f"{name}[{index}]"
        if not isinstance(item, dict):
            raise InvalidParameter(name, f"{entry} must be an object: send {example}")
        try:
            found.append(read_object(nested, item))
        except InvalidParameter as problem:
            raise InvalidParameter(name, f"{entry}: {problem}") from None
    return tuple(found)


_TYPES: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "number": ("a number", lambda value: _is_number(value)),
    "integer": ("an integer", lambda value: is_integer(value)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    """Return whether a value is an integer in JSON Schema: 3.0 is an integer, true is not."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool)


def _as_texts(field: Field, value: object, wording: Wording) -> list[str]:
    """Convert a JSON value to the texts that a query would contain, one for each array item."""
    if not field.is_list:
        return [_as_text(field, value)]
    if not isinstance(value, list):
        problem = f"{field.name} must be {wording.list}, not {_name_type(value)}"
        raise InvalidParameter(field.name, problem)
    return [_as_text(field, item) for item in value]


def _as_text(field: Field, value: object) -> str:
    name = field.name
    wanted, fits = _TYPES[field.kind.json_type]
    if not fits(value):
        raise InvalidParameter(name, f"{name} must be {wanted}, not {_name_type(value)}")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return _checked_text(name, str(value))


def _checked_text(name: str, text: str) -> str:
    # JSON can contain a lone surrogate, which is not a character.
    if "\0" in text or (not text.isascii() and _SURROGATE.search(text)):
        raise InvalidParameter(name, f"{name} contains a NUL or a lone surrogate: remove it")
    return text


def _name_type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list):
        return "an array"
    return "an object" if isinstance(value, Mapping) else f"the number {value}"[:MAX_SHOWN]


def _unknown(request: type[Request], name: str, wording: Wording) -> InvalidParameter:
    known, sent = list(request_fields(request)), shorten(name)
    similar = nearest_word(sent.lower(), known)
    problem = wording.unknown.format(
        sent=sent,
        meant=f". Did you mean {similar}?" if similar else ".",
        known=", ".join(known),
        parameters=f"Its parameters are {', '.join(known)}" if known else "It has no parameters",
        example=request.example,
    )
    return InvalidParameter(wording.about.format(sent=sent), problem)


def _missing(request: type[Request], name: str, wording: Wording) -> InvalidParameter:
    return InvalidParameter(name, wording.missing.format(name=name, example=request.example))


def _require_length(name: str, text: str, longest: int) -> None:
    if len(text) > longest:
        problem = f"{name} must have at most {longest} characters; got {len(text)}"
        raise InvalidParameter(name, problem)


def shorten(text: str) -> str:
    """Shorten an invalid value for an error message."""
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
