"""Keys of counters, of locks and of values in memory, the store or Redis.

Names that people choose are parts of many keys. All keys are built here, so that two different
lists of parts never have the same key.
"""

import hashlib
from typing import NewType

Key = NewType("Key", str)
"""A key that `key_of` has built."""

MAX_PART = 100
"""Maximum number of characters of a part. A longer part, or a part that is not printable ASCII, is
replaced by its digest, since strangers choose names."""

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
