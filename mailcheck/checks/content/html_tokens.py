"""HTML tokenizer by the HTML standard (13.2.5), in linear time.

``html.parser`` is not used. In Python 3.11 to 3.13 it needs quadratic time for unclosed comments,
declarations and attributes (CVE-2025-6069 and others), and it parses broken markup differently in
each patch release. Here every step moves forward, and an unclosed construct ends at the end of the
text, as in a browser.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Struct

_START_OF_TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)(>)?")
# An unclosed attribute ends at the end of the text; then no ">" follows and the tag is dropped.
_ATTRIBUTE_OR_END = re.compile(
    r"[\s/]*+(?:(>)|([^\s/>][^\s/>=]*+)"
    r"(?:\s*+=\s*+(?:\"([^\"]*+)\"?|'([^']*+)'?|([^\s>]*+)))?)"
)
_REFERENCE = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_TOO_LONG_NUMBER = re.compile(r"&#0*+[0-9]{20,}+;?")
_COMMENT_END = re.compile(r"--!?>")
_RAW_TEXT = frozenset(
    ("script", "style", "xmp", "iframe", "noembed", "noframes", "title", "textarea")
)
_RAW_TEXT_END = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE | re.ASCII) for name in _RAW_TEXT
}


@dataclass(slots=True)
class StartTag:
    """A start tag; attribute names are in lower case, and references in values are decoded.

    ``position`` is the offset of its "<" in the markup, or -1 for an implied tag.
    """

    name: str
    attributes: dict[str, str]
    is_self_closing: bool = False
    position: int = field(default=-1, compare=False)


class EndTag(Struct):
    """An end tag."""

    name: str


@dataclass(slots=True)
class StyleSheet:
    """The text of a ``<style>`` element, with its start tag; ``position`` is the text's offset."""

    tag: StartTag
    text: str
    position: int = field(compare=False)


Token = str | StartTag | EndTag | StyleSheet
"""A piece of text with decoded references, a tag, or a style sheet."""


def tokenize_html(markup: str) -> Iterator[Token]:
    """Yield text, tags and style sheets in order, without comments, declarations and scripts."""
    position = 0
    while position < len(markup):
        bracket = markup.find("<", position)
        if bracket != position:
            yield _decode_text(markup[position : bracket if bracket >= 0 else None])
            if bracket < 0:
                return
        match = _START_OF_TAG.match(markup, bracket)
        if match is None:
            position = _skip_declaration(markup, bracket + 1)
            if position == bracket + 1:
                yield "<"
            continue
        slash, name, end = match.groups()
        position = match.end()
        if slash:
            position = position if end else _find_end(markup, position)
            yield EndTag(name.lower())
            continue
        tag = StartTag(name.lower(), {}, position=bracket)
        position = position if end else _read_attributes(tag, markup, position)
        if position < 0:
            return
        yield tag
        if tag.name in _RAW_TEXT:
            tokens, position = _read_raw_text(tag, markup, position)
            yield from tokens


def _read_raw_text(tag: StartTag, markup: str, start: int) -> tuple[tuple[Token, ...], int]:
    """Return the tokens of an element without markup, and the offset of its end tag."""
    close = _RAW_TEXT_END[tag.name].search(markup, start)
    end = close.start() if close else len(markup)
    if tag.name == "style":
        return (StyleSheet(tag, markup[start:end], start),), end
    return ((markup[start:end],) if tag.name == "xmp" and start < end else ()), end


def _read_attributes(tag: StartTag, markup: str, position: int) -> int:
    """Read to the end of a tag; return -1 if it is not closed, so that the rest is dropped."""
    attributes = tag.attributes
    while (match := _ATTRIBUTE_OR_END.match(markup, position)) is not None:
        end, key, double, single, bare = match.groups()
        position = match.end()
        if end:
            tag.is_self_closing = markup[position - 2] == "/"
            return position
        value = double or single or bare or ""
        if "&" in value:
            # Only references that end in ";", since ``&copy=1`` in an attribute is a query string.
            value = _REFERENCE.sub(lambda reference: html.unescape(reference.group()), value)
        attributes.setdefault(key.lower(), value)
    return -1


def _decode_text(text: str) -> str:
    if "&" not in text:
        return text
    # A character number has at most seven digits; Python raises an error above 4,300 digits.
    return html.unescape(_TOO_LONG_NUMBER.sub("\ufffd", text))


def _find_end(markup: str, position: int) -> int:
    end = markup.find(">", position)
    return len(markup) if end < 0 else end + 1


def _skip_declaration(markup: str, position: int) -> int:
    """Return the end of a comment or declaration at a position, or the position itself."""
    if not markup.startswith(("!", "?", "/"), position):
        return position
    if not markup.startswith("!--", position):
        return _find_end(markup, position)
    if markup.startswith(("!-->", "!--->"), position):
        return markup.index(">", position) + 1
    close = _COMMENT_END.search(markup, position + 3)
    return close.end() if close else len(markup)
