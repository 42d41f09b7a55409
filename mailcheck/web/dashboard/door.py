"""The door of the dashboard: sign-in, form protection and error pages."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus

from msgspec.structs import replace
from twisted.web.server import Request

from mailcheck.core.errors import ExpectedFailure, FormExpired, PageNotFound
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.store.accounts.project_store import Held
from mailcheck.web.dashboard.access_control import PageAccess, read_parameters
from mailcheck.web.dashboard.addresses import ROUTE, address_in, segments_of, split_address
from mailcheck.web.dashboard.cookies import NEAREST, SESSION_AGE, VISITOR, write_cookie
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
    FORBIDDEN,
    INTERNAL_SERVER_ERROR,
    NOT_FOUND,
    NOT_SIGNED_IN,
    TOO_MANY_REQUESTS,
    status_of,
)
from mailcheck.web.site.forms import MULTIPART
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

NO_PROJECT = (
    "you have no project with this address: it was deleted, is disabled, or you are not a member"
)

ELSEWHERE = frozenset({FORBIDDEN, NOT_FOUND})
"""Statuses of failures after which the object of a path is looked for in other projects."""

HELD: Mapping[str, Held] = {
    "message_id": Held.MESSAGE,
    "test_id": Held.TEST,
    "report_id": Held.REPORT,
    "webhook_id": Held.WEBHOOK,
    "watch_id": Held.WATCH,
    "key_id": Held.KEY,
    "route_id": Held.ROUTE,
    "mail_id": Held.INBOUND_MAIL,
}
"""The path variables that name an object of a project."""

FindHolder = Callable[[Held, str], Awaitable[AccountId | None]]
"""Returns the account that an object belongs to."""

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
        find_holder: FindHolder,
    ) -> None:
        """``confirm`` returns the page that asks who the person is, if that is needed."""
        self._access = access
        self._confirm = confirm
        self._renderer = renderer
        self._find_holder = find_holder
        self._outside = [page for page in pages if not page.is_of_project]
        self._of_project = [page for page in pages if page.is_of_project]
        self._in_projects = {(page.method, page.path) for page in self._of_project}
        self._segments = segments_of(page.path for page in self._of_project)

    def door(self) -> OpenDoor:
        """Return the door of all pages. Each page looks up the session itself.

        A page of a project has a route with the project. The same path without one is the address
        of an open page for visitors, or leads to the page in a project.
        """
        routes = [
            *(self._route(page, page.path, self._show) for page in self._outside),
            *(self._route(page, ROUTE + page.path, self._show) for page in self._of_project),
        ]
        known = {(page.method, page.path) for page in self._outside}
        for page in self._of_project:
            if (page.method, page.path) not in known:
                routes.append(self._route(page, page.path, self._lead))
            if page.path == "/":
                routes.append(self._route(page, ROUTE, self._lead))
        door = Door("dashboard", "", "", routes, read_nothing, write_error=write_error)
        return OpenDoor(door, admit_anyone, finish=self._finish)

    def _route(
        self, page: Page, path: str, answer: Callable[[Page, Call[None]], Awaitable[Reply | Stream]]
    ) -> Route[None]:
        handle = partial(answer, page)
        reads = (FORM, MULTIPART) if page.takes_files else (FORM,)
        return Route(page.method, path, handle, type(None), page.cost, reads=reads)

    async def as_page(self, request: Request, reply: Reply) -> Reply:
        """Render an error as a page, if a browser asked and it is not one already."""
        if not prefers_html(request) or reply.content_type.startswith("text/html"):
            return reply
        visit = self._access.begin_visit(request, {}, self._segments)
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
        visit = self._access.begin_visit(call.http, call.path, self._segments)
        if not page.guard.ignores_session:
            visit = await self._access.authenticate(visit)
        reply = await self._handle(visit, page, call.body)
        return reply if isinstance(reply, Stream) else _with_cookie(visit, reply)

    async def _handle(self, visit: Visit, page: Page, body: bytes) -> Reply | Stream:
        """Answer a request to a page: the URL names the project, which gives the rights."""
        if visit.person is None and not page.guard.is_open:
            return _send_to_sign_in(visit)
        is_in_projects = (page.method, page.path) in self._in_projects
        if page.guard.is_open and visit.person is not None and is_in_projects:
            return await self._lead_to_project(visit)
        try:
            if page.is_of_project:
                _require_project(visit)
            return await self._handle_allowed(visit, page, body)
        except ExpectedFailure as failure:
            if status_of(failure) not in ELSEWHERE or page.method != "GET":
                raise
            holder = await self._holder(visit)
            if not holder or holder == visit.project:
                raise
            return _lead(visit, holder)

    async def _handle_allowed(self, visit: Visit, page: Page, body: bytes) -> Reply | Stream:
        if page.needed_role is not None:
            visit.role.require(page.needed_role)
        visit = read_parameters(visit, body)
        if page.guard.needs_confirmation:
            asked = await self._confirm(visit)
            if asked is not None:
                return asked
        try:
            return await page.handle(visit)
        except ExpectedFailure as failure:
            if page.form is None:
                raise
            return await page.form(visit, failure)

    async def _lead(self, page: Page, call: Call[None]) -> Reply:
        """Answer a request to a page of a project whose URL names no project.

        :raises FormExpired: it is a form, which must name the project that it acts on.
        """
        visit = self._access.begin_visit(call.http, call.path, self._segments)
        visit = await self._access.authenticate(visit)
        if visit.person is None:
            return _send_to_sign_in(visit)
        if page.method != "GET":
            raise FormExpired(
                "the address of the form names no project: open the page again and submit it there"
            )
        if split_address(call.http.path.decode("ascii", "replace"))[0]:
            _require_project(visit)
        return await self._lead_to_project(visit)

    async def _lead_to_project(self, visit: Visit) -> Reply:
        """Redirect to the page in the project that holds its object, or in the nearest one."""
        return _lead(visit, visit.project or await self._holder(visit) or visit.nearest)

    async def _holder(self, visit: Visit) -> str:
        """Return the project of the person that holds the object of the path; empty if none."""
        for name, kind in HELD.items():
            if name in visit.path:
                holder = await self._find_holder(kind, visit.path[name])
                return visit.own_project(holder or "")
        return ""

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


def _require_project(visit: Visit) -> None:
    if not visit.project:
        raise PageNotFound(NO_PROJECT)


def _lead(visit: Visit, project: str) -> Reply:
    """Redirect to the same page in a project."""
    wanted = local_path(visit.request.uri.decode("ascii", "replace"))
    return redirect(visit, address_in(project, split_address(wanted)[1] or "/"))


def _with_cookie(visit: Visit, reply: Reply) -> Reply:
    """Return a reply with the cookies that a new form token and the shown project belong to."""
    cookies = []
    if visit.form_secret.is_new:
        secret = visit.form_secret.secret
        cookies.append(write_cookie(VISITOR, secret, is_secure=visit.is_secure))
    if visit.project and visit.project != visit.nearest and visit.request.method == b"GET":
        cookies.append(
            write_cookie(NEAREST, visit.project, is_secure=visit.is_secure, max_age=SESSION_AGE)
        )
    return reply if reply.cookies or not cookies else replace(reply, cookies=cookies)


def _send_to_sign_in(visit: Visit) -> Reply:
    """Redirect a person to the sign-in page, which leads back to the requested page."""
    if not prefers_html(visit.request):
        return error_reply(NOT_SIGNED_IN, "your session has ended: sign in again")
    wanted = local_path(visit.request.uri.decode("ascii", "replace"))
    if visit.request.method == b"POST" or wanted == "/":
        return redirect(visit, "/sign-in")
    return redirect(visit, "/sign-in", next=wanted)
