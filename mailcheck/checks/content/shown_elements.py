"""Tables of the HTML elements that a mail is shown with, and of what ends them unasked."""

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

DROPPED_WITH_CONTENT = frozenset([
    "applet", "audio", "canvas", "datalist", "frameset", "math", "select", "svg",
    "template", "video",
])
"""Elements whose content is nothing to read without them."""

BLOCKS_AFTER_P = frozenset([
    "address", "article", "aside", "blockquote", "center", "details", "dir", "div", "dl",
    "figcaption", "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main",
    "nav", "ol", "p", "pre", "section", "summary", "table", "ul",
])
"""Elements that end an open paragraph (HTML 13.2.6.4.7)."""
# fmt: on

RENAMED = {"body": "div", "plaintext": "pre", "xmp": "pre", "listing": "pre"}
"""Elements that can't stand inside a page as they are, and what is shown instead."""

TABLE_PARTS = frozenset(
    ("caption", "col", "colgroup", "table", "tbody", "td", "tfoot", "th", "thead", "tr")
)
"""Elements whose end tags reach out of a cell."""

TABLE_SCOPE = frozenset(("table",))
"""Where looking for an open row or cell ends."""

CELL_SCOPE = frozenset(("caption", "table", "td", "th"))
"""Where looking for an open paragraph or anchor ends."""

_LIST_SCOPE = CELL_SCOPE | {"dir", "ol", "ul", "dl"}

_SECTIONS = frozenset(("tbody", "thead", "tfoot", "caption", "colgroup"))

CLOSED_BY: dict[str, tuple[tuple[frozenset[str], frozenset[str]], ...]] = {
    **dict.fromkeys(BLOCKS_AFTER_P, ((frozenset(("p",)), CELL_SCOPE),)),
    "a": ((frozenset(("a",)), CELL_SCOPE),),
    "li": ((frozenset(("li",)), _LIST_SCOPE), (frozenset(("p",)), CELL_SCOPE)),
    "dd": ((frozenset(("dd", "dt")), _LIST_SCOPE), (frozenset(("p",)), CELL_SCOPE)),
    "dt": ((frozenset(("dd", "dt")), _LIST_SCOPE), (frozenset(("p",)), CELL_SCOPE)),
    "td": ((frozenset(("td", "th")), TABLE_SCOPE | {"tr"}),),
    "th": ((frozenset(("td", "th")), TABLE_SCOPE | {"tr"}),),
    "tr": ((frozenset(("tr",)), TABLE_SCOPE),),
    **dict.fromkeys(
        ("tbody", "thead", "tfoot", "caption", "colgroup"), ((_SECTIONS, TABLE_SCOPE),)
    ),
}
"""What a start tag ends before it begins: pairs of names and of the scope they are looked for in.

Without it the standard's tree building would end them itself, and open anew
in each place what stands inside them.
"""
