"""The allowed statuses and bodies of each route (docs/reference/contract.md).

A route or status that is missing here fails the test that uses it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tests.spec.deliverability_shapes import (
    PREFLIGHT,
    TEST_DELETED,
    TEST_RAW,
    TEST_SHARE,
    TEST_WAITED_FOR,
    TESTS,
)
from tests.spec.heartbeat_shapes import (
    HEARTBEAT,
    HEARTBEAT_DELETED,
    HEARTBEAT_SHOWN,
    HEARTBEATS,
)
from tests.spec.inbound_shapes import INBOUND_ROUTES
from tests.spec.inbox_shapes import (
    BULK_DELETED,
    CHECKED_LINKS,
    CRASH,
    DELETED,
    ERROR,
    FAULTS,
    GATHERED,
    INBOX_ADDRESS,
    INTERRUPTED,
    MANY_TIMED_OUT,
    MESSAGE,
    MESSAGE_CHECKS,
    MESSAGES,
    NO_MESSAGE,
    OVERVIEW,
    PRESSED,
    RAW,
    RELEASED,
    SHARE,
    TIMED_OUT,
    UNWANTED,
    WEBHOOK,
    WEBHOOK_DELETED,
    WEBHOOK_MADE,
    WEBHOOK_ROTATED,
    WEBHOOK_SHOWN,
    WEBHOOK_TEST,
    WEBHOOKS,
)
from tests.spec.matching import Schema
from tests.spec.oauth_shapes import OAUTH_ROUTES
from tests.spec.provider_shapes import PROVIDER_ROUTES
from tests.spec.receiver_reports import (
    DMARC_PLAN,
    REPORT_DELETED,
    REPORTS,
    REPORTS_DELETED,
    REPORTS_DMARC,
    REPORTS_FEEDBACK,
    REPORTS_IMPORTED,
    REPORTS_TLS,
    SENDER_DECIDED,
)
from tests.spec.resources import (
    BLACKLIST_CHECK,
    BLACKLISTS,
    DOMAIN_REPORT,
    MX_CHECK,
    RECHECK,
    REPUTATION,
    TEST,
    TEST_ADDRESS,
    UNDETERMINED,
)
from tests.spec.scim_shapes import SCIM_ROUTES
from tests.spec.shapes import WORD, Bytes, Shape, record, shape
from tests.spec.team_shapes import (
    ACCESS_ENDED,
    ACCOUNT,
    ACCOUNT_SHOWN,
    ACCOUNTS,
    AUDIT,
    DONE,
    INVITATION_MADE,
    INVITATIONS,
    KEY,
    KEY_MADE,
    KEY_ROTATED,
    KEYS,
    MEMBER,
    MEMBERS,
    PROJECT,
    PROJECT_DELETED,
    PROJECTS,
    SIGN_IN_LINK,
)
from tests.spec.traffic import TRAFFIC, TRAFFIC_SOURCES
from tests.spec.watch_shapes import (
    ALERT,
    DIGEST,
    WATCH,
    WATCH_DELETED,
    WATCH_HISTORY,
    WATCH_SHOWN,
    WATCH_TABLE,
    WATCHES,
    WATCHES_MADE,
)

Body: TypeAlias = Shape | Bytes
Bodies: TypeAlias = Body | tuple[Body, ...]

API = "/api/v1"

REFUSALS: Mapping[int, Bodies] = {
    # Errors that any API request may receive instead of its response.
    400: ERROR,
    401: ERROR,
    403: ERROR,
    413: ERROR,
    415: ERROR,
    429: ERROR,
    500: CRASH,
    503: ERROR,
}

_ANY_MEDIA_TYPE = r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+(; charset=utf-8)?"

_MESSAGE_PATH = "/inbox/messages/{id}"

_TEST_PATH = "/test/{testId}"

_WEBHOOK_PATH = "/inbox/webhooks/{webhookId}"

METRICS = Bytes(r"text/plain; version=0\.0\.4; charset=utf-8", is_from_mail=False)

_HEARTBEAT_PATH = "/heartbeats/{name}"

_WATCH_PATH = "/watches/{watchId}"

_PROJECT_PATH = "/projects/{projectId}"

_ACCOUNT_PATH = "/accounts/{accountId}"

_KEY_PATH = f"{_PROJECT_PATH}/keys/{{keyId}}"

_API_ROUTES: Mapping[tuple[str, str], Mapping[int, Bodies]] = {
    # The routes of the contract
    ("GET", "/tools/mx-check"): {200: MX_CHECK, 500: (CRASH, UNDETERMINED)},
    ("GET", "/tools/blacklist-check"): {200: BLACKLIST_CHECK, 500: (CRASH, UNDETERMINED)},
    ("GET", "/tools/reputation"): {200: REPUTATION, 500: (CRASH, UNDETERMINED)},
    ("GET", "/tools/blacklists"): {200: BLACKLISTS},
    ("GET", "/tools/domain"): {200: DOMAIN_REPORT},
    ("POST", "/test/generate"): {200: TEST_ADDRESS},
    ("GET", _TEST_PATH): {200: TEST, 404: ERROR},
    ("POST", f"{_TEST_PATH}/recheck"): {200: RECHECK, 404: ERROR},
    ("GET", "/inbox/wait"): {200: MESSAGE, 408: TIMED_OUT, 503: INTERRUPTED},
    ("GET", "/inbox"): {200: OVERVIEW},
    ("GET", "/inbox/address"): {200: INBOX_ADDRESS},
    ("GET", "/inbox/messages"): {200: MESSAGES},
    ("GET", _MESSAGE_PATH): {200: MESSAGE, 404: ERROR},
    ("GET", f"{_MESSAGE_PATH}/raw"): {200: (RAW, Bytes("message/rfc822")), 404: ERROR},
    ("DELETE", _MESSAGE_PATH): {200: DELETED, 404: ERROR},
    # Additional routes of the inbox
    ("GET", "/inbox/wait/many"): {200: GATHERED, 408: MANY_TIMED_OUT, 503: INTERRUPTED},
    ("GET", "/inbox/wait/none"): {200: NO_MESSAGE, 409: UNWANTED, 503: INTERRUPTED},
    ("DELETE", "/inbox/messages"): {200: BULK_DELETED},
    ("GET", "/inbox/events"): {
        200: Bytes("text/event-stream; charset=utf-8", is_from_mail=False),
        503: INTERRUPTED,
    },
    ("GET", "/inbox/faults"): {200: FAULTS},
    ("PUT", "/inbox/faults"): {200: FAULTS},
    ("GET", "/reports"): {200: REPORTS},
    ("GET", "/reports/dmarc"): {200: REPORTS_DMARC},
    ("GET", "/reports/dmarc/plan"): {200: DMARC_PLAN},
    ("POST", "/reports/dmarc/senders"): {200: SENDER_DECIDED, 409: ERROR},
    ("GET", "/reports/feedback"): {200: REPORTS_FEEDBACK},
    ("POST", "/reports/import"): {200: REPORTS_IMPORTED},
    ("GET", "/reports/tls"): {200: REPORTS_TLS},
    ("GET", "/traffic"): {200: TRAFFIC},
    ("GET", "/traffic/sources"): {200: TRAFFIC_SOURCES},
    ("DELETE", "/reports"): {200: REPORTS_DELETED},
    ("DELETE", "/reports/{reportId}"): {200: REPORT_DELETED, 404: ERROR, 409: ERROR},
    ("POST", "/inbox/webhooks"): {200: WEBHOOK_MADE, 409: ERROR},
    ("GET", "/inbox/webhooks"): {200: WEBHOOKS},
    ("GET", _WEBHOOK_PATH): {200: WEBHOOK_SHOWN, 404: ERROR},
    ("DELETE", _WEBHOOK_PATH): {200: WEBHOOK_DELETED, 404: ERROR},
    ("POST", f"{_WEBHOOK_PATH}/secret"): {200: WEBHOOK_ROTATED, 404: ERROR},
    ("POST", f"{_WEBHOOK_PATH}/test"): {200: WEBHOOK_TEST, 404: ERROR},
    ("POST", f"{_WEBHOOK_PATH}/replay"): {200: WEBHOOK, 404: ERROR, 409: ERROR},
    ("POST", f"{_WEBHOOK_PATH}/resume"): {200: WEBHOOK, 404: ERROR, 409: ERROR},
    # docs/how-to/expect-mail-on-a-schedule.md
    ("POST", "/heartbeats"): {200: HEARTBEAT, 409: ERROR},
    ("GET", "/heartbeats"): {200: HEARTBEATS},
    ("GET", _HEARTBEAT_PATH): {200: HEARTBEAT_SHOWN, 404: ERROR},
    ("PATCH", _HEARTBEAT_PATH): {200: HEARTBEAT, 404: ERROR, 409: ERROR},
    ("DELETE", _HEARTBEAT_PATH): {200: HEARTBEAT_DELETED, 404: ERROR},
    ("POST", f"{_HEARTBEAT_PATH}/alerts/{{alertId}}/acknowledge"): {200: ALERT, 404: ERROR},
    **INBOUND_ROUTES,
    ("GET", "/metrics"): {200: METRICS},
    # docs/how-to/watch-a-domain.md
    ("GET", "/digest"): {200: DIGEST},
    ("PUT", "/digest"): {200: DIGEST},
    ("POST", "/watches"): {200: WATCH, 409: ERROR},
    ("POST", "/watches/many"): {200: WATCHES_MADE},
    ("GET", "/watches"): {200: WATCHES},
    ("GET", _WATCH_PATH): {200: WATCH_SHOWN, 404: ERROR},
    ("PATCH", _WATCH_PATH): {200: WATCH, 404: ERROR, 409: ERROR},
    ("DELETE", _WATCH_PATH): {200: WATCH_DELETED, 404: ERROR},
    ("POST", f"{_WATCH_PATH}/run"): {200: WATCH_SHOWN, 404: ERROR, 409: ERROR},
    ("GET", f"{_WATCH_PATH}/history"): {200: WATCH_HISTORY, 404: ERROR},
    ("GET", f"{_WATCH_PATH}/history.csv"): {200: WATCH_TABLE, 404: ERROR},
    ("POST", f"{_WATCH_PATH}/alerts/{{alertId}}/acknowledge"): {200: ALERT, 404: ERROR},
    ("GET", f"{_MESSAGE_PATH}/html"): {200: Bytes("text/html; charset=utf-8"), 404: ERROR},
    ("GET", f"{_MESSAGE_PATH}/attachments/{{attachmentId}}"): {
        200: Bytes(_ANY_MEDIA_TYPE),
        404: ERROR,
    },
    ("POST", f"{_MESSAGE_PATH}/share"): {200: SHARE, 404: ERROR},
    ("GET", f"{_MESSAGE_PATH}/checks"): {200: MESSAGE_CHECKS, 404: ERROR},
    ("POST", f"{_MESSAGE_PATH}/checks/links"): {200: CHECKED_LINKS, 404: ERROR},
    ("POST", f"{_MESSAGE_PATH}/checks/unsubscribe"): {200: PRESSED, 404: ERROR},
    ("POST", f"{_MESSAGE_PATH}/release"): {200: RELEASED, 404: ERROR, 502: ERROR},
    # docs/how-to/set-up-a-team.md
    ("POST", "/projects"): {200: PROJECT, 409: ERROR},
    ("GET", "/projects"): {200: PROJECTS},
    ("GET", _PROJECT_PATH): {200: PROJECT, 404: ERROR},
    ("PATCH", _PROJECT_PATH): {200: PROJECT, 404: ERROR, 409: ERROR},
    ("DELETE", _PROJECT_PATH): {200: PROJECT_DELETED, 404: ERROR},
    ("GET", f"{_PROJECT_PATH}/members"): {200: MEMBERS, 404: ERROR},
    ("PUT", f"{_PROJECT_PATH}/members/{{accountId}}"): {200: MEMBER, 404: ERROR, 409: ERROR},
    ("DELETE", f"{_PROJECT_PATH}/members/{{accountId}}"): {200: DONE, 404: ERROR, 409: ERROR},
    ("GET", f"{_PROJECT_PATH}/invitations"): {200: INVITATIONS, 404: ERROR},
    ("POST", f"{_PROJECT_PATH}/invitations"): {200: INVITATION_MADE, 404: ERROR, 409: ERROR},
    ("DELETE", f"{_PROJECT_PATH}/invitations/{{invitationId}}"): {200: DONE, 404: ERROR},
    ("GET", f"{_PROJECT_PATH}/keys"): {200: KEYS, 404: ERROR},
    ("POST", f"{_PROJECT_PATH}/keys"): {200: KEY_MADE, 404: ERROR, 409: ERROR},
    ("GET", _KEY_PATH): {200: KEY, 404: ERROR},
    ("DELETE", _KEY_PATH): {200: DONE, 404: ERROR},
    ("POST", f"{_KEY_PATH}/rotate"): {200: KEY_ROTATED, 404: ERROR, 409: ERROR},
    ("GET", f"{_PROJECT_PATH}/audit"): {200: AUDIT, 404: ERROR},
    ("GET", "/audit"): {200: AUDIT},
    ("GET", "/accounts"): {200: ACCOUNTS},
    ("POST", "/accounts"): {200: ACCOUNT, 409: ERROR},
    ("GET", _ACCOUNT_PATH): {200: ACCOUNT_SHOWN, 404: ERROR},
    ("PATCH", _ACCOUNT_PATH): {200: ACCOUNT, 404: ERROR, 409: ERROR},
    ("DELETE", _ACCOUNT_PATH): {200: PROJECT_DELETED, 404: ERROR, 409: ERROR},
    ("POST", f"{_ACCOUNT_PATH}/disable"): {200: ACCOUNT, 404: ERROR, 409: ERROR},
    ("POST", f"{_ACCOUNT_PATH}/enable"): {200: ACCOUNT, 404: ERROR},
    ("POST", f"{_ACCOUNT_PATH}/end-access"): {200: ACCESS_ENDED, 404: ERROR},
    ("POST", f"{_ACCOUNT_PATH}/sign-in-link"): {200: SIGN_IN_LINK, 404: ERROR},
    ("PUT", f"{_ACCOUNT_PATH}/identity"): {200: DONE, 404: ERROR, 409: ERROR},
    # The description of the API
    ("GET", "/openapi.json"): {
        200: shape(
            {
                "type": "object",
                "required": ["openapi", "info", "servers", "paths", "components"],
                "properties": {"openapi": {"type": "string", "pattern": "^3[.]1[.]"}},
            }
        ),
        304: Bytes("application/json; charset=utf-8", is_from_mail=False),
    },
    # Additional routes of tests
    ("GET", "/test"): {200: TESTS},
    ("GET", f"{_TEST_PATH}/wait"): {200: TEST, 404: ERROR, 408: TEST_WAITED_FOR},
    ("GET", f"{_TEST_PATH}/raw"): {200: (TEST_RAW, Bytes("message/rfc822")), 404: ERROR},
    ("POST", f"{_TEST_PATH}/preflight"): {200: PREFLIGHT, 404: ERROR},
    ("POST", f"{_TEST_PATH}/share"): {200: TEST_SHARE, 404: ERROR},
    ("DELETE", _TEST_PATH): {200: TEST_DELETED, 404: ERROR},
    ("POST", f"{_MESSAGE_PATH}/test"): {200: TEST, 404: ERROR},
}

_DEGRADED: Schema = {"type": "object", "minProperties": 1, "additionalProperties": WORD}
_NOT_WELL: Mapping[str, Schema] = {
    "degraded": _DEGRADED,
    "frees": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
}
READY = shape(record({"status": {"const": "ready"}}, _NOT_WELL))
NOT_READY = shape(record({"error": WORD, "degraded": _DEGRADED}, _NOT_WELL))
"""``/readyz`` names every problem, whether or not the daemon is ready."""

_DOCUMENTATION: Mapping[int, Bodies] = {
    200: Bytes("(text|image|application)/.+", is_from_mail=False),
    404: ERROR,
}

_OPEN_ROUTES: Mapping[tuple[str, str], Mapping[int, Bodies]] = {
    # Routes that need no key and are not counted
    ("GET", "/healthz"): {200: shape(record({"status": {"const": "ok"}}))},
    ("GET", "/readyz"): {200: READY, 503: (NOT_READY, ERROR)},
    # RFC 8460 3
    ("POST", "/tls-reports/{token}"): {
        202: shape(record({"status": {"const": "taken"}})),
        400: ERROR,
        404: ERROR,
        409: ERROR,
        413: ERROR,
        415: ERROR,
        429: ERROR,
        503: ERROR,
    },
    ("GET", "/share/{token}"): {200: (MESSAGE, TEST), 404: ERROR, 500: CRASH, 503: ERROR},
    ("GET", "/attachments/{token}/{attachmentId}"): {
        200: Bytes(_ANY_MEDIA_TYPE),
        404: ERROR,
        500: CRASH,
        503: ERROR,
    },
    ("GET", "/clients/{file}"): {
        200: Bytes(
            "text/(x-python|javascript|x-typescript|markdown); charset=utf-8|application/json",
            is_from_mail=False,
        ),
        404: ERROR,
    },
    ("GET", "/docs"): {302: Bytes("text/plain; charset=utf-8", is_from_mail=False)},
    ("GET", "/docs/"): _DOCUMENTATION,
    ("GET", "/docs/{page}"): _DOCUMENTATION,
    ("GET", "/docs/{folder}/{page}"): _DOCUMENTATION,
    ("GET", "/docs/{folder}/{inner}/{page}"): _DOCUMENTATION,
}


@dataclass(frozen=True)
class Route:
    """The allowed responses of a method on a path. ``is_metered`` is true for all API routes."""

    method: str
    path: str
    is_metered: bool
    bodies: Mapping[int, Bodies]


ROUTES: tuple[Route, ...] = (
    *(
        Route(method, API + path, True, {**REFUSALS, **bodies})
        for (method, path), bodies in _API_ROUTES.items()
    ),
    *(Route(method, path, False, bodies) for (method, path), bodies in _OPEN_ROUTES.items()),
    *(Route(method, path, False, bodies) for (method, path), bodies in PROVIDER_ROUTES.items()),
    *(Route(method, path, False, bodies) for (method, path), bodies in SCIM_ROUTES.items()),
    *(Route(method, path, False, bodies) for (method, path), bodies in OAUTH_ROUTES.items()),
)
