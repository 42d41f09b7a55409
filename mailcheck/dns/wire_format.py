"""The DNS wire format (RFC 1035 4): packs queries, and parses negative replies without dnspython.

Building or parsing a message as objects costs 0.3 to 0.9 ms of CPU. Most replies are negative,
especially from blocklists. Such a reply is recognised by its header and the repeated question. Only
a reply with records is parsed by dnspython. The functions are pure.
"""

import struct
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

import dns.exception
import dns.name
import dns.rdatatype

from mailcheck.checks.dns_answers import DnsQuestion

MAX_NAME = 254  # octets of a packed name without the root label, RFC 1035 2.3.4
MAX_LABEL = 63
UDP_PAYLOAD = 1232  # octets: datagrams of this size are not fragmented (DNS flag day 2020)
MAX_CACHED_TTL = 0x7FFFFFFF  # a larger TTL counts as 0, RFC 2181 8

MAX_RECORDS = 100
"""Maximum number of records of the answer and authority sections together. The largest sets of TXT
records of companies have about 60."""

MAX_OCTETS = 16_384
"""Maximum size of a message."""

MAX_WORK = 5_000
"""Maximum number of steps for parsing a message, see `count_work`: a few milliseconds. A message
of two kilobytes can name a hundred hosts with a hundred labels each, which would take a quarter of
a second. A hundred addresses, texts or hosts with ordinary names are below the limit."""

CHEAP_STEPS = 400
"""Maximum number of steps of a reply that is parsed at once: ten ordinary records."""

MAX_ALIASES = 16
"""Maximum number of CNAMEs in one answer. BIND and Unbound have the same limit."""


_HEADER_LENGTH = 12
_QUERY_BITS = 0x0120  # recursion desired; AD: the AD bit of the reply is understood, RFC 6840 5.7
_AFTER_ID = struct.pack("!HHHHH", _QUERY_BITS, 1, 0, 0, 1)
_AFTER_ID_PLAIN = struct.pack("!HHHHH", _QUERY_BITS, 1, 0, 0, 0)
_OPT = b"\0" + struct.pack("!HHIH", dns.rdatatype.OPT, UDP_PAYLOAD, 0, 0)  # RFC 6891 6.1.2
_CLASS_IN = b"\0\1"

# Measured costs of parsing in steps; a step is about a microsecond.
_OF_RECORD = 30
_OF_STRING = 3
_OF_UNKNOWN_OCTET = 3
_OF_NAME = 10
_LABELS_OF_STEP = 7
"""A name in the data of a record is written again and compared. Its cost in steps is the square of
its labels, divided by this number."""

_NO_STRUCTURE = {dns.rdatatype.A, dns.rdatatype.AAAA, dns.rdatatype.TLSA, dns.rdatatype.CAA}
_BEFORE_NAME: dict[int, int] = {
    dns.rdatatype.NS: 0,
    dns.rdatatype.CNAME: 0,
    dns.rdatatype.SOA: 0,
    dns.rdatatype.PTR: 0,
    dns.rdatatype.DNAME: 0,
    dns.rdatatype.MX: 2,
    dns.rdatatype.SRV: 6,
}
"""Octets in the data before its name, by type."""

MAX_LINKS_OF_NAME = 128
"""Maximum number of labels and compression pointers in one name; a name cannot have more labels."""

_COUNTS = struct.Struct("!HHHH")
_RECORD = struct.Struct("!HHIH")  # type, class, TTL, length of the data

_REPLY_MASK, _REPLY_BITS = 0xF8, 0x80  # QR set, opcode QUERY
_TC, _AA, _AD = 0x02, 0x04, 0x20
_NOERROR, _FORMERR, _SERVFAIL, _NXDOMAIN, _NOTIMP, _REFUSED = range(6)


class ImpossibleName(ValueError):
    """The name cannot be encoded in DNS, so it cannot exist (RFC 1035 2.3.4)."""


class Outcome(Enum):
    """The kind of a reply, as far as its header and section counts tell."""

    POSITIVE = "it has answer records"
    NODATA = "nodata"
    NXDOMAIN = "nxdomain"
    TRUNCATED = "truncated: retry over TCP"
    REFUSED = "refused"
    UNSUPPORTED = "the server did not understand the query"
    SERVFAIL = "servfail"
    EXCESSIVE = "too large or too costly to parse"
    GARBAGE = "malformed, or a referral"


class Reply(NamedTuple):
    """A reply as parsed by `read_reply`; ``negative_ttl`` is in seconds, 0 without one."""

    outcome: Outcome
    negative_ttl: int = 0
    is_authenticated: bool = False


_FAILURES = {
    _FORMERR: Reply(Outcome.UNSUPPORTED),
    _NOTIMP: Reply(Outcome.UNSUPPORTED),
    _REFUSED: Reply(Outcome.REFUSED),
}
_SERVER_FAILURE = Reply(Outcome.SERVFAIL)
_GARBAGE = Reply(Outcome.GARBAGE)
_EXCESSIVE = Reply(Outcome.EXCESSIVE)
_TRUNCATED = Reply(Outcome.TRUNCATED)


def pack_question(question: DnsQuestion) -> bytes:
    """Return the question section; its name is in lower case, so that replies can be compared.

    :raises ImpossibleName: the name cannot be encoded.
    :raises ValueError: the record type does not exist.
    """
    rdtype = _pack_type(question.rdtype)
    return pack_name(question.name) + rdtype + _CLASS_IN


def pack_name(name: str) -> bytes:
    """Return a name in wire format without compression; one trailing dot is ignored.

    :raises ImpossibleName: the name cannot be encoded.
    """
    if not name.isascii():
        raise ImpossibleName(f"not in A-labels: {name!r}")
    if "\\" in name:
        return _pack_escaped(name)
    name = name.lower().removesuffix(".")
    if not name:
        return b"\0"
    packed = b"".join(map(_pack_label, name.split(".")))
    if len(packed) > MAX_NAME:
        raise ImpossibleName(f"longer than {MAX_NAME} octets: {name!r}")
    return packed + b"\0"


@lru_cache(maxsize=4096)
def _pack_label(label: str) -> bytes:
    if not 0 < len(label) <= MAX_LABEL:
        raise ImpossibleName(f"an empty label or one over {MAX_LABEL} octets: {label!r}")
    return bytes((len(label),)) + label.encode("ascii")


def _pack_escaped(name: str) -> bytes:
    try:
        return dns.name.from_text(name.lower()).to_wire() or b"\0"
    except dns.exception.DNSException as failure:
        raise ImpossibleName(f"{failure}: {name!r}") from failure


@lru_cache(maxsize=64)
def _pack_type(rdtype: str) -> bytes:
    try:
        return struct.pack("!H", dns.rdatatype.from_text(rdtype))
    except dns.rdatatype.UnknownRdatatype as failure:
        raise ValueError(f"no record type: {rdtype}") from failure


def pack_query(ident: bytes, question: bytes, has_edns: bool) -> bytes:
    """Return a whole query for a packed question; ``ident`` has two octets."""
    if has_edns:
        return b"".join((ident, _AFTER_ID, question, _OPT))
    return b"".join((ident, _AFTER_ID_PLAIN, question))


def is_reply_to(message: bytes, question: bytes) -> bool:
    """Return whether a message with the right id repeats the question byte for byte.

    A failure may have no question, since some servers could not parse it.
    """
    if len(message) < _HEADER_LENGTH or message[2] & _REPLY_MASK != _REPLY_BITS:
        return False
    if message[4:6] == b"\0\1":
        return message.startswith(question, _HEADER_LENGTH)
    return message[4:6] == b"\0\0" and message[3] & 0x0F not in (_NOERROR, _NXDOMAIN)


def read_reply(message: bytes, question: bytes) -> Reply:
    """Parse a reply for which `is_reply_to` is true."""
    rcode = message[3] & 0x0F
    if rcode not in (_NOERROR, _NXDOMAIN):
        return _FAILURES.get(rcode, _SERVER_FAILURE)
    if message[2] & _TC:
        return _TRUNCATED
    if len(message) > MAX_OCTETS or count_records(message) > MAX_RECORDS:
        return _EXCESSIVE
    is_authenticated = bool(message[3] & _AD)
    offset = _HEADER_LENGTH + len(question)
    try:
        if message[6:8] == b"\0\0":
            return _read_negative(message, offset, is_authenticated)
        work, aliases = count_work(message, offset)
        if work > MAX_WORK or aliases > MAX_ALIASES:
            return _EXCESSIVE
    except (IndexError, struct.error):
        return _GARBAGE
    return Reply(Outcome.POSITIVE, 0, is_authenticated)


def count_records(message: bytes) -> int:
    """Return the number of records in the answer and authority sections, by the header."""
    _, in_answer, in_authority, _ = _COUNTS.unpack_from(message, 4)
    return int(in_answer + in_authority)


def is_cheap_to_parse(message: bytes, question: bytes) -> bool:
    """Return whether a reply for which `is_reply_to` is true is cheap to parse."""
    if message[6:8] == b"\0\0":
        return True
    try:
        return count_work(message, _HEADER_LENGTH + len(question))[0] <= CHEAP_STEPS
    except (IndexError, struct.error):
        return True  # it is malformed, which is found at once


def count_work(message: bytes, offset: int) -> tuple[int, int]:
    """Count the steps of parsing the records from an offset on, and the CNAMEs among them.

    Counting stops after `MAX_WORK` steps, so it is cheap itself.

    :raises IndexError: a name has no end, or points forward.
    """
    work = aliases = 0
    for _ in range(count_records(message)):
        labels, offset = _count_labels(message, offset)
        rdtype, _, _, length = _RECORD.unpack_from(message, offset)
        offset += _RECORD.size
        work += _OF_RECORD + labels + _count_work_of_data(message, offset, length, rdtype)
        aliases += rdtype == dns.rdatatype.CNAME
        offset += length
        if work > MAX_WORK:
            break
    return work, aliases


def _count_work_of_data(message: bytes, offset: int, length: int, rdtype: int) -> int:
    end = offset + length
    if rdtype in _NO_STRUCTURE:
        return 0
    if rdtype == dns.rdatatype.TXT:
        strings = 0
        while offset < end and strings * _OF_STRING <= MAX_WORK:
            offset += 1 + message[offset]
            strings += 1
        return strings * _OF_STRING
    before = _BEFORE_NAME.get(rdtype)
    if before is None:
        return length * _OF_UNKNOWN_OCTET
    work, offset = 0, offset + before
    for _ in range(1 + (rdtype == dns.rdatatype.SOA)):
        labels, offset = _count_labels(message, offset)
        work += _OF_NAME + labels + labels * labels // _LABELS_OF_STEP
    return work


def _count_labels(message: bytes, offset: int) -> tuple[int, int]:
    """Count the labels and pointers of a name; also return the offset after it."""
    behind, limit = 0, offset
    for links in range(MAX_LINKS_OF_NAME):
        length = message[offset]
        if length & 0xC0:
            target = (length & 0x3F) << 8 | message[offset + 1]
            behind = behind or offset + 2
            if length & 0xC0 != 0xC0 or target >= limit:
                break
            offset = limit = target
        elif length:
            offset += length + 1
        else:
            return links, behind or offset + 1
    raise IndexError("the name has no end, or points forward")


def _read_negative(message: bytes, offset: int, is_authenticated: bool) -> Reply:
    """Parse a reply without answer records: NXDOMAIN or NODATA (RFC 2308 2).

    NS records without an SOA are a referral (RFC 2308 2.2): this server does not know the answer.
    An extended RCODE (RFC 6891 6.1.3) is a failure, too.
    """
    _, _, in_authority, in_additional = _COUNTS.unpack_from(message, 4)
    ttl, has_soa, has_name_servers = 0, False, False
    for index in range(in_authority + in_additional):
        offset = _skip_name(message, offset)
        rdtype, _, record_ttl, length = _RECORD.unpack_from(message, offset)
        offset += _RECORD.size + length
        if offset > len(message):
            return _GARBAGE
        if index < in_authority:
            has_name_servers |= rdtype == dns.rdatatype.NS
            if rdtype == dns.rdatatype.SOA:
                has_soa = True
                minimum = int.from_bytes(message[offset - 4 : offset])  # its last field
                ttl = min(record_ttl, minimum)  # RFC 2308 5
        elif rdtype == dns.rdatatype.OPT and record_ttl >> 24:
            return _SERVER_FAILURE
    if has_name_servers and not has_soa and not message[2] & _AA:
        return _GARBAGE
    is_nxdomain = message[3] & 0x0F == _NXDOMAIN
    return Reply(
        Outcome.NXDOMAIN if is_nxdomain else Outcome.NODATA,
        ttl if ttl <= MAX_CACHED_TTL else 0,
        is_authenticated,
    )


def _skip_name(message: bytes, offset: int) -> int:
    """Return the offset after a name; pointers are not followed, so a loop does no harm."""
    while (length := message[offset]) & 0xC0 == 0:
        offset += length + 1
        if length == 0:
            return offset
    return offset + 2
