"""A request as the handlers see it, the table of routes, and the answers that routes share."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from mailcheck.api.deliverability.tests import NameOfTest
from mailcheck.api.errors import Crash, Error
from mailcheck.api.inbox.overview import MessageName
from mailcheck.api.openapi.operations import Answer, Described, Operation, Parameter, json_body
from mailcheck.api.requests.reading import Request
from mailcheck.api.shapes import Schema, like, text, whole_number
from mailcheck.api.urls import PublicUrls
from mailcheck.core.accounts import Caller
from mailcheck.core.identifiers import SHORT_ID_LENGTH, MessageId
from mailcheck.core.instants import Instant
from mailcheck.web.site.errors import TRY_AGAIN
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
    "X-RateLimit-Remaining": whole_number(
        "requests left in this clock minute: of the key, or of the address without one", minimum=0
    ),
    "X-RateLimit-Daily-Remaining": whole_number(
        "requests left on this day (UTC): of the key, or of the address without one", minimum=0
    ),
}
"""On every answer."""

_RETRY_AFTER: Mapping[str, Schema] = {
    "Retry-After": whole_number("seconds after which it is worth asking again", minimum=1)
}

_BEARER: Mapping[str, Schema] = {
    "WWW-Authenticate": {**text("how to send a key"), "const": "Bearer"}
}

REFUSALS: Mapping[int, Answer] = {
    400: Answer(
        "A parameter is missing, not known here or can't be read; `error` says what to send.",
        [json_body("badParameter", Error)],
    ),
    401: Answer(
        "The API key is missing, invalid or revoked. It costs no key anything; the address has "
        "60 such answers a minute.",
        [json_body("unauthorized", Error)],
        _BEARER,
    ),
    413: Answer(
        f"The body of the request has more than {MAX_BODY:,} bytes.",
        [json_body("tooLarge", Error)],
    ),
    429: Answer(
        "The limit of the minute or the day is exhausted, or too many waits of this key are "
        "under way; `error` names the limit and when it ends.",
        [json_body("tooMany", Error)],
        _RETRY_AFTER,
    ),
    500: Answer(
        "The service failed. The cause stands in its log under `reference`.",
        [json_body("crash", Crash)],
    ),
    503: Answer(
        "The service is overloaded, shuts down, or its store does not answer: ask again after "
        f"Retry-After ({TRY_AGAIN} s).",
        [json_body("unavailable", Error)],
        _RETRY_AFTER,
    ),
}

ELSEWHERE: Mapping[int, Answer] = {
    404: Answer("There is nothing at the path.", [json_body("nowhere", Error)]),
    405: Answer(
        "The path does not take the method; `Allow` lists those it takes.",
        [json_body("wrongMethod", Error)],
        {"Allow": text("methods, separated by commas")},
    ),
}
"""What a request gets that is none of the operations."""

DOWNLOAD: Mapping[str, Schema] = {
    "Content-Disposition": text("attachment, with a file name: it is saved, never opened"),
    "Content-Security-Policy": text("a sandbox"),
}


def missing(what: str) -> Answer:
    """Give the 404 of a path that names something; what is another account's is missing too."""
    return Answer(
        f"There is no such {what}, or it is another account's.",
        [json_body(f"no {what}", Error)],
    )


R = TypeVar("R", bound=Request)


class Call(Struct, Generic[R], frozen=True):
    """One admitted request: who calls, what is asked, and when it came in.

    ``urls`` are the addresses under which this client reaches us.
    """

    caller: Caller
    asked_at: Instant
    asked: R
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

_SHORT_ID: Schema = {**text(), "minLength": 1, "maxLength": 10 * SHORT_ID_LENGTH}
_REPORT_ID: Schema = {**text(), "minLength": 1, "maxLength": 100}


def _in_path(name: str, description: str, schema: Schema, example: str) -> Parameter:
    return Parameter(name, "path", description, schema, example, is_required=True)


PATH_PARAMETERS: Mapping[str, Parameter] = {
    "message_id": _in_path("id", "The message.", like(MessageName), EXAMPLE_MESSAGE),
    "attachment_id": _in_path(
        "attachmentId", "The attachment: its `id` in the message.", text(), "1"
    ),
    "test_id": _in_path("testId", "The test.", like(NameOfTest), EXAMPLE_TEST),
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
    def described(self) -> Described:
        """The operation where it stands, as clients write the path."""
        variables = [PATH_PARAMETERS[name] for name in _VARIABLE.findall(self.path)]
        path = _VARIABLE.sub(lambda name: f"{{{PATH_PARAMETERS[name[1]].name}}}", self.path)
        return Described(self.method, path, self.operation, variables)
