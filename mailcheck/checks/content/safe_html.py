"""Sanitizer for HTML mail: the result does not run code or load content.

There are three steps. First, the tree is written again, balanced and bounded. The standard's tree
builder takes quadratic time for unclosed elements, and copies open ``<b>`` and ``<font>`` into
every paragraph: nh3 needs 18 s for 70,000 ``<div>``. Second, nh3 parses the result as a browser
does and keeps the allowed elements and attributes. Third, each attribute passes the rules below.
The page is shown in a sandboxed frame with a policy that forbids the same things again, so that
both protections are independent.

CSS is reduced to the allowed properties, functions and selectors. None of them loads anything, runs
anything or leaves its place on the page: no ``position``, ``content``, ``behavior``, ``filter``,
``-moz-binding``, ``@font-face``. Values are not repaired. A declaration with a backslash (escapes
can spell any word), a ``<``, another function or an unbalanced bracket is dropped. Everything takes
time linear in the text.
"""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from html import escape
from itertools import islice

from msgspec import Struct

from mailcheck.checks.content.bodies import find_inline_images
from mailcheck.checks.content.html_tree import (
    VOID,
    BaseUrl,
    Element,
    HtmlTree,
    StartTag,
    Words,
    read_tree,
)
from mailcheck.checks.content.limits import MAX_HTML
from mailcheck.checks.content.links import is_web_url
from mailcheck.checks.content.styles import COMMENT, MAX_CSS, MAX_SELECTOR, split_declarations
from mailcheck.core.content import content_id_key

# fmt: off
PROPERTIES = frozenset([
    "background", "background-color", "background-image", "background-position",
    "background-repeat", "background-size", "border", "border-bottom", "border-bottom-color",
    "border-bottom-left-radius", "border-bottom-right-radius", "border-bottom-style",
    "border-bottom-width", "border-collapse", "border-color", "border-left", "border-left-color",
    "border-left-style", "border-left-width", "border-radius", "border-right",
    "border-right-color", "border-right-style", "border-right-width", "border-spacing",
    "border-style", "border-top", "border-top-color", "border-top-left-radius",
    "border-top-right-radius", "border-top-style", "border-top-width", "border-width",
    "box-shadow", "box-sizing", "caption-side", "clear", "color", "column-gap", "direction",
    "display", "empty-cells", "flex", "flex-basis", "flex-direction", "flex-grow", "flex-shrink",
    "flex-wrap", "align-items", "align-self", "justify-content", "gap", "row-gap", "float",
    "font", "font-family", "font-feature-settings", "font-size", "font-stretch", "font-style",
    "font-variant", "font-weight", "height", "hyphens", "letter-spacing", "line-height",
    "list-style", "list-style-position", "list-style-type", "margin", "margin-bottom",
    "margin-left", "margin-right", "margin-top", "max-height", "max-width", "min-height",
    "min-width", "object-fit", "opacity", "order", "outline",
    "overflow", "overflow-wrap", "overflow-x", "overflow-y", "padding", "padding-bottom",
    "padding-left", "padding-right", "padding-top", "quotes", "table-layout", "text-align",
    "text-decoration", "text-decoration-color", "text-decoration-line", "text-decoration-style",
    "text-indent", "text-overflow", "text-shadow", "text-size-adjust", "text-transform",
    "text-underline-offset", "unicode-bidi", "vertical-align", "visibility", "white-space",
    "width", "word-break", "word-spacing", "word-wrap",
])
"""Allowed properties."""

FUNCTIONS = frozenset([
    "calc", "clamp", "hsl", "hsla", "linear-gradient", "max", "min", "radial-gradient", "rgb",
    "rgba", "translate",
])
"""Allowed functions of values, besides ``url``."""

PSEUDO = frozenset([
    "active", "after", "before", "empty", "first-child", "first-letter", "first-line",
    "first-of-type", "focus", "hover", "last-child", "last-of-type", "link", "not", "nth-child",
    "nth-of-type", "only-child", "root", "visited",
])
"""Allowed pseudo-classes and pseudo-elements of selectors."""
# fmt: on

IMAGE_PROPERTIES = frozenset(("background", "background-image"))
"""Properties that may load an image if remote content is allowed."""

MAX_RULES = 2_000
MAX_VALUE = 500

_MARKS = re.compile(r"<!--|-->")
_DECLARATION = re.compile(r"\s*+([a-z-]{1,40})\s*+:\s*+(.*\S)\s*", re.IGNORECASE | re.DOTALL)
_VALUE = re.compile(r"(?>(?:[\w\s.,%#!+*/()-]|\"[\w\s.,-]*+\"|'[\w\s.,-]*+')+)")
_FUNCTION = re.compile(r"([\w-]*)\(")
_CSS_URL = re.compile(
    r"\burl\(\s*+(?:\"([^\"()]*+)\"|'([^'()]*+)'|([^\"'()\s]*+))\s*+\)", re.IGNORECASE
)
_SAFE_URL = re.compile(r"https?://[\w.~:/?#@!$&*+,;=%-]++", re.ASCII | re.IGNORECASE)
_SELECTOR = re.compile(
    r"(?>(?:[\w\s.,#*>+~:()-]|"
    r"\[[\w-]++(?:[~|^$*]?=(?:\"[\w\s:;./#-]*+\"|'[\w\s:;./#-]*+'|[\w-]++))?\])+)"
)
_PSEUDO_WORD = re.compile(r":+([\w-]*)")
_MEDIA = re.compile(r"@media(?=[\s(])([\w\s:(),./<>=-]{1,400})", re.IGNORECASE)
_RANGE = re.compile(r"\s*([<>]?=|[<>])\s*")
_NO_RATIO = re.compile(r"/(?!\s*[0-9])")
_OPENS_TAG = re.compile(r"<(?!=? )")
_RULE_MARK = re.compile(r"[{};]")


MAX_PICTURES = 16 * 1024 * 1024
"""Maximum number of characters of all pictures on the page of a mail, counted at every use."""


@dataclass(slots=True)
class Pictures:
    """The pictures of a mail, as ``data:`` URLs by the key of their Content-ID.

    ``wanted`` are the keys that the page uses. ``room`` is the unused rest of `MAX_PICTURES`.
    """

    urls: Mapping[str, str]
    wanted: list[str] = field(default_factory=list)
    room: int = field(default=MAX_PICTURES)

    def find(self, content_id: str) -> str | None:
        """Return the picture for a ``cid:`` URL, or `None`."""
        key = content_id_key(content_id)
        self.wanted.append(key)
        url = self.urls.get(key)
        if url is None or len(url) > self.room:
            return None
        self.room -= len(url)
        return url


@dataclass(slots=True)
class StyleFilter:
    """Filters the CSS of one mail; ``remote_count`` is the number of remote images."""

    allows_remote: bool
    pictures: Pictures
    remote_count: int = field(default=0)
    left: int = field(default=MAX_CSS)
    rules_left: int = field(default=MAX_RULES)

    def declarations(self, text: str) -> str:
        """Filter the declarations of a ``style`` attribute or of a rule."""
        kept = []
        for declaration in split_declarations(COMMENT.sub(" ", text[:MAX_CSS])):
            match = _DECLARATION.fullmatch(declaration)
            name = match[1].lower() if match else ""
            if match is None or name not in PROPERTIES:
                continue
            value = self._value(name, match[2])
            if value is not None:
                kept.append(f"{name}: {value}")
        return "; ".join(kept)

    def style_sheet(self, text: str, media: str = "") -> str:
        """Filter a style sheet: rules, and rules inside ``@media``, but no other at-rule.

        All sheets of a mail share the limits.

        :param media: the media query of the whole sheet, or empty.
        """
        query = _write_query(f"@media {media}") if media else ""
        if query is None:
            return ""
        written = [query] if query else []
        is_in_media = False
        text, self.left = text[: self.left], max(0, self.left - len(text))
        text = _MARKS.sub(" ", COMMENT.sub(" ", text))
        for prelude, block in islice(_split_rules(text), self.rules_left):
            self.rules_left -= 1
            if block is not None:
                written.append(self._rule(prelude, block))
            elif is_in_media:
                written.append("}")
                is_in_media = False
            else:
                written.append(_write_query(prelude) or "")
                is_in_media = True
        written += ["}"] * (is_in_media + bool(query))
        sheet = "\n".join(line for line in written if line)
        return "" if _OPENS_TAG.search(sheet) else sheet

    def _rule(self, selector: str, block: str) -> str:
        if len(selector) > MAX_SELECTOR or _SELECTOR.fullmatch(selector) is None:
            return ""
        if not all(word.lower() in PSEUDO for word in _PSEUDO_WORD.findall(selector)):
            return ""
        declarations = self.declarations(block)
        return f"{selector} {{ {declarations} }}" if declarations else ""

    def _value(self, name: str, value: str) -> str | None:
        if len(value) > MAX_VALUE:
            return None
        urls: list[str] = []

        def take_url(match: re.Match[str]) -> str:
            url = (match[1] or match[2] or match[3] or "").strip()
            if name in IMAGE_PROPERTIES and url[:4].lower() == "cid:":
                picture = self.pictures.find(url[4:])
                if picture is not None:
                    urls.append(f'url("{picture}")')
                    return "url()"
            elif name in IMAGE_PROPERTIES and is_web_url(url) and _SAFE_URL.fullmatch(url):
                self.remote_count += 1
                if self.allows_remote:
                    urls.append(f'url("{url}")')
                    return "url()"
            return "none" if name in IMAGE_PROPERTIES else "url(refused)"

        bare = _CSS_URL.sub(take_url, value)
        words = bare.replace("url()", " ")
        if _VALUE.fullmatch(words) is None or not _is_balanced(words):
            return None
        if not all(word.lower() in FUNCTIONS for word in _FUNCTION.findall(words) if word):
            return None
        bare = " ".join(bare.split())
        for url in urls:
            bare = bare.replace("url()", url, 1)
        return bare


def _write_query(prelude: str) -> str | None:
    """Return ``@media ... {`` with blanks around comparisons, or `None` for another text."""
    media = _MEDIA.fullmatch(prelude)
    if media is None or not _is_balanced(media[1]) or _NO_RATIO.search(media[1]):
        return None
    query = _RANGE.sub(r" \1 ", media[1]).split()
    return f"@media {' '.join(query)} {{"


def _split_rules(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield rules as prelude and block; ``@media`` begins and ends with a block of `None`.

    The prelude is empty at the end of ``@media``. The content of other at-rules is skipped.
    """
    prelude, start, skipped, is_in_media = "", 0, 0, False
    for match in _RULE_MARK.finditer(text):
        mark, piece = match.group(), text[start : match.start()].strip()
        if skipped:
            skipped += (mark == "{") - (mark == "}")
        elif mark == ";":
            if prelude:
                continue  # between declarations
        elif mark == "{" and not prelude:
            prelude = piece or "?"
        elif mark == "{" and not is_in_media and _MEDIA.fullmatch(prelude):
            yield prelude, None
            prelude, is_in_media = piece or "?", True
        elif mark == "{":
            prelude, skipped = "", 2
        elif prelude:
            yield prelude, piece
            prelude = ""
        elif is_in_media:
            yield "", None
            is_in_media = False
        start = match.end()


def _is_balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


MAX_DEPTH = 128
"""Maximum depth of elements. Chromium stops at 512; nested layout tables reach about 80."""

MAX_ELEMENTS = 20_000
"""Maximum number of elements of a mail; a long newsletter has about 3,000."""

MAX_ATTRIBUTES = 40
"""Maximum number of attributes of an element that are read."""

PAGE_CLASS = "mail-page"
"""Class of the element that replaces ``<body>``."""

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
"""Allowed elements, which draw text, images and tables and have no other effect."""
# fmt: on

LINK_SCHEMES = frozenset(("http", "https", "mailto", "tel"))
"""Allowed schemes of links in a mail."""

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
"""Allowed attributes by element, ``*`` for all. ``target`` and ``rel`` of links are always set
here."""

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
"""Attributes with integers, and their limits: a huge table costs a browser minutes."""

KEYWORDS: dict[str, frozenset[str]] = {
    "aria-hidden": frozenset(("true", "false")),
    "dir": frozenset(("ltr", "rtl", "auto")),
    "role": frozenset(("presentation", "none")),
}
"""Attributes with a list of allowed values."""

MAX_PLAIN = 1_000
"""Maximum length of an attribute that is not a URL or a style, in characters."""

LINK_REL = "noopener noreferrer nofollow"

_DATA_IMAGE = re.compile(
    r"data:image/(?:png|jpe?g|gif|webp|bmp);base64,[A-Za-z0-9+/=\s]*+", re.IGNORECASE
)
_PLACE = re.compile(r"[\w.:-]{1,200}", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8}){0,5}")
_IGNORED_IN_URLS = str.maketrans("", "", "\t\r\n")


class SafeHtml(Struct, frozen=True):
    """Sanitized HTML: ``body`` is a fragment, ``style_sheet`` the text of a ``<style>``.

    ``remote_count`` is the number of remote images, which the page includes only if they are
    allowed. ``content_ids`` are the images of the mail itself that the page shows. ``end`` is the
    offset in the markup at which the page ends, or `None` if all is shown. ``language`` (a BCP 47
    tag) and ``direction`` (``ltr``, ``rtl``, ``auto``) are those of the whole document, or empty.
    """

    body: str
    style_sheet: str
    remote_count: int
    content_ids: tuple[str, ...]
    end: int | None = None
    language: str = ""
    direction: str = ""


def sanitise_html(
    markup: str, images: Mapping[str, str] | None = None, *, allows_remote: bool = False
) -> SafeHtml:
    """Sanitize the first 512 KiB of the HTML of a mail, in linear time.

    :param images: ``data:`` URLs by the key of their Content-ID, for ``cid:`` links (RFC 2392).
    :param allows_remote: whether images from http(s) stay in the page.
    """
    import nh3  # only the process that parses mails needs it

    tree = read_tree(markup)
    pictures = Pictures(images or {})
    # The anchors of the page to which its own links may lead.
    places = frozenset(
        f"#{name}"
        for node in tree.nodes
        if isinstance(node, Element)
        for name in (node.attributes.get("id"), node.name == "a" and node.attributes.get("name"))
        if name and _PLACE.fullmatch(name)
    )
    rules = _AttributeRules(pictures, places, StyleFilter(allows_remote, pictures))
    bounded, end = write_bounded(tree, places)
    body = nh3.clean(
        bounded,
        tags=set(SHOWN),
        clean_content_tags={"script", "style", "svg", "math", "template"},
        attributes={name: set(names) for name, names in ATTRIBUTES.items()},
        attribute_filter=rules.filter_attribute,
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
        end=MAX_HTML if end is None and len(markup) > MAX_HTML else end,
        **_read_language_and_direction(tree),
    )


def _read_language_and_direction(tree: HtmlTree) -> dict[str, str]:
    """Return the language and direction of ``<html>``."""
    root = next((node for node in tree.nodes if isinstance(node, Element)), None)
    if root is None or root.name != "html":
        return {}
    language, direction = (root.attributes.get(name, "").lower() for name in ("lang", "dir"))
    return {
        "language": language if _LANGUAGE.fullmatch(language) else "",
        "direction": direction if direction in KEYWORDS["dir"] else "",
    }


def _media_of(tag: StartTag) -> str | None:
    """Return the media query of a style sheet: empty for any screen, `None` for no screen."""
    media = tag.attributes.get("media", "").strip().lower()
    if media in ("", "all", "screen"):
        return ""
    return media if any(word in media for word in ("all", "screen", "(")) else None


def write_bounded(tree: HtmlTree, places: Set[str] | None = None) -> tuple[str, int | None]:
    """Write a page with balanced tags and limits on depth and number of elements.

    Return it with the offset in the markup at which it ends because of the number of elements, or
    `None`. Content that is not text of the page is left out. Elements that are too deep lose their
    tags, but keep their words. The result is not safe yet.

    :param places: anchors of the page; links open a new tab, except links to these.
    """
    pieces: list[str] = []
    written: list[Element] = []
    base = BaseUrl()
    count, reached, end = 0, 0, None
    for node in tree.nodes:
        if isinstance(node, Words):
            if node.look.is_text:
                pieces.append(escape(node.text, quote=False))
        elif not isinstance(node, Element):
            if written and written[-1] is node.element:
                pieces.append(f"</{_shown_name(written.pop())}>")
        else:
            base.note(node)
            reached = max(reached, node.position)
            if not node.look.is_text or _shown_name(node) not in SHOWN or len(written) >= MAX_DEPTH:
                continue
            if count == MAX_ELEMENTS:
                end = reached
                break
            count += 1
            pieces.append(_start_tag(node, places, base))
            if node.name not in VOID:
                written.append(node)
    pieces += [f"</{_shown_name(element)}>" for element in reversed(written)]
    return "".join(pieces), end


def _shown_name(element: Element) -> str:
    return "div" if element.name == "body" else element.name


def _start_tag(element: Element, places: Set[str] | None, base: BaseUrl) -> str:
    attributes = element.attributes
    if "href" in attributes and element.name in ("a", "area"):
        attributes = {**attributes, "href": base.join(attributes["href"])}
    if element.name == "body":
        # The attributes of ``<body>`` become CSS.
        said = {"bgcolor": "background-color", "text": "color"}
        style = [f"{said[name]}: {attributes[name]}" for name in said if name in attributes]
        attributes = {
            **attributes,
            "class": f"{PAGE_CLASS} {attributes.get('class', '')}".strip(),
            "style": "; ".join([*style, attributes.get("style", "")]),
        }
    kept = list(attributes.items())[:MAX_ATTRIBUTES]
    if places is not None and element.name in ("a", "area"):
        kept = [(key, value) for key, value in kept if key != "target"]
        if attributes.get("href", "").strip() not in places:
            kept.append(("target", "_blank"))
    written = "".join(
        f' {key}="{escape(value)}"'
        for key, value in kept
        if key.isascii() and key.replace("-", "").isalnum()
    )
    return f"<{_shown_name(element)}{written}>"


@dataclass(slots=True)
class _AttributeRules:
    pictures: Pictures
    places: Set[str]
    styles: StyleFilter

    def filter_attribute(self, element: str, name: str, value: str) -> str | None:
        """Return the value to use, or `None` to drop the attribute."""
        if name == "style":
            return self.styles.declarations(value) or None
        if name in ("src", "background"):
            return self._image(value.strip().translate(_IGNORED_IN_URLS))
        if name == "href":
            url = value.strip().translate(_IGNORED_IN_URLS)
            scheme, colon, _ = url.partition(":")
            return url if url in self.places or (colon and scheme.lower() in LINK_SCHEMES) else None
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


def make_safe(html: str, raw_message: bytes, *, allows_remote: bool) -> SafeHtml:
    """Sanitise HTML, with the inline images of its mail."""
    safe = sanitise_html(html, allows_remote=allows_remote)
    images = find_inline_images(raw_message, safe.content_ids) if safe.content_ids else {}
    if not images:
        return safe
    return sanitise_html(html, images, allows_remote=allows_remote)
