"""Pages from templates: escaped, complete, and with the policy that keeps a browser from more."""

from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mailcheck.core.instants import Instant, format_instant
from mailcheck.web.dashboard.navigation import MENU, is_current
from mailcheck.web.dashboard.notices import NOTICES
from mailcheck.web.dashboard.static_files import StaticFiles
from mailcheck.web.dashboard.visits import Visit
from mailcheck.web.site.replies import Reply

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)

PAGE_HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Robots-Tag": "noindex, nofollow",
}

FORM_TOKEN = "form-token"  # noqa: S105
"""Name of the field, and of the meta element, that holds the token."""


@cache
def _templates() -> Environment:
    """Make what compiles the templates: each when it is first filled in, once in a process."""
    templates = Environment(
        loader=PackageLoader("mailcheck.web.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.filters["moment"] = write_moment
    templates.filters["thousands"] = "{:,}".format
    return templates


class Renderer:
    """Fills templates in."""

    def __init__(self, static: StaticFiles) -> None:
        self._static = static
        self._templates = _templates()

    def part(self, template: str, **values: Any) -> Markup:
        """Render a part of a page that is the same for every visitor."""
        return Markup(self._templates.get_template(template).render(**values))  # noqa: S704

    def page(
        self,
        visit: Visit,
        template: str,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> Reply:
        """Render a page; in its template are `visit`, `link`, `static` and `form_token` too."""
        path = "/" + "/".join(
            part.decode("utf-8", "replace") for part in visit.request.prepath or ()
        )
        text = self._templates.get_template(template).render(
            visit=visit,
            owner=visit.owner,
            link=visit.link,
            static=lambda name: visit.link(self._static.path(name)),
            form_token=lambda: _field(visit.form_secret.token()),
            bare_form_token=visit.form_secret.token,
            menu=[(title, entry, is_current(entry, path)) for title, entry in MENU],
            notice=NOTICES.get(visit.query.text("done") or ""),
            **values,
        )
        body = text.encode("utf-8", "replace")
        return Reply(status, body, "text/html; charset=utf-8", {**PAGE_HEADERS, **(headers or {})})


def redirect(
    visit: Visit, path: str, *, headers: Mapping[str, str] | None = None, **query: str
) -> Reply:
    """Send a browser to a page of the dashboard by GET (RFC 9110 15.4.4)."""
    address = visit.link(path) + (f"?{urlencode(query)}" if query else "")
    return Reply(303, b"", "text/plain; charset=utf-8", {"Location": address, **(headers or {})})


def write_moment(instant: Instant) -> Markup:
    """Write a moment for people, in UTC; the script turns it into their own time."""
    iso = format_instant(instant)
    text = f"{iso[:10]} {iso[11:16]} UTC"
    return Markup('<time datetime="{}">{}</time>').format(iso, text)


def _field(token: str) -> Markup:
    return Markup('<input type="hidden" name="{}" value="{}">').format(FORM_TOKEN, token)
