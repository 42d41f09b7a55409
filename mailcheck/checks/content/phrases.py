"""Search for words and phrases of many languages in a text, ignoring case and accents.

A phrase is matched in folded text as a whole. A ``*`` before or after it lets it be a part of a
longer word: ``*code`` also finds "Sicherheitscode", and ``kod*`` finds "kodunuz". Phrases in
scripts without spaces need no ``*``. Most phrases are found by their first word or its first
letters. The others are searched one by one. The time is linear in the text.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

from msgspec import Struct

from mailcheck.core.content import INVISIBLE

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212\ufe58\ufe63"
_BLANKS = (0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)
_ZEROS = (
    # Arabic, Persian, N'Ko, Devanagari, Bengali, Gurmukhi, Gujarati, Odia, Tamil, Telugu,
    *(0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66),
    # Kannada, Malayalam, Sinhala, Thai, Lao, Tibetan, Burmese, Khmer, Mongolian,
    *(0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x17E0, 0x1810),
    # and the styled digits of the mathematical block
    *range(0x1D7CE, 0x1D800, 10),
)
_LATIN = (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
_GREEK = (*range(0x370, 0x400), *range(0x1F00, 0x2000))
# fmt: off
_BY_HAND = {
    "ß": "s", "ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "a", "œ": "o", "ə": "e",
    "ё": "е", "ς": "σ",
    "أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي", "ی": "ي", "ک": "ك", "ۀ": "ه",
}
# fmt: on


@cache
def _plain_table() -> dict[int, str]:
    table = dict.fromkeys(map(ord, _DASHES), "-") | dict.fromkeys(_BLANKS, " ")
    table |= dict.fromkeys(INVISIBLE, "")
    # Full-width forms have a fixed distance to ASCII. Punctuation stays unchanged, since a
    # full-width comma or colon ends a phrase and is not a part of a number.
    wide = (code for code in range(0xFF01, 0xFF5F) if chr(code - 0xFEE0).isalnum())
    table |= {code: chr(code - 0xFEE0) for code in (*wide, ord("＃"), ord("－"), ord("＠"))}
    table |= {zero + digit: str(digit) for zero in _ZEROS for digit in range(10)}
    return table


@cache
def _fold_table() -> dict[int, str]:
    table = {ord(letter): plain for letter, plain in _BY_HAND.items()}
    for code in (*_LATIN, *_GREEK):
        letter = unicodedata.normalize("NFD", chr(code).lower())[:1].lower()
        table.setdefault(code, _BY_HAND.get(letter, letter))
    table |= dict.fromkeys(map(ord, "\n\r"), " ")
    for code in (*range(ord("A"), ord("Z") + 1), *range(0x370, 0x557)):
        if len(chr(code).lower()) == 1:
            table.setdefault(code, chr(code).lower())
    return table


def make_plain(text: str) -> str:
    """Convert digits and full-width forms to ASCII, and dashes and blanks to plain ones.

    Invisible characters are dropped. Letters are composed with their accents (NFC).
    """
    if text.isascii():
        return text
    text = text.translate(_plain_table())
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def fold(text: str) -> str:
    """Remove case, Latin and Greek accents, and line breaks; every character keeps its position.

    A tab stays, since words in two cells of a table are not a phrase.
    """
    return text.translate(_fold_table())


@cache
def load_table(file_name: str) -> dict[str, Any]:
    """Load a TOML file of this package."""
    return tomllib.loads(files(__package__).joinpath(file_name).read_text("utf-8"))


LETTERS = (
    "a-zA-Z\xaa\xb5\xba\xc0-\xd6\xd8-\xf6\xf8-\u0373\u0376-\u037d\u037f-\u0386\u0388-\u0559"
    "\u0560-\u0588\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4-\u05f2\u0610-\u061a\u0620-\u0669"
    "\u066e-\u06d3\u06d5-\u06ef\u06fa-\u06ff\u0900-\u0963\u0971-\u0dff\u10a0-\u1360\u1369-\u16ff"
    "\u1c90-\u1cbf\u1e00-\u1fff"
)
"""Letters and their marks, for a character class of words."""

_WORD = re.compile(f"[{LETTERS}]+")
_ONE_LETTER = re.compile(f"[{LETTERS}]")
_REST_OF_WORD = re.compile(f"[{LETTERS}]{{0,24}}+")
_LONGEST_WORD = 40
_KEY = 3  # number of first letters by which beginnings of words are looked up

# Thai and Lao, Burmese, Khmer; then kana, Hangul and Chinese.
_UNSPACED = tuple(
    re.compile(f"[{letters}]")
    for letters in ("\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff", "\u2e80-\U0010ffff")
)


def is_unspaced(character: str) -> bool:
    """Return whether a character belongs to a script without spaces between words."""
    return character > "\u0dff" and any(script.match(character) for script in _UNSPACED)


class Phrase(Struct, frozen=True):
    """A phrase: its folded text, its kind, and whether it may be a part of a word."""

    text: str
    kind: str
    is_open_before: bool
    is_open_after: bool
    rank: int


class PhraseTable(Struct, frozen=True):
    """Phrases, grouped by the way in which they are found.

    ``by_word`` has phrases by their first word. ``by_beginning`` has phrases that begin a word,
    by their first letters. ``foreign`` phrases are searched only in text that is not ASCII.
    """

    by_word: Mapping[str, Sequence[Phrase]]
    by_beginning: Mapping[str, Sequence[Phrase]]
    shortest_beginning: int
    anywhere: Sequence[Phrase]
    foreign: Sequence[Phrase]
    unspaced: Sequence[tuple[re.Pattern[str], Sequence[Phrase]]]


class Occurrence(Struct, frozen=True):
    """A phrase in a text, from the start to the end of its whole words."""

    start: int
    end: int
    kind: str
    rank: int


def compile_phrases(table: Mapping[str, Mapping[str, Iterable[str]]]) -> PhraseTable:
    """Compile the phrases of a table, from kind to language to phrases.

    If two kinds have the same words, the first kind counts.
    """
    by_word: dict[str, list[Phrase]] = {}
    by_beginning: dict[str, list[Phrase]] = {}
    anywhere: list[Phrase] = []
    foreign: list[Phrase] = []
    unspaced: list[list[Phrase]] = [[] for _ in _UNSPACED]
    # Each phrase of a kind once, even if several languages have it.
    compiled = (
        _compile(written, kind, rank)
        for rank, (kind, languages) in enumerate(table.items())
        for written in dict.fromkeys(chain.from_iterable(languages.values()))
    )
    for phrase in compiled:
        script = next(
            (i for i, pattern in enumerate(_UNSPACED) if pattern.match(phrase.text)), None
        )
        word = _WORD.match(phrase.text)
        if script is not None:
            unspaced[script].append(phrase)
        elif phrase.is_open_before or word is None:
            (anywhere if phrase.text.isascii() else foreign).append(phrase)
        elif phrase.is_open_after and word.end() == len(phrase.text):
            by_beginning.setdefault(phrase.text[:_KEY], []).append(phrase)
        else:
            by_word.setdefault(word.group(), []).append(phrase)
    shortest = min(map(len, by_beginning), default=_KEY)
    by_script = list(zip(_UNSPACED, unspaced, strict=True))
    return PhraseTable(by_word, by_beginning, shortest, anywhere, foreign, unspaced=by_script)


def _compile(written: str, kind: str, rank: int) -> Phrase:
    bare = make_plain(written.strip("*"))
    return Phrase(
        text=fold(bare),
        kind=kind,
        is_open_before=written.startswith("*") or is_unspaced(bare[0]),
        is_open_after=written.endswith("*") or is_unspaced(bare[-1]),
        rank=rank,
    )


def find_phrases(folded: str, table: PhraseTable) -> list[Occurrence]:
    """Return all phrases in a folded text, by position; of overlapping ones, the longest."""
    found = list(_find_by_word(folded, table))
    phrases = [*table.anywhere]
    if not folded.isascii():
        phrases += table.foreign
        phrases += (
            unspaced
            for script, some in table.unspaced
            if script.search(folded)
            for unspaced in some
        )
    for phrase in phrases:
        if phrase.text in folded:
            found += _find_anywhere(folded, phrase)
    found.sort(key=lambda word: (word.start, -word.end, word.rank))
    kept: list[Occurrence] = []  # the longer of two that overlap
    for occurrence in found:
        if not kept or occurrence.start >= kept[-1].end:
            kept.append(occurrence)
        elif occurrence.end - occurrence.start > kept[-1].end - kept[-1].start:
            kept[-1] = occurrence
    return kept


def _find_by_word(folded: str, table: PhraseTable) -> Iterator[Occurrence]:
    by_word, by_beginning = table.by_word, table.by_beginning
    lengths = range(table.shortest_beginning, _KEY + 1)
    for match in _WORD.finditer(folded):
        word = match.group()
        start = match.start()
        for phrase in by_word.get(word, ()):
            if folded.startswith(phrase.text, start):
                yield from _accept(folded, start, phrase)
        for length in lengths:
            for phrase in by_beginning.get(word[:length], ()):
                if length <= len(word) and word.startswith(phrase.text):
                    yield Occurrence(start, match.end(), phrase.kind, phrase.rank)


def _find_anywhere(folded: str, phrase: Phrase) -> Iterator[Occurrence]:
    start = folded.find(phrase.text)
    while start >= 0:
        if phrase.is_open_before or not _is_letter(folded[start - 1 : start]):
            yield from _accept(folded, start, phrase)
        start = folded.find(phrase.text, start + len(phrase.text))


def _accept(folded: str, start: int, phrase: Phrase) -> Iterator[Occurrence]:
    end = start + len(phrase.text)
    word_end = end
    if _is_letter(phrase.text[-1]):
        rest = _REST_OF_WORD.match(folded, end)
        word_end = rest.end() if rest else end
    if not phrase.is_open_after and word_end != end:
        return
    if phrase.is_open_before and _is_letter(phrase.text[0]):
        limit = max(0, start - _LONGEST_WORD)
        while start > limit and _is_letter(folded[start - 1]):
            start -= 1
    yield Occurrence(start, word_end, phrase.kind, phrase.rank)


def _is_letter(character: str) -> bool:
    return _ONE_LETTER.match(character) is not None
