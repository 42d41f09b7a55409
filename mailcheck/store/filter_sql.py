"""SQL for a `MessageFilter`: the same rules as in `MessageFilter.mismatches`.

Stored keys and searched texts are folded before, so that all databases compare the same characters
in every collation.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from mailcheck.core.addresses import fold_tag
from mailcheck.core.content import DERIVATION, fold_text, signs_within
from mailcheck.core.cursors import START
from mailcheck.core.filters import (
    ANY_FIELD,
    ATTACHMENT,
    CODE,
    READ,
    UNREAD,
    Field,
    MessageFilter,
    Search,
    Term,
)
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import SYSTEM_FLAGS
from mailcheck.core.rights import TagLimit
from mailcheck.ports.engine import Condition, Transaction, Value
from mailcheck.store.transactions import escape_like

# The first condition limits the range of positions to read, the second one decides. Positions and
# times have the same order, except when a clock was set back or the clocks of daemons differ. The
# sum keeps the planner from reading all positions from the first one on.
_SINCE = """
    message.position >= (
        SELECT MIN(first.position + 0) FROM message AS first
        WHERE first.account_id = ? AND first.received_at >= ?
    ) AND message.received_at >= ?
"""

# The plus keeps the planner from reading the mail of all accounts by expiry.
_VISIBLE = "+message.expires_at > ?"

PRESENT = f"({_VISIBLE} OR message.undo_expires_at IS NOT NULL)"
"""The condition for messages that are visible, or whose deletion can be undone."""

_AUTHOR, _SUBJECT = "delivery.author_key", "delivery.subject_key"
_RECIPIENT = "message.recipient_key"
_ADDRESSES, _FILES = "content.address_key", "content.file_key"
_TEXT, _SIGNATURE = "content.text_key", "content.signature"
# Content of earlier rules is derived again, so a mismatch with it is not final.
UNDERIVED = f"(content.derivation IS NULL OR content.derivation < {DERIVATION})"

_SEARCHED_COLUMNS = {
    Field.FROM: (_AUTHOR,),
    Field.TO: (_RECIPIENT, _ADDRESSES),
    Field.SUBJECT: (_SUBJECT,),
    Field.TEXT: (_TEXT,),
    # The text is last, since it is the longest.
    Field.ANYWHERE: (_SUBJECT, _AUTHOR, _RECIPIENT, _ADDRESSES, _FILES, _TEXT),
    Field.ADDRESSED: (_AUTHOR, _ADDRESSES),
    Field.ANY_RECIPIENT: (_ADDRESSES,),
}
_DERIVED = frozenset(
    {
        Field.TO,
        Field.TEXT,
        Field.ANYWHERE,
        Field.HAS,
        Field.HEADER,
        Field.ADDRESSED,
        Field.BLIND_COPY,
        Field.ANY_RECIPIENT,
    }
)
_COMPARED = {
    Field.OLDER: "message.received_at < ?",
    Field.LARGER: "message.size > ?",
    Field.SMALLER: "message.size < ?",
}

_OF_SAME_MAIL = """
    SELECT 1 FROM message AS other
    WHERE other.delivery_id = message.delivery_id AND other.account_id = message.account_id
"""
_CHOSEN = {
    Field.HAS: {
        ATTACHMENT: "content.attachment_count > 0",
        CODE: "content.codes <> '[]'",
    },
    Field.IS: {UNREAD: "message.is_read = 0", READ: "message.is_read = 1"},
}


def filter_sql(
    transaction: Transaction,
    account_id: AccountId,
    wanted: MessageFilter,
    now: Instant,
    *,
    or_underived: bool = False,
    with_hidden: bool = False,
) -> tuple[str, list[Value]]:
    """Return the condition over the tables of `FROM_CONTENT`, and its parameters.

    :param or_underived: also match mails without derived content, except for search terms.
    :param with_hidden: also match messages whose deletion can be undone.
    """
    parts: list[Condition] = [
        ("message.account_id = ?", (account_id,)),
        (PRESENT if with_hidden else _VISIBLE, (now,)),
    ]
    parts += allowed_parts(wanted.allowed, "message")
    parts += address_parts(wanted, "message")
    if wanted.mails is not None:
        marks = ", ".join("?" * len(wanted.mails)) or "NULL"
        parts.append((f"message.delivery_id IN ({marks})", wanted.mails))
    if wanted.once_per_mail:
        parts.append(_is_first(wanted.allowed))
    if wanted.start > START:
        parts.append(("message.position > ?", (wanted.start,)))
    if wanted.up_to is not None:
        parts.append(("message.position <= ?", (wanted.up_to,)))
    if wanted.since is not None:
        parts.append(_since(account_id, wanted.since))
    if wanted.author is not None:
        parts.append(transaction.containing(_AUTHOR, fold_text(wanted.author)))
    if wanted.subject is not None:
        parts.append(transaction.containing(_SUBJECT, fold_text(wanted.subject)))
    if wanted.asks_content:
        condition, asked = _joined(" AND ", _content_parts(transaction, wanted))
        parts.append((f"({condition} OR {UNDERIVED})" if or_underived else condition, asked))
    parts += _terms_sql(transaction, account_id, wanted)
    return " AND ".join(part for part, _ in parts), [one for _, some in parts for one in some]


def _is_first(allowed: TagLimit | None) -> Condition:
    """Return the condition that no earlier message of the same mail is visible to the caller."""
    earlier = _joined(
        " AND ", [("other.position < message.position", ()), *allowed_parts(allowed, "other")]
    )
    return f"NOT EXISTS ({_OF_SAME_MAIL} AND {earlier[0]})", earlier[1]


def derived_sql(
    transaction: Transaction, account_id: AccountId, wanted: MessageFilter
) -> Condition:
    """Return the condition that `without_derived` leaves out; there must be one."""
    asked = only_derived(wanted)
    parts = _content_parts(transaction, asked) + _terms_sql(transaction, account_id, asked)
    return _joined(" AND ", parts)


def address_parts(wanted: MessageFilter, table: str) -> list[Condition]:
    """Return the conditions on the recipient, for a table with the keys of recipients."""
    parts: list[Condition] = []
    if wanted.tag is not None:
        parts.append(_tagged(wanted.tag, table))
    if wanted.tag_prefix is not None:
        parts.append(_tagged_from(wanted.tag_prefix, table))
    if wanted.recipient is not None:
        parts.append((f"{table}.recipient_key = ?", (wanted.recipient.casefold(),)))
    for domain in wanted.foreign_to:
        at_domain = f"%@{escape_like(domain.casefold())}"
        parts.append((f"{table}.recipient_key NOT LIKE ? ESCAPE '!'", (at_domain,)))
    if wanted.foreign_to:
        parts.append((f"{table}.recipient_key LIKE '%@%'", ()))
    return parts


def allowed_parts(allowed: TagLimit | None, table: str) -> list[Condition]:
    """Return the condition that a row has one of the tags of the caller, or none."""
    if allowed is None:
        return []
    some = [_tagged(tag, table) for tag in allowed.tags]
    if allowed.prefix is not None:
        some.append(_tagged_from(allowed.prefix, table))
    return [_joined(" OR ", some)]


def is_counted_by_tag(wanted: MessageFilter) -> bool:
    """Return whether the counters of the inbox and its tags give the number of matches."""
    return wanted.start == START and wanted.asks_only("tag", "after")


def is_counted_by_recipient(wanted: MessageFilter) -> bool:
    """Return whether the filter has a recipient and no other condition."""
    is_asked = wanted.recipient is not None and wanted.start == START
    return is_asked and wanted.asks_only("recipient", "after")


def needs_scan(wanted: MessageFilter) -> bool:
    """Return whether mails must be read to find the matches, since no index covers the filter."""
    asked = (wanted.search, wanted.author, wanted.subject)
    return wanted.asks_content or asked != (None, None, None)


def needs_derived(wanted: MessageFilter) -> bool:
    """Return whether the filter has conditions on derived content."""
    return without_derived(wanted) != wanted


def without_derived(wanted: MessageFilter) -> MessageFilter:
    """Return the filter without its conditions on derived content."""
    search = _only(wanted.search, derived=False)
    return replace(wanted, headers=(), text=None, has_attachment=None, search=search)


def only_derived(wanted: MessageFilter) -> MessageFilter:
    """Return only the conditions of the filter on derived content."""
    return MessageFilter(
        headers=wanted.headers,
        text=wanted.text,
        has_attachment=wanted.has_attachment,
        search=_only(wanted.search, derived=True),
    )


def _only(search: Search | None, *, derived: bool) -> Search | None:
    if search is None:
        return None
    terms = tuple(term for term in search.terms if (term.field in _DERIVED) is derived)
    return replace(search, terms=terms)


def _content_parts(transaction: Transaction, wanted: MessageFilter) -> list[Condition]:
    parts: list[Condition] = [_header_containing(name, part) for name, part in wanted.headers]
    if wanted.has_attachment is not None:
        comparison = "> 0" if wanted.has_attachment else "= 0"
        parts.append((f"content.attachment_count {comparison}", ()))
    if wanted.text is not None:
        parts.append(_text_containing(transaction, fold_text(wanted.text)))
    return parts


FIELD_BEGINS, FIELD_ENDS = "\x01", "\x02"
"""Marks before the name of a header field: where the values of the field begin, and where they
end."""


def header_key(header_list: Sequence[tuple[str, str]]) -> str:
    """Return the text in which header fields are searched.

    All values of one name are together, between a start mark and an end mark that occur once. Any
    text between them belongs to this name.
    """
    values: dict[str, list[str]] = {}
    for name, value in header_list:
        values.setdefault(name.lower(), []).append(_without_marks(fold_text(value)))
    return "".join(
        f"{FIELD_BEGINS}{name}:{chr(10).join(some)}{FIELD_ENDS}{name}:"
        for name, some in values.items()
    )


def _field_containing(name: str, part: str) -> str:
    key, looked_for = escape_like(name.lower()), escape_like(_without_marks(fold_text(part)))
    if name == ANY_FIELD:
        return f"%{looked_for}%"
    return f"%{FIELD_BEGINS}{key}:%{looked_for}%{FIELD_ENDS}{key}:%"


def _without_marks(key: str) -> str:
    return key.replace(FIELD_BEGINS, " ").replace(FIELD_ENDS, " ")


def _terms_sql(
    transaction: Transaction, account_id: AccountId, wanted: MessageFilter
) -> list[Condition]:
    terms = () if wanted.search is None else sorted(wanted.search.terms, key=_turn)
    asked = [_term_sql(transaction, account_id, term) for term in terms]
    in_texts = [term for term in terms if _is_in_text(term)]
    if len(in_texts) < 2:
        return asked
    # Before a text is read for one word, the signatures for all words are compared.
    by_signature = [_contained_sql(transaction, term, _may_contain) for term in in_texts]
    first = len(terms) - len(in_texts)
    return asked[:first] + by_signature + asked[first:]


def _is_in_text(term: Term) -> bool:
    return _TEXT in _SEARCHED_COLUMNS.get(term.field, ()) and not term.is_negated


def _turn(term: Term) -> tuple[bool, bool, int]:
    """Put conditions on texts last, and long words before short ones, which more mails have."""
    return _is_in_text(term), term.field in _SEARCHED_COLUMNS, -len(str(term.value))


def _term_sql(transaction: Transaction, account_id: AccountId, term: Term) -> Condition:
    condition, values = _positive_sql(transaction, account_id, term)
    return (f"NOT ({condition})" if term.is_negated else condition), values


def _positive_sql(transaction: Transaction, account_id: AccountId, term: Term) -> Condition:
    field, value, _ = term
    if isinstance(value, int):
        if field is Field.NEWER:
            return _since(account_id, Instant(value))
        return _COMPARED[field], (value,)
    if field in _CHOSEN:
        return _CHOSEN[field][value], ()
    if field in (Field.TAG, Field.ANY_TAG, Field.KEYWORD):
        return _word_sql(transaction, field, value)
    if field is Field.VIA:
        return "message.via = ?", (value,)
    if field is Field.HEADER:
        return _header_containing(*value.split(":", 1))
    if field is Field.BLIND_COPY:
        return _is_blind_copy(transaction, value)
    if field in (Field.ADDRESSED, Field.ANY_RECIPIENT):
        anyone = _sent_to(transaction, value)
        return _joined(" OR ", [_contained_sql(transaction, term, _text_containing), anyone])
    return _contained_sql(transaction, term, _text_containing)


def _word_sql(transaction: Transaction, field: Field, word: str) -> Condition:
    """Return the condition that a message has a tag, a keyword, or one of the two."""
    if field is Field.TAG:
        return _tagged(word)
    if field is Field.KEYWORD:
        return _with_keyword(transaction, word, "message")
    tagged = _tagged(word, "other") if word else ("other.tag_key <> ''", ())
    keyword = _with_keyword(transaction, word, "other")
    return _in_same_mail(_joined(" OR ", [tagged, keyword]))


def _with_keyword(transaction: Transaction, keyword: str, table: str) -> Condition:
    """Return the condition that a message has a keyword, in any case; empty: that it has some."""
    if keyword:
        return transaction.containing(f"' ' || lower({table}.flags) || ' '", f" {keyword.lower()} ")
    keywords = f"{table}.flags"
    for flag in SYSTEM_FLAGS:
        keywords = f"replace({keywords}, '{flag}', '')"
    return f"trim({keywords}) <> ''", ()


def _in_same_mail(condition: Condition) -> Condition:
    """Return the condition that a message of the same mail, named ``other``, satisfies another."""
    return f"EXISTS ({_OF_SAME_MAIL} AND {condition[0]})", condition[1]


def _sent_to(transaction: Transaction, part: str) -> Condition:
    return _in_same_mail(transaction.containing("other.recipient_key", part.casefold()))


def _header_containing(name: str, part: str) -> Condition:
    return "content.header_key LIKE ? ESCAPE '!'", (_field_containing(name, part),)


def _is_blind_copy(transaction: Transaction, part: str) -> Condition:
    """Return the condition that a Bcc, or a recipient that no header field names, matches."""
    hidden, shown = (
        _sent_to(transaction, part),
        [_header_containing(name, part) for name in ("to", "cc")],
    )
    unnamed = _joined(" AND ", [hidden, *((f"NOT ({one})", value) for one, value in shown)])
    return _joined(" OR ", [_header_containing("bcc", part), unnamed])


def _contained_sql(
    transaction: Transaction, term: Term, in_text: Callable[[Transaction, str], Condition]
) -> Condition:
    """Return the condition that a field contains a term; ``in_text`` returns it for the text."""
    asked: list[Condition] = []
    for column in _SEARCHED_COLUMNS[term.field]:
        value = str(term.value)
        part = value.casefold() if column is _RECIPIENT else fold_text(value)
        is_text = column is _TEXT
        asked.append(
            in_text(transaction, part) if is_text else transaction.containing(column, part)
        )
    return _joined(" OR ", asked)


def _text_containing(transaction: Transaction, part: str) -> Condition:
    """Return the condition that the text contains a part; its signature is compared first."""
    return _joined(" AND ", [_may_contain(transaction, part), transaction.containing(_TEXT, part)])


def _may_contain(transaction: Transaction, part: str) -> Condition:
    code = f"{transaction.char_code_function}(substr({_SIGNATURE}, ?, 1))"
    signs = [(f"{code} & ? = ?", (at, bits, bits)) for at, bits in signs_within(part)]
    if not signs:
        return "1 = 1", ()
    return _joined(" OR ", [(f"{_SIGNATURE} = ''", ()), _joined(" AND ", signs)])


def _joined(by: str, parts: Sequence[Condition]) -> Condition:
    condition = by.join(part for part, _ in parts)
    return f"({condition})", tuple(value for _, some in parts for value in some)


def _tagged(tag: str, table: str = "message") -> Condition:
    return f"{table}.tag_key = ?", (fold_tag(tag),)


def _tagged_from(prefix: str, table: str) -> Condition:
    key = fold_tag(prefix)
    return f"substr({table}.tag_key, 1, {len(key)}) = ?", (key,)


def _since(account_id: AccountId, moment: Instant) -> Condition:
    return _SINCE, (account_id, moment, moment)
