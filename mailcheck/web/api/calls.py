"""Requests as handlers receive them, the type of routes, and the responses that routes share."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from mailcheck.api.deliverability.tests import TestIdField
from mailcheck.api.errors import Crash
from mailcheck.api.inbox.overview import MessageIdField
from mailcheck.api.openapi.operations import (
    DescribedOperation,
    Operation,
    PathVariable,
    Response,
    error_response,
    json_response,
)
from mailcheck.api.requests.parsing import Request
from mailcheck.api.shapes import Schema, integer_schema, schema_of_type, string_schema
from mailcheck.core.identifiers import SHORT_ID_LENGTH
from mailcheck.web.site import application
from mailcheck.web.site.application import Call
from mailcheck.web.site.bodies import JSON
from mailcheck.web.site.costs import Cost
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.failures import RETRY_AFTER_SECONDS
from mailcheck.web.site.replies import Reply
from mailcheck.web.site.requests import MAX_BODY

TAGS: Mapping[str, str] = {
    "Inbox": "Receive the mail that your software sends: take an address, wait for the mail, and "
    "read it. Messages are kept for 24 hours unless the operator changes it.",
    "Webhooks": "Receive messages at your own URL, in order and signed.",
    "Mail into applications": "Test an application that receives mail: send mail to it as a "
    "provider does, and see what it answered.",
    "Domain tools": "Check whether mail to and from a domain will arrive. An undetermined result "
    "is never reported as no.",
    "Heartbeats": "Mail that is expected on a schedule, with its days, results and alerts.",
    "Watches": "Domains and IP addresses that are checked regularly, with their changes, current "
    "problems and alerts.",
    "Reports of receivers": "Who sends mail as your domains, and whether incoming mail is "
    "encrypted, from the DMARC and TLS reports that receivers sent to the account.",
    "Traffic of a mail server": "Who sends mail to a mail server that uses the milter endpoint, "
    "and how much of it passes SPF, DKIM and DMARC.",
    "Deliverability tests": "Take a test address, send one mail to it from the server under test, "
    "and wait for the report with a score from 0 to 10.",
    "Projects": "Projects, their members, invitations and API keys, for programs that set up a "
    "team. A key needs the scope `project:admin`, which no key has unless it names it.",
    "Accounts": "All accounts and the audit log of the service, for keys of the operator. A key "
    "needs the scope `operator`, which no key has unless it names it.",
    "Description": "The OpenAPI document of this API.",
}

LIMIT_HEADERS: Mapping[str, Schema] = {
    "X-RateLimit-Remaining": integer_schema(
        "requests left in this clock minute, of the key or of an address without a key", minimum=0
    ),
    "X-RateLimit-Daily-Remaining": integer_schema(
        "requests left on this day (UTC), of the key or of an address without a key", minimum=0
    ),
}
"""The headers of every response."""

_RETRY_AFTER: Mapping[str, Schema] = {
    "Retry-After": integer_schema("seconds to wait before the next attempt", minimum=1)
}

_BEARER: Mapping[str, Schema] = {
    "WWW-Authenticate": {**string_schema("how to send a key"), "const": "Bearer"}
}

COMMON_ERRORS: Mapping[int, Response] = {
    400: error_response(
        "A parameter is missing, unknown or invalid; `error` says what to send.", "badParameter"
    ),
    401: error_response(
        "The API key is missing, invalid or revoked. The request counts for no key; an address "
        "may send 60 such requests a minute.",
        "unauthorized",
        headers=_BEARER,
    ),
    403: error_response(
        "The API key is limited: `error` names the scope that it lacks, or the tags that it is "
        "limited to.",
        "forbidden",
    ),
    413: error_response(f"The request body has more than {MAX_BODY:,} bytes.", "tooLarge"),
    415: error_response(
        "The body has a media type that the route does not read. A client that sets none, or one "
        "of its defaults such as that of a form, need not send application/json.",
        "wrongType",
    ),
    429: error_response(
        "The limit of the minute or the day is reached, or too many waits of this key are in "
        "progress; `error` names the limit and when it ends.",
        "tooMany",
        headers=_RETRY_AFTER,
    ),
    500: json_response(
        "An internal error. Its cause is in the log of the service under `reference`.",
        "crash",
        Crash,
    ),
    503: error_response(
        "The service is overloaded or shutting down, or its store is unavailable: retry after "
        f"Retry-After ({RETRY_AFTER_SECONDS} s).",
        "unavailable",
        headers=_RETRY_AFTER,
    ),
}

UNROUTED_ERRORS: Mapping[int, Response] = {
    404: error_response("The path does not exist.", "nowhere"),
    405: error_response(
        "The path does not support the method; `Allow` lists the supported methods.",
        "wrongMethod",
        headers={"Allow": string_schema("methods, separated by commas")},
    ),
}
"""The responses to a request that matches no operation."""

DOWNLOAD: Mapping[str, Schema] = {
    "Content-Disposition": string_schema("attachment with a file name, so that it is saved"),
    "Content-Security-Policy": string_schema("a sandbox"),
}


R = TypeVar("R", bound=Request)


EXAMPLE_MESSAGE = EXAMPLE_REPORT = "01a1fc41-0219-76dd-ac7e-95beebac7c40"
EXAMPLE_TEST = "k5m2c7qxw4h3a"

_SHORT_ID: Schema = {**string_schema(), "minLength": 1, "maxLength": 10 * SHORT_ID_LENGTH}
_NAME: Schema = {**string_schema(), "minLength": 1, "maxLength": 100}
_REPORT_ID: Schema = {**string_schema(), "minLength": 1, "maxLength": 100}


def _in_path(name: str, what: str, description: str, schema: Schema, example: str) -> PathVariable:
    missing = f"The {what} does not exist, or belongs to another account."
    not_found = error_response(missing, f"no {what}")
    return PathVariable(
        name, "path", description, schema, example, is_required=True, not_found=not_found
    )


PATH_PARAMETERS: Mapping[str, PathVariable] = {
    "message_id": _in_path(
        "id", "message", "Id of the message.", schema_of_type(MessageIdField), EXAMPLE_MESSAGE
    ),
    "attachment_id": _in_path(
        "attachmentId", "attachment", "Id of the attachment in the message.", string_schema(), "1"
    ),
    "test_id": _in_path(
        "testId", "test", "Id of the test.", schema_of_type(TestIdField), EXAMPLE_TEST
    ),
    "webhook_id": _in_path("webhookId", "webhook", "Id of the webhook.", _SHORT_ID, EXAMPLE_TEST),
    "route_id": _in_path("routeId", "inbound route", "Id of the route.", _SHORT_ID, EXAMPLE_TEST),
    "watch_id": _in_path("watchId", "watch", "Id of the watch.", _SHORT_ID, EXAMPLE_TEST),
    "alert_id": _in_path("alertId", "alert", "Id of the alert.", _SHORT_ID, EXAMPLE_TEST),
    "heartbeat_name": _in_path("name", "heartbeat", "Name of the heartbeat.", _NAME, "backup"),
    "report_id": _in_path("reportId", "report", "Id of the report.", _REPORT_ID, EXAMPLE_REPORT),
    "project_id": _in_path(
        "projectId",
        "project",
        "Id of the project, or `me`: the account of the key.",
        _SHORT_ID,
        "me",
    ),
    "account_id": _in_path("accountId", "account", "Id of the account.", _SHORT_ID, EXAMPLE_TEST),
    "member_id": _in_path("accountId", "member", "Id of the account.", _SHORT_ID, EXAMPLE_TEST),
    "invitation_id": _in_path(
        "invitationId", "invitation", "Id of the invitation.", _SHORT_ID, EXAMPLE_TEST
    ),
    "key_id": _in_path("keyId", "key", "Id of the key.", _SHORT_ID, EXAMPLE_TEST),
}
"""The path variables by their names in routes."""

_VARIABLE = re.compile(r"<(\w+)>")


class Route(application.Route[R], Generic[R], frozen=True, kw_only=True):
    """A route of the API with its description."""

    operation: Operation[R]

    @property
    def described(self) -> DescribedOperation:
        """The operation with its path in the syntax of OpenAPI."""
        variables = [PATH_PARAMETERS[name] for name in _VARIABLE.findall(self.path)]
        path = _VARIABLE.sub(lambda name: f"{{{PATH_PARAMETERS[name[1]].name}}}", self.path)
        return DescribedOperation(self.method, path, self.operation, variables)


def make_route(
    method: str,
    path: str,
    handle: Callable[[Call[R]], Awaitable[Reply | Stream]],
    operation: Operation[R],
    cost: Cost,
) -> Route[R]:
    """Return a route below the base URL, with what its operation declares."""
    return Route(
        method=method,
        path=path,
        handle=handle,
        request=operation.request,
        cost=cost,
        scopes=operation.scopes,
        reads=(JSON,) if operation.reads_body else (),
        is_open=not operation.needs_key,
        operation=operation,
    )
