"""Replies that hold records, read with dnspython: the records, or where CNAMEs lead (pure)."""

from dataclasses import dataclass

import dns.exception
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
from dns.rdata import Rdata

from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.dns.wire_format import MAX_CACHED_TTL

_ADDITIONAL_COUNT = 10  # offset in the header


class MalformedReply(ValueError):
    """The reply is no DNS message, or one that does not answer its question."""


@dataclass(frozen=True, slots=True)
class Chain:
    """What one reply says of the asked name.

    ``canonical_name`` is where its CNAMEs end. ``status`` is that of this last
    name, or None where this server does not know it: it is to be asked next.
    ``ttl`` is the least of all that was used, 0 for what must not be cached.
    """

    status: DnsStatus | None
    canonical_name: str
    records: tuple[Rdata, ...]
    ttl: int


def read_positive(message: bytes) -> Chain:
    """Read a reply whose question was compared and which is not truncated.

    :raises MalformedReply: garbage, a loop, or records that nobody asked for.
    """
    # Nothing is read from the additional section: it is cut off by its count.
    message = message[:_ADDITIONAL_COUNT] + b"\0\0" + message[_ADDITIONAL_COUNT + 2 :]
    try:
        reply = dns.message.from_wire(message, ignore_trailing=True)
        if not isinstance(reply, dns.message.QueryMessage):
            raise MalformedReply("not a reply to a query")
        chain = reply.resolve_chaining()
    except dns.exception.DNSException as failure:
        raise MalformedReply(str(failure)) from failure
    canonical_name = text_of(chain.canonical_name)
    if chain.answer is not None and reply.rcode() == dns.rcode.NOERROR:
        ttl = chain.minimum_ttl
        return Chain(DnsStatus.FOUND, canonical_name, tuple(chain.answer), _cacheable(ttl))
    if not chain.cnames:
        raise MalformedReply("records of other names or types")
    has_soa = any(rrset.rdtype == dns.rdatatype.SOA for rrset in reply.authority)
    ttl = _cacheable(chain.minimum_ttl) if has_soa else 0  # RFC 2308 5
    if reply.rcode() == dns.rcode.NXDOMAIN:  # of the last name, RFC 6604 3
        return Chain(DnsStatus.NXDOMAIN, canonical_name, (), ttl)
    if reply.rcode() != dns.rcode.NOERROR:
        raise MalformedReply(f"records with {dns.rcode.to_text(reply.rcode())}")
    if has_soa:
        return Chain(DnsStatus.NODATA, canonical_name, (), ttl)
    links = min(rrset.ttl for rrset in chain.cnames)
    return Chain(None, canonical_name, (), _cacheable(links))


def text_of(name: dns.name.Name) -> str:
    """Write a name as `DnsQuestion` has it: lower case, no trailing dot."""
    return name.to_text().lower().removesuffix(".")


def _cacheable(ttl: int) -> int:
    return ttl if ttl <= MAX_CACHED_TTL else 0
