"""The links of a mail: what was written in its text, and what its HTML shows."""

from dataclasses import dataclass

from mailcheck.checks.content.limits import MAX_LINK_TEXT, MAX_LINKS
from mailcheck.checks.content.urls import find_urls, is_web_url, join_wrapped_urls
from mailcheck.checks.content.visible_text import Anchor, VisibleText

_CONTEXT = 120  # characters of text before a bare URL that may say what it is for
_NO_WHITE_SPACE = str.maketrans("", "", "\t\r\n")


@dataclass(frozen=True, slots=True)
class Link:
    """A URL with one place where it stands: the words on it, or the words before it.

    ``is_labelled`` is true for the words of an anchor, false for the text
    before a bare URL.
    """

    url: str
    words: str
    is_labelled: bool
    is_button: bool
    has_text: bool


def collect_links(text: str, page: VisibleText) -> tuple[list[Link], list[str]]:
    """Collect every place of every link, and the mail addresses linked to.

    Links of the text come first, then those of the HTML. A ``<base>`` is
    ignored: web mail drops it, so a relative link leads nowhere.
    """
    links = _links_of_text(text)
    mail_addresses: list[str] = []
    for anchor in page.anchors:
        href = anchor.href.strip().translate(_NO_WHITE_SPACE)
        if is_web_url(href):
            links.append(_link_of_anchor(href, anchor))
        elif href[:7].lower() == "mailto:":
            mail_addresses.append(href[7:])
    links += _links_of_text(page.text)
    return links, list(dict.fromkeys(mail_addresses))


def list_urls(links: list[Link]) -> tuple[str, ...]:
    """List the distinct URLs in order, within the cap."""
    return tuple(dict.fromkeys(link.url for link in links))[:MAX_LINKS]


def _links_of_text(text: str) -> list[Link]:
    links = []
    text = join_wrapped_urls(text[:MAX_LINK_TEXT])
    previous = 0
    for position, url in find_urls(text):
        before = text[max(previous, position - _CONTEXT) : position]
        previous = position + len(url)
        links.append(Link(url, before, is_labelled=False, is_button=False, has_text=True))
    return links


def _link_of_anchor(href: str, anchor: Anchor) -> Link:
    words = anchor.text
    if not words or is_web_url(words):
        words = anchor.title
    return Link(
        url=href,
        words=words,
        is_labelled=True,
        is_button=anchor.is_button,
        has_text=anchor.has_text,
    )
