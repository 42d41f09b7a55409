"""The two cookies of the dashboard: whose session it is, and what form tokens derive from."""

import re

from twisted.web.server import Request

from mailcheck.web.site.request_headers import header_values

SESSION, VISITOR = "mailcheck-session", "mailcheck-visitor"

SESSION_AGE = 30 * 24 * 3600
"""Seconds that a browser keeps the session; the store ends it sooner when it is not used."""

_SECRET = re.compile(r"[a-z2-7]{16,64}")


def read_cookie(request: Request, name: str, *, is_secure: bool) -> str:
    """Give what a cookie holds; nothing when it is missing, doubled or none of ours."""
    wanted = _full_name(name, is_secure=is_secure)
    found = {
        value
        for line in header_values(request, b"Cookie")
        for pair in line.split(";")
        for given, _, value in [pair.strip().partition("=")]
        if given == wanted and _SECRET.fullmatch(value)
    }
    return found.pop() if len(found) == 1 else ""


def write_cookie(name: str, secret: str, *, is_secure: bool, max_age: int | None = None) -> str:
    """Write a Set-Cookie field; without a secret the cookie is taken away.

    Over HTTPS the name begins with ``__Host-``: no other host or path can set it.
    """
    parts = [f"{_full_name(name, is_secure=is_secure)}={secret}", "Path=/", "HttpOnly"]
    parts.append("SameSite=Lax")
    if is_secure:
        parts.append("Secure")
    if max_age is not None or not secret:
        parts.append(f"Max-Age={max_age if secret else 0}")
    return "; ".join(parts)


def _full_name(name: str, *, is_secure: bool) -> str:
    return f"__Host-{name}" if is_secure else name
