"""Tables of the HTML attributes that a mail is shown with; what is not named here is dropped."""

LINK_SCHEMES = frozenset(("http", "https", "mailto", "tel"))
"""Where a link of a mail may lead."""

_CELL = ("abbr", "background", "colspan", "height", "nowrap", "rowspan", "scope", "width")
_SIZE = ("height", "width")

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "*": (
        *("align", "aria-hidden", "aria-label", "bgcolor", "class", "dir", "id", "lang", "role"),
        *("style", "title", "valign"),
    ),
    "a": ("href", "name"),
    "area": ("alt", "coords", "href", "shape"),
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
