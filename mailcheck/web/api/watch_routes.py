"""The routes of watches."""

from typing import Any

from msgspec import Struct

from mailcheck.api.domains.watches import (
    DeletedWatch,
    KeptWatch,
    MadeWatches,
    WatchAlert,
    Watches,
    WatchHistory,
    WatchWithState,
    render_alert,
    render_history,
    render_kept,
    render_made,
    render_page,
    render_shown,
    write_csv,
)
from mailcheck.api.openapi.operations import (
    Body,
    Link,
    Operation,
    Response,
    error_response,
    json_response,
)
from mailcheck.api.requests.checks import (
    GetWatchHistory,
    ListPage,
    WatchChoice,
    WatchesToCreate,
    WatchToCreate,
)
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.domains.watches import MOST_AT_ONCE, MOST_CHANGES, MOST_WATCHES
from mailcheck.core.rights import Scope
from mailcheck.core.webhooks import MOST_WEBHOOKS
from mailcheck.operations.domains.watches.manage_watches import ManageWatches
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.web.api.calls import DOWNLOAD, Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply, download_reply, json_reply

_TAG = "Watches"

_TOO_MANY = error_response(
    f"The alerts would need more than {MOST_WEBHOOKS} webhooks, the maximum of an account.",
    "too many receivers",
)

_THIS = {"watchId": "$response.body#/id"}

WATCH_CREATE = Operation(
    "createWatch",
    (Scope.WATCHES,),
    _TAG,
    "Watch a domain or an IP address",
    "Checks it regularly: a domain as `GET /tools/reputation` and `GET /tools/domain` do, an IP "
    "address with blocklists and reverse DNS. Changes are recorded, and new problems raise "
    "alerts. They are sent to your own inbox with the tag `watch-alerts`, and to the recipients in "
    "`alertTo`: webhook URLs (`newWebhooks` contains their secrets, only once), email "
    "addresses if the operator allows them, and Slack, Teams, Discord and ntfy (`slack:` and the "
    "URL of its incoming webhook). Problems in the first check raise no alert.",
    answer=json_response(
        "The watch.",
        "watch made",
        KeptWatch,
        links={"show": Link("getWatch", _THIS, "get the results of its checks")},
    ),
    errors={
        409: error_response(
            f"It is already watched, or the account has {MOST_WATCHES} watches, the maximum.",
            "watch exists",
        )
    },
    request=WatchToCreate,
)

WATCHES_CREATE = Operation(
    "createWatches",
    (Scope.WATCHES,),
    _TAG,
    "Create several watches",
    f"Creates up to {MOST_AT_ONCE} watches. Targets that cannot be watched are listed with the "
    "reason; the others are watched.",
    answer=json_response("The result of each target.", "watches made", MadeWatches),
    request=WatchesToCreate,
)

WATCHES_LIST = Operation(
    "listWatches",
    (Scope.WATCHES,),
    _TAG,
    "List the watches",
    "Sorted by target, with all open alerts.",
    answer=json_response("The watches.", "watches", Watches),
    request=ListPage,
)

WATCH_SHOW = Operation(
    "getWatch",
    (Scope.WATCHES,),
    _TAG,
    "Get a watch",
    "Returns the watch with the results of its last check and its alerts.",
    answer=json_response("The watch.", "watch", WatchWithState),
)

WATCH_CHANGE = Operation(
    "changeWatch",
    (Scope.WATCHES,),
    _TAG,
    "Change a watch",
    "Fields that are not sent keep their values.",
    answer=json_response("The watch.", "watch changed", KeptWatch),
    errors={409: _TOO_MANY},
    request=WatchChoice,
)

WATCH_DELETE = Operation(
    "deleteWatch",
    (Scope.WATCHES,),
    _TAG,
    "Delete a watch",
    "Deletes the watch with its history and alerts.",
    answer=json_response("The watch is deleted.", "watch deleted", DeletedWatch),
)

WATCH_RUN = Operation(
    "runWatch",
    (Scope.WATCHES,),
    _TAG,
    "Run a watch now",
    "Checks at once, for example after a change in the zone. The schedule stays the same.",
    answer=json_response("The watch with the new results.", "watch run", WatchWithState),
    errors={409: error_response("A check is already running.", "watch busy")},
)

WATCH_HISTORY = Operation(
    "getWatchHistory",
    (Scope.WATCHES,),
    _TAG,
    "Get the history of a watch",
    f"Changes and scores, oldest first. At most the newest {MOST_CHANGES} changes are returned.",
    answer=json_response("The history.", "watch history", WatchHistory),
    request=GetWatchHistory,
)

WATCH_TABLE = Operation(
    "getWatchHistoryTable",
    (Scope.WATCHES,),
    _TAG,
    "Download the history of a watch",
    "The history as CSV: a row for each change, and for each factor of a score.",
    answer=Response("The table.", [Body(media_type="text/csv")], DOWNLOAD),
    request=GetWatchHistory,
)

ALERT_ACKNOWLEDGE = Operation(
    "acknowledgeAlert",
    (Scope.WATCHES,),
    _TAG,
    "Acknowledge an alert",
    "No further alert is sent for the problem, except for its end.",
    answer=json_response("The alert.", "alert acknowledged", WatchAlert),
)


class WatchRoutes(Struct, frozen=True, eq=False):
    """Handlers that parse bodies, call an operation and render its result."""

    watches: ManageWatches
    turns: CheckSlots

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        one = "/watches/<watch_id>"
        alert = f"{one}/alerts/<alert_id>/acknowledge"
        return [
            make_route("POST", "/watches", self.create, WATCH_CREATE, costs.WATCH),
            make_route("POST", "/watches/many", self.create_many, WATCHES_CREATE, costs.WATCH),
            make_route("GET", "/watches", self.all, WATCHES_LIST, costs.FREE),
            make_route("GET", one, self.show, WATCH_SHOW, costs.FREE),
            make_route("PATCH", one, self.change, WATCH_CHANGE, costs.WATCH),
            make_route("DELETE", one, self.delete, WATCH_DELETE, costs.FREE),
            make_route("POST", f"{one}/run", self.run, WATCH_RUN, costs.WATCH),
            make_route("GET", f"{one}/history", self.history, WATCH_HISTORY, costs.FREE),
            make_route("GET", f"{one}/history.csv", self.table, WATCH_TABLE, costs.FREE),
            make_route("POST", alert, self.acknowledge, ALERT_ACKNOWLEDGE, costs.FREE),
        ]

    async def create(self, call: Call[WatchToCreate]) -> Reply:
        """POST /watches."""
        request = call.request
        created = await self.watches.create(
            call.caller.account_id, request.target, request.settings
        )
        return json_reply(render_kept(created))

    async def create_many(self, call: Call[WatchesToCreate]) -> Reply:
        """POST /watches/many."""
        wanted = [(watch.target, watch.settings) for watch in call.request.watches]
        outcomes = await self.watches.create_many(call.caller.account_id, wanted)
        return json_reply(render_made([target for target, _ in wanted], outcomes))

    async def all(self, call: Call[ListPage]) -> Reply:
        """GET /watches."""
        account_id, request = call.caller.account_id, call.request
        found = await self.watches.of_account(account_id, request.limit, request.offset)
        return json_reply(render_page(found, await self.watches.open_alerts(account_id)))

    async def show(self, call: Call[NoParameters]) -> Reply:
        """GET /watches/{watchId}."""
        shown = await self.watches.show(call.caller.account_id, call.path["watch_id"])
        return json_reply(render_shown(shown, call.received_at))

    async def change(self, call: Call[WatchChoice]) -> Reply:
        """PATCH /watches/{watchId}."""
        account_id, choice = call.caller.account_id, call.request
        changed = await self.watches.change(account_id, call.path["watch_id"], choice.changed)
        return json_reply(render_kept(changed))

    async def delete(self, call: Call[NoParameters]) -> Reply:
        """DELETE /watches/{watchId}."""
        await self.watches.delete(call.caller.account_id, call.path["watch_id"])
        return json_reply(DeletedWatch(success=True, id=call.path["watch_id"]))

    async def run(self, call: Call[NoParameters]) -> Reply:
        """POST /watches/{watchId}/run."""
        account_id = call.caller.account_id
        async with self.turns.held(account_id):
            shown = await self.watches.run(account_id, call.path["watch_id"])
        return json_reply(render_shown(shown, call.received_at))

    async def history(self, call: Call[GetWatchHistory]) -> Reply:
        """GET /watches/{watchId}/history."""
        since = call.request.since
        watch, history = await self.watches.history(
            call.caller.account_id, call.path["watch_id"], since
        )
        return json_reply(render_history(watch, history, since, call.received_at))

    async def table(self, call: Call[GetWatchHistory]) -> Reply:
        """GET /watches/{watchId}/history.csv."""
        since = call.request.since
        watch, history = await self.watches.history(
            call.caller.account_id, call.path["watch_id"], since
        )
        name = f"history-{watch.target}.csv".replace(":", "-")
        return download_reply(write_csv(watch, history), "text/csv; charset=utf-8", name)

    async def acknowledge(self, call: Call[NoParameters]) -> Reply:
        """POST /watches/{watchId}/alerts/{alertId}/acknowledge."""
        alert = await self.watches.acknowledge(
            call.caller.account_id, call.path["watch_id"], call.path["alert_id"]
        )
        return json_reply(render_alert(alert))
