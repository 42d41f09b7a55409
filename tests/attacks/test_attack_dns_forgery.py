"""Forged DNS replies: only replies of the queried server to the question sent are accepted."""

import os
from typing import Any, cast

import dns.message
import dns.rcode
import pytest
from twisted.internet.defer import maybeDeferred
from twisted.internet.protocol import DatagramProtocol

from mailcheck.checks.dns_answers import DnsQuestion, DnsStatus
from mailcheck.dns.exchange import DnsReactor
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.resolver import StubResolver
from mailcheck.dns.servers import Server
from tests.dns.scripted_network import (
    SECOND_SERVER,
    SERVER,
    DatagramQuery,
    ScriptedNetwork,
    build_reply,
    collect,
)

pytestmark = pytest.mark.attack

QUESTION = DnsQuestion("bank.example", "A")
HONEST = "bank.example. 60 IN A 192.0.2.1"
FORGED = "bank.example. 60 IN A 203.0.113.66"


@pytest.fixture
def network() -> ScriptedNetwork:
    """A network on which every host may send to every port."""
    return ScriptedNetwork()


@pytest.fixture
def stub(network: ScriptedNetwork) -> StubResolver:
    """A resolver with one server."""
    return StubResolver(network, [SERVER], ResolverSettings(), network.random_bytes)


def forged_reply(query: DatagramQuery) -> bytes:
    """Return the forged reply, with everything else correct."""
    return build_reply(query.message, (FORGED,)).to_wire()


def assert_honest(answers: list[Any]) -> None:
    """Check that the lookup ended with the answer of the server."""
    (answer,) = answers
    assert answer.status is DnsStatus.FOUND
    assert [record.to_text() for record in answer.records] == ["192.0.2.1"]


@pytest.mark.parametrize(
    "sender", [SECOND_SERVER, Server(SERVER.host, 5353), Server("::ffff:192.0.2.53")]
)
def test_forged_sender(network: ScriptedNetwork, stub: StubResolver, sender: Server) -> None:
    """A reply from another address or port is dropped, and the honest one is still accepted."""
    answers = collect(stub.lookup(QUESTION))
    (query,) = network.queries
    query.send_from(forged_reply(query), sender)
    assert answers == []
    query.reply(HONEST)
    assert_honest(answers)


def test_forged_ids(network: ScriptedNetwork, stub: StubResolver) -> None:
    """A reply is dropped for each possible wrong id, and the honest reply is still accepted."""
    answers = collect(stub.lookup(QUESTION))
    (query,) = network.queries
    forged = forged_reply(query)
    for ident in range(0x10000):
        if ident != query.message.id:
            query.send(ident.to_bytes(2, "big") + forged[2:])
    assert answers == []
    query.reply(HONEST)
    assert_honest(answers)


def test_forged_port(network: ScriptedNetwork, stub: StubResolver) -> None:
    """A correct reply to another port of the resolver is dropped."""
    answers = [
        collect(stub.lookup(DnsQuestion(f"h{number}.example", "A"))) for number in range(100)
    ]
    first, last = network.queries[0], network.queries[-1]
    assert first.port is not last.port
    last.port.protocol.datagramReceived(
        build_reply(first.message, rcode=dns.rcode.NXDOMAIN).to_wire(), (SERVER.host, SERVER.port)
    )
    assert answers[0] == []


def test_ids_in_use_are_not_taken_twice() -> None:
    """Two queries that wait on one port never share an id, even if the random numbers repeat."""
    network = ScriptedNetwork()
    dice = iter([b"\0\1", b"\0\1", b"\0\1", b"\0\2"])
    stub = StubResolver(network, [SERVER], ResolverSettings(), lambda _: next(dice))
    collect(stub.lookup(QUESTION))
    collect(stub.lookup(DnsQuestion("other.example", "A")))
    assert [query.message.id for query in network.queries] == [1, 2]


class HonestServer(DatagramProtocol):
    """A server on loopback that lets a forger answer first."""

    noisy = False

    def __init__(self, forger: DatagramProtocol) -> None:
        self.forger = forger

    def datagramReceived(self, datagram: bytes, addr: Any) -> None:
        """Answer after the forger, who sends a correct reply from a separate port."""
        query = dns.message.from_wire(datagram)
        assert self.forger.transport is not None
        assert self.transport is not None
        self.forger.transport.write(build_reply(query, (FORGED,)).to_wire(), addr)
        self.transport.write(build_reply(query, (HONEST,)).to_wire(), addr)


async def test_forged_on_loopback() -> None:
    """With real sockets, too, only replies of the queried server are accepted."""
    from twisted.internet import reactor

    network = cast(DnsReactor, reactor)
    forger = DatagramProtocol()
    forger.noisy = False
    forger_port = network.listenUDP(0, forger, "127.0.0.1", 4096)
    port = network.listenUDP(0, HonestServer(forger), "127.0.0.1", 4096)
    server = Server("127.0.0.1", cast(Any, port.getHost()).port)
    stub = StubResolver(network, [server], ResolverSettings(), os.urandom)
    try:
        for _ in range(20):
            assert_honest([await stub.lookup(QUESTION)])
    finally:
        await stub.close()
        await maybeDeferred(port.stopListening)
        await maybeDeferred(forger_port.stopListening)
