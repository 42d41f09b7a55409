"""What looks like a one-time code: its formats, and where they stand in a text."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import Struct

from mailcheck.checks.content.phrases import load_table


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
        return _classify_single(token)
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


def _classify_single(token: str) -> tuple[str, str] | None:
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
        shortest = load_formats()["upper"][0]
        is_short = self.kind in ("short mixed", "short letters")
        return (
            is_short
            or self.kind == "long digits"
            or (self.kind == "upper" and len(self.value) == shortest)
        )


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
        if _is_word(tokens[index].group()):
            index += 1
            continue
        count, shape = _read_spread(masked, tokens, index)
        if shape is not None:
            yield shape
        elif count == 0:
            count, shapes = _read_digit_run(masked, tokens, index)
            yield from shapes
        index += count


def _is_word(token: str) -> bool:
    return token.isalpha() and not token.isupper()


def _read_spread(text: str, tokens: list[re.Match[str]], index: int) -> tuple[int, Shape | None]:
    """Read single characters set apart, as in one table cell each.

    Gives how many tokens they are: 0 where these are none, no shape where they are too many.
    """
    end, gap = index, ""
    while end < len(tokens) and _is_single(tokens[end].group()):
        if end > index:
            between = text[tokens[end - 1].end() : tokens[end].start()]
            gap = gap or between
            if between != gap or not _is_gap(gap):
                break
        end += 1
    value = "".join(token.group() for token in tokens[index:end])
    least, most = load_formats()["spread"]
    if not least <= end - index <= most or sum(map(str.isdigit, value)) < 2:
        return (end - index if end - index > most else 0), None
    return end - index, Shape("spread", value, tokens[index].start(), tokens[end - 1].end())


def _is_single(token: str) -> bool:
    return len(token) == 1 and token.isascii() and (token.isdigit() or token.isupper())


def _is_gap(gap: str) -> bool:
    return len(gap) <= 8 and gap.isspace()


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
    return len(run), _read_one_by_one(run, is_row=gap == " ")


def _read_one_by_one(run: list[re.Match[str]], *, is_row: bool) -> list[Shape]:
    """Take numbers that make no group each for itself; in a row they are rather one long number."""
    digits = sum(len(token.group()) for token in run)
    kind = "long" if digits > _LONGEST_NUMBER else "row"
    return [
        Shape(kind if is_row else found[0], found[1], token.start(), token.end())
        for token in run
        if (found := classify(token.group()))
    ]


_GAPS_OF_GROUPS = (" ", "\t")
_LONGEST_NUMBER = 8  # digits; numbers in a row that are longer are a phone number or a card
