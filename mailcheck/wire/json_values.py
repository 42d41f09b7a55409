"""JSON as Python sees it."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

PIECE = 1_000_000
"""Characters of a text that are written at once: that takes some milliseconds."""

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


async def dump_json_in_pieces(
    value: object, rest: Callable[[], Awaitable[None]], piece: int = PIECE
) -> bytes:
    """Write the same bytes as `dump_json`, and rest before each piece of a text that is long."""
    pieces: list[bytes] = []
    await _dump_into(pieces, value, rest, piece)
    return b"".join(pieces)


async def _dump_into(
    pieces: list[bytes], value: object, rest: Callable[[], Awaitable[None]], piece: int
) -> None:
    if isinstance(value, str) and len(value) > piece:
        pieces.append(b'"')
        for start in range(0, len(value), piece):
            await rest()
            pieces.append(dump_json(value[start : start + piece])[1:-1])
        pieces.append(b'"')
    elif isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        known = {spelled: getattr(value, name) for name, spelled in names}
        given = [(name, field) for name, field in known.items() if field is not msgspec.UNSET]
        for number, (name, field) in enumerate(given):
            pieces.append((b"," if number else b"{") + dump_json(name) + b":")
            await _dump_into(pieces, field, rest, piece)
        pieces.append(b"}" if given else b"{}")
    elif isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
        for number, one in enumerate(value):
            pieces.append(b"," if number else b"[")
            await _dump_into(pieces, one, rest, piece)
        pieces.append(b"]")
    else:
        pieces.append(dump_json(value))
