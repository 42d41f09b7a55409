"""Text prepared for the search for codes: its words by kind, and the tokens that look like codes.

There are too many other kinds of codes ("date code 2604418", "code agence : 20418") to list them.
An extra word therefore makes a code another kind of code. There are two exceptions: words that are
known to belong to one-time codes (``[compounds]`` of ``code_words.toml``), and sentences that name
the owner of the code, as in "your acme code" after the sender.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
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

_COUNTED = re.compile(r"[0-9]+([A-Za-z]+)")

_LETTERS_PER_VOWEL = 6  # words have a vowel in two or three letters
_WORDS_BY_CASE = re.compile(r"[a-z]{0,2}[A-Z]?[a-z]+(?>(?:-?[A-Z]?[a-z]{2,})*)|[A-Z]{2,}-[a-z]+")
"""``word``, ``iPhone``, ``PayPal``, ``SMS-em``."""

_DRAWN_WORDS = re.compile(r"[a-z]{3,9}(?:-[a-z]{3,9}){3,5}")
"""``plush-tidal-bamboo-fern``: a code of words."""

FEWEST_LETTERS = 4
"""Number of letters of the shortest code without digits. It must not spell a word, and must be on a
line below its label."""

_IS_MASKED = re.compile(r"[Xx]{2,}[0-9]{2,6}|[0-9]{1,6}[Xx]{3,}[0-9]{0,6}")
"""``XX4829``: a masked number."""

_SHORT = range(4, 6)
"""Lengths of codes of mixed case that count only if the mail calls them codes."""

_IS_COUNTED = re.compile(r"[0-9]+[A-Za-z]+|[A-Z]?[a-z]+[0-9]{1,2}")
"""``5GHz``, ``Step4``: a number with a unit, or a word with a number."""

_PREFIXES = frozenset((("G", 6),))
"""Single letters before digits that only name the sender, with the number of digits."""

_GAPS_OF_GROUPS = (" ", "\t")
_LONGEST_NUMBER = 8  # digits; longer numbers in a row are a phone number or a card number

_ENGLISH_HEADS = ("code", "codes", "password", "otp", "pin", "token", "key", "number")
_ENGLISH_ARTICLES = frozenset(("the", "this", "to"))
_PHRASE = re.compile(r"[^0-9.!?:;\n]*")

_REACH = 40

_TELLING = ("code", "purpose", "label", "verb", "use", "promotion", "caution")

_LABELS = frozenset(("label", "thing"))


@cache
def load_formats() -> dict[str, Any]:
    """Read the table of formats."""
    formats: dict[str, Any] = load_table("code_words.toml")["formats"]
    return formats


def classify(token: str) -> tuple[str, str] | None:
    """Return the format of a token and the code to type, or `None` if it is not a code."""
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
    """Return the format of groups of digits; ``table`` names the table of their separator."""
    lengths = [len(group) for group in groups]
    kind = "groups" if lengths in load_formats()[table] else "long groups"
    if kind == "long groups" and lengths not in load_formats()["long_groups"]:
        return None
    return kind, "".join(groups)


def classify_named(token: str) -> tuple[str, str] | None:
    """Return the kind "named" for a token without a usual format, or `None` for a word.

    Such a token is a code only if a sentence names it: "Your verification code is K7-9F-2Q".
    """
    least, most = load_formats()["named"]
    if not (token.isascii() and least <= len(token) <= most) or _IS_MASKED.fullmatch(token):
        return None
    value = token.replace("-", "") if token.replace("-", "").isdigit() else token
    counted = _COUNTED.fullmatch(token)
    if counted is not None and fold(counted[1]) in words_of("unit") | words_of("purpose"):
        return None
    is_long_word = value.isalpha() and (value.isupper() or len(value) < FEWEST_LETTERS)
    is_ordinary = not any(map(str.isdigit, value)) and (is_long_word or is_word(value))
    return None if is_ordinary else ("named", value)


def is_word(token: str) -> bool:
    """Return whether letters are likely to be a word, by their case, vowels and pairs."""
    if not token.isupper():
        return _WORDS_BY_CASE.fullmatch(token) is not None and not _DRAWN_WORDS.fullmatch(token)
    vowels = sum(map(token.count, "AEIOUY"))
    is_spoken = len(token) - token.count("-") <= _LETTERS_PER_VOWEL * vowels
    return is_spoken and _rare_pairs().search(token) is None


@cache
def _rare_pairs() -> re.Pattern[str]:
    """Return a pattern for two capitals that words do not have next to each other."""
    pairs = load_table("code_words.toml")["pairs"].items()
    return re.compile("|".join(f"{before}[^{after}-]" for before, after in pairs).upper())


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


# A word with any alphabet's letters is one token, so that no part of it is a code.
_WORD = r"[0-9A-Za-z\u00c0-\u024f\u0370-\u052f]++"
# After a lost line break, a word can follow digits without being part of them: "268423If you".
_TOKEN = re.compile(rf"[0-9]{{4,8}}+(?=[A-Z][a-z]{{1,12}}+[ ,.!])|{_WORD}(?>(?:-{_WORD})*)")
# URLs, domains with a path, and mail addresses, whose numbers are not codes. Repetitions without
# a delimiter are bounded, so that each start costs constant time.
_ADDRESSES = re.compile(
    r"(?:https?://|www\.)[!-~]++|[A-Za-z0-9-]{1,63}+\.[A-Za-z]{2,12}+/[!-~]*+|[\w.+=-]{0,64}@[\w.-]++",
    re.IGNORECASE | re.ASCII,
)
_DOMAIN_BOUND = re.compile(r"@[^\s@#]++ #(\S++)(?: .*)?", re.DOTALL)
MASK = "\ufffc"


class Shape(Struct, frozen=True):
    """A piece of text with the format of a code; ``value`` is the code as it is typed."""

    kind: str
    value: str
    start: int
    end: int

    @property
    def is_of_rare_length(self) -> bool:
        """Whether a code of this format and length counts only if the text calls it a code."""
        shortest: int = load_formats()["upper"][0]
        if self.kind == "upper":
            return len(self.value) == shortest
        return self.kind in ("short mixed", "short letters", "long digits")


def mask_addresses(text: str) -> str:
    """Mask URLs and mail addresses; every other character keeps its position."""
    return _ADDRESSES.sub(lambda match: MASK * len(match.group()), text)


def find_domain_bound(text: str) -> Shape | None:
    """Find the code in a last line ``@host #code`` (WICG SMS one-time codes, section 3)."""
    stripped = text.rstrip()
    start = stripped.rfind("\n") + 1
    match = _DOMAIN_BOUND.fullmatch(stripped, start)
    return Shape("domain-bound", match[1], match.start(1), match.end(1)) if match else None


def find_shapes(masked: str) -> Iterator[Shape]:
    """Yield all tokens with the format of a code, by position.

    Tokens of the kind "named" have no usual format. They are codes only if a sentence names them.
    """
    tokens = list(_TOKEN.finditer(masked))
    index = 0
    while index < len(tokens):
        token = tokens[index].group()
        if token.isalpha() and not token.isupper():
            is_plain = token.islower() or token.istitle()
            named = None if is_plain else classify_named(token)
            if named is not None:
                yield Shape(*named, tokens[index].start(), tokens[index].end())
            index += 1
            continue
        count, shape = _read_spread(masked, tokens, index)
        if shape is not None:
            yield shape
        elif count == 0:
            count, shapes = _read_digit_run(masked, tokens, index)
            yield from shapes
        index += count


def _read_spread(text: str, tokens: list[re.Match[str]], index: int) -> tuple[int, Shape | None]:
    """Read single characters with gaps between them, for example one per table cell.

    Return the number of tokens and the shape. The number is 0 if there are no such characters,
    and the shape is `None` if there are too many.
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
    """Read numbers separated by single blanks: one code in groups, or several numbers."""
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
        found = classify(run[0].group()) or classify_named(run[0].group())
        return 1, [Shape(*found, run[0].start(), run[0].end())] if found else []
    grouped = classify_digit_groups([token.group() for token in run], "spaced_groups")
    if grouped is not None:
        return len(run), [Shape(*grouped, run[0].start(), run[-1].end())]
    # Numbers that form no group count individually; in a row they are part of one long number.
    kind = "long" if sum(len(token.group()) for token in run) > _LONGEST_NUMBER else "row"
    return len(run), [
        Shape(kind if gap == " " else found[0], found[1], token.start(), token.end())
        for token in run
        if (found := classify(token.group()))
    ]


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
