"""The JSON Schemas of watches, from docs/how-to/watch-a-domain.md."""

from tests.spec.shapes import (
    BOOLEAN,
    COUNT,
    INTEGER,
    STRING,
    TIMESTAMP,
    WORD,
    Bytes,
    array,
    one_of,
    or_null,
    record,
    shape,
)

SEVERITY = one_of("error", "warning", "undetermined", "note")

DAY = {"type": "string", "format": "calendar-date"}

_WATCH = {
    "id": WORD,
    "target": WORD,
    "kind": one_of("domain", "address"),
    "everyMinutes": {"type": "integer", "minimum": 15, "maximum": 1440},
    "selectors": array(WORD),
    "addresses": array(WORD),
    "quiet": or_null({"type": "string", "pattern": r"^\d\d:\d\d-\d\d:\d\d$"}),
    "paused": BOOLEAN,
    "alertTo": array(WORD, maxItems=5),
    "createdAt": TIMESTAMP,
    "lastRunAt": or_null(TIMESTAMP),
    "problemCount": or_null(COUNT),
    "nextRunAt": or_null(TIMESTAMP),
}

_ALERT = record(
    {
        "id": WORD,
        "watchId": WORD,
        "target": WORD,
        "severity": SEVERITY,
        "sentence": WORD,
        "openedAt": TIMESTAMP,
        "endedAt": or_null(TIMESTAMP),
        "ending": STRING,
        "acknowledgedAt": or_null(TIMESTAMP),
    }
)

_SCORE = {"type": "integer", "minimum": 0, "maximum": 100}

_HOST = record(
    {
        "host": WORD,
        "answers": or_null(BOOLEAN),
        "certificateEndsOn": or_null(DAY),
        "certificateDays": or_null(INTEGER),
    }
)

NEW_WEBHOOKS = array(
    record({"id": WORD, "url": WORD, "secret": {"type": "string", "pattern": "^whsec_"}})
)

WATCH = shape(record({**_WATCH, "newWebhooks": NEW_WEBHOOKS}))

RECEIVER = record(
    {
        "to": WORD,
        "webhookId": WORD,
        "state": one_of("active", "paused", "ended"),
        "failingSince": or_null(TIMESTAMP),
        "problem": STRING,
        "nextAttemptAt": or_null(TIMESTAMP),
    }
)

WATCH_SHOWN = shape(
    record(
        {
            **_WATCH,
            "score": or_null(_SCORE),
            "grade": or_null(WORD),
            "problems": array(record({"about": WORD, "severity": SEVERITY, "sentence": WORD})),
            "undetermined": array(WORD),
            "hosts": array(_HOST),
            "alerts": array(_ALERT, maxItems=100),
            "receivers": array(RECEIVER, maxItems=5),
        }
    )
)

WATCHES = shape(
    record({"watches": array(record(_WATCH)), "total": COUNT, "openAlerts": array(_ALERT)})
)

WATCHES_MADE = shape(
    record(
        {
            "made": array(record(_WATCH)),
            "refused": array(record({"target": STRING, "error": WORD})),
            "newWebhooks": NEW_WEBHOOKS,
        }
    )
)

WATCH_DELETED = shape(record({"success": {"const": True}, "id": WORD}))

WATCH_HISTORY = shape(
    record(
        {
            "id": WORD,
            "target": WORD,
            "since": TIMESTAMP,
            "changes": array(
                record(
                    {
                        "at": TIMESTAMP,
                        "topic": WORD,
                        "name": STRING,
                        "before": or_null(STRING),
                        "after": or_null(STRING),
                        "severity": SEVERITY,
                        "sentence": WORD,
                    }
                )
            ),
            "scores": array(
                record(
                    {
                        "at": TIMESTAMP,
                        "score": _SCORE,
                        "grade": WORD,
                        "factors": {"type": "object", "additionalProperties": INTEGER},
                    }
                )
            ),
            "hosts": array(
                record(
                    {
                        "host": WORD,
                        "uptime": or_null({"type": "number", "minimum": 0, "maximum": 1}),
                    }
                )
            ),
            "truncated": BOOLEAN,
        }
    )
)

WATCH_TABLE = Bytes("text/csv; charset=utf-8")

ALERT = shape(_ALERT)

DIGEST = shape(
    record(
        {
            "every": or_null(one_of("week", "month")),
            "to": array(WORD, maxItems=5),
            "quiet": or_null({"type": "string", "pattern": r"^\d\d:\d\d-\d\d:\d\d$"}),
            "nextAt": or_null(TIMESTAMP),
        }
    )
)
