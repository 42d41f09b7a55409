"""Packing queries and parsing negative replies, compared with dnspython."""

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dns_answers import DnsQuestion
from mailcheck.dns.wire_format import (
    MAX_RECORDS,
    UDP_PAYLOAD,
    ImpossibleName,
    Outcome,
    is_reply_to,
    pack_name,
    pack_query,
    pack_question,
    read_reply,
)
from tests.dns.scripted_network import build_reply
from tests.table import rows

SOA = "example. 900 IN SOA ns.example. host.example. 1 2 3 4 120"
NAME = DnsQuestion("a.example", "A")
PACKED = pack_question(NAME)
QUERY = dns.message.from_wire(pack_query(b"id", PACKED, has_edns=True))

labels = st.text(st.characters(codec="ascii", exclude_characters=".\\"), min_size=1, max_size=63)


@given(st.lists(labels, min_size=1, max_size=3))
def test_pack_name(parts: list[str]) -> None:
    """A name is packed as in RFC 1035, in lower case, with any ASCII in its labels."""
    packed = pack_name(".".join(parts))
    assert packed == dns.name.Name([part.lower().encode() for part in parts] + [b""]).to_wire()


@rows(
    ("", b"\0"),
    (".", b"\0"),
    ("Example.COM.", b"\7example\3com\0"),
    (r"a\.b.c", b"\3a.b\1c\0"),
    (r"\032x.c", b"\2 x\1c\0"),
    ("_dmarc.a", b"\6_dmarc\1a\0"),
)
def test_pack_name_forms(text: str, packed: bytes) -> None:
    """The root, a trailing dot, and escapes as in zone files are supported."""
    assert pack_name(text) == packed


@rows(
    *["a..b", ".a", "..", "a" * 64, "bücher.de", "a.b\u3002c", r"a\999", "\\", r"\...."],
    *[".".join(["a"] * 128), ".".join(["a" * 63] * 4)],
)
def test_pack_name_impossible(text: str) -> None:
    """A name that cannot be encoded has a separate exception."""
    with pytest.raises(ImpossibleName):
        pack_name(text)


def test_pack_name_longest() -> None:
    """255 octets are allowed, 256 are not (RFC 1035 2.3.4)."""
    longest = ".".join(["a" * 63] * 3 + ["b" * 61])
    assert len(pack_name(longest)) == 255
    with pytest.raises(ImpossibleName):
        pack_name(longest + "b")


def test_pack_query() -> None:
    """A query asks one question with recursion, sets the AD bit, and offers EDNS."""
    query = dns.message.from_wire(pack_query(b"\x12\x34", PACKED, has_edns=True))
    assert query.id == 0x1234
    assert query.flags == dns.flags.RD | dns.flags.AD
    assert [line.to_text() for line in query.question] == ["a.example. IN A"]
    assert (query.edns, query.payload) == (0, UDP_PAYLOAD)


def test_pack_question_type() -> None:
    """Types are known by name or number; other types raise an exception."""
    assert pack_question(DnsQuestion("a", "TYPE65280"))[-4:-2] == b"\xff\x00"
    with pytest.raises(ValueError, match="MXX"):
        pack_question(DnsQuestion("a", "MXX"))


@rows(
    (dns.rcode.NXDOMAIN, (SOA,), Outcome.NXDOMAIN, 120),
    (dns.rcode.NOERROR, (SOA,), Outcome.NODATA, 120),
    (dns.rcode.NOERROR, (SOA.replace(" 900 ", " 60 "),), Outcome.NODATA, 60),
    (dns.rcode.NOERROR, ("example. 9 IN NS ns.example.", SOA), Outcome.NODATA, 120),
    (dns.rcode.NXDOMAIN, (), Outcome.NXDOMAIN, 0),
    (dns.rcode.NOERROR, (), Outcome.NODATA, 0),
    (dns.rcode.NOERROR, ("example. 9 IN NS ns.example.",), Outcome.GARBAGE, 0),
    (dns.rcode.SERVFAIL, (), Outcome.SERVFAIL, 0),
    (dns.rcode.REFUSED, (), Outcome.REFUSED, 0),
    (dns.rcode.FORMERR, (), Outcome.UNSUPPORTED, 0),
    (dns.rcode.NOTIMP, (), Outcome.UNSUPPORTED, 0),
    (dns.rcode.NOTAUTH, (), Outcome.SERVFAIL, 0),
    (dns.rcode.BADVERS, (), Outcome.SERVFAIL, 0),
)
def test_read_reply(rcode: int, authority: tuple[str, ...], outcome: Outcome, ttl: int) -> None:
    """Each kind of reply without records is recognised; TTLs follow RFC 2308 5."""
    wire = build_reply(QUERY, authority=authority, rcode=rcode).to_wire()
    assert is_reply_to(wire, PACKED)
    reply = read_reply(wire, PACKED)
    assert (reply.outcome, reply.negative_ttl) == (outcome, ttl)


def test_read_reply_cut() -> None:
    """A negative reply that is truncated after its question is malformed."""
    reply = build_reply(QUERY, authority=(SOA,), rcode=dns.rcode.NXDOMAIN)
    reply.use_edns(False)
    wire = reply.to_wire()
    assert read_reply(wire, PACKED).outcome is Outcome.NXDOMAIN
    for length in range(len(PACKED) + 12, len(wire)):
        assert read_reply(wire[:length], PACKED).outcome is Outcome.GARBAGE


def test_read_reply_enormous_ttl() -> None:
    """A TTL of more than 31 bits counts as 0 (RFC 2181 8)."""
    soa = SOA.replace(" 900 ", " 4294967295 ").replace(" 120", " 4294967295")
    assert read_reply(build_reply(QUERY, authority=(soa,)).to_wire(), PACKED).negative_ttl == 0


def test_read_reply_flags() -> None:
    """AD is passed on; TC means TCP, even with an answer; records are parsed by dnspython."""
    records = ("a.example. 60 IN A 192.0.2.1",)
    authentic = build_reply(QUERY, authority=(SOA,), flags=dns.flags.AD).to_wire()
    assert read_reply(authentic, PACKED).is_authenticated
    truncated = build_reply(QUERY, records, flags=dns.flags.TC).to_wire()
    assert read_reply(truncated, PACKED).outcome is Outcome.TRUNCATED
    assert read_reply(build_reply(QUERY, records).to_wire(), PACKED).outcome is Outcome.POSITIVE


def test_read_reply_too_many_records() -> None:
    """A reply whose parsing would block all other work is not parsed."""
    wire = bytearray(build_reply(QUERY, ("a.example. 60 IN A 192.0.2.1",)).to_wire())
    wire[6:8] = (MAX_RECORDS + 1).to_bytes(2, "big")
    assert read_reply(bytes(wire), PACKED).outcome is Outcome.EXCESSIVE


@rows(
    (slice(2, 3), b"\x01"),  # a query
    (slice(2, 3), b"\xa1"),  # an update
    (slice(4, 6), b"\0\2"),
    (slice(13, 14), b"A"),  # the name in another case
    (slice(13, 14), b"b"),
    (slice(len(PACKED) + 9, len(PACKED) + 10), b"\x1c"),  # another type
    (slice(11, None), b""),
)
def test_is_reply_to_others(change: slice, value: bytes) -> None:
    """A message that does not repeat the question byte for byte is not a reply to it."""
    wire = bytearray(build_reply(QUERY, authority=(SOA,)).to_wire())
    assert is_reply_to(bytes(wire), PACKED)
    wire[change] = value
    assert not is_reply_to(bytes(wire), PACKED)


def test_is_reply_to_without_question() -> None:
    """A failure may omit the question, a negative reply may not."""
    assert is_reply_to(b"id\x80\x01" + bytes(8), PACKED)
    assert not is_reply_to(b"id\x80\x03" + bytes(8), PACKED)
    assert not is_reply_to(b"id\x80\x00" + bytes(8), PACKED)


@given(st.binary(max_size=80), st.integers(0, 3), st.integers(0, 3))
def test_read_reply_garbage(rest: bytes, in_authority: int, in_additional: int) -> None:
    """No bytes after the question raise an exception or take long."""
    counts = bytes((0, 1, 0, 0, 0, in_authority, 0, in_additional))
    wire = b"id\x80\x03" + counts + PACKED + rest
    assert read_reply(wire, PACKED).outcome in (
        Outcome.NXDOMAIN,
        Outcome.GARBAGE,
        Outcome.SERVFAIL,
    )


@given(st.binary(max_size=600))
def test_is_reply_to_garbage(wire: bytes) -> None:
    """Random bytes are never taken for a valid reply."""
    assert not is_reply_to(wire, PACKED) or wire[4:6] == b"\0\0"
