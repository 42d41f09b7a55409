"""Bodies as the service has really answered them, by name; a test holds each to its schema."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from mailcheck.wire.json_values import JsonValue


@cache
def load_examples() -> Mapping[str, JsonValue]:
    """Read the file of examples that comes with the package."""
    text = files("mailcheck.wire.openapi").joinpath("examples.json").read_text("utf-8")
    found: Mapping[str, JsonValue] = json.loads(text)
    return found
