"""The API reference, and the calls that visitors can try on it."""

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from markupsafe import Markup
from msgspec import Struct, field

from mailcheck.api.requests.parsing import read_query
from mailcheck.api.urls import API_PAGE_PATH, API_PATH, PublicUrls
from mailcheck.core.errors import InvalidParameter, MessageNotFound
from mailcheck.core.filters import MessageFilter
from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.api.description import DOCUMENT_PATH, MAX_CACHED, ApiDescription
from mailcheck.web.dashboard.api_reference.view import (
    list_limits,
    view_groups,
    view_prose,
    view_responses,
    view_schemas,
)
from mailcheck.web.dashboard.live import live_caller
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.replies import Reply, json_reply

ANSWERS_PATH = "/api/answers"

EXCLUDED_PATHS = ("/wait", "/events", "/tools/", "/raw", "/html", "/attachments/")
"""Parts of paths whose calls wait, send requests to other hosts, or do not return JSON."""

SHORT_LIST_QUERY = b"limit=3"
"""Query that keeps lists short on the page."""


def can_be_tried(route: Route[Any]) -> bool:
    """Return whether a call can be tried: it only reads data and returns JSON at once."""
    return route.method == "GET" and not any(part in route.path for part in EXCLUDED_PATHS)


class AnswerPages:
    """Runs API calls for the signed-in account."""

    def __init__(self, routes: Sequence[Route[Any]], inbox: ReadInbox, tests: ManageTests) -> None:
        self._routes = {one.operation.id: one for one in routes if can_be_tried(one)}
        self._inbox = inbox
        self._tests = tests

    @property
    def shown(self) -> frozenset[str]:
        """Names of the calls that can be tried."""
        return frozenset(self._routes)

    def pages(self) -> list[Page]:
        """List the page."""
        return [Page("GET", f"{ANSWERS_PATH}/<operation_id>", self.answer)]

    async def answer(self, visit: Visit) -> Reply:
        """GET /api/answers/{operationId}: the request line, the status, and the response.

        :raises InvalidParameter: the call does not exist or cannot be tried.
        :raises MessageNotFound: the account has no message or test for the call yet.
        """
        route = self._routes.get(visit.path["operation_id"])
        if route is None:
            raise InvalidParameter("operation_id", "this call cannot be tried here")
        path = await self._fill_in(route, visit)
        query = SHORT_LIST_QUERY if "limit" in route.operation.query_names else b""
        call = Call(
            live_caller(visit.account),
            visit.asked_at,
            read_query(route.operation.request, query),
            path,
            "application/json",
            visit.urls,
        )
        reply = await route.handle(call)
        if isinstance(reply, Stream):
            raise TypeError(f"{route.path} answers with a stream")
        called = route.path
        for name, value in path.items():
            called = called.replace(f"<{name}>", value)
        called = f"GET {called}{'?' if query else ''}{query.decode('ascii')}"
        answer = json.loads(reply.body)
        return json_reply({"called": called, "status": reply.status, "answer": answer})

    async def _fill_in(self, route: Route[Any], visit: Visit) -> dict[str, str]:
        """Return the newest message or the newest test for a path that requires one."""
        account_id = visit.account.id
        if "<message_id>" in route.path:
            found = await self._inbox.page(account_id, MessageFilter(), 1, 1)
            for one in found.messages:
                return {"message_id": one.summary.id}
            raise MessageNotFound("your inbox is empty: send a mail and try again")
        if "<test_id>" in route.path:
            for listed in (await self._tests.page(account_id, 1, 1)).entries:
                return {"test_id": listed.test.id}
            raise MessageNotFound("you have no deliverability test: create one and try again")
        return {}


class ApiPages(Struct, frozen=True):
    """The page of the API reference. It is open to all.

    :param answered: names of the calls that can be tried with the data of the account.
    """

    _description: ApiDescription
    _answered: frozenset[str]
    _renderer: Renderer
    _calls: dict[PublicUrls, Markup] = field(default_factory=dict)

    def pages(self) -> list[Page]:
        """List the pages."""
        return [Page("GET", API_PAGE_PATH, self.show, is_open=True)]

    async def show(self, visit: Visit) -> Reply:
        """GET /api."""
        urls = visit.urls
        document = self._description.document(urls)
        if urls not in self._calls:  # rendering is slow, and the result the same for all visitors
            if len(self._calls) >= MAX_CACHED:
                self._calls.clear()
            self._calls[urls] = self._renderer.part(
                "api_calls.html",
                groups=view_groups(document),
                shared=view_responses(document),
                schemas=view_schemas(document),
                limits=list_limits(document),
                answered=self._answered,
                answers_path=urlsplit(urls.public_url).path + ANSWERS_PATH,
            )
        return self._renderer.page(
            visit,
            "api.html",
            prose=view_prose(document),
            base_url=urls.base_url,
            document_url=visit.link(API_PATH + DOCUMENT_PATH),
            calls=self._calls[urls],
        )
