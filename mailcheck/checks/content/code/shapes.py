"""The pieces of a text that have the format of a code."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import Struct

from mailcheck.checks.content.code.code_text import words_of
from mailcheck.checks.content.phrases import (
    fold,
    load_table,
)

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


_PARTS_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_NAME = re.compile(r"[0-9]{1,3}([A-Za-z]{3,})[0-9]?|([A-Za-z]{3,})[0-9]{1,3}")
_COUPON = re.compile(r"([A-Z]{4,})[0-9]{1,4}|([A-Z]{3})[0-9]{2,4}")


def is_like_coupon(value: str) -> bool:
    """Return whether a code is a word and a number, as ``SAVE20`` is."""
    match = _COUPON.fullmatch(value)
    return match is not None and is_word(match[1] or match[2])


def is_like_name(value: str) -> bool:
    """Return whether a token has the format of a name: ``23andMe``, ``98point6``, ``Office365``."""
    match = None if value.isupper() else _NAME.fullmatch(value)
    return match is not None and all(
        is_word(part.upper()) for part in _PARTS_OF_NAME.findall(match[1] or match[2])
    )
