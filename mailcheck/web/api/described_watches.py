"""The operations on watches."""

from mailcheck.core.identifiers import SHORT_ID_LENGTH
from mailcheck.core.watches import HISTORY_KEPT, MOST_AT_ONCE, MOST_CHANGES, MOST_WATCHES
from mailcheck.core.webhooks import MOST_WEBHOOKS
from mailcheck.web.api import described_parameters as parameters
from mailcheck.web.api.described_answers import DOWNLOAD, missing
from mailcheck.wire.domains.watches import (
    DeletedWatch,
    KeptWatch,
    MadeWatches,
    NewWatch,
    NewWatches,
    WatchAlert,
    WatchChoice,
    Watches,
    WatchHistory,
    WatchWithState,
)
from mailcheck.wire.errors import Error
from mailcheck.wire.openapi.operations import (
    Answer,
    Body,
    Link,
    Operation,
    Parameter,
    json_body,
)
from mailcheck.wire.schemas import text

_TAG = "Watches"

EXAMPLE_WATCH = "k5m2c7qxw4h3a"

_NAME = {**text(), "minLength": 1, "maxLength": 10 * SHORT_ID_LENGTH}

_ID = Parameter("watchId", "path", "The watch.", _NAME, EXAMPLE_WATCH, is_required=True)

_ALERT = Parameter("alertId", "path", "The alert.", _NAME, EXAMPLE_WATCH, is_required=True)

_DAYS = HISTORY_KEPT // 86_400_000

_SINCE = Parameter(
    "since",
    "query",
    f"Only what is from this moment on; without it all that is kept, {_DAYS} days at most.",
    parameters.SINCE.schema,
    parameters.SINCE.example,
)

_MISSING = missing("watch")

_TOO_MANY = Answer(
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
        200: Answer(
            "The watch.",
            [json_body("watch made", KeptWatch)],
            links={"show": Link("getWatch", _THIS, "see what was found out")},
        ),
        409: Answer(
            f"It is watched already, or the account has {MOST_WATCHES} watches.",
            [json_body("watch exists", Error)],
        ),
    },
    (),
    json_body("new watch", NewWatch),
)

WATCHES_CREATE = Operation(
    "createWatches",
    _TAG,
    "Watch many at once",
    f"Up to {MOST_AT_ONCE}. Those that can't be watched are named with the reason, and keep no "
    "other from being made.",
    {200: Answer("What came of each.", [json_body("watches made", MadeWatches)])},
    (),
    json_body("new watches", NewWatches),
)

WATCHES_LIST = Operation(
    "listWatches",
    _TAG,
    "List the watches",
    "By their targets, with all alerts that are open.",
    {200: Answer("The watches.", [json_body("watches", Watches)])},
    (parameters.LIMIT, parameters.PAGE),
)

WATCH_SHOW = Operation(
    "getWatch",
    _TAG,
    "Look at a watch",
    "With what was found out last, and its alerts.",
    {200: Answer("The watch.", [json_body("watch", WatchWithState)]), 404: _MISSING},
    (_ID,),
)

WATCH_CHANGE = Operation(
    "changeWatch",
    _TAG,
    "Change a watch",
    "What is not named stays as it is.",
    {
        200: Answer("The watch.", [json_body("watch changed", KeptWatch)]),
        404: _MISSING,
        409: _TOO_MANY,
    },
    (_ID,),
    json_body("watch change", WatchChoice),
)

WATCH_DELETE = Operation(
    "deleteWatch",
    _TAG,
    "Delete a watch",
    "With its history and its alerts.",
    {200: Answer("It is deleted.", [json_body("watch deleted", DeletedWatch)]), 404: _MISSING},
    (_ID,),
)

WATCH_RUN = Operation(
    "runWatch",
    _TAG,
    "Run a watch now",
    "As if it were due: after a change in the zone, say. When it is run next stays as it is.",
    {
        200: Answer("What was found out.", [json_body("watch run", WatchWithState)]),
        404: _MISSING,
        409: Answer("It is being run.", [json_body("watch busy", Error)]),
    },
    (_ID,),
)

WATCH_HISTORY = Operation(
    "getWatchHistory",
    _TAG,
    "Read what changed",
    f"Changes and scores, oldest first; of changes the newest {MOST_CHANGES}.",
    {200: Answer("The history.", [json_body("watch history", WatchHistory)]), 404: _MISSING},
    (_ID, _SINCE),
)

WATCH_TABLE = Operation(
    "getWatchHistoryTable",
    _TAG,
    "Download what changed",
    "The same as a table (CSV): a row for each change, and for each factor of a score.",
    {
        200: Answer("The table.", [Body(media_type="text/csv")], DOWNLOAD),
        404: _MISSING,
    },
    (_ID, _SINCE),
)

ALERT_ACKNOWLEDGE = Operation(
    "acknowledgeAlert",
    _TAG,
    "Acknowledge an alert",
    "You know of it: it is told no more, but its end is.",
    {
        200: Answer("The alert.", [json_body("alert acknowledged", WatchAlert)]),
        404: missing("alert"),
    },
    (_ID, _ALERT),
)
