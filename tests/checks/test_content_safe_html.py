"""Tests for the HTML sanitizer: kept content, removed content, and cost."""

import re
from html.parser import HTMLParser
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.content.html_tree import read_tree
from mailcheck.checks.content.limits import MAX_HTML
from mailcheck.checks.content.safe_html import (
    ATTRIBUTES,
    MAX_DEPTH,
    MAX_ELEMENTS,
    SHOWN,
    make_safe,
    sanitise_html,
    write_bounded,
)
from tests.linear import assert_linear
from tests.table import rows

PIXEL = "data:image/png;base64,iVBORw0KGgo="


class Page(HTMLParser):
    """Collects the tags of a page and all its parts: tags, ends of elements, text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.parts: list[object] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record a tag."""
        self.tags.append((tag, dict(attrs)))
        self.parts.append(self.tags[-1])

    def handle_endtag(self, tag: str) -> None:
        """Record the end of an element."""
        self.parts.append(tag)

    def handle_data(self, data: str) -> None:
        """Record text."""
        self.parts.append([data])


def body(markup: str) -> str:
    """Return the safe body of some HTML."""
    return sanitise_html(markup).body


def test_common_layout_stays() -> None:
    """Common layout of mails stays unchanged."""
    markup = (
        '<table width="600" cellpadding="0" align="center"><tbody><tr><td bgcolor="#eee" '
        "style=\"padding: 4px 8px; font-family: 'Helvetica Neue',Arial\">"
        "<h1>Hello</h1><p>You &amp; me<br>here</p></td></tr></tbody></table>"
    )
    assert body(markup) == markup


def test_links_open_a_new_tab_without_a_referrer() -> None:
    """A link opens a new tab without opener and referrer."""
    assert body('<a href="https://e.example/?a=1&amp;b=2" target="_top" rel="opener">x</a>') == (
        '<a href="https://e.example/?a=1&amp;b=2" target="_blank" '
        'rel="noopener noreferrer nofollow">x</a>'
    )
    area = body('<area href="https://e.example/" rel="opener">')
    assert ' rel="noopener noreferrer nofollow"' in area
    assert ' target="_blank"' in area


@rows(
    "javascript:alert(1)",
    "jav&#x09;ascript:alert(1)",
    "&#1;javascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "blob:https://e.example/x",
    "file:///etc/passwd",
    "cid:part",
    "//e.example/",
    "/inbox",
    "?x",
    "#",
    "#top",
    "#a b",
    "#a/b",
    "x#top",
    "",
)
def test_links_lead_to_known_schemes_only(href: str) -> None:
    """A link that is not absolute http, https, mailto or tel loses its address."""
    assert "href" not in body(f'<a href="{href}">x</a>')


def test_remote_images_are_off_until_asked_for() -> None:
    """Remote images are counted and removed, unless they are allowed."""
    markup = (
        '<img src="https://t.example/1.gif"><table background="http://t.example/2.gif"></table>'
        '<p style="background: url(https://t.example/3.gif) red">x</p>'
        "<style>p { background-image: url('https://t.example/4.gif') }</style>"
    )
    off = sanitise_html(markup)
    assert "t.example" not in off.body + off.style_sheet
    assert off.remote_count == 4
    on = sanitise_html(markup, allows_remote=True)
    assert on.remote_count == 4
    assert (on.body + on.style_sheet).count("t.example") == 4


def test_images_of_the_mail_itself_are_shown() -> None:
    """A cid: link shows an image of the mail itself, or no image."""
    safe = sanitise_html('<img src="cid:a%40b"><img src="CID:other">', {"a@b": PIXEL})
    assert safe.body == f'<img src="{PIXEL}"><img>'
    assert safe.content_ids == ("a@b", "other")


@rows("image/svg+xml", "text/html", "image/png,x", "image/x-icon")
def test_data_images_are_pixels(kind: str) -> None:
    """A data: URL is allowed only for base64 images without scripts, so not for SVG."""
    assert body(f'<img src="data:{kind};base64,AAAA">') == "<img>"
    assert body(f'<img src="{PIXEL}">') == f'<img src="{PIXEL}">'


@rows(
    "position: fixed",
    "behavior: url(x.htc)",
    "-moz-binding: url(x)",
    "content: 'x'",
    "filter: blur(1px)",
    "width: expression(alert(1))",
    "color: \\72 ed",
    "background: image-set('https://t.example/x' 1x)",
    "background: url(https://t.example/x) url(javascript:x)",
    "list-style: url(https://t.example/x)",
    "color: red</style><script>",
    "width: calc((1px)",
    "background: u/**/rl(https://t.example/x)",
    "--x: url(https://t.example/x); color: var(--x)",
)
def test_unsafe_declarations_go(style: str) -> None:
    """A declaration that loads, runs or leaves its place is dropped; the next one stays."""
    safe = sanitise_html(f'<p style="{style}; margin: 1px">x</p>')
    assert safe.body.replace("background: none none; ", "") == '<p style="margin: 1px">x</p>'
    assert safe.style_sheet == ""


def test_style_sheets_keep_rules_and_media() -> None:
    """Rules stay, also for small screens; imports, fonts and other at-rules are removed."""
    sheet = (
        "@import 'https://t.example/x.css'; @charset 'x'; @font-face { src: url(x) }"
        "a[x-apple=true] { color: red } .a > b:hover, #c { margin: 0 }"
        "@media only screen and (max-width: 600px) { .a { width: 100% !important } }"
        "@supports (color: red) { i { color: red } @media screen { u { color: red } } }"
        "@keyframes x { from { color: red } } x:has(y) { color: red } s { color: blue }"
    )
    assert sanitise_html(f"<style>{sheet}</style>").style_sheet.splitlines() == [
        "a[x-apple=true] { color: red }",
        ".a > b:hover, #c { margin: 0 }",
        "@media only screen and (max-width: 600px) {",
        ".a { width: 100% !important }",
        "}",
        "s { color: blue }",
    ]


def test_style_sheets_of_comments_and_printers_are_none() -> None:
    """Sheets that only Outlook or a printer applies are not used."""
    markup = (
        "<!--[if mso]><style>a { color: red }</style><![endif]-->"
        '<style media="print">b { color: red }</style><style><!-- i { color: red } --></style>'
    )
    assert sanitise_html(markup).style_sheet == "i { color: red }"


def test_a_place_of_the_mail_is_reached_inside_the_mail() -> None:
    """Links to anchors of the mail open in the same tab, and only these."""
    shown = body(
        '<a href="#two" target="_blank">2</a><a href=" #n.1 " target="x">n</a>'
        '<p id="two">Two</p><h2 id="n.1">N</h2><map><area href="#two"></map>'
    )
    assert re.findall(r'<a href="#two"|<area href="#two"|<a href="#n.1"', shown) == [
        '<a href="#two"',
        '<a href="#n.1"',
        '<area href="#two"',
    ]
    assert "target" not in shown
    assert 'id="two"' in shown
    assert 'id="n.1"' in shown


QUERIES = {
    "@media(max-width:600px)": "@media (max-width:600px) {",
    "@media (max-width: 600px)": "@media (max-width: 600px) {",
    "@MEDIA only screen and (max-width:600px)": "@media only screen and (max-width:600px) {",
    "@media(width<=600px)": "@media (width <= 600px) {",
    "@media (400px<=width<700px)": "@media (400px <= width < 700px) {",
    "@media (width>40em) and (orientation:landscape)": (
        "@media (width > 40em) and (orientation:landscape) {"
    ),
    "@media (aspect-ratio>=16/9), (min-resolution:2dppx)": (
        "@media (aspect-ratio >= 16/9), (min-resolution:2dppx) {"
    ),
    "@media (-webkit-min-device-pixel-ratio:1.5)": (
        "@media (-webkit-min-device-pixel-ratio:1.5) {"
    ),
    "@media (prefers-color-scheme:dark)": "@media (prefers-color-scheme:dark) {",
}


@rows(*QUERIES)
def test_media_queries_stay(query: str) -> None:
    """Media queries without blanks or with comparisons stay around their rules."""
    markup = f"<style>{query}{{td{{display:block}}}}p{{color:red}}</style>"
    assert sanitise_html(markup).style_sheet.split("\n") == [
        QUERIES[query],
        "td { display: block }",
        "}",
        "p { color: red }",
    ]


@rows(
    "@media (width</style><script>alert(1)</script>)",
    "@media (width<!--)",
    "@media (a<b)</style",
    "@media (a <\\2f style)",
    "@media (max-width:600px",
    "@media max-width:600px)",
    "@media 'x'",
    "@mediascreen",
    "@import url(x)",
    "@media (width:url(https://e.example))",
)
def test_a_media_query_opens_no_tag(query: str) -> None:
    """An invalid query is dropped with its rules, and a sheet never contains a tag."""
    safe = sanitise_html(f"<style>{query}{{td{{color:red}}}}</style>", allows_remote=True)
    assert not re.search("<[^ =]|<$|https", safe.style_sheet)
    assert "script" not in safe.body + safe.style_sheet


def test_the_media_of_a_sheet_go_round_it() -> None:
    """A sheet for narrow screens keeps its query, and one for printers is dropped."""
    markup = (
        '<style media="screen and (max-width:600px)">td{color:red} @media (width>9px)'
        '{p{color:red}}</style><style media="all">b{color:red}</style>'
        '<style media="print">i{color:red}</style><style media="(x) {} *">u{color:red}</style>'
    )
    assert sanitise_html(markup).style_sheet.split("\n") == [
        "@media screen and (max-width:600px) {",
        "td { color: red }",
        "@media (width > 9px) {",
        "p { color: red }",
        "}",
        "}",
        "b { color: red }",
    ]


@rows(*product(["a%40b", "a@b", "A@B", "%61@b"], ["a@b", "a%40b", "A@b"]))
def test_a_picture_is_found_by_its_id_however_it_is_encoded(
    reference: str, content_id: str
) -> None:
    """Either side of a cid: URL may be percent-encoded, in attributes and in styles."""
    html = (
        f'<img src="cid:{reference}"><p style="background-image:url(\'cid:{reference}\')">x</p>'
        f'<table background="cid:{reference}"></table>'
        f"<style>td{{background:#eee url(cid:{reference}) no-repeat}}</style>"
    )
    raw = (
        "Content-Type: multipart/related; boundary=r\r\n\r\n--r\r\nContent-Type: text/html\r\n\r\n"
        f"{html}\r\n--r\r\nContent-Type: image/gif; name=a.gif\r\nContent-ID: <{content_id}>\r\n"
        f"Content-Transfer-Encoding: base64\r\n\r\n{PIXEL.partition(',')[2]}\r\n--r--\r\n"
    ).encode()
    safe = make_safe(html, raw, allows_remote=False)
    assert safe.body.count(PIXEL) == 3
    assert f'td {{ background: #eee url("{PIXEL}") no-repeat }}' in safe.style_sheet
    assert safe.remote_count == 0
    assert derive_content(raw).files == []


def test_pictures_are_not_multiplied_without_end() -> None:
    """A picture that is used thousands of times is shown up to the maximum size."""
    large = f"{PIXEL}{'A' * 4_000_000}"
    markup = '<img src="cid:a">' * 100 + '<p style="background:url(cid:a)">'
    safe = sanitise_html(markup, {"a": large})
    assert len(safe.body) < 20_000_000
    assert safe.body.count("src=") == 4


def test_the_page_of_a_mail_keeps_its_colours() -> None:
    """Colours and style of ``<body>`` move to an element of the page."""
    assert body('<body bgcolor="#eee" text="red" style="margin: 0">x') == (
        '<div bgcolor="#eee" style="background-color: #eee; color: red; margin: 0" '
        'class="mail-page">x</div>'
    )


def test_sizes_are_bounded() -> None:
    """Numbers that make a browser lay out millions of cells are dropped."""
    assert body('<table><tr><td colspan="1001" rowspan="65534" width="9">x') == (
        '<table><tbody><tr><td width="9">x</td></tr></tbody></table>'
    )


@settings(database=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [
                    *("<p>", "</p>", "<table>", "<tr>", "<td>", "</table>", "<svg>", "<math>"),
                    *("<style>", "</style>", "<title>", "<!--", "-->", "<a href=x ", ">", '"', "'"),
                    *("<noscript>", "<script>", "</script>", "<img src=x onerror=y>", "<mtext>"),
                    *("<template>", "<b style='color:red", "<mglyph>", "<select>", "&lt;script>"),
                    *("<form>", "<iframe srcdoc=x>", "<base href=//x>", "<link>", "<meta>"),
                ]
            ),
            st.text(max_size=5),
        ),
        max_size=25,
    ).map("".join)
)
def test_only_what_is_allowed_comes_out(markup: str) -> None:
    """The output has only allowed elements and attributes."""
    safe = sanitise_html(markup, allows_remote=True)
    assert "<" not in safe.style_sheet
    for name, attributes in Page(safe.body).tags:
        assert name in SHOWN
        allowed = {*ATTRIBUTES["*"], *ATTRIBUTES.get(name, ()), "target", "rel"}
        assert set(attributes) <= allowed
    again = sanitise_html(safe.body, allows_remote=True).body
    # nh3 writes the attributes that it sets in any order.
    assert Page(again).parts == Page(safe.body).parts


@rows(
    ("<p>a<p>b<div>c", "<p>a</p><p>b</p><div>c</div>"),
    ("<ul><li>a<li>b<ul><li>c", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
    ("<dl><dt>a<dd>b<dt>c", "<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>"),
    (
        "<table><tr><td>1<td>2<tr><th>3",
        "<table><tr><td>1</td><td>2</td></tr><tr><th>3</th></tr></table>",
    ),
    (
        "<table><tbody><tr><td><p>1<tbody>",
        "<table><tbody><tr><td><p>1</p></td></tr></tbody><tbody></tbody></table>",
    ),
    (
        "<table><td>1<table><td>2</table>3",
        "<table><td>1<table><td>2</td></table>3</td></table>",
    ),
    ("<a href=x>a<b>b<a href=y>c", '<a href="x">a<b>b</b></a><b><a href="y">c</a></b>'),
    ("<b><i>a</b>b</i>c", "<b><i>a</i></b><i>b</i>c"),
    ("<td><p>a</td></p></table>b", "<td><p>a</p></td><p></p>b"),
    ("<table><tr><td><p>a</table>b", "<table><tr><td><p>a</p></td></tr></table>b"),
    ("<svg><p>a</svg>b<svg><svg></svg>c</svg>d", "<p>abd</p>"),
    ("<noscript>a</noscript><object>b</object>", "ab"),
    (
        '<p a="&lt;&quot;&gt;" b=\'"\' c>&lt;</p>',
        '<p a="&lt;&quot;&gt;" b="&quot;" c="">&lt;</p>',
    ),
)
def test_markup_is_balanced(markup: str, written: str) -> None:
    """Unclosed elements are closed where a browser closes them."""
    assert write_bounded(read_tree(markup)) == (written, None)


def test_depth_and_number_are_capped() -> None:
    """Elements that are too deep lose their tags; too many end the page, with their text."""
    deep, _ = write_bounded(read_tree("<div>" * 1000 + "x"))
    assert deep == "<div>" * MAX_DEPTH + "x" + "</div>" * MAX_DEPTH
    many, end = write_bounded(read_tree("<p>x</p>" * (MAX_ELEMENTS + 5) + "y"))
    assert many == "<p>x</p>" * MAX_ELEMENTS
    assert end == len(many)
    table = "<table><tr>" + "<td>x</td>" * MAX_ELEMENTS
    cut, _ = write_bounded(read_tree(table))
    assert cut.endswith("<td>x</td></tr></table>")
    assert cut.count("x") == cut.count("<td>")


def test_long_html_is_cut() -> None:
    """Very long HTML is cut and marked as such."""
    assert sanitise_html("x" * (MAX_HTML + 1)).end == MAX_HTML
    assert sanitise_html("x" * MAX_HTML).end is None
    assert sanitise_html("<p>x</p>" * (MAX_ELEMENTS + 1)).end == len("<p>x</p>" * MAX_ELEMENTS)
    assert sanitise_html("<p>x</p>" * MAX_ELEMENTS).end is None


COSTLY = {
    "nested blocks": "<div>",
    "open paragraphs": "<p><b id=1>",
    "formatting": "<b><i><font color=red></b>",
    "anchors in cells": "<a><table><td>",
    "lists": "<ul><li><a>",
    "comments": "<!--",
    "attributes": "<a x",
    "quotes": "<a title='\"",
    "style sheets": "<style>a{b:c}",
    "open rules": "<style>{(",
    "inline styles": "<b style='color:red;background:url(https://e.x/)'>",
    "raw text": "<title><style>",
    "foreign": "<svg><math><mtext>",
    "brackets": "<",
}


@pytest.mark.attack
@pytest.mark.untraced
@rows(*COSTLY.values())
def test_hostile_html_is_sanitized_in_linear_time(piece: str) -> None:
    """Any HTML is sanitized in linear time."""
    assert_linear(sanitise_html, piece, "", 1_024)
