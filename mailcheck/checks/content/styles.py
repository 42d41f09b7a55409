"""Visibility of words: attributes and inline styles, inherited by elements.

This module alone decides whether and how content is hidden, for all readers of the HTML of a
mail. Style sheets are not applied. If a style sheet sets a colour of an element, that colour is
unknown, and words of unknown colour count as visible.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from msgspec import Struct

MAX_CSS = 128 * 1024
"""Maximum number of characters of style sheets that are read; Gmail reads 16 KiB."""

MAX_SELECTOR = 500

# fmt: off
NOT_SHOWN = frozenset([
    "audio", "canvas", "datalist", "head", "iframe", "math", "noembed", "noframes", "script",
    "select", "style", "svg", "template", "textarea", "title", "video", "xml",
])
# fmt: on
"""Elements whose content is not text of the page."""

TINY_PIXELS = 2
"""Font size from which text is too small to be read; preheaders use such sizes."""

FAR_PIXELS = 500
"""Distance to the left or top from which words are off the page, which is about 600 wide."""


_UNKNOWN, _TRANSPARENT, _INHERITED = "unknown", "transparent", "inherited"
_SEE_THROUGH = ("", _INHERITED, _TRANSPARENT)
_LINK_COLOUR = "#0000ee"
_ATTRIBUTES = frozenset(("background", "bgcolor", "color", "hidden", "size", "style", "text"))
_ATTRIBUTES_AND_HREF = (*_ATTRIBUTES, "href")

_RELATIVE = {"em": 1.0, "%": 0.01, "ex": 0.5, "ch": 0.5}
# fmt: off
_COLOURS = {
    "aqua": "#00ffff", "black": "#000000", "blue": "#0000ff", "cyan": "#00ffff",
    "fuchsia": "#ff00ff", "gray": "#808080", "green": "#008000", "grey": "#808080",
    "lime": "#00ff00", "maroon": "#800000", "navy": "#000080", "olive": "#808000",
    "orange": "#ffa500", "purple": "#800080", "red": "#ff0000", "silver": "#c0c0c0",
    "snow": "#fffafa", "teal": "#008080", "transparent": _TRANSPARENT, "white": "#ffffff",
    "whitesmoke": "#f5f5f5", "yellow": "#ffff00", "inherit": _INHERITED, "unset": _INHERITED,
    "currentcolor": _INHERITED, "initial": _UNKNOWN,
}
_PIXELS = {
    "px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "rem": 16.0,
    "vw": 6.0, "vh": 6.0,
}
# fmt: on

_USUAL = 300

_VISIBILITIES = {"hidden": False, "collapse": False, "visible": True, "initial": True}

_ROOMY = re.compile(r"[5-9]|[1-9][0-9]")


class Hiding(Enum):
    """The reason why words are hidden."""

    ATTRIBUTE = "hidden attribute"
    DISPLAY = "display"
    VISIBILITY = "visibility"
    OPACITY = "opacity"
    NO_ROOM = "a box without room"
    OFF_PAGE = "a place off the page"
    CLIPPED = "clip"
    MSO_HIDE = "mso-hide"
    FONT_SIZE = "font size"
    COLOUR = "the colour of the background"
    INDENT = "text-indent"


class Style(Struct, frozen=True):
    """The meaning of one ``style`` attribute; `None`, or "" for a colour, if it is not set.

    ``hides`` is the reason why the element is hidden with all its content. The other properties
    are inherited, and content can become visible again. ``font_size`` is a number with its unit.
    ``button_marks`` is the number of properties that are typical of buttons.
    """

    hides: Hiding | None = None
    is_visible: bool | None = None
    is_far_indented: bool | None = None
    font_size: tuple[float, str] | None = None
    colour: str = ""
    background: str = ""
    is_bold: bool = False
    is_spread: bool = False
    button_marks: int = 0


NO_STYLE = Style()


@dataclass(slots=True, eq=False)
class Look:
    """The look of the words inside an element.

    ``hidden_by`` is the reason why they are hidden, or `None`. ``is_text`` is false if the
    content is not text of the page. ``box_hidden_by`` hides all content; any other property can be
    set again by an element inside. Colours are ``#rrggbb``, ``transparent`` or ``unknown``. Sizes
    are in pixels.
    """

    is_text: bool = True
    box_hidden_by: Hiding | None = None
    is_visible: bool = True
    is_far_indented: bool = False
    font_size: float = 16.0
    colour: str = "#000000"
    background: str = "#ffffff"
    hidden_by: Hiding | None = field(init=False)

    def __post_init__(self) -> None:
        """Compute ``hidden_by`` once for all words inside."""
        self.hidden_by = self.box_hidden_by
        if self.hidden_by is not None:
            return
        if not self.is_visible:
            self.hidden_by = Hiding.VISIBILITY
        elif self.font_size <= TINY_PIXELS:
            self.hidden_by = Hiding.FONT_SIZE
        elif self.is_far_indented:
            self.hidden_by = Hiding.INDENT
        elif self.colour == _TRANSPARENT or (
            self.colour == self.background and self.colour != _UNKNOWN
        ):
            self.hidden_by = Hiding.COLOUR

    @property
    def is_seen(self) -> bool:
        """Whether a person sees the words."""
        return self.is_text and self.hidden_by is None

    @property
    def shows_images(self) -> bool:
        """Whether a person sees images; sizes and colours of words do not hide images."""
        return self.is_text and self.box_hidden_by is None and self.is_visible


@dataclass(slots=True)
class Looks:
    """Finds the looks of one page; elements with the same attributes and look share one."""

    sheet: Look = field(default_factory=Look)
    _looks: dict[tuple[object, ...], Look] = field(default_factory=dict)
    _coloured: set[str] = field(default_factory=set)

    def note_style_sheet(self, text: str) -> None:
        """Record the elements whose colours a style sheet sets."""
        self._coloured.update(find_coloured(text))

    def inside(self, above: Look, name: str, attributes: Mapping[str, str]) -> Look:
        """Return the look inside an element, given the look around it."""
        if (
            name != "a"
            and name not in NOT_SHOWN
            and _ATTRIBUTES.isdisjoint(attributes)
            and not (self._coloured and self._is_coloured(name, attributes))
        ):
            return above
        key = (above, name, *map(attributes.get, _ATTRIBUTES_AND_HREF))
        if self._coloured:
            key += (attributes.get("class"), attributes.get("id"))
        look = self._looks.get(key)
        if look is None:
            style = read_style(attributes.get("style", ""))
            by_sheet = _UNKNOWN if self._is_coloured(name, attributes) else ""
            of_element = attributes.get({"font": "color", "body": "text"}.get(name, ""), "")
            colour = style.colour or _read_colour(of_element.lower()) or by_sheet
            if not colour and name == "a" and "href" in attributes:
                colour = _LINK_COLOUR
            written = _UNKNOWN if attributes.get("background") else ""
            written = written or _read_colour(attributes.get("bgcolor", "").lower())
            background = style.background or written or by_sheet
            visible, indented = style.is_visible, style.is_far_indented
            hiding = Hiding.ATTRIBUTE if "hidden" in attributes else style.hides
            if style.hides is Hiding.MSO_HIDE and name == "a":
                hiding = None  # Outlook shows a button in a comment, other programs show this one
            look = self._looks[key] = Look(
                is_text=above.is_text and name not in NOT_SHOWN,
                box_hidden_by=above.box_hidden_by or hiding,
                is_visible=above.is_visible if visible is None else visible,
                is_far_indented=above.is_far_indented if indented is None else indented,
                font_size=_font_size(above.font_size, name, attributes, style),
                colour=above.colour if colour in ("", _INHERITED) else colour,
                background=above.background if background in _SEE_THROUGH else background,
            )
        return look

    def _is_coloured(self, name: str, attributes: Mapping[str, str]) -> bool:
        if not self._coloured:
            return False
        if name in self._coloured or not ("class" in attributes or "id" in attributes):
            return name in self._coloured
        names = [f"#{attributes.get('id')}"]
        names += [f".{word}" for word in attributes.get("class", "").split()]
        return not self._coloured.isdisjoint(names)


def _font_size(above: float, name: str, attributes: Mapping[str, str], style: Style) -> float:
    if style.font_size is not None:
        number, unit = style.font_size
        return above * number * _RELATIVE[unit] if unit in _RELATIVE else number * _PIXELS[unit]
    return 16.0 if name == "font" and "size" in attributes else above


_HEX = re.compile(r"#([0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})(?![0-9a-f])")
_RGB = re.compile(r"rgba?\(\s*+(\d{1,3})[\s,]++(\d{1,3})[\s,]++(\d{1,3})([^)]{0,40})\)")
_NO_ALPHA = re.compile(r"[\s,/]++0*+(?:\.0++)?%?\s*+\Z")
_NUMBER = r"([0-9]{0,6}\.?[0-9]{1,6})"
_UNIT = "px|pt|pc|in|cm|mm|rem|vw|vh|em|ex|ch|%"
_SIZE = re.compile(f"{_NUMBER}({_UNIT})|0+(?:\\.0*)?")
_SIZE_IN_FONT = re.compile(rf"(?<!\S)(?:{_NUMBER}({_UNIT})|(?:0+(?=[\s/])))")
_LENGTH = re.compile(r"(-?)([0-9]{0,9}(?:\.[0-9]{1,6})?)([a-z%]{0,4})")
_ZERO = re.compile(r"(?:0+\.?0*|\.0+)(?:[a-z]{1,4}|%)?")
_CLIPPED = re.compile(r"rect\(\s*+0(?:px)?[\s,]|inset\(\s*+(?:[5-9][0-9]|100)%")
_BOLD = re.compile(r"bold|[6-9]00")
_SPREAD = re.compile(r"0*(?:[2-9]|[1-9][0-9]|0?\.[1-9])")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))")
_DISPLAYS = (
    *("none", "block", "contents", "flex", "flow", "grid", "inherit", "initial", "inline"),
    *("list-item", "revert", "table", "unset"),
)
_PLACES = frozenset(("bottom", "left", "margin-left", "margin-top", "right", "top"))
# fmt: off
_PROPERTIES = _PLACES | frozenset([
    "background", "background-color", "background-image", "border-radius", "clip", "clip-path",
    "color", "display", "font", "font-size", "font-weight", "height", "letter-spacing",
    "max-height", "max-width", "mso-hide", "opacity", "overflow", "overflow-x", "overflow-y",
    "padding", "padding-bottom", "padding-left", "padding-right", "padding-top", "text-indent",
    "visibility", "width",
])
# fmt: on


COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ENCLOSING = re.compile(r"[\"'()]")
_PIECE = re.compile(r"\"[^\"\n]*+\"|'[^'\n]*+'|\([^()]*+\)|[^;\"'()]++|.", re.DOTALL)


def split_declarations(text: str) -> list[str]:
    """Split at semicolons outside quotes and brackets."""
    if _ENCLOSING.search(text) is None:
        return text.split(";")
    declarations: list[str] = []
    pieces: list[str] = []
    for match in _PIECE.finditer(text):
        if match.group() == ";":
            declarations.append("".join(pieces))
            pieces = []
        else:
            pieces.append(match.group())
    return [*declarations, "".join(pieces)]


def read_style(text: str) -> Style:
    """Parse a ``style`` attribute in linear time; unknown properties are ignored."""
    return _read_usual_style(text) if len(text) <= _USUAL else _read_style(text)


def _read_style(text: str) -> Style:
    declarations = _read_declarations(text)
    if not declarations:
        return NO_STYLE
    background = ""  # the colour behind the words; that of a picture is unknown
    for name, value in declarations.items():
        if name not in ("background", "background-color", "background-image"):
            continue
        if "url(" in value or "gradient(" in value or "image(" in value:
            background = _UNKNOWN
        elif name != "background-image" and background != _UNKNOWN:
            is_nothing = value.partition(" ")[0] in ("", "none", "0")
            background = _TRANSPARENT if is_nothing else _read_colour(value)
    return Style(
        hides=_find_hiding(declarations),
        is_visible=_VISIBILITIES.get(declarations.get("visibility", "")),
        is_far_indented=_is_far(declarations["text-indent"])
        if "text-indent" in declarations
        else None,
        font_size=_read_font_size(declarations),
        colour=_read_colour(declarations.get("color", "")),
        background=background,
        is_bold=_BOLD.match(declarations.get("font-weight", "")) is not None,
        is_spread=_SPREAD.match(declarations.get("letter-spacing", "")) is not None,
        button_marks=_count_button_marks(declarations),
    )


_read_usual_style = lru_cache(maxsize=1_024)(_read_style)
"""Cached, since the styles of a template are the same in each of its mails."""


def _read_declarations(text: str) -> dict[str, str]:
    """Return the last value of each property, in written order; important ones take precedence."""
    if "/*" in text:
        text = COMMENT.sub(" ", text)
    if "\\" in text:
        text = _ESCAPE.sub(_unescape, text)
    declarations: dict[str, str] = {}
    important: set[str] = set()
    for declaration in split_declarations(text.lower()):
        name, _, value = declaration.partition(":")
        name = name.strip()
        if name not in _PROPERTIES:
            continue
        value, mark, rest = value.partition("!")
        if mark and rest.strip() == "important":
            important.add(name)
        elif name in important:
            continue
        value = value.strip()
        if name == "display" and not value.startswith(_DISPLAYS):
            continue
        declarations.pop(name, None)
        declarations[name] = value
    return declarations


def _unescape(match: re.Match[str]) -> str:
    number = int(match[1] or "0", 16)
    return match[2] or (chr(number) if number < 0x110000 else "\ufffd")


def _find_hiding(declarations: Mapping[str, str]) -> Hiding | None:
    get = declarations.get
    if get("display") == "none":
        return Hiding.DISPLAY
    if _is_zero(get("opacity")):
        return Hiding.OPACITY
    is_cut = (
        "overflow" in declarations or "overflow-x" in declarations or "overflow-y" in declarations
    )
    if (
        _is_zero(get("max-height"))
        or _is_zero(get("max-width"))
        or (is_cut and (_is_zero(get("height")) or _is_zero(get("width"))))
    ):
        return Hiding.NO_ROOM
    if not _PLACES.isdisjoint(declarations) and any(_is_far(get(name, "")) for name in _PLACES):
        return Hiding.OFF_PAGE
    if _CLIPPED.match(get("clip") or get("clip-path", "")):
        return Hiding.CLIPPED
    return Hiding.MSO_HIDE if get("mso-hide") == "all" else None


def _is_zero(value: str | None) -> bool:
    return value is not None and _ZERO.fullmatch(value) is not None


def _is_far(value: str) -> bool:
    """Return whether a length leads off the page: -500px, -40em, -100%."""
    match = _LENGTH.fullmatch(value)
    if match is None or not match[1] or not match[2]:
        return False
    number, unit = float(match[2]), match[3]
    if unit in ("%", "vw", "vh"):
        return number >= 100
    return number * {"em": 16.0}.get(unit, _PIXELS.get(unit, 0.0)) >= FAR_PIXELS


def _read_font_size(declarations: dict[str, str]) -> tuple[float, str] | None:
    for name in reversed(declarations):
        if name == "font-size":
            match = _SIZE.fullmatch(declarations[name])
        elif name == "font":
            match = _SIZE_IN_FONT.search(declarations[name])
        else:
            continue
        if match is not None:
            return float(match[1] or 0), match[2] or "px"
        if declarations[name].endswith(("small", "medium", "large")):
            return 16.0, "px"
    return None


def _read_colour(value: str) -> str:
    """Return a colour as ``#rrggbb``, or ``unknown`` for a variable or an unknown value."""
    value = value.strip()
    if not value:
        return ""
    if value in _COLOURS:
        return _COLOURS[value]
    if found := _HEX.search(value):
        digits = found[1] if len(found[1]) > 4 else "".join(digit * 2 for digit in found[1])
        return _TRANSPARENT if digits[6:] == "00" else f"#{digits[:6]}"
    if found := _RGB.search(value):
        if _NO_ALPHA.fullmatch(found[4]):
            return _TRANSPARENT
        return "#" + "".join(f"{min(255, int(part)):02x}" for part in found.groups()[:3])
    return next((_COLOURS[word] for word in value.split() if word in _COLOURS), _UNKNOWN)


def _count_button_marks(declarations: Mapping[str, str]) -> int:
    """Count the signs of a button: background, rounded corners, padding, and an own box."""
    grounds = filter(None, (declarations.get("background"), declarations.get("background-color")))
    has_ground = any(
        not ground.startswith(("none", "transparent", "inherit")) for ground in grounds
    )
    has_room = any(
        _ROOMY.match(declarations[name]) for name in declarations if name.startswith("padding")
    )
    is_box = declarations.get("display", "").startswith(("block", "inline-block"))
    return sum((has_ground, "border-radius" in declarations, has_room, is_box))


_SELECTOR_NAME = re.compile(r"[.#]?[A-Za-z_][\w-]*")


def find_coloured(style_sheet: str) -> Iterator[str]:
    """Yield the elements, ``.classes`` and ``#ids`` whose colours a style sheet sets."""
    for rule in style_sheet[:MAX_CSS].split("}"):
        selector, brace, block = rule.rpartition("{")
        if brace and ("background" in block or "color" in block):
            yield from _SELECTOR_NAME.findall(selector.rpartition("{")[2][-MAX_SELECTOR:])


# fmt: off
_STRONG = frozenset(("b", "big", "code", "h1", "h2", "h3", "kbd", "mark", "samp", "strong"))
# fmt: on
_BIG_PIXELS = 20  # body text has 13 to 16 px, a prominent code 22 to 48 px
_BIG_FONTS = frozenset(("5", "6", "7", "+2", "+3", "+4"))  # <font size>; the default is 3
_BUTTON_CLASS = re.compile(r"(?<![a-z])(?:btn|button|cta)(?![a-z])", re.IGNORECASE)


def is_prominent(name: str, attributes: Mapping[str, str], style: Style) -> bool:
    """Return whether the text of an element stands out: heading, bold, large or spaced."""
    if name in _STRONG or (name == "font" and attributes.get("size") in _BIG_FONTS):
        return True
    if style is NO_STYLE:
        return False
    if style.font_size is not None:
        number, unit = style.font_size
        if number * (_PIXELS.get(unit) or 16 * _RELATIVE[unit]) >= _BIG_PIXELS:
            return True
    return style.is_bold or style.is_spread


def is_button(attributes: Mapping[str, str], style: Style) -> bool:
    """Return whether a link is drawn as a button by its own style or class."""
    if _BUTTON_CLASS.search(attributes.get("class", "")) or attributes.get("role") == "button":
        return True
    return style.button_marks > 1
