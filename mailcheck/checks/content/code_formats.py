"""The forms that senders give one-time codes, as ``code_words.toml`` lists them."""

import re
from functools import cache
from typing import Any

from mailcheck.checks.content.word_tables import load_table


@cache
def load_formats() -> dict[str, Any]:
    """Read the table of formats."""
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
    for kind, pattern in _single_patterns():
        least, most = load_formats()[kind]
        if least <= len(token) <= most and pattern.fullmatch(token):
            return kind, token
    return None


def _classify_prefixed(groups: list[str]) -> tuple[str, str] | None:
    head, tail = groups[0], groups[-1]
    least, most = load_formats()["prefix"]
    if len(groups) != 2 or not (head.isalpha() and head.isupper() and least <= len(head) <= most):
        return None
    low, high = load_formats()["digits"]
    if tail.isdigit() and low <= len(tail) <= high and len(tail) > len(head):
        return "prefixed", tail
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
