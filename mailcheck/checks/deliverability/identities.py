"""Identities of a mail: the domains and signatures that SPF, DKIM and DMARC check."""

from msgspec import Struct

from mailcheck.checks.content.header.fields import split_header
from mailcheck.checks.dkim.signature_headers import SignatureHeader, read_signatures
from mailcheck.checks.quality import header


class Identities(Struct, frozen=True):
    """The domains of all authors (RFC 5322 3.6.2) in A-labels, and the unverified signatures.

    ``author_fields`` is the number of From fields. If ``is_read`` is false, only the number of
    signatures is known.
    """

    author_domains: tuple[str, ...]
    signatures: tuple[SignatureHeader, ...]
    author_fields: int = 1
    is_read: bool = True


def read_identities(head: bytes) -> Identities:
    """Read the identities from the header of a mail, in linear time; any bytes are accepted."""
    fields = split_header(head, 0, len(head)).fields
    domains = [author.domain for author in header.read_authors(fields) if author.domain]
    signatures, _ = read_signatures(head)
    author_fields = header.names_of_fields(fields).count("from")
    return Identities(tuple(dict.fromkeys(domains)), signatures, author_fields)


def unreadable_identities(signatures: int) -> Identities:
    """Return placeholders for a header that could not be read in time."""
    unread = tuple(SignatureHeader(index, "", "") for index in range(signatures))
    return Identities((), unread, is_read=False)


def header_of(raw_message: bytes) -> bytes:
    """Return the header of a mail, including the empty line after it."""
    ends = [raw_message.find(mark) for mark in (b"\r\n\r\n", b"\n\n")]
    end = min((end for end in ends if end >= 0), default=len(raw_message))
    return raw_message[: end + 4]
