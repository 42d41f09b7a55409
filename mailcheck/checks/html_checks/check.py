"""All checks of a message: client support, accessibility and links.

Runs in a child process, because only this process loads the data about clients.
"""

from collections.abc import Mapping, Sequence

from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.content.header.fields import unsubscribe_addresses
from mailcheck.checks.content.html_tree import read_tree
from mailcheck.checks.content.limits import MAX_HTML, MAX_LINKS
from mailcheck.checks.content.links import Link, collect_links
from mailcheck.checks.content.visible_text import render_visible_text
from mailcheck.checks.html_checks.accessibility import judge_accessibility
from mailcheck.checks.html_checks.compatibility import judge_compatibility
from mailcheck.checks.html_checks.places import Lines
from mailcheck.checks.mail_checks import MailChecks, MailLink
from mailcheck.checks.quality.link_reading import offers_to_unsubscribe
from mailcheck.checks.quality.unsubscribe import read_offer

MAX_WORDS = 80
"""Maximum number of characters of a link text."""


def check_html(
    html: str,
    text: str,
    best_link: str | None,
    header_list: Sequence[tuple[str, str]],
    media_types: Mapping[str, str],
) -> MailChecks:
    """Check the bodies of a mail; takes time linear in their length.

    :param best_link: the link that a person would click.
    :param header_list: the decoded header fields, which name the addresses to unsubscribe.
    :param media_types: media types of the parts that the HTML may show, by the key of their
        Content-ID.
    """
    markup = html[:MAX_HTML]
    tree = read_tree(markup)
    links = collect_links(text, render_visible_text(tree)).web
    has_html = bool(markup.strip())
    lines = Lines(markup)
    return MailChecks(
        judge_compatibility(markup, tree, lines, media_types) if has_html else None,
        judge_accessibility(tree, lines) if has_html else None,
        _list_links(links, best_link, unsubscribe_addresses(header_list)),
        is_cut=len(html) > MAX_HTML,
        one_click=read_offer(header_list),
    )


def check_raw_mail(raw_message: bytes) -> MailChecks:
    """Check a mail given as bytes."""
    content = derive_content(raw_message)
    media_types = content.media_types
    header_list = content.header_list
    return check_html(content.html, content.text, content.best_link, header_list, media_types)


def _list_links(
    links: Sequence[Link], best_link: str | None, leaving: Sequence[str]
) -> tuple[MailLink, ...]:
    """List each link once, with its most descriptive text."""
    words: dict[str, str] = {}
    unsubscribing = set(leaving)
    for link in links:
        said = " ".join((link.label or "").split())[:MAX_WORDS]
        words[link.url] = words.get(link.url) or said
        if offers_to_unsubscribe(link):
            unsubscribing.add(link.url)
    return tuple(
        MailLink(url, said, is_best=url == best_link, is_unsubscribe=url in unsubscribing)
        for url, said in list(words.items())[:MAX_LINKS]
    )
