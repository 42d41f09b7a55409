"""What a person sees of an HTML mail and what it hides from them: for an agent that reads it.

`checks.content` renders a page to find links and codes in it; here the question
is which words stand there only for a machine.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from mailcheck.checks.content import element_styles
from mailcheck.checks.content.html_tokens import EndTag, StartTag, tokenize_html

MAX_READ = 131_072
"""Characters of HTML that are looked at: above what Gmail shows of a mail (102 KiB)."""

# Beside what ``element_styles`` calls hidden: text moved out of the page, clipped away or seen
# through.
_OUT_OF_PAGE = re.compile(
    r"(?<![\w-])(?:text-indent|left|top|right|margin-left|margin-top)\s*:\s*-[0-9]{3,}"
    r"|(?<![\w-])clip(?:-path)?\s*:\s*(?:rect\(\s*0|inset\(\s*(?:50|100)%)"
    r"|(?<![\w-])color\s*:\s*transparent",
    re.IGNORECASE,
)
_COLOR = re.compile(r"(?<![\w-])color\s*:\s*([^;!]{1,40})", re.IGNORECASE)
_BACKGROUND = re.compile(r"(?<![\w-])background(?:-color)?\s*:\s*([^;!]{1,200})", re.IGNORECASE)
_HEX = re.compile(r"#(?:[0-9a-f]{6}|[0-9a-f]{3})(?![0-9a-f])")
_RGB = re.compile(r"rgba?\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})")
_EMPTY_LINES = re.compile(r"\n{3,}")
_NAMED = {"white": "#ffffff", "black": "#000000"}
_PAPER, _INK = "#ffffff", "#000000"


@dataclass(frozen=True, slots=True)
class VisiblePage:
    """The visible words, a line for each block, and how much is hidden from readers."""

    text: str
    hidden_passages: int
    hidden_characters: int


class _Style(NamedTuple):
    """How the words inside an element are drawn; a tuple, since a page makes thousands."""

    is_skipped: bool
    is_hidden: bool
    font_size: float
    color: str | None
    background: str | None

    @property
    def hides(self) -> bool:
        """Tell whether words can't be seen; unknown colours are taken to differ."""
        is_tiny = self.font_size <= element_styles.TINY_PIXELS
        has_no_contrast = self.color is not None and self.color == self.background
        return self.is_hidden or is_tiny or has_no_contrast


_SHEET = _Style(is_skipped=False, is_hidden=False, font_size=16.0, color=_INK, background=_PAPER)


def read_page(markup: str) -> VisiblePage:
    """Separate what is seen from what is hidden, in time linear in the size of the page."""
    page = _Page()
    for token in tokenize_html(markup[:MAX_READ]):
        if isinstance(token, str):
            page.add(token)
        elif isinstance(token, StartTag):
            page.open(token)
        else:
            page.close(token)
    lines = [" ".join(line.split()) for line in "".join(page.pieces).split("\n")]
    text = _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()
    return VisiblePage(text, page.hidden_passages, page.hidden_characters)


@dataclass(slots=True)
class _Page:
    pieces: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=lambda: [""])
    styles: list[_Style] = field(default_factory=lambda: [_SHEET])
    open_names: Counter[str] = field(default_factory=Counter)
    hidden_passages: int = 0
    hidden_characters: int = 0
    was_hidden: bool = False

    def add(self, words: str) -> None:
        style = self.styles[-1]
        if style.is_skipped:
            return
        if not style.hides:
            self.pieces.append(words.replace("\n", " "))
            self.was_hidden = self.was_hidden and words.isspace()
        elif not words.isspace():
            self.hidden_passages += not self.was_hidden
            self.hidden_characters += len("".join(words.split()))
            self.was_hidden = True

    def open(self, tag: StartTag) -> None:
        name = tag.name
        if name in element_styles.IMPLIED_END and self.names[-1] == name:
            self._leave()
        self._separate(name)
        if name in element_styles.VOID:
            return
        above = self.styles[-1]
        if tag.attributes or name in element_styles.NOT_SHOWN:
            above = _style_inside(tag, above)
        self.names.append(name)
        self.styles.append(above)
        self.open_names[name] += 1

    def close(self, tag: EndTag) -> None:
        # An end tag without its start tag is ignored, so each element is left once.
        if self.open_names[tag.name]:
            while self.names[-1] != tag.name:
                self._leave()
            self._leave()
        self._separate(tag.name)

    def _leave(self) -> None:
        self.styles.pop()
        self.open_names[self.names.pop()] -= 1

    def _separate(self, name: str) -> None:
        if name in element_styles.BLOCKS:
            self.pieces.append("\n")
        elif name in element_styles.CELLS:
            self.pieces.append(" ")


def _style_inside(tag: StartTag, above: _Style) -> _Style:
    attributes = tag.attributes
    style = attributes.get("style", "")
    font_size = element_styles.find_font_size(attributes)
    return _Style(
        is_skipped=above.is_skipped or tag.name in element_styles.NOT_SHOWN,
        is_hidden=above.is_hidden
        or _OUT_OF_PAGE.search(style) is not None
        or element_styles.is_hidden(attributes),
        font_size=above.font_size if font_size is None else font_size,
        color=_find_color(_COLOR.search(style), attributes.get("color"), above.color),
        background=_find_color(
            _BACKGROUND.search(style),
            attributes.get("bgcolor", attributes.get("background")),
            above.background,
        ),
    )


def _find_color(
    styled: re.Match[str] | None, attribute: str | None, above: str | None
) -> str | None:
    if styled is not None:
        return _read_color(styled[1])
    return above if attribute is None else _read_color(attribute)


def _read_color(value: str) -> str | None:
    """Give a colour as ``#rrggbb``; nothing for a picture, a variable or what is not known."""
    value = value.strip().lower()
    if value in _NAMED:
        return _NAMED[value]
    if found := _HEX.search(value):
        digits = found[0][1:]
        return "#" + (digits if len(digits) == 6 else "".join(digit * 2 for digit in digits))
    if found := _RGB.search(value):
        return "#" + "".join(f"{min(255, int(part)):02x}" for part in found.groups())
    return None
