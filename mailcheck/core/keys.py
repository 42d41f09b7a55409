"""Keys of counters, locks, and of what is kept in memory, the store or Redis.

Names that people choose are parts of many keys. All keys are built here, so that no two lists of
parts have the same key, whatever the parts are.
"""

import hashlib
from typing import NewType

Key = NewType("Key", str)
"""A key that `key_of` has built."""

MAX_PART = 100
"""Characters of a part that stand in a key. A longer part, or one that is not printable ASCII, is
represented by its digest: strangers choose what a name is."""

_DIGEST = "%#"
"""Begins a part that is a digest. No written part has it: `%` is always followed by two digits."""

_WRITTEN = str.maketrans({"%": "%25", ":": "%3A", "*": "%2A"})


def key_of(kind: str, *parts: str) -> Key:
    """Return the key of these parts; no others have the same key.

    Parts are joined by colons and have none themselves, so that their number and their ends are
    certain. ``*``, which makes a pattern in Redis, is not in a key either.
    """
    return Key(":".join(map(_write, (kind, *parts))))


def keys_below(kind: str, *parts: str) -> str:
    """Return the pattern that matches, in Redis, all keys with these parts and more."""
    return f"{key_of(kind, *parts)}:*"


def _write(part: str) -> str:
    if len(part) <= MAX_PART and part.isascii() and part.isprintable():
        return part.translate(_WRITTEN)
    return _DIGEST + hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest()
