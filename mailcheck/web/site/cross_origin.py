"""Access by web pages of other origins (CORS), for endpoints that read no cookies.

A page gets what any program gets: browsers send no cookies with these requests, and the endpoints
ignore them. The pages of the dashboard and the REST API send none of these headers.
"""

from collections.abc import Collection

from mailcheck.web.site.replies import Reply

PREFLIGHT = "OPTIONS"
"""Method of a preflight request."""

READABLE = {
    # With "*", browsers give a page no response to a request with cookies (Fetch 4.10).
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "WWW-Authenticate, Mcp-Session-Id, Retry-After",
}
"""Headers of a response that pages of other origins may read."""

REQUEST_HEADERS = (
    "Accept",
    "Authorization",
    "Content-Type",
    "Last-Event-ID",
    "MCP-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Session-Id",
)
"""Headers that these pages may send: those of MCP and of OAuth."""

PREFLIGHT_SECONDS = 600
"""Seconds for which browsers keep the answer to a preflight request."""


def preflight_reply(methods: Collection[str]) -> Reply:
    """Return the answer to a preflight request, which a browser sends before some requests."""
    headers = {
        **READABLE,
        "Access-Control-Allow-Methods": ", ".join(sorted(methods)),
        "Access-Control-Allow-Headers": ", ".join(REQUEST_HEADERS),
        "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
    }
    return Reply(200, b"", "text/plain; charset=utf-8", headers)
