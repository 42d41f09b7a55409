"""Conditions on messages: one row each, for filters, searches, IMAP and other products' APIs.

A row names what is compared, its `Place`, and how, its `Comparison`. The test of a message in
memory (`is_met`) and the SQL (`mailcheck.store.filter_sql`) follow from both. A filter or a search
is a list of expressions (`Where`) over these rows.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from mailcheck.core.addresses import fold_tag
from mailcheck.core.content import MessageContent, fold_text
from mailcheck.core.messages import MessageSummary, Refusal, keywords_in

FIELD_BEGINS, FIELD_ENDS = "\x01", "\x02"
"""Marks before the name of a header field: where the values of the field begin, and where they
end."""

ANY_FIELD = ""
"""Stands for the name of any header field."""


def header_key(header_list: Sequence[tuple[str, str]]) -> str:
    """Return the text in which header fields are searched.

    All values of one name are together, between a start mark and an end mark that occur once. Any
    text between them belongs to this name.
    """
    values: dict[str, list[str]] = {}
    for name, value in header_list:
        values.setdefault(name.lower(), []).append(fold_field(value))
    return "".join(
        f"{FIELD_BEGINS}{name}:{chr(10).join(some)}{FIELD_ENDS}{name}:"
        for name, some in values.items()
    )


def fold_field(value: str) -> str:
    """Return the value of a header field, or a part of it, as `header_key` has it."""
    return fold_text(value).replace(FIELD_BEGINS, " ").replace(FIELD_ENDS, " ")


class Place(Struct, frozen=True):
    """A value of a message that is compared: a number, or a text as ``fold`` writes it.

    ``read`` takes the summary of a message, or the content of its mail if that ``is_derived``.
    """

    name: str
    read: Callable[[Any], Any]
    fold: Callable[[str], str] = str
    is_derived: bool = False

    def key(self, value: Any) -> Any:
        """Return what the place is compared with; only texts are folded."""
        return self.fold(value) if isinstance(value, str) else value


def _of_message(
    name: str, read: Callable[[MessageSummary], Any], fold: Callable[[str], str] = str
) -> Place:
    return Place(name, read, fold)


def _of_content(
    name: str, read: Callable[[MessageContent], Any], fold: Callable[[str], str] = str
) -> Place:
    return Place(name, read, fold, is_derived=True)


AUTHORS = _of_message("authors", lambda message: message.header.author_key, fold_text)
SUBJECT = _of_message("subject", lambda message: message.header.subject_key, fold_text)
RECIPIENT = _of_message("recipient", lambda message: message.recipient.casefold(), str.casefold)
TAG = _of_message("tag", lambda message: fold_tag(message.tag), fold_tag)
KEYWORDS = _of_message(
    "keywords", lambda message: " ".join(keywords_in(message.flags)).lower(), str.lower
)
PROVIDER = _of_message("provider", lambda message: message.via)
MAIL = _of_message("mail", lambda message: message.delivery_id)
POSITION = _of_message("position", lambda message: message.position)
RECEIVED_AT = _of_message("time", lambda message: message.received_at)
SIZE = _of_message("size", lambda message: message.size)
IS_READ = _of_message("read mark", lambda message: int(message.is_read))
PEOPLE = _of_content(
    "people",
    lambda content: fold_text(
        "\n".join(f"{person.address} {person.name}" for person in content.people)
    ),
    fold_text,
)
FILE_NAMES = _of_content(
    "file names",
    lambda content: fold_text("\n".join(file.filename for file in content.attachments)),
    fold_text,
)
HEADER = _of_content("header", lambda content: header_key(content.header_list))
TEXT = _of_content("text", lambda content: fold_text(content.searched), fold_text)
FILES = _of_content("files", lambda content: len(content.files))
CODES = _of_content("codes", lambda content: int(bool(content.codes)))


def _has_field(key: str, wanted: tuple[str, str]) -> bool:
    name, part = wanted[0].lower(), fold_field(wanted[1])
    if name == ANY_FIELD:
        return part in key
    start, end = key.find(f"{FIELD_BEGINS}{name}:"), key.find(f"{FIELD_ENDS}{name}:")
    return start >= 0 and part in key[start + len(name) + 2 : end]


def _is_elsewhere(address: str, domains: Sequence[str]) -> bool:
    _, at, domain = address.rpartition("@")
    return bool(at) and domain not in domains


class Comparison(Struct, frozen=True, eq=False):
    """How a place is compared with a value: the operator, and the test in memory.

    The operators for numbers and equal texts are those of SQL.
    """

    operator: str
    holds: Callable[[Any, Any], bool]


EQUALS = Comparison("=", operator.eq)
MORE = Comparison(">", operator.gt)
LESS = Comparison("<", operator.lt)
AT_LEAST = Comparison(">=", operator.ge)
AT_MOST = Comparison("<=", operator.le)
ONE_OF = Comparison("one of", lambda held, values: held in values)
CONTAINS = Comparison("contains", operator.contains)
BEGINS = Comparison("begins with", str.startswith)
HAS_WORD = Comparison("has the word", lambda words, word: word in words.split())
HAS_FIELD = Comparison("has a field", _has_field)
"""The value is the name of a header field, or `ANY_FIELD`, and a part of its value."""
ALLOWED = Comparison("is allowed by", lambda tag, limit: limit.allows(tag))
"""The value is a `TagLimit`."""
ELSEWHERE = Comparison("is outside of", _is_elsewhere)
"""The value is domains in lower case. An address without a domain is in all of them."""


class Condition(Struct, frozen=True):
    """A row: the condition that one of the places satisfies the comparison.

    :param reason: why a message does not match a filter with this condition, as a phrase.
    :param example: a term of a search, up to the value, and a value. Other grammars than ours have
        the conditions without one.
    :param meaning: when a mail matches the example.
    :param fixed: the value, where the example is the only one.
    :param synonym: a second prefix.
    """

    name: str
    comparison: Comparison
    places: tuple[Place, ...]
    reason: Callable[[MessageSummary, Any], str] | None = None
    example: str = ""
    meaning: str = ""
    fixed: int | None = None
    synonym: str = ""

    @property
    def prefix(self) -> str:
        """The prefix of terms of a search; empty for words and phrases."""
        prefix, colon, _ = self.example.partition(":")
        return prefix if colon else ""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return condition_named, (self.name,)


def condition_named(name: str) -> Condition:
    """Return the row with a name. Rows are pickled as their names."""
    return next(row for row in CONDITIONS if row.name == name)


# fmt: off
TAGS_OF_KEY = Condition("allowed", ALLOWED, (TAG,),
    reason=lambda message, limit: "the API key is limited to other tags")
WITH_TAG = Condition("tag", EQUALS, (TAG,),
    reason=lambda message, tag: f"its tag is {message.tag!r}, not {tag!r}",
    example="tag:signup",
    meaning='it came to the address with this +tag; tag:"" is mail without a tag')
WITH_TAG_PREFIX = Condition("tag_prefix", BEGINS, (TAG,),
    reason=lambda message, prefix:
        f"its tag is {message.tag!r}, which does not begin with {prefix!r}")
TO_ADDRESS = Condition("recipient", EQUALS, (RECIPIENT,),
    reason=lambda message, address: f"it was sent to {message.recipient}, not to {address}")
TO_OTHERS = Condition("foreign_to", ELSEWHERE, (RECIPIENT,),
    reason=lambda message, domains:
        f"it was sent to {message.recipient}, an address of this server")
IN_MAILS = Condition("mails", ONE_OF, (MAIL,),
    reason=lambda message, mails: "it belongs to another mail")
FROM = Condition("author", CONTAINS, (AUTHORS,),
    reason=lambda message, part: f"its author is {message.header.authors_text!r}",
    example="from:shop", meaning="an author's name or address contains it")
WITH_SUBJECT = Condition("subject", CONTAINS, (SUBJECT,),
    reason=lambda message, part: f"its subject is {message.header.subject!r}",
    example="subject:welcome", meaning="the subject contains it")
AFTER = Condition("after", MORE, (POSITION,),
    reason=lambda message, position: "it had arrived before the cursor given as after")
UP_TO = Condition("up_to", AT_MOST, (POSITION,),
    reason=lambda message, position: "it has arrived since")
SINCE = Condition("since", AT_LEAST, (RECEIVED_AT,),
    reason=lambda message, moment:
        f"it arrived {(moment - message.received_at) / 1000:.1f} s before since",
    example="newer:2h", synonym="after",
    meaning="it came in the last 2 hours; or since a date or moment: after:2026-11-21")
WITH_HEADER = Condition("headers", HAS_FIELD, (HEADER,),
    reason=lambda message, field: f"it has no header field {field[0]} with {field[1]!r}")
WITH_TEXT = Condition("text", CONTAINS, (TEXT,),
    reason=lambda message, part: f"its text does not contain {part!r}",
    example="text:code", meaning="the text or the visible HTML contains it")
WITH_FILES = Condition("has_attachment", MORE, (FILES,),
    reason=lambda message, _: "it has no attachment",
    example="has:attachment", fixed=0,
    meaning="something is attached; pictures that the HTML shows in its text do not count")
WITHOUT_FILES = Condition("has_no_attachment", EQUALS, (FILES,),
    reason=lambda message, _: "it has an attachment")
WITH_CODE = Condition("has_code", EQUALS, (CODES,),
    example="has:code", fixed=1, meaning="a one-time code was found")
WITH_WORDS = Condition("words", CONTAINS,
    # The text is last, since it is the longest.
    (SUBJECT, AUTHORS, RECIPIENT, PEOPLE, FILE_NAMES, TEXT),
    example="welcome shop",
    meaning="both words, in any order, in subject, text, addresses or attachments' names")
TO = Condition("to", CONTAINS, (RECIPIENT, PEOPLE),
    example="to:signup", meaning="the recipient, To, Cc, Bcc or Reply-To contains it")
TO_PEOPLE = Condition("people", CONTAINS, (PEOPLE,))
TO_RECIPIENT = Condition("recipient_part", CONTAINS, (RECIPIENT,))
WITH_FILE_NAME = Condition("file_name", CONTAINS, (FILE_NAMES,),
    example="filename:invoice", meaning="the name of an attachment contains it")
OLDER = Condition("older", LESS, (RECEIVED_AT,),
    example="older:3d", synonym="before",
    meaning="it came more than 3 days ago; or before a date or moment: before:2026-11-21")
LARGER = Condition("larger", MORE, (SIZE,),
    example="larger:100k", meaning="it has more than 100 KiB; k, M and G are powers of 1,024")
SMALLER = Condition("smaller", LESS, (SIZE,),
    example="smaller:2M", meaning="it has less than 2 MiB")
UNREAD = Condition("unread", EQUALS, (IS_READ,),
    example="is:unread", fixed=0, meaning="it was not opened on the dashboard yet")
READ = Condition("read", EQUALS, (IS_READ,),
    example="is:read", fixed=1, meaning="it was opened")
WITH_KEYWORD = Condition("keyword", HAS_WORD, (KEYWORDS,),
    example="keyword:paid",
    meaning="a mail program or a client of Mailpit put this keyword (their tag) on it")
WITHOUT_KEYWORDS = Condition("no_keywords", EQUALS, (KEYWORDS,))
VIA = Condition("via", EQUALS, (PROVIDER,),
    example="via:resend",
    meaning="it was posted to the API of this provider; via:smtp is mail that was not")
# fmt: on

CONDITIONS = (
    *(WITH_WORDS, FROM, TO, WITH_TAG, WITH_SUBJECT, WITH_TEXT, WITH_FILE_NAME),
    *(WITH_FILES, WITH_CODE, SINCE, OLDER, LARGER, SMALLER, UNREAD, READ, WITH_KEYWORD, VIA),
    *(TAGS_OF_KEY, WITH_TAG_PREFIX, TO_ADDRESS, TO_OTHERS, IN_MAILS, AFTER, UP_TO, WITH_HEADER),
    *(WITHOUT_FILES, WITHOUT_KEYWORDS, TO_PEOPLE, TO_RECIPIENT),
)
"""All rows. Those with an example are in the order in which pages and documents list them."""


class Term(Struct, frozen=True, tag=True):
    """A condition and its value.

    A text is as it was written, a moment an `Instant`, a size a number of bytes, a keyword as IMAP
    writes it.
    """

    condition: Condition
    value: Any


class Not(Struct, frozen=True, tag=True):
    """The opposite of an expression."""

    part: "Where"


class AllOf(Struct, frozen=True, tag=True):
    """All of some expressions."""

    parts: "tuple[Where, ...]"


class AnyOf(Struct, frozen=True, tag=True):
    """One or more of some expressions."""

    parts: "tuple[Where, ...]"


class InMail(Struct, frozen=True, tag=True):
    """An expression, not about content, that one or more messages of the same mail satisfy."""

    part: "Where"


Where = Term | Not | AllOf | AnyOf | InMail


def sent_to(part: str) -> Where:
    """Return the expression that any recipient of a mail, or an address in it, contains a part."""
    return AnyOf((Term(TO_PEOPLE, part), InMail(Term(TO_RECIPIENT, part))))


def terms_of(where: Where) -> Iterator[Term]:
    """Yield all terms of an expression."""
    match where:
        case Term():
            yield where
        case Not(part) | InMail(part):
            yield from terms_of(part)
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from terms_of(part)


def is_derived(where: Where) -> bool:
    """Return whether an expression needs the derived content of a mail."""
    return any(place.is_derived for term in terms_of(where) for place in term.condition.places)


def is_met(
    where: Where,
    message: MessageSummary | Refusal,
    content: MessageContent | None = None,
    mail: Sequence[MessageSummary] = (),
) -> bool:
    """Return whether a message in memory satisfies an expression.

    :param message: a rejected mail, for conditions about the recipient.
    :param content: required if the expression `is_derived`.
    :param mail: all messages of the mail, where there are others.
    """
    match where:
        case Term(condition, value):
            # Every new message is compared with every wait.
            for place in condition.places:
                held = place.read(content if place.is_derived else message)
                if condition.comparison.holds(held, place.key(value)):
                    return True
            return False
        case Not(part):
            return not is_met(part, message, content, mail)
        case AllOf(parts):
            return all(is_met(part, message, content, mail) for part in parts)
        case AnyOf(parts):
            return any(is_met(part, message, content, mail) for part in parts)
        case InMail(part):
            return any(is_met(part, other, content, mail) for other in (message, *mail))
