"""The routes of webhooks (DECISIONS.md section 4)."""

from mailcheck.operations.inbox.webhooks import KeepWebhooks
from mailcheck.web.api import described_webhooks as described
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.site.replies import Reply, json_reply
from mailcheck.wire.inbox.webhooks import (
    DeletedWebhook,
    parse_new_webhook,
    parse_replay,
    render_created,
    render_delivery,
    render_rotated,
    render_shown,
    render_webhook,
    render_webhooks,
)


class WebhookRoutes:
    """Bodies in, operation, shape out; no rule of its own."""

    def __init__(self, webhooks: KeepWebhooks) -> None:
        self._webhooks = webhooks

    def routes(self) -> list[Route]:
        """List the routes."""
        one = "/inbox/webhooks/<webhook_id>"
        return [
            Route("POST", "/inbox/webhooks", self.create, described.WEBHOOK_CREATE),
            Route("GET", "/inbox/webhooks", self.all, described.WEBHOOKS_LIST),
            Route("GET", one, self.show, described.WEBHOOK_SHOW),
            Route("DELETE", one, self.delete, described.WEBHOOK_DELETE),
            Route("POST", f"{one}/secret", self.rotate, described.WEBHOOK_ROTATE),
            Route("POST", f"{one}/test", self.test, described.WEBHOOK_TEST),
            Route("POST", f"{one}/replay", self.replay, described.WEBHOOK_REPLAY),
            Route("POST", f"{one}/resume", self.resume, described.WEBHOOK_RESUME),
        ]

    async def create(self, call: Call) -> Reply:
        """POST /inbox/webhooks."""
        url, wanted = parse_new_webhook(call.body)
        made = await self._webhooks.create(call.caller.account_id, url, wanted)
        return json_reply(render_created(made))

    async def all(self, call: Call) -> Reply:
        """GET /inbox/webhooks."""
        found = await self._webhooks.of_account(call.caller.account_id)
        return json_reply(render_webhooks(found))

    async def show(self, call: Call) -> Reply:
        """GET /inbox/webhooks/{webhookId}."""
        shown = await self._webhooks.show(call.caller.account_id, call.webhook_id)
        return json_reply(render_shown(shown))

    async def delete(self, call: Call) -> Reply:
        """DELETE /inbox/webhooks/{webhookId}."""
        await self._webhooks.delete(call.caller.account_id, call.webhook_id)
        return json_reply(DeletedWebhook(success=True, id=call.webhook_id))

    async def rotate(self, call: Call) -> Reply:
        """POST /inbox/webhooks/{webhookId}/secret."""
        rotated = await self._webhooks.rotate(call.caller.account_id, call.webhook_id)
        return json_reply(render_rotated(rotated))

    async def test(self, call: Call) -> Reply:
        """POST /inbox/webhooks/{webhookId}/test."""
        delivery = await self._webhooks.test(call.caller.account_id, call.webhook_id)
        return json_reply(render_delivery(delivery))

    async def replay(self, call: Call) -> Reply:
        """POST /inbox/webhooks/{webhookId}/replay."""
        after = parse_replay(call.body)
        restarted = await self._webhooks.restart(call.caller.account_id, call.webhook_id, after)
        return json_reply(render_webhook(restarted))

    async def resume(self, call: Call) -> Reply:
        """POST /inbox/webhooks/{webhookId}/resume."""
        restarted = await self._webhooks.restart(call.caller.account_id, call.webhook_id)
        return json_reply(render_webhook(restarted))
