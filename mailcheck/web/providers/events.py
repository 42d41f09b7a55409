"""Events that a provider reports of a mail: what happened, and the facts that its format needs."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailcheck.core.addresses import fold_tag
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.webhooks import EVENT_TAGS, EventKind
from mailcheck.web.providers.posted import read_request

BOUNCE = "550 5.1.1 The mailbox does not exist (simulated)"


class Event(Struct, frozen=True):
    """An event. ``message_id`` is that of the header, without brackets.

    ``secret`` is that of the webhook. Mailgun signs inside the body. ``request`` is the stored copy
    of the request, if the mail came over the API of the provider.
    """

    kind: EventKind
    id: str
    delivery_id: str
    message_id: str
    recipient: str
    author: str
    subject: str
    at: Instant
    secret: str
    request: str = ""

    @property
    def sent(self) -> Mapping[str, Any]:
        """The fields of the request."""
        return read_request(self.request)

    @property
    def seconds(self) -> int:
        """The time of the event in seconds of Unix."""
        return self.at // SECOND


TestRecipients = Mapping[str, EventKind]
"""The events of the addresses that a provider documents for tests, in lower case. A key without a
local part stands for all other addresses of the domain."""


def kind_of(tag: str, recipient: str, test_recipients: TestRecipients) -> EventKind:
    """Return the event of a recipient: that of its tag, or of a test recipient."""
    chosen = EVENT_TAGS.get(fold_tag(tag))
    if chosen is not None:
        return chosen
    local_part, domain = fold_test_recipient(recipient)
    keys = (f"{local_part}@{domain}", f"@{domain}")
    found = (test_recipients[key] for key in keys if key in test_recipients)
    return next(found, EventKind.DELIVERED)


def fold_test_recipient(address: str) -> tuple[str, str]:
    """Return local part and domain for comparison, without the label after a plus sign."""
    local_part, _, domain = address.lower().rpartition("@")
    return local_part.partition("+")[0].replace("_", ""), domain
