"""Helpers for sentences: short quotations, lists and counts."""

from collections.abc import Sequence

from mailcheck.checks.content.decoding import flatten_controls

MAX_QUOTE = 80
"""Maximum number of characters of a quotation from the mail."""

MAX_LISTED = 3
"""Maximum number of examples in one sentence."""


def quote(text: str) -> str:
    """Shorten a text from the mail to one line for a sentence."""
    text = flatten_controls(text)
    return text if len(text) <= MAX_QUOTE else text[:MAX_QUOTE] + "..."


def enumerate_some(items: Sequence[str]) -> str:
    """Format the first few items, and the number of the others."""
    named = ", ".join(quote(item) for item in items[:MAX_LISTED])
    more = len(items) - MAX_LISTED
    return f"{named} and {more} more" if more > 0 else named


def count_of(number: int, noun: str) -> str:
    """Format a number with its noun: ``1 image``, ``1,200 images``."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"
