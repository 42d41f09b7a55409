"""The operation of the events of an inbox."""

from mailcheck.core.cursors import CURSOR_PATTERN
from mailcheck.operations.inbox.follow_inbox import HEARTBEAT
from mailcheck.operations.ranges import LONGEST_STREAM, SHORTEST_WAIT
from mailcheck.web.api import described_inbox as inbox
from mailcheck.web.api.described_answers import REFUSALS
from mailcheck.wire.errors import Interrupted
from mailcheck.wire.openapi.operations import Answer, Body, Operation, Parameter, json_body
from mailcheck.wire.schemas import number, text

_LAST_EVENT_ID = Parameter(
    "Last-Event-ID",
    "header",
    "The `id` of the last event that was got: it goes on from there, whatever `after` says. "
    "Browsers and other clients of server-sent events send it by themselves.",
    {**text(), "pattern": CURSOR_PATTERN},
)

_SECONDS = Parameter(
    "seconds",
    "query",
    "Seconds after which the stream ends; without it goes on.",
    number(minimum=SHORTEST_WAIT, maximum=LONGEST_STREAM),
)

EVENTS = Operation(
    "followInbox",
    "Inbox",
    "Be told of each message as it comes",
    "Server-sent events. `message` has a message as in a list, each once and in order; its `id` "
    "is the cursor to go on from. `refused` has a mail that may have been one of those and was "
    "refused, as in `rejected`; it has no `id`. At first, and after "
    f"{HEARTBEAT:g} seconds without one, an `id` alone says up to where all was told. "
    "`closed` says why the stream ends. Who connects again with the last `id` misses nothing and "
    "gets no message twice. A stream takes a place among the waits of its key, ends when that is "
    "revoked, and is cut off where its client reads nothing for 30 seconds.",
    {
        200: Answer("The events.", [Body(media_type="text/event-stream")]),
        503: Answer(
            "The service shuts down, or its store does not answer: connect again.",
            [json_body("interrupted", Interrupted)],
            REFUSALS[503].headers,
        ),
    },
    (*inbox.WAIT_FILTERS, _LAST_EVENT_ID, _SECONDS),
)
