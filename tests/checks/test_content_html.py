"""Tests for the visible text of HTML."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.content.html_tokens import EndTag, StartTag, StyleSheet, tokenize_html
from mailcheck.checks.content.html_tree import read_tree
from mailcheck.checks.content.visible_text import render_visible_text
from tests.table import rows


@rows(
    ("a<br>b", "a\nb"),
    ("<p>a</p><p>b</p>", "a\nb"),
    ("<div>a <b>b</b>c</div>d", "a bc\nd"),
    ("  a \n\n b\t c ", "a b c"),
    ("<pre>a\n b</pre>", "a\nb"),
    ("<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "1\t2\n3"),
    ("<tr><td>1<td>2<tr><td>3", "1\t2\n3"),
    ("<ul><li>a<li>b</ul>", "a\nb"),
    ("<span>1</span><span>2</span>", "12"),
    ("<span>1</span> <span>2</span>", "1 2"),
    ("&lt;b&gt; &amp;amp; &eacute; &#x31;&#50; &nbsp;x", "<b> &amp; é 12 x"),
    ("a < b <3 </> <! x> <?y?> c", "a < b <3 c"),
    ("<!-- a -->b<!--> c --><!---> d<!-- e --!>f", "b c --> df"),
    ("<!--[if mso]>a<![endif]-->b<!--[if !mso]><!-->c<!--<![endif]-->", "bc"),
    ("<![CDATA[ x ]]>y", "y"),
    ("<title>t</title><style>p{x:1}</style><script>s</script>b", "b"),
    ("<script>a</scriptx>b</script>c", "c"),
    ("<STYLE>a</Style >b", "b"),
    ("<noscript>a</noscript>b", "ab"),
    ("<p title='x > y' data-x=\"<b>\">a</p>", "a"),
    ("a<b x=1", "a"),
    ("a<!-- b", "a"),
    ("a<style>b", "a"),
    ("</div></p>a</table>b</p>c", "ab\nc"),
)
def test_the_visible_text_has_lines_cells_and_blanks(markup: str, text: str) -> None:
    """Blocks make lines, cells make tabs, and white space becomes one blank."""
    assert render_visible_text(read_tree(markup)).text == text


@rows(
    "hidden",
    'style="display:none"',
    "style='color:red; DISPLAY : NONE !important'",
    'style="visibility:hidden"',
    'style="opacity:0"',
    'style="font-size:0"',
    'style="font-size:0px;line-height:0"',
    'style="font-size:1px;color:#fff"',
    'style="max-height:0;overflow:hidden"',
    'style="height:0;overflow:hidden"',
    'style="mso-hide:all"',
)
def test_hidden_elements_are_left_out(attributes: str) -> None:
    """Preheader tricks hide an element with its content, and no text after it."""
    markup = f"a<div {attributes}>x<p>y<b>z</b></p></div>b"
    assert render_visible_text(read_tree(markup)).text == "a\nb"


@rows(
    'style="line-height:0"',
    'style="opacity:0.9"',
    'style="font-size:10px"',
    'style="min-height:0"',
    'style="height:0"',
    'style="background:none;border:0"',
    'style="max-width:600px"',
    'title="display:none"',
)
def test_what_only_looks_hidden_is_shown(attributes: str) -> None:
    """Properties that resemble hiding ones do not hide."""
    assert render_visible_text(read_tree(f"<div {attributes}>x</div>")).text == "x"


def test_an_inner_font_size_is_visible_again() -> None:
    """Content with a readable font size in a cell of size 0 is visible."""
    markup = (
        '<td style="font-size:0px">gap<div style="font-size:15px">shown <b>too</b></div>gap</td>'
        '<td style="font-size:0"><p style="font:bold 36px Arial">123456</p></td>'
    )
    assert render_visible_text(read_tree(markup)).text == "shown too\n123456"


def test_what_stands_out_is_marked() -> None:
    """Headings, bold, large and spaced text are prominent ranges."""
    page = render_visible_text(
        read_tree(
            "a <b>b</b><h1>c</h1><span style='font-size:32px'>d</span>"
            "<span style='font-size:14px'>e</span><i style='letter-spacing:4px'>f</i>"
            "<font size=7>g</font>"
        )
    )
    assert [page.text[start:end].strip() for start, end in page.prominent] == list("bcdfg")


def test_anchors_are_recorded_in_order_with_what_is_read_on_them() -> None:
    """An anchor has its text or the alternative texts of its images; buttons are recognized."""
    page = render_visible_text(
        read_tree(
            "<a href='1'>one <b>two</b></a><a href='2'><img alt='three'></a><a>no</a><a href='3' "
            "title='t'></a><a class='btn-primary' href='4'>x<a href='5' style='background:#06f;"
            "padding:12px'>y</a>"
        )
    )
    assert [(a.href, a.text, a.has_text, a.is_button) for a in page.anchors] == [
        ("1", "one two", True, False),
        ("2", "three", False, False),
        ("3", "", False, False),
        ("4", "x", True, True),
        ("5", "y", True, True),
    ]


def test_attribute_values_are_read_in_every_spelling() -> None:
    """Names are lower case, the first of two counts, and references end in a semicolon."""
    (tag, *_) = tokenize_html("<A HREF = \"a&amp;b&copy=1\" href=no x=1/2 y='3 > 4' z/>t")
    assert tag == StartTag("a", {"href": "a&b&copy=1", "x": "1/2", "y": "3 > 4", "z": ""}, True)


@given(st.text(alphabet="<>/!-=\"'& abp[]?\n;#1", max_size=60))
def test_any_markup_is_read_to_its_end(markup: str) -> None:
    """Tokens are text or tags, and no markup is an error."""
    for token in tokenize_html(markup):
        assert isinstance(token, str | StartTag | EndTag | StyleSheet)
    render_visible_text(read_tree(markup))


@given(st.text(st.characters(codec="utf-8", exclude_characters="<&"), max_size=80))
def test_text_without_markup_is_only_spaced_anew(text: str) -> None:
    """Plain text keeps its words."""
    assert render_visible_text(read_tree(text)).text.split() == text.split()
