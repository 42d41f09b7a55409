"""The contract of `Resolver`, for the test double and for the resolvers with a real server."""

import os
from collections.abc import Iterator
from typing import cast

import pytest
import pytest_twisted
from dns.rdtypes.ANY.MX import MX
from dns.rdtypes.ANY.TXT import TXT
from dns.rdtypes.IN.A import A
from twisted.internet.defer import CancelledError, gatherResults
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.dns.caching_resolver import AnswerCache, CacheLimits, CachingResolver
from mailcheck.dns.exchange import DnsReactor
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.resolver import StubResolver
from mailcheck.dns.servers import Server
from mailcheck.ports.resolver import Resolver
from tests.fakes.memory_zone import MemoryZone
from tests.servers.name_server import running_name_server
from tests.table import rows

LONG_TEXT = "v=DKIM1; p=" + "A" * 600
MANY_TEXTS = [f"entry {number:03d} " + "x" * 200 for number in range(70)]

ZONE = {
    "example.com": {
        "SOA": ["ns.example.com. host.example.com. 1 3600 600 86400 60"],
        "MX": ["10 mx1.example.com.", "20 mx2.example.com."],
        "TXT": ["v=spf1 mx -all", LONG_TEXT],
    },
    "mx1.example.com": {"A": ["192.0.2.1"], "AAAA": ["2001:db8::1"]},
    "www.example.com": {"CNAME": ["mx1.example.com."]},
    "alias.example.com": {"CNAME": ["target.other.example."]},
    "dangling.example.com": {"CNAME": ["gone.other.example."]},
    "empty.example.com": {"CNAME": ["nothing.other.example."]},
    "one.loop.example.com": {"CNAME": ["two.loop.example.com."]},
    "two.loop.example.com": {"CNAME": ["one.loop.example.com."]},
    "away.example.com": {"CNAME": ["back.other.example."]},
    "deep.below.example.com": {"A": ["192.0.2.9"]},
    "*.wild.example.com": {"A": ["192.0.2.7"]},
    "large.example.com": {"TXT": MANY_TEXTS},
    "_dmarc.example.com": {"TXT": ["v=DMARC1; p=reject"]},
    "other.example": {"SOA": ["ns.other.example. host.other.example. 1 3600 600 86400 60"]},
    "target.other.example": {"A": ["192.0.2.8"]},
    "nothing.other.example": {"TXT": ["no address here"]},
    "back.other.example": {"CNAME": ["away.example.com."]},
}


PATIENT = ResolverSettings(try_timeouts=(60.0,), deadline=60.0)
"""The servers answer, however busy the machine is."""


@pytest.fixture(scope="session")
def name_server() -> Iterator[Server]:
    """Serve `ZONE` by a real name server during the tests."""
    with running_name_server(MemoryZone(ZONE)) as server:
        yield server


@pytest.fixture(params=["memory zone", "stub over NSD", "cache and stub over NSD"])
def resolver(request: pytest.FixtureRequest) -> Iterator[Resolver]:
    """Each implementation, serving `ZONE`."""
    if request.param == "memory zone":
        yield MemoryZone(ZONE)
        return
    from twisted.internet import reactor

    network = cast(DnsReactor, reactor)
    server = request.getfixturevalue("name_server")
    stub = StubResolver(network, [server], PATIENT, os.urandom)
    if request.param == "stub over NSD":
        yield stub
    else:
        yield CachingResolver(stub, AnswerCache(CacheLimits()), network)
    pytest_twisted.blockon(stub.close())


async def ask(resolver: Resolver, name: str, rdtype: str) -> DnsAnswer:
    """Look up one question."""
    return await resolver.lookup(DnsQuestion(name, rdtype))


async def test_resolver_found(resolver: Resolver) -> None:
    """Records of the type are returned with their owner and their TTL."""
    answer = await ask(resolver, "example.com", "MX")
    assert answer.status is DnsStatus.FOUND
    records = [record for record in answer.records if isinstance(record, MX)]
    assert sorted((record.preference, record.exchange.to_text()) for record in records) == [
        (10, "mx1.example.com."),
        (20, "mx2.example.com."),
    ]
    assert answer.question == DnsQuestion("example.com", "MX")
    assert answer.canonical_name == "example.com"
    assert answer.ttl == 3600


async def test_resolver_text(resolver: Resolver) -> None:
    """A text of more than 255 octets is returned completely, as several strings."""
    answer = await ask(resolver, "example.com", "TXT")
    texts = {b"".join(record.strings) for record in answer.records if isinstance(record, TXT)}
    assert texts == {b"v=spf1 mx -all", LONG_TEXT.encode()}


@rows(
    ("example.com", "AAAA", DnsStatus.NODATA),
    ("mx1.example.com", "MX", DnsStatus.NODATA),
    ("below.example.com", "A", DnsStatus.NODATA),
    ("nobody.example.com", "A", DnsStatus.NXDOMAIN),
    ("a.b.c.example.com", "TXT", DnsStatus.NXDOMAIN),
    ("www.example.com", "MX", DnsStatus.NODATA),
    ("empty.example.com", "A", DnsStatus.NODATA),
    ("dangling.example.com", "A", DnsStatus.NXDOMAIN),
    ("x.wild.example.com", "MX", DnsStatus.NODATA),
)
async def test_resolver_negative(
    resolver: Resolver, name: str, rdtype: str, status: DnsStatus
) -> None:
    """A name without the type and a missing name have different results."""
    answer = await ask(resolver, name, rdtype)
    assert (answer.status, answer.records) == (status, ())
    assert 0 < answer.ttl <= 300


@rows(
    ("www.example.com", "mx1.example.com", "192.0.2.1"),
    ("alias.example.com", "target.other.example", "192.0.2.8"),
    ("x.wild.example.com", "x.wild.example.com", "192.0.2.7"),
    ("MX1.Example.COM.", "mx1.example.com", "192.0.2.1"),
    (r"m\120\049.example.com", "mx1.example.com", "192.0.2.1"),
)
async def test_resolver_names(
    resolver: Resolver, name: str, canonical_name: str, address: str
) -> None:
    """CNAMEs to the same zone or to another zone are followed, and wildcards are expanded."""
    answer = await ask(resolver, name, "A")
    assert answer.status is DnsStatus.FOUND
    assert [record.address for record in answer.records if isinstance(record, A)] == [address]
    assert answer.canonical_name == canonical_name


async def test_resolver_cname_itself(resolver: Resolver) -> None:
    """A question for the CNAME returns it instead of its target."""
    answer = await ask(resolver, "www.example.com", "CNAME")
    assert [record.to_text() for record in answer.records] == ["mx1.example.com."]
    assert answer.canonical_name == "www.example.com"


@rows("one.loop.example.com", "away.example.com")
async def test_resolver_loops(resolver: Resolver, name: str) -> None:
    """The lookup of a CNAME loop ends with SERVFAIL."""
    answer = await ask(resolver, name, "A")
    assert answer.status is DnsStatus.SERVFAIL
    assert not answer.status.is_determined
    assert answer.ttl == 0


async def test_resolver_large(resolver: Resolver) -> None:
    """An answer of 15 KB, far too large for a datagram, is returned whole."""
    answer = await ask(resolver, "large.example.com", "TXT")
    texts = [b"".join(record.strings) for record in answer.records if isinstance(record, TXT)]
    assert sorted(texts) == [text.encode() for text in MANY_TEXTS]


@rows(
    "a" * 64 + ".example.com",
    "example..com",
    ".example.com",
    ".".join(["a"] * 128),
    "bücher.de",
)
async def test_resolver_impossible_names(resolver: Resolver, name: str) -> None:
    """A name that cannot be encoded in DNS does not exist."""
    answer = await ask(resolver, name, "A")
    assert (answer.status, answer.records) == (DnsStatus.NXDOMAIN, ())


async def test_resolver_longest_name(resolver: Resolver) -> None:
    """A name of 253 characters can be looked up."""
    name = ".".join(["a" * 49] * 4) + "." + "b" * 41 + ".example.com"
    assert len(name) == 253
    answer = await ask(resolver, name, "A")
    assert answer.status is DnsStatus.NXDOMAIN


def test_resolver_unknown_type(resolver: Resolver) -> None:
    """An unknown record type raises an exception at once."""
    with pytest.raises(ValueError, match="NOTHING"):
        resolver.lookup(DnsQuestion("example.com", "NOTHING"))


async def test_resolver_many(resolver: Resolver) -> None:
    """Hundreds of questions at once each get their own answer."""
    questions = [DnsQuestion(f"h{number}.wild.example.com", "A") for number in range(400)]
    answers = await gatherResults([resolver.lookup(question) for question in questions])
    assert [answer.question for answer in answers] == questions
    assert {answer.status for answer in answers} == {DnsStatus.FOUND}


async def test_resolver_same_question_twice(resolver: Resolver) -> None:
    """Two equal questions are both answered; cancelling one does not cancel the other."""
    question = DnsQuestion("_dmarc.example.com", "TXT")
    first, second = resolver.lookup(question), resolver.lookup(question)
    failures: list[Failure] = []
    first.addErrback(failures.append)
    first.cancel()
    answer = await second
    assert [record.to_text() for record in answer.records] == ['"v=DMARC1; p=reject"']
    assert all(isinstance(failure.value, CancelledError) for failure in failures)
