"""Cookies, and the theme that one of them holds."""

import re

from twisted.web.server import Request

from mailcheck.web.dashboard.visits import Visit
from mailcheck.web.site.requests import header_values

SESSION, VISITOR, DEVICE = "mailcheck-session", "mailcheck-visitor", "mailcheck-device"
THEME = "mailcheck-theme"

NEAREST = "mailcheck-project"
"""The project that the browser showed last. Addresses without a project lead to it; it grants no
access, and no form acts on it."""

COMPANY = "mailcheck-company-"
"""Beginning of the names for the secrets of sign-ins that are under way at the company.

Each sign-in has a cookie of its own, so several tabs do not disturb each other.
"""

COMPANY_AGE = 10 * 60

MAX_COMPANY = 5
"""Maximum number of these cookies in a browser."""

SESSION_AGE = 30 * 24 * 3600
"""Seconds that a browser keeps the session. The store ends an unused session sooner."""

DEVICE_AGE = 365 * 24 * 3600
"""Seconds that a browser is recognized after signing in. The cookie grants no access."""

THEME_AGE = DEVICE_AGE

_SECRET = re.compile(r"[a-z2-7]{16,64}")
_KINDS = {THEME: re.compile(r"[a-z]{1,16}"), NEAREST: re.compile(r"[a-z2-7]{1,64}")}
_NAME = re.compile(r"[a-z0-9-]{1,64}")


def read_cookie(request: Request, name: str, *, is_secure: bool) -> str:
    """Return the value of a cookie, or ``""`` if it is missing, repeated or malformed."""
    wanted = _full_name(name, is_secure=is_secure)
    kind = _KINDS.get(name, _SECRET)
    found = {value for given, value in _sent(request) if given == wanted and kind.fullmatch(value)}
    return found.pop() if len(found) == 1 else ""


def names_of_cookies(request: Request, beginning: str, *, is_secure: bool) -> list[str]:
    """Return the names of the cookies with this beginning, the oldest first (RFC 6265 5.4)."""
    prefix = _full_name("", is_secure=is_secure)
    wanted = prefix + beginning
    found = [given.removeprefix(prefix) for given, _ in _sent(request) if given.startswith(wanted)]
    return list(dict.fromkeys(name for name in found if _NAME.fullmatch(name)))


def _sent(request: Request) -> list[tuple[str, str]]:
    """Return the names and values of the cookies of a request."""
    pairs = [
        pair.strip().partition("=")
        for line in header_values(request, b"Cookie")
        for pair in line.split(";")
    ]
    return [(name, value) for name, _, value in pairs]


def write_cookie(name: str, value: str, *, is_secure: bool, max_age: int | None = None) -> str:
    """Return a Set-Cookie field. Without a value it deletes the cookie.

    Over HTTPS the name begins with ``__Host-``: other hosts and paths cannot set it.
    """
    parts = [f"{_full_name(name, is_secure=is_secure)}={value}", "Path=/", "HttpOnly"]
    parts.append("SameSite=Lax")
    if is_secure:
        parts.append("Secure")
    if max_age is not None or not value:
        parts.append(f"Max-Age={max_age if value else 0}")
    return "; ".join(parts)


def _full_name(name: str, *, is_secure: bool) -> str:
    return f"__Host-{name}" if is_secure else name


SYSTEM = "system"
THEMES = {SYSTEM: "System", "light": "Light", "dark": "Dark"}
"""Themes by name, with their labels."""


def theme_of(visit: Visit) -> str:
    """Return the theme chosen in this browser, or `SYSTEM`."""
    chosen = read_cookie(visit.request, THEME, is_secure=visit.is_secure)
    return chosen if chosen in THEMES else SYSTEM
