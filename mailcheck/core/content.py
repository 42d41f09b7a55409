"""What is derived from the bytes of a mail: the values, not the ways to get them."""

from dataclasses import dataclass, field
from enum import Enum


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


@dataclass(frozen=True, slots=True)
class MessageContent:
    """Everything that is shown of a mail beside its envelope.

    ``header_list`` holds every header field in order, unfolded and decoded.
    ``text`` and ``html`` are empty where the mail has no such part.
    ``links`` are absolute http(s) URLs in order, without duplicates; ``codes``
    are one-time codes, best first. ``problems`` says in sentences what was
    broken or exceeded a cap.
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
