"""The compiled schemas answer as jsonschema does."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.spec.description import FORMATS as DESCRIBED_FORMATS
from tests.spec.description import closed_components
from tests.spec.matching import Compiler, Schema, StrictSchema, StrictValidator
from tests.spec.routes import ROUTES
from tests.spec.shapes import FORMATS, Shape

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    1,
    1.0,
    -1,
    1.5,
    10**9,
    "",
    "x",
    "a@b",
    [],
    [{}],
    {},
    {"x": 1},
)
DEEPEST = 12


def promised() -> Iterator[Schema]:
    """Yield each schema of the tables once."""
    given = (bodies for route in ROUTES for bodies in route.bodies.values())
    shapes = (
        one for bodies in given for one in (bodies if isinstance(bodies, tuple) else (bodies,))
    )
    schemas = {json.dumps(one.schema): one.schema for one in shapes if isinstance(one, Shape)}
    yield from schemas.values()


def drawn(schema: Schema | bool, draw: Random, depth: int = 0) -> Any:
    """Return a value that matches most parts of a schema."""
    if isinstance(schema, bool) or draw.random() < 0.02 or depth > DEEPEST:
        return draw.choice(ODD)
    if "anyOf" in schema:
        return drawn(draw.choice(schema["anyOf"]), draw, depth)
    if "enum" in schema or "const" in schema:
        return draw.choice(schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if kind == "object":
        names = [name for name in schema.get("properties", {}) if draw.random() < 0.98]
        return {name: drawn(schema["properties"][name], draw, depth + 1) for name in names}
    if kind == "array":
        count = max(schema.get("minItems", 0), draw.randrange(3))
        return [drawn(schema.get("items", True), draw, depth + 1) for _ in range(count)]
    texts = (
        "x",
        "a@b",
        "2026-01-02",
        "2026-01-02T03:04:05.678Z",
        "0" * 8 + "-0000" * 3 + "-" + "0" * 12,
    )
    usual = {"string": texts, "integer": (0, 1, 50), "number": (0, 1.5), "boolean": (True, False)}
    return draw.choice(usual.get(kind, (None,)) if isinstance(kind, str) else ODD)


def test_the_tables_match_as_in_the_library() -> None:
    """For drawn values, of which some match, the library gives the same answer."""
    draw, found = Random(1), set()
    for schema in promised():
        library, compiled = (
            StrictValidator(schema, format_checker=FORMATS),
            StrictSchema(schema, FORMATS),
        )
        for _ in range(4):
            value = drawn(schema, draw)
            assert compiled.matches(value) is library.is_valid(value), value
            found.add(compiled.matches(value))
    assert found == {True, False}


def test_the_description_matches_as_in_the_library() -> None:
    """The schemas of the OpenAPI document give the same answers, also by reference."""
    draw, components = Random(2), closed_components()
    for name in components["schemas"]:
        schema = {"$ref": f"#/components/schemas/{name}", "components": components}
        library = StrictValidator(schema, format_checker=DESCRIBED_FORMATS)
        compiled = StrictSchema(schema, DESCRIBED_FORMATS)
        for _ in range(4):
            value = drawn(components["schemas"][name], draw)
            assert compiled.matches(value) is library.is_valid(value), value


@pytest.mark.parametrize(
    "schema",
    [
        *(
            {"minLength": 1},
            {"minItems": 1},
            {"maxItems": 0},
            {"minProperties": 1},
            {"required": ["x"]},
        ),
        *({"minimum": 1}, {"maximum": 0}, {"pattern": "^a"}, {"const": 1}, {"const": True}, {}),
        *(
            {"enum": [None, 0]},
            {"type": ["integer", "null"]},
            {"type": "number"},
            {"not": {"const": 1}},
        ),
        *(
            {"properties": {"x": False}},
            {"additionalProperties": False},
            {"items": {"type": "null"}},
        ),
        *({"propertyNames": {"minLength": 2}}, {"anyOf": [{"const": ""}, {"const": "x"}]}),
        *({"allOf": [{"minimum": 0}, {"maximum": 0}]}, {"if": {"minimum": 1}, "else": False}),
        {"if": {"type": "string"}, "then": {"format": "calendar-date"}, "else": {"type": "array"}},
    ],
    ids=str,
)
def test_each_keyword_matches_as_in_the_library(schema: Schema) -> None:
    """A keyword has the meaning that it has in the library, for values of each type."""
    library, compiled = (
        StrictValidator(schema, format_checker=FORMATS),
        StrictSchema(schema, FORMATS),
    )
    values = (*ODD, "2026-01-02")
    assert [compiled.matches(one) for one in values] == [library.is_valid(one) for one in values]


def test_an_unknown_keyword_is_an_error() -> None:
    """No keyword is ignored."""
    with pytest.raises(KeyError):
        Compiler({}, FORMATS).compile({"uniqueItems": True})
