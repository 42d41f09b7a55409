"""HTML mail to a page that runs nothing and loads nothing; sanitised last by a library (nh3).

Three steps: `bounded_markup` makes it cheap to read, nh3 reads it as a browser
does and keeps elements and attributes of an allow-list, and each attribute
passes the rules below. Whoever shows the result shows it in a sandboxed frame
under a policy that forbids the same once more: neither defence trusts the other.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

import nh3

from mailcheck.checks.content.bounded_markup import bound_markup
from mailcheck.checks.content.limits import MAX_HTML
from mailcheck.checks.content.safe_css import StyleFilter
from mailcheck.checks.content.shown_attributes import (
    ATTRIBUTES,
    KEYWORDS,
    LINK_SCHEMES,
    NUMBERS,
)
from mailcheck.checks.content.shown_elements import SHOWN
from mailcheck.checks.content.urls import is_web_url

MAX_PLAIN = 1_000
"""Characters of an attribute that is no URL and no style."""

LINK_REL = "noopener noreferrer nofollow"

_DATA_IMAGE = re.compile(
    r"data:image/(?:png|jpe?g|gif|webp|bmp);base64,[A-Za-z0-9+/=\s]*+", re.IGNORECASE
)
_IGNORED_IN_URLS = str.maketrans("", "", "\t\r\n")


@dataclass(frozen=True, slots=True)
class SafeHtml:
    """``body`` is a fragment of HTML, ``style_sheet`` the text of a ``<style>``; both are safe.

    ``remote_count`` counts what would be loaded from elsewhere; it is in the
    page only where that was allowed. ``content_ids`` are the images of the mail
    itself that the page shows. ``is_cut`` says that only its beginning is shown.
    """

    body: str
    style_sheet: str
    remote_count: int
    content_ids: tuple[str, ...]
    is_cut: bool


def sanitise_html(
    markup: str, images: Mapping[str, str] | None = None, *, allows_remote: bool = False
) -> SafeHtml:
    """Make HTML of a mail safe to show; takes time linear in its length, of which it reads 512 KiB.

    :param images: ``data:`` URLs by content id, shown for ``cid:`` links (RFC 2392).
    :param allows_remote: whether images of http(s) stay in the page.
    """
    bounded = bound_markup(markup[:MAX_HTML])
    rules = _AttributeRules(images or {}, StyleFilter(allows_remote))
    body = nh3.clean(
        bounded.markup,
        tags=set(SHOWN),
        clean_content_tags={"script", "style", "svg", "math", "template"},
        attributes={name: set(names) for name, names in ATTRIBUTES.items()},
        attribute_filter=rules.judge,
        strip_comments=True,
        link_rel=LINK_REL,
        set_tag_attribute_values={"a": {"target": "_blank"}, "area": {"target": "_blank"}},
        url_schemes={*LINK_SCHEMES, "cid", "data"},
        url_relative="deny",
    )
    style_sheet = rules.styles.style_sheet("\n".join(bounded.style_sheets))
    return SafeHtml(
        body=body,
        style_sheet="" if "<" in style_sheet else style_sheet,
        remote_count=rules.styles.remote_count,
        content_ids=tuple(dict.fromkeys(rules.content_ids)),
        is_cut=len(markup) > MAX_HTML,
    )


@dataclass(slots=True)
class _AttributeRules:
    images: Mapping[str, str]
    styles: StyleFilter
    content_ids: list[str] = field(default_factory=list)

    def judge(self, element: str, name: str, value: str) -> str | None:
        """Give the value to use, or nothing to drop the attribute."""
        if name == "style":
            return self.styles.declarations(value) or None
        if name in ("src", "background"):
            return self._image(value.strip().translate(_IGNORED_IN_URLS))
        if name == "href":
            return _link(value.strip().translate(_IGNORED_IN_URLS))
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
            content_id = unquote(url[4:])
            self.content_ids.append(content_id)
            return self.images.get(content_id)
        if url[:5].lower() == "data:":
            return url if _DATA_IMAGE.fullmatch(url) else None
        if not is_web_url(url):
            return None
        self.styles.remote_count += 1
        return url if self.styles.allows_remote else None


def _link(url: str) -> str | None:
    scheme, colon, _ = url.partition(":")
    return url if colon and scheme.lower() in LINK_SCHEMES else None
