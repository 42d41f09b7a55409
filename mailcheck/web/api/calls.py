"""A request as the handlers see it, the table of routes, and the answers that routes share."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from mailcheck.api.deliverability.tests import TestIdField
from mailcheck.api.errors import Crash, Error
from mailcheck.api.inbox.overview import MessageIdField
from mailcheck.api.openapi.operations import (
    DescribedOperation,
    Operation,
    Parameter,
    Response,
    json_body,
)
from mailcheck.api.requests.parsing import Request
from mailcheck.api.shapes import Schema, integer_schema, schema_of_type, string_schema
from mailcheck.api.urls import PublicUrls
from mailcheck.core.accounts import Caller
from mailcheck.core.identifiers import SHORT_ID_LENGTH, MessageId
from mailcheck.core.instants import Instant
from mailcheck.web.site.errors import RETRY_AFTER_SECONDS
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.replies import Reply
from mailcheck.web.site.requests import MAX_BODY

TAGS: Mapping[str, str] = {
    "Inbox": "Mail that your software sent: take an address, wait for what comes, read it. "
    "Messages are kept for 24 hours unless the operator says otherwise.",
    "Webhooks": "Be told of mail at an address of yours, in order and signed.",
    "Domain tools": "Whether mail to and from a domain will arrive. What could not be found out "
    "is never shown as no.",
    "Watches": "Domains and addresses that are checked again and again: what changed, what is "
    "wrong since when, and what has ended.",
    "Reports of receivers": "Who sends as your domains, and whether mail comes in encrypted: what "
    "receivers have reported by mail to the addresses of the account.",
    "Deliverability tests": "Take an address, send one mail to it from the server under test, "
    "and wait for the report with a score from 0 to 10.",
    "Description": "This API, for programs.",
}

LIMIT_HEADERS: Mapping[str, Schema] = {
    "X-RateLimit-Remaining": integer_schema(
        "requests left in this clock minute: of the key, or of the address without one", minimum=0
    ),
    "X-RateLimit-Daily-Remaining": integer_schema(
        "requests left on this day (UTC): of the key, or of the address without one", minimum=0
    ),
}
"""On every answer."""

_RETRY_AFTER: Mapping[str, Schema] = {
    "Retry-After": integer_schema("seconds after which it is worth asking again", minimum=1)
}

_BEARER: Mapping[str, Schema] = {
    "WWW-Authenticate": {**string_schema("how to send a key"), "const": "Bearer"}
}

COMMON_ERRORS: Mapping[int, Response] = {
    400: Response(
        "A parameter is missing, not known here or can't be read; `error` says what to send.",
        [json_body("badParameter", Error)],
    ),
    401: Response(
        "The API key is missing, invalid or revoked. It costs no key anything; the address has "
        "60 such answers a minute.",
        [json_body("unauthorized", Error)],
        _BEARER,
    ),
    413: Response(
        f"The body of the request has more than {MAX_BODY:,} bytes.",
        [json_body("tooLarge", Error)],
    ),
    429: Response(
        "The limit of the minute or the day is exhausted, or too many waits of this key are "
        "under way; `error` names the limit and when it ends.",
        [json_body("tooMany", Error)],
        _RETRY_AFTER,
    ),
    500: Response(
        "The service failed. The cause stands in its log under `reference`.",
        [json_body("crash", Crash)],
    ),
    503: Response(
        "The service is overloaded, shuts down, or its store does not answer: ask again after "
        f"Retry-After ({RETRY_AFTER_SECONDS} s).",
        [json_body("unavailable", Error)],
        _RETRY_AFTER,
    ),
}

UNROUTED_ERRORS: Mapping[int, Response] = {
    404: Response("There is nothing at the path.", [json_body("nowhere", Error)]),
    405: Response(
        "The path does not take the method; `Allow` lists those it takes.",
        [json_body("wrongMethod", Error)],
        {"Allow": string_schema("methods, separated by commas")},
    ),
}
"""What a request gets that is none of the operations."""

DOWNLOAD: Mapping[str, Schema] = {
    "Content-Disposition": string_schema("attachment, with a file name: it is saved, never opened"),
    "Content-Security-Policy": string_schema("a sandbox"),
}


def not_found(what: str) -> Response:
    """Give the 404 of a path that names something; what is another account's is missing too."""
    return Response(
        f"There is no such {what}, or it is another account's.",
        [json_body(f"no {what}", Error)],
    )


R = TypeVar("R", bound=Request)


class Call(Struct, Generic[R], frozen=True):
    """One admitted request: who calls, what is asked, and when it came in.

    ``urls`` are the addresses under which this client reaches us.
    """

    caller: Caller
    received_at: Instant
    request: R
    path: Mapping[str, str]
    accept: str
    urls: PublicUrls
    body: bytes = b""
    last_event_id: str = ""

    @property
    def message_id(self) -> MessageId:
        """Give the message that the path names."""
        return MessageId(self.path["message_id"])

    @property
    def test_id(self) -> str:
        """Give the deliverability test that the path names, whether there is such a one or not."""
        return self.path["test_id"]

    @property
    def webhook_id(self) -> str:
        """Give the webhook that the path names, whether there is such a one or not."""
        return self.path["webhook_id"]

    @property
    def watch_id(self) -> str:
        """Give the watch that the path names, whether there is such a one or not."""
        return self.path["watch_id"]


EXAMPLE_MESSAGE = EXAMPLE_REPORT = "01a1fc41-0219-76dd-ac7e-95beebac7c40"
EXAMPLE_TEST = "k5m2c7qxw4h3a"

_SHORT_ID: Schema = {**string_schema(), "minLength": 1, "maxLength": 10 * SHORT_ID_LENGTH}
_REPORT_ID: Schema = {**string_schema(), "minLength": 1, "maxLength": 100}


def _in_path(name: str, description: str, schema: Schema, example: str) -> Parameter:
    return Parameter(name, "path", description, schema, example, is_required=True)


PATH_PARAMETERS: Mapping[str, Parameter] = {
    "message_id": _in_path("id", "The message.", schema_of_type(MessageIdField), EXAMPLE_MESSAGE),
    "attachment_id": _in_path(
        "attachmentId", "The attachment: its `id` in the message.", string_schema(), "1"
    ),
    "test_id": _in_path("testId", "The test.", schema_of_type(TestIdField), EXAMPLE_TEST),
    "webhook_id": _in_path("webhookId", "The webhook.", _SHORT_ID, EXAMPLE_TEST),
    "watch_id": _in_path("watchId", "The watch.", _SHORT_ID, EXAMPLE_TEST),
    "alert_id": _in_path("alertId", "The alert.", _SHORT_ID, EXAMPLE_TEST),
    "report_id": _in_path("reportId", "The report.", _REPORT_ID, EXAMPLE_REPORT),
}
"""The variables of paths, by their names in routes."""

_VARIABLE = re.compile(r"<(\w+)>")


class Route(Struct, Generic[R], frozen=True):
    """A method and a path below the base URL, what answers it, and how that is described."""

    method: str
    path: str
    handle: Callable[[Call[R]], Awaitable[Reply | Stream]]
    operation: Operation[R]

    @property
    def described(self) -> DescribedOperation:
        """The operation where it stands, as clients write the path."""
        variables = [PATH_PARAMETERS[name] for name in _VARIABLE.findall(self.path)]
        path = _VARIABLE.sub(lambda name: f"{{{PATH_PARAMETERS[name[1]].name}}}", self.path)
        return DescribedOperation(self.method, path, self.operation, variables)
