"""Web addresses in a text, and the text cut into pieces so that they can be clicked."""

import re

from msgspec import Struct

from mailcheck.checks.content.limits import MAX_LINK_TEXT, MAX_URL

# White space, controls and the characters that RFC 3986 keeps out of URLs and
# writers put around them end a URL; so does the punctuation of CJK text.
_ENDS = r"\s\x00-\x1f\x7f<>\"`{}\\^\u00ab\u00bb\u2018-\u201f\u2026\u2039\u203a\ufffc"
_CJK_PUNCTUATION = r"\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
# CJK letters may stand in a host; behind it they are the sentence going on,
# since programs percent-encode paths.
_CJK = r"\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
# Where Markdown goes on with another link, "](", ")[" or ")|[", or another link in brackets
# follows, the one before has ended.
_BRACKETS = r"\](?!\(|[|(\[<]?https?://)|\)(?!\|?\[|[|(<]?https?://)"
_URL = re.compile(
    rf"https?://(?:[^{_ENDS}{_CJK_PUNCTUATION}/?#)\]]++|{_BRACKETS})++"
    rf"(?:[^{_ENDS}{_CJK_PUNCTUATION}{_CJK})\]]++|{_BRACKETS})*+",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"<(https?://(?:[^<>\n]|\n>?){1,8192}+)>", re.IGNORECASE)
_BREAK = re.compile(r"[ \t]*\r?\n[ \t>]*")
_HOST = re.compile(r"https?://(?:[^/?#@]*+@)?+([^/?#@:]++)", re.IGNORECASE)
# Not "-" or "_": tokens end in them.
_TRAILING = ".,;:!?'*|"
_CLOSING = {")": "(", "]": "["}


def join_wrapped_urls(text: str) -> str:
    """Put URLs together that were wrapped inside angle brackets (RFC 3986 C)."""
    return _BRACKETED.sub(_join_wrapped, text)


def find_urls(text: str) -> list[tuple[int, str]]:
    """Find the URLs of a plain text with their offsets, in order.

    Closing brackets stay when they are balanced; punctuation at the end goes.
    """
    found = ((match.start(), trim_url(match.group())) for match in _URL.finditer(text))
    return [(start, url) for start, url in found if is_web_url(url)]


def is_web_url(url: str) -> bool:
    """Tell whether a text is an absolute http(s) URL with a host, of a usable length."""
    if len(url) > MAX_URL or not url[:8].lower().startswith(("http://", "https://")):
        return False
    host = _HOST.match(url)
    return host is not None and any(character.isalnum() for character in host[1])


_SCHEME = re.compile(r"([a-z][a-z0-9+.-]{1,40}):[^\s:]", re.IGNORECASE | re.ASCII)
_APP_URL = re.compile(
    rf"(?<![\w+.-])[a-z][a-z0-9+.-]{{1,40}}+://[^{_ENDS}{_CJK_PUNCTUATION}]++",
    re.IGNORECASE | re.ASCII,
)
# fmt: off
_NO_APPS = frozenset((
    "about", "blob", "chrome", "cid", "data", "file", "http", "https", "javascript", "jscript",
    "mailto", "mid", "res", "vbscript", "view-source",
))
# fmt: on
"""Schemes of the web and of mail, and schemes that mail programs do not follow."""


def is_app_url(url: str) -> bool:
    """Return whether a link leads to an app, by a scheme of its own: ``myapp://verify``."""
    match = _SCHEME.match(url) if len(url) <= MAX_URL else None
    return match is not None and match[1].lower() not in _NO_APPS


def find_app_urls(text: str) -> list[str]:
    """Find the links to apps in a plain text, in order."""
    text = text[:MAX_LINK_TEXT]
    if text.count("://") == text.count("http://") + text.count("https://"):
        return []
    found = (trim_url(match.group()) for match in _APP_URL.finditer(text))
    return [url for url in found if is_app_url(url)]


def trim_url(url: str) -> str:
    """Cut off what belongs to the sentence around a URL."""
    surplus = {close: url.count(close) - url.count(opened) for close, opened in _CLOSING.items()}
    end = len(url)
    while end:
        last = url[end - 1]
        if last in _CLOSING and surplus[last] > 0:
            surplus[last] -= 1
        elif last not in _TRAILING:
            break
        end -= 1
    return url[:end]


def _join_wrapped(match: re.Match[str]) -> str:
    if "\n" not in match[1]:
        return match.group()
    joined = _BREAK.sub("", match[1])
    has_blank = any(character.isspace() for character in joined)
    return match.group() if has_blank else f"<{joined}>"


MAX_LINKS_SHOWN = 2_000
"""Links of one text that can be clicked; the text behind them is shown as it is."""


class TextPiece(Struct, frozen=True):
    """A piece of text; ``is_link`` says that it is a web address as a whole."""

    text: str
    is_link: bool


def cut_at_links(text: str) -> tuple[TextPiece, ...]:
    """Cut a text at its http(s) links; the pieces together are the text."""
    pieces = []
    end = 0
    for start, url in find_urls(text[:MAX_LINK_TEXT])[:MAX_LINKS_SHOWN]:
        if start > end:
            pieces.append(TextPiece(text[end:start], is_link=False))
        end = start + len(url)
        pieces.append(TextPiece(text[start:end], is_link=True))
    if end < len(text):
        pieces.append(TextPiece(text[end:], is_link=False))
    return tuple(pieces)
