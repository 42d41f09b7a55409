"""The web application of the dashboard: sign-in, form protection and error pages."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import cast

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.server import Request

from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.instants import SECOND, Instant
from mailcheck.web.dashboard.access_control import PageAccess, read_parameters
from mailcheck.web.dashboard.accounts.confirm_pages import ConfirmPages
from mailcheck.web.dashboard.cookies import VISITOR, write_cookie
from mailcheck.web.dashboard.rendering import Renderer, format_duration, redirect
from mailcheck.web.dashboard.visits import Page, Visit, local_path, prefers_html
from mailcheck.web.site.event_streams import Stream, send_stream
from mailcheck.web.site.failures import CONTENT_TOO_LARGE, ERRORS, NOT_SIGNED_IN, TOO_MANY_REQUESTS
from mailcheck.web.site.replies import (
    COMMON_HEADERS,
    Reply,
    compress,
    error_reply,
    reply_to_crash,
    reply_to_failure,
    set_failure,
    write_reply,
)
from mailcheck.web.site.requests import MAX_BODY, BoundedRequest
from mailcheck.web.site.routing import Path, reply_to_wrong_path, route_to

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
    """Dispatches each request to its page."""

    def __init__(
        self,
        access: PageAccess,
        confirm: ConfirmPages,
        renderer: Renderer,
        pages: Sequence[Page],
    ) -> None:
        self._access = access
        self._confirm = confirm
        self._renderer = renderer
        self._pages = {Path(page.method, page.path): page for page in pages}

    def resource(self) -> IResource:
        """Return the resource of all pages, which is mounted at the root, beside the API."""
        return route_to(self, self._pages)

    def serve(self, request: Request, asked: Path, values: dict[str, str]) -> Deferred[bytes]:
        """Answer a request for one of the pages."""
        return Deferred.fromCoroutine(self._serve(request, self._pages[asked], values))

    def reject_path(self, request: IRequest, failure: Failure) -> Deferred[bytes]:
        """Answer a request whose path or method belongs to no page."""

        async def refuse(visit: Visit) -> Reply:
            return reply_to_wrong_path(cast(Request, request), failure.value)

        page = Page("", "", refuse, is_open=True)
        return Deferred.fromCoroutine(self._serve(cast(Request, request), page, {}))

    async def as_page(self, request: Request, reply: Reply) -> Reply:
        """Render an error of a page that is not part of the dashboard, if a browser asked."""
        if not prefers_html(request):
            return reply
        visit = self._access.begin_visit(request, {})
        with suppress(ExpectedFailure):  # without the menu if the session cannot be looked up
            visit = await self._access.authenticate(visit)
        return self._as_page(visit, reply)

    async def _serve(self, request: Request, page: Page, path: dict[str, str]) -> bytes:
        visit = self._access.begin_visit(request, path)
        try:
            if not page.ignores_session:
                visit = await self._access.authenticate(visit)
            reply = await self._handle(visit, page)
        except CancelledError:
            return b""  # the client has disconnected
        except ExpectedFailure as failure:
            reply = reply_to_failure(failure)
        except Exception:
            reply = reply_to_crash(request)
        if isinstance(reply, Stream):
            return await send_stream(
                request, reply, COMMON_HEADERS, partial(reply_to_crash, request)
            )
        set_failure(request, reply)
        if reply.status in ERRORS and prefers_html(request):
            reply = self._as_page(visit, reply)
        if not reply.cookies and visit.form_secret.is_new:
            secret = visit.form_secret.secret
            cookie = write_cookie(VISITOR, secret, is_secure=visit.is_secure)
            reply = replace(reply, cookies=[cookie])
        return write_reply(request, compress(request, reply), {})

    async def _handle(self, visit: Visit, page: Page) -> Reply | Stream:
        request = visit.request
        if isinstance(request, BoundedRequest) and request.is_too_large:
            return error_reply(
                CONTENT_TOO_LARGE, f"the request body exceeds the maximum of {MAX_BODY} bytes"
            )
        if visit.person is None and not page.is_open:
            return _send_to_sign_in(visit)
        if page.needed_role is not None:
            visit.role.require(page.needed_role)
        # The page of a wrong path or method has no method and reads no parameters.
        if page.method:
            visit = read_parameters(visit)
        if page.needs_confirmation:
            asked = await self._confirm.ask(visit)
            if asked is not None:
                return asked
        return await page.handle(visit)

    def _as_page(self, visit: Visit, reply: Reply) -> Reply:
        """Render an error as a page, unless it is one already."""
        if reply.content_type.startswith("text/html"):
            return reply
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


def _send_to_sign_in(visit: Visit) -> Reply:
    """Redirect a person to the sign-in page, which leads back to the requested page."""
    if not prefers_html(visit.request):
        return error_reply(NOT_SIGNED_IN, "your session has ended: sign in again")
    wanted = local_path(visit.request.uri.decode("ascii", "replace"))
    if visit.request.method == b"POST" or wanted == "/":
        return redirect(visit, "/sign-in")
    return redirect(visit, "/sign-in", next=wanted)
