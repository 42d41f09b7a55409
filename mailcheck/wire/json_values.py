"""JSON as Python sees it."""

import json
from collections.abc import Mapping, Sequence

import msgspec

JsonValue = str | int | float | bool | None | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
JsonObject = Mapping[str, JsonValue]


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
