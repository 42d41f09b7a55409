"""Accessibility of a mail's HTML, by the success criteria of WCAG 2.2.

The findings are for information and cost no points. A property that cannot be determined from the
HTML alone, such as the contrast over an image or with a style sheet, is counted as not judged.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from mailcheck.checks.content.html_tree import VOID, Element, End, HtmlTree, Words
from mailcheck.checks.content.phrases import fold, make_plain
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.html_checks.css import is_linked_sheet
from mailcheck.checks.html_checks.places import Lines
from mailcheck.checks.mail_checks import Accessibility, AccessibilityFinding
from mailcheck.checks.quality.html_reading import is_dot
from mailcheck.checks.quality.wording import quote

LEAST_CONTRAST = 4.5
"""Minimum contrast of text and its background (WCAG 1.4.3, AA)."""

LEAST_CONTRAST_OF_LARGE = 3.0

LARGE, LARGE_BOLD = 24.0, 18.66
"""Minimum size of large text in pixels: 18 points, or 14 if bold."""

# fmt: off
VAGUE = frozenset([
    "click", "click here", "continue", "details", "go", "here", "learn more", "link", "more",
    "read more", "see more", "this link", "this page", "view", "view more",
    "hier", "hier klicken", "klick hier", "klicken sie hier", "mehr", "mehr erfahren",
    "mehr lesen", "weiter", "weiterlesen", "zum link",
    "cliquez ici", "en savoir plus", "ici", "lire la suite", "plus", "voir plus",
    "aqui", "haga clic aqui", "leer mas", "mas", "pincha aqui", "saber mas", "ver mas",
    "clicca qui", "continua", "leggi", "leggi di piu", "qui", "scopri di piu",
    "klik hier", "lees meer", "lees verder", "meer",
    "clique aqui", "leia mais", "mais", "saiba mais",
])
# fmt: on
"""Link texts that are vague without their context, in folded text (WCAG 2.4.4)."""

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BOLD = frozenset(("b", "strong", "th", *_HEADINGS))
_LARGE_HEADINGS = frozenset(("h1", "h2", "h3"))
_SEE_THROUGH = re.compile(
    r"rgba\(|hsl|opacity|#[0-9a-f]{8}\b|#[0-9a-f]{4}\b|rgb\([^)]*+/|mix-blend|filter", re.IGNORECASE
)
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_NAMES = ("aria-label", "aria-labelledby", "title")
_EDGES = " \t\r\n.:!?\u2026>\u00bb\u203a\u2192-"


def judge_accessibility(tree: HtmlTree, lines: Lines) -> Accessibility:
    """Return the findings about a page. Never raises; takes linear time."""
    page = _Page()
    for node in tree.nodes:
        if isinstance(node, Words):
            page.add_words(node)
        elif isinstance(node, Element):
            page.open(node)
        else:
            page.close(node)
    page.judge_links()
    findings = sorted(_list_findings(page, lines), key=lambda one: one.finding.severity.rank)
    return Accessibility(tuple(findings), page.unknown_contrasts)


@dataclass(slots=True)
class _Link:
    """A link; ``element`` is its first element if crossed tags have opened it again."""

    element: Element
    words: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    has_image: bool = False


@dataclass(slots=True)
class _Page:
    """State of the scan; ``faults`` are the positions of each kind of fault."""

    faults: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    samples: dict[str, str] = field(default_factory=dict)
    has_words: bool = False
    has_language: bool = False
    level: int = 0
    bold: int = 0
    large_heading: int = 0
    see_through: int = 0
    unknown_contrasts: int = 0
    has_linked_sheet: bool = False
    link: _Link | None = None
    links: list[_Link] = field(default_factory=list)
    last: int = 0

    def open(self, element: Element) -> None:
        name, attributes = element.name, element.attributes
        if element.position >= 0 and not element.is_copy:
            self.last = element.position
        if not self.has_words and (attributes.get("lang") or attributes.get("xml:lang")):
            self.has_language = True
        self._count(element, 1)
        if name == "img":
            self._add_image(element)
        elif is_linked_sheet(element):
            self.has_linked_sheet = True
        elif name == "a" and "href" in attributes and element.look.shows_images:
            self._open_link(element)
        elif name in _HEADINGS and element.look.is_seen:
            level = _HEADINGS[name]
            if self.level and level > self.level + 1:
                self._note("heading", f"<h{self.level}> and then <{name}>")
            self.level = level

    def close(self, end: End) -> None:
        element = end.element
        self._count(element, -1)
        if element.name == "a":
            self.link = None

    def add_words(self, node: Words) -> None:
        if not node.look.is_seen or node.text.isspace():
            return
        self.has_words = True
        if self.link is not None:
            self.link.words.append(node.text)
        look = node.look
        is_known = _COLOUR.fullmatch(look.colour) and _COLOUR.fullmatch(look.background)
        is_judged = is_known and not self.see_through
        contrast = contrast_of(look.colour, look.background) if is_judged else None
        large = LARGE_BOLD if self.bold > 0 else LARGE
        is_large = look.font_size >= large or self.large_heading > 0
        least = LEAST_CONTRAST_OF_LARGE if is_large else LEAST_CONTRAST
        if contrast is None:
            self.unknown_contrasts += 1
        elif contrast < least:
            words = quote(" ".join(node.text.split()))
            sample = f"\u201c{words}\u201d, {look.colour} on {look.background}, has {contrast:.1f}"
            self._note("contrast", sample)
        elif self.has_linked_sheet:
            self.unknown_contrasts += 1

    def judge_links(self) -> None:
        """Judge the links at the end, because one link may consist of several elements."""
        for link in self.links:
            words = " ".join(" ".join([*link.words, *link.names]).split())
            href = quote(link.element.attributes.get("href", "").strip()[:200])
            if not words:
                kind = "image link" if link.has_image else "empty link"
                self._note(kind, href, link.element.position)
            elif fold(make_plain(words[:100])).strip(_EDGES) in VAGUE:
                self._note("vague link", f"\u201c{quote(words)}\u201d", link.element.position)

    def _open_link(self, element: Element) -> None:
        last = self.links[-1] if self.links else None
        if element.is_copy and last and last.element.attributes is element.attributes:
            self.link = last
            return
        self.link = _Link(element)
        self.links.append(self.link)
        self._add_names(element)

    def _add_image(self, element: Element) -> None:
        if not element.look.shows_images or is_dot(element.attributes):
            return
        if self.link is not None:
            self.link.has_image = True
            self.link.words.append(element.attributes.get("alt", ""))
            self._add_names(element)
        is_decoration = element.attributes.get("role") in ("presentation", "none")
        if "alt" not in element.attributes and not is_decoration:
            source = element.attributes.get("src", "").strip()
            self._note("no alt", quote(source[:200]), element.position)

    def _add_names(self, element: Element) -> None:
        if self.link is not None:
            self.link.names += [element.attributes.get(name, "") for name in _NAMES]

    def _count(self, element: Element, by: int) -> None:
        """Record the start or end of an element that changes how text looks."""
        name, style = element.name, element.style
        if name in VOID:
            return  # it has no end tag and no content
        if name in _BOLD or style.is_bold:
            self.bold += by
        if name in _LARGE_HEADINGS and style.font_size is None:
            self.large_heading += by
        written = element.attributes.get("style")
        if written and _is_see_through(written):
            self.see_through += by

    def _note(self, kind: str, sample: str, position: int | None = None) -> None:
        self.faults[kind].append(self.last if position is None else position)
        self.samples.setdefault(kind, sample)


@lru_cache(maxsize=1_024)
def _is_see_through(style: str) -> bool:
    """Return whether the background is visible through an element with this style."""
    return _SEE_THROUGH.search(style) is not None


@lru_cache(maxsize=1_024)
def contrast_of(one: str, other: str) -> float:
    """Return the contrast of two colours ``#rrggbb``, from 1 to 21 (WCAG 2.2)."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    shares = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


_FAULTS = {
    "no alt": ("1.1.1", "accessibility.image-without-alt"),
    "image link": ("2.4.4", "accessibility.image-link-without-text"),
    "empty link": ("2.4.4", "accessibility.empty-link"),
    "contrast": ("1.4.3", "accessibility.low-contrast"),
    "heading": ("1.3.1", "accessibility.heading-skipped"),
    "vague link": ("2.4.4", "accessibility.vague-link-text"),
}
"""The criterion and the finding of each kind of fault."""


def _list_findings(page: _Page, lines: Lines) -> Iterator[AccessibilityFinding]:
    if page.has_words and not page.has_language:
        no_language = make_finding("accessibility.no-language")
        yield AccessibilityFinding(no_language, "3.1.1", (), 1)
    for kind, (criterion, finding_id) in _FAULTS.items():
        positions = page.faults.get(kind, [])
        if positions:
            count = len(positions)
            finding = make_finding(
                finding_id,
                count=count,
                sample=page.samples[kind],
                least=LEAST_CONTRAST,
                least_of_large=LEAST_CONTRAST_OF_LARGE,
            )
            yield AccessibilityFinding(finding, criterion, lines.places(positions), count)
