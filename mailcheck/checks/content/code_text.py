"""A text prepared for the search for codes: its words by kind, and the forms of codes in it.

Other kinds of codes ("date code 2604418", "code agence : 20418") are too many to
list. So one more word makes a code another kind, unless it is known to leave a
one-time code what it is (``[compounds]`` of ``code_words.toml``), or the sentence
says whose code it is: "your acme code" is named after the sender.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

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


@cache
def load_formats() -> dict[str, Any]:
    """Read the table of formats."""
    formats: dict[str, Any] = load_table("code_words.toml")["formats"]
    return formats


def classify(token: str) -> tuple[str, str] | None:
    """Name the format of a token and the code one would type, or nothing when it is no code's."""
    if not token.isascii():
        return None
    groups = token.split("-")
    if len(groups) == 1:
        if token.isdigit():
            kinds: tuple[str, ...] = ("digits", "long_digits")
        elif token.isalpha():
            kinds = ("letters",) if token.isupper() else ()
        else:
            kinds = ("upper",) if token.isupper() else ("mixed",)
            kinds = () if _IS_MASKED.fullmatch(token) else kinds
        for kind in kinds:
            least, most = load_formats()[kind]
            if least <= len(token) <= most:
                return kind.replace("_", " "), token
        if kinds == ("mixed",) and len(token) in _SHORT and not _IS_COUNTED.fullmatch(token):
            has_both = not token.islower() and any(map(str.islower, token))
            return ("short mixed", token) if has_both else None
        is_short = kinds == ("letters",) and len(token) == FEWEST_LETTERS
        return ("short letters", token) if is_short else None
    if all(group.isdigit() for group in groups):
        return classify_digit_groups(groups, "groups")
    return _classify_prefixed(groups) or _classify_letter_groups(groups, token)


def classify_digit_groups(groups: list[str], table: str) -> tuple[str, str] | None:
    """Name the format of digits in groups; ``table`` says how they are set apart."""
    lengths = [len(group) for group in groups]
    kind = "groups" if lengths in load_formats()[table] else "long groups"
    if kind == "long groups" and lengths not in load_formats()["long_groups"]:
        return None
    return kind, "".join(groups)


FEWEST_LETTERS = 4
"""Letters of a code without digits; so few must spell no word, on a line below the label."""


_IS_MASKED = re.compile(r"[Xx]{2,}[0-9]{2,6}|[0-9]{1,6}[Xx]{3,}[0-9]{0,6}")
"""``XX4829``: the end of a number whose beginning is not shown."""

_SHORT = range(4, 6)
"""Lengths of codes of mixed case that only a mail that calls them codes makes them."""

_IS_COUNTED = re.compile(r"[0-9]+[A-Za-z]+|[A-Z]?[a-z]+[0-9]{1,2}")
"""``5GHz``, ``Step4``: a number with its unit, or a word with its number."""


def _classify_prefixed(groups: list[str]) -> tuple[str, str] | None:
    head, tail = groups[0], groups[-1]
    least, most = load_formats()["prefix"]
    if len(groups) != 2 or not (head.isalpha() and head.isupper() and least <= len(head) <= most):
        return None
    low, high = load_formats()["digits"]
    if tail.isdigit() and low <= len(tail) <= high and len(tail) > len(head):
        is_part = len(head) == 1 and (head, len(tail)) not in _PREFIXES
        return "prefixed", "-".join(groups) if is_part else tail
    low, high = load_formats()["upper"]
    if len(head) == 1 and tail.isupper() and low <= len(tail) <= high:
        return "prefixed", tail
    return None


_PREFIXES = frozenset((("G", 6),))
"""Single letters before digits that only say who sent the code, with the number of the digits."""


def _classify_letter_groups(groups: list[str], token: str) -> tuple[str, str] | None:
    fewest, most, shortest, longest = load_formats()["letter_groups"]
    if not fewest <= len(groups) <= most:
        return None
    if not all(shortest <= len(group) <= longest for group in groups):
        return None
    has_digit = any(character.isdigit() for character in token)
    if token.isupper():
        return ("letter groups" if has_digit else "letters"), token
    return ("mixed", token) if has_digit else None


# A word with any letter of an alphabet is one token, so that no piece of it is a code.
_WORD = r"[0-9A-Za-z\u00c0-\u024f\u0370-\u052f]++"
# A word that follows digits after a lost line break is not part of them: "268423If you".
_TOKEN = re.compile(rf"[0-9]{{4,8}}+(?=[A-Z][a-z]{{1,12}}+[ ,.!])|{_WORD}(?:-{_WORD})*+")
# URLs, domains with a path, and mail addresses: the numbers in them are theirs.
# Repetitions without a delimiter are bounded, so each start costs a constant.
_ADDRESSES = re.compile(
    r"(?:https?://|www\.)[!-~]++|[A-Za-z0-9-]{1,63}+\.[A-Za-z]{2,12}+/[!-~]*+|[\w.+=-]{0,64}@[\w.-]++",
    re.IGNORECASE | re.ASCII,
)
_DOMAIN_BOUND = re.compile(r"@[^\s@#]++ #(\S++)(?: .*)?", re.DOTALL)
MASK = "\ufffc"


class Shape(Struct, frozen=True):
    """A piece of text that has the form of a code; ``value`` is what one would type."""

    kind: str
    value: str
    start: int
    end: int

    @property
    def is_of_rare_length(self) -> bool:
        """Tell whether a code of this format and length is called a code where it stands."""
        shortest: int = load_formats()["upper"][0]
        if self.kind == "upper":
            return len(self.value) == shortest
        return self.kind in ("short mixed", "short letters", "long digits")


def mask_addresses(text: str) -> str:
    """Blank out URLs and mail addresses; every other character keeps its place."""
    return _ADDRESSES.sub(lambda match: MASK * len(match.group()), text)


def find_domain_bound(text: str) -> Shape | None:
    """Find the code of a last line ``@host #code`` (WICG SMS one-time codes, section 3)."""
    stripped = text.rstrip()
    start = stripped.rfind("\n") + 1
    match = _DOMAIN_BOUND.fullmatch(stripped, start)
    return Shape("domain-bound", match[1], match.start(1), match.end(1)) if match else None


def find_shapes(masked: str) -> Iterator[Shape]:
    """Yield everything that has the form of a code, by position."""
    tokens = list(_TOKEN.finditer(masked))
    index = 0
    while index < len(tokens):
        token = tokens[index].group()
        if token.isalpha() and not token.isupper():
            index += 1  # a word
            continue
        count, shape = _read_spread(masked, tokens, index)
        if shape is not None:
            yield shape
        elif count == 0:
            count, shapes = _read_digit_run(masked, tokens, index)
            yield from shapes
        index += count


def _read_spread(text: str, tokens: list[re.Match[str]], index: int) -> tuple[int, Shape | None]:
    """Read single characters set apart, as in one table cell each.

    Gives how many tokens they are: 0 where these are none, no shape where they are too many.
    """
    end, gap = index, ""
    while end < len(tokens) and _is_single(tokens[end].group()):
        if end > index:
            between = text[tokens[end - 1].end() : tokens[end].start()]
            gap = gap or between
            if between != gap or len(gap) > 8 or not gap.isspace():
                break
        end += 1
    value = "".join(token.group() for token in tokens[index:end])
    least, most = load_formats()["spread"]
    if not least <= end - index <= most or sum(map(str.isdigit, value)) < 2:
        return (end - index if end - index > most else 0), None
    return end - index, Shape("spread", value, tokens[index].start(), tokens[end - 1].end())


def _is_single(token: str) -> bool:
    return len(token) == 1 and token.isascii() and (token.isdigit() or token.isupper())


def _read_digit_run(text: str, tokens: list[re.Match[str]], index: int) -> tuple[int, list[Shape]]:
    """Read numbers that follow each other with one blank between: a grouped code, or several."""
    end = index + 1
    gap = text[tokens[index].end() : tokens[index].end() + 1]
    if tokens[index].group().isdecimal() and gap in _GAPS_OF_GROUPS:
        while (
            end < len(tokens)
            and tokens[end].group().isdecimal()
            and text[tokens[end - 1].end() : tokens[end].start()] == gap
        ):
            end += 1
    run = tokens[index:end]
    if len(run) == 1:
        found = classify(run[0].group())
        return 1, [Shape(*found, run[0].start(), run[0].end())] if found else []
    grouped = classify_digit_groups([token.group() for token in run], "spaced_groups")
    if grouped is not None:
        return len(run), [Shape(*grouped, run[0].start(), run[-1].end())]
    # Numbers that are no group count each by itself; in a row they are rather one long number.
    kind = "long" if sum(len(token.group()) for token in run) > _LONGEST_NUMBER else "row"
    return len(run), [
        Shape(kind if gap == " " else found[0], found[1], token.start(), token.end())
        for token in run
        if (found := classify(token.group()))
    ]


_GAPS_OF_GROUPS = (" ", "\t")
_LONGEST_NUMBER = 8  # digits; numbers in a row that are longer are a phone number or a card


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
        # No particle makes one word with a CJK word behind it.
        before = plain[word.start - 1 : word.start]
        is_letter = before >= "\u2e80" and before.isalpha()
        is_particle = "\u3040" <= before <= "\u309f" or before in "的此该該为為是本"
        return head in _PLAIN_CODE_CJK and is_letter and not is_particle
    if plain[word.start].isupper() and not plain[word.start + 1].isupper():
        return False  # German: what belongs to a noun is one word with it
    match = WORD_BEFORE.search(plain[max(0, word.start - _REACH) : word.start])
    if match is None or is_of_codes or not _is_unknown(match[1], "before"):
        return False
    return not says_whose(folded, word.start - len(match.group()))


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

    def is_in_sentence(self, kind: str, start: int, end: int, reach: int) -> bool:
        """Return whether a word of a kind is in the sentence of a range, near enough."""
        before, after = self.last_before(kind, start), self.first_after(kind, end)
        gaps = [(before.end, start)] if before else []
        gaps += [(end, after.start)] if after else []
        return any(
            last - first <= reach and not SENTENCE_END.search(self.plain, first, last)
            for first, last in gaps
        )

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
