"""A text made ready for the search of codes: its words by kind, and what lies between them.

Other kinds of codes ("date code 2604418", "code agence : 20418") are too many to
list, so the words that leave a code a one-time code are listed instead
(``[compounds]`` of ``code_words.toml``).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from mailcheck.checks.content.limits import MAX_CODE_TEXT
from mailcheck.checks.content.phrases import (
    Occurrence,
    PhraseTable,
    compile_phrases,
    find_phrases,
    fold,
    load_table,
    make_plain,
)
from mailcheck.checks.content.visible_text import VisibleText

# A full stop after one or two letters belongs to an abbreviation ("no. 4", "z dn. 3").
SENTENCE_END = re.compile(r"(?<!\b[^\W\d_])(?<!\b[^\W\d_]{2})[.!?](?:\s|\Z)|[。！？]")
TIGHT = re.compile(r"[\s\"'`*_()\[\]<>«»“”„‘’「」『』【】〔〕（）:：=→#-]*+")
_LETTER = r"(?:(?![\u2e80-\U0010ffff])[^\W\d_])"
WORD_BEHIND = re.compile(
    rf" (?:(?:de|di|do|da|du|del|della) |d['’])?({_LETTER}{{1,30}})(?!\w)", re.IGNORECASE
)
WORD_BEFORE = re.compile(rf"(?<!\w)({_LETTER}{{1,30}}) \Z")


@cache
def known_words(place: str) -> frozenset[str]:
    """List the words that may stand ``before`` or ``behind`` the word "code"."""
    return frozenset(map(fold, load_table("code_words.toml")["compounds"][place]))


def skip_known_word(gap: str) -> int:
    """Say where a gap behind the word "code" goes on after an adjective of it."""
    match = WORD_BEHIND.match(gap)
    return match.end() if match and fold(match[1]) in known_words("behind") else 0


_REACH = 40
_PLAIN_CODE = frozenset(("code", "codes"))
_PLAIN_CODE_CJK = frozenset(("コード", "代码", "代碼", "코드"))
_HEADS = frozenset(("code", "codes", "codigo", "codigos", "codice", "codici", "kod", "код"))


def is_compound(plain: str, folded: str, word: Occurrence) -> bool:
    """Tell whether an unknown word before "code" makes it another kind of code.

    A word with a capital is a name ("your Example code") and leaves it what it is.
    """
    head = folded[word.start : word.end]
    if word.kind != "code" or head not in _PLAIN_CODE:
        return head in _PLAIN_CODE_CJK and _is_joined(plain[word.start - 1 : word.start])
    match = WORD_BEFORE.search(plain[max(0, word.start - _REACH) : word.start])
    return match is not None and _is_unknown(match[1], "before")


def _is_joined(character: str) -> bool:
    """Tell whether a CJK character makes one word with what follows: no particle does."""
    is_kana = "\u3040" <= character <= "\u309f"
    return (
        character >= "\u2e80"
        and character.isalpha()
        and not is_kana
        and character not in "的此该該为為是本"
    )


def has_unknown_behind(plain: str, folded: str, word: Occurrence, number: int) -> bool:
    """Tell whether just an unknown word lies between "code" and the number at an offset."""
    if number - word.end > _REACH or folded[word.start : word.end] not in _HEADS:
        return False
    match = WORD_BEHIND.match(plain, word.end, number)
    if match is None or not TIGHT.fullmatch(plain, match.end(), number):
        return False
    return _is_unknown(match[1], "behind")


def _is_unknown(word: str, place: str) -> bool:
    return word.islower() and fold(word) not in known_words(place)


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
