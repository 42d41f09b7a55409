"""A `MessageFilter` as SQL; the same rule as `MessageFilter.mismatches`, in the store.

Keys are folded before they are stored and what is looked for before it is asked, so
that every database compares the same characters, whatever its collation.
"""

from dataclasses import replace

from mailcheck.core.addresses import fold_tag
from mailcheck.core.cursors import START
from mailcheck.core.filters import MessageFilter
from mailcheck.core.folded_text import fold_text
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.search import ATTACHMENT, CODE, READ, UNREAD, Field, Term
from mailcheck.storage.engine import Value

# The first part bounds the range of positions to read, the second decides: positions
# and moments run together but where a clock was set back, or two daemons' clocks differ.
# The sum keeps the planner from walking the positions from the first on: it reads what
# came since the moment.
_SINCE = """
    message.position >= (
        SELECT MIN(first.position + 0) FROM message AS first
        WHERE first.account_id = ? AND first.received_at >= ?
    ) AND message.received_at >= ?
"""

_AUTHOR = "delivery.author_key LIKE ? ESCAPE '!'"
_SUBJECT = "delivery.subject_key LIKE ? ESCAPE '!'"
_RECIPIENT = "message.recipient_key LIKE ? ESCAPE '!'"
_CONTENT = "EXISTS (SELECT 1 FROM content WHERE content.delivery_id = message.delivery_id AND {})"
_TEXT = _CONTENT.format("content.text_key LIKE ? ESCAPE '!'")
_ANYWHERE = f"({_SUBJECT} OR {_AUTHOR} OR {_RECIPIENT} OR {_TEXT})"

_CONTAINING = {
    Field.FROM: _AUTHOR,
    Field.TO: _RECIPIENT,
    Field.SUBJECT: _SUBJECT,
    Field.TEXT: _TEXT,
}
_COMPARED = {Field.OLDER: "message.received_at < ?", Field.LARGER: "message.size > ?"}
_CHOSEN = {
    Field.HAS: {
        ATTACHMENT: _CONTENT.format("content.attachment_count > 0"),
        CODE: _CONTENT.format("content.codes <> '[]'"),
    },
    Field.IS: {UNREAD: "message.is_read = 0", READ: "message.is_read = 1"},
}

_Part = tuple[str, tuple[Value, ...]]
"""A condition and its parameters."""


def filter_sql(
    account_id: AccountId, wanted: MessageFilter, now: Instant
) -> tuple[str, list[Value]]:
    """Write the condition over ``message`` joined with ``delivery``, and its parameters."""
    # The plus keeps the planner from walking all accounts' mail by expiry.
    parts: list[_Part] = [
        ("message.account_id = ?", (account_id,)),
        ("+message.expires_at > ?", (now,)),
    ]
    if wanted.tag is not None:
        parts.append(_tagged(wanted.tag))
    if wanted.recipient is not None:
        parts.append(("message.recipient_key = ?", (wanted.recipient.casefold(),)))
    if wanted.start > START:
        parts.append(("message.position > ?", (wanted.start,)))
    if wanted.up_to is not None:
        parts.append(("message.position <= ?", (wanted.up_to,)))
    if wanted.since is not None:
        parts.append(_since(account_id, wanted.since))
    if wanted.author is not None:
        parts.append((_AUTHOR, (_containing(fold_text(wanted.author)),)))
    if wanted.subject is not None:
        parts.append((_SUBJECT, (_containing(fold_text(wanted.subject)),)))
    if wanted.search is not None:
        parts += [_term_sql(account_id, term) for term in wanted.search.terms]
    return " AND ".join(part for part, _ in parts), [one for _, some in parts for one in some]


def is_counted_by_tag(wanted: MessageFilter) -> bool:
    """Tell whether the counters of the inbox and its tags can answer "how many"."""
    return replace(wanted, after=wanted.after or None) == MessageFilter(tag=wanted.tag)


def looks_into_mails(wanted: MessageFilter) -> bool:
    """Tell whether mails must be read to know which ones match: no index leads there."""
    return (wanted.search, wanted.author, wanted.subject) != (None, None, None)


def _term_sql(account_id: AccountId, term: Term) -> _Part:
    field, value = term
    if isinstance(value, int):
        if field is Field.NEWER:
            return _since(account_id, Instant(value))
        return _COMPARED[field], (value,)
    if field in _CHOSEN:
        return _CHOSEN[field][value], ()
    if field is Field.TAG:
        return _tagged(value)
    needle, address = _containing(fold_text(value)), _containing(value.casefold())
    if field is Field.ANYWHERE:
        return _ANYWHERE, (needle, needle, address, needle)
    return _CONTAINING[field], (address if field is Field.TO else needle,)


def _tagged(tag: str) -> _Part:
    return "message.tag_key = ?", (fold_tag(tag),)


def _since(account_id: AccountId, moment: Instant) -> _Part:
    return _SINCE, (account_id, moment, moment)


def _containing(key: str) -> str:
    for special in "!%_":
        key = key.replace(special, "!" + special)
    return f"%{key}%"
