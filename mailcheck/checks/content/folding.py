"""Text in one plain form, for matching words and numbers."""

import unicodedata
from functools import cache

from mailcheck.core.folded_text import INVISIBLE

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212\ufe58\ufe63"
_BLANKS = (0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)
_ZEROS = (0x660, 0x6F0, 0x966, 0x9E6, 0xE50, *range(0x1D7CE, 0x1D800, 10))
"""Arabic, Persian, Devanagari, Bengali, Thai, and the styled digits of the mathematical block."""
_LATIN = (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
_BY_HAND = {"ß": "s", "ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "a", "œ": "o", "ё": "е"}


@cache
def _plain_table() -> dict[int, str]:
    table = dict.fromkeys(map(ord, _DASHES), "-") | dict.fromkeys(_BLANKS, " ")
    table |= dict.fromkeys(INVISIBLE, "")
    # Full-width forms lie at a fixed distance from ASCII. Punctuation stays:
    # a full-width comma or colon ends a phrase and is no part of a number.
    wide = (code for code in range(0xFF01, 0xFF5F) if chr(code - 0xFEE0).isalnum())
    table |= {code: chr(code - 0xFEE0) for code in (*wide, ord("＃"), ord("－"), ord("＠"))}
    table |= {zero + digit: str(digit) for zero in _ZEROS for digit in range(10)}
    return table


@cache
def _fold_table() -> dict[int, str]:
    table = {ord(letter): plain for letter, plain in _BY_HAND.items()}
    for code in _LATIN:
        letter = unicodedata.normalize("NFD", chr(code).lower())[:1].lower()
        table.setdefault(code, _BY_HAND.get(letter, letter))
    table |= dict.fromkeys(map(ord, "\n\r"), " ")
    for code in (*range(ord("A"), ord("Z") + 1), *range(0x370, 0x530)):
        if len(chr(code).lower()) == 1:
            table.setdefault(code, chr(code).lower())
    return table


def make_plain(text: str) -> str:
    """Make digits and full-width forms ASCII, dashes and blanks plain; drop what is invisible."""
    return text if text.isascii() else text.translate(_plain_table())


def fold(text: str) -> str:
    """Fold case, Latin accents and line breaks away; every character keeps its place.

    A tab stays: what stands in two cells of a table is no phrase.
    """
    return text.translate(_fold_table())
