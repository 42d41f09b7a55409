"""Events that a provider reports of a mail: what happened, and the facts that its format needs."""

from msgspec import Struct

from mailcheck.core.addresses import fold_tag
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.webhooks import EVENT_TAGS, EventKind

BOUNCE = "550 5.1.1 The mailbox does not exist (simulated)"


class Event(Struct, frozen=True):
    """An event. ``message_id`` is that of the header, without brackets.

    ``secret`` is that of the webhook. Mailgun signs inside the body.
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

    @property
    def seconds(self) -> int:
        """The time of the event in seconds of Unix."""
        return self.at // SECOND


def kind_of(tag: str) -> EventKind:
    """Return the event of a recipient's tag."""
    return EVENT_TAGS.get(fold_tag(tag), EventKind.DELIVERED)
