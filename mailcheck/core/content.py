"""What is derived from the bytes of a mail: the values, not the ways to get them."""

import re
import sys
import unicodedata
from array import array
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import unquote

from msgspec import Struct

DERIVATION = 7
"""Number of the rules by which content is derived; who changes what they find counts it up.

What an earlier version has derived is derived again when it is read.
"""

LINK_METHODS = ("HEAD", "GET")
"""HTTP methods by which links can be checked."""

LINKS_AT_ONCE = 100
"""Maximum number of links that one request checks."""


class CandidateKind(Enum):
    """What a candidate of the extraction may be."""

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
    """One attached part; ``id`` is stable for the message ("1", "2", ... in document order).

    ``size`` is in bytes after decoding; ``content_id`` without angle brackets.
    """

    id: str
    filename: str
    content_type: str
    size: int
    content_id: str | None


_CONTENT_ID = re.compile(r"\bcid:([^\s\"'()<>]+)", re.IGNORECASE)


def content_id_key(text: str) -> str:
    """Return a Content-ID as it is compared: either side may have percent-encoded it (RFC 2392)."""
    return (unquote(text) if "%" in text else text).lower()


class Person(Struct, frozen=True):
    """An address in a field of the header: ``to``, ``cc``, ``bcc`` or ``reply-to``."""

    field: str
    address: str
    name: str


class HeaderSummary(Struct, frozen=True):
    """The header fields that lists and filters need, decoded (RFC 2047)."""

    author_address: str
    author_name: str
    subject: str

    @property
    def author_text(self) -> str:
        """Write the author as ``name <address>``."""
        return f"{self.author_name} <{self.author_address}>".strip()

    @property
    def author_key(self) -> str:
        """Give the text in which an author is looked for."""
        return fold_text(self.author_text)

    @property
    def subject_key(self) -> str:
        """Give the text in which a subject is looked for."""
        return fold_text(self.subject)


class Extracted(Struct, frozen=True):
    """What lists have of a mail's content: its links, the best link, its codes (best first).

    ``snippet`` is how its text begins, in one line; ``attachment_count`` counts `files`.
    """

    links: tuple[str, ...]
    best_link: str | None
    codes: tuple[str, ...]
    snippet: str = ""
    attachment_count: int = 0


@dataclass(frozen=True, slots=True)
class MessageContent:
    """Everything that is shown of a mail beside its envelope.

    ``header_list`` holds every header field in order, unfolded and decoded.
    ``text`` and ``html`` are empty where the mail has no such part.
    ``links`` are absolute http(s) URLs in order, without duplicates; ``codes``
    are one-time codes, best first. ``problems`` says in sentences what was
    broken or exceeded a cap. ``searched`` is the text that searches look in, the
    words of the HTML where there is no other, as it is compared; ``signature`` is that text's,
    and empty where nobody made one: a store keeps it and does not give it back.
    ``snippet`` is how that begins, in one line. ``people`` are the addresses of To, Cc, Bcc and
    Reply-To in order.
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
        """List what is attached; pictures that the HTML shows in its text are a part of that."""
        if not any(one.content_id for one in self.attachments):
            return list(self.attachments)
        shown = {content_id_key(found) for found in _CONTENT_ID.findall(self.html)}
        return [
            one
            for one in self.attachments
            if not (
                one.content_id
                and one.content_type.startswith("image/")
                and content_id_key(one.content_id) in shown
            )
        ]

    @property
    def media_types(self) -> dict[str, str]:
        """Return the types of the parts that the text can show, by the key of their Content-ID."""
        return {
            content_id_key(one.content_id): one.content_type
            for one in self.attachments
            if one.content_id
        }

    def people_in(self, field: str) -> list[Person]:
        """List the addresses of a field, named in lower case."""
        return [person for person in self.people if person.field == field]

    @property
    def app_links(self) -> list[str]:
        """List the links to apps, by schemes of their own: to be read and copied, not followed."""
        return [one.value for one in self.candidates if one.kind is CandidateKind.APP_LINK]

    @property
    def extracted(self) -> Extracted:
        """Give what lists have of it."""
        return Extracted(self.links, self.best_link, self.codes, self.snippet, len(self.files))


INVISIBLE = (
    # Soft hyphen, joiners, zero-width blanks, direction marks, byte order mark.
    *(0xAD, 0x34F, 0x61C, 0x180E, 0xFEFF),
    *(*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)),
)

_ACCENTS = range(0x300, 0x370)
"""Combining diacritical marks. Those of Thai, Devanagari or kana are others: parts of letters."""

_DROPPED = dict.fromkeys((*_ACCENTS, *INVISIBLE), "")
# A NUL is no text for PostgreSQL; nobody can look for one.
_BLANKS = re.compile(r"[\s\x00]+")

_SIGNS = 2_297
"""Bits of a signature, a prime number: four kilobytes of English set two fifths of them."""

_BITS = 6
"""In a character of a signature, which is one of 64 of ASCII: every database tells its code."""

_NO_SIGNS = b"@" * (_SIGNS // _BITS + 1)

MOST_ASKED = 3
"""Characters of a signature that are asked for a part: each costs a tenth of what its text does."""


def fold_text(text: str) -> str:
    """Fold case, accents, widths and invisible characters away; white space is one blank.

    Made character by character, so that what stands in a text stands in the folded text, too
    (Unicode 3.13, compatibility caseless matching, without accents). A folded text folds to
    itself.
    """
    if not text.isascii():
        # An accent can come of a letter's case (İ), and a capital letter of a symbol (℡).
        text = _decompose(_decompose(text).casefold())
    text = text.casefold()
    # Most subjects have nothing but single blanks: it is every mail's on its way in.
    return text if text.isprintable() and "  " not in text else _BLANKS.sub(" ", text)


def _decompose(text: str) -> str:
    return unicodedata.normalize("NFKD", text).translate(_DROPPED)


def sign_text(key: str) -> str:
    """Make the signature of a folded text: 383 characters of ASCII, however long it is."""
    signature = bytearray(_NO_SIGNS)
    for sign in _signs(key):
        signature[sign // _BITS] |= 1 << sign % _BITS
    return signature.decode("ascii")


def signs_within(part: str) -> list[tuple[int, int]]:
    """Say what the signature of each text has that contains a folded part: no more than matters.

    Gives places of characters, counted from 1, and bits that are set in their codes. A part of
    less than three bytes has none.
    """
    places: dict[int, int] = {}
    for sign in sorted(_signs(part)):
        place = sign // _BITS + 1
        places[place] = places.get(place, 0) | 1 << sign % _BITS
    return list(places.items())[:MOST_ASKED]


def _signs(key: str) -> set[int]:
    octets = key.encode("utf-8", "replace")
    # Three bytes and a zero are a number each, which are read as such at once.
    groups = bytearray(4 * max(0, len(octets) - 2))
    for offset in range(3):
        groups[offset::4] = octets[offset : offset + len(groups) // 4]
    numbers = array("I", bytes(groups))
    if sys.byteorder == "big":
        numbers.byteswap()
    return {number % _SIGNS for number in set(numbers)}
