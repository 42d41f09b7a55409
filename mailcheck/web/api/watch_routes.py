"""The routes of watches."""

from mailcheck.operations.domains.watches.keep import KeepWatches
from mailcheck.operations.places import CheckTurns
from mailcheck.operations.ranges import DEFAULT_PAGE, LARGEST_PAGE, LAST_PAGE
from mailcheck.web.api import described_watches as described
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.site.downloads import download_reply
from mailcheck.web.site.replies import Reply, json_reply
from mailcheck.wire.domains.watches import (
    DeletedWatch,
    parse_choice,
    parse_new_watch,
    parse_new_watches,
    render_alert,
    render_history,
    render_kept,
    render_made,
    render_page,
    render_shown,
    write_csv,
)


class WatchRoutes:
    """Bodies in, operation, shape out; no rule of its own."""

    def __init__(self, watches: KeepWatches, turns: CheckTurns) -> None:
        self._watches = watches
        self._turns = turns

    def routes(self) -> list[Route]:
        """List the routes."""
        one = "/watches/<watch_id>"
        alert = f"{one}/alerts/<alert_id>/acknowledge"
        return [
            Route("POST", "/watches", self.create, described.WATCH_CREATE),
            Route("POST", "/watches/many", self.create_many, described.WATCHES_CREATE),
            Route("GET", "/watches", self.all, described.WATCHES_LIST),
            Route("GET", one, self.show, described.WATCH_SHOW),
            Route("PATCH", one, self.change, described.WATCH_CHANGE),
            Route("DELETE", one, self.delete, described.WATCH_DELETE),
            Route("POST", f"{one}/run", self.run, described.WATCH_RUN),
            Route("GET", f"{one}/history", self.history, described.WATCH_HISTORY),
            Route("GET", f"{one}/history.csv", self.table, described.WATCH_TABLE),
            Route("POST", alert, self.acknowledge, described.ALERT_ACKNOWLEDGE),
        ]

    async def create(self, call: Call) -> Reply:
        """POST /watches."""
        target, settings = parse_new_watch(call.body)
        made = await self._watches.create(call.caller.account_id, target, settings)
        return json_reply(render_kept(made))

    async def create_many(self, call: Call) -> Reply:
        """POST /watches/many."""
        wanted = parse_new_watches(call.body)
        outcomes = await self._watches.create_many(call.caller.account_id, wanted)
        return json_reply(render_made([target for target, _ in wanted], outcomes))

    async def all(self, call: Call) -> Reply:
        """GET /watches."""
        limit = call.query.whole_number("limit", 1, LARGEST_PAGE, DEFAULT_PAGE)
        page = call.query.whole_number("page", 1, LAST_PAGE, 1)
        account_id = call.caller.account_id
        found = await self._watches.of_account(account_id, limit, (page - 1) * limit)
        return json_reply(render_page(found, await self._watches.open_alerts(account_id)))

    async def show(self, call: Call) -> Reply:
        """GET /watches/{watchId}."""
        shown = await self._watches.show(call.caller.account_id, call.watch_id)
        return json_reply(render_shown(shown, call.asked_at))

    async def change(self, call: Call) -> Reply:
        """PATCH /watches/{watchId}."""
        choose = parse_choice(call.body)
        changed = await self._watches.change(call.caller.account_id, call.watch_id, choose)
        return json_reply(render_kept(changed))

    async def delete(self, call: Call) -> Reply:
        """DELETE /watches/{watchId}."""
        await self._watches.delete(call.caller.account_id, call.watch_id)
        return json_reply(DeletedWatch(success=True, id=call.watch_id))

    async def run(self, call: Call) -> Reply:
        """POST /watches/{watchId}/run."""
        account_id = call.caller.account_id
        async with self._turns.held(account_id):
            shown = await self._watches.run(account_id, call.watch_id)
        return json_reply(render_shown(shown, call.asked_at))

    async def history(self, call: Call) -> Reply:
        """GET /watches/{watchId}/history."""
        since = call.query.instant("since")
        watch, history = await self._watches.history(call.caller.account_id, call.watch_id, since)
        return json_reply(render_history(watch, history, since, call.asked_at))

    async def table(self, call: Call) -> Reply:
        """GET /watches/{watchId}/history.csv."""
        since = call.query.instant("since")
        watch, history = await self._watches.history(call.caller.account_id, call.watch_id, since)
        name = f"history-{watch.target}.csv".replace(":", "-")
        return download_reply(write_csv(watch, history), "text/csv; charset=utf-8", name)

    async def acknowledge(self, call: Call) -> Reply:
        """POST /watches/{watchId}/alerts/{alertId}/acknowledge."""
        alert = await self._watches.acknowledge(
            call.caller.account_id, call.watch_id, call.path["alert_id"]
        )
        return json_reply(render_alert(alert))
