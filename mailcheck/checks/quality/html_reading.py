"""The facts about the HTML of a mail: images, elements that programs remove, and hidden text."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from mailcheck.checks.content.html_tree import Element, HtmlTree, Words
from mailcheck.checks.content.phrases import make_plain
from mailcheck.checks.quality.facts import HtmlFacts

MAX_PREHEADER = 200
"""Maximum number of characters of the preview text after the subject. The longest lists show about
140."""

MAX_SAMPLE = 100
"""Maximum number of characters of hidden text that are quoted, so that the author can find it."""

# fmt: off
_MUST_CLOSE = frozenset([
    "a", "b", "center", "div", "em", "font", "form", "h1", "h2", "h3", "h4", "i", "ol", "span",
    "strong", "style", "table", "u", "ul",
])
# fmt: on
"""Elements with a mandatory end tag that change the appearance of the rest."""

_ACTIVE = frozenset(("applet", "embed", "frame", "frameset", "iframe", "object", "script"))
_DOT_SIZES = frozenset(("0", "1", "0px", "1px"))


def is_dot(attributes: Mapping[str, str]) -> bool:
    """Return whether an image is a tracking pixel, which is not meant to be seen."""
    return {attributes.get("width"), attributes.get("height")} <= _DOT_SIZES


def read_html(markup: str, tree: HtmlTree) -> HtmlFacts:
    """Read a page, given as source and as a tree. Never raises; takes linear time.

    ``size``, ``is_base64`` and ``visible_length`` are not filled in.
    """
    page = _Page()
    for node in tree.nodes:
        if isinstance(node, Words):
            page.add_text(node)
        elif isinstance(node, Element):
            if not node.is_copy:
                page.count(node)
        elif not node.has_tag and node.element.name in _MUST_CLOSE:
            page.unclosed[node.element.name] = None
    for sheet in tree.style_sheets:
        page.counts["external_styles"] += sheet.text.count("@import")
    return replace(page.finish(), has_unclosed_comment=_has_unclosed_comment(markup))


def _has_unclosed_comment(markup: str) -> bool:
    last = markup.rfind("<!--")
    return last >= 0 and markup.find("-->", last + 2) < 0 and markup.find("--!>", last) < 0


@dataclass(slots=True)
class _Page:
    unclosed: dict[str, None] = field(default_factory=dict)
    active: dict[str, None] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    """Counts of the page, by fields of `HtmlFacts`."""
    preheader: str = ""
    has_hidden_preheader: bool = False
    has_seen_text: bool = False
    hidden_length: int = 0
    hidden_sample: str = ""

    def add_text(self, node: Words) -> None:
        if not node.look.is_text or node.text.isspace():
            return
        words = " ".join(make_plain(node.text).split())
        if not words:
            return
        is_hidden = node.look.hidden_by is not None
        if is_hidden and self.has_seen_text:
            self.hidden_length += len(words)
            if len(self.hidden_sample) < MAX_SAMPLE:
                self.hidden_sample = f"{self.hidden_sample} {words}".strip()[:MAX_SAMPLE]
        elif is_hidden:
            self.has_hidden_preheader = True
            # Text that is longer than any list shows is not a preheader.
            self.hidden_length += max(0, len(words) + len(self.preheader) - MAX_PREHEADER)
            self._grow_preheader(words)
        else:
            self.has_seen_text = True
            self._grow_preheader(words)

    def finish(self) -> HtmlFacts:
        facts = HtmlFacts(
            hidden_length=self.hidden_length,
            hidden_sample=self.hidden_sample,
            preheader=self.preheader,
            has_hidden_preheader=self.has_hidden_preheader,
            active_elements=tuple(self.active),
            unclosed=tuple(self.unclosed),
        )
        return replace(facts, **self.counts)

    def _grow_preheader(self, words: str) -> None:
        if len(self.preheader) < MAX_PREHEADER:
            self.preheader = f"{self.preheader} {words}".strip()[:MAX_PREHEADER]

    def count(self, element: Element) -> None:
        name, attributes = element.name, element.attributes
        self.counts["styled_elements"] += "style" in attributes
        self.counts["event_handlers"] += any(key.startswith("on") for key in attributes)
        self.counts["form_count"] += name == "form"
        self.counts["style_blocks"] += name == "style"
        if name == "img":
            self._count_image(attributes)
        elif name in _ACTIVE:
            self.active[name] = None
        elif name == "meta" and attributes.get("http-equiv", "").lower() == "refresh":
            self.active["meta refresh"] = None
        elif name == "link" and "stylesheet" in attributes.get("rel", "").lower():
            self.counts["external_styles"] += 1

    def _count_image(self, attributes: Mapping[str, str]) -> None:
        if is_dot(attributes):
            self.counts["tracking_pixels"] += 1
            return
        source = attributes.get("src", "").strip()[:8].lower()
        self.counts["image_count"] += 1
        self.counts["images_without_alt"] += "alt" not in attributes
        self.counts["insecure_images"] += source.startswith("http://")
        self.counts["inline_data_images"] += source.startswith("data:")
