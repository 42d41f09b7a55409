"""Expanding macros for one mail (RFC 7208 7.3), in time that grows with the length only."""

import re
from collections.abc import Callable
from urllib.parse import quote

MAX_NAME = 253  # characters of a name, RFC 7208 7.3

_MACRO = re.compile(
    r"%(?:(?P<plain>[%_-])|\{(?P<letter>[A-Za-z])(?P<count>[0-9]*)(?P<reverse>[rR]?)"
    r"(?P<delimiters>[.+,/_=-]*)\})",
    re.ASCII,
)
_PLAIN = {"%": "%", "_": " ", "-": "%20"}
_MAX_DIGITS = 4  # of a number of labels; nothing has a thousand


def expand_macros(text: str, value_of: Callable[[str], str]) -> str:
    """Replace the macros of a text for which `explain_bad_domain_spec` has no complaint.

    :param value_of: gives what a lower-case macro letter stands for.
    """
    known: dict[str, str] = {}  # a hostile record may repeat one thousands of times

    def expand(match: re.Match[str]) -> str:
        macro = match.group()
        if macro not in known:
            known[macro] = _expand(match, value_of)
        return known[macro]

    return _MACRO.sub(expand, text)


def cut_to_name(text: str) -> str:
    """Drop the last dot, and labels on the left until it is short enough for a name."""
    name = text.removesuffix(".")
    if len(name) <= MAX_NAME:
        return name
    # The dot before the longest end that is short enough; without one only the last label is left.
    dot = name.find(".", len(name) - MAX_NAME - 1)
    return name[dot + 1 :] if dot >= 0 else name.rpartition(".")[2]


def _expand(match: re.Match[str], value_of: Callable[[str], str]) -> str:
    if match["plain"]:
        return _PLAIN[match["plain"]]
    letter = match["letter"]
    expansion = _transform(value_of(letter.lower()), match)
    return quote(expansion, safe="~") if letter.isupper() else expansion


def _transform(value: str, match: re.Match[str]) -> str:
    """Split, turn round, keep the last ones, and join with dots."""
    delimiters = match["delimiters"] or "."
    parts = value.translate(dict.fromkeys(map(ord, delimiters), "\0")).split("\0")
    if match["reverse"]:
        parts.reverse()
    count = match["count"].lstrip("0")[:_MAX_DIGITS]
    return ".".join(parts[-int(count) :] if count else parts)
