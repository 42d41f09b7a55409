"""The JSON Schemas of heartbeats, from docs/how-to/expect-mail-on-a-schedule.md."""

from tests.spec.shapes import (
    BOOLEAN,
    COUNT,
    INTEGER,
    TIMESTAMP,
    WORD,
    array,
    one_of,
    or_null,
    record,
    shape,
)
from tests.spec.watch_shapes import ALERT, DAY, NEW_WEBHOOKS, RECEIVER

_POINTS = or_null({"type": "number", "minimum": 0, "maximum": 10})

_HEARTBEAT = {
    "name": {"type": "string", "pattern": "^[a-z0-9-]{1,32}$"},
    "address": WORD,
    "state": one_of("new", "on-time", "late", "missing", "paused"),
    "schedule": WORD,
    "at": or_null({"type": "string", "pattern": r"^\d\d:\d\d$"}),
    "timeZone": or_null(WORD),
    "days": array(one_of("mon", "tue", "wed", "thu", "fri", "sat", "sun"), maxItems=6),
    "everyMinutes": or_null({"type": "integer", "minimum": 5, "maximum": 44_640}),
    "graceMinutes": {"type": "integer", "minimum": 1, "maximum": 1_320},
    "slowMinutes": {"type": "integer", "minimum": 0, "maximum": 1_440},
    "signedBy": or_null(WORD),
    "quiet": or_null({"type": "string", "pattern": r"^\d\d:\d\d-\d\d:\d\d$"}),
    "paused": BOOLEAN,
    "alertTo": array(WORD, maxItems=5),
    "createdAt": TIMESTAMP,
    "lastAt": or_null(TIMESTAMP),
    "dueAt": or_null(TIMESTAMP),
    "missed": COUNT,
    "lateSeconds": or_null(INTEGER),
    "score": _POINTS,
    "problemCount": COUNT,
}

HEARTBEAT = shape(record({**_HEARTBEAT, "newWebhooks": NEW_WEBHOOKS}))

_BEAT = record(
    {
        "at": TIMESTAMP,
        "verdict": one_of("on-time", "late", "extra", "refused", "undetermined"),
        "lateSeconds": or_null(INTEGER),
        "score": _POINTS,
        "spf": or_null(BOOLEAN),
        "dkim": or_null(BOOLEAN),
        "dmarc": or_null(BOOLEAN),
        "tls": or_null(BOOLEAN),
        "transitSeconds": or_null(COUNT),
        "slowestHost": or_null(WORD),
    }
)

_HISTORY = record(
    {
        "day": DAY,
        "onTime": COUNT,
        "late": COUNT,
        "missing": COUNT,
        "refused": COUNT,
        "problems": COUNT,
        "lowestScore": _POINTS,
    }
)

HEARTBEAT_SHOWN = shape(
    record(
        {
            **_HEARTBEAT,
            "history": array(_HISTORY, maxItems=92),
            "beats": array(_BEAT, maxItems=200),
            "alerts": array(ALERT.schema, maxItems=100),
            "receivers": array(RECEIVER, maxItems=5),
        }
    )
)

HEARTBEATS = shape(
    record(
        {
            "heartbeats": array(record(_HEARTBEAT)),
            "openAlerts": array(ALERT.schema, maxItems=100),
        }
    )
)

HEARTBEAT_DELETED = shape(record({"success": {"const": True}, "name": WORD}))
