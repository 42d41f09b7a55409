"""Pieces of sentences: what was found in a mail, short enough to be read."""

from collections.abc import Sequence

from mailcheck.checks.content.decoding import flatten_controls

MAX_QUOTE = 80
"""Characters shown of anything that stood in the mail."""

MAX_LISTED = 3
"""Examples named in one sentence."""


def quote(text: str) -> str:
    """Shorten a text of the mail for a sentence, on one line."""
    text = flatten_controls(text)
    return text if len(text) <= MAX_QUOTE else text[:MAX_QUOTE] + "..."


def enumerate_some(items: Sequence[str]) -> str:
    """Name the first few of several things, and how many more there are."""
    named = ", ".join(quote(item) for item in items[:MAX_LISTED])
    more = len(items) - MAX_LISTED
    return f"{named} and {more} more" if more > 0 else named


def count_of(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 picture``, ``3 pictures``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
