"""Which messages a reader asks for; the same rule for a list and for a parked wait."""

from dataclasses import dataclass

from mailcheck.core.addresses import fold_tag
from mailcheck.core.cursors import START, Position
from mailcheck.core.folded_text import fold_text
from mailcheck.core.instants import Instant
from mailcheck.core.messages import MessageSummary
from mailcheck.core.search import Search


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """What a message must satisfy; what is ``None`` is not asked.

    ``tag`` and ``recipient`` are compared whole and without case, ``author``
    (name and address) and ``subject`` by containing, as `fold_text` folds them.
    ``since`` includes its own moment, ``after`` excludes its own position,
    ``up_to`` includes it. For a wait it counts whether ``after`` was given at
    all: the start of the inbox is something else than nothing.
    """

    tag: str | None = None
    recipient: str | None = None
    author: str | None = None
    subject: str | None = None
    search: Search | None = None
    since: Instant | None = None
    after: Position | None = None
    up_to: Position | None = None

    @property
    def start(self) -> Position:
        """Give the position that all messages asked for come after."""
        return START if self.after is None else self.after

    def mismatches(self, message: MessageSummary) -> list[str]:
        """Say in words why a message does not match; empty when it does.

        ``search`` is not judged: only a store can look into texts.
        """
        reasons = []
        if self.tag is not None and fold_tag(message.tag) != fold_tag(self.tag):
            reasons.append(f"its tag is {message.tag!r}, not {self.tag!r}")
        if self.recipient is not None and message.recipient.casefold() != self.recipient.casefold():
            reasons.append(f"it was sent to {message.recipient}, not to {self.recipient}")
        if self.author is not None and fold_text(self.author) not in message.header.author_key:
            reasons.append(f"its author is {message.header.author_text!r}")
        if self.subject is not None and fold_text(self.subject) not in message.header.subject_key:
            reasons.append(f"its subject is {message.header.subject!r}")
        if message.position <= self.start:
            reasons.append("it had arrived before the cursor given as after")
        if self.up_to is not None and message.position > self.up_to:
            reasons.append("it has arrived since")
        if self.since is not None and message.received_at < self.since:
            early = (self.since - message.received_at) / 1000
            reasons.append(f"it arrived {early:.1f} s before since")
        return reasons

    def matches(self, message: MessageSummary) -> bool:
        """Tell whether a message is one of those asked for."""
        return not self.mismatches(message)
