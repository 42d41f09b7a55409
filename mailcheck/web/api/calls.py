"""A request as the handlers see it, and the table of routes."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from mailcheck.api.deliverability.tests import NameOfTest
from mailcheck.api.inbox.overview import MessageName
from mailcheck.api.openapi.operations import Described, Operation, Parameter
from mailcheck.api.requests.reading import Request
from mailcheck.api.schemas import Schema, like, text
from mailcheck.api.urls import PublicUrls
from mailcheck.core.accounts import Caller
from mailcheck.core.identifiers import SHORT_ID_LENGTH, MessageId
from mailcheck.core.instants import Instant
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.replies import Reply

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
