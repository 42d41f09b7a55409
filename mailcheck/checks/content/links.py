"""Web addresses in a text, all links of a mail, and the link that the mail was sent for."""

import re
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from functools import cache
from itertools import pairwise
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
    rf"https?://(?>(?:[^{_ENDS}{_CJK_PUNCTUATION}/?#)\]]++|{_BRACKETS})+)"
    rf"(?>(?:[^{_ENDS}{_CJK_PUNCTUATION}{_CJK})\]]++|{_BRACKETS})*)",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"<(https?://(?>(?:[^<>\n]|\n>?){1,8192}))>", re.IGNORECASE)
_BREAK = re.compile(r"[ \t]*\r?\n[ \t>]*")
_HOST = re.compile(r"https?://(?>(?:[^/?#@]*+@)?)([^/?#@:]++)", re.IGNORECASE)
# Without "-" and "_", which may be the end of a token.
_TRAILING = ".,;:!?'*|"
_CLOSING = {")": "(", "]": "["}


_SENTENCE_END = re.compile(r"[.!?](?:\s|$)|[。！？]|\n\s*\n")
_AFTER_URL = " \t\r\n>)]\"'*"


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


_CONTEXT = 120  # characters of text on each side of a link that may describe it
_NO_WHITE_SPACE = str.maketrans("", "", "\t\r\n")


class Link(Struct, frozen=True):
    """A URL at one place, with the words on it and around it.

    ``label`` has the words of an anchor, and is ``None`` for a URL in the text. ``before`` has the
    text since the link before it, ``after`` the rest of its sentence. ``is_shown`` is true for a
    URL that an anchor shows, and which is opened only if it is the target of the anchor too.
    """

    url: str
    label: str | None
    before: str
    after: str
    is_button: bool = False
    has_text: bool = True
    is_shown: bool = False

    @property
    def words(self) -> str:
        """The words that describe the link to a reader."""
        return self.before if self.label is None else self.label


class Links(Struct, frozen=True):
    """All places of web links, and the linked mail addresses and apps."""

    web: list[Link]
    mail_addresses: list[str]
    apps: list[str]


def collect_links(text: str, page: VisibleText) -> Links:
    """Collect all places of all links.

    Links of the text come before links of the HTML. A relative link without a ``<base>`` leads
    nowhere.
    """
    links = _links_of_text(text)
    mail_addresses: list[str] = []
    apps: list[str] = find_app_urls(text)
    spans = [(anchor.position, anchor.end) for anchor in page.anchors]
    for anchor, (before, after) in zip(page.anchors, _surroundings(page.text, spans), strict=True):
        href = anchor.url.strip().translate(_NO_WHITE_SPACE).replace(" ", "%20")
        if is_web_url(href):
            label = anchor.title if not anchor.text or is_web_url(anchor.text) else anchor.text
            links.append(
                Link(href, label, before, after, anchor.is_button, has_text=anchor.has_text)
            )
        elif href[:7].lower() == "mailto:":
            mail_addresses.append(href[7:])
        elif is_app_url(href):
            apps.append(href)
    links += _links_of_text(page.text, spans)
    apps += find_app_urls(page.text)
    return Links(links, list(dict.fromkeys(mail_addresses)), list(dict.fromkeys(apps)))


def list_urls(links: list[Link]) -> tuple[str, ...]:
    """List the distinct URLs in order, up to the maximum."""
    return tuple(dict.fromkeys(link.url for link in links))[:MAX_LINKS]


def _links_of_text(text: str, anchors: Sequence[tuple[int, int]] = ()) -> list[Link]:
    text = join_wrapped_urls(text[:MAX_LINK_TEXT])
    found = find_urls(text)
    spans = [(position, position + len(url)) for position, url in found]
    return [
        Link(url, None, before, after, is_shown=_is_inside(start, anchors))
        for (start, url), (before, after) in zip(found, _surroundings(text, spans), strict=True)
    ]


def _is_inside(position: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a position is inside one of the spans, which are in order."""
    number = bisect_right(spans, (position, MAX_LINK_TEXT)) - 1
    return number >= 0 and position < spans[number][1]


def _surroundings(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[str, str]]:
    """Yield the text before each link and the rest of its sentence, up to its neighbours.

    The rest of the sentence of one link is not the text before the next.
    """
    previous = 0
    for (start, end), (following, _) in pairwise((*spans, (len(text), 0))):
        before = text[max(previous, start - _CONTEXT) : start]
        rest = _rest_of_sentence(text[end : min(following, end + _CONTEXT)])
        yield before, rest
        previous = end + len(rest) if end + len(rest) < following else end


def _rest_of_sentence(text: str) -> str:
    """Return the beginning of a text that continues the sentence of a link before it."""
    if text.lstrip(_AFTER_URL)[:1].isupper():
        return ""
    end = _SENTENCE_END.search(text)
    return text[: end.start()] if end else text


POINTS = {
    # Only the order of the values matters. An action named on the link beats everything in a
    # URL, and words of every footer lose to anything else.
    "action": 6,
    "action around": 4,
    "minor": 3,
    "generic": 3,
    "denial": -5,
    "reject": -12,
    "network": -12,
    "action in the URL": 3,
    "reject in the URL": -12,
    "unsubscribe": -12,
    "shown": -12,
    "token in the URL": 2,
    "button": 2,
    "image only": -3,
    "front page": -4,
    "only": 3,
}
ACCEPTED_FROM = 3  # a label with something to do, or a URL with an account action

_REASONS = {
    "action": "is labelled with an account action",
    "action around": "is in a sentence about an account action",
    "minor": "is labelled with something to do",
    "generic": "is labelled as the link to click",
    "denial": "is for recipients who did not ask for the mail",
    "network": "is labelled with the name of a network",
    "reject": "is labelled as a part of the footer or header",
    "action in the URL": "has an account action in its URL",
    "reject in the URL": "has the URL of a footer, a network or a file",
    "unsubscribe": "is an address of List-Unsubscribe",
    "shown": "is the text of a link",
    "token in the URL": "has a token in its URL",
    "button": "is drawn as a button",
    "image only": "contains only an image",
    "front page": "leads to a front page",
    "only": "is the only link that is not a part of the frame",
}
_REJECTIONS = frozenset(
    ("reject", "network", "reject in the URL", "unsubscribe", "shown", "front page")
)
"""Findings about links of the frame, which are not the best link even if they are alone."""

# Only the first of these kinds counts for a link.
_PRECEDENCE = ("reject", "denial", "action", "minor", "generic", "network")
_MAX_WORDS = 200
_PARTS = re.compile(r"https?://(?>(?:[^/?#@]*+@)?)([^/?#:]++)[^/?#]*+([^?#]*+)(.*)", re.I | re.S)
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


def score_links(links: Sequence[Link], leaving: Container[str] = ()) -> list[Candidate]:
    """Score each distinct URL by its best place; best first, then in order.

    If no link is accepted by its score, and only one is not a part of the frame (footer, header,
    front page), that one is accepted.

    :param leaving: the addresses of List-Unsubscribe.
    """
    findings: dict[str, list[str]] = {}
    for link in links[:MAX_LINKS]:
        found = [*_classify_words(link), *_classify_url(link.url)]
        found += ["unsubscribe"] * (link.url in leaving) + ["shown"] * link.is_shown
        found += ["button"] * link.is_button + ["image only"] * (not link.has_text)
        if link.url not in findings or _score(found) > _score(findings[link.url]):
            findings[link.url] = found
    if all(_score(found) < ACCEPTED_FROM for found in findings.values()):
        remaining = [found for found in findings.values() if _REJECTIONS.isdisjoint(found)]
        purposeful = [found for found in remaining if "denial" not in found] or remaining
        if len(purposeful) == 1:
            purposeful[0].append("only")
    candidates = [
        Candidate(
            kind=CandidateKind.LINK,
            value=url,
            score=_score(found),
            is_accepted="only" in found or _score(found) >= ACCEPTED_FROM,
            reasons=tuple(f"{POINTS[finding]:+d} {_REASONS[finding]}" for finding in found),
        )
        for url, found in findings.items()
    ]
    candidates.sort(key=lambda candidate: (not candidate.is_accepted, -candidate.score))
    return candidates[:MAX_KEPT_CANDIDATES]


def _score(findings: Sequence[str]) -> int:
    return sum(POINTS[finding] for finding in findings)


def _classify_words(link: Link) -> list[str]:
    """Return what the label says, or the sentence around a URL or around a label like "here"."""
    if link.label is None:
        before = [kind for kind in _find_kinds(link.before) if kind != "generic"][-1:]
        return before if before not in ([], ["minor"]) else _classify_rest(link) or before
    kinds = set(_find_kinds(link.label[:_MAX_WORDS]))
    label = [kind for kind in _PRECEDENCE if kind in kinds][:1]
    if label not in ([], ["generic"]):
        return label
    sentence = _SENTENCE_END.split(link.before.rstrip(" \t\n.!?"))[-1]
    around = _without_minor(_find_kinds(sentence))[-1:] or _classify_rest(link)
    return label + ["action around" if kind == "action" else kind for kind in around]


def _classify_rest(link: Link) -> list[str]:
    """Return what the sentence says after the link: "... to activate your account"."""
    return _without_minor(_find_kinds(link.after))[:1]


def _without_minor(kinds: Sequence[str]) -> list[str]:
    return [kind for kind in kinds if kind not in ("minor", "generic")]


def _find_kinds(words: str) -> list[str]:
    return [found.kind for found in find_phrases(fold(make_plain(words)), _phrases())]


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
