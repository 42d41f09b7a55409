"""Words and phrases of many languages, found in a text whatever its case and accents.

A phrase of a table is matched in folded text, as a whole: a ``*`` before or
after it lets it be part of a longer word (``*code`` also finds
"Sicherheitscode", ``kod*`` also "kodunuz"). Scripts that write no blanks need
none. Most phrases are looked up by their first letters where a word begins,
the others are searched for one by one: the time is linear in the text.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

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


@cache
def load_table(file_name: str) -> dict[str, Any]:
    """Read a TOML file that lies beside this module."""
    return tomllib.loads(files(__package__).joinpath(file_name).read_text("utf-8"))


_UNSPACED_FROM = "\u2e80"  # CJK, kana and Hangul lie beyond; all alphabets of ours lie before
_WORD_START = re.compile(r"(?<![^\W\d_])[^\W\d_]")
_REST_OF_WORD = re.compile(r"(?:(?![\u2e80-\U0010ffff])[^\W\d_]){0,24}+")
_LONGEST_WORD = 40
_KEY = 3  # letters by which phrases are looked up


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of a table: its folded text, its kind, and where it may touch other letters."""

    text: str
    kind: str
    is_open_before: bool
    is_open_after: bool
    rank: int


@dataclass(frozen=True, slots=True)
class PhraseTable:
    """Phrases, sorted by how they are found."""

    by_key: Mapping[str, tuple[Phrase, ...]]
    anywhere: tuple[Phrase, ...]
    unspaced: tuple[Phrase, ...]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A phrase found in a text, from ``start`` to ``end`` of its whole words."""

    start: int
    end: int
    kind: str
    rank: int


def compile_phrases(table: Mapping[str, Mapping[str, Iterable[str]]]) -> PhraseTable:
    """Prepare the phrases of a table: kind to language to phrases.

    Of two kinds that claim the same words the one that comes first counts.
    """
    by_key: dict[str, list[Phrase]] = {}
    anywhere, unspaced = [], []
    for phrase in (
        _compile(written, kind, rank)
        for rank, kind in enumerate(table)
        for written in chain.from_iterable(table[kind].values())
    ):
        if phrase.text[0] >= _UNSPACED_FROM:
            unspaced.append(phrase)
        elif phrase.is_open_before or not phrase.text[0].isalpha():
            anywhere.append(phrase)
        else:
            by_key.setdefault(phrase.text[:_KEY], []).append(phrase)
    fixed = {key: tuple(phrases) for key, phrases in by_key.items()}
    return PhraseTable(fixed, tuple(anywhere), tuple(unspaced))


def _compile(written: str, kind: str, rank: int) -> Phrase:
    bare = written.strip("*")
    return Phrase(
        text=fold(bare),
        kind=kind,
        is_open_before=written.startswith("*") or bare[0] >= _UNSPACED_FROM,
        is_open_after=written.endswith("*") or bare[-1] >= _UNSPACED_FROM,
        rank=rank,
    )


def find_phrases(folded: str, table: PhraseTable) -> list[Occurrence]:
    """Find all phrases in a folded text, by position; of overlapping ones the longest counts."""
    found = list(_find_by_key(folded, table))
    for phrase in table.anywhere:
        if phrase.text in folded:
            found += _find_anywhere(folded, phrase)
    if not folded.isascii() and max(folded) >= _UNSPACED_FROM:
        for phrase in table.unspaced:
            found += _find_anywhere(folded, phrase)
    found.sort(key=lambda word: (word.start, -word.end, word.rank))
    return _drop_overlaps(found)


def _find_by_key(folded: str, table: PhraseTable) -> Iterator[Occurrence]:
    by_key = table.by_key
    for match in _WORD_START.finditer(folded):
        start = match.start()
        for length in range(1, _KEY + 1):
            for phrase in by_key.get(folded[start : start + length], ()):
                if folded.startswith(phrase.text, start):
                    yield from _accept(folded, start, phrase)


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
        start = _find_word_start(folded, start)
    yield Occurrence(start, word_end, phrase.kind, phrase.rank)


def _find_word_start(folded: str, start: int) -> int:
    limit = max(0, start - _LONGEST_WORD)
    while start > limit and _is_letter(folded[start - 1]):
        start -= 1
    return start


def _is_letter(character: str) -> bool:
    return character < _UNSPACED_FROM and character.isalpha()


def _drop_overlaps(found: list[Occurrence]) -> list[Occurrence]:
    """Keep the longer of two that overlap; ``found`` is sorted by start, longest first."""
    kept: list[Occurrence] = []
    for occurrence in found:
        if not kept or occurrence.start >= kept[-1].end:
            kept.append(occurrence)
        elif occurrence.end - occurrence.start > kept[-1].end - kept[-1].start:
            kept[-1] = occurrence
    return kept
