"""The stored copy of a request: readable JSON without secrets and without long texts."""

from collections.abc import Mapping
from typing import Any

import msgspec

from mailcheck.api.shapes import dump_json
from mailcheck.web.site.bodies import decode_json

MAX_STORED = 16_384
"""Maximum number of characters of a stored request."""

MAX_TEXT = 2_000
"""Maximum number of characters of one text in it."""

MAX_DEPTH, MAX_ITEMS = 12, 200
"""Maximum depth of objects and lists, and number of their items, in a stored request."""

_CONTENTS = frozenset(("content", "data", "attachmentcontent", "base64content"))
"""Names, in lower case, of fields with the base64 of a file."""


def describe_request(value: object, secret: str) -> str:
    """Return the JSON of a parsed request. The key of the request is replaced wherever it is."""
    text = msgspec.json.format(dump_json(_short(value, "", 0, secret)), indent=2).decode()
    if len(text) <= MAX_STORED:
        return text
    return f"{text[: MAX_STORED - 100]}\n... ({len(text):,} characters)"


def read_request(text: str) -> Mapping[str, Any]:
    """Return the fields of a stored copy, or none if it was cut or is not an object."""
    try:
        found = decode_json(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _short(value: object, name: str, depth: int, secret: str) -> object:
    if isinstance(value, str):
        # Before it is cut, so that no part of the key remains.
        value = value.replace(secret, "(the API key)") if secret else value
        if name.lower() in _CONTENTS and len(value) > 200:
            return f"({len(value):,} characters)"
        if len(value) > MAX_TEXT:
            return f"{value[:MAX_TEXT]}... ({len(value):,} characters)"
        return value
    if depth >= MAX_DEPTH and isinstance(value, dict | list):
        return f"({len(value)} items)"
    if isinstance(value, dict):
        return {
            _short(str(key), "", depth, secret): _short(entry, str(key), depth + 1, secret)
            for key, entry in list(value.items())[:MAX_ITEMS]
        }
    if isinstance(value, list):
        if len(value) > MAX_ITEMS and all(isinstance(item, int) for item in value):
            return f"({len(value):,} numbers)"
        return [_short(item, name, depth + 1, secret) for item in value[:MAX_ITEMS]]
    return value
