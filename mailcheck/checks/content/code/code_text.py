"""Text prepared for the search for codes: its words by kind.

There are too many other kinds of codes ("date code 2604418", "code agence : 20418") to list them.
An extra word therefore makes a code another kind of code. There are two exceptions: words that are
known to belong to one-time codes (``[compounds]`` of ``code_words.toml``), and sentences that name
the owner of the code, as in "your acme code" after the sender.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter

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

_ENGLISH_HEADS = ("code", "codes", "password", "otp", "pin", "token", "key", "number")
_ENGLISH_ARTICLES = frozenset(("the", "this", "to"))
_PHRASE = re.compile(r"[^0-9.!?:;\n]*")

_REACH = 40

_TELLING = ("code", "purpose", "label", "verb", "use", "promotion", "caution")

_LABELS = frozenset(("label", "thing"))


# A full stop after one or two letters marks an abbreviation ("no. 4", "z dn. 3").
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
    """Return the folded words of a kind in all languages."""
    return frozenset(
        fold(make_plain(word)) for words in _table().values() for word in words.get(kind, ())
    )


@cache
def _unspaced_words_of(kind: str) -> tuple[str, ...]:
    return tuple(word for word in words_of(kind) if is_unspaced(word[0]))


_LONGEST_CONNECTOR = 4  # words: "kodea: zure kodea da"


def ends_with_connector(gap: str) -> str | None:
    """Return how a gap leads from a word for a code to a number: a "word", a "sign" or `None`."""
    bare = gap.rstrip(_LOOSE)
    words = bare[-_REACH:].split()[-_LONGEST_CONNECTOR:]
    known = words_of("is")
    if any(" ".join(words[first:]) in known for first in range(len(words))):
        return "word"
    if bare.endswith(_unspaced_words_of("is")):
        return "word"
    return "sign" if any(sign in gap[len(bare) :] for sign in _SIGNS) else None


def begins_with_connector(gap: str) -> bool:
    """Return whether a folded gap leads from a number to a word for a code: "is", "as"."""
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


def find_connector(plain: str, folded: str, word: Occurrence, position: int) -> str | None:
    """Return how a word for a code leads directly to a position: "word", "sign", "blank" or `None`.

    Only a connector, or a phrase such as "for your account at Acme" and a connector, is between.
    """
    gap = folded[word.end : position]
    connector = ends_with_connector(gap)
    bare = gap.strip(_LOOSE)
    first = bare.split(maxsplit=1)[:1]
    if first and first[0] in words_of("link") and bare != "to":  # Polish: "is"
        return connector if bare != first[0] and _PHRASE.fullmatch(bare) else None
    if bare in _ENGLISH_ARTICLES and folded.endswith(_ENGLISH_HEADS, word.start, word.end):
        return None
    bare = gap[skip_word(plain[word.end : position], folded, word) :].strip(_LOOSE)
    if not bare:
        return connector or "blank"
    return connector if bare in words_of("is") else None


def is_specific(folded: str, word: Occurrence) -> bool:
    """Return whether words say what a code is for, as "login code" does and "code" does not."""
    return _plain_heads().fullmatch(folded, word.start, word.end) is None


@cache
def _plain_heads() -> re.Pattern[str]:
    """Return a pattern for words that mean any kind of code."""
    heads = "|".join(map(re.escape, map(fold, load_table("code_words.toml")["compounds"]["plain"])))
    return re.compile(rf"{heads}|.*:")


def names_owner(folded: str, position: int) -> bool:
    """Return whether the words before a position name the owner: "your acme ...code"."""
    before = folded[max(0, position - _REACH) : position].rstrip(".")
    ends = [match.end() for match in SENTENCE_END.finditer(before)]
    words = _WORDS.findall(before[ends[-1] if ends else 0 :])
    return not words_of("your").isdisjoint(words[-_LONGEST_CONNECTOR:])


@cache
def known_words(place: str) -> frozenset[str]:
    """Return the words that may be ``before`` or ``behind`` the word "code"."""
    return frozenset(map(fold, load_table("code_words.toml")["compounds"][place]))


def skip_word(gap: str, folded: str, word: Occurrence) -> int:
    """Return where a gap after the word "code" continues after an adjective or a name."""
    match = WORD_BEHIND.match(gap)
    if match is None:
        return 0
    is_known = fold(match[1]) in known_words("behind")
    return match.end() if is_known or names_owner(folded, word.start) else 0


_PLAIN_CODE = frozenset(("code", "codes"))
_PLAIN_CODE_CJK = frozenset(("コード", "代码", "代碼", "코드"))
# fmt: off
_HEADS = frozenset((
    "code", "codes", "codigo", "codigos", "codice", "codici", "kod", "код",
    "cod", "codul", "codi", "kode", "kodas", "kods",
))
# fmt: on


def is_compound(plain: str, folded: str, word: Occurrence, *, is_of_codes: bool) -> bool:
    """Return whether an unknown word before "code" makes it another kind of code.

    A word with a capital letter is a name ("your Example code") and does not. No word does if the
    mail also warns about sharing one-time codes.
    """
    head = folded[word.start : word.end]
    if head not in _PLAIN_CODE:
        # A particle does not form a compound with the CJK word after it.
        before = plain[word.start - 1 : word.start]
        is_letter = before >= "\u2e80" and before.isalpha()
        is_particle = "\u3040" <= before <= "\u309f" or before in "的此该該为為是本"
        return head in _PLAIN_CODE_CJK and is_letter and not is_particle
    if plain[word.start].isupper() and not plain[word.start + 1].isupper():
        return False  # German writes compound nouns as one word
    match = WORD_BEFORE.search(plain[max(0, word.start - _REACH) : word.start])
    if match is None or is_of_codes or not _is_unknown(match[1], "before"):
        return False
    return not names_owner(folded, word.start - len(match.group()))


def has_unknown_behind(plain: str, folded: str, word: Occurrence, number: int) -> bool:
    """Return whether only an unknown word is between "code" and the number at an offset."""
    if number - word.end > _REACH or folded[word.start : word.end] not in _HEADS:
        return False
    match = WORD_BEHIND.match(plain, word.end, number)
    if match is None or not TIGHT.fullmatch(plain, match.end(), number):
        return False
    return _is_unknown(match[1], "behind") and not names_owner(folded, word.start)


def _is_unknown(word: str, place: str) -> bool:
    return word.islower() and fold(word) not in known_words(place)


@cache
def _phrases() -> PhraseTable:
    kinds = load_table("code_words.toml")["kinds"]
    return compile_phrases(
        {kind: {name: words.get(kind, ()) for name, words in _table().items()} for kind in kinds}
    )


_START, _END = attrgetter("start"), attrgetter("end")


class CodeText(Struct, frozen=True):
    """A prepared text; ``plain`` and ``folded`` have the same positions.

    ``words`` has the sorted words of each kind.
    """

    plain: str
    folded: str
    prominent: tuple[tuple[int, int], ...]
    words: dict[str, list[Occurrence]]

    def last_before(self, kind: str, position: int) -> Occurrence | None:
        """Return the last word of a kind that ends at or before a position."""
        found = self.words.get(kind, [])
        index = bisect_right(found, position, key=_END) - 1
        return found[index] if index >= 0 else None

    def first_after(self, kind: str, position: int) -> Occurrence | None:
        """Return the first word of a kind that starts at or after a position."""
        found = self.words.get(kind, [])
        index = bisect_left(found, position, key=_START)
        return found[index] if index < len(found) else None

    def is_near(self, kind: str, start: int, end: int, before: int, after: int) -> bool:
        """Return whether a word of a kind is within a number of characters around a range."""
        previous = self.last_before(kind, start)
        if previous is not None and start - previous.end <= before:
            return True
        following = self.first_after(kind, end)
        return following is not None and following.start - end <= after

    def is_in_sentence(self, kind: str, start: int, end: int, reach: int) -> bool:
        """Return whether a word of a kind is in the sentence of a range and near enough."""
        before, after = self.last_before(kind, start), self.first_after(kind, end)
        gaps = [(before.end, start)] if before else []
        gaps += [(end, after.start)] if after else []
        return any(
            last - first <= reach and not SENTENCE_END.search(self.plain, first, last)
            for first, last in gaps
        )

    @property
    def is_of_known_language(self) -> bool:
        """Whether the text is in a language whose words for codes are known."""
        has_phrases = any(self.words.get(kind) for kind in _TELLING)
        return has_phrases or not words_of("common").isdisjoint(_WORDS.findall(self.folded))


def prepare_text(text: str) -> CodeText:
    """Prepare a plain text."""
    return _prepare(make_plain(text[:MAX_CODE_TEXT]), ())


def prepare_page(page: VisibleText) -> CodeText:
    """Prepare the visible text of a page, with its prominent ranges."""
    text = page.text[:MAX_CODE_TEXT]
    moved = _move_offsets(text, {offset for pair in page.prominent for offset in pair})
    prominent = ((moved[start], moved[end]) for start, end in page.prominent if end <= len(text))
    return _prepare(make_plain(text), tuple(sorted(prominent)))


def _prepare(plain: str, prominent: tuple[tuple[int, int], ...]) -> CodeText:
    folded = fold(plain)
    words: dict[str, list[Occurrence]] = {}
    found = find_phrases(folded, _phrases())
    # A warning about sharing appears only with one-time codes, whatever the code is called.
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


def _is_labels_code(
    plain: str, folded: str, word: Occurrence, labels: Sequence[Occurrence] | None
) -> bool:
    """Return whether "code" belongs to the label before it, as in "employee code"."""
    if not labels or folded[word.start : word.end] not in _PLAIN_CODE:
        return False
    return plain[labels[-1].end : word.start] == " " and not names_owner(folded, labels[-1].start)


def _is_part_of_name(plain: str, word: Occurrence) -> bool:
    """Return whether a word is part of the name of a sender: "Booking.com", "T-Mobile"."""
    behind = plain[word.end : word.end + 2]
    before = plain[max(0, word.start - 2) : word.start]
    return (behind[:1] == "." and behind[1:].islower()) or (
        before[1:] == "-" and before[:1].isupper()
    )


def _move_offsets(text: str, offsets: Iterable[int]) -> dict[int, int]:
    """Map each offset to its offset after `make_plain`, which drops invisible characters."""
    moved: dict[int, int] = {}
    previous = position = 0
    for offset in sorted(offsets):
        position += len(make_plain(text[previous:offset]))
        moved[offset] = position
        previous = offset
    return moved
