"""Tests for the HTML tree: ends of elements, formatting, and linear time."""

import itertools
from html.parser import HTMLParser

import nh3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailcheck.checks.content.html_tree import (
    MAX_REOPENED,
    VOID,
    Element,
    End,
    HtmlTree,
    Words,
    read_tree,
)
from mailcheck.checks.content.limits import MAX_HTML
from mailcheck.checks.content.visible_text import render_visible_text
from tests.linear import count_steps
from tests.table import rows

BLOCKS = ("p", "div", "ul", "li", "dl", "dt", "dd", "h1", "h2", "center", "blockquote", "button")
FORMATTING = ("b", "i", "a", "font", "em")


def places_of_words(tree: HtmlTree) -> dict[str, frozenset[str]]:
    """Return for each letter the ids of its elements."""
    found: dict[str, frozenset[str]] = {}
    stack: list[Element] = []
    for node in tree.nodes:
        if isinstance(node, Words):
            ids = frozenset(one.attributes["id"] for one in stack if "id" in one.attributes)
            found.update(dict.fromkeys(node.text, ids))
        elif isinstance(node, End):
            assert stack.pop() is node.element
        elif node.name not in VOID:
            stack.append(node)
    assert not stack
    return found


class Balanced(HTMLParser):
    """Reads the result of nh3, the parser of the sanitizer."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.stack: list[str | None] = []
        self.found: dict[str, frozenset[str]] = {}
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        self.stack.append(dict(attrs).get("id"))

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        """Record the elements of letters."""
        ids = frozenset(one for one in self.stack if one)
        self.found.update(dict.fromkeys(data, ids))


@st.composite
def pages(draw: st.DrawFn) -> str:
    """Return start tags, end tags and letters in any order, each with its own id or letter."""
    ids, letters = itertools.count(), iter("abcdefghijklmnopqrstuvwxyz")
    names = st.sampled_from(BLOCKS + FORMATTING)
    pieces = draw(st.lists(st.tuples(st.sampled_from("<</x"), names), max_size=12))
    page = ""
    for kind, name in pieces:
        if kind == "x":
            page += next(letters)
        else:
            page += f"<{name} id=i{next(ids)}>" if kind == "<" else f"</{name}>"
    return page


@settings(database=None)
@given(pages())
def test_words_stand_where_a_browser_puts_them(page: str) -> None:
    """Overlapping blocks and formatting give the same tree as the standard's tree builder."""
    standard = nh3.clean(page, tags={*BLOCKS, *FORMATTING}, attributes={"*": {"id"}}, link_rel=None)
    assert places_of_words(read_tree(page)) == Balanced(standard).found


HOSTILE = {
    "nested blocks": "<div>",
    "crossed ends": "<div></b></p></span></td></li></h1>",
    "nested cells": "<table><tr><td>",
    "open paragraphs": "<p><b id={}>x",
    "formatting around blocks": "<b id={}><div>",
    "formatting in a row": "<b id={}><i id={}><font id={}></b>",
    "anchors": "<a href={}>",
    "items behind walls": "<li></li><div>",
    "a paragraph far above": "<span></span></div><i><div>",
    "attributes": "<a x{}",
    "one tag of attributes": "x{}=1 ",
    "styles": "<i style='display:none;x:{}'>x",
    "properties": "<i style='" + "font:" * 50 + "'>",
    "foreign": "<svg><math><mtext><p>",
    "heads": "<html><head><title></title><body>",
    "brackets": "<",
    "comments": "<!--",
    "raw text": "<title><style>",
    "style sheets": "<style>a{{b:c;color:x}}</style><p class=a>",
    "numbers": "&#1",
    "ends": "</div></p>",
}

AFORE = {
    "one tag of attributes": "<a ",
    "items behind walls": "<li><h1>",
    "a paragraph far above": "<p><td>",
}


@rows(*HOSTILE)
def test_reading_takes_steps_in_proportion_to_the_page(name: str) -> None:
    """Twice the page takes about twice the steps, and nodes are limited."""
    numbers = itertools.count()

    def page(count: int) -> str:
        pieces = (HOSTILE[name].format(*[next(numbers)] * 3) for _ in range(count))
        return AFORE.get(name, "") + "".join(pieces)

    def read(markup: str) -> int:
        return count_steps(lambda: render_visible_text(read_tree(markup)))

    steps, markup = read(page(100)), page(200)
    more_steps = read(markup)
    assert more_steps < 2.3 * steps + 500
    assert more_steps < 150 * len(markup) + 500
    assert len(read_tree(markup).nodes) <= 2 * len(markup) + 2 * MAX_REOPENED


@pytest.mark.untraced
@rows(
    ("<div>" * 20_000 + "x", 20_000),
    ("<a " + "".join(f"a{number} " for number in range(20_000)) + ">x", 0),
    ("<p><b id={}>".format("x" * 20) * 5_000 + "x", 0),
    ("<" * (MAX_HTML + 1), 0),
)
def test_the_largest_pages_are_read(markup: str, elements: int) -> None:
    """20,000 elements, and more than the maximum of HTML, give a limited tree."""
    tree = read_tree(markup)
    found = sum(isinstance(node, Element) for node in tree.nodes)
    assert found >= elements
    assert len(tree.nodes) <= 2 * MAX_HTML + 2 * MAX_REOPENED


def test_a_number_of_thousands_of_digits_is_a_character() -> None:
    """A character number with thousands of digits is replaced as in a browser."""
    assert (
        render_visible_text(read_tree(f"a&#{'1' * 5000};b&#x{'1' * 9000};c")).text
        == "a\ufffdb\ufffdc"
    )


def test_a_head_ends_where_the_page_begins() -> None:
    """Without an end tag of the head, the page after it is still visible."""
    for page in (
        "<html><head><title>t</title><meta charset=utf-8><body>a",
        "<html><head><style>p{}</style><div>a</div>",
        "<head><link rel=x>a",
        "<html><body>a<head><title>t</title></head>",
    ):
        assert render_visible_text(read_tree(page)).text == "a"


def test_outlooks_second_button_does_not_hide_the_first() -> None:
    """``mso-hide`` on a link is ignored: only Outlook has another button."""
    page = render_visible_text(
        read_tree(
            "<!--[if mso]><v:roundrect href='x'>Verify</v:roundrect><![endif]-->"
            "<a href='https://a.example' style='background:#06c;mso-hide:all'>Verify</a>"
        )
    )
    assert [(anchor.href, anchor.text) for anchor in page.anchors] == [
        ("https://a.example", "Verify")
    ]


def test_an_image_in_small_text_is_seen() -> None:
    """Sizes and colours of words do not hide linked images."""
    page = render_visible_text(
        read_tree("<p style='font-size:0'><a href=x><img alt=Verify></a><a href=y>z</a></p>")
    )
    assert [(anchor.href, anchor.text) for anchor in page.anchors] == [("x", "Verify")]
