"""What the HTML of a mail is made of: pictures, what programs remove, what nobody sees."""

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from mailcheck.checks.content import element_styles
from mailcheck.checks.content.folding import make_plain
from mailcheck.checks.content.html_tokens import EndTag, StartTag, tokenize_html
from mailcheck.checks.content.limits import MAX_HTML
from mailcheck.checks.mail_quality.facts import HtmlFacts

MAX_PREHEADER = 200
"""Characters kept of what lists show behind the subject; the longest show about 140."""

MAX_SAMPLE = 100
"""Characters kept of hidden text, so that its author finds it."""

# fmt: off
_MUST_CLOSE = frozenset([
    "a", "b", "center", "div", "em", "font", "form", "h1", "h2", "h3", "h4", "i", "ol", "span",
    "strong", "style", "table", "u", "ul",
])
# fmt: on
"""Elements whose end tag HTML does not let one leave out, and that change how the rest looks."""

_ACTIVE = frozenset(("applet", "embed", "frame", "frameset", "iframe", "object", "script"))
_NO_WORDS = element_styles.NOT_SHOWN
_COLOUR = re.compile(r"(?<![\w-])color\s*+:\s*+([#\w]{1,32})", re.IGNORECASE | re.ASCII)
_BACKGROUND = re.compile(
    r"(?<![\w-])background(?:-color)?\s*+:\s*+([#\w]{1,32})", re.IGNORECASE | re.ASCII
)
_SAME_COLOURS = {"white": "#ffffff", "#fff": "#ffffff", "black": "#000000", "#000": "#000000"}
_DOT_SIZES = frozenset(("0", "1", "0px", "1px"))


def read_html(markup: str) -> HtmlFacts:
    """Read the tags of a page, its first 512 KiB. Never raises; takes linear time.

    Sizes and what is seen (``size``, ``is_base64``, ``visible_length``) are not filled in.
    """
    page = _Page()
    kept = markup[:MAX_HTML]
    for token in tokenize_html(kept):
        if isinstance(token, str):
            page.add_text(token)
        elif isinstance(token, StartTag):
            page.open(token)
        else:
            page.close(token)
    return replace(
        page.finish(),
        external_styles=page.external_styles + kept.count("@import"),
        has_unclosed_comment=_has_unclosed_comment(markup),
    )


def _has_unclosed_comment(markup: str) -> bool:
    last = markup.rfind("<!--")
    return last >= 0 and markup.find("-->", last + 2) < 0 and markup.find("--!>", last) < 0


@dataclass(slots=True)
class _Element:
    name: str
    is_hidden: bool
    is_tiny: bool
    has_no_words: bool


_OUTSIDE = _Element("", False, False, False)


@dataclass(slots=True)
class _Page:
    elements: list[_Element] = field(default_factory=list)
    open_names: Counter[str] = field(default_factory=Counter)
    unclosed: dict[str, None] = field(default_factory=dict)
    active: dict[str, None] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    external_styles: int = 0
    preheader: str = ""
    has_hidden_preheader: bool = False
    has_seen_text: bool = False
    hidden_length: int = 0
    hidden_sample: str = ""

    def open(self, tag: StartTag) -> None:
        self._count(tag)
        name = tag.name
        if name in element_styles.VOID:
            return
        above = self.elements[-1] if self.elements else _OUTSIDE
        if name in element_styles.IMPLIED_END and above.name == name:
            self._pop()
            above = self.elements[-1] if self.elements else _OUTSIDE
        size = element_styles.find_font_size(tag.attributes)
        self.elements.append(
            _Element(
                name,
                above.is_hidden or _is_hidden(tag.attributes),
                above.is_tiny if size is None else size <= element_styles.TINY_PIXELS,
                above.has_no_words or name in _NO_WORDS,
            )
        )
        self.open_names[name] += 1

    def close(self, tag: EndTag) -> None:
        # Counted names make each element be left once: linear for the whole page.
        if not self.open_names[tag.name]:
            return
        while self.elements[-1].name != tag.name:
            self._pop_unclosed()
        self._pop()

    def add_text(self, text: str) -> None:
        above = self.elements[-1] if self.elements else _OUTSIDE
        if above.has_no_words:
            return
        words = " ".join(make_plain(text).split())
        if not words:
            return
        is_hidden = above.is_hidden or above.is_tiny
        if is_hidden and self.has_seen_text:
            self.hidden_length += len(words)
            if len(self.hidden_sample) < MAX_SAMPLE:
                self.hidden_sample = f"{self.hidden_sample} {words}".strip()[:MAX_SAMPLE]
        elif is_hidden:
            self.has_hidden_preheader = True
            # What is longer than any list shows is not there for the lists.
            self.hidden_length += max(0, len(words) + len(self.preheader) - MAX_PREHEADER)
            self._grow_preheader(words)
        else:
            self.has_seen_text = True
            self._grow_preheader(words)

    def finish(self) -> HtmlFacts:
        while self.elements:
            self._pop_unclosed()
        counts = self.counts
        return HtmlFacts(
            hidden_length=self.hidden_length,
            hidden_sample=self.hidden_sample,
            preheader=self.preheader,
            has_hidden_preheader=self.has_hidden_preheader,
            image_count=counts["image"],
            images_without_alt=counts["no alt"],
            insecure_images=counts["insecure"],
            inline_data_images=counts["data"],
            tracking_pixels=counts["pixel"],
            form_count=counts["form"],
            active_elements=tuple(self.active),
            event_handlers=counts["handler"],
            style_blocks=counts["style block"],
            styled_elements=counts["styled"],
            unclosed=tuple(self.unclosed),
        )

    def _grow_preheader(self, words: str) -> None:
        if len(self.preheader) < MAX_PREHEADER:
            self.preheader = f"{self.preheader} {words}".strip()[:MAX_PREHEADER]

    def _pop(self) -> None:
        self.open_names[self.elements.pop().name] -= 1

    def _pop_unclosed(self) -> None:
        if self.elements[-1].name in _MUST_CLOSE:
            self.unclosed[self.elements[-1].name] = None
        self._pop()

    def _count(self, tag: StartTag) -> None:
        name, attributes = tag.name, tag.attributes
        self.counts["styled"] += "style" in attributes
        self.counts["handler"] += any(key.startswith("on") for key in attributes)
        self.counts["form"] += name == "form"
        self.counts["style block"] += name == "style"
        if name == "img":
            self._count_image(attributes)
        elif name in _ACTIVE:
            self.active[name] = None
        elif name == "meta" and attributes.get("http-equiv", "").lower() == "refresh":
            self.active["meta refresh"] = None
        elif name == "link" and "stylesheet" in attributes.get("rel", "").lower():
            self.external_styles += 1

    def _count_image(self, attributes: dict[str, str]) -> None:
        if {attributes.get("width"), attributes.get("height")} <= _DOT_SIZES:
            self.counts["pixel"] += 1
            return
        source = attributes.get("src", "").strip()[:8].lower()
        self.counts["image"] += 1
        self.counts["no alt"] += "alt" not in attributes
        self.counts["insecure"] += source.startswith("http://")
        self.counts["data"] += source.startswith("data:")


def _is_hidden(attributes: dict[str, str]) -> bool:
    if element_styles.is_hidden(attributes):
        return True
    style = attributes.get("style", "")
    if "background" not in style.lower():
        return False
    colour, background = _COLOUR.search(style), _BACKGROUND.search(style)
    return (
        colour is not None
        and background is not None
        and _same_colour(colour[1]) == _same_colour(background[1])
    )


def _same_colour(name: str) -> str:
    return _SAME_COLOURS.get(name.lower(), name.lower())
