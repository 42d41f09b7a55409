"""Web addresses in a text, all links of a mail, and the link that the mail was sent for."""

import re
from collections.abc import Sequence
from functools import cache
from urllib.parse import unquote

from msgspec import Struct

from mailcheck.checks.content.limits import MAX_KEPT_CANDIDATES, MAX_LINK_TEXT, MAX_LINKS, MAX_URL
from mailcheck.checks.content.phrases import (
    PhraseTable,
    compile_phrases,
    find_phrases,
    fold,
    load_table,
    make_plain,
)
from mailcheck.checks.content.visible_text import VisibleText
from mailcheck.core.content import Candidate, CandidateKind

# A URL ends at white space, controls, the characters that RFC 3986 excludes, marks that are
# written around URLs, and punctuation of CJK text.
_ENDS = r"\s\x00-\x1f\x7f<>\"`{}\\^\u00ab\u00bb\u2018-\u201f\u2026\u2039\u203a\ufffc"
_CJK_PUNCTUATION = r"\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
# CJK letters are allowed in a host. After the host they belong to the sentence, since programs
# percent-encode paths.
_CJK = r"\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
# A URL also ends where another Markdown link follows, "](", ")[" or ")|[", or another link in
# brackets.
_BRACKETS = r"\](?!\(|[|(\[<]?https?://)|\)(?!\|?\[|[|(<]?https?://)"
_URL = re.compile(
    rf"https?://(?:[^{_ENDS}{_CJK_PUNCTUATION}/?#)\]]++|{_BRACKETS})++"
    rf"(?:[^{_ENDS}{_CJK_PUNCTUATION}{_CJK})\]]++|{_BRACKETS})*+",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"<(https?://(?:[^<>\n]|\n>?){1,8192}+)>", re.IGNORECASE)
_BREAK = re.compile(r"[ \t]*\r?\n[ \t>]*")
_HOST = re.compile(r"https?://(?:[^/?#@]*+@)?+([^/?#@:]++)", re.IGNORECASE)
# Without "-" and "_", which may be the end of a token.
_TRAILING = ".,;:!?'*|"
_CLOSING = {")": "(", "]": "["}


def join_wrapped_urls(text: str) -> str:
    """Join URLs that were wrapped inside angle brackets (RFC 3986 C)."""
    return _BRACKETED.sub(_join_wrapped, text)


def find_urls(text: str) -> list[tuple[int, str]]:
    """Return the URLs of a plain text with their offsets, in order.

    Balanced closing brackets are kept; punctuation at the end is removed.
    """
    found = ((match.start(), trim_url(match.group())) for match in _URL.finditer(text))
    return [(start, url) for start, url in found if is_web_url(url)]


def is_web_url(url: str) -> bool:
    """Return whether a text is an absolute http(s) URL with a host and a valid length."""
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
"""Schemes of web and mail, and schemes that mail programs do not open."""


def is_app_url(url: str) -> bool:
    """Return whether a link opens an app by its own scheme: ``myapp://verify``."""
    match = _SCHEME.match(url) if len(url) <= MAX_URL else None
    return match is not None and match[1].lower() not in _NO_APPS


def find_app_urls(text: str) -> list[str]:
    """Return the links to apps in a plain text, in order."""
    text = text[:MAX_LINK_TEXT]
    if text.count("://") == text.count("http://") + text.count("https://"):
        return []
    found = (trim_url(match.group()) for match in _APP_URL.finditer(text))
    return [url for url in found if is_app_url(url)]


def trim_url(url: str) -> str:
    """Remove the punctuation of the surrounding sentence from a URL."""
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
"""Maximum number of clickable links of one text; later URLs are shown as plain text."""


class TextPiece(Struct, frozen=True):
    """A piece of text; ``is_link`` is true if it is a web address."""

    text: str
    is_link: bool


def cut_at_links(text: str) -> tuple[TextPiece, ...]:
    """Split a text at its http(s) links; the joined pieces are the text."""
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


_CONTEXT = 120  # characters of text before a bare URL that may describe it
_NO_WHITE_SPACE = str.maketrans("", "", "\t\r\n")


class Link(Struct, frozen=True):
    """A URL at one place, with the words on it or before it.

    ``is_labelled`` is true for the words of an anchor, and false for text before a bare URL.
    """

    url: str
    words: str
    is_labelled: bool = False
    is_button: bool = False
    has_text: bool = True


class Links(Struct, frozen=True):
    """All places of web links, and the linked mail addresses and apps."""

    web: list[Link]
    mail_addresses: list[str]
    apps: list[str]


def collect_links(text: str, page: VisibleText) -> Links:
    """Collect all places of all links.

    Links of the text come before links of the HTML. A ``<base>`` is ignored, since web mail
    removes it; a relative link therefore leads nowhere.
    """
    links = _links_of_text(text)
    mail_addresses: list[str] = []
    apps: list[str] = find_app_urls(text)
    for anchor in page.anchors:
        href = anchor.href.strip().translate(_NO_WHITE_SPACE).replace(" ", "%20")
        if is_web_url(href):
            words = anchor.title if not anchor.text or is_web_url(anchor.text) else anchor.text
            links.append(Link(href, words, True, anchor.is_button, anchor.has_text))
        elif href[:7].lower() == "mailto:":
            mail_addresses.append(href[7:])
        elif is_app_url(href):
            apps.append(href)
    links += _links_of_text(page.text)
    apps += find_app_urls(page.text)
    return Links(links, list(dict.fromkeys(mail_addresses)), list(dict.fromkeys(apps)))


def list_urls(links: list[Link]) -> tuple[str, ...]:
    """List the distinct URLs in order, up to the maximum."""
    return tuple(dict.fromkeys(link.url for link in links))[:MAX_LINKS]


def _links_of_text(text: str) -> list[Link]:
    links = []
    text = join_wrapped_urls(text[:MAX_LINK_TEXT])
    previous = 0
    for position, url in find_urls(text):
        links.append(Link(url, text[max(previous, position - _CONTEXT) : position]))
        previous = position + len(url)
    return links


POINTS = {
    # Only the order of the values matters. An action named on the link beats everything in a
    # URL, and words of every footer lose to anything else.
    "action": 6,
    "minor": 3,
    "denial": -5,
    "reject": -12,
    "network": -12,
    "action in the URL": 3,
    "reject in the URL": -12,
    "token in the URL": 2,
    "button": 2,
    "image only": -3,
    "front page": -4,
}
ACCEPTED_FROM = 3  # a label with something to do, or a URL with an account action

_REASONS = {
    "action": "is labelled with an account action",
    "minor": "is labelled with something to do",
    "denial": "is for recipients who did not ask for the mail",
    "network": "is labelled with the name of a network",
    "reject": "is labelled as a part of the footer or header",
    "action in the URL": "has an account action in its URL",
    "reject in the URL": "has the URL of a footer, a network or a file",
    "token in the URL": "has a token in its URL",
    "button": "is drawn as a button",
    "image only": "contains only an image",
    "front page": "leads to a front page",
}
# Only the first of these kinds counts for a link.
_PRECEDENCE = ("reject", "denial", "action", "minor", "network")
_MAX_WORDS = 200
_PARTS = re.compile(r"https?://(?:[^/?#@]*+@)?+([^/?#:]++)[^/?#]*+([^?#]*+)(.*)", re.I | re.S)
_SEPARATORS = re.compile(r"[^a-z-]++")
_DIGIT = re.compile(r"[0-9]")
_TOKEN = re.compile(r"[A-Za-z0-9_.~-]{16,}+")


@cache
def _file_endings() -> tuple[str, ...]:
    return tuple(load_table("link_words.toml")["urls"]["file_endings"])


@cache
def _of_urls(kind: str) -> frozenset[str]:
    """Return a list of words for URLs from the table."""
    return frozenset(load_table("link_words.toml")["urls"][kind])


@cache
def _phrases() -> PhraseTable:
    return compile_phrases(load_table("link_words.toml")["words"])


def score_links(links: Sequence[Link]) -> list[Candidate]:
    """Score each distinct URL by its best place; best first, then in order."""
    best: dict[str, tuple[int, tuple[str, ...]]] = {}
    for link in links[:MAX_LINKS]:
        findings = [*_classify_words(link), *_classify_url(link.url)]
        findings += ["button"] * link.is_button + ["image only"] * (not link.has_text)
        score = sum(POINTS[finding] for finding in findings)
        if link.url not in best or score > best[link.url][0]:
            reasons = tuple(f"{POINTS[f]:+d} {_REASONS[f]}" for f in findings)
            best[link.url] = (score, reasons)
    candidates = [
        Candidate(CandidateKind.LINK, url, score, score >= ACCEPTED_FROM, reasons)
        for url, (score, reasons) in best.items()
    ]
    candidates.sort(key=lambda candidate: -candidate.score)
    return candidates[:MAX_KEPT_CANDIDATES]


def _classify_words(link: Link) -> list[str]:
    """Return the meaning of the words: all words of an anchor, the nearest before a bare URL."""
    words = make_plain(link.words)
    words = words[:_MAX_WORDS] if link.is_labelled else words[-_MAX_WORDS:]
    found = find_phrases(fold(words), _phrases())
    if not found:
        return []
    if not link.is_labelled:
        return [found[-1].kind]
    kinds = {occurrence.kind for occurrence in found}
    return [next(kind for kind in _PRECEDENCE if kind in kinds)]


def _classify_url(url: str) -> list[str]:
    match = _PARTS.match(url)
    if match is None:
        return []
    host, path, rest = match[1].lower(), match[2], match[3]
    words = set(_SEPARATORS.split(unquote(f"{path} {rest}").lower()))
    findings = []
    if (
        words & _of_urls("reject")
        or path.lower().endswith(_file_endings())
        or any(host == name or host.endswith(f".{name}") for name in _of_urls("hosts"))
    ):
        findings.append("reject in the URL")
    elif words & _of_urls("action"):
        findings.append("action in the URL")
    if any(_DIGIT.search(token) for token in _TOKEN.findall(f"{path} {rest}")):
        findings.append("token in the URL")
    if path in ("", "/") and not rest:
        findings.append("front page")
    return findings
