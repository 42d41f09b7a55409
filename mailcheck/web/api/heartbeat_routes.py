"""The routes of heartbeats."""

from typing import Any

from msgspec import Struct

from mailcheck.api.domains.heartbeats import (
    DeletedHeartbeat,
    Heartbeats,
    HeartbeatWithBeats,
    KeptHeartbeat,
    render_heartbeat_details,
    render_heartbeats,
    render_kept_heartbeat,
)
from mailcheck.api.domains.watches import WatchAlert, render_alert
from mailcheck.api.openapi.operations import Link, Operation, error_response, json_response
from mailcheck.api.requests.heartbeats import HeartbeatChoice, HeartbeatToCreate
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.domains.heartbeats import MOST_HEARTBEATS
from mailcheck.core.rights import Scope
from mailcheck.core.webhooks import MOST_WEBHOOKS
from mailcheck.operations.domains.watches.manage_heartbeats import ManageHeartbeats
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply, json_reply

_TAG = "Heartbeats"

_THIS = {"name": "$response.body#/name"}

HEARTBEAT_CREATE = Operation(
    "createHeartbeat",
    (Scope.WATCHES,),
    _TAG,
    "Expect mail on a schedule",
    "Send `at` (a time of day, with `timeZone`) or `everyMinutes`. Mail to `address` is a beat: it "
    "is scored, and stored in your inbox with the tag `beat.NAME`. A beat that is late or missing, "
    "and one that is worse than before (score, SPF, DKIM, DMARC, TLS, time in transit), raises an "
    "alert like those of watches.",
    answer=json_response(
        "The heartbeat.",
        "heartbeat made",
        KeptHeartbeat,
        links={"show": Link("getHeartbeat", _THIS, "get its days and mails")},
    ),
    errors={
        409: error_response(
            "There is a heartbeat with this name, or the account has "
            f"{MOST_HEARTBEATS} heartbeats, the maximum.",
            "heartbeat exists",
        )
    },
    request=HeartbeatToCreate,
)

HEARTBEATS_LIST = Operation(
    "listHeartbeats",
    (Scope.WATCHES,),
    _TAG,
    "List the heartbeats",
    "Sorted by name, with all open alerts.",
    answer=json_response("The heartbeats.", "heartbeats", Heartbeats),
)

HEARTBEAT_SHOW = Operation(
    "getHeartbeat",
    (Scope.WATCHES,),
    _TAG,
    "Get a heartbeat",
    "Returns the heartbeat with the last 90 days, its newest mails and its alerts.",
    answer=json_response("The heartbeat.", "heartbeat", HeartbeatWithBeats),
)

HEARTBEAT_CHANGE = Operation(
    "changeHeartbeat",
    (Scope.WATCHES,),
    _TAG,
    "Change a heartbeat",
    "Fields that are not sent keep their values. Another schedule, and the end of a pause, begin "
    "anew: no earlier mail is expected.",
    answer=json_response("The heartbeat.", "heartbeat changed", KeptHeartbeat),
    errors={
        409: error_response(
            f"The alerts would need more than {MOST_WEBHOOKS} webhooks, the maximum of an account.",
            "too many receivers",
        )
    },
    request=HeartbeatChoice,
)

HEARTBEAT_DELETE = Operation(
    "deleteHeartbeat",
    (Scope.WATCHES,),
    _TAG,
    "Delete a heartbeat",
    "Deletes the heartbeat with its days and alerts. Mail with its tag is then like any other.",
    answer=json_response("The heartbeat is deleted.", "heartbeat deleted", DeletedHeartbeat),
)

HEARTBEAT_ACKNOWLEDGE = Operation(
    "acknowledgeHeartbeatAlert",
    (Scope.WATCHES,),
    _TAG,
    "Acknowledge an alert of a heartbeat",
    "No further alert is sent for the problem, except for its end.",
    answer=json_response("The alert.", "alert acknowledged", WatchAlert),
)


class HeartbeatRoutes(Struct, frozen=True, eq=False):
    """Handlers that parse bodies, call an operation and render its result."""

    heartbeats: ManageHeartbeats

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        one = "/heartbeats/<heartbeat_name>"
        alert = f"{one}/alerts/<alert_id>/acknowledge"
        return [
            make_route("POST", "/heartbeats", self.create, HEARTBEAT_CREATE, costs.WATCH),
            make_route("GET", "/heartbeats", self.all, HEARTBEATS_LIST, costs.FREE),
            make_route("GET", one, self.show, HEARTBEAT_SHOW, costs.FREE),
            make_route("PATCH", one, self.change, HEARTBEAT_CHANGE, costs.WATCH),
            make_route("DELETE", one, self.delete, HEARTBEAT_DELETE, costs.FREE),
            make_route("POST", alert, self.acknowledge, HEARTBEAT_ACKNOWLEDGE, costs.FREE),
        ]

    async def create(self, call: Call[HeartbeatToCreate]) -> Reply:
        """POST /heartbeats."""
        request = call.request
        created = await self.heartbeats.create(
            call.caller.account_id, request.name, request.settings
        )
        return json_reply(render_kept_heartbeat(created))

    async def all(self, call: Call[NoParameters]) -> Reply:
        """GET /heartbeats."""
        account_id = call.caller.account_id
        found = await self.heartbeats.all(account_id)
        return json_reply(render_heartbeats(found, await self.heartbeats.open_alerts(account_id)))

    async def show(self, call: Call[NoParameters]) -> Reply:
        """GET /heartbeats/{name}."""
        shown = await self.heartbeats.show(call.caller.account_id, call.path["heartbeat_name"])
        return json_reply(render_heartbeat_details(shown))

    async def change(self, call: Call[HeartbeatChoice]) -> Reply:
        """PATCH /heartbeats/{name}."""
        account_id, name = call.caller.account_id, call.path["heartbeat_name"]
        changed = await self.heartbeats.change(account_id, name, call.request.changed)
        return json_reply(render_kept_heartbeat(changed))

    async def delete(self, call: Call[NoParameters]) -> Reply:
        """DELETE /heartbeats/{name}."""
        name = call.path["heartbeat_name"]
        await self.heartbeats.delete(call.caller.account_id, name)
        return json_reply(DeletedHeartbeat(success=True, name=name))

    async def acknowledge(self, call: Call[NoParameters]) -> Reply:
        """POST /heartbeats/{name}/alerts/{alertId}/acknowledge."""
        alert = await self.heartbeats.acknowledge(
            call.caller.account_id, call.path["heartbeat_name"], call.path["alert_id"]
        )
        return json_reply(render_alert(alert))
