"""Accessibility findings about the HTML of a mail."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.content.html_tree import read_tree
from mailcheck.checks.html_checks.accessibility import contrast_of, judge_accessibility
from mailcheck.checks.html_checks.places import Lines
from mailcheck.checks.mail_checks import Accessibility
from tests.table import rows


def judge(markup: str) -> Accessibility:
    """Judge a page."""
    return judge_accessibility(read_tree(markup), Lines(markup))


def kinds(markup: str) -> list[str]:
    """Return the kinds of findings in the body of a page with a language."""
    found = judge(f'<html lang="en"><body>{markup}</body></html>').findings
    return [one.finding.id.removeprefix("accessibility.") for one in found]


@rows(
    ("<p>Hello</p>", []),
    ('<img src="a.png">', ["image-without-alt"]),
    ('<img src="a.png" alt="">', []),
    ('<img src="a.png" alt="A shoe">', []),
    ('<img src="a.png" role="presentation">', []),
    ('<img src="a.gif" width="1" height="1">', []),
    ('<div style="display:none"><img src="a.png"></div>', []),
    ('<a href="https://a.example/"><img src="a.png" alt=""></a>', ["image-link-without-text"]),
    ('<a href="https://a.example/"><img src="a.png" alt="Shop"></a>', []),
    ('<a href="https://a.example/"><img src="a.png" alt="">Shop</a>', []),
    ('<a href="https://a.example/" aria-label="Shop"><img src="a.png" alt=""></a>', []),
    ('<a href="https://a.example/"></a>', ["empty-link"]),
    ('<a name="top"></a>', []),
    ('<a href="https://a.example/">Click <b>here</b>!</a>', ["vague-link-text"]),
    ('<a href="https://a.example/">Hier klicken</a>', ["vague-link-text"]),
    ('<a href="https://a.example/">aqu\u00ed</a>', ["vague-link-text"]),
    ('<a href="https://a.example/">Read the invoice</a>', []),
    ('<a href="https://a.example/"><table><tr><td>The shop</td></tr></table></a>', []),
    ('<b><a href="https://a.example/">The<p>shop</b> opens</p></a>', []),
    ("<h1>One</h1><h2>Two</h2><h1>Three</h1>", []),
    ("<h1>One</h1><h3>Three</h3>", ["heading-skipped"]),
    ("<h3>Three</h3><h4>Four</h4>", []),
    ('<p style="color:#777777">grey</p>', ["low-contrast"]),
    ('<p style="color:#767676">grey</p>', []),
    ('<p style="color:#949494;font-size:24px">large</p>', []),
    ('<p style="color:#959595;font-size:24px">large</p>', ["low-contrast"]),
    ('<p style="color:#949494;font-size:19px"><b>large, bold</b></p>', []),
    ('<p style="color:#949494;font-size:19px"><b>x</b> not bold</p>', ["low-contrast"]),
    ('<h1 style="color:#949494">large</h1>', []),
    ('<h4 style="color:#949494">small</h4>', ["low-contrast"]),
    (
        '<table bgcolor="#336699"><tr><td><font color="#6699cc">x</font></table>',
        ["low-contrast"],
    ),
    ('<p style="color:#999;visibility:hidden">hidden</p>', []),
)
def test_findings(markup: str, expected: list[str]) -> None:
    """Content that people cannot see or follow is found; accessible content has no finding."""
    assert kinds(markup) == expected


@rows(
    '<p style="color:rgba(0,0,0,.4)">x</p>',
    '<div style="background:url(a.png)"><p style="color:#999">x</p></div>',
    '<div style="background:rgba(0,0,0,.1)"><p style="color:#555">x</p></div>',
    '<style>.a{color:#eee}</style><p class="a">x</p>',
    '<p style="color:var(--ink)">x</p>',
    '<p style="opacity:.5;color:#777">x</p>',
    '<link rel="stylesheet" href="https://a.example/a.css"><p style="color:#333">x</p>',
)
def test_an_unknown_contrast_is_not_a_finding(markup: str) -> None:
    """Contrast is not judged if a style sheet, an image or transparency determines the colours."""
    judged = judge(f'<html lang="en"><body>{markup}</body></html>')
    assert not judged.findings
    assert judged.contrasts_not_judged == 1


def test_unknown_colours_end_with_their_element() -> None:
    """After an element with unknown colours, text is judged again."""
    judged = judge(
        '<html lang="en"><div style="opacity:.9"><p style="color:#777">x</p></div>'
        '<p style="color:#777">y</p>'
    )
    assert [one.count for one in judged.findings] == [1]
    assert judged.contrasts_not_judged == 1


@rows(
    ("<p>Hello</p>", True),
    ('<html lang=""><p>Hello</p>', True),
    ('<html lang="en"><p>Hello</p>', False),
    ('<html><body lang="de"><p>Hallo</p>', False),
    ('<div lang="fr"><p>Salut</p></div>', False),
    ('<p>Hello</p><div lang="fr">Salut</div>', True),
    ('<img src="a.png" alt="">', False),
)
def test_the_language_is_required(markup: str, is_missing: bool) -> None:
    """The language must be declared before the first words; without words it is not needed."""
    found = [one.finding.id for one in judge(markup).findings]
    assert ("accessibility.no-language" in found) == is_missing


def test_findings_have_their_places() -> None:
    """A finding has its number of places, their first lines, and its criterion."""
    markup = "<html lang=en>\n" + '<p>x</p>\n<img src="a.png">\n' * 8
    (finding,) = judge(markup).findings
    assert finding.criterion == "1.1.1"
    assert [place.line for place in finding.places] == [3, 5, 7, 9, 11]
    assert finding.places[0].excerpt == '<img src="a.png">'
    assert finding.count == 8
    assert "8 (the first: a.png)" in finding.finding.meaning


def test_worst_findings_come_first() -> None:
    """Errors come before notes."""
    found = kinds('<h1>a</h1><h4>b</h4><a href="x:">here</a><img src="a.png">')
    assert found == ["image-without-alt", "heading-skipped", "vague-link-text"]


def test_contrasts_match_wcag() -> None:
    """Black on white has 21, equal colours have 1, and WCAG's example grey has 4.54."""
    assert contrast_of("#000000", "#ffffff") == pytest.approx(21)
    assert contrast_of("#336699", "#336699") == 1
    assert contrast_of("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)
    assert contrast_of("#ff0000", "#0000ff") == contrast_of("#0000ff", "#ff0000")


MARKUP = st.lists(
    st.sampled_from(
        [
            *('<a href="https://a.example/">', "</a>", "<b>", "</b>", "<p>", "</p>", "<h1>"),
            *("<h4>", "</h1>", "words", "here", "<img src=x>", '<p style="color:#999">', "\n"),
            *("<table><tr><td>", "</td></tr></table>", '<div style="opacity:.5">', "</div>"),
        ]
    ),
    max_size=30,
)


@given(MARKUP)
def test_any_page_is_judged(pieces: Sequence[str]) -> None:
    """Crossed and unclosed tags are accepted, and every place is within the page."""
    markup = "".join(pieces)
    for finding in judge(markup).findings:
        assert finding.count >= len(finding.places)
        assert all(place.line <= markup.count("\n") + 1 for place in finding.places)
