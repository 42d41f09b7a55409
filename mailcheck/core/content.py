"""Values that are derived from the bytes of a mail."""

import re
import sys
import unicodedata
from array import array
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import unquote

from msgspec import Struct

DERIVATION = 9
"""Version of the rules that derive content. Increase it when a change alters their results.

Content derived by an earlier version is derived again when it is read.
"""

LINK_METHODS = ("HEAD", "GET")
"""HTTP methods by which links can be checked."""

LINKS_AT_ONCE = 100
"""Maximum number of links that one request checks."""


class CandidateKind(Enum):
    """The type of a candidate."""

    CODE = "code"
    LINK = "link"
    MAIL_ADDRESS = "mailto"
    APP_LINK = "app"


class Candidate(Struct, frozen=True):
    """A text that might be a one-time code or a link, with its score and the reasons for it."""

    kind: CandidateKind
    value: str
    score: int
    is_accepted: bool
    reasons: tuple[str, ...]


class AttachmentFacts(Struct, frozen=True):
    """One attachment. ``id`` is stable for the message ("1", "2", ... in document order).

    ``size`` is in bytes after decoding; ``content_id`` without angle brackets.
    """

    id: str
    filename: str
    content_type: str
    size: int
    content_id: str | None


_CONTENT_ID = re.compile(r"\bcid:([^\s\"'()<>]+)", re.IGNORECASE)


def content_id_key(text: str) -> str:
    """Return a Content-ID for comparison: either side may be percent-encoded (RFC 2392)."""
    return (unquote(text) if "%" in text else text).lower()


class Person(Struct, frozen=True):
    """An address in the header field ``to``, ``cc``, ``bcc`` or ``reply-to``."""

    field: str
    address: str
    name: str


class HeaderSummary(Struct, frozen=True):
    """The header fields that lists and filters need, decoded (RFC 2047)."""

    author_address: str
    author_name: str
    subject: str
    other_authors: str = ""
    """The authors after the first one, as ``name <address>``; most mails have none."""

    @property
    def author_text(self) -> str:
        """The author as ``name <address>``."""
        return f"{self.author_name} <{self.author_address}>".strip()

    @property
    def authors_text(self) -> str:
        """All authors."""
        return (
            f"{self.author_text}, {self.other_authors}" if self.other_authors else self.author_text
        )

    @property
    def author_key(self) -> str:
        """All authors folded, for searches."""
        return fold_text(self.authors_text)

    @property
    def subject_key(self) -> str:
        """The folded subject, for searches."""
        return fold_text(self.subject)


class Extracted(Struct, frozen=True):
    """The part of a mail's content that lists show: links, the best link, and codes, best first.

    ``snippet`` is the beginning of the text in one line. ``attachment_count`` counts `files`.
    """

    links: tuple[str, ...]
    best_link: str | None
    codes: tuple[str, ...]
    snippet: str = ""
    attachment_count: int = 0


@dataclass(frozen=True, slots=True)
class MessageContent:
    """Everything that is shown of a mail except its envelope.

    ``header_list`` has every header field in order, unfolded and decoded.
    ``text`` and ``html`` are empty if the mail has no such part. Texts and HTML that follow each
    other are in both, converted.
    ``links`` are absolute http(s) URLs in order, without duplicates. ``codes``
    are one-time codes, best first. ``problems`` are sentences about broken
    parts and exceeded limits. ``searched`` is the folded text for searches: the text, and the words
    of the HTML. ``signature`` is the signature of ``searched``. It is empty
    if none was computed: stores write it and do not read it back.
    ``snippet`` is the beginning of the text in one line. ``people`` are the addresses of To, Cc,
    Bcc and Reply-To in order.
    """

    header_list: tuple[tuple[str, str], ...]
    text: str
    html: str
    attachments: tuple[AttachmentFacts, ...]
    links: tuple[str, ...]
    best_link: str | None
    codes: tuple[str, ...]
    candidates: tuple[Candidate, ...] = field(repr=False)
    problems: tuple[str, ...]
    snippet: str = ""
    people: tuple[Person, ...] = ()
    searched: str = field(default="", repr=False, compare=False)
    signature: str = field(default="", repr=False, compare=False)

    @property
    def files(self) -> list[AttachmentFacts]:
        """The attachments, without pictures that the HTML shows inline."""
        if not any(attachment.content_id for attachment in self.attachments):
            return list(self.attachments)
        shown = {content_id_key(found) for found in _CONTENT_ID.findall(self.html)}
        return [
            attachment
            for attachment in self.attachments
            if not (
                attachment.content_id
                and attachment.content_type.startswith("image/")
                and content_id_key(attachment.content_id) in shown
            )
        ]

    @property
    def media_types(self) -> dict[str, str]:
        """The content types of the parts that the HTML can show, by folded Content-ID."""
        return {
            content_id_key(attachment.content_id): attachment.content_type
            for attachment in self.attachments
            if attachment.content_id
        }

    @property
    def message_id(self) -> str:
        """The first Message-ID of the header, or an empty text."""
        found = (value for name, value in self.header_list if name.lower() == "message-id")
        return next(found, "").strip()

    def people_in(self, field: str) -> list[Person]:
        """Return the addresses of a field. The name of the field is in lower case."""
        return [person for person in self.people if person.field == field]

    @property
    def app_links(self) -> list[str]:
        """Links with URL schemes of apps. They are shown as text and are not clickable."""
        return [
            candidate.value
            for candidate in self.candidates
            if candidate.kind is CandidateKind.APP_LINK
        ]

    @property
    def extracted(self) -> Extracted:
        """The part of the content that lists show."""
        return Extracted(self.links, self.best_link, self.codes, self.snippet, len(self.files))


INVISIBLE = (
    # Soft hyphen, joiners, zero-width blanks, direction marks, byte order mark.
    *(0xAD, 0x34F, 0x61C, 0x180E, 0xFEFF),
    *(*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)),
)

_ACCENTS = range(0x300, 0x370)
"""Combining diacritical marks. The marks of Thai, Devanagari and kana are parts of letters."""

_DROPPED = dict.fromkeys((*_ACCENTS, *INVISIBLE), "")

_SIGNS = 2_297
"""Number of bits of a signature, a prime. Four kilobytes of English set two fifths of them."""

_BITS = 6
"""Bits in a character of a signature. Its 64 values are ASCII, so every database has their code."""

_NO_SIGNS = b"@" * (_SIGNS // _BITS + 1)

MOST_ASKED = 3
"""Maximum number of signature characters that a query compares for one search term. Each costs a
tenth of a comparison of the text."""


def fold_text(text: str) -> str:
    """Remove differences of case, accents, widths, invisible characters and white space.

    Characters are folded one by one: if a text contains a part, the folded text contains the
    folded part (Unicode 3.13, compatibility caseless matching, without accents). Folding a folded
    text does not change it.
    """
    if not text.isascii():
        # Folding can produce an accent (İ), and decomposing a symbol a capital letter (℡).
        text = _decompose(_decompose(text).casefold())
    text = text.casefold()
    # Most subjects need no replacement. This runs for every incoming mail.
    return text if text.isprintable() and "  " not in text else _single_blanks(text)


def _single_blanks(text: str) -> str:
    """Return a text with one space for each run of white space, which includes NUL characters.

    PostgreSQL rejects NUL characters. A regular expression takes five times as long.
    """
    text = text.replace("\0", " ")
    words = " ".join(text.split())
    if not words:
        return " " if text else ""
    return f"{' ' * text[0].isspace()}{words}{' ' * text[-1].isspace()}"


def is_blank(text: str) -> bool:
    """Return whether a text has no character that counts in a search: every text contains it."""
    return not fold_text(text).strip()


def _decompose(text: str) -> str:
    return unicodedata.normalize("NFKD", text).translate(_DROPPED)


def sign_text(key: str) -> str:
    """Return the signature of a folded text: always 383 characters of ASCII."""
    signature = bytearray(_NO_SIGNS)
    for sign in _signs(key):
        signature[sign // _BITS] |= 1 << sign % _BITS
    return signature.decode("ascii")


def signs_within(part: str) -> list[tuple[int, int]]:
    """Return the bits that the signature of every text with this folded part must have.

    Each pair is the index of a character, counted from 1, and the bits set in its code. At most
    `MOST_ASKED` pairs are returned, and none for a part of less than three bytes.
    """
    places: dict[int, int] = {}
    for sign in sorted(_signs(part)):
        place = sign // _BITS + 1
        places[place] = places.get(place, 0) | 1 << sign % _BITS
    return list(places.items())[:MOST_ASKED]


def _signs(key: str) -> set[int]:
    octets = key.encode("utf-8", "replace")
    # Three bytes and a zero byte form one 32-bit number.
    groups = bytearray(4 * max(0, len(octets) - 2))
    for offset in range(3):
        groups[offset::4] = octets[offset : offset + len(groups) // 4]
    numbers = array("I", bytes(groups))
    if sys.byteorder == "big":
        numbers.byteswap()
    return {number % _SIGNS for number in set(numbers)}
