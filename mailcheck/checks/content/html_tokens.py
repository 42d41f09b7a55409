"""HTML to tokens, by the tokenizer of the HTML standard (13.2.5) as far as reading needs it.

Not ``html.parser``: in Python 3.11 to 3.13 it needs quadratic time for
unclosed comments, declarations and attributes (CVE-2025-6069 and others), and
what it makes of broken markup changes between patch releases. Here every step
moves forward and what is not closed runs to the end, as in a browser.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

_TAG_NAME = re.compile(r"[^\s/>]++")
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
    """A start tag; attribute names in lower case, values with references decoded."""

    name: str
    attributes: dict[str, str]
    is_self_closing: bool = False


@dataclass(slots=True)
class EndTag:
    """An end tag."""

    name: str


Token = str | StartTag | EndTag
"""A piece of text with references decoded, or a tag. Comments and raw texts are no tokens."""


def tokenize_html(
    markup: str, style_sheets: list[tuple[StartTag, str]] | None = None
) -> Iterator[Token]:
    """Yield text and tags in order; comments, declarations, scripts and styles are left out.

    :param style_sheets: takes the texts of ``<style>`` elements, with their tags.
    """
    position = 0
    while position < len(markup):
        bracket = markup.find("<", position)
        if bracket < 0:
            bracket = len(markup)
        if bracket > position:
            yield _decode_text(markup[position:bracket])
        if bracket < len(markup):
            token, position = _read_markup(markup, bracket)
            if isinstance(token, StartTag) and token.name in _RAW_TEXT:
                start, position = position, _skip_raw_text(markup, position, token.name)
                if style_sheets is not None and token.name == "style":
                    style_sheets.append((token, markup[start:position]))
                if token.name == "xmp":
                    yield token
                    token = markup[start:position]
            if token:
                yield token
        else:
            position = bracket


def _read_markup(markup: str, bracket: int) -> tuple[Token | None, int]:
    """Read what a "<" begins: the token, if it is one, and where to go on."""
    following = markup[bracket + 1 : bracket + 2]
    if following.isascii() and following.isalpha():
        return _read_tag(markup, bracket + 1)
    if following == "/":
        name, position = _read_end_tag(markup, bracket + 2)
        return (EndTag(name) if name else None), position
    if following in ("!", "?"):
        return None, _skip_declaration(markup, bracket + 1)
    return "<", bracket + 1


def _read_tag(markup: str, position: int) -> tuple[StartTag | None, int]:
    """Read a start tag; one that is not closed is dropped with all that follows (eof-in-tag)."""
    name = _TAG_NAME.match(markup, position)
    if name is None:
        return None, len(markup)
    attributes: dict[str, str] = {}
    position = name.end()
    while (match := _ATTRIBUTE_OR_END.match(markup, position)) is not None:
        end, key, double, single, bare = match.groups()
        position = match.end()
        if end:
            is_self_closing = markup[position - 2] == "/"
            return StartTag(name.group().lower(), attributes, is_self_closing), position
        value = double or single or bare or ""
        attributes.setdefault(key.lower(), _decode_references(value) if "&" in value else value)
    return None, len(markup)


def _decode_text(text: str) -> str:
    if "&" not in text:
        return text
    # The number of a character has seven digits at most; Python reads 4,300 and then raises.
    return html.unescape(_TOO_LONG_NUMBER.sub("\ufffd", text))


def _decode_references(value: str) -> str:
    """Decode references that end in ";": in an attribute ``&copy=1`` is a query string."""
    return _REFERENCE.sub(lambda match: html.unescape(match.group()), value)


def _read_end_tag(markup: str, position: int) -> tuple[str, int]:
    name = _TAG_NAME.match(markup, position)
    end = markup.find(">", position)
    after = len(markup) if end < 0 else end + 1
    return (name.group().lower() if name and name.end() <= after else ""), after


def _skip_declaration(markup: str, position: int) -> int:
    if not markup.startswith("!--", position):
        end = markup.find(">", position)
        return len(markup) if end < 0 else end + 1
    if markup.startswith(("!-->", "!--->"), position):
        return markup.index(">", position) + 1
    close = _COMMENT_END.search(markup, position + 3)
    return close.end() if close else len(markup)


def _skip_raw_text(markup: str, position: int, name: str) -> int:
    close = _RAW_TEXT_END[name].search(markup, position)
    return close.start() if close else len(markup)
