"""Names of accounts that people may confuse.

Confusable names have the same skeleton (Unicode Technical Standard 39, section 4), in which each
character is replaced by its prototype. The table of prototypes comes from
``confusable_homoglyphs``.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

KNOWN_NAMES = 20_000
"""Number of names with cached skeletons: each new name is compared with all others."""

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Characters without a visible glyph in Unicode (Default_Ignorable_Code_Point)."""

_LEFT_TO_RIGHT = "\u200e"
"""Surrounds the characters of right-to-left scripts in the table."""


def look_alike(one: str, other: str) -> bool:
    """Return whether people may confuse the two names."""
    return not skeletons(one).isdisjoint(skeletons(other))


@lru_cache(KNOWN_NAMES)
def skeletons(name: str) -> frozenset[str]:
    """Return the skeletons of a name; two confusable names have one in common.

    A capital I looks like a small l, and is a small i if case is ignored.
    """
    return frozenset({_skeleton(name), _skeleton(name.casefold())})


def _skeleton(name: str) -> str:
    """Return the skeleton of a name, ignoring case and spaces."""
    before, skeleton = "", name
    while before != skeleton:
        before = skeleton
        plain = _INVISIBLE.sub("", unicodedata.normalize("NFKD", skeleton))
        skeleton = "".join(_prototypes().get(letter, letter) for letter in plain).casefold()
    return " ".join(skeleton.split())


@cache
def _prototypes() -> dict[str, str]:
    """Return the prototype of each confusable character.

    The table lists for each character all confusable ones: many for a prototype, and only the
    prototype for any other character.
    """
    # Imported here: it reads a large file, which few processes need.
    from confusable_homoglyphs.confusables import confusables_data

    table = {
        _bare(text): [_bare(other["c"]) for other in others]
        for text, others in confusables_data.items()
    }
    return {
        text: others[0]
        for text, others in table.items()
        if len(text) == 1 and len(others) == 1 and _is_prototype(others[0], text, table)
    }


def _is_prototype(text: str, other: str, table: dict[str, list[str]]) -> bool:
    """Return whether a text is the prototype of another: of only two, the longer or the lesser."""
    return len(table.get(text, ())) > 1 or (-len(text), text) < (-len(other), other)


def _bare(text: str) -> str:
    return text.replace(_LEFT_TO_RIGHT, "")
