"""The visible text of a page, line by line, with its links and prominent ranges."""

from msgspec import Struct, field

from mailcheck.checks.content.html_tree import BaseUrl, Element, End, HtmlTree, Words
from mailcheck.checks.content.styles import is_button, is_prominent

# fmt: off
BLOCKS = frozenset([
    "address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd",
    "details", "dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form",
    "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "legend", "li", "main", "nav",
    "ol", "optgroup", "option", "p", "pre", "section", "summary", "table", "tbody", "tfoot",
    "thead", "tr", "ul",
])
# fmt: on
"""Elements that begin and end a line."""

CELLS = frozenset(("td", "th"))
"""Elements that are separated on the same line."""

_GAPS = {**dict.fromkeys(BLOCKS, "\n"), **dict.fromkeys(CELLS, "\t")}


class Anchor(Struct, frozen=True):
    """A link of the page: its target, its visible text and its look.

    ``href`` is written in the page, and ``url`` is the same relative to its ``<base>``.
    ``position`` and ``end`` are its offsets in the visible text. ``has_text`` is false if it
    contains only images; its text is then their ``alt`` texts.
    """

    href: str
    url: str
    text: str
    title: str
    position: int
    end: int
    has_text: bool
    is_button: bool


class VisibleText(Struct, frozen=True):
    """The visible text: a line feed between lines, a tab between cells, else single blanks.

    ``prominent`` has the ranges that stand out (large, bold, letter-spaced).
    """

    text: str
    anchors: tuple[Anchor, ...]
    prominent: tuple[tuple[int, int], ...]


def render_visible_text(tree: HtmlTree) -> VisibleText:
    """Render the words and lines of a page; hidden content is left out with its links."""
    page = _Page()
    for node in tree.nodes:
        if isinstance(node, Words):
            if node.look.hidden_by is None and node.look.is_text:
                page.add_text(node.text)
        elif not isinstance(node, Element):
            page.close(node)
        elif node.name == "base":
            page.base.note(node)
        else:
            page.open(node)
    return VisibleText("".join(page.pieces), tuple(page.anchors), tuple(page.prominent))


class _OpenAnchor(Struct):
    element: Element
    start: int
    piece: int
    alternative: list[str] = field(default_factory=list)


class _Page(Struct):
    """The text so far; at most one white-space character is pending."""

    base: BaseUrl = field(default_factory=BaseUrl)
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    gap: str = ""
    preformatted: int = 0
    standing_out: list[tuple[Element, int]] = field(default_factory=list)
    anchor: _OpenAnchor | None = None
    anchors: list[Anchor] = field(default_factory=list)
    prominent: list[tuple[int, int]] = field(default_factory=list)

    def open(self, element: Element) -> None:
        name = element.name
        if name in _GAPS:
            self._add_gap(_GAPS[name])
        look = element.look
        if name == "img":
            if self.anchor is not None and look.shows_images:
                self.anchor.alternative.append(element.attributes.get("alt", ""))
        elif name == "a":
            self._close_anchor()  # of an anchor around the table of this one
            if look.shows_images and element.attributes.get("href"):
                self.anchor = _OpenAnchor(element, self.length, len(self.pieces))
        elif name == "area":
            # A link of a picture; its words are for readers who do not see the picture.
            attributes = element.attributes
            if attributes.get("href") and look.shows_images:
                words = " ".join(attributes.get("alt", "").split())
                title = attributes.get("title", "")
                place, href = self.length, attributes["href"]
                url = self.base.join(href)
                self.anchors.append(
                    Anchor(
                        href, url, words, title, place, end=place, has_text=False, is_button=False
                    )
                )
        elif name == "pre":
            self.preformatted += 1
        if is_prominent(name, element.attributes, element.style) and look.shows_images:
            self.standing_out.append((element, self.length))

    def close(self, end: End) -> None:
        element = end.element
        name = element.name
        if self.standing_out and self.standing_out[-1][0] is element:
            _, start = self.standing_out.pop()
            if self.length > start:
                self.prominent.append((start, self.length))
        if name in _GAPS:
            self._add_gap(_GAPS[name])
        elif name == "a" and self.anchor is not None and self.anchor.element is element:
            self._close_anchor()
        if name == "pre":
            self.preformatted -= 1

    def add_text(self, text: str) -> None:
        lines = text.split("\n") if self.preformatted else [text]
        for number, line in enumerate(lines):
            if number:
                self._add_gap("\n")
            words = line.split()
            if line[:1].isspace():
                self._add_gap(" ")
            if not words:
                continue
            written = " ".join(words)
            if self.gap and self.length:
                written = self.gap + written
            self.gap = ""
            self.pieces.append(written)
            self.length += len(written)
            if line[-1].isspace():
                self._add_gap(" ")

    def _add_gap(self, gap: str) -> None:
        """Remember the strongest white space: line, cell, blank."""
        if gap == "\n" or not self.gap or self.gap == " ":
            self.gap = gap

    def _close_anchor(self) -> None:
        anchor = self.anchor
        if anchor is None:
            return
        self.anchor = None
        element = anchor.element
        text = "".join(self.pieces[anchor.piece :]).strip()
        is_seen = element.look.hidden_by is None and not element.is_copy
        if not text and not anchor.alternative and not is_seen:
            return
        self.anchors.append(
            Anchor(
                href=element.attributes["href"],
                url=self.base.join(element.attributes["href"]),
                text=" ".join((text or " ".join(anchor.alternative)).split()),
                title=element.attributes.get("title", ""),
                position=anchor.start,
                end=self.length,
                has_text=bool(text),
                is_button=is_button(element.attributes, element.style),
            )
        )
