"""Where words of a table stand in a text.

A phrase of a table is matched in folded text, as a whole: a ``*`` before or
after it lets it be part of a longer word (``*code`` also finds
"Sicherheitscode", ``kod*`` also "kodunuz"). Scripts that write no blanks need
none. Most phrases are looked up by their first letters where a word begins,
the others are searched for one by one: the time is linear in the text.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from mailcheck.checks.content.folding import fold

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
