"""The words in which the tables of this folder are written: JSON Schemas, strict about types."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.validators import extend

Schema = Mapping[str, Any]

FORMATS = FormatChecker(formats=())

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# JSON Schema takes 1.0 for an integer; a client in a typed language does not.
StrictValidator = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, v: type(v) is int),
)


@FORMATS.checks("timestamp")
def is_timestamp(value: object) -> bool:
    """Return whether a text is a timestamp of the API: UTC, three decimals, ``Z``."""
    if not isinstance(value, str):
        return True
    if _TIMESTAMP.fullmatch(value) is None:
        return False
    try:
        return datetime.fromisoformat(value).tzinfo is UTC
    except ValueError:
        return False


@FORMATS.checks("calendar-date")
def is_calendar_date(value: object) -> bool:
    """Tell whether a text is a date, YYYY-MM-DD."""
    if not isinstance(value, str):
        return True
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


@FORMATS.checks("uuid-shaped")
def is_uuid_shaped(value: object) -> bool:
    """Tell whether a text has the form of a UUID."""
    return not isinstance(value, str) or _UUID.fullmatch(value) is not None


STRING: Schema = {"type": "string"}
WORD: Schema = {"type": "string", "minLength": 1}
BOOLEAN: Schema = {"type": "boolean"}
INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
OBJECT: Schema = {"type": "object"}
NULL: Schema = {"type": "null"}
TIMESTAMP: Schema = {"type": "string", "format": "timestamp"}
CALENDAR_DATE: Schema = {"type": "string", "format": "calendar-date"}
UUID: Schema = {"type": "string", "format": "uuid-shaped"}
ADDRESS: Schema = {"type": "string", "pattern": "@"}


def array(items: Schema, **more: int) -> Schema:
    """An array; ``more`` are ``minItems`` and ``maxItems``."""
    return {"type": "array", "items": items, **more}


def one_of(*values: object) -> Schema:
    """One of the values, spelled exactly so."""
    return {"enum": list(values)}


def or_null(schema: Schema) -> Schema:
    """What the schema says, or null."""
    return {"anyOf": [schema, NULL]}


def record(fields: Mapping[str, Schema], more: Mapping[str, Schema] | None = None) -> Schema:
    """An object with all of ``fields``, and any of ``more``; with nothing that is not listed.

    ``fields`` are those that the contract promises to clients.
    """
    return {
        "type": "object",
        "properties": {**fields, **(more or {})},
        "required": list(fields),
        "additionalProperties": False,
    }


def when(field: str, value: object, then: Schema, otherwise: Schema | None = None) -> Schema:
    """What must hold where a field has a value, and where it has another."""
    condition = {"properties": {field: {"const": value}}, "required": [field]}
    return {"if": condition, "then": then, **({"else": otherwise} if otherwise else {})}


def has(*names: str) -> Schema:
    """An object that has these fields."""
    return {"required": list(names)}


def lacks(*names: str) -> Schema:
    """An object that has none of these fields."""
    return {"not": {"anyOf": [{"required": [name]} for name in names]}}


def also(schema: Schema, *others: Schema) -> Schema:
    """What all of the schemas say."""
    return {**schema, "allOf": list(others)}


Rule = Callable[[Any], bool]


@dataclass(frozen=True)
class Shape:
    """A JSON body: its schema, and sentences about it that a schema can't say."""

    schema: Schema
    rules: Mapping[str, Rule]

    def problems(self, body: Any) -> Sequence[str]:
        """Say what is wrong with a body; the rules count where the schema holds."""
        validator = StrictValidator(self.schema, format_checker=FORMATS)
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(body)]
        return errors or [sentence for sentence, holds in self.rules.items() if not holds(body)]


def shape(schema: Schema, **rules: Rule) -> Shape:
    """Make a shape; a rule's name is its sentence, with underscores."""
    return Shape(schema, {name.replace("_", " "): rule for name, rule in rules.items()})


@dataclass(frozen=True)
class Bytes:
    """A body that is no JSON; ``media_type`` is a regular expression.

    What came from a mail is only for saving: a browser must not open it.
    """

    media_type: str
    is_from_mail: bool = True
