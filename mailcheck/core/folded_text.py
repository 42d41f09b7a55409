"""Text in the one form in which filters and searches compare it, on every database."""

import re
import unicodedata

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
