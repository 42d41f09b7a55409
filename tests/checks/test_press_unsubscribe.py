"""Verdicts about one-click unsubscribe requests, and the address that a mail offers."""

from mailcheck.checks.link_checks import LinkProblem
from mailcheck.checks.press_unsubscribe import (
    MAX_PAGE,
    PressAnswer,
    PressProblem,
    PressVerdict,
    judge_press,
    not_offered,
)
from mailcheck.checks.quality.unsubscribe import ONE_CLICK, OneClick, OneClickOffer, read_offer
from tests.table import rows

URL = "https://news.example/leave?id=1"
LOGIN = '<h1>Welcome</h1><form method="post"><input name=p type="password"></form>'
DONE = '<meta name="csrf-token" content="x"><p>You will get no more mail.</p>'


@rows(
    (PressAnswer(URL, 200), None),
    (PressAnswer(URL, 202, page=DONE), None),
    (PressAnswer(URL, 204), None),
    (PressAnswer(URL, 200, page=LOGIN), PressProblem.LOGIN),
    (PressAnswer(URL, 401), PressProblem.LOGIN),
    (PressAnswer(URL, 403, page=LOGIN), PressProblem.LOGIN),
    (PressAnswer(URL, 302, "/login?next=/leave"), PressProblem.LOGIN),
    (PressAnswer(URL, 303, "https://sso.news.example/"), PressProblem.LOGIN),
    (PressAnswer(URL, 302, "/users/sign_in"), PressProblem.LOGIN),
    (PressAnswer(URL, 302, "https://[bad/login"), PressProblem.REDIRECT),
    (PressAnswer(URL, 301, "https://www.news.example/leave?id=1"), PressProblem.REDIRECT),
    (PressAnswer(URL, 302, "/unsubscribed?from=login-page"), PressProblem.REDIRECT),
    (PressAnswer(URL, 308, "/blog/author"), PressProblem.REDIRECT),
    (PressAnswer(URL, 303), PressProblem.REDIRECT),
    (PressAnswer(URL, 403, page="<p>CSRF verification failed.</p>"), PressProblem.CSRF),
    (PressAnswer(URL, 400, page="The CSRF token is missing."), PressProblem.CSRF),
    (PressAnswer(URL, 422, page="Invalid Authenticity Token"), PressProblem.CSRF),
    (PressAnswer(URL, 419, page="Page Expired"), PressProblem.CSRF),
    (PressAnswer(URL, 403, page=DONE), PressProblem.FORBIDDEN),
    (PressAnswer(URL, 403), PressProblem.FORBIDDEN),
    (PressAnswer(URL, 405), PressProblem.METHOD),
    (PressAnswer(URL, 501), PressProblem.METHOD),
    (PressAnswer(URL, 404), PressProblem.GONE),
    (PressAnswer(URL, 410), PressProblem.GONE),
    (PressAnswer(URL, 429), PressProblem.RATE_LIMIT),
    (PressAnswer(URL, 400), PressProblem.REJECTED),
    (PressAnswer(URL, 415), PressProblem.REJECTED),
    (PressAnswer(URL, 500, page="csrf"), PressProblem.SERVER_ERROR),
    (PressAnswer(URL, 503), PressProblem.SERVER_ERROR),
    (PressAnswer(URL, 999), PressProblem.SERVER_ERROR),
    (PressAnswer(URL, 200, page="<form method=post>Really?</form>"), PressProblem.FORM),
)
def test_answers(answer: PressAnswer, problem: PressProblem | None) -> None:
    """The status, the target of a redirect and the page say what is wrong."""
    found = judge_press(answer)
    assert found.problem is problem
    assert (found.verdict is PressVerdict.ACCEPTED) is (problem is None)
    assert bool(found.fix) is (problem is not None)


@rows(*list(LinkProblem))
def test_requests_without_an_answer(problem: LinkProblem) -> None:
    """Every problem of a request to a link that is not redirected has a verdict and a sentence."""
    if problem in (LinkProblem.BAD_REDIRECT, LinkProblem.TOO_MANY_REDIRECTS):
        return
    found = judge_press(PressAnswer(URL, problem=problem))
    assert found.problem is not None
    assert found.problem.value == problem.value
    assert found.verdict is not PressVerdict.ACCEPTED


def test_every_problem_has_its_texts() -> None:
    """No problem is without a verdict."""
    for problem in PressProblem:
        is_answer = problem.value not in {one.value for one in LinkProblem}
        if not is_answer:
            assert judge_press(PressAnswer(URL, problem=LinkProblem(problem.value))).explanation
    lacking = not_offered(OneClickOffer(lacks=OneClick.NO_POST))
    assert lacking.verdict is PressVerdict.NOT_SENT
    assert "no List-Unsubscribe-Post field" in lacking.explanation
    assert ONE_CLICK in lacking.fix


@rows("<", "<form", "csrf", "token ", "type=  ", "session has ")
def test_hostile_pages_are_quick(piece: str) -> None:
    """The time is linear in the length of the page."""
    page = (piece * MAX_PAGE)[:MAX_PAGE]
    for status in (200, 403):
        judge_press(PressAnswer(URL, status, page=page))


POST = ("List-Unsubscribe-Post", ONE_CLICK)


@rows(
    ([("List-Unsubscribe", f"<{URL}>"), POST], OneClickOffer(URL)),
    ([("list-unsubscribe", f"<mailto:a@b.example>, <{URL}>"), POST], OneClickOffer(URL)),
    ([("List-Unsubscribe", f"<http://a.example/>, <{URL}>"), POST], OneClickOffer(URL)),
    ([("List-Unsubscribe", f"<{URL[:20]} {URL[20:]}>"), POST], OneClickOffer(URL)),
    ([POST], OneClickOffer(lacks=OneClick.NO_FIELD)),
    ([("List-Unsubscribe", f"<{URL}>")], OneClickOffer(lacks=OneClick.NO_POST)),
    ([("List-Unsubscribe", URL), POST], OneClickOffer(lacks=OneClick.NO_HTTPS)),
    (
        [("List-Unsubscribe", "<http://a.example/>"), POST],
        OneClickOffer(lacks=OneClick.NO_HTTPS),
    ),
    (
        [("List-Unsubscribe", f"<{URL}>"), ("List-Unsubscribe-Post", "yes")],
        OneClickOffer(lacks=OneClick.WRONG_POST),
    ),
    (
        [("List-Unsubscribe", f"<{URL}>"), POST, POST],
        OneClickOffer(lacks=OneClick.REPEATED),
    ),
)
def test_the_address_of_a_mail(fields: list[tuple[str, str]], offer: OneClickOffer) -> None:
    """The first https address counts, if List-Unsubscribe-Post allows the request."""
    assert read_offer(fields) == offer
