"""The routes of webhooks (docs/reference/contract.md)."""

from typing import Any

from msgspec import Struct

from mailcheck.api.inbox.webhooks import (
    DeletedWebhook,
    RotatedWebhook,
    ShownWebhookShape,
    Webhook,
    WebhookAttempt,
    Webhooks,
    WebhookWithSecret,
    render_created,
    render_delivery,
    render_rotated,
    render_shown,
    render_webhook,
    render_webhooks,
)
from mailcheck.api.openapi.operations import Link, Operation, error_response, json_response
from mailcheck.api.requests.inbox import WebhookReplay, WebhookTest, WebhookToCreate
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.identifiers import MessageId
from mailcheck.core.rights import Scope
from mailcheck.core.webhooks import DELIVERIES_KEPT, MOST_WEBHOOKS, EventKind
from mailcheck.operations.inbox.webhooks.manage_webhooks import ManageWebhooks
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply, json_reply

_TAG = "Webhooks"

_ENDED = error_response(
    "The receiver has ended the webhook with 410: delete it and create a new one.", "webhook ended"
)

_LINKS = {
    "test": Link("testWebhook", {"webhookId": "$response.body#/id"}, "send a test message"),
    "show": Link("getWebhook", {"webhookId": "$response.body#/id"}, "get its state"),
}

WEBHOOK_CREATE = Operation(
    "createWebhook",
    (Scope.WEBHOOKS, Scope.INBOX_READ),
    _TAG,
    "Create a webhook",
    "Each matching message is sent to the URL as the same JSON object as in the list of messages. "
    "Messages are sent in order, at least once, and signed according to Standard Webhooks. "
    "Redirects are not followed. Private addresses are allowed only if the operator permits them. "
    "A delivery without a 2xx response is retried for a day and delays later messages.",
    answer=json_response(
        "The webhook, with its secret.", "webhook made", WebhookWithSecret, links=_LINKS
    ),
    errors={
        409: error_response(
            f"The account has {MOST_WEBHOOKS} webhooks, the maximum.", "too many webhooks"
        )
    },
    request=WebhookToCreate,
)

WEBHOOKS_LIST = Operation(
    "listWebhooks",
    (Scope.WEBHOOKS,),
    _TAG,
    "List the webhooks",
    "The webhooks with their state.",
    answer=json_response("The webhooks.", "webhooks", Webhooks),
)

WEBHOOK_SHOW = Operation(
    "getWebhook",
    (Scope.WEBHOOKS,),
    _TAG,
    "Get a webhook",
    f"Returns the webhook with its last {DELIVERIES_KEPT} delivery attempts. Only the status "
    "of each response is stored.",
    answer=json_response("The webhook.", "webhook", ShownWebhookShape),
)

WEBHOOK_DELETE = Operation(
    "deleteWebhook",
    (Scope.WEBHOOKS,),
    _TAG,
    "Delete a webhook",
    "Stops all deliveries to it.",
    answer=json_response("The webhook is deleted.", "webhook deleted", DeletedWebhook),
)

WEBHOOK_ROTATE = Operation(
    "rotateWebhookSecret",
    (Scope.WEBHOOKS,),
    _TAG,
    "Create a new secret for a webhook",
    "For a day, deliveries are signed with both secrets, so that the receiver can switch.",
    answer=json_response("The webhook, with its new secret.", "webhook rotated", RotatedWebhook),
)

WEBHOOK_TEST = Operation(
    "testWebhook",
    (Scope.WEBHOOKS, Scope.INBOX_READ),
    _TAG,
    "Send a test message",
    "Sends a signed sample, or a stored message, at once, in any state of the webhook, without "
    "changing it. A webhook with the format of a provider gets the requested event.",
    answer=json_response("The result.", "webhook test", WebhookAttempt),
    request=WebhookTest,
)

WEBHOOK_REPLAY = Operation(
    "replayWebhook",
    (Scope.WEBHOOKS,),
    _TAG,
    "Repeat deliveries",
    "Delivers all matching messages after a cursor again, with the same webhook-id. A cursor after "
    "the current position skips messages. A paused webhook is resumed.",
    answer=json_response("The webhook.", "webhook replayed", Webhook),
    errors={409: _ENDED},
    request=WebhookReplay,
)

WEBHOOK_RESUME = Operation(
    "resumeWebhook",
    (Scope.WEBHOOKS,),
    _TAG,
    "Resume a webhook",
    "Retries a failing or paused webhook at once, from its current position.",
    answer=json_response("The webhook.", "webhook resumed", Webhook),
    errors={409: _ENDED},
)


class WebhookRoutes(Struct, frozen=True, eq=False):
    """Handlers that parse bodies, call an operation and render its result."""

    webhooks: ManageWebhooks

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        one = "/inbox/webhooks/<webhook_id>"
        return [
            make_route("POST", "/inbox/webhooks", self.create, WEBHOOK_CREATE, costs.SMALL),
            make_route("GET", "/inbox/webhooks", self.all, WEBHOOKS_LIST, costs.FREE),
            make_route("GET", one, self.show, WEBHOOK_SHOW, costs.FREE),
            make_route("DELETE", one, self.delete, WEBHOOK_DELETE, costs.AUDITED),
            make_route("POST", f"{one}/secret", self.rotate, WEBHOOK_ROTATE, costs.AUDITED),
            make_route("POST", f"{one}/test", self.test, WEBHOOK_TEST, costs.SMALL),
            make_route("POST", f"{one}/replay", self.replay, WEBHOOK_REPLAY, costs.FREE),
            make_route("POST", f"{one}/resume", self.resume, WEBHOOK_RESUME, costs.FREE),
        ]

    async def create(self, call: Call[WebhookToCreate]) -> Reply:
        """POST /inbox/webhooks."""
        request = call.request
        created = await self.webhooks.create(
            call.caller.account_id,
            request.url,
            request.wanted,
            call.caller.actor,
            request.provider or "",
        )
        return json_reply(render_created(created))

    async def all(self, call: Call[NoParameters]) -> Reply:
        """GET /inbox/webhooks."""
        found = await self.webhooks.of_account(call.caller.account_id)
        return json_reply(render_webhooks(found))

    async def show(self, call: Call[NoParameters]) -> Reply:
        """GET /inbox/webhooks/{webhookId}."""
        shown = await self.webhooks.show(call.caller.account_id, call.path["webhook_id"])
        return json_reply(render_shown(shown))

    async def delete(self, call: Call[NoParameters]) -> Reply:
        """DELETE /inbox/webhooks/{webhookId}."""
        await self.webhooks.delete(
            call.caller.account_id, call.path["webhook_id"], call.caller.actor
        )
        return json_reply(DeletedWebhook(success=True, id=call.path["webhook_id"]))

    async def rotate(self, call: Call[NoParameters]) -> Reply:
        """POST /inbox/webhooks/{webhookId}/secret."""
        rotated = await self.webhooks.rotate(
            call.caller.account_id, call.path["webhook_id"], call.caller.actor
        )
        return json_reply(render_rotated(rotated))

    async def test(self, call: Call[WebhookTest]) -> Reply:
        """POST /inbox/webhooks/{webhookId}/test."""
        event, message_id = call.request.event, call.request.message_id
        delivery = await self.webhooks.test(
            call.caller.account_id,
            call.path["webhook_id"],
            None if event is None else EventKind(event),
            None if message_id is None else MessageId(message_id),
        )
        return json_reply(render_delivery(delivery))

    async def replay(self, call: Call[WebhookReplay]) -> Reply:
        """POST /inbox/webhooks/{webhookId}/replay."""
        restarted = await self.webhooks.restart(
            call.caller.account_id, call.path["webhook_id"], call.request.after
        )
        return json_reply(render_webhook(restarted))

    async def resume(self, call: Call[NoParameters]) -> Reply:
        """POST /inbox/webhooks/{webhookId}/resume."""
        restarted = await self.webhooks.restart(call.caller.account_id, call.path["webhook_id"])
        return json_reply(render_webhook(restarted))
