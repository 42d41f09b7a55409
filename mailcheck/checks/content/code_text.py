"""A text made ready for the search of codes: its words by kind, and what lies between them.

Other kinds of codes ("date code 2604418", "code agence : 20418") are too many to
list. So one more word makes a code another kind, unless it is known to leave a
one-time code what it is (``[compounds]`` of ``code_words.toml``), or the sentence
says whose code it is: "your acme code" is named after the sender.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from msgspec import Struct

from mailcheck.checks.content.limits import MAX_CODE_TEXT
from mailcheck.checks.content.phrases import (
    LETTERS,
    Occurrence,
    PhraseTable,
    compile_phrases,
    find_phrases,
    fold,
    is_unspaced,
    load_table,
    make_plain,
)
from mailcheck.checks.content.visible_text import VisibleText

# A full stop after one or two letters belongs to an abbreviation ("no. 4", "z dn. 3").
SENTENCE_END = re.compile(
    r"(?<!\b[^\W\d_])(?<!\b[^\W\d_]{2})(?<!\bdvs)[.!?](?:\s|\Z)|[。！？।۔؟።։]"
)
_LOOSE = " \t\r\n\x0b\x0c\"'`*_()[]<>«»“”„‘’「」『』【】〔〕（）:：=→#՝-"
TIGHT = re.compile(f"[{re.escape(_LOOSE)}]*+")
_COMMAS = ",，、"
_SIGNS = "".join(sign for sign in _LOOSE if sign in ":：=→»՝")
WORD_BEHIND = re.compile(
    rf" (?:(?:de|di|do|da|du|del|della) |d['’])?([{LETTERS}]{{1,30}})(?!\w)", re.IGNORECASE
)
WORD_BEFORE = re.compile(rf"(?<!\w)([{LETTERS}]{{1,30}}) \Z")
_WORDS = re.compile(f"[{LETTERS}]+")


def _table() -> Mapping[str, Mapping[str, Sequence[str]]]:
    words: Mapping[str, Mapping[str, Sequence[str]]] = load_table("code_words.toml")["words"]
    return words


@cache
def words_of(kind: str) -> frozenset[str]:
    """List the folded words of a kind in all languages."""
    return frozenset(
        fold(make_plain(word)) for words in _table().values() for word in words.get(kind, ())
    )


@cache
def _unspaced_words_of(kind: str) -> tuple[str, ...]:
    return tuple(word for word in words_of(kind) if is_unspaced(word[0]))


_LONGEST_CONNECTOR = 4  # words: "kodea: zure kodea da"


def ends_with_connector(gap: str) -> str | None:
    """Tell what leads from a word for the code to the number behind a folded gap: "is", ":"."""
    bare = gap.rstrip(_LOOSE)
    words = bare[-_REACH:].split()[-_LONGEST_CONNECTOR:]
    known = words_of("is")
    if any(" ".join(words[first:]) in known for first in range(len(words))):
        return "word"
    if bare.endswith(_unspaced_words_of("is")):
        return "word"
    return "sign" if any(sign in gap[len(bare) :] for sign in _SIGNS) else None


def begins_with_connector(gap: str) -> bool:
    """Tell whether a folded gap behind a number leads to a word for the code: "is", "as"."""
    if gap.startswith((" - ", "- ")):
        return True
    kinds = ("your",) if gap[:1] in _COMMAS else ("as", "your")
    bare = gap.lstrip(_LOOSE + _COMMAS)
    words = bare[:_REACH].split()[:_LONGEST_CONNECTOR]
    starts = {" ".join(words[:last]) for last in range(1, len(words) + 1)}
    return ":" not in gap[: len(gap) - len(bare)] and any(
        not starts.isdisjoint(words_of(kind)) or bare.startswith(_unspaced_words_of(kind))
        for kind in kinds
    )


def says_whose(folded: str, position: int) -> bool:
    """Tell whether the words before a position say whose code it is: "your acme ...code"."""
    before = folded[max(0, position - _REACH) : position].rstrip(".")
    ends = [match.end() for match in SENTENCE_END.finditer(before)]
    words = _WORDS.findall(before[ends[-1] if ends else 0 :])
    return not words_of("your").isdisjoint(words[-_LONGEST_CONNECTOR:])


@cache
def known_words(place: str) -> frozenset[str]:
    """List the words that may stand ``before`` or ``behind`` the word "code"."""
    return frozenset(map(fold, load_table("code_words.toml")["compounds"][place]))


def skip_word(gap: str, folded: str, word: Occurrence) -> int:
    """Say where a gap behind the word "code" goes on after an adjective of it, or a name."""
    match = WORD_BEHIND.match(gap)
    if match is None:
        return 0
    is_known = fold(match[1]) in known_words("behind")
    return match.end() if is_known or says_whose(folded, word.start) else 0


_REACH = 40
_PLAIN_CODE = frozenset(("code", "codes"))
_PLAIN_CODE_CJK = frozenset(("コード", "代码", "代碼", "코드"))
# fmt: off
_HEADS = frozenset((
    "code", "codes", "codigo", "codigos", "codice", "codici", "kod", "код",
    "cod", "codul", "codi", "kode", "kodas", "kods",
))
# fmt: on


def is_compound(plain: str, folded: str, word: Occurrence, *, is_of_codes: bool) -> bool:
    """Tell whether an unknown word before "code" makes it another kind of code.

    A word with a capital is a name ("your Example code") and leaves it what it is,
    and so does any where the mail speaks of one-time codes besides.
    """
    head = folded[word.start : word.end]
    if head not in _PLAIN_CODE:
        return head in _PLAIN_CODE_CJK and _is_joined(plain[word.start - 1 : word.start])
    if plain[word.start].isupper() and not plain[word.start + 1].isupper():
        return False  # German: what belongs to a noun is one word with it
    match = WORD_BEFORE.search(plain[max(0, word.start - _REACH) : word.start])
    if match is None or is_of_codes or not _is_unknown(match[1], "before"):
        return False
    return not says_whose(folded, word.start - len(match.group()))


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
    return _is_unknown(match[1], "behind") and not says_whose(folded, word.start)


def _is_unknown(word: str, place: str) -> bool:
    return word.islower() and fold(word) not in known_words(place)


@cache
def _phrases() -> PhraseTable:
    kinds = load_table("code_words.toml")["kinds"]
    return compile_phrases(
        {kind: {name: words.get(kind, ()) for name, words in _table().items()} for kind in kinds}
    )


class CodeText(Struct, frozen=True):
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

    @property
    def is_of_known_language(self) -> bool:
        """Tell whether the text has words of a language whose words for codes are known."""
        has_phrases = any(self.words.get(kind) for kind in _TELLING)
        return has_phrases or not words_of("common").isdisjoint(_WORDS.findall(self.folded))


_TELLING = ("code", "purpose", "label", "verb", "use", "promotion", "caution")


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
    found = find_phrases(folded, _phrases())
    # Who may see a code is said of one-time codes only, whatever they are called after.
    is_of_codes = any(occurrence.kind == "caution" for occurrence in found)
    for occurrence in found:
        kind = occurrence.kind
        if kind in _LABELS and _is_part_of_name(plain, occurrence):
            continue
        if kind == "code" and (
            is_compound(plain, folded, occurrence, is_of_codes=is_of_codes)
            or _is_labels_code(plain, folded, occurrence, words.get("label"))
        ):
            kind = "label"
        words.setdefault(kind, []).append(occurrence)
    return CodeText(plain, folded, prominent, words)


_LABELS = frozenset(("label", "thing"))


def _is_labels_code(
    plain: str, folded: str, word: Occurrence, labels: Sequence[Occurrence] | None
) -> bool:
    """Tell whether "code" belongs to the label before it: "employee code"."""
    if not labels or folded[word.start : word.end] not in _PLAIN_CODE:
        return False
    return plain[labels[-1].end : word.start] == " " and not says_whose(folded, labels[-1].start)


def _is_part_of_name(plain: str, word: Occurrence) -> bool:
    """Tell whether a word belongs to a sender's name: "Booking.com", "T-Mobile"."""
    behind = plain[word.end : word.end + 2]
    before = plain[max(0, word.start - 2) : word.start]
    return (behind[:1] == "." and behind[1:].islower()) or (
        before[1:] == "-" and before[:1].isupper()
    )


def _move_offsets(text: str, offsets: Iterable[int]) -> dict[int, int]:
    """Say where each offset lies after `make_plain`, which drops invisible characters."""
    moved: dict[int, int] = {}
    previous = position = 0
    for offset in sorted(offsets):
        position += len(make_plain(text[previous:offset]))
        moved[offset] = position
        previous = offset
    return moved
