"""The API reference, and the calls that visitors can try on it."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from markupsafe import Markup
from msgspec import Struct, field

from mailcheck.api.urls import API_PAGE_PATH, PublicUrls
from mailcheck.core.errors import InvalidParameter, PageNotFound
from mailcheck.core.filters import MessageFilter
from mailcheck.core.projects import Role
from mailcheck.core.rights import NAMED_ONLY, Scope
from mailcheck.operations.accounts.authenticate import CheckBudget
from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.web.api.calls import PATH_PARAMETERS, Route
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
from mailcheck.web.dashboard.visits import ANYONE, MEMBERS, READERS, Page, Visit, prefers_html
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.replies import Reply, json_reply

ANSWERS_PATH = "/api/answers"

EXCLUDED_PATHS = ("/wait", "/events", "/faults", "/import")
"""Parts of paths whose calls take long, act on the key of their caller, or need a file."""

WEBHOOKS = "/inbox/webhooks"
"""Beginning of paths about webhooks, which readers do not see on pages either."""

PATH_FIELD, QUERY_FIELD, BODY_FIELD = "path-", "query-", "body"
"""Names of form fields: the first two are followed by the name of the parameter."""

LONGEST_ANSWER = 100_000
"""Maximum number of characters of a response that is shown."""

_VARIABLE = re.compile(r"<(\w+)>")


def can_be_tried(route: Route[Any]) -> bool:
    """Return whether a call can be tried.

    Calls of administrators are for keys that name their scopes. Pages confirm such changes, and
    those of webhooks and inbound routes, which send mail elsewhere.
    """
    is_excluded = any(part in route.path for part in EXCLUDED_PATHS)
    changes_webhooks = route.method != "GET" and Scope.WEBHOOKS in route.operation.scopes
    is_of_administrators = bool(NAMED_ONLY.intersection(route.operation.scopes))
    return not (is_excluded or changes_webhooks or is_of_administrators)


def needed_role(route: Route[Any]) -> Role:
    """Return the role that a visitor needs for a call."""
    if route.method != "GET":
        return Role.OWNER
    return Role.EDITOR if route.path.startswith(WEBHOOKS) else Role.READER


def is_check(route: Route[Any]) -> bool:
    """Return whether a call counts as a check: it changes data or sends requests to others."""
    return route.method != "GET" or "/tools/" in route.path


class Tried(Struct, frozen=True):
    """A call that was tried: its request line, the status, and the response as text."""

    called: str
    status: int
    answer: str


class AnswerPages(Struct, frozen=True):
    """Runs API calls for the signed-in account, within its session and its checks.

    :param routes: the calls that can be tried, by their names.
    """

    _routes: Mapping[str, Route[Any]]
    _inbox: ReadInbox
    _tests: ManageTests
    _budget: CheckBudget
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the page."""
        path = f"{ANSWERS_PATH}/<operation_id>"
        return [Page("POST", path, self.answer, costs.ANY_OPERATION, READERS)]

    async def answer(self, visit: Visit) -> Reply:
        """POST /api/answers/{operationId}: path-NAME, query-NAME, body.

        The form token protects the call like any other form. A missing id in the path is that of
        the newest message or test.

        :raises InvalidParameter: the call does not exist, cannot be tried, or has no valid field.
        :raises NotPermitted: the role of the visitor does not permit the call.
        """
        route = self._routes.get(visit.path["operation_id"])
        if route is None:
            raise InvalidParameter("operation_id", "this call cannot be tried here")
        visit.role.require(needed_role(route))
        if is_check(route):
            await self._budget.take(visit.account.id)
        tried = await self._run(route, visit)
        if not prefers_html(visit.request):
            shown = {"called": tried.called, "status": tried.status, "answer": tried.answer}
            return json_reply(shown)
        return self._renderer.page(
            visit, "api_answer.html", tried=tried, back_path=f"{API_PAGE_PATH}#{route.operation.id}"
        )

    async def _run(self, route: Route[Any], visit: Visit) -> Tried:
        path = {
            name: visit.form.text(PATH_FIELD + PATH_PARAMETERS[name].name)
            or await self._newest(name, visit)
            for name in _VARIABLE.findall(route.path)
        }
        fields = {
            name: visit.form.text(QUERY_FIELD + name) or "" for name in route.operation.query_names
        }
        query = urlencode({name: value for name, value in fields.items() if value})
        body = (visit.form.text(BODY_FIELD) or "").encode() if route.operation.reads_body else b""
        shown = _VARIABLE.sub(lambda found: quote(path[found[1]], safe=""), route.path)
        called = f"{route.method} {shown}{'?' if query else ''}{query}"
        call = Call(
            live_caller(visit),
            visit.asked_at,
            route.operation.read(query.encode(), body),
            path,
            {"accept": "application/json"},
            body=body,
            urls=visit.urls,
        )
        reply = await route.handle(call)
        if isinstance(reply, Stream):
            raise TypeError(f"{route.path} answers with a stream")
        return Tried(called, reply.status, _text_of(reply))

    async def _newest(self, name: str, visit: Visit) -> str:
        """Return the id of the newest message or test, for a call without one."""
        account_id = visit.account.id
        if name == "message_id":
            found = await self._inbox.page(account_id, MessageFilter(), 1, 1)
            for message in found.messages:
                return message.summary.id
        if name == "test_id":
            for listed in (await self._tests.page(account_id, 1, 1)).entries:
                return listed.test.id
        parameter = PATH_PARAMETERS[name].name
        raise InvalidParameter(parameter, f"enter the {parameter}: there is none to take instead")


def _text_of(reply: Reply) -> str:
    """Return the response as text: JSON with indentation, and the beginning of anything else."""
    if reply.content_type.startswith("application/json"):
        text = json.dumps(json.loads(reply.body), indent=2, ensure_ascii=False)
    else:
        text = f"{reply.content_type}\n\n{reply.body.decode('utf-8', 'replace')}"
    rest = "" if len(text) <= LONGEST_ANSWER else "\n[Only the beginning is shown.]"
    return text[:LONGEST_ANSWER] + rest


class ApiPages(Struct, frozen=True):
    """The pages of the API reference: one for each group of operations. They are open to all.

    :param answered: names of the calls that can be tried with the data of the account.
    """

    _description: ApiDescription
    _answered: frozenset[str]
    _renderer: Renderer
    _parts: dict[PublicUrls, Mapping[str, Markup]] = field(default_factory=dict)

    def pages(self) -> list[Page]:
        """List the pages: those of visitors, and those on which calls can be tried."""
        pages = {API_PAGE_PATH: self.overview, f"{API_PAGE_PATH}/<group>": self.show}
        return [
            Page("GET", path, handle, costs.FREE, guard)
            for path, handle in pages.items()
            for guard in (ANYONE, MEMBERS)
        ]

    async def overview(self, visit: Visit) -> Reply:
        """GET /api: about the API as a whole, and a list of all operations."""
        return self._page(visit, "")

    async def show(self, visit: Visit) -> Reply:
        """GET /api/<group>: the operations of a group, the shared responses, or all types."""
        return self._page(visit, visit.path["group"])

    def _page(self, visit: Visit, group: str) -> Reply:
        urls = visit.urls
        document = self._description.document(urls)
        if urls not in self._parts:  # rendering is slow, and the result the same for all visitors
            if len(self._parts) >= MAX_CACHED:
                self._parts.clear()
            self._parts[urls] = self._render(document, urls)
        part = self._parts[urls].get(group)
        if part is None:
            raise PageNotFound(f"the API reference has no page {group[:100]}: see {API_PAGE_PATH}")
        return self._renderer.page(
            visit,
            "api.html",
            group=group,
            groups=view_groups(document),
            prose=view_prose(document),
            base_url=urls.base_url,
            document_url=urlsplit(urls.base_url).path + DOCUMENT_PATH,
            part=part,
        )

    def _render(self, document: Mapping[str, Any], urls: PublicUrls) -> Mapping[str, Markup]:
        """Render the main part of each page, by the name of its group."""
        groups = view_groups(document)
        common = {
            "groups": groups,
            # Relative, so that the parts are the same for all projects.
            "base": API_PAGE_PATH.removeprefix("/"),
            "answers_path": ANSWERS_PATH.removeprefix(f"{API_PAGE_PATH}/"),
            "answered": self._answered,
        }
        return {
            "": self._renderer.part("api_contents.html", **common),
            **{
                group.anchor: self._renderer.part("api_calls.html", group=group, **common)
                for group in groups
            },
            "responses": self._renderer.part(
                "api_responses.html", shared=view_responses(document), limits=list_limits(document)
            ),
            "types": self._renderer.part("api_types.html", schemas=view_schemas(document)),
        }
