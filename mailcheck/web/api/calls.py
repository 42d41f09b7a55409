"""A request as the handlers see it, and the table of routes."""

import re
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from mailcheck.api.openapi.operations import Described, Operation
from mailcheck.api.parameters import Query
from mailcheck.api.urls import PublicUrls
from mailcheck.core.accounts import Caller
from mailcheck.core.identifiers import MessageId
from mailcheck.core.instants import Instant
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.replies import Reply


class Call(Struct, frozen=True):
    """One admitted request: who calls, with what, and when it came in.

    ``urls`` are the addresses under which this client reaches us.
    """

    caller: Caller
    asked_at: Instant
    query: Query
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


PATH_NAMES = {
    "message_id": "id",
    "test_id": "testId",
    "attachment_id": "attachmentId",
    "webhook_id": "webhookId",
    "watch_id": "watchId",
    "alert_id": "alertId",
    "report_id": "reportId",
}
"""What the variables of paths are called where clients read of them (SPEC.md section 4)."""

_VARIABLE = re.compile(r"<(\w+)>")


class Route(Struct, frozen=True):
    """A method and a path below the base URL, what answers it, and how that is described."""

    method: str
    path: str
    handle: Callable[[Call], Awaitable[Reply | Stream]]
    operation: Operation

    @property
    def described(self) -> Described:
        """Give the operation where it stands, as clients write the path."""
        path = _VARIABLE.sub(lambda name: f"{{{PATH_NAMES[name[1]]}}}", self.path)
        return Described(self.method, path, self.operation)
