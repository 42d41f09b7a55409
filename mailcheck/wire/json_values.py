"""JSON as Python sees it."""

import json
from collections.abc import Mapping, Sequence

JsonValue = str | int | float | bool | None | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
JsonObject = Mapping[str, JsonValue]


def dump_json(value: JsonValue) -> bytes:
    """Write JSON as UTF-8 (RFC 8259 8.1)."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
