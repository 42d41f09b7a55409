"""Helpers for the tables of this folder: strict JSON Schemas."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any

from tests.spec.matching import Formats, Schema, StrictSchema

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_timestamp(value: str) -> bool:
    """Return whether a text is a timestamp of the API: UTC, three decimals, ``Z``."""
    if _TIMESTAMP.fullmatch(value) is None:
        return False
    try:
        return datetime.fromisoformat(value).tzinfo is UTC
    except ValueError:
        return False


def is_calendar_date(value: str) -> bool:
    """Return whether a text is a date, YYYY-MM-DD."""
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def is_uuid_shaped(value: str) -> bool:
    """Return whether a text has the form of a UUID."""
    return _UUID.fullmatch(value) is not None


FORMATS: Formats = {
    "timestamp": is_timestamp,
    "calendar-date": is_calendar_date,
    "uuid-shaped": is_uuid_shaped,
}


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
    """Return the schema of an array; ``more`` may be ``minItems`` and ``maxItems``."""
    return {"type": "array", "items": items, **more}


def one_of(*values: object) -> Schema:
    """Return the schema of a value that is exactly one of several."""
    return {"enum": list(values)}


def or_null(schema: Schema) -> Schema:
    """Return a schema that also allows null."""
    return {"anyOf": [schema, NULL]}


def record(fields: Mapping[str, Schema], more: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with all ``fields``, any of ``more``, and no others.

    ``fields`` are those that the contract guarantees to clients.
    """
    return {
        "type": "object",
        "properties": {**fields, **(more or {})},
        "required": list(fields),
        "additionalProperties": False,
    }


def when(field: str, value: object, then: Schema, otherwise: Schema | None = None) -> Schema:
    """Return the schema of what must hold for one value of a field, and otherwise."""
    condition = {"properties": {field: {"const": value}}, "required": [field]}
    return {"if": condition, "then": then, **({"else": otherwise} if otherwise else {})}


def has(*names: str) -> Schema:
    """Return the schema of an object with these fields."""
    return {"required": list(names)}


def lacks(*names: str) -> Schema:
    """Return the schema of an object without these fields."""
    return {"not": {"anyOf": [{"required": [name]} for name in names]}}


def also(schema: Schema, *others: Schema) -> Schema:
    """Return the schema that requires all of the schemas."""
    return {**schema, "allOf": list(others)}


Rule = Callable[[Any], bool]


@dataclass(frozen=True)
class Shape:
    """A JSON body: its schema, and rules that a schema cannot express."""

    schema: Schema
    rules: Mapping[str, Rule]

    @cached_property
    def _strict(self) -> StrictSchema:
        return StrictSchema(self.schema, FORMATS)

    def problems(self, body: Any) -> Sequence[str]:
        """Return the problems of a body. The rules are checked only if the schema matches."""
        return self._strict.problems(body) or [
            sentence for sentence, holds in self.rules.items() if not holds(body)
        ]


def shape(schema: Schema, **rules: Rule) -> Shape:
    """Create a shape. The name of a rule is its sentence, with underscores."""
    return Shape(schema, {name.replace("_", " "): rule for name, rule in rules.items()})


@dataclass(frozen=True)
class Bytes:
    """A body that is not JSON. ``media_type`` is a regular expression.

    Content of mail must be a download: a browser must not open it.
    """

    media_type: str
    is_from_mail: bool = True
