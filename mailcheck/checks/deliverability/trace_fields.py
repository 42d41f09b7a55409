"""The trace fields that a receiver writes on top of a mail (RFC 5321 4.4)."""

import re
from datetime import UTC, datetime
from email.utils import format_datetime
from ipaddress import IPv6Address, ip_address

from msgspec import Struct

from mailcheck.checks.content.header.fields import HeaderField, parse_moment, split_header
from mailcheck.core.addresses import MAX_PATH
from mailcheck.core.instants import SECOND, Instant

MAX_NAME = 255
"""Maximum number of characters of a host name (RFC 5321 4.5.3.1.2)."""

_NO_NAME = re.compile(r"[^A-Za-z0-9._:\[\]-]", re.ASCII)
_NO_ATOM = re.compile(r"[^A-Za-z0-9._-]", re.ASCII)
# Line breaks of any kind and invisible characters must not get into a header.
_NO_PATH = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class TraceFacts(Struct, frozen=True):
    """Facts about the transaction of a mail.

    ``envelope_sender`` is empty for the null reverse-path. ``client_name`` is the confirmed name
    of the address; empty if it has none or it is not known. ``protocol`` is a keyword of RFC 3848
    (``ESMTPS``).
    """

    envelope_sender: str
    recipient: str
    helo_name: str
    client_ip: str
    client_name: str
    receiving_host: str
    protocol: str
    mail_id: str
    received_at: Instant


def with_trace_fields(raw_message: bytes, facts: TraceFacts) -> bytes:
    """Return the mail with Return-Path and Received at the top, as filters expect them.

    HELO name, addresses and names may be any text. Characters that could end a field or add
    another one become ``?``.
    """
    moment = datetime.fromtimestamp(facts.received_at // SECOND, UTC)
    name = _host(facts.client_name) or "unknown"
    fields = (
        f"Return-Path: <{_path(facts.envelope_sender)}>\r\n"
        f"Received: from {_host(facts.helo_name) or 'unknown'}"
        f" ({name} [{_literal(facts.client_ip)}])\r\n"
        f"\tby {_host(facts.receiving_host) or 'localhost'}"
        f" with {_atom(facts.protocol) or 'SMTP'}"
        f" id {_atom(facts.mail_id) or 'unknown'}\r\n"
        f"\tfor <{_path(facts.recipient)}>; {format_datetime(moment)}\r\n"
    )
    return fields.encode("utf-8") + raw_message


def _host(text: str) -> str:
    return _NO_NAME.sub("?", text[:MAX_NAME])


def _atom(text: str) -> str:
    return _NO_ATOM.sub("?", text[:MAX_NAME])


def _path(text: str) -> str:
    return _NO_PATH.sub("?", text[:MAX_PATH])


def _literal(text: str) -> str:
    """Format an address as in RFC 5321 4.1.3; an IPv4-mapped address as IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return "unknown"
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped) if address.ipv4_mapped else f"IPv6:{address.compressed}"
    return str(address)


# from HELO (name [address]), as written by Postfix, Exim, Sendmail and Gmail. Exim adds the HELO
# name in brackets if it differs.
_RECEIVED = re.compile(
    r"from\s++(?P<helo>\S++)\s++\((?P<inside>[^()]*+(?>(?:\([^()]*+\)[^()]*+)?))\)", re.IGNORECASE
)
_ADDRESS = re.compile(r"\[(?:IPv6:)?([0-9a-f.:]++)\]", re.IGNORECASE)
_EXIM_HELO = re.compile(r"\bhelo=(\S++)", re.IGNORECASE)
_PATH = re.compile(r"<([^<>]*+)>")


class OwnTrace(Struct, frozen=True):
    """Values of the trace fields; `None` if a value is missing.

    ``envelope_sender`` is empty for the null reverse-path.
    """

    client_ip: str | None = None
    helo_name: str | None = None
    envelope_sender: str | None = None
    received_at: Instant | None = None


def read_own_trace(raw_message: bytes) -> OwnTrace:
    """Read Return-Path and the first Received field of a mail of any bytes."""
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
        received_at=parse_moment(received.rpartition(";")[2]),
    )


def _text(fields: tuple[HeaderField, ...], name: str) -> str:
    found = next((field for field in fields if field.name.lower() == name), None)
    return found.as_text() if found else ""
