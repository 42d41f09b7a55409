"""Whether a JSON value matches a schema: the answer of jsonschema, in a fraction of its time.

Nearly every response of the tests matches. So the library only finds the errors of the others.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.validators import extend

Schema = Mapping[str, Any]
Check = Callable[[Any], bool]

# JSON Schema accepts 1.0 as an integer; a client in a typed language does not.
StrictValidator = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, v: type(v) is int),
)

ANNOTATIONS = {
    *("components", "contentEncoding", "default", "description", "else", "then"),
    "x-enum-varnames",
}
"""Keywords that allow every value. Another keyword includes ``then`` and ``else``."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}


class StrictSchema:
    """A schema, with the function that it is compiled to."""

    def __init__(self, schema: Schema, formats: FormatChecker) -> None:
        self._library = StrictValidator(schema, format_checker=formats)
        self.matches = Compiler(schema, formats).compile(schema)
        """Whether a value matches."""

    def errors(self, value: Any) -> list[Any]:
        """Return the errors of the library."""
        return [] if self.matches(value) else list(self._library.iter_errors(value))


class Compiler:
    """Compiles the schemas of one document.

    :raises KeyError: a schema has an unknown keyword.
    """

    def __init__(self, root: Schema, formats: FormatChecker) -> None:
        self._root = root
        self._formats = formats
        self._referred: dict[str, Check] = {}
        self._keywords: Mapping[str, Callable[..., Check]] = {
            **_LIMITS,
            "type": self._type,
            "properties": self._properties,
            "additionalProperties": self._additional,
            "propertyNames": self._names,
            "items": self._items,
            "anyOf": self._any,
            "allOf": self._all,
            "not": self._not,
            "if": self._condition,
            "$ref": self._reference,
            "enum": self._enum,
            "format": self._format,
            "const": lambda wanted, schema: self._enum([wanted], schema),
        }

    def compile(self, schema: Schema | bool) -> Check:
        """Return the function of a schema."""
        if isinstance(schema, bool):
            return lambda value: bool(schema)
        checks = [
            self._keywords[name](wanted, schema)
            for name, wanted in schema.items()
            if name not in ANNOTATIONS
        ]
        return checks[0] if len(checks) == 1 else lambda value: all(one(value) for one in checks)

    def _type(self, wanted: str | list[str], _: Schema) -> Check:
        names = [wanted] if isinstance(wanted, str) else wanted
        types = {kind for name in names for kind in _TYPES[name]}
        return lambda value: type(value) in types

    def _properties(self, wanted: Mapping[str, Schema], _: Schema) -> Check:
        checks = {name: self.compile(one) for name, one in wanted.items()}
        return _if(dict, lambda value: all(checks[k](v) for k, v in value.items() if k in checks))

    def _additional(self, wanted: Schema | bool, schema: Schema) -> Check:
        known, check = set(schema.get("properties", ())), self.compile(wanted)
        return _if(dict, lambda value: all(check(v) for k, v in value.items() if k not in known))

    def _names(self, wanted: Schema, _: Schema) -> Check:
        check = self.compile(wanted)
        return _if(dict, lambda value: all(check(name) for name in value))

    def _items(self, wanted: Schema, _: Schema) -> Check:
        check = self.compile(wanted)
        return _if(list, lambda value: all(check(one) for one in value))

    def _any(self, wanted: list[Schema], _: Schema) -> Check:
        checks = [self.compile(one) for one in wanted]
        return lambda value: any(one(value) for one in checks)

    def _all(self, wanted: list[Schema], _: Schema) -> Check:
        checks = [self.compile(one) for one in wanted]
        return lambda value: all(one(value) for one in checks)

    def _not(self, wanted: Schema, _: Schema) -> Check:
        check = self.compile(wanted)
        return lambda value: not check(value)

    def _condition(self, wanted: Schema, schema: Schema) -> Check:
        condition = self.compile(wanted)
        then, otherwise = (self.compile(schema.get(name, True)) for name in ("then", "else"))
        return lambda value: then(value) if condition(value) else otherwise(value)

    def _reference(self, wanted: str, _: Schema) -> Check:
        def check(value: Any) -> bool:
            if wanted not in self._referred:
                part: Any = self._root
                for step in wanted.removeprefix("#/").split("/"):
                    part = part[step]
                self._referred[wanted] = self.compile(part)
            return self._referred[wanted](value)

        return check

    def _enum(self, wanted: list[Any], _: Schema) -> Check:
        # In Python, True equals 1.
        return lambda value: any(
            one == value and isinstance(one, bool) == isinstance(value, bool) for one in wanted
        )

    def _format(self, wanted: str, _: Schema) -> Check:
        return lambda value: self._formats.conforms(value, wanted)


def _if(kind: type, check: Check) -> Check:
    """Return the check of a keyword that is for values of one type."""
    return lambda value: not isinstance(value, kind) or check(value)


def _limit(kind: type, compare: Callable[[Any, Any], bool]) -> Callable[..., Check]:
    return lambda wanted, _: _if(kind, lambda value: compare(value, wanted))


def _number(compare: Callable[[Any, Any], bool]) -> Callable[..., Check]:
    return lambda wanted, _: lambda value: type(value) not in (int, float) or compare(value, wanted)


_LIMITS: Mapping[str, Callable[..., Check]] = {
    "required": _limit(dict, lambda value, wanted: all(name in value for name in wanted)),
    "pattern": _limit(str, lambda value, wanted: re.search(wanted, value) is not None),
    "minLength": _limit(str, lambda value, wanted: len(value) >= wanted),
    "maxLength": _limit(str, lambda value, wanted: len(value) <= wanted),
    "minItems": _limit(list, lambda value, wanted: len(value) >= wanted),
    "maxItems": _limit(list, lambda value, wanted: len(value) <= wanted),
    "minProperties": _limit(dict, lambda value, wanted: len(value) >= wanted),
    "minimum": _number(lambda value, wanted: value >= wanted),
    "maximum": _number(lambda value, wanted: value <= wanted),
}
