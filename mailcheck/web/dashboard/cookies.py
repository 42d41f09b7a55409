"""Cookies, and the theme that one of them holds."""

import re

from twisted.web.server import Request

from mailcheck.web.dashboard.visits import Visit
from mailcheck.web.site.requests import header_values

SESSION, VISITOR, DEVICE = "mailcheck-session", "mailcheck-visitor", "mailcheck-device"
THEME = "mailcheck-theme"

SESSION_AGE = 30 * 24 * 3600
"""Seconds that a browser keeps the session; the store ends it sooner when it is not used."""

DEVICE_AGE = 365 * 24 * 3600
"""Seconds that a browser is known that has signed in; it is no session, and opens nothing."""

THEME_AGE = DEVICE_AGE

_SECRET = re.compile(r"[a-z2-7]{16,64}")
_WORD = re.compile(r"[a-z]{1,16}")


def read_cookie(request: Request, name: str, *, is_secure: bool) -> str:
    """Give what a cookie holds; nothing when it is missing, doubled or none of ours."""
    wanted = _full_name(name, is_secure=is_secure)
    kind = _WORD if name == THEME else _SECRET
    found = {
        value
        for line in header_values(request, b"Cookie")
        for pair in line.split(";")
        for given, _, value in [pair.strip().partition("=")]
        if given == wanted and kind.fullmatch(value)
    }
    return found.pop() if len(found) == 1 else ""


def write_cookie(name: str, value: str, *, is_secure: bool, max_age: int | None = None) -> str:
    """Write a Set-Cookie field; without a value the cookie is taken away.

    Over HTTPS the name begins with ``__Host-``: no other host or path can set it.
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
"""What can be chosen, and how it is called."""


def theme_of(visit: Visit) -> str:
    """Give what was chosen in this browser; the system's where nothing was."""
    chosen = read_cookie(visit.request, THEME, is_secure=visit.is_secure)
    return chosen if chosen in THEMES else SYSTEM
