"""What an element's tag, attributes and inline style say about how it is seen."""

import re
from collections.abc import Mapping

# fmt: off
VOID = frozenset([
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
])
# fmt: on
"""Elements without content (HTML 13.1.2)."""

# fmt: off
BLOCKS = frozenset([
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3",
    "h4", "h5", "h6", "header", "hr", "html", "legend", "li", "main", "nav", "ol", "optgroup",
    "option", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
    "caption", "br",
])
# fmt: on
"""Elements that begin and end a line."""

CELLS = frozenset(("td", "th"))
"""Elements that are set apart on the same line."""

# fmt: off
NOT_SHOWN = frozenset([
    "head", "script", "style", "template", "title", "object", "video", "audio", "canvas", "svg",
    "math", "map", "select", "datalist", "iframe", "textarea", "xml", "noembed",
])
# fmt: on
"""Elements whose content is no running text."""

IMPLIED_END = frozenset(("dd", "dt", "li", "option", "p", "td", "th", "tr"))
"""Elements that end where the next of their kind begins (HTML 13.1.2.4)."""

_HEADINGS = frozenset(("h1", "h2", "h3"))
_STRONG = frozenset(("b", "strong", "code", "kbd", "mark", "samp", "big"))

# Properties that mail uses to hide a preheader or to leave room for another
# client. A lookbehind keeps ``line-height`` and ``max-width`` apart from these.
_HIDDEN = re.compile(
    r"(?<![\w-])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|mso-hide\s*:\s*all"
    r"|opacity\s*:\s*0?\.?0+(?![.\d])"
    r"|(?:max-height|max-width)\s*:\s*0*\.?0+(?![.\d]))",
    re.IGNORECASE,
)
_ZERO_HEIGHT = re.compile(r"(?<![\w-])height\s*:\s*0+(?![.\d])", re.IGNORECASE)
_FONT_SIZE = re.compile(
    r"(?<![\w-])font(?:-size)?\s*:[^;]{0,80}?(?<![\w.#])([0-9]{0,4}(?:\.[0-9]{1,4})?)(px|pt|em|rem|%)",
    re.IGNORECASE,
)
_ZERO_SIZE = re.compile(r"(?<![\w-])font-size\s*:\s*0+(?:\.0*)?\s*(?:;|!|\Z)", re.IGNORECASE)
_BOLD = re.compile(r"(?<![\w-])font-weight\s*:\s*(?:bold|[6-9]00)", re.IGNORECASE)
_SPREAD = re.compile(r"(?<![\w-])letter-spacing\s*:\s*0*(?:[2-9]|[1-9][0-9]|0?\.[1-9])", re.I)
_BUTTON = re.compile(
    r"(?<![\w-])(?:background(?:-color)?\s*:\s*(?!none|transparent|inherit)|border-radius\s*:"
    r"|padding(?:-\w+)?\s*:\s*(?:[5-9]|[1-9][0-9])|display\s*:\s*(?:inline-)?block)",
    re.IGNORECASE,
)
_BUTTON_CLASS = re.compile(r"(?<![a-z])(?:btn|button|cta)(?![a-z])", re.IGNORECASE)
_PIXELS = {"px": 1.0, "pt": 4 / 3, "em": 16.0, "rem": 16.0, "%": 0.16}
_BIG_PIXELS = 20  # body text is 13 to 16 px, a code set apart 22 to 48 px
_BIG_FONTS = frozenset(("5", "6", "7", "+2", "+3", "+4"))  # <font size>, where 3 is usual
TINY_PIXELS = 2
"""Text of this size or less can't be read: preheaders are set so."""


def is_hidden(attributes: Mapping[str, str]) -> bool:
    """Tell whether an element is made invisible by an attribute or its inline style."""
    if "hidden" in attributes:
        return True
    style = attributes.get("style", "")
    if not style:
        return False
    if _HIDDEN.search(style):
        return True
    return _ZERO_HEIGHT.search(style) is not None and "overflow" in style.lower()


def find_font_size(attributes: Mapping[str, str]) -> float | None:
    """Read the font size that an element sets for itself and all inside it, in pixels."""
    style = attributes.get("style", "")
    if not style:
        return None
    if _ZERO_SIZE.search(style):
        return 0.0
    size = _FONT_SIZE.search(style)
    return float(size[1]) * _PIXELS[size[2].lower()] if size and size[1] else None


def is_prominent(name: str, attributes: Mapping[str, str]) -> bool:
    """Tell whether an element's text stands out: heading, bold, large or letter-spaced."""
    if name in _HEADINGS or name in _STRONG:
        return True
    if name == "font" and attributes.get("size") in _BIG_FONTS:
        return True
    style = attributes.get("style", "")
    if not style:
        return False
    size = find_font_size(attributes)
    if size is not None and size >= _BIG_PIXELS:
        return True
    return _BOLD.search(style) is not None or _SPREAD.search(style) is not None


def is_button(attributes: Mapping[str, str]) -> bool:
    """Tell whether a link is drawn as a button by its own style or class."""
    if _BUTTON_CLASS.search(attributes.get("class", "")) or attributes.get("role") == "button":
        return True
    return len({found.lower()[:6] for found in _BUTTON.findall(attributes.get("style", ""))}) > 1
