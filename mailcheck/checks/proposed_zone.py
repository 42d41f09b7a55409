"""Records that are not published yet, read as a zone would hold them."""

from collections.abc import Iterable, Mapping

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
from dns.rdata import Rdata
from dns.rdtypes.ANY.TXT import TXT

from mailcheck.checks.findings import RecordToPublish

MAX_STRING = 255
"""Octets of one string of a TXT record (RFC 1035 3.3)."""

ProposedZone = Mapping[str, Mapping[str, tuple[Rdata, ...]]]
"""Owner name in lower case without the last dot -> type -> records."""


class BadRecord(ValueError):
    """A record that can't be published; the message says why."""


def build_zone(records: Iterable[RecordToPublish]) -> ProposedZone:
    """Put records together by name and type.

    :raises BadRecord: a value can't be read, or something stands beside a CNAME.
    """
    zone: dict[str, dict[str, tuple[Rdata, ...]]] = {}
    for record in records:
        node = zone.setdefault(record.name.rstrip(".").lower(), {})
        rdata = parse_rdata(record.rdtype, record.value)
        others = node.get(record.rdtype, ())
        node[record.rdtype] = others if rdata in others else (*others, rdata)
    for name, node in zone.items():
        if "CNAME" in node and (len(node) > 1 or len(node["CNAME"]) > 1):
            raise BadRecord(f"beside a CNAME nothing else can stand at {name} (RFC 1034 3.6.2)")
    return zone


def parse_rdata(rdtype: str, value: str) -> Rdata:
    """Read a record's value as it is typed into a zone editor; TXT with quotes or without.

    :raises BadRecord: says in a few words what is wrong.
    """
    text = _quote(value) if rdtype == "TXT" and not value.lstrip().startswith('"') else value
    try:
        return dns.rdata.from_text(
            dns.rdataclass.IN,
            dns.rdatatype.from_text(rdtype),
            text,
            origin=dns.name.root,
            relativize=False,
        )
    except (dns.exception.DNSException, ValueError, UnicodeError) as error:
        raise BadRecord(f"is no value of a {rdtype} record: {error}") from None


def write_rdata(record: Rdata) -> str:
    """Write a record's value as it is typed into a zone editor, TXT without quotes."""
    if isinstance(record, TXT):
        return b"".join(record.strings).decode("utf-8", "replace")
    return record.to_text()


def _quote(text: str) -> str:
    """Write text as the strings of a TXT record, cut where a string is full."""
    octets = text.encode("utf-8", "surrogateescape")
    pieces = range(0, max(len(octets), 1), MAX_STRING)
    return " ".join(f'"{_escape(octets[cut : cut + MAX_STRING])}"' for cut in pieces)


def _escape(octets: bytes) -> str:
    return "".join(
        chr(octet) if 0x20 <= octet < 0x7F and octet not in b'"\\' else f"\\{octet:03d}"
        for octet in octets
    )
