"""HTML tree builder by the HTML standard (13.2.6), in linear time.

All readers of the HTML of a mail use this tree, so they agree where an element ends and whether
words are visible. Browsers draw content of a table outside its cells before the table (foster
parenting). Here it keeps its place, but not the look of the table.

There are two differences from the standard. Parts of a table are accepted without a table, since
mail is cut and quoted. A second ``<body>`` is an element, since the parts of a mail are read as
one page.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urljoin

from msgspec import Struct

from mailcheck.checks.content.html_tokens import EndTag, StartTag, StyleSheet, tokenize_html
from mailcheck.checks.content.limits import MAX_HTML, MAX_LINKS
from mailcheck.checks.content.styles import NO_STYLE, Look, Looks, Style, read_style

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*+:", re.IGNORECASE | re.ASCII)

MAX_FORMATTING = 8
"""Maximum number of formatting elements of a cell that continue after a block; mail nests about
four."""

MAX_REOPENED = 20_000
"""Maximum number of reopened elements of a page. Each costs memory without a tag in the mail."""

# fmt: off
VOID = frozenset([
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input",
    "keygen", "link", "meta", "param", "source", "track", "wbr",
])
# fmt: on
"""Elements without content (HTML 13.1.2)."""


class Element(Struct, eq=False):
    """An element: its tag, its own style, and the look of its content.

    ``is_copy`` is true for an element that was reopened because tags overlap. ``depth`` is its
    index in the stack of open elements, or -1 once it is closed. ``position`` is the offset of
    its start tag in the markup, or -1 for an implied element.
    """

    name: str
    attributes: Mapping[str, str]
    style: Style
    look: Look
    depth: int
    is_copy: bool
    position: int = -1


class Words(Struct, eq=False):
    """A piece of text with decoded references."""

    text: str
    look: Look


class End(Struct, eq=False):
    """The end of an element; ``has_tag`` is true if the mail has its end tag."""

    element: Element
    has_tag: bool


Node = Element | Words | End


MAX_BASE = 2_000
"""Maximum length of the URL of a base. Each relative link becomes longer by it."""


class BaseUrl(Struct):
    """The URL to which the links of a page are relative (HTML standard 4.2.3).

    ``left`` is the number of links that may still be joined with it.
    """

    url: str = ""
    left: int = MAX_LINKS

    def note(self, element: Element) -> None:
        """Take the URL of the first ``<base>`` with an http(s) URL."""
        if element.name == "base" and not self.url:
            url = element.attributes.get("href", "").strip()
            is_web = url[:8].lower().startswith(("http://", "https://"))
            self.url = url if is_web and len(url) <= MAX_BASE else ""

    def join(self, href: str) -> str:
        """Return a link as an absolute URL if it is relative; a place of the page stays."""
        link = href.strip()
        is_relative = link and link[0] != "#" and _SCHEME.match(link) is None
        if not self.url or not is_relative or not self.left:
            return href
        self.left -= 1
        try:
            return urljoin(self.url, link)
        except ValueError:
            return href


class HtmlTree(Struct, frozen=True):
    """The page in document order; each element except void ones has an end, properly nested.

    There are at most as many nodes as characters, plus `MAX_REOPENED` copies. Style sheets are
    not checked.
    """

    nodes: list[Node]
    style_sheets: tuple[StyleSheet, ...]


def read_tree(markup: str, most: int = MAX_HTML) -> HtmlTree:
    """Parse the first ``most`` characters of HTML in linear time; any text is valid."""
    style_sheets: list[StyleSheet] = []
    builder = _TreeBuilder()
    for token in tokenize_html(markup[:most]):
        if isinstance(token, StartTag):
            builder.open(token)
        elif isinstance(token, EndTag):
            builder.close(token.name)
        elif isinstance(token, str):
            builder.add_text(token)
        else:
            style_sheets.append(token)
            builder.looks.note_style_sheet(token.text)
    builder.finish()
    return HtmlTree(builder.nodes, tuple(style_sheets))


_RENAMED = {"image": "img", "listing": "pre", "plaintext": "pre", "xmp": "pre"}

# fmt: off
_HEAD_CONTENT = frozenset([
    "base", "basefont", "bgsound", "link", "meta", "noframes", "noscript", "script", "style",
    "template", "title",
])
_FORMATTING = frozenset([
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
])
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_TABLE_PARTS = frozenset([
    "caption", "col", "colgroup", "table", "tbody", "td", "tfoot", "th", "thead", "tr",
])
_BLOCKS_AFTER_P = frozenset([
    "address", "article", "aside", "blockquote", "center", "details", "dialog", "dir", "div",
    "dl", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "main",
    "menu", "nav", "ol", "p", "pre", "search", "section", "summary", "table", "ul", *_HEADINGS,
])
_SPECIAL = _BLOCKS_AFTER_P | _TABLE_PARTS | _HEAD_CONTENT | VOID | frozenset([
    "applet", "body", "button", "dd", "dt", "foreignobject", "frameset", "head", "html", "iframe",
    "li", "marquee", "noembed", "object", "select", "textarea",
])
_LEAVES_FOREIGN = (_FORMATTING - {"a", "font"}) | frozenset([
    "blockquote", "body", "br", "center", "dd", "div", "dl", "dt", "embed", "head", "hr", "img",
    "li", "menu", "meta", "ol", "p", "pre", "ruby", "span", "sub", "sup", "table", "td", "th",
    "tr", "ul", "var", *_HEADINGS,
])
# fmt: on

_IN_TABLE = frozenset(("table", "tbody", "tfoot", "thead", "tr"))
_STAYS_IN_TABLE = _TABLE_PARTS | {"form", "input", "script", "style", "template"}
_BOUNDARIES = frozenset(("applet", "caption", "marquee", "object", "td", "template", "th"))
"""Elements across which formatting does not continue (the standard's markers)."""

_TABLE_SCOPE = ("table",)
_ROW_SCOPE = ("table", "tr")
_CELL_SCOPE = ("td", "table", "th", "caption", "object", "template", "applet", "marquee")
_LIST_SCOPE = (*_CELL_SCOPE, "ol", "ul")
_SELECT_SCOPE = ("select",)

_P = (("p",), (*_CELL_SCOPE, "button"))
_CELLS = (("td", "th"), _TABLE_SCOPE)
_ROWS = (_CELLS, (("tr",), _TABLE_SCOPE))
_SECTIONS = ("tbody", "thead", "tfoot", "caption", "colgroup")

_CLOSED_BY: dict[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = {
    **dict.fromkeys(_BLOCKS_AFTER_P, (_P,)),
    **dict.fromkeys(_SECTIONS, (*_ROWS, (_SECTIONS, _TABLE_SCOPE))),
    **dict.fromkeys(("dd", "dt", "li"), (_P,)),
    "td": ((("td", "th"), _ROW_SCOPE),),
    "th": ((("td", "th"), _ROW_SCOPE),),
    "tr": _ROWS,
    "option": ((("option",), _SELECT_SCOPE),),
    "optgroup": ((("optgroup", "option"), _SELECT_SCOPE),),
    "select": ((("select",), _CELL_SCOPE),),
    "input": ((("select",), _CELL_SCOPE),),
    "textarea": ((("select",), _CELL_SCOPE),),
    "button": ((("button",), _CELL_SCOPE),),
    "rp": ((("rp", "rt"), ("ruby", *_CELL_SCOPE)),),
    "rt": ((("rp", "rt"), ("ruby", *_CELL_SCOPE)),),
}
"""Elements that a start tag closes first: their names, and the elements that limit the search."""

_ITEMS = {"dd": ("dd", "dt"), "dt": ("dd", "dt"), "li": ("li",)}
"""Items that an item of a list closes; only `_PASSED` elements may be between them."""

_PASSED = frozenset(("address", "div", "p"))

_FOREIGN = ("math", "svg")
_BACK_TO_HTML = ("foreignobject", "annotation-xml", "mi", "mn", "mo", "ms", "mtext")


@dataclass(slots=True)
class _TreeBuilder:
    """The nodes so far and the open elements.

    ``places`` has the depths of the open elements by name. ``specials`` are the depths of the
    standard's special elements, and ``walls`` those that an item of a list does not cross. With
    them, checking whether an element is in scope is one comparison at any depth. ``formatting``
    lists the formatting elements that continue after a block, separately for each cell.
    """

    looks: Looks = field(default_factory=Looks)
    nodes: list[Node] = field(default_factory=list)
    stack: list[Element] = field(default_factory=list)
    places: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    specials: list[int] = field(default_factory=list)
    walls: list[int] = field(default_factory=list)
    formatting: list[list[Element]] = field(default_factory=lambda: [[]])
    has_head: bool = False
    has_begun: bool = False
    reopened: int = 0

    def add_text(self, text: str) -> None:
        above = self.stack[-1] if self.stack else None
        if text.isspace():
            if above is not None and above.name in _IN_TABLE:
                self.nodes.append(Words(text, above.look))
                return
        elif not self.has_begun and not self.places["template"]:
            self._begin_body()
        if self.formatting[-1]:
            self._reopen_formatting()
        self.nodes.append(Words(text, self._look_above("")))

    def open(self, tag: StartTag) -> None:
        name = _RENAMED.get(tag.name, tag.name)
        if name in ("html", "head"):
            self._open_outermost(name, tag)
            return
        if not self.has_begun and name not in _HEAD_CONTENT and not self.places["template"]:
            self._begin_body()
        self._close_what_ends_before(name)
        if self.formatting[-1] and (name not in _SPECIAL or name in VOID):
            self._reopen_formatting()
        element = self._push(name, tag.attributes, tag.position)
        if name in _FORMATTING:
            entries = self.formatting[-1]
            entries.append(element)
            if len(entries) > MAX_FORMATTING:
                del entries[0]
        elif tag.is_self_closing and element.depth < len(self.stack) and self._is_foreign():
            self._pop(has_tag=True)

    def close(self, name: str) -> None:
        name = _RENAMED.get(name, name)
        if name in _FORMATTING:
            self._end_formatting(name)
        elif name in ("body", "html"):
            return  # what follows still belongs to the body (13.2.6.4.19)
        elif self.stack and self.stack[-1].name == name:
            self._pop(has_tag=True)
        elif name in ("br", "p"):  # their end tags imply an element if there is none to close
            if name == "br" or not self._close(*_P):
                self.open(StartTag(name, {}))
                if name == "p":
                    self._pop(has_tag=True)
        elif name in _HEADINGS:
            self._close(_HEADINGS, _CELL_SCOPE)
        elif name in _TABLE_PARTS:
            self._close_table_part(name)
        elif name in _SPECIAL:
            self._close((name,), _LIST_SCOPE if name == "li" else _CELL_SCOPE)
        else:
            self._close_ordinary(name)

    def _close_table_part(self, name: str) -> None:
        if not self._close((name,), _TABLE_SCOPE) and name in ("tr", "tbody"):
            for names, scope in _ROWS:  # the start tag of the row was left out
                self._close(names, scope)

    def finish(self) -> None:
        while self.stack:
            self._pop(has_tag=False)

    def _open_outermost(self, name: str, tag: StartTag) -> None:
        """Open ``<html>`` or ``<head>`` if it may begin; a second one is ignored."""
        if self.has_begun or self.places["head"] or (name == "html" and self.stack):
            return
        if not (name == "head" and self.has_head):
            self.has_head = self.has_head or name == "head"
            self._push(name, tag.attributes, tag.position)

    def _begin_body(self) -> None:
        """Close the head at the first content that is not allowed in it."""
        self.has_begun = True
        if self.places["head"]:
            self._pop_to(self.places["head"][-1], has_tag=False)

    def _close_what_ends_before(self, name: str) -> None:
        if name in _LEAVES_FOREIGN and self._is_foreign():
            self._close(_FOREIGN, _BACK_TO_HTML, has_tag=False)
        if name in _ITEMS and self.walls and self.stack[self.walls[-1]].name in _ITEMS[name]:
            self._pop_to(self.walls[-1], has_tag=False)
        for names, scope in _CLOSED_BY.get(name, ()):
            self._close(names, scope, has_tag=False)
        if name in _HEADINGS and self.stack and self.stack[-1].name in _HEADINGS:
            self._pop(has_tag=False)
        elif name in ("a", "nobr"):
            self._end_formatting(name, is_restart=True)

    def _is_foreign(self) -> bool:
        places = self.places
        if not (places["svg"] or places["math"]):
            return False
        foreign = max(places[name][-1] for name in _FOREIGN if places[name])
        return not any(places[name] and places[name][-1] > foreign for name in _BACK_TO_HTML)

    def _look_above(self, name: str) -> Look:
        """Return the look around the next node; content outside cells does not get the table's."""
        if not self.stack:
            return self.looks.sheet
        above = self.stack[-1]
        if above.name not in _IN_TABLE:
            return above.look
        if name not in _STAYS_IN_TABLE and self.places["table"]:
            place = self.places["table"][-1]
            return self.stack[place - 1].look if place else self.looks.sheet
        return above.look

    def _push(
        self, name: str, attributes: Mapping[str, str], position: int, *, is_copy: bool = False
    ) -> Element:
        style = attributes.get("style") if attributes else None
        depth = len(self.stack)
        element = Element(
            name,
            attributes,
            read_style(style) if style else NO_STYLE,
            self.looks.inside(self._look_above(name), name, attributes),
            depth,
            is_copy=is_copy,
            position=position,
        )
        self.nodes.append(element)
        if name in VOID:
            return element
        self.stack.append(element)
        self.places[name].append(depth)
        if name in _SPECIAL:
            self.specials.append(depth)
            if name not in _PASSED:
                self.walls.append(depth)
            if name in _BOUNDARIES:
                self.formatting.append([])
        return element

    def _pop(self, *, has_tag: bool) -> None:
        element = self.stack.pop()
        name = element.name
        self.places[name].pop()
        if name in _SPECIAL:
            self.specials.pop()
            if name not in _PASSED:
                self.walls.pop()
            if name in _BOUNDARIES:
                self.formatting.pop()
        element.depth = -1
        self.nodes.append(End(element, has_tag))

    def _pop_to(self, depth: int, *, has_tag: bool) -> None:
        while len(self.stack) > depth + 1:
            self._pop(has_tag=False)
        self._pop(has_tag=has_tag)

    def _close(
        self, names: tuple[str, ...], scope: tuple[str, ...], *, has_tag: bool = True
    ) -> bool:
        """Close the innermost element with a name, unless an element of the scope is inside it."""
        places = self.places
        depth = -1
        for name in names:
            if places[name] and places[name][-1] > depth:
                depth = places[name][-1]
        if depth < 0 or any(places[name] and places[name][-1] > depth for name in scope):
            return False
        self._pop_to(depth, has_tag=has_tag)
        return True

    def _close_ordinary(self, name: str) -> None:
        places = self.places[name]
        if places and not (self.specials and self.specials[-1] > places[-1]):
            self._pop_to(places[-1], has_tag=True)

    def _end_formatting(self, name: str, *, is_restart: bool = False) -> None:
        """Close a formatting element; an open block inside it continues without it (13.2.6.4.7)."""
        entries = self.formatting[-1]
        entry = next(
            (formatting for formatting in reversed(entries) if formatting.name == name), None
        )
        if entry is None:
            if not is_restart:
                self._close_ordinary(name)
            return
        depth = entry.depth
        if depth < 0:
            entries.remove(entry)
            return
        if self.places["table"] and self.places["table"][-1] > depth:
            return
        if bisect_right(self.specials, depth) == len(self.specials):
            entries.remove(entry)
            self._pop_to(depth, has_tag=not is_restart)
            return
        inside = [
            open_element
            for open_element in self.stack[depth + 1 :]
            if open_element.name in _SPECIAL or open_element in entries
        ]
        if len(inside) > MAX_FORMATTING or self.reopened >= MAX_REOPENED:
            return
        while inside[-1].name not in _SPECIAL:
            inside.pop()  # formatting that the next text opens again
        entries.remove(entry)
        self._pop_to(depth, has_tag=not is_restart)
        for element in inside:
            self._reopen(element)

    def _reopen_formatting(self) -> None:
        """Reopen formatting that the end of a block closed ("reconstruct", 13.2.4.3)."""
        entries = self.formatting[-1]
        if not entries or entries[-1].depth >= 0:
            return
        if self.reopened >= MAX_REOPENED:
            entries.clear()
            return
        for element in [entry for entry in entries if entry.depth < 0]:
            self._reopen(element)

    def _reopen(self, element: Element) -> None:
        self.reopened += 1
        copy = self._push(element.name, element.attributes, element.position, is_copy=True)
        entries = self.formatting[-1]
        if element in entries:
            entries[entries.index(element)] = copy
