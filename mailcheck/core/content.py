"""What is derived from the bytes of a mail: the values, not the ways to get them."""

import re
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import unquote

from msgspec import Struct

from mailcheck.core.folded_text import fold_text

DERIVATION = 7
"""Number of the rules by which content is derived; who changes what they find counts it up.

What an earlier version has derived is derived again when it is read.
"""


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
