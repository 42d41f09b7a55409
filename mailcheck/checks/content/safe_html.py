"""HTML mail to a page that runs nothing and loads nothing; sanitised last by a library (nh3).

Three steps: the tree is written anew, balanced and bounded, since the standard's
tree building takes quadratic time for what is opened and not closed, and copies
open ``<b>`` and ``<font>`` into every paragraph (70,000 ``<div>`` keep nh3 busy
for 18 s); nh3 reads that as a browser does and keeps elements and attributes of
an allow-list, and each attribute passes the rules below. Whoever shows the
result shows it in a sandboxed frame under a policy that forbids the same once
more: neither defence trusts the other.
"""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from html import escape

from msgspec import Struct

from mailcheck.checks.content.html_tokens import StartTag
from mailcheck.checks.content.html_tree import VOID, Element, HtmlTree, Words, read_tree
from mailcheck.checks.content.limits import MAX_HTML
from mailcheck.checks.content.safe_css import Pictures, StyleFilter
from mailcheck.checks.content.urls import is_web_url

MAX_DEPTH = 128
"""Elements inside each other; Chromium stops at 512, layouts of nested tables reach about 80."""

MAX_ELEMENTS = 20_000
"""Elements of a mail; a long newsletter has about 3,000."""

MAX_ATTRIBUTES = 40
"""Attributes of an element that are looked at."""

PAGE_CLASS = "mail-page"
"""Class of the element that stands for ``<body>``."""

# fmt: off
SHOWN = frozenset([
    "a", "abbr", "acronym", "address", "area", "article", "aside", "b", "bdi", "bdo", "big",
    "blockquote", "br", "caption", "center", "cite", "code", "col", "colgroup", "dd", "del",
    "details", "dfn", "dir", "div", "dl", "dt", "em", "figcaption", "figure", "font", "footer",
    "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "i", "img", "ins", "kbd", "li", "main",
    "map", "mark", "nav", "ol", "p", "pre", "q", "rp", "rt", "ruby", "s", "samp", "section",
    "small", "span", "strike", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot",
    "th", "thead", "time", "tr", "tt", "u", "ul", "var", "wbr",
])
"""Elements that draw text, images and tables, and do nothing."""
# fmt: on

LINK_SCHEMES = frozenset(("http", "https", "mailto", "tel"))
"""Where a link of a mail may lead."""

_CELL = ("abbr", "background", "colspan", "height", "nowrap", "rowspan", "scope", "width")
_SIZE = ("height", "width")

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "*": (
        *("align", "aria-hidden", "aria-label", "bgcolor", "class", "dir", "id", "lang", "role"),
        *("style", "title", "valign"),
    ),
    "a": ("href", "name", "target"),
    "area": ("alt", "coords", "href", "shape", "target"),
    "br": ("clear",),
    "col": ("span", "width"),
    "colgroup": ("span", "width"),
    "details": ("open",),
    "div": ("background",),
    "font": ("color", "face", "size"),
    "hr": ("color", "noshade", "size", "width"),
    "img": ("alt", "border", "hspace", "src", "usemap", "vspace", *_SIZE),
    "li": ("type", "value"),
    "map": ("name",),
    "ol": ("reversed", "start", "type"),
    "pre": ("width",),
    "table": (
        *("background", "border", "bordercolor", "cellpadding", "cellspacing", "frame", "rules"),
        *("summary", *_SIZE),
    ),
    "td": _CELL,
    "th": _CELL,
    "time": ("datetime",),
    "tr": ("background", *_SIZE),
    "ul": ("type",),
}
"""Attributes by element, ``*`` for all. ``target`` and ``rel`` of links are set, never taken."""

NUMBERS: dict[str, tuple[int, int]] = {
    "border": (0, 100),
    "cellpadding": (0, 200),
    "cellspacing": (0, 200),
    "colspan": (1, 100),
    "hspace": (0, 500),
    "rowspan": (1, 500),
    "span": (1, 100),
    "start": (0, 99_999),
    "value": (0, 99_999),
    "vspace": (0, 500),
}
"""Attributes that are whole numbers, with their bounds: a huge table costs a browser minutes."""

KEYWORDS: dict[str, frozenset[str]] = {
    "aria-hidden": frozenset(("true", "false")),
    "dir": frozenset(("ltr", "rtl", "auto")),
    "role": frozenset(("presentation", "none")),
}
"""Attributes whose values are of a list."""

MAX_PLAIN = 1_000
"""Characters of an attribute that is no URL and no style."""

LINK_REL = "noopener noreferrer nofollow"

_DATA_IMAGE = re.compile(
    r"data:image/(?:png|jpe?g|gif|webp|bmp);base64,[A-Za-z0-9+/=\s]*+", re.IGNORECASE
)
_PLACE = re.compile(r"[\w.:-]{1,200}", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8}){0,5}")
_IGNORED_IN_URLS = str.maketrans("", "", "\t\r\n")


class SafeHtml(Struct, frozen=True):
    """``body`` is a fragment of HTML, ``style_sheet`` the text of a ``<style>``; both are safe.

    ``remote_count`` counts what would be loaded from elsewhere; it is in the
    page only where that was allowed. ``content_ids`` are the images of the mail
    itself that the page shows. ``is_cut`` says that only its beginning is shown.
    ``language`` (a BCP 47 tag) and ``direction`` (``ltr``, ``rtl``, ``auto``) are those of the
    whole document, empty where it says none.
    """

    body: str
    style_sheet: str
    remote_count: int
    content_ids: tuple[str, ...]
    is_cut: bool
    language: str = ""
    direction: str = ""


def sanitise_html(
    markup: str, images: Mapping[str, str] | None = None, *, allows_remote: bool = False
) -> SafeHtml:
    """Make HTML of a mail safe to show; takes time linear in its length, of which it reads 512 KiB.

    :param images: ``data:`` URLs by the key of their Content-ID, shown for
        ``cid:`` links (RFC 2392).
    :param allows_remote: whether images of http(s) stay in the page.
    """
    import nh3  # here: only the process that takes mails apart sanitises

    tree = read_tree(markup)
    pictures = Pictures(images or {})
    places = _places_of(tree)
    rules = _AttributeRules(pictures, places, StyleFilter(allows_remote, pictures))
    body = nh3.clean(
        write_bounded(tree, places),
        tags=set(SHOWN),
        clean_content_tags={"script", "style", "svg", "math", "template"},
        attributes={name: set(names) for name, names in ATTRIBUTES.items()},
        attribute_filter=rules.judge,
        strip_comments=True,
        link_rel=LINK_REL,
        set_tag_attribute_values={"area": {"rel": LINK_REL}},  # nh3 knows links of <a> alone
        url_schemes={*LINK_SCHEMES, "cid", "data"},
        url_relative="pass_through",  # a place of the same mail; the rules below judge each
    )
    sheets = [
        rules.styles.style_sheet(sheet.text, media)
        for sheet in tree.style_sheets
        if (media := _media_of(sheet.tag)) is not None
    ]
    return SafeHtml(
        body=body,
        style_sheet="\n".join(filter(None, sheets)),
        remote_count=rules.styles.remote_count,
        content_ids=tuple(dict.fromkeys(pictures.wanted)),
        is_cut=len(markup) > MAX_HTML,
        **_said_of_all(tree),
    )


def _said_of_all(tree: HtmlTree) -> dict[str, str]:
    """Give language and direction that ``<html>`` says for the whole document."""
    root = next((one for one in tree.nodes if isinstance(one, Element)), None)
    if root is None or root.name != "html":
        return {}
    language, direction = (root.attributes.get(name, "").lower() for name in ("lang", "dir"))
    return {
        "language": language if _LANGUAGE.fullmatch(language) else "",
        "direction": direction if direction in KEYWORDS["dir"] else "",
    }


def _media_of(tag: StartTag) -> str | None:
    """Return the media query of a style sheet, empty for any screen, None for no screen."""
    media = tag.attributes.get("media", "").strip().lower()
    if media in ("", "all", "screen"):
        return ""
    return media if any(word in media for word in ("all", "screen", "(")) else None


def _places_of(tree: HtmlTree) -> frozenset[str]:
    """Return the addresses of the places of a page that its own links may lead to."""
    elements = (node for node in tree.nodes if isinstance(node, Element))
    names = (
        name
        for one in elements
        for name in (one.attributes.get("id"), one.name == "a" and one.attributes.get("name"))
        if name
    )
    return frozenset(f"#{name}" for name in names if _PLACE.fullmatch(name))


def write_bounded(tree: HtmlTree, places: Set[str] | None = None) -> str:
    """Write a page balanced, with its depth and its number of elements capped.

    What is no text of the page is left out; what is too deep or too much loses
    its tags and keeps its words. The result is not safe yet.

    :param places: addresses of places of the page; links open a new tab, except to these.
    """
    pieces: list[str] = []
    written: list[Element] = []
    count = 0
    for node in tree.nodes:
        if isinstance(node, Words):
            if node.look.is_text:
                pieces.append(escape(node.text, quote=False))
        elif not isinstance(node, Element):
            if written and written[-1] is node.element:
                pieces.append(f"</{_shown_name(written.pop())}>")
        elif (
            node.look.is_text
            and _shown_name(node) in SHOWN
            and len(written) < MAX_DEPTH
            and count < MAX_ELEMENTS
        ):
            count += 1
            pieces.append(_start_tag(node, places))
            if node.name not in VOID:
                written.append(node)
    return "".join(pieces)


def _shown_name(element: Element) -> str:
    return "div" if element.name == "body" else element.name


def _start_tag(element: Element, places: Set[str] | None) -> str:
    attributes = element.attributes
    if element.name == "body":
        attributes = _style_body(attributes)
    kept = list(attributes.items())[:MAX_ATTRIBUTES]
    if places is not None and element.name in ("a", "area"):
        kept = [(key, value) for key, value in kept if key != "target"]
        if attributes.get("href", "").strip() not in places:
            kept.append(("target", "_blank"))
    written = "".join(f' {key}="{escape(value)}"' for key, value in kept if _is_plain(key))
    return f"<{_shown_name(element)}{written}>"


def _style_body(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """Say in CSS what attributes say that only ``<body>`` has."""
    said = {"bgcolor": "background-color", "text": "color"}
    style = [f"{said[name]}: {attributes[name]}" for name in said if name in attributes]
    return {
        **attributes,
        "class": f"{PAGE_CLASS} {attributes.get('class', '')}".strip(),
        "style": "; ".join([*style, attributes.get("style", "")]),
    }


def _is_plain(name: str) -> bool:
    return name.isascii() and name.replace("-", "").isalnum()


@dataclass(slots=True)
class _AttributeRules:
    pictures: Pictures
    places: Set[str]
    styles: StyleFilter

    def judge(self, element: str, name: str, value: str) -> str | None:
        """Give the value to use, or nothing to drop the attribute."""
        if name == "style":
            return self.styles.declarations(value) or None
        if name in ("src", "background"):
            return self._image(value.strip().translate(_IGNORED_IN_URLS))
        if name == "href":
            return self._link(value.strip().translate(_IGNORED_IN_URLS))
        if name == "rel":
            return LINK_REL
        if name == "target":
            return "_blank"
        if len(value) > MAX_PLAIN:
            return None
        if name in NUMBERS:
            lowest, highest = NUMBERS[name]
            is_number = value.isascii() and value.isdigit() and len(value) < 6
            return value if is_number and lowest <= int(value) <= highest else None
        if name in KEYWORDS:
            return value if value.lower() in KEYWORDS[name] else None
        return value

    def _image(self, url: str) -> str | None:
        if url[:4].lower() == "cid:":
            return self.pictures.find(url[4:])
        if url[:5].lower() == "data:":
            return url if _DATA_IMAGE.fullmatch(url) else None
        if not is_web_url(url):
            return None
        self.styles.remote_count += 1
        return url if self.styles.allows_remote else None

    def _link(self, url: str) -> str | None:
        if url in self.places:
            return url
        scheme, colon, _ = url.partition(":")
        return url if colon and scheme.lower() in LINK_SCHEMES else None
