"""Tables of the CSS that a mail may be drawn with; what is not named here is dropped.

Nothing here loads anything, runs anything or leaves its place on the page:
no ``position``, ``content``, ``behavior``, ``filter``, ``-moz-binding``, ``@font-face``.
"""

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
"""Properties that may be set."""

FUNCTIONS = frozenset([
    "calc", "clamp", "hsl", "hsla", "linear-gradient", "max", "min", "radial-gradient", "rgb",
    "rgba", "translate",
])
"""Functions that a value may hold beside ``url``."""

PSEUDO = frozenset([
    "active", "after", "before", "empty", "first-child", "first-letter", "first-line",
    "first-of-type", "focus", "hover", "last-child", "last-of-type", "link", "not", "nth-child",
    "nth-of-type", "only-child", "root", "visited",
])
"""Pseudo-classes and pseudo-elements that a selector may hold."""
# fmt: on

IMAGE_PROPERTIES = frozenset(("background", "background-image"))
"""Properties that may load an image, where remote content was asked for."""
