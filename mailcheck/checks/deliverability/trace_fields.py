"""The trace fields that a receiver writes on top of a mail (RFC 5321 4.4)."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from ipaddress import IPv6Address, ip_address

from mailcheck.core.instants import SECOND, Instant

MAX_NAME = 255
"""Characters of a host name that are repeated (RFC 5321 4.5.3.1.2)."""

MAX_PATH = 320
"""Characters of an address that are repeated: 64 for the local part, 255 for the domain."""

_NO_NAME = re.compile(r"[^A-Za-z0-9._:\[\]-]", re.ASCII)
_NO_ATOM = re.compile(r"[^A-Za-z0-9._-]", re.ASCII)
# A line break of any kind, or what is not shown, must not get into a header.
_NO_PATH = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What is known of the transaction that a mail came in.

    ``envelope_sender`` is empty for the null reverse-path. ``client_name`` is the
    confirmed name of the address; empty where there is none or it is not
    known. ``protocol`` is the keyword of RFC 3848 (``ESMTPS``).
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
    """Give the mail with Return-Path and Received on top, as filters read them.

    HELO name, addresses and names may be any text: what could end a field or
    add a second one is written as ``?``.
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
    """Write an address as RFC 5321 4.1.3 does; an IPv4 address inside IPv6 as IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return "unknown"
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped) if address.ipv4_mapped else f"IPv6:{address.compressed}"
    return str(address)
