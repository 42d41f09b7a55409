"""Sanitizer for HTML mail: the result does not run code or load content.

There are three steps. First, the tree is written again, balanced and bounded. The standard's tree
builder takes quadratic time for unclosed elements, and copies open ``<b>`` and ``<font>`` into
every paragraph: nh3 needs 18 s for 70,000 ``<div>``. Second, nh3 parses the result as a browser
does and keeps the allowed elements and attributes. Third, each attribute passes the rules below.
The page is shown in a sandboxed frame with a policy that forbids the same things again, so that
both protections are independent.

CSS passes the filter of `safe_styles`.
"""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from html import escape

from msgspec import Struct

from mailcheck.checks.content.bodies import find_inline_images
from mailcheck.checks.content.html_tokens import StartTag
from mailcheck.checks.content.html_tree import VOID, BaseUrl, Element, HtmlTree, Words, read_tree
from mailcheck.checks.content.limits import MAX_HTML
from mailcheck.checks.content.links import is_web_url
from mailcheck.checks.content.safe_styles import Pictures, StyleFilter

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
