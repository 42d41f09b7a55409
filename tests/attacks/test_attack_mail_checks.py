"""HTML and style sheets that are built to make the checks of a mail slow, large or wrong.

Every piece is repeated up to an eighth of the maximum size. The tests do not measure time: a step
with quadratic time would run for a minute on this input.
"""

import pytest

from mailcheck.checks.content.limits import MAX_LINKS
from mailcheck.checks.html_checks.check import check_html, check_raw_mail
from mailcheck.checks.html_checks.places import MAX_EXCERPT, MAX_PLACES
from mailcheck.checks.mail_checks import MailChecks
from tests.attacks.hostile_mails import HostileMail, read_hostile_mails
from tests.linear import assert_linear
from tests.table import rows

pytestmark = [pytest.mark.attack, pytest.mark.untraced]

CSS = [
    *("{", "}", "(", ")", "[", '"', "'", "\\", ";", ":", "@", "!", "/*", "*/", "/", "<!--", "a"),
    *("a{", "a{b:c", "@media a{", "@media(", "url(", "url('", "a{url(;", "!important", "! ", " "),
    *("p>", "p ", "\n", ">", "a,", ":not(", "::", "..", "[a=", ".a.b", "#", "a{b:1px;", "--x:"),
    *("@import ", "@keyframes a{0%{", "calc(", "1e", "-", ".", "0.", "a{b:'", 'a{b:"', "\\'"),
]
HTML = [
    *('<p style="', '<p style="a:b">', "<div>", "<a href=x>", "<a href=https://x/>", "<img src=x>"),
    *("<!--[if !mso]><!-->", "<!--<![endif]-->", "<!--[if !mso]><!--><p style='float:left'>"),
    *("<style>", "<style>a{}</style>", "<h1><h3>", "<b>", "<b><p>", "<table><tr><td>", "&#"),
    *("<p style='color:#999'>x", "<p style='opacity:.5'>", "\n<b>", "<a href=https://x/><table>"),
    *("<img srcset=a alt>", "<p lang=x>", "<style>/*", "<svg><style>", "<a href='#'>here</a>"),
]


def check(html: str) -> MailChecks:
    """Check a page, and check that the result is small."""
    checks = check_html(html, "", None, (), {})
    assert checks.compatibility is not None
    assert checks.accessibility is not None
    places = [
        *(one.places for one in checks.compatibility.findings),
        *(one.places for one in checks.accessibility.findings),
    ]
    assert len(places) < 320
    for some in places:
        assert len(some) <= MAX_PLACES
        assert all(len(place.excerpt) <= MAX_EXCERPT for place in some)
    assert len(checks.links) <= MAX_LINKS
    return checks


SHORT = 1_000
"""Characters of the shorter of two compared pages."""


@rows(*CSS)
def test_hostile_style_sheets_take_linear_time(piece: str) -> None:
    """A style sheet of any content is read once, and so is the text after it."""
    size = max(SHORT, 2 * len(piece))
    assert_linear(check, piece, "<style>", size)
    assert_linear(check, piece.replace('"', "'"), '<p style="', size)


@rows(*HTML)
def test_hostile_pages_take_linear_time(piece: str) -> None:
    """Each element of a page of any content is checked once."""
    assert_linear(check, piece, "", max(SHORT, 2 * len(piece)))


def test_many_different_styles_are_bounded() -> None:
    """Thousands of different styles take time in proportion to their length."""
    check("".join(f'<p style="margin:{n}px;x{n}:{n}em">' for n in range(4_000)))
    check("<style>" + "".join(f".a{n} > b{n}:hover{{width:{n}px}}" for n in range(4_000)))


def test_a_long_line_is_cut() -> None:
    """A page on one line has short excerpts, and all places are on line 1."""
    checks = check("<p style='float:left'>" * 20_000)
    assert checks.compatibility is not None
    (finding,) = (one for one in checks.compatibility.findings if one.slug == "css-float")
    assert [place.line for place in finding.places] == [1]
    assert finding.count == 20_000


@rows(*read_hostile_mails())
def test_hostile_mails_are_checked(mail: HostileMail) -> None:
    """Hostile mails cause no error, and the results contain no control characters."""
    checks = check_raw_mail(mail.raw_message)
    shown = [link.words for link in checks.links]
    for found in (checks.compatibility, checks.accessibility):
        shown += [
            place.excerpt for one in (found.findings if found else ()) for place in one.places
        ]
    assert all(ord(letter) >= 32 for text in shown for letter in text)
