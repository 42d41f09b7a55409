"""Macros of SPF (RFC 7208 7), and the names that DNS is asked for."""

import re
from collections.abc import Callable
from urllib.parse import quote

from mailcheck.core.domain_names import MAX_LABEL, MAX_NAME

_MACRO = re.compile(
    r"%(?:(?P<plain>[%_-])|\{(?P<letter>[A-Za-z])(?P<count>[0-9]*)(?P<reverse>[rR]?)"
    r"(?P<delimiters>[.+,/_=-]*)\})",
    re.ASCII,
)
_PLAIN = {"%": "%", "_": " ", "-": "%20"}
_MAX_DIGITS = 4  # of a number of labels; no name has a thousand
_OF_DOMAIN = frozenset("dDoO")
"""Letters that stand for the domain itself in every mail."""


def depends_on_mail(text: str) -> bool:
    """Return whether the value of a domain-spec depends on the mail."""
    return any(found["letter"] not in _OF_DOMAIN for found in _letters(text))


def _letters(text: str) -> list[re.Match[str]]:
    return [found for found in _MACRO.finditer(text) if found["letter"]] if "%" in text else []


def expand_macros(text: str, value_of: Callable[[str], str]) -> str:
    """Replace the macros of a text for which `explain_bad_domain_spec` has no complaint.

    :param value_of: returns what a lower-case macro letter stands for.
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


def name_to_ask(text: str) -> str | None:
    """Return the name in the form of a DNS question, or `None` if DNS can't hold it.

    A backslash in a record is a character like any other; in a question it escapes.
    """
    name = text.removesuffix(".").lower()
    if len(name) > MAX_NAME or not all(0 < len(one) <= MAX_LABEL for one in name.split(".")):
        return None
    return name.replace("\\", "\\\\")


def _expand(match: re.Match[str], value_of: Callable[[str], str]) -> str:
    if match["plain"]:
        return _PLAIN[match["plain"]]
    letter = match["letter"]
    expansion = _transform(value_of(letter.lower()), match)
    return quote(expansion, safe="~") if letter.isupper() else expansion


def _transform(value: str, match: re.Match[str]) -> str:
    """Split, reverse, keep the last parts, and join with dots."""
    delimiters = match["delimiters"] or "."
    parts = value.translate(dict.fromkeys(map(ord, delimiters), "\0")).split("\0")
    if match["reverse"]:
        parts.reverse()
    count = match["count"].lstrip("0")[:_MAX_DIGITS]
    return ".".join(parts[-int(count) :] if count else parts)
