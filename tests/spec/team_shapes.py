"""The bodies of projects, members, invitations, keys, accounts and the audit log."""

from tests.spec.matching import Schema
from tests.spec.shapes import (
    BOOLEAN,
    COUNT,
    STRING,
    TIMESTAMP,
    WORD,
    array,
    one_of,
    or_null,
    record,
    shape,
)

_TRUE: Schema = {"const": True}

_ROLE = one_of("owner", "editor", "reader")

_SCOPE: Schema = {"type": "string", "pattern": "^[a-z]+(:[a-z]+)?$"}

_PROJECT = record(
    {"id": WORD, "name": WORD, "address": WORD, "createdAt": TIMESTAMP, "disabled": BOOLEAN}
)

_HOLDING: Schema = {"type": "object", "additionalProperties": COUNT}

_MEMBER = record({"id": WORD, "name": WORD, "role": _ROLE, "addedAt": TIMESTAMP})

_INVITATION = {"id": WORD, "role": _ROLE, "address": or_null(WORD), "expiresAt": TIMESTAMP}

_KEY = {
    "id": WORD,
    "name": STRING,
    "hint": STRING,
    "scopes": or_null(array(_SCOPE)),
    "tags": array(WORD),
    "tagPrefix": or_null(WORD),
    "perMinute": COUNT,
    "perDay": COUNT,
    "usedThisMinute": COUNT,
    "usedToday": COUNT,
    "createdAt": TIMESTAMP,
    "expiresAt": or_null(TIMESTAMP),
    "lastUsedAt": or_null(TIMESTAMP),
    "madeBy": or_null(record({"id": WORD, "name": STRING, "hasLeft": BOOLEAN})),
    "isProgram": BOOLEAN,
}

_SECRET: Schema = {"type": "string", "pattern": "^mck_[a-z2-7]{32}$"}

_DONE = record({"success": _TRUE, "id": WORD})

PROJECT = shape(_PROJECT)
PROJECTS = shape(record({"projects": array(_PROJECT)}))
PROJECT_DELETED = shape(record({"success": _TRUE, "id": WORD, "deleted": _HOLDING}))
MEMBER = shape(_MEMBER)
MEMBERS = shape(record({"members": array(_MEMBER)}))
INVITATION_MADE = shape(
    record({**_INVITATION, "url": {"type": "string", "pattern": "/join[?]invitation="}})
)
INVITATIONS = shape(record({"invitations": array(record(_INVITATION))}))
KEY = shape(record(_KEY))
KEYS = shape(record({"keys": array(record(_KEY))}))
KEY_MADE = shape(record({**_KEY, "secret": _SECRET}))
KEY_ROTATED = shape(
    record({**_KEY, "secret": _SECRET, "earlierId": WORD, "earlierUntil": TIMESTAMP})
)
DONE = shape(_DONE)

_ACCOUNT = {
    "id": WORD,
    "name": WORD,
    "address": WORD,
    "isProject": BOOLEAN,
    "isOperator": BOOLEAN,
    "createdAt": TIMESTAMP,
    "disabledAt": or_null(TIMESTAMP),
    "maxMessages": or_null(COUNT),
    "maxBytes": or_null(COUNT),
    "retentionHours": or_null(COUNT),
}

_USE = {**_ACCOUNT, "messages": COUNT, "bytes": COUNT, "lastActiveAt": or_null(TIMESTAMP)}

_NUMBERS = {"sessions": COUNT, "programs": COUNT}

_ENTRY = record(
    {
        "id": WORD,
        "at": TIMESTAMP,
        "accountId": or_null(WORD),
        "account": STRING,
        "action": WORD,
        "actor": WORD,
        "client": STRING,
        "detail": STRING,
    }
)

ACCOUNT = shape(record(_ACCOUNT))
ACCOUNTS = shape(record({"accounts": array(record(_USE)), "total": COUNT}))
ACCOUNT_SHOWN = shape(record({**_ACCOUNT, **_NUMBERS, "keys": COUNT, "sharedKeys": COUNT}))
ACCESS_ENDED = shape(record({"success": _TRUE, "id": WORD, **_NUMBERS}))
SIGN_IN_LINK = shape(
    record({"id": WORD, "url": {"type": "string", "pattern": "/sign-in/link[?]code="}})
)
AUDIT = shape(
    record(
        {
            "entries": array(_ENTRY),
            "cursor": {"type": "string", "pattern": "^a[0-9]+$"},
            "hasMore": BOOLEAN,
        }
    )
)
