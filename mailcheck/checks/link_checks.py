"""What the answers to requests for the links of a mail mean.

"Could not find out" is never "broken": servers refuse programs, answer HEAD with an error, and
take their time. What is not on the public Internet is not asked and is no fault.
"""

from enum import Enum
from itertools import pairwise

from msgspec import Struct

MAX_REDIRECTS = 10
"""Redirects that are followed; browsers give up after 20, and nobody means more than a few."""


class LinkProblem(Enum):
    """Why there is no answer to judge."""

    NOT_PUBLIC = "not-public"
    """The host's address is private, or our own: it is not asked."""
    BAD_URL = "bad-url"
    """Too long, with a user name, or otherwise none that is asked for."""
    BUDGET = "budget"
    """The account has asked for as many links as it may."""
    BUSY = "busy"
    """Too many are being asked for, or there was no time left."""
    NO_AUTHORITIES = "no-authorities"
    """There is nothing here to check certificates against."""
    NO_HOST = "no-host"
    NO_CONNECTION = "no-connection"
    BAD_CERTIFICATE = "bad-certificate"
    BAD_REDIRECT = "bad-redirect"
    TOO_MANY_REDIRECTS = "too-many-redirects"
    NO_HTTP = "no-http"
    SILENT = "silent"


class Hop(Struct, frozen=True):
    """A request and the status that came back."""

    url: str
    status: int


class LinkAnswer(Struct, frozen=True):
    """What came of asking for a link: each hop, and what went wrong after the last one."""

    url: str
    method: str
    hops: tuple[Hop, ...] = ()
    problem: LinkProblem | None = None


class LinkVerdict(Enum):
    """What is known of a link."""

    WORKS = "works"
    BROKEN = "broken"
    UNCLEAR = "unclear"
    NOT_CHECKED = "not-checked"


class LinkCheck(Struct, frozen=True):
    """A link, judged; ``final_url`` is where the last answer came from, if one did."""

    answer: LinkAnswer
    verdict: LinkVerdict
    explanation: str

    @property
    def status(self) -> int | None:
        """Give the status of the last answer."""
        return self.answer.hops[-1].status if self.answer.hops else None

    @property
    def final_url(self) -> str:
        """Give where the last answer came from; the link itself where none came."""
        return self.answer.hops[-1].url if self.answer.hops else self.answer.url


_PROBLEMS = {
    LinkProblem.NOT_PUBLIC: (
        LinkVerdict.NOT_CHECKED,
        "It leads to an address that is not on the public Internet.",
    ),
    LinkProblem.BAD_URL: (
        LinkVerdict.NOT_CHECKED,
        "It is too long, has a user name in it, or can't be read as an address.",
    ),
    LinkProblem.BUDGET: (
        LinkVerdict.NOT_CHECKED,
        "This account has asked for as many links as it may for now.",
    ),
    LinkProblem.BUSY: (LinkVerdict.NOT_CHECKED, "There was no time for it: check it again."),
    LinkProblem.NO_AUTHORITIES: (
        LinkVerdict.NOT_CHECKED,
        "This server has no certificate authorities to check the host's certificate against.",
    ),
    LinkProblem.NO_HOST: (LinkVerdict.BROKEN, "Its host does not exist in DNS."),
    LinkProblem.NO_CONNECTION: (
        LinkVerdict.BROKEN,
        "Its host refuses the connection, or encrypting it.",
    ),
    LinkProblem.BAD_CERTIFICATE: (
        LinkVerdict.BROKEN,
        "The host's certificate is not valid for its name: browsers warn of it.",
    ),
    LinkProblem.BAD_REDIRECT: (LinkVerdict.BROKEN, "A redirect leads to no web address."),
    LinkProblem.TOO_MANY_REDIRECTS: (
        LinkVerdict.BROKEN,
        f"It redirects more than {MAX_REDIRECTS} times.",
    ),
    LinkProblem.NO_HTTP: (LinkVerdict.UNCLEAR, "What answers does not speak HTTP."),
    LinkProblem.SILENT: (LinkVerdict.UNCLEAR, "No answer came in time."),
}

_GONE = (404, 410)
_REFUSES_PROGRAMS = (401, 403, 407, 429, 999)
_TRY_GET = "; some servers answer so to HEAD alone: ask for it by GET."


def judge_link(answer: LinkAnswer) -> LinkCheck:
    """Judge what came of asking for a link."""
    if answer.problem is not None:
        return LinkCheck(answer, *_PROBLEMS[answer.problem])
    status = answer.hops[-1].status
    return LinkCheck(answer, *_judge_status(status, answer))


def _judge_status(status: int, answer: LinkAnswer) -> tuple[LinkVerdict, str]:
    if 200 <= status < 300:
        return LinkVerdict.WORKS, _explain_success(answer)
    if status in _GONE:
        return LinkVerdict.BROKEN, f"The server says that there is no such page ({status})."
    if status in _REFUSES_PROGRAMS:
        return (
            LinkVerdict.UNCLEAR,
            f"The server refuses to tell ({status}): it may want a person, or a login.",
        )
    if answer.method == "HEAD":
        return LinkVerdict.UNCLEAR, f"The server answers with {status}{_TRY_GET}"
    verdict = LinkVerdict.BROKEN if status >= 400 else LinkVerdict.UNCLEAR
    return verdict, f"The server answers with {status}."


def _explain_success(answer: LinkAnswer) -> str:
    urls = [hop.url for hop in answer.hops]
    if any(
        one.startswith("https:") and not other.startswith("https:") for one, other in pairwise(urls)
    ):
        return "It works; a redirect leads from https to http."
    if len(urls) > 1:
        return f"It works, after {len(urls) - 1} {'redirect' if len(urls) == 2 else 'redirects'}."
    return "It works."
