"""Sanitizer for the CSS of mail: the result loads nothing and stays in its place.

CSS is reduced to the allowed properties, functions and selectors. None of them loads anything, runs
anything or leaves its place on the page: no ``position``, ``content``, ``behavior``, ``filter``,
``-moz-binding``, ``@font-face``. Values are not repaired. A declaration with a backslash (escapes
can spell any word), a ``<``, another function or an unbalanced bracket is dropped. Everything takes
time linear in the text.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

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
