"""Responses to one-click unsubscribe requests, with their faults and advice (RFC 8058)."""

import re
from collections.abc import Callable
from enum import Enum
from urllib.parse import urlsplit

from msgspec import Struct

from mailcheck.checks.link_checks import LinkProblem
from mailcheck.checks.quality.unsubscribe import ONE_CLICK, OneClickOffer

PRESSED_BODY = ONE_CLICK.encode("ascii")
"""The body of the request (RFC 8058 3.2)."""

MAX_PAGE = 16_384
"""Maximum number of octets of a response that are read."""


class PressAnswer(Struct, frozen=True):
    """The response to the request, or the problem without one.

    ``location`` is the target of a redirect, which is not followed. ``page`` is the beginning of
    an HTML page or a text, and otherwise empty.
    """

    url: str
    status: int | None = None
    location: str = ""
    page: str = ""
    problem: LinkProblem | None = None


class PressVerdict(Enum):
    """Verdict about the request."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNCLEAR = "unclear"
    NOT_SENT = "not-sent"


class PressProblem(Enum):
    """Fault of a response. Faults without a response have the values of `LinkProblem`."""

    NOT_OFFERED = "not-offered"
    NOT_PUBLIC = "not-public"
    BAD_URL = "bad-url"
    BUDGET = "budget"
    BUSY = "busy"
    NO_AUTHORITIES = "no-authorities"
    NO_HOST = "no-host"
    NO_CONNECTION = "no-connection"
    BAD_CERTIFICATE = "bad-certificate"
    NO_HTTP = "no-http"
    SILENT = "silent"
    REDIRECT = "redirect"
    LOGIN = "login"
    CSRF = "csrf"
    METHOD = "method"
    FORM = "form"
    GONE = "gone"
    FORBIDDEN = "forbidden"
    RATE_LIMIT = "rate-limit"
    REJECTED = "rejected"
    SERVER_ERROR = "server-error"


class Pressed(Struct, frozen=True):
    """The result of a request. ``fix`` is empty for an accepted one."""

    answer: PressAnswer
    verdict: PressVerdict
    problem: PressProblem | None
    explanation: str
    fix: str


_REFUSED, _UNCLEAR, _NOT_SENT = (
    PressVerdict.REFUSED,
    PressVerdict.UNCLEAR,
    PressVerdict.NOT_SENT,
)

_TEXTS = {
    PressProblem.NOT_OFFERED: (_NOT_SENT, "The mail offers no one-click unsubscribe.", ""),
    PressProblem.NOT_PUBLIC: (
        _NOT_SENT,
        "The address leads to a host that is not on the public Internet.",
        "Use an address that mailbox providers can reach.",
    ),
    PressProblem.BAD_URL: (
        _NOT_SENT,
        "The address is too long, contains a user name, or is not a valid URL.",
        "Write a plain https URL into List-Unsubscribe.",
    ),
    PressProblem.BUDGET: (
        _NOT_SENT,
        "This account has reached its limit of unsubscribe requests for now.",
        "Try again later.",
    ),
    PressProblem.BUSY: (_NOT_SENT, "Too many requests are running.", "Try again in a moment."),
    PressProblem.NO_AUTHORITIES: (
        _NOT_SENT,
        "This server has no certificate authorities to verify the host's certificate with.",
        "",
    ),
    PressProblem.NO_HOST: (
        _REFUSED,
        "The host of the address does not exist in DNS, or ends the connection.",
        "Publish the host, or correct the address in List-Unsubscribe.",
    ),
    PressProblem.NO_CONNECTION: (
        _REFUSED,
        "The host refuses the connection, or encryption fails.",
        "Let the host accept https connections from everywhere.",
    ),
    PressProblem.BAD_CERTIFICATE: (
        _REFUSED,
        "The certificate of the host is not valid for its name.",
        "Install a certificate of a public authority for this name.",
    ),
    PressProblem.NO_HTTP: (
        _REFUSED,
        "The response is not HTTP.",
        "Let a web server answer at this address.",
    ),
    PressProblem.SILENT: (
        _UNCLEAR,
        "The server did not answer in time.",
        "Answer within a few seconds, and do slow work after the response.",
    ),
    PressProblem.REDIRECT: (
        _REFUSED,
        "The server answers with a redirect. Mailbox providers do not follow it after a POST.",
        "Unsubscribe at this address itself, and answer with 200 (RFC 8058 3.1).",
    ),
    PressProblem.LOGIN: (
        _REFUSED,
        "The server asks for a login. A mailbox provider has no session and no cookie.",
        "Identify the reader by an opaque part of the address, without a login (RFC 8058 3.1).",
    ),
    PressProblem.CSRF: (
        _REFUSED,
        "The server rejects the request for lack of a CSRF token. A mailbox provider has none.",
        "Exempt this address from the CSRF check. Its opaque part protects it.",
    ),
    PressProblem.METHOD: (
        _REFUSED,
        "The server does not accept POST at this address.",
        "Accept POST at the address of List-Unsubscribe, beside GET for readers who open it.",
    ),
    PressProblem.FORM: (
        _UNCLEAR,
        "The answer is a page with a form, so unsubscribing may need another step.",
        "Unsubscribe with the POST itself. Check that this reader gets no more mail.",
    ),
    PressProblem.GONE: (
        _REFUSED,
        "The server says that the address does not exist.",
        "Correct the address in List-Unsubscribe, and keep it valid for at least 30 days.",
    ),
    PressProblem.FORBIDDEN: (
        _REFUSED,
        "The server forbids the request. A firewall or a check for robots may cause this.",
        "Exempt this address from firewall rules and from checks for robots.",
    ),
    PressProblem.RATE_LIMIT: (
        _UNCLEAR,
        "The server limits the rate of requests.",
        "Exempt this address: mailbox providers send many of these requests from few hosts.",
    ),
    PressProblem.REJECTED: (
        _REFUSED,
        "The server rejects the request.",
        f"Accept a form with the body {ONE_CLICK} (RFC 8058 3.2).",
    ),
    PressProblem.SERVER_ERROR: (
        _REFUSED,
        "The server fails with an error.",
        "Look into the log of the web server for this request.",
    ),
}

_ACCEPTED = (
    "The server accepted the request. Whether the reader gets no more mail cannot be seen from"
    " outside."
)

_TAG = re.compile(r"<[^<>]*+>")
_PASSWORD = re.compile(r"type\s*+=\s*+[\"']?password", re.IGNORECASE)
_FORM = re.compile(r"<form[\s>]", re.IGNORECASE)
_CSRF = re.compile(
    r"csrf|xsrf|cross-site request|authenticity ?token|verification ?token|antiforgery"
    r"|token mismatch|page (?:has )?expired|(?:session|form) (?:has )?expired",
    re.IGNORECASE,
)
_LOGIN_PATH = re.compile(
    r"(?:^|[/._-])(?:log[-_]?in|sign[-_]?in|sso|saml|oauth2?|auth|authorize|session|account/login)"
    r"(?:$|[/._?-])",
    re.IGNORECASE,
)


def judge_press(answer: PressAnswer) -> Pressed:
    """Return the verdict about the response to a one-click unsubscribe request."""
    problem = _problem_of(answer)
    if problem is None:
        return Pressed(answer, PressVerdict.ACCEPTED, None, _ACCEPTED, "")
    verdict, explanation, fix = _TEXTS[problem]
    return Pressed(answer, verdict, problem, explanation, fix)


def not_offered(offer: OneClickOffer) -> Pressed:
    """Return the result for a mail without one-click unsubscribe."""
    verdict, explanation, _ = _TEXTS[PressProblem.NOT_OFFERED]
    told = explanation.removesuffix(".")
    return Pressed(
        PressAnswer(offer.url),
        verdict,
        PressProblem.NOT_OFFERED,
        f"{told}: it has {offer.lacks.value}.",
        offer.fix,
    )


def _problem_of(answer: PressAnswer) -> PressProblem | None:
    if answer.problem is not None:
        return PressProblem(answer.problem.value)
    status, page = answer.status or 0, answer.page
    for holds, problem in _RULES:
        if holds(status, answer, page):
            return problem
    return PressProblem.REJECTED


def _is_login(status: int, answer: PressAnswer, page: str) -> bool:
    if 300 <= status < 400:
        return _LOGIN_PATH.search(_place_of(answer.location)) is not None
    return status in (401, 407) or (status < 500 and _PASSWORD.search(page) is not None)


def _place_of(url: str) -> str:
    """Return the host and the path of a URL, or empty if it cannot be parsed."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.netloc}{parts.path}"


def _is_csrf(status: int, _: PressAnswer, page: str) -> bool:
    if status == 419:  # Laravel's status for it
        return True
    # Tags are left out: many layouts have a token in a meta element of every page.
    return status in (400, 403, 422) and _CSRF.search(_TAG.sub(" ", page)) is not None


_Rule = tuple[Callable[[int, PressAnswer, str], bool], PressProblem | None]

_RULES: tuple[_Rule, ...] = (
    (_is_login, PressProblem.LOGIN),
    (_is_csrf, PressProblem.CSRF),
    (lambda status, *_: 300 <= status < 400, PressProblem.REDIRECT),
    (lambda status, *_: status in (405, 501), PressProblem.METHOD),
    (lambda status, *_: status in (404, 410), PressProblem.GONE),
    (lambda status, *_: status in (403, 451), PressProblem.FORBIDDEN),
    (lambda status, *_: status == 429, PressProblem.RATE_LIMIT),
    (lambda status, *_: status >= 500, PressProblem.SERVER_ERROR),
    (
        lambda status, _, page: 200 <= status < 300 and _FORM.search(page) is not None,
        PressProblem.FORM,
    ),
    (lambda status, *_: 200 <= status < 300, None),
)
"""Conditions in their order, and the problem for each; otherwise the request is rejected."""
