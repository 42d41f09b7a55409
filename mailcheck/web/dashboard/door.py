"""The door of the dashboard: sign-in, form protection and error pages."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus

from msgspec.structs import replace
from twisted.web.server import Request

from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.instants import SECOND, Instant
from mailcheck.web.dashboard.access_control import PageAccess, read_parameters
from mailcheck.web.dashboard.cookies import VISITOR, write_cookie
from mailcheck.web.dashboard.rendering import Renderer, format_duration, redirect
from mailcheck.web.dashboard.visits import Page, Visit, local_path, prefers_html
from mailcheck.web.site.application import (
    Call,
    Door,
    OpenDoor,
    Route,
    admit_anyone,
    read_nothing,
)
from mailcheck.web.site.bodies import FORM
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.failures import (
    ERRORS,
    INTERNAL_SERVER_ERROR,
    NOT_SIGNED_IN,
    TOO_MANY_REQUESTS,
)
from mailcheck.web.site.replies import Reply, compress, error_reply, set_failure, write_error

TITLES: Mapping[int, str] = {
    400: "Invalid request",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Not possible now",
    413: "Request too large",
    429: "Too many requests",
    500: "Internal error",
    503: "Temporarily unavailable",
}

KEPT_HEADERS = ("Allow", "Retry-After")
"""Headers of an error that its page keeps."""


class Dashboard:
    """Answers the requests of people in browsers, and of the scripts of the pages."""

    def __init__(
        self,
        access: PageAccess,
        confirm: Callable[[Visit], Awaitable[Reply | None]],
        renderer: Renderer,
        pages: Sequence[Page],
    ) -> None:
        """``confirm`` returns the page that asks who the person is, if that is needed."""
        self._access = access
        self._confirm = confirm
        self._renderer = renderer
        self._pages = pages

    def door(self) -> OpenDoor:
        """Return the door of all pages. Each page looks up the session itself."""
        routes = [
            Route(
                page.method,
                page.path,
                partial(self._show, page),
                type(None),
                page.cost,
                reads=(FORM,),
            )
            for page in self._pages
        ]
        door = Door("dashboard", "", "", routes, read_nothing, write_error)
        return OpenDoor(door, admit_anyone, finish=self._finish)

    async def as_page(self, request: Request, reply: Reply) -> Reply:
        """Render an error as a page, if a browser asked and it is not one already."""
        if not prefers_html(request) or reply.content_type.startswith("text/html"):
            return reply
        visit = self._access.begin_visit(request, {})
        # Without the menu if the session cannot be looked up, or if that may be what crashed.
        if reply.status != INTERNAL_SERVER_ERROR:
            with suppress(ExpectedFailure):
                visit = await self._access.authenticate(visit)
        return _with_cookie(visit, self._as_page(visit, reply))

    async def _finish(self, request: Request, reply: Reply) -> Reply:
        set_failure(request, reply)
        if reply.status in ERRORS:
            reply = await self.as_page(request, reply)
        return compress(request, reply)

    async def _show(self, page: Page, call: Call[None]) -> Reply | Stream:
        visit = self._access.begin_visit(call.http, call.path)
        if not page.ignores_session:
            visit = await self._access.authenticate(visit)
        reply = await self._handle(visit, page, call.body)
        return reply if isinstance(reply, Stream) else _with_cookie(visit, reply)

    async def _handle(self, visit: Visit, page: Page, body: bytes) -> Reply | Stream:
        if visit.person is None and not page.is_open:
            return _send_to_sign_in(visit)
        if page.needed_role is not None:
            visit.role.require(page.needed_role)
        visit = read_parameters(visit, body)
        if page.needs_confirmation:
            asked = await self._confirm(visit)
            if asked is not None:
                return asked
        return await page.handle(visit)

    def _as_page(self, visit: Visit, reply: Reply) -> Reply:
        error = json.loads(reply.body)
        kept = {name: value for name, value in reply.headers.items() if name in KEPT_HEADERS}
        seconds = int(kept.get("Retry-After", 0)) if reply.status == TOO_MANY_REQUESTS else 0
        return self._renderer.page(
            visit,
            "error.html",
            status=reply.status,
            headers=kept,
            title=TITLES.get(reply.status) or HTTPStatus(reply.status).phrase,
            problem=error["error"],
            reference=error.get("reference"),
            again_in=format_duration(seconds) if seconds else "",
            again_at=Instant(visit.asked_at + seconds * SECOND),
        )


def _with_cookie(visit: Visit, reply: Reply) -> Reply:
    """Return a reply with the cookie that a new form token belongs to."""
    if reply.cookies or not visit.form_secret.is_new:
        return reply
    cookie = write_cookie(VISITOR, visit.form_secret.secret, is_secure=visit.is_secure)
    return replace(reply, cookies=[cookie])


def _send_to_sign_in(visit: Visit) -> Reply:
    """Redirect a person to the sign-in page, which leads back to the requested page."""
    if not prefers_html(visit.request):
        return error_reply(NOT_SIGNED_IN, "your session has ended: sign in again")
    wanted = local_path(visit.request.uri.decode("ascii", "replace"))
    if visit.request.method == b"POST" or wanted == "/":
        return redirect(visit, "/sign-in")
    return redirect(visit, "/sign-in", next=wanted)
