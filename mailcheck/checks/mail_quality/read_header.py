"""What the header of a mail says, and where it breaks the rules for headers."""

import re
from collections import Counter
from collections.abc import Sequence

from mailcheck.checks.content.decoding import decode_header_bytes, flatten_controls
from mailcheck.checks.content.header import HeaderField, parse_first_mailbox, parse_mailboxes
from mailcheck.checks.mail_quality.facts import (
    Author,
    BulkFacts,
    MessageIdFacts,
    UnsubscribeFacts,
)
from mailcheck.checks.mail_quality.host_names import normalize_host

# fmt: off
ONLY_ONCE = frozenset([
    # RFC 5322 3.6
    "date", "from", "sender", "reply-to", "to", "cc", "bcc", "message-id", "in-reply-to",
    "references", "subject",
    # RFC 2045 3, RFC 2369 2, RFC 8058 3.1
    "mime-version", "content-type", "content-transfer-encoding", "list-unsubscribe",
    "list-unsubscribe-post", "list-id",
])
# fmt: on
"""Fields that a mail has once at most."""

MAX_SHOWN = 998
"""Characters of a field body that are kept: what RFC 5322 2.1.1 allows a line to have."""

MAX_AUTHORS = 100
"""Mailboxes of all From fields together; more than one is rare."""

MAX_URIS = 20
"""URIs of List-Unsubscribe; receivers read the first few."""

_MESSAGE_ID = re.compile(
    # RFC 5322 3.6.4: dot-atom or quoted left part, dot-atom or literal right part.
    r"<(?:[^\s<>@\"()\[\],;:\\]++|\"[^\"\\]*+\")@(?P<domain>[^\s<>@\[\]()\\]++|\[[^\s\[\]\\]*+\])>"
)
_URI = re.compile(r"<([^<>]*+)>")


def names_of_fields(fields: Sequence[HeaderField]) -> tuple[str, ...]:
    """Give the names in order, in lower case."""
    return tuple(field.name.lower() for field in fields)


def find_repeated(names: Sequence[str]) -> tuple[str, ...]:
    """Name the fields that occur more than once though they may not."""
    counted = Counter(name for name in names if name in ONLY_ONCE)
    return tuple(name for name, count in counted.items() if count > 1)


def find_8bit(fields: Sequence[HeaderField]) -> tuple[str, ...]:
    """Name the fields with octets over 127, which RFC 5322 does not allow and RFC 6532 does."""
    return tuple(dict.fromkeys(f.name.lower() for f in fields if not f.body.isascii()))


def read_authors(fields: Sequence[HeaderField]) -> tuple[Author, ...]:
    """Read the mailboxes of all From fields, in order."""
    bodies = (decode_header_bytes(f.body) for f in fields if f.name.lower() == "from")
    found = (mailbox for body in bodies for mailbox in parse_mailboxes(body))
    return tuple(
        Author(address, name, normalize_host(address.rpartition("@")[2]) if "@" in address else "")
        for address, name in list(found)[:MAX_AUTHORS]
    )


def read_address(fields: Sequence[HeaderField], name: str) -> str:
    """Read the address of the first mailbox of a field; "" without one."""
    found = find_field(fields, name)
    return parse_first_mailbox(decode_header_bytes(found.body))[0] if found else ""


def read_text(fields: Sequence[HeaderField], name: str) -> str:
    """Read a field as text, RFC 2047 undone; "" without one."""
    found = find_field(fields, name)
    return found.decode().strip()[:MAX_SHOWN] if found else ""


def find_field(fields: Sequence[HeaderField], name: str) -> HeaderField | None:
    """Find the first field of a (lower case) name."""
    return next((field for field in fields if field.name.lower() == name), None)


def read_message_id(fields: Sequence[HeaderField]) -> MessageIdFacts | None:
    """Read the Message-ID."""
    found = find_field(fields, "message-id")
    if found is None:
        return None
    text = flatten_controls(decode_header_bytes(found.body[: MAX_SHOWN * 4]))[:MAX_SHOWN]
    match = _MESSAGE_ID.fullmatch(text)
    if match is None:
        domain = text.strip("<> ").rpartition("@")[2] if "@" in text else ""
        return MessageIdFacts(text, False, domain.lower())
    return MessageIdFacts(text, True, match["domain"].lower())


def read_unsubscribe(fields: Sequence[HeaderField]) -> UnsubscribeFacts:
    """Read List-Unsubscribe (RFC 2369 3.2) and List-Unsubscribe-Post (RFC 8058 3.1)."""
    found = find_field(fields, "list-unsubscribe")
    post = find_field(fields, "list-unsubscribe-post")
    body = decode_header_bytes(found.body) if found else ""
    uris = ("".join(match[1].split()) for match in _URI.finditer(body))
    kept = tuple(flatten_controls(uri) for uri in uris if uri)[:MAX_URIS]
    return UnsubscribeFacts(
        is_present=found is not None,
        uris=kept,
        post=flatten_controls(decode_header_bytes(post.body))[:MAX_SHOWN] if post else None,
    )


def read_bulk(fields: Sequence[HeaderField]) -> BulkFacts:
    """Read what makes a mail look like one of many."""
    names = names_of_fields(fields)
    return BulkFacts(
        list_fields=tuple(dict.fromkeys(name for name in names if name.startswith("list-"))),
        precedence=read_text(fields, "precedence").lower(),
        auto_submitted=read_text(fields, "auto-submitted").lower(),
        feedback_id=read_text(fields, "feedback-id"),
    )
