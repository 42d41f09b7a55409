"""Filters for messages, which lists, waits, streams and deletions apply."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from msgspec import Struct

from mailcheck.core import conditions
from mailcheck.core.conditions import Term, Where, is_derived, is_met
from mailcheck.core.content import MessageContent
from mailcheck.core.cursors import START, Position
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import MessageSummary, Refusal
from mailcheck.core.rights import TagLimit

_BY_RECIPIENT = (
    conditions.TAGS_OF_KEY,
    conditions.WITH_TAG,
    conditions.WITH_TAG_PREFIX,
    conditions.TO_ADDRESS,
    conditions.TO_OTHERS,
)
"""The conditions about the recipient. Only these apply to rejected mail."""

BY_FIELD = (
    *_BY_RECIPIENT,
    conditions.IN_MAILS,
    conditions.FROM,
    conditions.WITH_SUBJECT,
    conditions.AFTER,
    conditions.UP_TO,
    conditions.SINCE,
    conditions.WITH_TEXT,
)
"""The conditions that fields of a filter with their names have the values of."""


class MessageFilter(Struct, frozen=True, dict=True):
    """Conditions that a message must satisfy. A condition that is `None` is not checked.

    ``tag`` and ``recipient`` must be equal, without case. ``tag_prefix`` is the beginning of the
    tag. ``author`` (name and address) and ``subject`` must contain the text, as `fold_text` folds
    them.

    These conditions need the parsed content: ``headers`` (pairs of a field name, or `ANY_FIELD`,
    and a part of its value, which must all be present), ``text`` (contained in the searched text),
    ``has_attachment``, and some of ``search``.
    ``allowed`` are the tags of the caller; other messages do not exist for it. ``foreign_to`` are
    domains, in lower case: only mail to recipients of other domains matches.
    ``mails`` are the deliveries that messages must belong to. With ``once_per_mail``, only the
    first message of each mail matches, for clients that know no message per recipient.
    ``since`` and ``up_to`` are inclusive, ``after`` is exclusive. For a wait, an ``after`` at the
    start of the inbox is different from `None`.
    """

    tag: str | None = None
    tag_prefix: str | None = None
    recipient: str | None = None
    author: str | None = None
    subject: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    text: str | None = None
    has_attachment: bool | None = None
    search: tuple[Where, ...] = ()
    mails: tuple[DeliveryId, ...] | None = None
    once_per_mail: bool = False
    allowed: TagLimit | None = None
    foreign_to: tuple[str, ...] = ()
    since: Instant | None = None
    after: Position | None = None
    up_to: Position | None = None

    @property
    def start(self) -> Position:
        """The position after which matching messages begin."""
        return START if self.after is None else self.after

    def asks_only(self, *names: str) -> bool:
        """Return whether only the named conditions are set."""
        return all(
            name in names or getattr(self, name) == getattr(ANY, name)
            for name in MessageFilter.__struct_fields__
        )

    @cached_property
    def known(self) -> tuple[Where, ...]:
        """The expressions that need no content. All must be met, and ``once_per_mail``."""
        return tuple(where for where in self._expressions() if not is_derived(where))

    @cached_property
    def derived(self) -> tuple[Where, ...]:
        """The expressions that need the derived content of a mail. All must be met."""
        return tuple(where for where in self._expressions() if is_derived(where))

    def _expressions(self) -> Iterator[Where]:
        yield from self._terms(*BY_FIELD)
        yield from (Term(conditions.WITH_HEADER, field) for field in self.headers)
        if self.has_attachment is not None:
            is_wanted = self.has_attachment
            yield Term(conditions.WITH_FILES if is_wanted else conditions.WITHOUT_FILES, 0)
        yield from self.search

    def _terms(self, *rows: conditions.Condition) -> Iterator[Term]:
        for row in rows:
            value: Any = getattr(self, row.name)
            if value is not None and value != getattr(ANY, row.name):
                yield Term(row, value)

    @property
    def asks_content(self) -> bool:
        """Whether the filter needs the parsed content of a mail."""
        return bool(self.derived)

    @property
    def address(self) -> "MessageFilter":
        """The conditions about the recipient. Only these apply to rejected mail."""
        return MessageFilter(**{row.name: getattr(self, row.name) for row in _BY_RECIPIENT})

    def is_addressed(self, message: MessageSummary | Refusal) -> bool:
        """Return whether the conditions about the recipient are met."""
        return all(is_met(term, message) for term in self._terms(*_BY_RECIPIENT))

    def mismatches(self, message: MessageSummary) -> list[str]:
        """Return the reasons, as phrases, why a message does not match. Empty if it matches.

        Conditions about the content are not checked, nor ``once_per_mail``, which needs the store.
        """
        return [_reason(where, message) for where in self.known if not is_met(where, message)]

    def content_mismatches(self, message: MessageSummary, content: MessageContent) -> list[str]:
        """Return the reasons why the content of a message does not match. Empty if it matches."""
        return [
            _reason(where, message) for where in self.derived if not is_met(where, message, content)
        ]

    def matches(self, message: MessageSummary) -> bool:
        """Return whether a message matches the conditions that need no content."""
        for where in self.known:  # noqa: SIM110 (twice as fast, for every message and wait)
            if not is_met(where, message):
                return False
        return True


def _reason(where: Where, message: MessageSummary) -> str:
    if isinstance(where, Term) and where.condition.reason is not None:
        return where.condition.reason(message, where.value)
    return "the search does not find it"


ANY = MessageFilter()
"""The filter that every message matches."""
