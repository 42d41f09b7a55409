"""Names that people take for each other: by case, by their form, by letters of another alphabet.

Such names have the same skeleton (Unicode Technical Standard 39, section 4), in which each
character is replaced by its prototype. The table of prototypes is that of
``confusable_homoglyphs``.
"""

import re
import unicodedata
from functools import cache, lru_cache

KNOWN_NAMES = 20_000
"""Names whose appearances are remembered: each new name is compared with all others."""

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Characters that Unicode has no glyph for (Default_Ignorable_Code_Point)."""

_LEFT_TO_RIGHT = "\u200e"
"""Surrounds characters of right-to-left scripts in the table."""


def look_alike(one: str, other: str) -> bool:
    """Return whether people may take one name for the other."""
    return not appearances(one).isdisjoint(appearances(other))


@lru_cache(KNOWN_NAMES)
def appearances(name: str) -> frozenset[str]:
    """Return what a name looks like; names that look alike have one of these in common.

    A capital I looks like a small l, and is a small i if case is ignored.
    """
    return frozenset({_skeleton(name), _skeleton(name.casefold())})


def _skeleton(name: str) -> str:
    """Return the skeleton of a name, without regard to case and spaces."""
    before, skeleton = "", name
    while before != skeleton:
        before = skeleton
        plain = _INVISIBLE.sub("", unicodedata.normalize("NFKD", skeleton))
        skeleton = "".join(_prototypes().get(letter, letter) for letter in plain).casefold()
    return " ".join(skeleton.split())


@cache
def _prototypes() -> dict[str, str]:
    """Return the prototype of each character that is confused with others.

    The table lists for each character all others that it is confused with: many for a prototype,
    its prototype alone for any other.
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
