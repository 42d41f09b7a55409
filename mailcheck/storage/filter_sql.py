"""A `MessageFilter` as SQL; the same rule as `MessageFilter.mismatches`, in the store."""

from dataclasses import replace

from mailcheck.core.cursors import START
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.subaddresses import fold_tag
from mailcheck.storage.engine import Value

# The first part bounds the range of positions to read, the second decides: positions
# and moments run together but where a clock was set back, or two daemons' clocks differ.
_SINCE = """
    message.position >= (
        SELECT MIN(first.position) FROM message AS first
        WHERE first.account_id = ? AND first.received_at >= ?
    ) AND message.received_at >= ?
"""

_TEXT = """
    (delivery.subject_key LIKE ? ESCAPE '!' OR delivery.author_key LIKE ? ESCAPE '!'
    OR message.recipient_key LIKE ? ESCAPE '!'
    OR EXISTS (SELECT 1 FROM content WHERE content.delivery_id = message.delivery_id
               AND content.text_key LIKE ? ESCAPE '!'))
"""


def filter_sql(
    account_id: AccountId, wanted: MessageFilter, now: Instant
) -> tuple[str, list[Value]]:
    """Write the condition over ``message`` joined with ``delivery``, and its parameters."""
    # The plus keeps the planner from walking all accounts' mail by expiry.
    parts = ["message.account_id = ?", "+message.expires_at > ?"]
    values: list[Value] = [account_id, now]

    def also(part: str, *more: Value) -> None:
        parts.append(part)
        values.extend(more)

    if wanted.tag is not None:
        also("message.tag_key = ?", fold_tag(wanted.tag))
    if wanted.recipient is not None:
        also("message.recipient_key = ?", wanted.recipient.casefold())
    if wanted.start > START:
        also("message.position > ?", wanted.start)
    if wanted.up_to is not None:
        also("message.position <= ?", wanted.up_to)
    if wanted.since is not None:
        also(_SINCE, account_id, wanted.since, wanted.since)
    if wanted.author is not None:
        also("delivery.author_key LIKE ? ESCAPE '!'", _containing(wanted.author))
    if wanted.subject is not None:
        also("delivery.subject_key LIKE ? ESCAPE '!'", _containing(wanted.subject))
    if wanted.text is not None:
        also(_TEXT, *[_containing(wanted.text)] * 4)
    return " AND ".join(parts), values


def is_counted_by_tag(wanted: MessageFilter) -> bool:
    """Tell whether the counters of the inbox and its tags can answer "how many"."""
    return replace(wanted, after=wanted.after or None) == MessageFilter(tag=wanted.tag)


def _containing(text: str) -> str:
    key = text.casefold()
    for special in "!%_":
        key = key.replace(special, "!" + special)
    return f"%{key}%"
