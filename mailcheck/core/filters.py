"""Which messages a reader asks for; the same rule for a list and for a parked wait."""

from msgspec import Struct

from mailcheck.core.addresses import fold_tag
from mailcheck.core.content import MessageContent
from mailcheck.core.cursors import START, Position
from mailcheck.core.folded_text import fold_text
from mailcheck.core.instants import Instant
from mailcheck.core.messages import MessageSummary
from mailcheck.core.search import Search


class MessageFilter(Struct, frozen=True):
    """What a message must satisfy; what is ``None`` is not asked.

    ``tag`` and ``recipient`` are compared whole and without case, ``tag_prefix`` is what a
    tag begins with; ``author`` (name and address) and ``subject`` are compared by
    containing, as `fold_text` folds them.

    What is only known of a mail that was taken apart is asked by ``headers`` (pairs of a
    field's name and a part of its value; all must be there), ``text`` (by containing, in
    what searches look in) and ``has_attachment``.
    ``since`` includes its own moment, ``after`` excludes its own position,
    ``up_to`` includes it. For a wait it counts whether ``after`` was given at
    all: the start of the inbox is something else than nothing.
    """

    tag: str | None = None
    tag_prefix: str | None = None
    recipient: str | None = None
    author: str | None = None
    subject: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    text: str | None = None
    has_attachment: bool | None = None
    search: Search | None = None
    since: Instant | None = None
    after: Position | None = None
    up_to: Position | None = None

    @property
    def start(self) -> Position:
        """Give the position that all messages asked for come after."""
        return START if self.after is None else self.after

    @property
    def asks_content(self) -> bool:
        """Tell whether a mail must be taken apart to be judged."""
        return bool(self.headers) or (self.text, self.has_attachment) != (None, None)

    @property
    def address(self) -> "MessageFilter":
        """Give the part of it that says to whom a mail is: all that is known of a refused one."""
        return MessageFilter(tag=self.tag, tag_prefix=self.tag_prefix, recipient=self.recipient)

    def is_addressed(self, tag: str, recipient: str) -> bool:
        """Tell whether a mail is to whom it asks for, whatever else there is to be said of it."""
        return not self._address_mismatches(tag, recipient)

    def _address_mismatches(self, tag: str, recipient: str) -> list[str]:
        reasons = []
        if self.tag is not None and fold_tag(tag) != fold_tag(self.tag):
            reasons.append(f"its tag is {tag!r}, not {self.tag!r}")
        if self.tag_prefix is not None and not fold_tag(tag).startswith(fold_tag(self.tag_prefix)):
            reasons.append(f"its tag is {tag!r}, which does not begin with {self.tag_prefix!r}")
        if self.recipient is not None and recipient.casefold() != self.recipient.casefold():
            reasons.append(f"it was sent to {recipient}, not to {self.recipient}")
        return reasons

    def mismatches(self, message: MessageSummary) -> list[str]:
        """Say in words why a message does not match; empty when it does, as far as this shows.

        What needs the content is not judged, nor is ``search``, which only a store can.
        """
        reasons = self._address_mismatches(message.tag, message.recipient)
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

    def content_mismatches(self, content: MessageContent) -> list[str]:
        """Say in words why the content of a message does not match; empty when it does."""
        reasons = []
        for name, part in self.headers:
            if not _has_field(content, name.lower(), fold_text(part)):
                reasons.append(f"it has no header field {name} with {part!r}")
        if self.text is not None and fold_text(self.text) not in fold_text(content.searched):
            reasons.append(f"its text does not contain {self.text!r}")
        if self.has_attachment is not None and self.has_attachment != bool(content.files):
            reasons.append(f"it has {'an' if content.attachments else 'no'} attachment")
        return reasons

    def matches(self, message: MessageSummary) -> bool:
        """Tell whether a message is one of those asked for."""
        return not self.mismatches(message)


def _has_field(content: MessageContent, name: str, key: str) -> bool:
    return any(
        field.lower() == name and key in fold_text(value) for field, value in content.header_list
    )


ANY = MessageFilter()
"""Every message."""
