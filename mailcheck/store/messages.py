"""What reading messages gives."""

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import Struct

from mailcheck.core.accounts import InboxState
from mailcheck.core.content import Extracted, MessageContent
from mailcheck.core.cursors import Position
from mailcheck.core.messages import MessageSummary, Session, TagCount


class MessagePage(Struct, frozen=True):
    """A page of a list; what is not derived yet is missing from an entry.

    ``total`` counts all that match; ``last_position`` is the inbox's newest
    cursor in the same snapshot. ``not_searched`` counts messages that may match as well:
    their content is asked for, and not derived yet.
    """

    entries: tuple[tuple[MessageSummary, Extracted | None], ...]
    total: int
    last_position: Position
    not_searched: int = 0


class NewestMessages(Struct, frozen=True):
    """The newest messages of some, newest first: the first few of them, and where all are."""

    messages: tuple[MessageSummary, ...]
    positions: tuple[Position, ...]


class InboxOverview(Struct, frozen=True):
    """An inbox with its newest tags; expired mail is not counted."""

    state: InboxState
    tags: tuple[TagCount, ...]
    tag_total: int


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A stored message; its content, or the mail itself, where that was read along with it."""

    summary: MessageSummary
    envelope_sender: str
    session: Session
    content: MessageContent | bytes | None = field(default=None, compare=False, repr=False)


class ReadAlong(Struct, frozen=True):
    """Whose content is read along with messages: the first ``most`` that are ``wanted``.

    Only as many as have less than ``below`` bytes together are; what was not derived yet comes as
    the mail itself. ``wanted`` is asked in another thread.
    """

    wanted: Callable[[MessageSummary], bool]
    below: int
    most: int = 4
    """What is waited for is one, or a few in a burst."""
