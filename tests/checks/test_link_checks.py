"""Verdicts about links, and the list of links of a message."""

from mailcheck.checks.content.limits import MAX_HTML
from mailcheck.checks.html_checks.check import check_html, check_raw_mail
from mailcheck.checks.link_checks import (
    Hop,
    LinkAnswer,
    LinkProblem,
    LinkVerdict,
    judge_link,
)
from tests.table import rows

URL = "https://shop.example/"


def judged(status: int, method: str = "HEAD") -> LinkVerdict:
    """Return the verdict about this status."""
    return judge_link(LinkAnswer(URL, method, (Hop(URL, status),))).verdict


@rows(
    (200, LinkVerdict.WORKS, LinkVerdict.WORKS),
    (204, LinkVerdict.WORKS, LinkVerdict.WORKS),
    (304, LinkVerdict.UNCLEAR, LinkVerdict.UNCLEAR),
    (401, LinkVerdict.UNCLEAR, LinkVerdict.UNCLEAR),
    (403, LinkVerdict.UNCLEAR, LinkVerdict.UNCLEAR),
    (404, LinkVerdict.BROKEN, LinkVerdict.BROKEN),
    (405, LinkVerdict.UNCLEAR, LinkVerdict.BROKEN),
    (410, LinkVerdict.BROKEN, LinkVerdict.BROKEN),
    (429, LinkVerdict.UNCLEAR, LinkVerdict.UNCLEAR),
    (500, LinkVerdict.UNCLEAR, LinkVerdict.BROKEN),
    (503, LinkVerdict.UNCLEAR, LinkVerdict.BROKEN),
    (999, LinkVerdict.UNCLEAR, LinkVerdict.UNCLEAR),
)
def test_statuses(status: int, by_head: LinkVerdict, by_get: LinkVerdict) -> None:
    """A rejected HEAD is not a verdict about the page; a missing page is, with either method."""
    assert (judged(status), judged(status, "GET")) == (by_head, by_get)


@rows(*list(LinkProblem))
def test_every_problem_has_its_verdict(problem: LinkProblem) -> None:
    """An address of ours, or one that is not requested, is no fault; each has an explanation."""
    check = judge_link(LinkAnswer(URL, "HEAD", (), problem))
    assert check.explanation.endswith(".")
    assert check.verdict is not LinkVerdict.WORKS
    ours = {
        *(LinkProblem.NOT_PUBLIC, LinkProblem.BAD_URL, LinkProblem.BUDGET, LinkProblem.BUSY),
        LinkProblem.NO_AUTHORITIES,
    }
    assert (check.verdict is LinkVerdict.NOT_CHECKED) == (problem in ours)


def test_redirects_are_reported() -> None:
    """The number of redirects, and one from https to http, are reported."""
    hops = (Hop(URL, 301), Hop("https://shop.example/en", 200))
    check = judge_link(LinkAnswer(URL, "HEAD", hops))
    assert check.explanation == "The link works, after 1 redirect."
    assert (check.final_url, check.status) == ("https://shop.example/en", 200)
    hops = (Hop(URL, 301), Hop("http://shop.example/en", 200))
    assert "from https to http" in judge_link(LinkAnswer(URL, "HEAD", hops)).explanation


HTML = """<a href="https://shop.example/confirm?token=abcdefabcdef1234">Confirm your address</a>
<a href="https://shop.example/help">Help</a>
<a href="https://shop.example/leave?u=1">Unsubscribe</a>
<a href="https://list.example/out/17">Go away</a>"""

MAIL = (
    "From: a@shop.example\r\n"
    "Subject: Welcome\r\n"
    "List-Unsubscribe: <mailto:out@list.example>, <https://list.example/out/17>\r\n"
    "MIME-Version: 1.0\r\n"
    "Content-Type: text/html; charset=utf-8\r\n"
    "\r\n" + HTML.replace("\n", "\r\n")
).encode()


def test_links_that_a_request_may_use_up_are_marked() -> None:
    """The best link, and unsubscribe links by text or header, are marked."""
    links = check_raw_mail(MAIL).links
    assert [(one.is_best, one.is_unsubscribe) for one in links] == [
        *((True, False), (False, False), (False, True), (False, True))
    ]
    assert [one.words for one in links if one.is_harmless] == ["Help"]


def test_a_mail_without_html_has_its_links_alone() -> None:
    """Plain text has only links, without checks of HTML."""
    checks = check_html("", "See https://shop.example/help please", None, (), {})
    assert checks.compatibility is None
    assert checks.accessibility is None
    assert [one.url for one in checks.links] == ["https://shop.example/help"]


def test_html_beyond_the_limit_is_marked() -> None:
    """A page that is too long to be checked completely is marked."""
    assert check_html("x" * (MAX_HTML + 1), "", None, (), {}).is_cut
    assert not check_html("<p>x</p>", "", None, (), {}).is_cut
