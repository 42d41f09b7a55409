"""Replies with records, and their meaning for the name in the question."""

import contextlib

import dns.edns
import dns.exception
import dns.message
import dns.opcode
import dns.rcode
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.dns.resolution import MalformedReply, read_positive
from mailcheck.dns.wire_format import pack_name
from tests.dns.scripted_network import build_reply

QUERY = dns.message.make_query("www.example", "A")
SOA = "example. 900 IN SOA ns.example. host.example. 1 2 3 4 120"
WWW = "www.example. 300 IN CNAME host.example."
HOST = "host.example. 60 IN A 192.0.2.1"
AWAY = "www.example. 300 IN CNAME Host.Other.example."


def read(*records: str, authority: tuple[str, ...] = (), rcode: int = 0) -> tuple[object, ...]:
    """Parse a reply with these records, and return the chain with its records as text."""
    wire = build_reply(QUERY, records, authority=authority, rcode=rcode).to_wire()
    chain = read_positive(wire)
    return chain.status, chain.canonical_name, [r.to_text() for r in chain.records], chain.ttl


def test_positive_chain() -> None:
    """Records at the end of CNAMEs are found, with the smallest TTL on the way."""
    assert read(WWW, HOST) == (DnsStatus.FOUND, "host.example", ["192.0.2.1"], 60)


def test_positive_order() -> None:
    """The order of the records in the reply does not matter."""
    assert read(HOST, WWW) == (DnsStatus.FOUND, "host.example", ["192.0.2.1"], 60)


def test_positive_chain_to_nothing() -> None:
    """NXDOMAIN applies to the last name (RFC 6604); an SOA means that it has no such record."""
    assert read(WWW, authority=(SOA,), rcode=dns.rcode.NXDOMAIN) == (
        DnsStatus.NXDOMAIN,
        "host.example",
        [],
        120,
    )
    assert read(WWW, authority=(SOA,)) == (DnsStatus.NODATA, "host.example", [], 120)


def test_positive_chain_to_elsewhere() -> None:
    """A chain that leaves the server's zones continues with another question."""
    assert read(AWAY) == (None, "host.other.example", [], 300)


def test_positive_negative_without_soa() -> None:
    """NXDOMAIN without an SOA is not cached (RFC 2308 5)."""
    assert read(WWW, rcode=dns.rcode.NXDOMAIN)[3] == 0


def test_positive_foreign_records() -> None:
    """Records of other names or types are not trusted."""
    with pytest.raises(MalformedReply):
        read("other.example. 60 IN A 192.0.2.1")
    with pytest.raises(MalformedReply):
        read("www.example. 60 IN AAAA 2001:db8::1")
    status, name, records, _ = read(WWW, HOST, "victim.example. 60 IN A 192.0.2.66")
    assert (status, name, records) == (DnsStatus.FOUND, "host.example", ["192.0.2.1"])


def test_positive_contradiction() -> None:
    """Records of the name together with NXDOMAIN are not an answer."""
    with pytest.raises(MalformedReply):
        read("www.example. 60 IN A 192.0.2.1", rcode=dns.rcode.NXDOMAIN)


def test_positive_failure_with_records() -> None:
    """A failure stays a failure if records come with it, and so does a reply of another kind."""
    with pytest.raises(MalformedReply):
        read(WWW, rcode=dns.rcode.SERVFAIL)
    update = bytearray(build_reply(QUERY, (WWW, HOST)).to_wire())
    update[2] |= dns.opcode.UPDATE << 3
    with pytest.raises(MalformedReply):
        read_positive(bytes(update))


def test_positive_strange_names() -> None:
    """A CNAME may lead to a name with any octets, which can be asked for."""
    wire = build_reply(QUERY, (r"www.example. 300 IN CNAME a\.b\000\195\"\@.example.",)).to_wire()
    chain = read_positive(wire)
    packed = pack_name(chain.canonical_name)
    assert packed == b'\x07a.b\0\xc3"@\x07example\0'


def test_positive_enormous_ttl() -> None:
    """A TTL of more than 31 bits counts as 0 (RFC 2181 8)."""
    assert read("www.example. 4294967295 IN A 192.0.2.1")[3] == 0


def test_positive_broken_additional_section() -> None:
    """Unused parts are not parsed: an error in an EDNS option does not spoil an answer."""
    reply = build_reply(QUERY, ("www.example. 60 IN A 192.0.2.1",))
    broken_text = dns.edns.GenericOption(dns.edns.OptionType.EDE, b"\0\x01\xff\xff")
    reply.use_edns(0, options=[broken_text])
    with pytest.raises(dns.exception.DNSException):
        dns.message.from_wire(reply.to_wire())
    assert read_positive(reply.to_wire()).status is DnsStatus.FOUND


@given(st.binary(max_size=120), st.integers(1, 3), st.integers(0, 3))
def test_positive_garbage(rest: bytes, in_answer: int, in_authority: int) -> None:
    """Any bytes are parsed or rejected; no other exception is raised."""
    header = b"id\x81\x80\0\1" + bytes((0, in_answer, 0, in_authority, 0, 0))
    with contextlib.suppress(MalformedReply):
        read_positive(header + b"\3www\7example\0\0\1\0\1" + rest)
