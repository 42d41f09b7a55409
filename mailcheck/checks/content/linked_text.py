"""Plain text cut into pieces, so that its web links can be clicked."""

from dataclasses import dataclass

from mailcheck.checks.content.limits import MAX_LINK_TEXT
from mailcheck.checks.content.urls import find_urls

MAX_LINKS_SHOWN = 2_000
"""Links of one text that can be clicked; the text behind them is shown as it is."""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of text; ``is_link`` says that it is a web address as a whole."""

    text: str
    is_link: bool


def cut_at_links(text: str) -> tuple[TextPiece, ...]:
    """Cut a text at its http(s) links; the pieces together are the text."""
    pieces = []
    end = 0
    for start, url in find_urls(text[:MAX_LINK_TEXT])[:MAX_LINKS_SHOWN]:
        if start > end:
            pieces.append(TextPiece(text[end:start], is_link=False))
        end = start + len(url)
        pieces.append(TextPiece(text[start:end], is_link=True))
    if end < len(text):
        pieces.append(TextPiece(text[end:], is_link=False))
    return tuple(pieces)
