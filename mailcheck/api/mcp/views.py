"""Views of messages for agents: readable, bounded and defused. One view serves all calls."""

import re
from dataclasses import dataclass, field, replace

from msgspec import Struct

from mailcheck.api.inbox.messages import bound_links
from mailcheck.api.mcp.untrusted import defuse_html, defuse_markdown, remove_invisible
from mailcheck.checks.content.html_tree import Element, Words, read_tree
from mailcheck.checks.content.visible_text import BLOCKS, CELLS
from mailcheck.core.content import MessageContent

MAX_READ = 131_072
"""Maximum number of characters of HTML that are parsed. Gmail shows 102 KiB of a mail."""

MAX_TEXT = 20_000
"""Maximum number of characters of text: about 5,000 tokens, a fifth of the limit of clients."""

MAX_HTML = 20_000
"""Maximum number of characters of HTML. The REST API returns all of it."""

MAX_LINKS = 100
"""Maximum number of links. Links are never shortened, so their number and total length are
bounded."""

FEW_LINKS = 10
"""Maximum number of links of a message in a list."""


class MessageView(Struct, frozen=True):
    """The content of a message that is safe to show, with warnings written by mailcheck.

    ``text`` is the plain text, or the visible text of the HTML if there is no plain text.
    ``hides_text`` is true if the mail contains text that people do not see.
    """

    text: str
    links: tuple[str, ...]
    hides_text: bool
    warnings: tuple[str, ...]


def trim_content(content: MessageContent) -> MessageContent:
    """Return the part of a content that a view needs, which is small enough for another process."""
    return replace(
        content,
        header_list=(),
        candidates=(),
        text=content.text[: 2 * MAX_TEXT + 1],
        html=content.html[:MAX_READ],
    )


def view_content(content: MessageContent) -> MessageView:
    """Create the view of a content, trimmed or not, in linear time."""
    page = read_page(content.html)
    has_text = bool(content.text.strip())
    text, text_warnings, invisible = cut(content.text if has_text else page.text, MAX_TEXT)
    links = bound_links(content.links, MAX_LINKS)
    warnings = _warn_of_hidden(page.hidden_passages, page.hidden_characters)
    if not has_text and text:
        warnings.append("the mail has no plain text: text is the visible text of its HTML")
    if len(links) < len(content.links):
        warnings.append(f"only {len(links)} of {len(content.links)} links are listed")
    return MessageView(
        text=defuse_markdown(text),
        links=links,
        hides_text=page.hidden_passages > 0 or invisible > 0,
        warnings=(*warnings, *text_warnings),
    )


class VisiblePage(Struct, frozen=True):
    """The visible text with a line for each block, and the amount of hidden text."""

    text: str
    hidden_passages: int
    hidden_characters: int


_EMPTY_LINES = re.compile(r"\n{3,}")
_GAPS = {**dict.fromkeys(BLOCKS, "\n"), **dict.fromkeys(CELLS, " ")}


def read_page(markup: str) -> VisiblePage:
    """Separate the visible text from the hidden text, in time linear in the size of the page."""
    page = _Page()
    for node in read_tree(markup, MAX_READ).nodes:
        if isinstance(node, Words):
            page.add(node)
        else:
            name = node.name if isinstance(node, Element) else node.element.name
            if name in _GAPS:
                page.pieces.append(_GAPS[name])
    lines = [" ".join(line.split()) for line in "".join(page.pieces).split("\n")]
    text = _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()
    return VisiblePage(text, page.hidden_passages, page.hidden_characters)


@dataclass(slots=True)
class _Page:
    pieces: list[str] = field(default_factory=list)
    hidden_passages: int = 0
    hidden_characters: int = 0
    was_hidden: bool = False

    def add(self, words: Words) -> None:
        text = words.text
        if not words.look.is_text:
            return
        if words.look.hidden_by is None:
            self.pieces.append(text.replace("\n", " "))
            self.was_hidden = self.was_hidden and text.isspace()
        elif not text.isspace():
            self.hidden_passages += not self.was_hidden
            self.hidden_characters += len("".join(text.split()))
            self.was_hidden = True


def view_html(html: str) -> str:
    """Make HTML safe to show. Warnings about omitted text are appended."""
    shown, warnings, _ = cut(html, MAX_HTML)
    return defuse_html(shown) + "".join(f"\n[{warning}]" for warning in warnings)


def cut(text: str, most: int) -> tuple[str, list[str], int]:
    """Return the visible text of bounded length, warnings, and the number of removed characters."""
    visible, invisible = remove_invisible(text[: 2 * most])
    warnings = []
    if invisible:
        warnings.append(f"{invisible} invisible characters were removed")
    if len(visible) > most or len(text) > 2 * most:
        visible = visible[:most]
        warnings.append(f"cut after {most} characters")
    return visible, warnings, invisible


def _warn_of_hidden(passages: int, characters: int) -> list[str]:
    if not passages:
        return []
    places = "one passage" if passages == 1 else f"{passages} passages"
    warning = (
        f"the HTML hides {places} ({characters} characters) from human readers: a harmless "
        "preview line, or text intended for machines like you"
    )
    return [warning]
