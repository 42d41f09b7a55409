"""The operations on webhooks."""

from mailcheck.core.identifiers import SHORT_ID_LENGTH
from mailcheck.core.webhooks import DELIVERIES_KEPT, MOST_WEBHOOKS
from mailcheck.web.api.described_answers import missing
from mailcheck.wire.errors import Error
from mailcheck.wire.inbox.webhooks import (
    DeletedWebhook,
    NewWebhook,
    RotatedWebhook,
    ShownWebhookShape,
    Webhook,
    WebhookAttempt,
    WebhookReplay,
    Webhooks,
    WebhookWithSecret,
)
from mailcheck.wire.openapi.operations import Answer, Link, Operation, Parameter, json_body
from mailcheck.wire.schemas import text

_TAG = "Webhooks"

EXAMPLE_WEBHOOK = "k5m2c7qxw4h3a"

_ID = Parameter(
    "webhookId",
    "path",
    "The webhook.",
    {**text(), "minLength": 1, "maxLength": 10 * SHORT_ID_LENGTH},
    EXAMPLE_WEBHOOK,
    is_required=True,
)

_MISSING = missing("webhook")

_ENDED = Answer(
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
        200: Answer(
            "The webhook, with its secret.",
            [json_body("webhook made", WebhookWithSecret)],
            links=_LINKS,
        ),
        409: Answer(
            f"The account has {MOST_WEBHOOKS} webhooks.", [json_body("too many webhooks", Error)]
        ),
    },
    (),
    json_body("new webhook", NewWebhook),
)

WEBHOOKS_LIST = Operation(
    "listWebhooks",
    _TAG,
    "List the webhooks",
    "And how each stands.",
    {200: Answer("The webhooks.", [json_body("webhooks", Webhooks)])},
)

WEBHOOK_SHOW = Operation(
    "getWebhook",
    _TAG,
    "Look at a webhook",
    f"With its last {DELIVERIES_KEPT} deliveries. Of what a receiver answers the status alone is "
    "kept.",
    {
        200: Answer("The webhook.", [json_body("webhook", ShownWebhookShape)]),
        404: _MISSING,
    },
    (_ID,),
)

WEBHOOK_DELETE = Operation(
    "deleteWebhook",
    _TAG,
    "Delete a webhook",
    "Nothing more is posted.",
    {200: Answer("It is deleted.", [json_body("webhook deleted", DeletedWebhook)]), 404: _MISSING},
    (_ID,),
)

WEBHOOK_ROTATE = Operation(
    "rotateWebhookSecret",
    _TAG,
    "Give a webhook a new secret",
    "For a day what is posted is signed with both, so that a receiver can change over.",
    {
        200: Answer(
            "The webhook, with its new secret.", [json_body("webhook rotated", RotatedWebhook)]
        ),
        404: _MISSING,
    },
    (_ID,),
)

WEBHOOK_TEST = Operation(
    "testWebhook",
    _TAG,
    "Post a made-up message",
    "At once, signed as any other, and whatever state the webhook is in, which stays as it is.",
    {
        200: Answer("What came of it.", [json_body("webhook test", WebhookAttempt)]),
        404: _MISSING,
    },
    (_ID,),
)

WEBHOOK_REPLAY = Operation(
    "replayWebhook",
    _TAG,
    "Tell a webhook once more",
    "Of all that matches after a cursor and is still there, with the same webhook-id as before. A "
    "later cursor than its own skips what lies between. A paused webhook goes on.",
    {
        200: Answer("The webhook.", [json_body("webhook replayed", Webhook)]),
        404: _MISSING,
        409: _ENDED,
    },
    (_ID,),
    json_body("webhook replay", WebhookReplay),
)

WEBHOOK_RESUME = Operation(
    "resumeWebhook",
    _TAG,
    "Let a webhook go on",
    "One that fails or is paused is tried at once, from where it stands.",
    {
        200: Answer("The webhook.", [json_body("webhook resumed", Webhook)]),
        404: _MISSING,
        409: _ENDED,
    },
    (_ID,),
)
