"""Verdicts about links, from the answers to requests for them.

An undetermined result is never "broken": servers reject programs, answer HEAD with an error, or
are slow. A host that is not on the public Internet is not requested, and that is no problem.
"""

from enum import Enum
from itertools import pairwise

from msgspec import Struct

MAX_REDIRECTS = 10
"""Maximum number of redirects that are followed. Browsers follow 20; real sites use a few."""


class LinkProblem(Enum):
    """Reason why there is no answer."""

    NOT_PUBLIC = "not-public"
    """The host's address is private or belongs to this server, so no request is sent."""
    BAD_URL = "bad-url"
    """The URL is too long, contains a user name, or cannot be requested."""
    BUDGET = "budget"
    """The account has reached its limit of link requests."""
    BUSY = "busy"
    """Too many requests are running, or no time was left."""
    NO_AUTHORITIES = "no-authorities"
    """This server has no certificate authorities to verify certificates with."""
    NO_HOST = "no-host"
    NO_CONNECTION = "no-connection"
    BAD_CERTIFICATE = "bad-certificate"
    BAD_REDIRECT = "bad-redirect"
    TOO_MANY_REDIRECTS = "too-many-redirects"
    NO_HTTP = "no-http"
    SILENT = "silent"


class Hop(Struct, frozen=True):
    """A request and the status of its response."""

    url: str
    status: int


class LinkAnswer(Struct, frozen=True):
    """The result of requesting a link: each hop, and the problem after the last one."""

    url: str
    method: str
    hops: tuple[Hop, ...] = ()
    problem: LinkProblem | None = None


class LinkVerdict(Enum):
    """Verdict about a link."""

    WORKS = "works"
    BROKEN = "broken"
    UNCLEAR = "unclear"
    NOT_CHECKED = "not-checked"


class LinkCheck(Struct, frozen=True):
    """A link and its verdict; ``final_url`` is the URL of the last response, if there is one."""

    answer: LinkAnswer
    verdict: LinkVerdict
    explanation: str

    @property
    def status(self) -> int | None:
        """Status of the last response, or `None` without one."""
        return self.answer.hops[-1].status if self.answer.hops else None

    @property
    def final_url(self) -> str:
        """URL of the last response, or the link itself without one."""
        return self.answer.hops[-1].url if self.answer.hops else self.answer.url


_PROBLEMS = {
    LinkProblem.NOT_PUBLIC: (
        LinkVerdict.NOT_CHECKED,
        "The link leads to an address that is not on the public Internet.",
    ),
    LinkProblem.BAD_URL: (
        LinkVerdict.NOT_CHECKED,
        "The link is too long, contains a user name, or is not a valid URL.",
    ),
    LinkProblem.BUDGET: (
        LinkVerdict.NOT_CHECKED,
        "This account has reached its limit of link checks for now. Try again later.",
    ),
    LinkProblem.BUSY: (
        LinkVerdict.NOT_CHECKED,
        "There was no time to check this link. Check it again.",
    ),
    LinkProblem.NO_AUTHORITIES: (
        LinkVerdict.NOT_CHECKED,
        "This server has no certificate authorities to verify the host's certificate with.",
    ),
    LinkProblem.NO_HOST: (LinkVerdict.BROKEN, "The host of the link does not exist in DNS."),
    LinkProblem.NO_CONNECTION: (
        LinkVerdict.BROKEN,
        "The host refuses the connection, or encryption fails.",
    ),
    LinkProblem.BAD_CERTIFICATE: (
        LinkVerdict.BROKEN,
        "The host's certificate is not valid for its name, so browsers warn of it.",
    ),
    LinkProblem.BAD_REDIRECT: (LinkVerdict.BROKEN, "A redirect does not lead to a web address."),
    LinkProblem.TOO_MANY_REDIRECTS: (
        LinkVerdict.BROKEN,
        f"The link redirects more than {MAX_REDIRECTS} times.",
    ),
    LinkProblem.NO_HTTP: (LinkVerdict.UNCLEAR, "The server's response is not HTTP."),
    LinkProblem.SILENT: (LinkVerdict.UNCLEAR, "The server did not respond in time."),
}

_GONE = (404, 410)
_REFUSES_PROGRAMS = (401, 403, 407, 429, 999)
_TRY_GET = "; some servers answer like this only to HEAD. Check the link with GET."


def judge_link(answer: LinkAnswer) -> LinkCheck:
    """Return the verdict about the result of requesting a link."""
    if answer.problem is not None:
        return LinkCheck(answer, *_PROBLEMS[answer.problem])
    status = answer.hops[-1].status
    return LinkCheck(answer, *_judge_status(status, answer))


def _judge_status(status: int, answer: LinkAnswer) -> tuple[LinkVerdict, str]:
    if 200 <= status < 300:
        return LinkVerdict.WORKS, _explain_success(answer)
    if status in _GONE:
        return LinkVerdict.BROKEN, f"The server says that the page does not exist ({status})."
    if status in _REFUSES_PROGRAMS:
        return (
            LinkVerdict.UNCLEAR,
            f"The server rejects the check ({status}): it may require a browser, or a login.",
        )
    if answer.method == "HEAD":
        return LinkVerdict.UNCLEAR, f"The server answers with {status}{_TRY_GET}"
    verdict = LinkVerdict.BROKEN if status >= 400 else LinkVerdict.UNCLEAR
    return verdict, f"The server answers with {status}."


def _explain_success(answer: LinkAnswer) -> str:
    urls = [hop.url for hop in answer.hops]
    if any(
        url.startswith("https:") and not other.startswith("https:") for url, other in pairwise(urls)
    ):
        return "The link works; a redirect leads from https to http."
    if len(urls) > 1:
        redirects = "redirect" if len(urls) == 2 else "redirects"
        return f"The link works, after {len(urls) - 1} {redirects}."
    return "The link works."
