"""The browser of the tests finds what breaks a rule of pages."""

from tests.table import rows
from tests.web.dashboard.browser import read_page


@rows(
    ('<p onClick="x">a</p>', "<p onclick>: inline"),
    ('<p style="color: red">a</p>', "<p style>: inline"),
    ("<script>x</script>", "<script>: inline"),
    ('<img src="a">', "<img> without alt"),
    ('<input id="a" name="b">', "the field a has no label"),
    ('<p id="a"></p><p id="a"></p>', "the id a is there twice"),
    ("<p><b>a</p></b>", "</p> has no start tag"),
    ("<div><p>a</p>", "<div> is not closed"),
    ("<p>a < b</p>", "not a tag: a < b"),
    ("<p id=a>b</p>", "not a tag: <p id=a>b"),
    ("<P>a", "not a tag: <P>a"),
)
def test_problems_of_pages(markup: str, problem: str) -> None:
    """Inline code, missing labels, open elements and what is not a tag are problems."""
    assert problem in read_page(markup).problems


def test_what_a_page_shows() -> None:
    """Texts and attributes are decoded; comments, and elements without an end, are allowed."""
    page = read_page('<!-- <b> --><a href="/a?b=1&amp;c">x &lt; y</a><br><use href="#i"/>')
    assert (page.text, page.addresses, page.problems) == ("x < y", ["/a?b=1&c", "#i"], [])
