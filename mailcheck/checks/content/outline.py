"""The links and pictures of a mail in their order, for clients that list them."""

from msgspec import Struct

from mailcheck.checks.content.html_tree import Element, read_tree
from mailcheck.checks.content.limits import MAX_LINK_TEXT, MAX_LINKS
from mailcheck.checks.content.links import find_urls, join_wrapped_urls
from mailcheck.checks.content.visible_text import Anchor, render_visible_text


class Picture(Struct, frozen=True):
    """The source and the ``alt`` text of a picture."""

    source: str
    alternative: str


class Outline(Struct, frozen=True):
    """The visible links and pictures of HTML, and the URLs of a text: `MAX_LINKS` of each."""

    anchors: tuple[Anchor, ...] = ()
    pictures: tuple[Picture, ...] = ()
    urls: tuple[str, ...] = ()


def outline_mail(html: str, text: str) -> Outline:
    """Return the links and pictures of a mail, in their order and with repetitions."""
    tree = read_tree(html)
    pictures = [
        Picture(node.attributes.get("src", ""), node.attributes.get("alt", ""))
        for node in tree.nodes
        if isinstance(node, Element) and node.name == "img"
    ]
    anchors = render_visible_text(tree).anchors
    urls = [url for _, url in find_urls(join_wrapped_urls(text[:MAX_LINK_TEXT]))]
    return Outline(anchors[:MAX_LINKS], tuple(pictures[:MAX_LINKS]), tuple(urls[:MAX_LINKS]))
