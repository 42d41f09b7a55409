"""The routes of mail into applications (docs/reference/contract.md)."""

from typing import Any

from msgspec import Struct

from mailcheck.api.inbox.inbound import (
    DeletedInboundRoute,
    InboundAttempts,
    InboundRoute,
    InboundRoutes,
    InboundRouteWithSecret,
    SentInboundMail,
    render_attempts,
    render_created_route,
    render_route,
    render_routes,
    render_sent,
)
from mailcheck.api.openapi.operations import Link, Operation, error_response, json_response
from mailcheck.api.requests.inbound import ListAttempts, MailToSend, RouteChange, RouteToCreate
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.api.urls import INBOUND_PATH
from mailcheck.core.inbound import LATE_BY, MOST_A_LOOP, MOST_ROUTES, InboundFormat
from mailcheck.core.instants import SECOND
from mailcheck.core.rights import Scope
from mailcheck.operations.concurrency import PacedQueue
from mailcheck.operations.inbound.all_operations import InboundOperations
from mailcheck.store.inbound_store import InboundFilter
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply, json_reply, large_json_reply

_TAG = "Mail into applications"

_LINKS = {
    "send": Link("sendInbound", {"routeId": "$response.body#/id"}, "send a mail to it"),
    "show": Link("getInboundRoute", {"routeId": "$response.body#/id"}, "get its state"),
}

ROUTE_CREATE = Operation(
    "createInboundRoute",
    (Scope.WEBHOOKS,),
    _TAG,
    "Create a route",
    "Mail to matching recipients goes to the URL as the provider would send it: mail that your "
    "software submits to this service, and mail that you send over the route. The requests are "
    "signed with the secret, and are retried on the provider's schedule, shortened by `speed`. "
    "Private addresses are allowed only if the operator permits them. An application that answers "
    f"its own mails is stopped after {MOST_A_LOOP} mails in a minute.",
    answer=json_response(
        "The route, with its secret.", "inbound route made", InboundRouteWithSecret, links=_LINKS
    ),
    errors={
        409: error_response(
            f"The account has {MOST_ROUTES} routes, the maximum.", "too many inbound routes"
        )
    },
    request=RouteToCreate,
)

ROUTES_LIST = Operation(
    "listInboundRoutes",
    (Scope.WEBHOOKS,),
    _TAG,
    "List the routes",
    "The routes, without their secrets.",
    answer=json_response("The routes.", "inbound routes", InboundRoutes),
)

ROUTE_SHOW = Operation(
    "getInboundRoute",
    (Scope.WEBHOOKS,),
    _TAG,
    "Get a route",
    "Returns the route without its secret.",
    answer=json_response("The route.", "inbound route", InboundRoute),
)

ROUTE_CHANGE = Operation(
    "changeInboundRoute",
    (Scope.WEBHOOKS,),
    _TAG,
    "Change a route",
    "Mails that wait are sent with the new settings. A URL with another host or port removes user "
    "and password, unless you send them as well.",
    answer=json_response("The route.", "inbound route changed", InboundRoute),
    request=RouteChange,
)

ROUTE_DELETE = Operation(
    "deleteInboundRoute",
    (Scope.WEBHOOKS,),
    _TAG,
    "Delete a route",
    "Deletes the route with its mails and attempts.",
    answer=json_response("The route is deleted.", "inbound route deleted", DeletedInboundRoute),
)

MAIL_SEND = Operation(
    "sendInbound",
    (Scope.WEBHOOKS, Scope.INBOX_READ),
    _TAG,
    "Send a mail to the application",
    "Writes a mail from the fields, takes a whole one (`raw`), a ready-made one (`ready`), answers "
    "a stored message (`messageId` with text) or sends it again (`messageId` alone). The verdicts "
    "of SPF, DKIM, DMARC and the spam filter pass unless you choose others. `fault` makes "
    "something go wrong: the mail comes twice, "
    f"{LATE_BY // SECOND} seconds late, after the next one, with a wrong signature or an old time "
    "stamp, or is cut off. To wait for the application, pass `id` as `mail` to the attempts.",
    answer=json_response(
        "The mail is on its way.",
        "inbound mail sent",
        SentInboundMail,
        links={
            "wait": Link(
                "listInboundAttempts",
                {"mail": "$response.body#/id"},
                "wait until the application has taken it",
            )
        },
    ),
    request=MailToSend,
)

ATTEMPTS_LIST = Operation(
    "listInboundAttempts",
    (Scope.WEBHOOKS,),
    _TAG,
    "List the attempts, or wait for the application",
    "Each attempt has the status, the headers and the beginning of the application's answer. With "
    "`wait`, the request returns when the application has taken the mail, when no attempt follows, "
    "or at the end of the time: `delivered` tells which.",
    answer=json_response("A page of attempts.", "inbound attempts", InboundAttempts),
    request=ListAttempts,
)


class InboundApiRoutes(Struct, frozen=True, eq=False):
    """Handlers that parse requests, call an operation and render its result."""

    operations: InboundOperations
    turns: PacedQueue

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        one = f"{INBOUND_PATH}/<route_id>"
        return [
            make_route("POST", INBOUND_PATH, self.create, ROUTE_CREATE, costs.ROUTE),
            make_route("GET", INBOUND_PATH, self.all, ROUTES_LIST, costs.FREE),
            make_route("GET", one, self.show, ROUTE_SHOW, costs.FREE),
            make_route("PATCH", one, self.change, ROUTE_CHANGE, costs.AUDITED),
            make_route("DELETE", one, self.delete, ROUTE_DELETE, costs.AUDITED),
            make_route("POST", f"{one}/messages", self.send, MAIL_SEND, costs.INBOUND_MAIL),
            make_route("GET", "/inbound/attempts", self.attempts, ATTEMPTS_LIST, costs.FREE),
        ]

    async def create(self, call: Call[RouteToCreate]) -> Reply:
        """POST /inbound/routes."""
        kind = InboundFormat(call.request.format)
        created = await self.operations.routes.create(
            call.caller.account_id, kind, call.request.settings, call.caller.actor
        )
        return json_reply(render_created_route(created))

    async def all(self, call: Call[NoParameters]) -> Reply:
        """GET /inbound/routes."""
        return json_reply(
            render_routes(await self.operations.routes.of_account(call.caller.account_id))
        )

    async def show(self, call: Call[NoParameters]) -> Reply:
        """GET /inbound/routes/{routeId}."""
        route = await self.operations.routes.show(call.caller.account_id, call.path["route_id"])
        return json_reply(render_route(route))

    async def change(self, call: Call[RouteChange]) -> Reply:
        """PATCH /inbound/routes/{routeId}."""
        changed = await self.operations.routes.change(
            call.caller.account_id,
            call.path["route_id"],
            call.request.settings,
            call.caller.actor,
        )
        return json_reply(render_route(changed))

    async def delete(self, call: Call[NoParameters]) -> Reply:
        """DELETE /inbound/routes/{routeId}."""
        route_id = call.path["route_id"]
        await self.operations.routes.delete(call.caller.account_id, route_id, call.caller.actor)
        return json_reply(DeletedInboundRoute(success=True, id=route_id))

    async def send(self, call: Call[MailToSend]) -> Reply:
        """POST /inbound/routes/{routeId}/messages."""
        sent = await self.operations.send.send(
            call.caller.account_id, call.path["route_id"], call.request.letter
        )
        return json_reply(render_sent(sent))

    async def attempts(self, call: Call[ListAttempts]) -> Reply:
        """GET /inbound/attempts."""
        request, read = call.request, self.operations.read
        request.require_first_page()
        wanted = InboundFilter(request.route_id, request.inbound_mail_id)
        if request.wait is None:
            offset = (request.page - 1) * request.limit
            page = await read.attempts(call.caller.account_id, wanted, request.limit, offset)
        else:
            page = await read.wait(call.caller, wanted, request.limit, request.wait)
        return await large_json_reply(render_attempts(page), self.turns)
