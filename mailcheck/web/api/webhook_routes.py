"""The routes of webhooks (docs/reference/contract.md)."""

from typing import Any

from mailcheck.api.errors import Error
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
from mailcheck.api.openapi.operations import Link, Operation, Response, json_body
from mailcheck.api.requests.inbox import NewWebhook, WebhookReplay
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.webhooks import DELIVERIES_KEPT, MOST_WEBHOOKS
from mailcheck.operations.inbox.manage_webhooks import ManageWebhooks
from mailcheck.web.api.calls import Call, Route, not_found
from mailcheck.web.site.replies import Reply, json_reply

_TAG = "Webhooks"

_MISSING = not_found("webhook")

_ENDED = Response(
    "Its receiver has ended the webhook with 410: delete it, and make another one.",
    [json_body("webhook ended", Error)],
)

_LINKS = {
    "test": Link("testWebhook", {"webhookId": "$response.body#/id"}, "see whether it gets there"),
    "show": Link("getWebhook", {"webhookId": "$response.body#/id"}, "see how it goes"),
}

WEBHOOK_CREATE = Operation(
    "createWebhook",
    _TAG,
    "Be told of mail by POST",
    "Each message that matches is posted to the URL as it is in a list: in the order of the inbox, "
    "at least once, signed as Standard Webhooks asks. Redirects are not followed, and addresses "
    "that are not public are only posted to where the operator allows it. What gets no 2xx is "
    "tried again for a day, and holds up what comes after it.",
    {
        200: Response(
            "The webhook, with its secret.",
            [json_body("webhook made", WebhookWithSecret)],
            links=_LINKS,
        ),
        409: Response(
            f"The account has {MOST_WEBHOOKS} webhooks.", [json_body("too many webhooks", Error)]
        ),
    },
    NewWebhook,
    reads_body=True,
)

WEBHOOKS_LIST = Operation(
    "listWebhooks",
    _TAG,
    "List the webhooks",
    "And how each stands.",
    {200: Response("The webhooks.", [json_body("webhooks", Webhooks)])},
    NoParameters,
)

WEBHOOK_SHOW = Operation(
    "getWebhook",
    _TAG,
    "Look at a webhook",
    f"With its last {DELIVERIES_KEPT} deliveries. Of what a receiver answers the status alone is "
    "kept.",
    {
        200: Response("The webhook.", [json_body("webhook", ShownWebhookShape)]),
        404: _MISSING,
    },
    NoParameters,
)

WEBHOOK_DELETE = Operation(
    "deleteWebhook",
    _TAG,
    "Delete a webhook",
    "Nothing more is posted.",
    {
        200: Response("It is deleted.", [json_body("webhook deleted", DeletedWebhook)]),
        404: _MISSING,
    },
    NoParameters,
)

WEBHOOK_ROTATE = Operation(
    "rotateWebhookSecret",
    _TAG,
    "Give a webhook a new secret",
    "For a day what is posted is signed with both, so that a receiver can change over.",
    {
        200: Response(
            "The webhook, with its new secret.", [json_body("webhook rotated", RotatedWebhook)]
        ),
        404: _MISSING,
    },
    NoParameters,
)

WEBHOOK_TEST = Operation(
    "testWebhook",
    _TAG,
    "Post a made-up message",
    "At once, signed as any other, and whatever state the webhook is in, which stays as it is.",
    {
        200: Response("What came of it.", [json_body("webhook test", WebhookAttempt)]),
        404: _MISSING,
    },
    NoParameters,
)

WEBHOOK_REPLAY = Operation(
    "replayWebhook",
    _TAG,
    "Tell a webhook once more",
    "Of all that matches after a cursor and is still there, with the same webhook-id as before. A "
    "later cursor than its own skips what lies between. A paused webhook goes on.",
    {
        200: Response("The webhook.", [json_body("webhook replayed", Webhook)]),
        404: _MISSING,
        409: _ENDED,
    },
    WebhookReplay,
    reads_body=True,
)

WEBHOOK_RESUME = Operation(
    "resumeWebhook",
    _TAG,
    "Let a webhook go on",
    "One that fails or is paused is tried at once, from where it stands.",
    {
        200: Response("The webhook.", [json_body("webhook resumed", Webhook)]),
        404: _MISSING,
        409: _ENDED,
    },
    NoParameters,
)


class WebhookRoutes:
    """Bodies in, operation, shape out; no rule of its own."""

    def __init__(self, webhooks: ManageWebhooks) -> None:
        self._webhooks = webhooks

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        one = "/inbox/webhooks/<webhook_id>"
        return [
            Route("POST", "/inbox/webhooks", self.create, WEBHOOK_CREATE),
            Route("GET", "/inbox/webhooks", self.all, WEBHOOKS_LIST),
            Route("GET", one, self.show, WEBHOOK_SHOW),
            Route("DELETE", one, self.delete, WEBHOOK_DELETE),
            Route("POST", f"{one}/secret", self.rotate, WEBHOOK_ROTATE),
            Route("POST", f"{one}/test", self.test, WEBHOOK_TEST),
            Route("POST", f"{one}/replay", self.replay, WEBHOOK_REPLAY),
            Route("POST", f"{one}/resume", self.resume, WEBHOOK_RESUME),
        ]

    async def create(self, call: Call[NewWebhook]) -> Reply:
        """POST /inbox/webhooks."""
        request = call.request
        made = await self._webhooks.create(call.caller.account_id, request.url, request.wanted)
        return json_reply(render_created(made))

    async def all(self, call: Call[NoParameters]) -> Reply:
        """GET /inbox/webhooks."""
        found = await self._webhooks.of_account(call.caller.account_id)
        return json_reply(render_webhooks(found))

    async def show(self, call: Call[NoParameters]) -> Reply:
        """GET /inbox/webhooks/{webhookId}."""
        shown = await self._webhooks.show(call.caller.account_id, call.webhook_id)
        return json_reply(render_shown(shown))

    async def delete(self, call: Call[NoParameters]) -> Reply:
        """DELETE /inbox/webhooks/{webhookId}."""
        await self._webhooks.delete(call.caller.account_id, call.webhook_id)
        return json_reply(DeletedWebhook(success=True, id=call.webhook_id))

    async def rotate(self, call: Call[NoParameters]) -> Reply:
        """POST /inbox/webhooks/{webhookId}/secret."""
        rotated = await self._webhooks.rotate(call.caller.account_id, call.webhook_id)
        return json_reply(render_rotated(rotated))

    async def test(self, call: Call[NoParameters]) -> Reply:
        """POST /inbox/webhooks/{webhookId}/test."""
        delivery = await self._webhooks.test(call.caller.account_id, call.webhook_id)
        return json_reply(render_delivery(delivery))

    async def replay(self, call: Call[WebhookReplay]) -> Reply:
        """POST /inbox/webhooks/{webhookId}/replay."""
        restarted = await self._webhooks.restart(
            call.caller.account_id, call.webhook_id, call.request.after
        )
        return json_reply(render_webhook(restarted))

    async def resume(self, call: Call[NoParameters]) -> Reply:
        """POST /inbox/webhooks/{webhookId}/resume."""
        restarted = await self._webhooks.restart(call.caller.account_id, call.webhook_id)
        return json_reply(render_webhook(restarted))
