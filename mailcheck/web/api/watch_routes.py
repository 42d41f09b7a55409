"""The routes of watches."""

from typing import Any

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
from mailcheck.api.errors import Error
from mailcheck.api.openapi.operations import (
    Body,
    Link,
    Operation,
    Response,
    json_body,
)
from mailcheck.api.requests.checks import (
    GetWatchHistory,
    ListPage,
    NewWatch,
    NewWatches,
    WatchChoice,
)
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.watches import MOST_AT_ONCE, MOST_CHANGES, MOST_WATCHES
from mailcheck.core.webhooks import MOST_WEBHOOKS
from mailcheck.operations.domains.watches.manage_watches import ManageWatches
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.web.api.calls import DOWNLOAD, Call, Route, not_found
from mailcheck.web.site.replies import Reply, download_reply, json_reply

_TAG = "Watches"

_MISSING = not_found("watch")

_TOO_MANY = Response(
    f"Its alerts would go to more than the {MOST_WEBHOOKS} webhooks of an account.",
    [json_body("too many receivers", Error)],
)

_THIS = {"watchId": "$response.body#/id"}

WATCH_CREATE = Operation(
    "createWatch",
    _TAG,
    "Watch a domain or an address",
    "It is checked again and again: a domain as by `GET /tools/reputation` and "
    "`GET /tools/domain`, an address by its lists and its reverse DNS. What changes is kept, "
    "and problems that come up are told: by mail to your own inbox, tag `watch-alerts`, of "
    "which a webhook can be told, and to those that `alertTo` names: URLs, which are posted to as "
    "to webhooks (`newWebhooks` shows their secrets this once), and addresses of mail, where the "
    "operator allows them. The first run says how it is; nothing of that is an alert.",
    {
        200: Response(
            "The watch.",
            [json_body("watch made", KeptWatch)],
            links={"show": Link("getWatch", _THIS, "see what was found out")},
        ),
        409: Response(
            f"It is watched already, or the account has {MOST_WATCHES} watches.",
            [json_body("watch exists", Error)],
        ),
    },
    NewWatch,
    reads_body=True,
)

WATCHES_CREATE = Operation(
    "createWatches",
    _TAG,
    "Watch many at once",
    f"Up to {MOST_AT_ONCE}. Those that can't be watched are named with the reason, and keep no "
    "other from being made.",
    {200: Response("What came of each.", [json_body("watches made", MadeWatches)])},
    NewWatches,
    reads_body=True,
)

WATCHES_LIST = Operation(
    "listWatches",
    _TAG,
    "List the watches",
    "By their targets, with all alerts that are open.",
    {200: Response("The watches.", [json_body("watches", Watches)])},
    ListPage,
)

WATCH_SHOW = Operation(
    "getWatch",
    _TAG,
    "Look at a watch",
    "With what was found out last, and its alerts.",
    {200: Response("The watch.", [json_body("watch", WatchWithState)]), 404: _MISSING},
    NoParameters,
)

WATCH_CHANGE = Operation(
    "changeWatch",
    _TAG,
    "Change a watch",
    "What is not named stays as it is.",
    {
        200: Response("The watch.", [json_body("watch changed", KeptWatch)]),
        404: _MISSING,
        409: _TOO_MANY,
    },
    WatchChoice,
    reads_body=True,
)

WATCH_DELETE = Operation(
    "deleteWatch",
    _TAG,
    "Delete a watch",
    "With its history and its alerts.",
    {200: Response("It is deleted.", [json_body("watch deleted", DeletedWatch)]), 404: _MISSING},
    NoParameters,
)

WATCH_RUN = Operation(
    "runWatch",
    _TAG,
    "Run a watch now",
    "As if it were due: after a change in the zone, say. When it is run next stays as it is.",
    {
        200: Response("What was found out.", [json_body("watch run", WatchWithState)]),
        404: _MISSING,
        409: Response("It is being run.", [json_body("watch busy", Error)]),
    },
    NoParameters,
)

WATCH_HISTORY = Operation(
    "getWatchHistory",
    _TAG,
    "Read what changed",
    f"Changes and scores, oldest first; of changes the newest {MOST_CHANGES}.",
    {200: Response("The history.", [json_body("watch history", WatchHistory)]), 404: _MISSING},
    GetWatchHistory,
)

WATCH_TABLE = Operation(
    "getWatchHistoryTable",
    _TAG,
    "Download what changed",
    "The same as a table (CSV): a row for each change, and for each factor of a score.",
    {
        200: Response("The table.", [Body(media_type="text/csv")], DOWNLOAD),
        404: _MISSING,
    },
    GetWatchHistory,
)

ALERT_ACKNOWLEDGE = Operation(
    "acknowledgeAlert",
    _TAG,
    "Acknowledge an alert",
    "You know of it: it is told no more, but its end is.",
    {
        200: Response("The alert.", [json_body("alert acknowledged", WatchAlert)]),
        404: not_found("alert"),
    },
    NoParameters,
)


class WatchRoutes:
    """Bodies in, operation, shape out; no rule of its own."""

    def __init__(self, watches: ManageWatches, turns: CheckSlots) -> None:
        self._watches = watches
        self._turns = turns

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        one = "/watches/<watch_id>"
        alert = f"{one}/alerts/<alert_id>/acknowledge"
        return [
            Route("POST", "/watches", self.create, WATCH_CREATE),
            Route("POST", "/watches/many", self.create_many, WATCHES_CREATE),
            Route("GET", "/watches", self.all, WATCHES_LIST),
            Route("GET", one, self.show, WATCH_SHOW),
            Route("PATCH", one, self.change, WATCH_CHANGE),
            Route("DELETE", one, self.delete, WATCH_DELETE),
            Route("POST", f"{one}/run", self.run, WATCH_RUN),
            Route("GET", f"{one}/history", self.history, WATCH_HISTORY),
            Route("GET", f"{one}/history.csv", self.table, WATCH_TABLE),
            Route("POST", alert, self.acknowledge, ALERT_ACKNOWLEDGE),
        ]

    async def create(self, call: Call[NewWatch]) -> Reply:
        """POST /watches."""
        request = call.request
        made = await self._watches.create(call.caller.account_id, request.target, request.settings)
        return json_reply(render_kept(made))

    async def create_many(self, call: Call[NewWatches]) -> Reply:
        """POST /watches/many."""
        wanted = [(one.target, one.settings) for one in call.request.watches]
        outcomes = await self._watches.create_many(call.caller.account_id, wanted)
        return json_reply(render_made([target for target, _ in wanted], outcomes))

    async def all(self, call: Call[ListPage]) -> Reply:
        """GET /watches."""
        account_id, request = call.caller.account_id, call.request
        found = await self._watches.of_account(account_id, request.limit, request.offset)
        return json_reply(render_page(found, await self._watches.open_alerts(account_id)))

    async def show(self, call: Call[NoParameters]) -> Reply:
        """GET /watches/{watchId}."""
        shown = await self._watches.show(call.caller.account_id, call.watch_id)
        return json_reply(render_shown(shown, call.received_at))

    async def change(self, call: Call[WatchChoice]) -> Reply:
        """PATCH /watches/{watchId}."""
        account_id, choice = call.caller.account_id, call.request
        changed = await self._watches.change(account_id, call.watch_id, choice.changed)
        return json_reply(render_kept(changed))

    async def delete(self, call: Call[NoParameters]) -> Reply:
        """DELETE /watches/{watchId}."""
        await self._watches.delete(call.caller.account_id, call.watch_id)
        return json_reply(DeletedWatch(success=True, id=call.watch_id))

    async def run(self, call: Call[NoParameters]) -> Reply:
        """POST /watches/{watchId}/run."""
        account_id = call.caller.account_id
        async with self._turns.held(account_id):
            shown = await self._watches.run(account_id, call.watch_id)
        return json_reply(render_shown(shown, call.received_at))

    async def history(self, call: Call[GetWatchHistory]) -> Reply:
        """GET /watches/{watchId}/history."""
        since = call.request.since
        watch, history = await self._watches.history(call.caller.account_id, call.watch_id, since)
        return json_reply(render_history(watch, history, since, call.received_at))

    async def table(self, call: Call[GetWatchHistory]) -> Reply:
        """GET /watches/{watchId}/history.csv."""
        since = call.request.since
        watch, history = await self._watches.history(call.caller.account_id, call.watch_id, since)
        name = f"history-{watch.target}.csv".replace(":", "-")
        return download_reply(write_csv(watch, history), "text/csv; charset=utf-8", name)

    async def acknowledge(self, call: Call[NoParameters]) -> Reply:
        """POST /watches/{watchId}/alerts/{alertId}/acknowledge."""
        alert = await self._watches.acknowledge(
            call.caller.account_id, call.watch_id, call.path["alert_id"]
        )
        return json_reply(render_alert(alert))
