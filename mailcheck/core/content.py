"""What is derived from the bytes of a mail: the values, not the ways to get them."""

from dataclasses import dataclass, field
from enum import Enum

from mailcheck.core.folded_text import fold_text


class CandidateKind(Enum):
    """What a candidate of the extraction may be."""

    CODE = "code"
    LINK = "link"
    MAIL_ADDRESS = "mailto"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that might be a one-time code or a link, with its score and the reasons for it."""

    kind: CandidateKind
    value: str
    score: int
    is_accepted: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttachmentFacts:
    """One attached part; ``id`` is stable for the message ("1", "2", ... in document order).

    ``size`` is in bytes after decoding; ``content_id`` without angle brackets.
    """

    id: str
    filename: str
    content_type: str
    size: int
    content_id: str | None


@dataclass(frozen=True, slots=True)
class HeaderSummary:
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


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a test wants of a mail: its links, the one to click, its codes (best first)."""

    links: tuple[str, ...]
    best_link: str | None
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MessageContent:
    """Everything that is shown of a mail beside its envelope.

    ``header_list`` holds every header field in order, unfolded and decoded.
    ``text`` and ``html`` are empty where the mail has no such part.
    ``links`` are absolute http(s) URLs in order, without duplicates; ``codes``
    are one-time codes, best first. ``problems`` says in sentences what was
    broken or exceeded a cap. ``searched`` is the text that searches look in, the
    words of the HTML where there is no other; a store keeps it for searches alone.
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
    searched: str = field(default="", repr=False, compare=False)

    @property
    def extracted(self) -> Extracted:
        """Give what was extracted, for lists."""
        return Extracted(self.links, self.best_link, self.codes)
