"""A message as an agent gets to see it: readable, bounded, inert; the same for all who ask."""

import re
from dataclasses import dataclass, field, replace

from msgspec import Struct

from mailcheck.api.inbox.messages import bound_links
from mailcheck.api.mcp.untrusted import defuse_html, defuse_markdown, remove_invisible
from mailcheck.checks.content.html_tree import Element, Words, read_tree
from mailcheck.checks.content.visible_text import BLOCKS, CELLS
from mailcheck.core.content import MessageContent

MAX_READ = 131_072
"""Characters of HTML that are looked at: above what Gmail shows of a mail (102 KiB)."""

MAX_TEXT = 20_000
"""Characters of text that are shown: about 5,000 tokens, a fifth of what clients pass on."""

MAX_HTML = 20_000
"""Characters of HTML that are shown; the rest is on the REST side."""

MAX_LINKS = 100
"""Links are given exactly, so their number and whole length are bounded, never a link."""

FEW_LINKS = 10
"""Links of a message in a list."""


class MessageView(Struct, frozen=True):
    """What of a message's content is safe to show, and warnings in sentences of ours.

    ``text`` is the plain text, or the visible words of the HTML where there is
    none. ``hides_text`` tells that the mail shows machines what it hides from people.
    """

    text: str
    links: tuple[str, ...]
    hides_text: bool
    warnings: tuple[str, ...]


def trim_content(content: MessageContent) -> MessageContent:
    """Leave what a view needs: little enough to be handed to another process."""
    return replace(
        content,
        header_list=(),
        candidates=(),
        text=content.text[: 2 * MAX_TEXT + 1],
        html=content.html[:MAX_READ],
    )


def view_content(content: MessageContent) -> MessageView:
    """Make the view of a mail's content, whole or trimmed, in linear time."""
    page = read_page(content.html)
    has_text = bool(content.text.strip())
    text, text_warnings, invisible = _cut(content.text if has_text else page.text, MAX_TEXT)
    links = bound_links(content.links, MAX_LINKS)
    warnings = _warn_of_hidden(page.hidden_passages, page.hidden_characters)
    if not has_text and text:
        warnings.append("the mail has no plain text: text is what its HTML shows")
    if len(links) < len(content.links):
        warnings.append(f"only {len(links)} of {len(content.links)} links are listed")
    return MessageView(
        text=defuse_markdown(text),
        links=links,
        hides_text=page.hidden_passages > 0 or invisible > 0,
        warnings=(*warnings, *text_warnings),
    )


class VisiblePage(Struct, frozen=True):
    """The visible words, a line for each block, and how much is hidden from readers."""

    text: str
    hidden_passages: int
    hidden_characters: int


_EMPTY_LINES = re.compile(r"\n{3,}")
_GAPS = {**dict.fromkeys(BLOCKS, "\n"), **dict.fromkeys(CELLS, " ")}


def read_page(markup: str) -> VisiblePage:
    """Separate what is seen from what is hidden, in time linear in the size of the page."""
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
    """Make HTML safe to show; what is left out of a long one is said at its end."""
    shown, warnings, _ = _cut(html, MAX_HTML)
    return defuse_html(shown) + "".join(f"\n[{warning}]" for warning in warnings)


def _cut(text: str, most: int) -> tuple[str, list[str], int]:
    visible, invisible = remove_invisible(text[: 2 * most])
    warnings = []
    if invisible:
        warnings.append(f"{invisible} invisible characters were taken out")
    if len(visible) > most or len(text) > 2 * most:
        visible = visible[:most]
        warnings.append(f"cut after {most} characters")
    return visible, warnings, invisible


def _warn_of_hidden(passages: int, characters: int) -> list[str]:
    if not passages:
        return []
    places = "one passage" if passages == 1 else f"{passages} passages"
    warning = (
        f"the HTML hides {places} ({characters} characters) from people who read it: "
        f"a harmless preview line, or text meant for machines like you"
    )
    return [warning]
