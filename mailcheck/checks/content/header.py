"""What lists and filters need of a mail, read from its first bytes while it is being stored."""

import re

from mailcheck.checks.content.charsets import decode_header_bytes
from mailcheck.checks.content.encoded_words import decode_words
from mailcheck.checks.content.header_fields import unfold
from mailcheck.checks.content.limits import MAX_SUMMARY_BYTES
from mailcheck.checks.content.mailboxes import parse_first_mailbox
from mailcheck.core.content import HeaderSummary

_END_OF_SECTION = re.compile(rb"\n\r?\n")
_END_OF_FIELD = re.compile(rb"\r?\n(?![ \t])|\Z")
_SPACED_COLON = {
    # RFC 5322 4.5 allows white space before the colon; it is rare enough to be looked for last.
    name: re.compile(rb"\n" + name + rb"[ \t]++:", re.IGNORECASE)
    for name in (b"from", b"subject")
}


def summarize_header(raw_message: bytes) -> HeaderSummary:
    """Read author and subject from the header section; whatever is missing or broken is "".

    Never raises, and takes time linear in the first 64 KiB at most.
    """
    blank = _END_OF_SECTION.search(raw_message, 0, MAX_SUMMARY_BYTES)
    section = b"\n" + raw_message[: blank.start() if blank else MAX_SUMMARY_BYTES]
    lowered = section.lower()
    address, name = parse_first_mailbox(_find_body(section, lowered, b"from"))
    subject = decode_words(_find_body(section, lowered, b"subject")).strip()
    return HeaderSummary(address, name, subject)


def _find_body(section: bytes, lowered: bytes, name: bytes) -> str:
    found = lowered.find(b"\n" + name + b":")
    if found >= 0:
        start = found + len(name) + 2
    else:
        match = _SPACED_COLON[name].search(section)
        if match is None:
            return ""
        start = match.end()
    end = _END_OF_FIELD.search(section, start)
    return decode_header_bytes(unfold(section[start : end.start() if end else None]))
