"""A text of a mail made ready for the search for codes: plain, folded, its words found."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from mailcheck.checks.content.code_compounds import is_compound
from mailcheck.checks.content.folding import fold, make_plain
from mailcheck.checks.content.limits import MAX_CODE_TEXT
from mailcheck.checks.content.phrases import (
    Occurrence,
    PhraseTable,
    compile_phrases,
    find_phrases,
)
from mailcheck.checks.content.visible_text import VisibleText
from mailcheck.checks.content.word_tables import load_table


@cache
def _phrases() -> PhraseTable:
    return compile_phrases(load_table("code_words.toml")["phrases"])


@dataclass(frozen=True, slots=True)
class CodeText:
    """``plain`` and ``folded`` have the same positions; ``words`` are sorted, by kind."""

    plain: str
    folded: str
    prominent: tuple[tuple[int, int], ...]
    words: dict[str, list[Occurrence]]

    def last_before(self, kind: str, position: int) -> Occurrence | None:
        """Find the last word of a kind that ends at or before a position."""
        found = self.words.get(kind, [])
        index = bisect_right(found, position, key=lambda word: word.end) - 1
        return found[index] if index >= 0 else None

    def first_after(self, kind: str, position: int) -> Occurrence | None:
        """Find the first word of a kind that starts at or after a position."""
        found = self.words.get(kind, [])
        index = bisect_left(found, position, key=lambda word: word.start)
        return found[index] if index < len(found) else None

    def is_near(self, kind: str, start: int, end: int, before: int, after: int) -> bool:
        """Tell whether a word of a kind stands within so many characters of a range."""
        previous = self.last_before(kind, start)
        if previous is not None and start - previous.end <= before:
            return True
        following = self.first_after(kind, end)
        return following is not None and following.start - end <= after


def prepare_text(text: str) -> CodeText:
    """Prepare a plain text."""
    return _prepare(make_plain(text[:MAX_CODE_TEXT]), ())


def prepare_page(page: VisibleText) -> CodeText:
    """Prepare the visible text of a page, with what stands out in it."""
    text = page.text[:MAX_CODE_TEXT]
    moved = _move_offsets(text, {offset for pair in page.prominent for offset in pair})
    prominent = ((moved[start], moved[end]) for start, end in page.prominent if end <= len(text))
    return _prepare(make_plain(text), tuple(sorted(prominent)))


def _prepare(plain: str, prominent: tuple[tuple[int, int], ...]) -> CodeText:
    folded = fold(plain)
    words: dict[str, list[Occurrence]] = {}
    for occurrence in find_phrases(folded, _phrases()):
        kind = "label" if is_compound(plain, folded, occurrence) else occurrence.kind
        words.setdefault(kind, []).append(occurrence)
    return CodeText(plain, folded, prominent, words)


def _move_offsets(text: str, offsets: Iterable[int]) -> dict[int, int]:
    """Say where each offset lies after `make_plain`, which drops invisible characters."""
    moved: dict[int, int] = {}
    previous = position = 0
    for offset in sorted(offsets):
        position += len(make_plain(text[previous:offset]))
        moved[offset] = position
        previous = offset
    return moved
