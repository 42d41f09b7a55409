"""What the topmost trace fields of a stored mail say of its envelope (RFC 5321 4.4).

They were written by whoever received the mail, if they were not forged: to be
read only for somebody who trusts his own file.
"""

import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from mailcheck.checks.content.decoding import decode_header_bytes
from mailcheck.checks.content.header import HeaderField, split_header
from mailcheck.core.instants import Instant, instant_of

# from HELO (name [address]), as Postfix, Exim, Sendmail and Gmail write it; Exim has the
# HELO name in brackets behind it where it differs.
_RECEIVED = re.compile(
    r"from\s++(?P<helo>\S++)\s++\((?P<inside>[^()]*+(?:\([^()]*+\)[^()]*+)?+)\)", re.IGNORECASE
)
_ADDRESS = re.compile(r"\[(?:IPv6:)?([0-9a-f.:]++)\]", re.IGNORECASE)
_EXIM_HELO = re.compile(r"\bhelo=(\S++)", re.IGNORECASE)
_PATH = re.compile(r"<([^<>]*+)>")


@dataclass(frozen=True, slots=True)
class OwnTrace:
    """What could be read; nothing where it does not stand there.

    ``envelope_sender`` is empty for the null reverse-path.
    """

    client_ip: str | None = None
    helo_name: str | None = None
    envelope_sender: str | None = None
    received_at: Instant | None = None


def read_own_trace(raw_message: bytes) -> OwnTrace:
    """Read Return-Path and the topmost Received field of a mail of any bytes."""
    fields = split_header(raw_message, 0, len(raw_message)).fields
    received = _text(fields, "received")
    hop = _RECEIVED.search(received)
    address = _ADDRESS.search(hop["inside"]) if hop else None
    exim = _EXIM_HELO.search(hop["inside"]) if hop else None
    path = _PATH.search(_text(fields, "return-path"))
    return OwnTrace(
        client_ip=address[1] if address else None,
        helo_name=exim[1] if exim else hop["helo"] if hop else None,
        envelope_sender=path[1].strip() if path else None,
        received_at=_read_moment(received.rpartition(";")[2]),
    )


def _text(fields: tuple[HeaderField, ...], name: str) -> str:
    found = next((field for field in fields if field.name.lower() == name), None)
    return decode_header_bytes(found.body) if found else ""


def _read_moment(text: str) -> Instant | None:
    try:
        return instant_of(parsedate_to_datetime(text.strip()).timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
