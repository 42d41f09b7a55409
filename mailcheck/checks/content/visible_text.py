"""HTML to the text a person sees, line by line, with its links and what stands out."""

from collections import Counter
from dataclasses import dataclass, field

from mailcheck.checks.content import element_styles
from mailcheck.checks.content.html_tokens import EndTag, StartTag, tokenize_html
from mailcheck.checks.content.limits import MAX_HTML


@dataclass(frozen=True, slots=True)
class Anchor:
    """A link of the page: where it leads, what a person reads on it, how it is drawn.

    ``position`` is its offset in the visible text. ``has_text`` is false where
    it holds only images, whose ``alt`` texts are then its text.
    """

    href: str
    text: str
    title: str
    position: int
    has_text: bool
    is_button: bool


@dataclass(frozen=True, slots=True)
class VisibleText:
    """The visible text: a line feed between lines, a tab between cells, else one blank.

    ``prominent`` are the ranges that stand out (large, bold, letter-spaced).
    """

    text: str
    anchors: tuple[Anchor, ...]
    prominent: tuple[tuple[int, int], ...]


def render_visible_text(markup: str) -> VisibleText:
    """Render HTML as far as words, lines and visibility go; style sheets are not applied.

    Hidden elements are left out with their links, comments and attributes
    always. Looks at the first 512 KiB; takes time linear in them.
    """
    page = _Page()
    for token in tokenize_html(markup[:MAX_HTML]):
        if isinstance(token, str):
            page.add_text(token)
        elif isinstance(token, StartTag):
            page.open(token)
        else:
            page.close(token)
    return page.finish()


@dataclass(slots=True)
class _Element:
    name: str
    is_hidden: bool
    is_tiny: bool
    is_prominent: bool
    is_preformatted: bool
    start: int


@dataclass(slots=True)
class _OpenAnchor:
    attributes: dict[str, str]
    start: int
    piece: int
    is_styled: bool
    is_tiny: bool
    alternative: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Page:
    """The text so far; at most one white-space mark waits to be written."""

    pieces: list[str] = field(default_factory=list)
    length: int = 0
    gap: str = ""
    elements: list[_Element] = field(default_factory=list)
    open_names: Counter[str] = field(default_factory=Counter)
    anchor: _OpenAnchor | None = None
    anchors: list[Anchor] = field(default_factory=list)
    prominent: list[tuple[int, int]] = field(default_factory=list)

    def open(self, tag: StartTag) -> None:
        name = tag.name
        if name in element_styles.IMPLIED_END and self.elements and self.elements[-1].name == name:
            self._pop()
        self._separate(name)
        if name == "a":
            self._close_anchor()
        if name == "img":
            self._add_image(tag)
        if name in element_styles.VOID:
            return
        above = self.elements[-1] if self.elements else None
        element = _Element(
            name=name,
            is_hidden=(above is not None and above.is_hidden)
            or name in element_styles.NOT_SHOWN
            or element_styles.is_hidden(tag.attributes),
            is_tiny=self._is_tiny(tag.attributes),
            is_prominent=element_styles.is_prominent(name, tag.attributes),
            is_preformatted=name == "pre" or (above is not None and above.is_preformatted),
            start=self.length,
        )
        self.elements.append(element)
        self.open_names[name] += 1
        if name == "a" and not element.is_hidden and tag.attributes.get("href"):
            styled = element_styles.is_button(tag.attributes)
            self.anchor = _OpenAnchor(
                tag.attributes, self.length, len(self.pieces), styled, element.is_tiny
            )

    def close(self, tag: EndTag) -> None:
        # An end tag without its start tag is ignored; the counts make each
        # element be left once, so the whole page takes linear time.
        if self.open_names[tag.name]:
            while self.elements[-1].name != tag.name:
                self._pop()
            self._pop()
        self._separate(tag.name)

    def add_text(self, text: str) -> None:
        above = self.elements[-1] if self.elements else None
        if above is not None and (above.is_hidden or above.is_tiny):
            return
        lines = text.split("\n") if above is not None and above.is_preformatted else [text]
        for number, line in enumerate(lines):
            if number:
                self._add_gap("\n")
            self._add_line(line)

    def finish(self) -> VisibleText:
        self._close_anchor()
        while self.elements:
            self._pop()
        return VisibleText("".join(self.pieces), tuple(self.anchors), tuple(self.prominent))

    def _is_tiny(self, attributes: dict[str, str]) -> bool:
        """Font size is inherited: layouts set 0 on a cell and a real size on what is in it."""
        size = element_styles.find_font_size(attributes)
        if size is None:
            return bool(self.elements) and self.elements[-1].is_tiny
        return size <= element_styles.TINY_PIXELS

    def _add_line(self, line: str) -> None:
        words = line.split()
        if line[:1].isspace() or not words:
            self._add_gap(" " if line else "")
        if not words:
            return
        self._write(" ".join(words))
        if line[-1].isspace():
            self._add_gap(" ")

    def _add_gap(self, gap: str) -> None:
        """Remember the strongest white space: line, cell, blank."""
        if " \t\n".find(gap) > " \t\n".find(self.gap) or not self.gap:
            self.gap = gap

    def _write(self, text: str) -> None:
        if self.gap and self.length:
            text = self.gap + text
        self.gap = ""
        self.pieces.append(text)
        self.length += len(text)

    def _separate(self, name: str) -> None:
        if name in element_styles.BLOCKS:
            self._add_gap("\n")
        elif name in element_styles.CELLS:
            self._add_gap("\t")

    def _add_image(self, tag: StartTag) -> None:
        hidden = self.elements and self.elements[-1].is_hidden
        if self.anchor is not None and not hidden:
            self.anchor.alternative.append(tag.attributes.get("alt", ""))

    def _pop(self) -> None:
        element = self.elements.pop()
        self.open_names[element.name] -= 1
        if element.is_prominent and self.length > element.start and not element.is_hidden:
            self.prominent.append((element.start, self.length))
        if element.name == "a":
            self._close_anchor()

    def _close_anchor(self) -> None:
        anchor = self.anchor
        if anchor is None:
            return
        self.anchor = None
        text = "".join(self.pieces[anchor.piece :]).strip()
        if not text and anchor.is_tiny and not anchor.alternative:
            return
        self.anchors.append(
            Anchor(
                href=anchor.attributes["href"],
                text=" ".join((text or " ".join(anchor.alternative)).split()),
                title=anchor.attributes.get("title", ""),
                position=anchor.start,
                has_text=bool(text),
                is_button=anchor.is_styled,
            )
        )
