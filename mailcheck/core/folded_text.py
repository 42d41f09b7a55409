"""Text in the one form in which filters and searches compare it, on every database.

A search for a part of a text reads every mail's, which is most of what it costs. So a text has
a signature, a short one beside it: a Bloom filter of the groups of three bytes that it has.
Where one of those of the part lacks, the part is not in the text, which need not be read. Where
none lacks the text decides: the signature never does.
"""

import re
import sys
import unicodedata
from array import array

INVISIBLE = (
    # Soft hyphen, joiners, zero-width blanks, direction marks, byte order mark.
    *(0xAD, 0x34F, 0x61C, 0x180E, 0xFEFF),
    *(*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)),
)

_ACCENTS = range(0x300, 0x370)
"""Combining diacritical marks. Those of Thai, Devanagari or kana are others: parts of letters."""

_DROPPED = dict.fromkeys((*_ACCENTS, *INVISIBLE), "")
# A NUL is no text for PostgreSQL; nobody can look for one.
_BLANKS = re.compile(r"[\s\x00]+")

_SIGNS = 2_297
"""Bits of a signature, a prime number: four kilobytes of English set two fifths of them."""

_BITS = 6
"""In a character of a signature, which is one of 64 of ASCII: every database tells its code."""

_NO_SIGNS = b"@" * (_SIGNS // _BITS + 1)

MOST_ASKED = 3
"""Characters of a signature that are asked for a part: each costs a tenth of what its text does."""


def fold_text(text: str) -> str:
    """Fold case, accents, widths and invisible characters away; white space is one blank.

    Made character by character, so that what stands in a text stands in the folded text, too
    (Unicode 3.13, compatibility caseless matching, without accents). A folded text folds to
    itself.
    """
    text = text.lower() if text.isascii() else _fold_letters(text)
    # Most subjects have nothing but single blanks: it is every mail's on its way in.
    return text if text.isprintable() and "  " not in text else _BLANKS.sub(" ", text)


def _fold_letters(text: str) -> str:
    # An accent can come of a letter's case (İ), and a capital letter of a symbol (℡).
    return _decompose(_decompose(text).casefold()).casefold()


def _decompose(text: str) -> str:
    return unicodedata.normalize("NFKD", text).translate(_DROPPED)


def sign_text(key: str) -> str:
    """Make the signature of a folded text: 383 characters of ASCII, however long it is."""
    signature = bytearray(_NO_SIGNS)
    for sign in _signs(key):
        signature[sign // _BITS] |= 1 << sign % _BITS
    return signature.decode("ascii")


def signs_within(part: str) -> list[tuple[int, int]]:
    """Say what the signature of each text has that contains a folded part: no more than matters.

    Gives places of characters, counted from 1, and bits that are set in their codes. A part of
    less than three bytes has none.
    """
    places: dict[int, int] = {}
    for sign in sorted(_signs(part)):
        place = sign // _BITS + 1
        places[place] = places.get(place, 0) | 1 << sign % _BITS
    return list(places.items())[:MOST_ASKED]


def _signs(key: str) -> set[int]:
    octets = key.encode("utf-8", "replace")
    # Three bytes and a zero are a number each, which are read as such at once.
    groups = bytearray(4 * max(0, len(octets) - 2))
    for offset in range(3):
        groups[offset::4] = octets[offset : offset + len(groups) // 4]
    numbers = array("I", bytes(groups))
    if sys.byteorder == "big":
        numbers.byteswap()
    return {number % _SIGNS for number in set(numbers)}
