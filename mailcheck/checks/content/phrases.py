"""Where words of a table stand in a text.

A phrase of a table is matched in folded text, as a whole: a ``*`` before or
after it lets it be part of a longer word (``*code`` also finds
"Sicherheitscode", ``kod*`` also "kodunuz"). Scripts that write no blanks need
none. Each phrase is one search of the text, so the time is linear.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mailcheck.checks.content.folding import fold

_UNSPACED_FROM = "\u2e80"  # CJK, kana and Hangul lie beyond; all alphabets of ours lie before


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of a table: its folded text, its kind, and where it may touch other letters."""

    text: str
    kind: str
    is_open_before: bool
    is_open_after: bool


@dataclass(frozen=True, slots=True, order=True)
class Occurrence:
    """A phrase found in a text, from ``start`` to ``end``."""

    start: int
    end: int
    kind: str


def compile_phrases(table: Mapping[str, Iterable[str]]) -> tuple[Phrase, ...]:
    """Prepare the phrases of a table, which maps a kind to its phrases."""
    return tuple(
        Phrase(
            text=fold(written.strip("*")),
            kind=kind,
            is_open_before=written.startswith("*") or written.strip("*")[0] >= _UNSPACED_FROM,
            is_open_after=written.endswith("*") or written.strip("*")[-1] >= _UNSPACED_FROM,
        )
        for kind, phrases in table.items()
        for written in phrases
    )


def find_phrases(folded: str, phrases: Iterable[Phrase]) -> list[Occurrence]:
    """Find all phrases in a folded text, by position; of overlapping ones the longest counts."""
    found: list[Occurrence] = []
    for phrase in phrases:
        start = folded.find(phrase.text)
        while start >= 0:
            end = start + len(phrase.text)
            if _stands_alone(folded, start, end, phrase):
                found.append(Occurrence(start, end, phrase.kind))
            start = folded.find(phrase.text, end)
    found.sort(key=lambda occurrence: (occurrence.start, -occurrence.end))
    return _drop_overlaps(found)


def _stands_alone(folded: str, start: int, end: int, phrase: Phrase) -> bool:
    before, after = folded[start - 1 : start], folded[end : end + 1]
    return (phrase.is_open_before or not _is_letter(before)) and (
        phrase.is_open_after or not _is_letter(after)
    )


def _is_letter(character: str) -> bool:
    return character.isalpha() and character < _UNSPACED_FROM


def _drop_overlaps(found: list[Occurrence]) -> list[Occurrence]:
    """Keep the longer of two that overlap; ``found`` is sorted by start, longest first."""
    kept: list[Occurrence] = []
    for occurrence in found:
        if not kept or occurrence.start >= kept[-1].end:
            kept.append(occurrence)
        elif occurrence.end - occurrence.start > kept[-1].end - kept[-1].start:
            kept[-1] = occurrence
    return kept
