"""Malformed DNS replies cost one attempt, but cause no wrong answer, crash or long computation."""

import struct
from collections.abc import Callable
from functools import partial

import dns.flags
import dns.rcode
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.dns.resolution import MAX_LINKS, ResolverSettings
from mailcheck.dns.resolver import StubResolver
from tests.dns.scripted_network import SERVER, Query, ScriptedNetwork, build_reply, collect
from tests.table import rows

pytestmark = pytest.mark.attack

QUESTION = DnsQuestion("www.example", "TXT")
RECORDS = (
    "www.example. 300 IN CNAME host.example.",
    'host.example. 60 IN TXT "v=spf1 -all"',
    'host.example. 60 IN TXT "second"',
)
SOA = "example. 900 IN SOA ns.example. host.example. 1 2 3 4 120"
QUESTION_END = 12 + len(b"\3www\7example\0\0\x10\0\1")


def resolve(reply: Callable[[Query], bytes], *, by_stream: bool = False) -> DnsAnswer | None:
    """Answer each attempt with these bytes; return the answer, or ``None`` while it is pending."""
    network = ScriptedNetwork()
    stub = StubResolver(network, [SERVER], ResolverSettings(), network.random_bytes)
    answers = collect(stub.lookup(QUESTION))
    answered = 0
    while answered < len(network.queries) and not answers:
        query: Query = network.queries[answered]
        answered += 1
        if by_stream:
            query.reply(flags=dns.flags.TC)
            query = network.accept()
        query.send(reply(query))
        network.advance(0)  # large replies are read in a later iteration of the reactor
    assert answered <= 3 * (MAX_LINKS + 1)
    return answers[0] if answers else None


def whole_reply(query: Query) -> bytes:
    """Return an honest reply: two texts behind a CNAME."""
    return build_reply(query.message, RECORDS).to_wire()


def raw_reply(query: Query, answer: bytes, records: int = 1) -> bytes:
    """Return a reply with these bytes as its answer section."""
    header = query.wire[:2] + b"\x81\x80" + struct.pack("!4H", 1, records, 0, 0)
    return header + query.wire[12:QUESTION_END] + answer


def _cut(reply: Callable[[Query], bytes], length: int, query: Query) -> bytes:
    return reply(query)[:length]


@rows(False, True)
def test_malformed_cut(by_stream: bool) -> None:
    """A reply that is cut off is used whole or not at all: records are never lost silently."""
    whole = resolve(whole_reply, by_stream=by_stream)
    assert whole is not None
    assert len(whole.records) == 2
    for cut in range(160):
        answer = resolve(partial(_cut, whole_reply, cut), by_stream=by_stream)
        if answer is not None and answer.status.is_determined:
            assert answer == whole._replace(octets=answer.octets)


def test_malformed_cut_denial() -> None:
    """A denial that is cut off does not deny the name."""

    def denial(query: Query) -> bytes:
        return build_reply(query.message, authority=(SOA,), rcode=dns.rcode.NXDOMAIN).to_wire()

    whole = resolve(denial)
    assert whole is not None
    assert whole.status is DnsStatus.NXDOMAIN
    for cut in range(12, 120):
        answer = resolve(partial(_cut, denial, cut))
        assert answer is None or not answer.status.is_determined or answer == whole


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=8))
def test_malformed_changes(changes: list[tuple[int, int]]) -> None:
    """With any octets changed, a lookup returns a value or waits for a better reply."""

    def changed(query: Query) -> bytes:
        wire = bytearray(whole_reply(query))
        for offset, value in changes:
            wire[offset % len(wire)] = value
        return bytes(wire)

    answer = resolve(changed)
    assert answer is None or isinstance(answer, DnsAnswer)


@rows(
    struct.pack("!H", 0xC000 | QUESTION_END),  # points to itself
    struct.pack("!H", 0xC000 | (QUESTION_END + 20)),  # points forward
    b"\1a" + struct.pack("!H", 0xC000 | QUESTION_END),  # becomes longer without end
    b"\xff\xff",
    b"\x80\x0c",  # reserved kind of label
    b"\x3f" * 64,
)
def test_malformed_compression(owner: bytes) -> None:
    """A reply with a loop of compression pointers is dropped as malformed."""
    record = owner + struct.pack("!HHIH", 16, 1, 60, 2) + b"\1x"
    answer = resolve(lambda query: raw_reply(query, record + record, 2))
    assert answer is not None
    assert answer.status is DnsStatus.SERVFAIL


def test_malformed_larger_than_a_message() -> None:
    """A reply that is truncated even over TCP (100 KB of text) is undetermined, not "no"."""

    def truncated(query: Query) -> bytes:
        return build_reply(query.message, RECORDS, flags=dns.flags.TC).to_wire()

    answer = resolve(truncated, by_stream=True)
    assert answer is not None
    assert answer.status is DnsStatus.SERVFAIL
