"""What has the form of a one-time code: every shape of ``code_words.toml`` in a text, in order."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from mailcheck.checks.content.word_tables import load_table

# A word with any letter of an alphabet is one token, so that no piece of it is a code.
_WORD = r"[0-9A-Za-z\u00c0-\u024f\u0370-\u052f]++"
_TOKEN = re.compile(rf"{_WORD}(?:-{_WORD})*+")
# URLs, domains with a path, and mail addresses: the numbers in them are theirs.
# Repetitions without a delimiter are bounded, so each start costs a constant.
_ADDRESSES = re.compile(
    r"(?:https?://|www\.)[!-~]++|[A-Za-z0-9-]{1,63}+\.[A-Za-z]{2,12}+/[!-~]*+|[\w.+=-]{0,64}@[\w.-]++",
    re.IGNORECASE | re.ASCII,
)
_DOMAIN_BOUND = re.compile(r"@[^\s@#]++ #(\S++)(?: .*)?", re.DOTALL)
MASK = "\ufffc"


@dataclass(frozen=True, slots=True)
class Shape:
    """A piece of text that has the form of a code; ``value`` is what one would type."""

    kind: str
    value: str
    start: int
    end: int


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
        count, shape = _read_spread(masked, tokens, index)
        if shape is None:
            count, shapes = _read_digit_run(masked, tokens, index)
            yield from shapes
        else:
            yield shape
        index += count


def _read_spread(text: str, tokens: list[re.Match[str]], index: int) -> tuple[int, Shape | None]:
    """Read single characters set apart, as in one table cell each; gives how many tokens."""
    end, gap = index, ""
    while end < len(tokens) and _is_single(tokens[end].group()):
        if end > index:
            between = text[tokens[end - 1].end() : tokens[end].start()]
            gap = gap or between
            if between != gap or not _is_gap(gap):
                break
        end += 1
    value = "".join(token.group() for token in tokens[index:end])
    least, most = _formats()["spread"]
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
    lengths = [len(token.group()) for token in run]
    if lengths in _formats()["spaced_groups"]:
        value = "".join(token.group() for token in run)
        return len(run), [Shape("groups", value, run[0].start(), run[-1].end())]
    if len(run) > 1 and gap == " ":
        kind = "long" if sum(lengths) > _LONGEST_NUMBER else "row"
        least = _formats()["digits"][0]
        return len(run), [
            Shape(kind, token.group(), token.start(), token.end())
            for token in run
            if len(token.group()) >= least
        ]
    shapes = [_classify(token.group(), token.start()) for token in run]
    return len(run), [shape for shape in shapes if shape is not None]


_GAPS_OF_GROUPS = (" ", "\t")
_LONGEST_NUMBER = 8  # digits; numbers in a row that are longer are a phone number or a card


def _classify(token: str, start: int) -> Shape | None:
    """Name the shape of one token without blanks, or nothing when it is no code's."""
    end = start + len(token)
    formats = _formats()
    if "-" in token:
        kind, value = _classify_groups(token.split("-"), token)
        return Shape(kind, value, start, end) if kind else None
    for kind, pattern in _single_patterns():
        least, most = formats[kind]
        if least <= len(token) <= most and pattern.fullmatch(token):
            return Shape(kind, token, start, end)
    return None


def _classify_groups(groups: list[str], token: str) -> tuple[str, str]:
    formats = _formats()
    if all(group.isdigit() for group in groups):
        return (
            ("groups", "".join(groups)) if list(map(len, groups)) in formats["groups"] else ("", "")
        )
    head, tail = groups[0], groups[-1]
    least, most = formats["prefix"]
    if (
        len(groups) == 2
        and head.isalpha()
        and token.isascii()
        and head.isupper()
        and least <= len(head) <= most
    ):
        low, high = formats["digits"]
        if tail.isdigit() and low <= len(tail) <= high and len(tail) > len(head):
            return "prefixed", tail
        if len(head) == 1 and tail.isupper() and 5 <= len(tail) <= 8:
            return "prefixed", tail
    fewest, most_groups, shortest, longest = formats["letter_groups"]
    if not fewest <= len(groups) <= most_groups or not (token.isupper() and token.isascii()):
        return "", ""
    if not all(shortest <= len(group) <= longest for group in groups):
        return "", ""
    return ("letter groups" if any(map(str.isdigit, token)) else "letters"), token


@cache
def _formats() -> dict[str, Any]:
    formats: dict[str, Any] = load_table("code_words.toml")["formats"]
    return formats


@cache
def _single_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return (
        ("digits", re.compile(r"[0-9]+")),
        ("upper", re.compile(r"(?=.*[0-9])(?=.*[A-Z])[A-Z0-9]+")),
        ("mixed", re.compile(r"(?=.*[0-9])(?=.*[a-z])[A-Za-z0-9]+")),
        ("letters", re.compile(r"[A-Z]+")),
    )
