"""Schemas are compared as clients in typed languages read JSON."""

import pytest

from tests.spec.matching import StrictSchema
from tests.spec.shapes import FORMATS
from tests.table import rows

SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": ["integer", "null"]},
        "type": {"type": "string"},
        "day": {"anyOf": [{"type": "string", "format": "calendar-date"}, {"type": "number"}]},
    },
    "required": ["count"],
    "additionalProperties": False,
}


@rows(
    ({"count": 1, "type": "integer", "day": "2026-01-02"}, ""),
    ({"count": None, "day": 1.5}, ""),
    ({"count": 10**30}, ""),
    ({"count": 1.0}, "$.count: 1.0 is not an integer"),
    ({"count": True}, "$.count: true is not of types "),
    ({"count": 1, "day": "2026-02-30"}, "$.day: "),
    ({"type": "x"}, '$: "count" is a required property'),
    ({"count": 1, "more": 1}, "$: Additional properties"),
)
def test_the_places_that_differ(value: object, problem: str) -> None:
    """An integer has no fraction, a date exists, and each problem names its place."""
    problems = StrictSchema(SCHEMA, FORMATS).problems(value)
    assert [one[: len(problem)] for one in problems] == ([problem] if problem else [])


def test_a_reference_without_its_document() -> None:
    """A schema cannot refer to an unknown document."""
    with pytest.raises(ValueError, match="urn:x"):
        StrictSchema({"$ref": "urn:x#/components"}, FORMATS)
