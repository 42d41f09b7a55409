"""SQL for a `MessageFilter`: the same rules as `mailcheck.core.conditions.is_met`.

Stored keys and searched texts are folded before, so that all databases compare the same characters
in every collation.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeGuard

from mailcheck.core import conditions
from mailcheck.core.addresses import fold_tag
from mailcheck.core.conditions import AllOf, AnyOf, Comparison, InMail, Not, Term, Where
from mailcheck.core.content import DERIVATION, signs_within
from mailcheck.core.cursors import START
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import SYSTEM_FLAGS
from mailcheck.core.rights import TagLimit
from mailcheck.ports.engine import Condition, Row, Transaction, Value
from mailcheck.store.messages import FROM_CONTENT
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

# Content of earlier rules is derived again, so a mismatch with it is not final.
UNDERIVED = f"(content.derivation IS NULL OR content.derivation < {DERIVATION})"

_OF_SAME_MAIL = """
    SELECT 1 FROM message AS other
    WHERE other.delivery_id = message.delivery_id AND other.account_id = message.account_id
"""

_KEYWORDS = reduce(
    lambda text, flag: f"replace({text}, '{flag}', '')", SYSTEM_FLAGS, "{table}.flags"
)

_SIGNATURE = "content.signature"

_STORED = {
    conditions.AUTHORS: "delivery.author_key",
    conditions.SUBJECT: "delivery.subject_key",
    conditions.RECIPIENT: "{table}.recipient_key",
    conditions.TAG: "{table}.tag_key",
    conditions.KEYWORDS: f"lower(trim({_KEYWORDS}))",
    conditions.PROVIDER: "{table}.via",
    conditions.MAIL: "{table}.delivery_id",
    conditions.POSITION: "{table}.position",
    conditions.RECEIVED_AT: "{table}.received_at",
    conditions.SIZE: "{table}.size",
    conditions.IS_READ: "{table}.is_read",
    conditions.PEOPLE: "content.address_key",
    conditions.FILE_NAMES: "content.file_key",
    conditions.HEADER: "content.header_key",
    conditions.TEXT: "content.text_key",
    conditions.FILES: "content.attachment_count",
    conditions.CODES: "CASE WHEN content.codes <> '[]' THEN 1 WHEN content.codes = '[]' THEN 0 END",
}
"""Where each place is stored, in a ``table`` of messages."""


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

    :param or_underived: also match mails without derived content, which may match.
    :param with_hidden: also match messages whose deletion can be undone.
    """
    parts: list[Condition] = [
        ("message.account_id = ?", (account_id,)),
        (PRESENT if with_hidden else _VISIBLE, (now,)),
    ]
    if wanted.once_per_mail:
        parts.append(_is_first(wanted.allowed))
    parts += [
        _since(account_id, where.value)
        if isinstance(where, Term) and where.condition is conditions.SINCE
        else where_sql(transaction, where)
        for where in wanted.known
    ]
    derived = derived_sql(transaction, wanted)
    if derived is not None:
        condition, asked = derived
        parts.append((f"({UNDERIVED} OR {condition})" if or_underived else condition, asked))
    return " AND ".join(part for part, _ in parts), [value for _, some in parts for value in some]


Matching = tuple[AccountId, MessageFilter, Instant]
"""An inbox, what is wanted of it, and the current time, which hides expired messages."""


def select_matching(
    transaction: Transaction,
    columns: str,
    matching: Matching,
    rest: str = "",
    more: Sequence[Value] = (),
    *,
    or_underived: bool = False,
    with_hidden: bool = False,
) -> list[Row]:
    """Return columns of the matching messages; see `filter_sql`.

    :param rest: further conditions, and the order.
    :param more: the parameters of ``rest``.
    """
    condition, values = filter_sql(
        transaction, *matching, or_underived=or_underived, with_hidden=with_hidden
    )
    sql = f"SELECT {columns} {FROM_CONTENT} WHERE {condition} {rest}"
    return transaction.rows(sql, [*values, *more])


def derived_sql(transaction: Transaction, wanted: MessageFilter) -> Condition | None:
    """Return the conditions on derived content, or `None` if the filter has none.

    Conditions on texts are last, and long words before short ones, which more mails have. Before a
    text is read for one word, the signatures for all words are compared.
    """
    if not wanted.derived:
        return None
    others = [where for where in wanted.derived if not _is_in_text(where)]
    in_texts = sorted(filter(_is_in_text, wanted.derived), key=lambda term: -len(term.value))
    parts = [where_sql(transaction, where) for where in others]
    if len(in_texts) > 1:
        parts += [_term_sql(transaction, term, "message", _may_contain) for term in in_texts]
    parts += [where_sql(transaction, term) for term in in_texts]
    return _joined(" AND ", parts)


def _is_in_text(where: Where) -> TypeGuard[Term]:
    return isinstance(where, Term) and conditions.TEXT in where.condition.places


def where_sql(transaction: Transaction, where: Where, table: str = "message") -> Condition:
    """Return the condition for an expression over rows of messages, or of a similar table."""
    match where:
        case Term():
            return _term_sql(transaction, where, table, _text_containing)
        case Not(part):
            condition, values = where_sql(transaction, part, table)
            return f"NOT ({condition})", values
        case AllOf(parts):
            return _joined(" AND ", [where_sql(transaction, part, table) for part in parts])
        case AnyOf(parts):
            return _joined(" OR ", [where_sql(transaction, part, table) for part in parts])
        case InMail(part):
            condition, values = where_sql(transaction, part, "other")
            return f"EXISTS ({_OF_SAME_MAIL} AND {condition})", values


def recipient_sql(transaction: Transaction, wanted: MessageFilter, table: str) -> list[Condition]:
    """Return the conditions about the recipient, for a table with the keys of recipients."""
    return [where_sql(transaction, where, table) for where in wanted.address.known]


def allowed_sql(allowed: TagLimit | None, table: str) -> list[Condition]:
    """Return the condition that a row has one of the tags of the caller, or none."""
    return [] if allowed is None else [_is_allowed(f"{table}.tag_key", allowed)]


def _is_first(allowed: TagLimit | None) -> Condition:
    """Return the condition that no earlier message of the same mail is visible to the caller."""
    earlier = _joined(
        " AND ", [("other.position < message.position", ()), *allowed_sql(allowed, "other")]
    )
    return f"NOT EXISTS ({_OF_SAME_MAIL} AND {earlier[0]})", earlier[1]


def is_counted_by_tag(wanted: MessageFilter) -> bool:
    """Return whether the counters of the inbox and its tags give the number of matches."""
    return wanted.start == START and wanted.asks_only("tag", "after")


def is_counted_by_recipient(wanted: MessageFilter) -> bool:
    """Return whether the filter has a recipient and no other condition."""
    is_asked = wanted.recipient is not None and wanted.start == START
    return is_asked and wanted.asks_only("recipient", "after")


def needs_scan(wanted: MessageFilter) -> bool:
    """Return whether mails must be read to find the matches, since no index covers the filter."""
    return bool(wanted.search or wanted.derived) or (wanted.author, wanted.subject) != (None, None)


InText = Callable[[Transaction, str], Condition]


def _term_sql(transaction: Transaction, term: Term, table: str, in_text: InText) -> Condition:
    """Return the condition for a term; ``in_text`` returns it for a part of the text."""
    comparison = term.condition.comparison
    parts: list[Condition] = []
    for place in term.condition.places:
        column, value = _STORED[place].format(table=table), place.key(term.value)
        if place is conditions.TEXT:
            parts.append(in_text(transaction, value))
        elif comparison is conditions.CONTAINS:
            parts.append(transaction.containing(column, value))
        elif comparison is conditions.HAS_WORD:
            parts.append(transaction.containing(f"' ' || {column} || ' '", f" {value} "))
        elif comparison in _COMPARED:
            parts.append(_COMPARED[comparison](column, value))
        else:
            parts.append((f"{column} {comparison.operator} ?", (value,)))
    return parts[0] if len(parts) == 1 else _joined(" OR ", parts)


def _is_one_of(column: str, values: Sequence[Value]) -> Condition:
    marks = ", ".join("?" * len(values))
    return f"{column} IN ({marks})" if values else "1 = 0", tuple(values)


def _begins(column: str, key: str) -> Condition:
    return f"substr({column}, 1, {len(key)}) = ?", (key,)


def _has_field(column: str, wanted: tuple[str, str]) -> Condition:
    name, part = escape_like(wanted[0].lower()), escape_like(conditions.fold_field(wanted[1]))
    pattern = f"%{part}%"
    if name != conditions.ANY_FIELD:
        pattern = f"%{conditions.FIELD_BEGINS}{name}:{pattern}{conditions.FIELD_ENDS}{name}:%"
    return f"{column} LIKE ? ESCAPE '!'", (pattern,)


def _is_allowed(column: str, limit: TagLimit) -> Condition:
    some: list[Condition] = [(f"{column} = ?", (fold_tag(tag),)) for tag in limit.tags]
    if limit.prefix is not None:
        some.append(_begins(column, fold_tag(limit.prefix)))
    return _joined(" OR ", some)


def _is_elsewhere(column: str, domains: Sequence[str]) -> Condition:
    return _joined(
        " AND ",
        [
            (f"{column} LIKE '%@%'", ()),
            *((f"{column} NOT LIKE ? ESCAPE '!'", (f"%@{escape_like(name)}",)) for name in domains),
        ],
    )


_COMPARED: Mapping[Comparison, Callable[[str, Any], Condition]] = {
    conditions.ONE_OF: _is_one_of,
    conditions.BEGINS: _begins,
    conditions.HAS_FIELD: _has_field,
    conditions.ALLOWED: _is_allowed,
    conditions.ELSEWHERE: _is_elsewhere,
}


def _text_containing(transaction: Transaction, part: str) -> Condition:
    """Return the condition that the text contains a part; its signature is compared first."""
    contained = transaction.containing(_STORED[conditions.TEXT], part)
    return _joined(" AND ", [_may_contain(transaction, part), contained])


def _may_contain(transaction: Transaction, part: str) -> Condition:
    code = f"{transaction.char_code_function}(substr({_SIGNATURE}, ?, 1))"
    signs = [(f"{code} & ? = ?", (at, bits, bits)) for at, bits in signs_within(part)]
    if not signs:
        return "1 = 1", ()
    return _joined(" OR ", [(f"{_SIGNATURE} = ''", ()), _joined(" AND ", signs)])


def _joined(by: str, parts: Sequence[Condition]) -> Condition:
    condition = by.join(part for part, _ in parts)
    return f"({condition})", tuple(value for _, some in parts for value in some)


def _since(account_id: AccountId, moment: Instant) -> Condition:
    return _SINCE, (account_id, moment, moment)
