"""HTML written anew, so that reading it costs a browser or a sanitiser little.

The HTML standard's tree building takes quadratic time for what is opened and
not closed, and copies open ``<b>`` and ``<font>`` into every paragraph: 70,000
``<div>`` keep the sanitiser busy for 18 s. What comes out of here is balanced,
its depth and its number of elements are capped, and all that nobody may see
is gone. It is not safe yet: that is `safe_html`'s work.
"""

from collections import Counter
from dataclasses import dataclass, field
from html import escape

from mailcheck.checks.content.element_styles import VOID
from mailcheck.checks.content.html_tokens import StartTag, tokenize_html
from mailcheck.checks.content.shown_elements import (
    CELL_SCOPE,
    CLOSED_BY,
    DROPPED_WITH_CONTENT,
    RENAMED,
    SHOWN,
    TABLE_PARTS,
    TABLE_SCOPE,
)

MAX_DEPTH = 128
"""Elements inside each other; Chromium stops at 512, layouts of nested tables reach about 80."""

MAX_ELEMENTS = 20_000
"""Elements of a mail; a long newsletter has about 3,000."""

MAX_ATTRIBUTES = 40
"""Attributes of an element that are looked at."""


PAGE_CLASS = "mail-page"
"""Class of the element that stands for ``<body>``."""


@dataclass(frozen=True, slots=True)
class BoundedMarkup:
    """``markup`` is balanced; ``style_sheets`` are the texts of its ``<style>``, unchecked."""

    markup: str
    style_sheets: tuple[str, ...]


def bound_markup(markup: str) -> BoundedMarkup:
    """Write HTML anew; takes time linear in its length. Any text is HTML."""
    style_sheets: list[tuple[StartTag, str]] = []
    rewriting = _Rewriting()
    for token in tokenize_html(markup, style_sheets):
        if isinstance(token, str):
            rewriting.add_text(token)
        elif isinstance(token, StartTag):
            rewriting.open(token)
        else:
            rewriting.close(token.name)
    return BoundedMarkup(
        rewriting.finish(), tuple(text for tag, text in style_sheets if _is_for_screens(tag))
    )


def _is_for_screens(tag: StartTag) -> bool:
    media = tag.attributes.get("media", "").lower()
    return not media or "all" in media or "screen" in media


@dataclass(slots=True)
class _Rewriting:
    pieces: list[str] = field(default_factory=list)
    open_elements: list[str] = field(default_factory=list)
    open_names: Counter[str] = field(default_factory=Counter)
    element_count: int = 0
    dropped: str = ""
    dropped_depth: int = 0

    def add_text(self, text: str) -> None:
        if not self.dropped:
            self.pieces.append(escape(text, quote=False))

    def open(self, tag: StartTag) -> None:
        if self.dropped:
            self.dropped_depth += tag.name == self.dropped
        elif tag.name in DROPPED_WITH_CONTENT:
            self.dropped, self.dropped_depth = tag.name, 1
        else:
            name = RENAMED.get(tag.name, tag.name)
            if name in SHOWN:
                is_page = tag.name == "body"
                self._open_shown(name, _styled(tag.attributes) if is_page else tag.attributes)

    def close(self, name: str) -> None:
        if self.dropped:
            self.dropped_depth -= name == self.dropped
            if not self.dropped_depth:
                self.dropped = ""
            return
        name = RENAMED.get(name, name)
        scope = TABLE_SCOPE if name in TABLE_PARTS else CELL_SCOPE
        self._close_up_to(frozenset((name,)), scope)

    def finish(self) -> str:
        while self.open_elements:
            self._pop()
        return "".join(self.pieces)

    def _open_shown(self, name: str, attributes: dict[str, str]) -> None:
        for closed, scope in CLOSED_BY.get(name, ()):
            self._close_up_to(closed, scope)
        if len(self.open_elements) >= MAX_DEPTH or self.element_count >= MAX_ELEMENTS:
            return
        self.element_count += 1
        kept = list(attributes.items())[:MAX_ATTRIBUTES]
        written = "".join(f' {key}="{escape(value)}"' for key, value in kept if _is_plain(key))
        self.pieces.append(f"<{name}{written}>")
        if name not in VOID:
            self.open_elements.append(name)
            self.open_names[name] += 1

    def _close_up_to(self, names: frozenset[str], scope: frozenset[str]) -> None:
        """Close elements up to the nearest of these names that stands within a scope."""
        if not any(self.open_names[name] for name in names):
            return
        for depth, name in enumerate(reversed(self.open_elements), 1):
            if name in names:
                for _ in range(depth):
                    self._pop()
                return
            if name in scope:
                return

    def _pop(self) -> None:
        name = self.open_elements.pop()
        self.open_names[name] -= 1
        self.pieces.append(f"</{name}>")


def _styled(attributes: dict[str, str]) -> dict[str, str]:
    """Say in CSS what attributes say that only ``<body>`` has."""
    said = {"bgcolor": "background-color", "text": "color"}
    style = [f"{said[name]}: {attributes[name]}" for name in said if name in attributes]
    return {
        **attributes,
        "class": f"{PAGE_CLASS} {attributes.get('class', '')}".strip(),
        "style": "; ".join([*style, attributes.get("style", "")]),
    }


def _is_plain(name: str) -> bool:
    return name.isascii() and name.replace("-", "").isalnum()
