"""Filters for messages, and the grammar of searches.

Lists and waits apply the same filters. The ``q`` parameter of the REST API, the command line and
the pages use the same grammar: words in any order, phrases in quotes, and terms with a prefix. A
mail must match all of them. ``docs/how-to/search-mail.md``
lists the terms of the same table.
"""

import re
from datetime import date
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from mailcheck.core.addresses import UNTAGGED, fold_tag
from mailcheck.core.content import MessageContent, fold_text
from mailcheck.core.cursors import START, Position
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, parse_instant
from mailcheck.core.messages import MessageSummary, encode_keyword
from mailcheck.core.rights import TagLimit

PARAMETER = "q"
"""Name of the parameter, which errors repeat."""

MAX_TERMS = 32
"""Maximum number of terms. Each is one more comparison for every mail."""

MAX_SHOWN = 80
"""Maximum number of characters of an invalid value that an error repeats."""


class Field(Enum):
    """The field that a term is about. The value is its prefix; words and phrases have none."""

    ANYWHERE = ""
    FROM = "from"
    TO = "to"
    TAG = "tag"
    SUBJECT = "subject"
    TEXT = "text"
    HAS = "has"
    NEWER = "newer"
    OLDER = "older"
    LARGER = "larger"
    IS = "is"
    VIA = "via"
    KEYWORD = "keyword"

    # Terms of other grammars than ours.
    HEADER = "header"
    ADDRESSED = "addressed"
    BLIND_COPY = "bcc"
    ANY_RECIPIENT = "any recipient"
    ANY_TAG = "any tag"
    SMALLER = "smaller"


FOREIGN = frozenset(
    {
        Field.HEADER,
        Field.ADDRESSED,
        Field.BLIND_COPY,
        Field.ANY_RECIPIENT,
        Field.ANY_TAG,
        Field.SMALLER,
    }
)
"""The fields that only grammars of other products have."""


ATTACHMENT, CODE = "attachment", "code"
UNREAD, READ = "unread", "read"

CHOICES = {Field.HAS: (ATTACHMENT, CODE), Field.IS: (UNREAD, READ)}

EXAMPLES: tuple[tuple[str, str], ...] = (
    (
        "welcome shop",
        "both words, in any order, in subject, text, addresses or attachments' names",
    ),
    ('"your order"', "this phrase"),
    ("from:shop", "the author's name or address contains it"),
    ("to:signup", "the recipient, To, Cc, Bcc or Reply-To contains it"),
    ("tag:signup", 'it came to the address with this +tag; tag:"" is mail without a tag'),
    ("subject:welcome", "the subject contains it"),
    ("text:code", "the text or the visible HTML contains it"),
    (
        "has:attachment",
        "something is attached; pictures that the HTML shows in its text do not count",
    ),
    ("has:code", "a one-time code was found"),
    ("newer:2h", "it came in the last 2 hours; or since a date or moment: newer:2026-11-21"),
    ("older:3d", "it came more than 3 days ago; or before a date or moment"),
    ("larger:100k", "it has more than 100 KiB; k, M and G are powers of 1,024"),
    ("is:unread", "it was not opened on the dashboard yet; is:read is the opposite"),
    ("keyword:paid", "a mail program or a client of Mailpit put this keyword (their tag) on it"),
    ("via:resend", "it was posted to the API of this provider; via:smtp is mail that was not"),
)
"""All forms of terms by example, for pages and documents."""


class Term(NamedTuple):
    """One condition of a search.

    ``value`` is the text as written for the fields that search text and for tags, one of
    `CHOICES`, an `Instant` (``newer`` includes it, ``older`` excludes it), or a number of bytes
    for ``larger`` and ``smaller``. For `Field.HEADER` it is the name of a header field, a colon
    and a part of its value. A mail must not match a term that ``is_negated``.

    For `Field.KEYWORD` it is the whole keyword as IMAP writes it, and for `Field.ANY_TAG` a whole
    tag or keyword; empty, it stands for any.

    `Field.ADDRESSED` (which includes the author), `Field.BLIND_COPY`, `Field.ANY_RECIPIENT` and
    `Field.ANY_TAG` (which includes the keywords) are about all recipients of a mail, the others
    about one of its messages.
    """

    field: Field
    value: str | int
    is_negated: bool = False


class Search(Struct, frozen=True):
    """A search: the text as it was written, and the parsed terms."""

    written: str
    terms: tuple[Term, ...]


_QUOTED = r'["\u201c\u201d\u201e](?P<{name}>[^"\u201c\u201d\u201e]*)(?:["\u201c\u201d\u201e]|\Z)'
_PREFIXES = "|".join(one.value for one in Field if one.value and one not in FOREIGN)
_TERM = re.compile(
    rf"(?P<prefix>{_PREFIXES}):(?:{_QUOTED.format(name='quoted')}|(?P<value>\S*))"
    rf"|{_QUOTED.format(name='phrase')}|(?P<word>\S+)",
    re.IGNORECASE,
)
"""Quotes are recognised at the beginning of a word and after a known prefix. Typographic quotes
are accepted, since phones type them. A quote without an end extends to the end of the text."""

_AGO = re.compile(r"(\d{1,6})([smhdw])", re.ASCII | re.IGNORECASE)
_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}

SIZE = re.compile(r"(\d{1,9})([kmg]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "k": 10, "m": 20, "g": 30}


def parse_search(text: str, now: Instant) -> Search | None:
    """Parse a search. Return `None` if it has no terms.

    ``newer:2h`` and ``older:2h`` are relative to ``now``.

    :raises InvalidParameter: a prefix has an invalid value, or there are too many terms. The
        message names the term.
    """
    terms: dict[Term, None] = {}
    for match in _TERM.finditer(text):
        if match["prefix"] is not None:
            terms[_read_term(match, now)] = None
        else:
            words = match["word"] or match["phrase"]
            if words.strip():
                terms[Term(Field.ANYWHERE, words)] = None
    if len(terms) > MAX_TERMS:
        raise InvalidParameter(
            PARAMETER,
            f"{PARAMETER} may have at most {MAX_TERMS} terms; got {len(terms)}",
        )
    return Search(text, tuple(terms)) if terms else None


def split_terms(text: str) -> list[str]:
    """Split a search into its terms as they were written, invalid ones too."""
    return [match[0] for match in _TERM.finditer(text) if match["phrase"] != ""]


def _read_term(match: re.Match[str], now: Instant) -> Term:
    field = Field(match["prefix"].lower())
    value = match["value"] if match["quoted"] is None else match["quoted"]
    if field is Field.TAG and match["quoted"] == UNTAGGED:
        return Term(field, UNTAGGED)
    if not value.strip():
        raise InvalidParameter(
            PARAMETER,
            f"{PARAMETER}: {field.value}: has no value; write {_EXAMPLE_OF[field]}, or use quotes "
            f"to search for it as text",
        )
    if field in CHOICES:
        return Term(field, _read_choice(field, value))
    if field is Field.VIA:
        return Term(field, value.lower())
    if field is Field.KEYWORD:
        return Term(field, encode_keyword(value))
    if field is Field.LARGER:
        return Term(field, _read_size(value))
    if field in (Field.NEWER, Field.OLDER):
        return Term(field, _read_moment(field, value, now))
    return Term(field, value)


def _read_choice(field: Field, value: str) -> str:
    if value.lower() in CHOICES[field]:
        return value.lower()
    known = " or ".join(f"{field.value}:{choice}" for choice in CHOICES[field])
    raise _wrong(field, value, known)


def _read_size(value: str) -> int:
    if SIZE.fullmatch(value) is None:
        raise _wrong(Field.LARGER, value, "larger: and a number of bytes, like 500, 100k or 2M")
    return bytes_of(value)


def bytes_of(size: str) -> int:
    """Return the number of bytes of a size that `SIZE` matches: k, M and G are powers of 1,024."""
    match = SIZE.fullmatch(size)
    return 0 if match is None else int(match[1]) << _POWERS[match[2].lower()]


def _read_moment(field: Field, value: str, now: Instant) -> Instant:
    ago = _AGO.fullmatch(value)
    if ago is not None:
        return Instant(now - int(ago[1]) * _UNITS[ago[2].lower()])
    try:
        return parse_instant(f"{date.fromisoformat(value)}T00:00Z")
    except ValueError:
        pass  # no date alone
    try:
        return parse_instant(value)
    except ValueError:
        known = (
            f"{field.value}: and a date like 2026-11-21, a moment like 2026-11-21T10:00:00Z, "
            f"or how long ago like 30m, 2h, 3d or 1w"
        )
        raise _wrong(field, value, known) from None


def _wrong(field: Field, value: str, known: str) -> InvalidParameter:
    shown = value if len(value) <= MAX_SHOWN else value[:MAX_SHOWN] + "..."
    return InvalidParameter(
        PARAMETER, f"{PARAMETER}: write {known}; you sent {field.value}:{shown}"
    )


_EXAMPLE_OF = {
    Field(example.partition(":")[0]): example for example, _ in EXAMPLES if ":" in example
}


class MessageFilter(Struct, frozen=True):
    """Conditions that a message must satisfy. A condition that is `None` is not checked.

    ``tag`` and ``recipient`` must be equal, without case. ``tag_prefix`` is the beginning of the
    tag. ``author`` (name and address) and ``subject`` must contain the text, as `fold_text` folds
    them.

    Three conditions need the parsed content: ``headers`` (pairs of a field name, or `ANY_FIELD`,
    and a part of its value, which must all be present), ``text`` (contained in the searched text)
    and ``has_attachment``.
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
    search: Search | None = None
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

    @property
    def asks_content(self) -> bool:
        """Whether the filter needs the parsed content of a mail."""
        return bool(self.headers) or (self.text, self.has_attachment) != (None, None)

    @property
    def address(self) -> "MessageFilter":
        """The conditions about the recipient. Only these apply to rejected mail."""
        return MessageFilter(
            tag=self.tag,
            tag_prefix=self.tag_prefix,
            recipient=self.recipient,
            allowed=self.allowed,
            foreign_to=self.foreign_to,
        )

    def is_addressed(self, tag: str, recipient: str) -> bool:
        """Return whether the tag and recipient match; other conditions are not checked."""
        return not self._address_mismatches(tag, recipient)

    def _address_mismatches(self, tag: str, recipient: str) -> list[str]:
        reasons = []
        if self.allowed is not None and not self.allowed.allows(tag):
            reasons.append("the API key is limited to other tags")
        if self.tag is not None and fold_tag(tag) != fold_tag(self.tag):
            reasons.append(f"its tag is {tag!r}, not {self.tag!r}")
        if self.tag_prefix is not None and not fold_tag(tag).startswith(fold_tag(self.tag_prefix)):
            reasons.append(f"its tag is {tag!r}, which does not begin with {self.tag_prefix!r}")
        if self.recipient is not None and recipient.casefold() != self.recipient.casefold():
            reasons.append(f"it was sent to {recipient}, not to {self.recipient}")
        _, at, domain = recipient.casefold().rpartition("@")
        if self.foreign_to and (not at or domain in self.foreign_to):
            reasons.append(f"it was sent to {recipient}, an address of this server")
        return reasons

    def mismatches(self, message: MessageSummary) -> list[str]:
        """Return the reasons, as phrases, why a message does not match. Empty if it matches.

        Conditions about the content are not checked, nor those that need the store: ``search``
        and ``once_per_mail``.
        """
        reasons = self._address_mismatches(message.tag, message.recipient)
        if self.mails is not None and message.delivery_id not in self.mails:
            reasons.append("it belongs to another mail")
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
        """Return the reasons why the content of a message does not match. Empty if it matches."""
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
        """Return whether a message matches the conditions that need no content."""
        return not self.mismatches(message)


ANY_FIELD = ""
"""Stands for the name of any header field."""


def _has_field(content: MessageContent, name: str, key: str) -> bool:
    return any(
        name in (ANY_FIELD, field.lower()) and key in fold_text(value)
        for field, value in content.header_list
    )


ANY = MessageFilter()
"""The filter that every message matches."""
