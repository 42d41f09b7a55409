"""HTML to tokens, by the tokenizer of the HTML standard (13.2.5) as far as reading needs it.

Not ``html.parser``: in Python 3.11 to 3.13 it needs quadratic time for
unclosed comments, declarations and attributes (CVE-2025-6069 and others), and
what it makes of broken markup changes between patch releases. Here every step
moves forward and what is not closed runs to the end, as in a browser.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)(>)?")
# What is not closed runs to the end; then no ">" follows and the tag is dropped.
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
    """A start tag; attribute names in lower case, values with references decoded.

    ``position`` is the offset of its "<" in the markup, -1 for a tag that is not written there.
    """

    name: str
    attributes: dict[str, str]
    is_self_closing: bool = False
    position: int = field(default=-1, compare=False)


@dataclass(slots=True)
class EndTag:
    """An end tag."""

    name: str


@dataclass(slots=True)
class StyleSheet:
    """The text of a ``<style>`` element, with its start tag; ``position`` is the text's offset."""

    tag: StartTag
    text: str
    position: int = field(compare=False)


Token = str | StartTag | EndTag | StyleSheet
"""A piece of text with references decoded, a tag, or a style sheet; nothing else is a token."""


def tokenize_html(markup: str) -> Iterator[Token]:
    """Yield text, tags and style sheets in order; comments, declarations, scripts are left out."""
    position = 0
    while position < len(markup):
        bracket = markup.find("<", position)
        if bracket != position:
            yield _decode_text(markup[position : bracket if bracket >= 0 else None])
            if bracket < 0:
                return
        match = _TAG.match(markup, bracket)
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
            start, position = position, _skip_raw_text(markup, position, tag.name)
            yield from _keep_raw_text(tag, markup[start:position], start)


def _keep_raw_text(tag: StartTag, text: str, position: int) -> Iterator[Token]:
    if tag.name == "style":
        yield StyleSheet(tag, text, position)
    elif tag.name == "xmp" and text:
        yield text


def _read_attributes(tag: StartTag, markup: str, position: int) -> int:
    """Read to the end of a tag; less than 0 where it is not closed, as all that follows goes."""
    attributes = tag.attributes
    while (match := _ATTRIBUTE_OR_END.match(markup, position)) is not None:
        end, key, double, single, bare = match.groups()
        position = match.end()
        if end:
            tag.is_self_closing = markup[position - 2] == "/"
            return position
        value = double or single or bare or ""
        attributes.setdefault(key.lower(), _decode_references(value) if "&" in value else value)
    return -1


def _decode_text(text: str) -> str:
    if "&" not in text:
        return text
    # The number of a character has seven digits at most; Python reads 4,300 and then raises.
    return html.unescape(_TOO_LONG_NUMBER.sub("\ufffd", text))


def _decode_references(value: str) -> str:
    """Decode references that end in ";": in an attribute ``&copy=1`` is a query string."""
    return _REFERENCE.sub(lambda match: html.unescape(match.group()), value)


def _find_end(markup: str, position: int) -> int:
    end = markup.find(">", position)
    return len(markup) if end < 0 else end + 1


def _skip_declaration(markup: str, position: int) -> int:
    """Say where a comment, a declaration or what reads as one ends; where it is none, there."""
    if not markup.startswith(("!", "?", "/"), position):
        return position
    if not markup.startswith("!--", position):
        return _find_end(markup, position)
    if markup.startswith(("!-->", "!--->"), position):
        return markup.index(">", position) + 1
    close = _COMMENT_END.search(markup, position + 3)
    return close.end() if close else len(markup)


def _skip_raw_text(markup: str, position: int, name: str) -> int:
    close = _RAW_TEXT_END[name].search(markup, position)
    return close.start() if close else len(markup)
